/** A second process on a journal's file. `node sqlite-child.ts <mode> <path>` */
import { once } from 'node:events';
import { PilotageError } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createClaimed, step } from '#testing';

const [, , mode, path = ''] = process.argv;

/** Opens and writes at the same time as others do: 10 runs with 21 entries each. */
async function writeRuns(): Promise<void> {
  console.log('opening');
  const journal = sqliteJournal({ path });
  const runs = Array.from({ length: 10 }, (_, index) => `child${process.pid}_${index}`);
  await Promise.all(
    runs.map(async (run) => {
      const claim = await createClaimed(journal, run, { owner: 'child', leaseMs: 60_000 });
      for (let head = 1; head <= 20; head += 1) await journal.append(step(claim, head));
    }),
  );
  await journal.close();
}

/** Holds the write lock until a line comes in. */
async function holdLock(): Promise<void> {
  // Not imported, for `tellLoading`.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const db = new DatabaseSync(path);
  db.exec('BEGIN IMMEDIATE');
  console.log('held');
  await once(process.stdin, 'data');
  db.exec('ROLLBACK');
  db.close();
  console.log('free');
  process.stdin.pause();
}

/** Appends until it is killed, or its file is taken away, and prints the seq of each entry when it is acknowledged. */
async function appendForEver(): Promise<void> {
  const journal = sqliteJournal({ path });
  const claim = await createClaimed(journal, 'endless', { owner: 'child', leaseMs: 60_000 });
  for (let head = 1; ; head += 1) {
    try {
      await journal.append(step(claim, head));
    } catch (error) {
      if (!PilotageError.is(error, 'journal_replaced')) throw error;
      console.log(error.code);
      return journal.close();
    }
    console.log(head + 1);
  }
}

/** Tells whether SQLite was loaded by importing the journals, and by opening one. */
async function tellLoading(): Promise<void> {
  const loaded = (): boolean =>
    'moduleLoadList' in process && (process.moduleLoadList as string[]).includes('NativeModule sqlite');
  const before = loaded();
  const journal = sqliteJournal({ path });
  console.log(JSON.stringify({ before, after: loaded() }));
  await journal.close();
}

const modes: Record<string, () => Promise<void>> = { writeRuns, holdLock, appendForEver, tellLoading };
await modes[mode ?? '']?.();
