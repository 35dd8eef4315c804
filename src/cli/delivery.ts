/** What became of a control that was stored: looked at for some seconds, while a process drives the run. */
import type { Entry, ErrorData } from '#core';
import type { Journal } from '#journal';
import { isDeadOwner } from '#runtime';
import { lookUntil } from './wait.ts';

export type Delivery =
  | { readonly state: 'applied' }
  | { readonly state: 'refused' | 'undelivered'; readonly error: ErrorData }
  /** Nobody has taken it yet. */
  | { readonly state: 'stored'; readonly isDriven: boolean };

/** The driver looks into the inbox every third of its lease, and then at its next step. */
const PATIENCE_MS = 8_000;
/** Between two drivers of one process the run is nobody's for a moment. */
const GAP_MS = 300;

export interface SentControl {
  readonly run: string;
  /** Its id. */
  readonly control: string;
  /** The first journal position at which it can have been taken. */
  readonly from: number;
}

export async function deliveryOf(journal: Journal, sent: SentControl): Promise<Delivery> {
  let drivenAt = performance.now();
  const seen = await lookUntil(journal, sent.run, PATIENCE_MS, async (): Promise<Delivery | undefined> => {
    const taken = (await journal.read(sent.run, sent.from)).find((entry) => isAbout(entry, sent));
    if (taken?.kind === 'control') return deliveryIn(taken);
    const now = performance.now();
    if (await hasDriver(journal, sent.run)) drivenAt = now;
    return now - drivenAt > GAP_MS ? { state: 'stored', isDriven: false } : undefined;
  });
  return seen ?? { state: 'stored', isDriven: true };
}

function isAbout(entry: Entry, { control }: SentControl): boolean {
  return entry.kind === 'control' && entry.control.id === control;
}

function deliveryIn({ error, undelivered }: Extract<Entry, { kind: 'control' }>): Delivery {
  if (error === undefined) return { state: 'applied' };
  return { state: undelivered === true ? 'undelivered' : 'refused', error };
}

/** A process that holds the run's lease and, as far as this machine knows, lives. */
async function hasDriver(journal: Journal, run: string): Promise<boolean> {
  const lease = (await journal.get(run))?.lease;
  return lease !== undefined && !isDeadOwner(lease.owner);
}
