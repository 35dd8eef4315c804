/** A line for people, and what it is to them. */
export type Tone = 'plain' | 'good' | 'bad' | 'quiet' | 'strong';

export interface Line {
  readonly text: string;
  readonly tone: Tone;
}

export function line(tone: Tone, text: string): Line {
  return { tone, text };
}
