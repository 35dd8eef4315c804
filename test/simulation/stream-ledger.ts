/** What tools have written to streams, and what the store has taken of it, noted outside of all processes. */
import type { Json } from '#core';
import type { Append, StreamAppend } from '#journal';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

/** A row that a tool has written, in one entry into its function. */
interface WrittenRow {
  readonly stream: string;
  readonly n: number;
  /** The tool was told that it is not stored. */
  isRefused: boolean;
}

/** One entry into the function of a tool that writes. */
export interface WritingEntry {
  /** Each has a number of its own. */
  readonly entered: number;
  readonly run: string;
  readonly id: string;
  readonly key: string;
  readonly attempt: number;
  readonly process: SimulatedProcess;
  /** Under which its process had the run. */
  readonly fence: number;
  readonly rows: WrittenRow[];
}

/** What the store has taken, in order. */
export interface TakenRow {
  readonly order: number;
  readonly stream: string;
  readonly step: number;
  readonly call: number;
  readonly attempt: number;
  /** Absent: the stream was closed. */
  readonly value?: Json;
}

/** Entries that ended calls, and who stored them. */
export interface EndStored {
  readonly order: number;
  readonly run: string;
  readonly step: number;
  readonly call: number;
  readonly process: SimulatedProcess;
  readonly fence: number;
}

/** Somebody who has read rows of a stream. */
export interface RowsRead {
  readonly run: string;
  readonly stream: string;
  /** The number of the first row that was asked for. */
  readonly from: number;
  readonly follow: boolean;
  readonly process: SimulatedProcess;
  readonly beganAt: number;
  readonly rows: { readonly index: number; readonly value: Json }[];
  /** Absent: it was not told that there are no more. */
  endedAt?: number;
}

export class StreamLedger {
  readonly entries: WritingEntry[] = [];
  readonly ends: EndStored[] = [];
  readonly readers: RowsRead[] = [];
  /** By run. */
  readonly taken: Map<string, TakenRow[]> = new Map();

  enter(entry: Omit<WritingEntry, 'entered' | 'rows'>): WritingEntry {
    const made = { ...entry, entered: this.entries.length + 1, rows: [] };
    this.entries.push(made);
    return made;
  }

  take({ run, step, call, attempt, rows }: StreamAppend, order: number): void {
    const taken = this.taken.get(run) ?? [];
    this.taken.set(run, taken);
    for (const row of rows) {
      const value = 'value' in row ? { value: row.value } : {};
      taken.push({ order, stream: row.name, step, call, attempt, ...value });
    }
  }

  of(run: string, stream: string): readonly TakenRow[] {
    return (this.taken.get(run) ?? []).filter((row) => row.stream === stream);
  }
}

/** Rows have landed. Only who has the run writes, and nobody when it has ended. */
export function noteRows(append: StreamAppend, order: number, ledger: Ledger): void {
  const { run: id, fence } = append;
  const run = ledger.runs.get(id);
  if (run?.fence !== fence)
    ledger.violated('leases', `rows under the fence ${fence} landed; ${run?.fence} is current`, id);
  if (run?.endedAt !== undefined) ledger.violated('streams', 'rows landed after the ending', id);
  ledger.streams.take(append, order);
}

/** Calls have ended, as entries say that landed just now. */
export function noteEnds(
  { run, fence, entries }: Append,
  order: number,
  process: SimulatedProcess,
  ledger: Ledger,
): void {
  for (const entry of entries) {
    if (entry.kind !== 'call_ended') continue;
    const { step, call } = entry;
    ledger.streams.ends.push({ order, run, step, call, process, fence });
  }
}
