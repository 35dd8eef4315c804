/** Entries into tools that ask while they stay open, noted outside of all processes, and what must hold while they do. */
import type { Entry } from '#core';
import type { Append } from '#journal';
import { HELD_KINDS } from './held-kinds.ts';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

/** One entry into such a tool. */
export interface HeldEntry {
  readonly order: number;
  readonly run: string;
  readonly id: string;
  readonly key: string;
  readonly process: SimulatedProcess;
}

export class HeldLedger {
  readonly entries: HeldEntry[] = [];

  enter(entry: HeldEntry): HeldEntry {
    this.entries.push(entry);
    return entry;
  }
}

/** Whoever owns the run gives an answer to the attempt that is under way, and to none that is over. */
export function checkTaken(entry: HeldEntry, ledger: Ledger): void {
  const { run: name, id, key, process, order } = entry;
  const run = ledger.runs.get(name);
  // One that stood still may hear late of what it was told before it lost the run.
  if (run?.holder !== process) return;
  const isAgain = ledger.held.entries.some((other) => other.key === key && other.order > order);
  if (isAgain) ledger.violated('waits', `${id} is given an answer in an attempt after which it was run again`, name);
  const over = run.entries.find((one, at) => (run.landed[at] ?? 0) > order && endsAttempt(one, key));
  if (over !== undefined)
    ledger.violated('waits', `${id} is given an answer in an attempt that is over since entry ${over.seq}`, name);
}

/** The attempts of the call that were made before it are over. */
export function endsAttempt(entry: Entry, key: string): boolean {
  const isEnd =
    entry.kind === 'call_ended' ||
    entry.kind === 'call_away' ||
    (entry.kind === 'paused' && entry.reason === 'in_doubt');
  return isEnd && key.endsWith(`/${entry.step}.${entry.call}`);
}

/** A run of which somebody is asked something reads as paused, although its call is under way. */
export function noteAsked({ run, entries, status }: Append, ledger: Ledger): void {
  for (const entry of entries) {
    if (entry.kind !== 'paused' || entry.wait === undefined) continue;
    const { tool } = entry.payload ?? {};
    if (typeof tool === 'string' && tool in HELD_KINDS && status !== 'paused')
      ledger.violated('waits', `${tool} asks, and the run reads as ${status ?? 'before'}`, run);
  }
}
