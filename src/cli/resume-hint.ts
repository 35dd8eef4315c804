import type { Options } from './options.ts';
import { shellWord } from './text.ts';

/** The command that goes on with a run, ready to be copied. */
export function resumeCommand(run: string, { repeated }: Options, ...more: readonly string[]): string {
  return ['pilotage', 'resume', run, ...[...repeated, ...more].map(shellWord)].join(' ');
}
