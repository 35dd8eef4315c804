/** `pilotage stream`: the rows of a stream that a run's tools have written, and those that come. */
import { assertStreamName, defined, type StreamRow } from '#core';
import { followRows } from '#runtime';
import type { Options } from './options.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { harmless, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function streamCommand(run: string, name: string, options: Options, terminal: Terminal): Promise<number> {
  assertStreamName(name);
  return withJournal(await openJournal(options, 'look'), async (journal) => {
    const rows = followRows(
      { journal, waiting: (news) => news },
      { run, name },
      { follow: options.follow, ...defined({ from: options.from }) },
    );
    let count = 0;
    for await (const row of rows) {
      terminal.write(`${options.json ? terminalJson(row) : lineOf(row)}\n`);
      count += 1;
    }
    if (count === 0 && !options.json) terminal.note('No rows.');
    return EXIT.goal;
  });
}

function lineOf({ index, value }: StreamRow): string {
  const isLine = typeof value === 'string' && !value.includes('\n');
  return `${String(index).padStart(6)}  ${isLine ? harmless(value) : terminalJson(value)}`;
}
