/** Commands that are shown to be copied. */
import type { CommandName } from './help.ts';
import { type Options, takes } from './options.ts';
import { shellWord } from './text.ts';

/** How this program is called: from a clone of the project it is not installed as a command. */
const PROGRAM = import.meta.url.endsWith('.ts') ? 'npm run -s pilotage --' : 'pilotage';

/** The command about a run, with those of the given options that it needs, too; ready for a shell. */
export function hint(command: CommandName, run: string, { repeated }: Options, ...more: readonly string[]): string {
  const same = repeated.filter(([name]) => takes(command, name)).flatMap(([name, ...value]) => [`--${name}`, ...value]);
  return [PROGRAM, command, run, ...[...same, ...more].map((word) => shellWord(word ?? ''))].join(' ');
}
