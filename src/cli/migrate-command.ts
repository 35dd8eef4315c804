/** `pilotage migrate`: the journal in the format of this version. */
import { migrateJournal } from '#journal/place';
import type { Options } from './options.ts';
import { journalPlace } from './project.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { terminalJson } from './text.ts';

/** @returns the exit code. */
export async function migrateCommand(options: Options, terminal: Terminal): Promise<number> {
  const moved = await migrateJournal(await journalPlace(options));
  terminal.write(`${options.json ? terminalJson(moved) : sayingOf(moved)}\n`);
  return EXIT.goal;
}

function sayingOf({ from, to }: { readonly from: number; readonly to: number }): string {
  if (from === 0) return `The journal was made, in format ${to}.`;
  return from === to
    ? `The journal has format ${to}. Nothing was to be done.`
    : `The journal was brought from format ${from} to ${to}.`;
}
