/**
 * What every journal must do, as plain async functions for any test runner:
 *
 *     for (const check of journalConformance({ open: (clock) => memoryJournal({ clock }) })) it(check.name, check.run);
 */
import { assertOptions, type Clock, type OptionShape } from '#core';
import type { Journal } from '#journal';
import { artifactCases, sessionMemoryCases } from './journal-cases/artifacts-and-memory.ts';
import { dueCases } from './journal-cases/due.ts';
import { durableCases } from './journal-cases/durable.ts';
import { entryCases, repairCases } from './journal-cases/entries.ts';
import { inboxCases } from './journal-cases/inbox.ts';
import type { JournalCase } from './journal-cases/kit.ts';
import { leaseCases } from './journal-cases/leases.ts';
import { parkedCases } from './journal-cases/parked.ts';
import { passingCases } from './journal-cases/passing.ts';
import { pruneBesideCases, pruneCases } from './journal-cases/prune.ts';
import { sessionCases } from './journal-cases/sessions.ts';
import { signalCases } from './journal-cases/signals.ts';
import { snapshotCases } from './journal-cases/snapshots.ts';
import { startCases } from './journal-cases/starts.ts';
import { listingCases, statusCases } from './journal-cases/statuses.ts';
import { storeCases } from './journal-cases/store.ts';
import { streamCases } from './journal-cases/streams.ts';
import { taskCases } from './journal-cases/tasks.ts';
import { waitCases } from './journal-cases/waits.ts';
import { VirtualClock } from './time-and-chance.ts';

export interface JournalConformanceOptions {
  /**
   * Opens a journal that reads the time from `clock`, on the storage with the name `store` (letters, digits and `_`). A new name
   * means an empty storage.
   */
  open(clock: Clock, store: string): Journal | Promise<Journal>;
  /** True: a `store` may be opened again, also while it is open, and then has the same data. Default false. */
  readonly durable?: boolean;
}

export interface ConformanceCase {
  readonly name: string;
  /** Rejects with an `AssertionError` when the journal does not conform. */
  readonly run: () => Promise<void>;
}

const OPTIONS: OptionShape<JournalConformanceOptions> = { open: 'function', durable: 'flag?' };

export function journalConformance(options: JournalConformanceOptions): ConformanceCase[] {
  assertOptions('journalConformance', options, OPTIONS);
  const cases = [
    ...entryCases,
    ...leaseCases,
    ...repairCases,
    ...statusCases,
    ...inboxCases,
    ...taskCases,
    ...listingCases,
    ...sessionCases,
    ...artifactCases,
    ...sessionMemoryCases,
    ...snapshotCases,
    ...storeCases,
    ...waitCases,
    ...dueCases,
    ...parkedCases,
    ...signalCases,
    ...startCases,
    ...streamCases,
    ...passingCases,
    ...pruneCases,
  ];
  if (options.durable === true) cases.push(...durableCases, ...pruneBesideCases);
  return cases.map((check) => ({ name: check.name, run: () => runCase(check, options) }));
}

async function runCase(check: JournalCase, options: JournalConformanceOptions): Promise<void> {
  const clock = new VirtualClock();
  const store = `conformance_${crypto.randomUUID().replaceAll('-', '')}`;
  const opened: Journal[] = [];
  const open = async (): Promise<Journal> => {
    const journal = await options.open(clock, store);
    opened.push(journal);
    return journal;
  };
  try {
    await check.run({ clock, journal: await open(), open });
  } finally {
    for (const journal of opened) await journal.close();
  }
}
