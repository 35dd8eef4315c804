/** What became of controls that were stored: looked at for some seconds, while a process drives their run. */
import type { Entry, ErrorData } from '#core';
import type { Journal } from '#journal';
import { isDeadOwner, speakerOn, whyRefused } from '#runtime';
import { lookUntil } from './project.ts';

export type Receipt =
  | { readonly state: 'applied' }
  | { readonly state: 'refused' | 'undelivered'; readonly error: ErrorData }
  /** Nobody has taken it yet. */
  | { readonly state: 'stored'; readonly isDriven: boolean };

/** A control that was stored for the run, or why it was not. */
export type StoredControl = { readonly to: string } & (
  | {
      /** Its id. */
      readonly control: string;
      /** The first journal position at which it can have been taken. */
      readonly from: number;
    }
  | { readonly refused: ErrorData }
);

/** The driver looks into the inbox every third of its lease, and then at its next step. */
const PATIENCE_MS = 8_000;
/** Between two drivers of one process the run is nobody's for a moment. */
const GAP_MS = 300;

export const NOT_TAKEN: Receipt = { state: 'stored', isDriven: true };

/** In the order in which they were given. The controls of one run are looked for together. */
export async function receiptsOf(
  journal: Journal,
  all: readonly StoredControl[],
): Promise<readonly { readonly to: string; readonly receipt: Receipt }[]> {
  const runs = new Map<string, Sought>();
  for (const one of all) {
    if ('refused' in one) continue;
    const { controls, from } = runs.get(one.to) ?? { controls: new Set(), from: one.from };
    runs.set(one.to, { controls: controls.add(one.control), from: Math.min(from, one.from) });
  }
  const seen = await Promise.all([...runs].map(([run, sought]) => takenIn(journal, run, sought)));
  const taken = new Map(seen.flatMap(({ receipts }) => [...receipts]));
  const reading = { journal, ...speakerOn(journal) };
  for (const [run, { controls }] of runs) {
    const untaken = [...controls].filter((control) => !taken.has(control));
    if (untaken.length === 0) continue;
    for (const [control, late] of await whyRefused(reading, run, untaken))
      taken.set(control, { state: 'refused', error: late.toJSON() });
  }
  const driven = new Map([...runs.keys()].map((run, index) => [run, seen[index]?.isDriven ?? true]));
  return all.map((one) => {
    const { to } = one;
    if ('refused' in one) return { to, receipt: { state: 'refused', error: one.refused } };
    return { to, receipt: taken.get(one.control) ?? { state: 'stored', isDriven: driven.get(to) ?? true } };
  });
}

interface Sought {
  readonly controls: Set<string>;
  readonly from: number;
}

interface Taken {
  readonly receipts: ReadonlyMap<string, Receipt>;
  readonly isDriven: boolean;
}

async function takenIn(journal: Journal, run: string, { controls, from }: Sought): Promise<Taken> {
  const receipts = new Map<string, Receipt>();
  let next = from;
  let drivenAt = performance.now();
  const found = await lookUntil(journal, run, PATIENCE_MS, async (): Promise<Taken | undefined> => {
    const entries = await journal.read(run, next);
    next += entries.length;
    for (const entry of entries) {
      if (entry.kind === 'control' && controls.has(entry.control.id)) {
        receipts.set(entry.control.id, receiptIn(entry));
      }
    }
    if (receipts.size === controls.size) return { receipts, isDriven: true };
    const now = performance.now();
    if (entries.length > 0 || (await hasDriver(journal, run))) drivenAt = now;
    return now - drivenAt > GAP_MS ? { receipts, isDriven: false } : undefined;
  });
  return found ?? { receipts, isDriven: true };
}

function receiptIn({ error, undelivered }: Extract<Entry, { kind: 'control' }>): Receipt {
  if (error === undefined) return { state: 'applied' };
  return { state: undelivered === true ? 'undelivered' : 'refused', error };
}

/** A process that holds the run's lease and, as far as this machine knows, lives. */
async function hasDriver(journal: Journal, run: string): Promise<boolean> {
  const lease = (await journal.get(run))?.lease;
  return lease !== undefined && !isDeadOwner(lease.owner);
}
