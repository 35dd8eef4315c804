/** Where the command writes: answers and data to stdout, everything about the way there to stderr. */
import { styleText } from 'node:util';
import type { Tone } from './line.ts';

export interface Terminal {
  /** Somebody reads stdout as it comes. */
  readonly isLive: boolean;
  /** Data, exactly as given. */
  write(text: string): void;
  /** A line about what happens. Colours only where the stream takes them and NO_COLOR is not set. */
  note(text: string, tone?: Tone): void;
}

const STYLES = { plain: 'reset', good: 'green', bad: 'red', quiet: 'dim', strong: 'bold' } as const;

export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  return {
    isLive: stdout.isTTY === true,
    write: (text) => void stdout.write(text),
    note: (text, tone = 'plain') => {
      const styled = tone === 'plain' ? text : styleText(STYLES[tone], text, { stream: stderr });
      stderr.write(`${styled}\n`);
    },
  };
}
