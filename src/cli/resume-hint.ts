import type { Options } from './options.ts';
import { shellWord } from './text.ts';

/** How this program is called: from a clone of the project it is not installed as a command. */
const COMMAND = import.meta.url.endsWith('.ts') ? 'npm run -s pilotage --' : 'pilotage';

/** The command that goes on with a run, ready to be copied. */
export function resumeCommand(run: string, { repeated }: Options, ...more: readonly string[]): string {
  return [COMMAND, 'resume', run, ...[...repeated, ...more].map(shellWord)].join(' ');
}
