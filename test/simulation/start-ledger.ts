/** What the store has said to starts under keys, in the order in which it was asked. */
import { PilotageError, type StartKey } from '#core';
import type { Journal, NewRun } from '#journal';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

type StartedByKey = Awaited<ReturnType<Journal['startByKey']>>;

export interface StartAsked {
  readonly order: number;
  /** By the store's clock. */
  readonly at: number;
  readonly run: string;
  readonly tenant: string;
  /** Whose: tenant, user and session. */
  readonly owner: string;
  readonly query: string;
  readonly key: StartKey;
  /** Which run there is then, or why there is none. */
  readonly answer: { readonly run: string } | { readonly code: string; readonly allowedAt?: number };
}

export interface StartsBehind {
  readonly inner: Journal;
  readonly isInOrder: boolean;
  readonly process: SimulatedProcess;
  readonly ledger: Ledger;
  readonly tell: (what: () => string) => void;
}

/** Asks the store for a start under a key, and notes what it says, and what it has stored. */
export async function startingByKey(behind: StartsBehind, run: NewRun, key: StartKey): Promise<StartedByKey> {
  const { inner, isInOrder, process, ledger, tell } = behind;
  const [first] = run.entries;
  const { tenant, user, session, run: id } = run.identity;
  const asked = {
    order: ledger.next(),
    at: ledger.now(),
    run: id,
    tenant,
    owner: JSON.stringify([tenant, user, session]),
    query: first?.kind === 'started' ? first.query : '',
    key,
  };
  try {
    const started = await inner.startByKey(run, key);
    // Noted as soon as it is done: in the same moment another process may claim it, and hear of that first.
    const order = isInOrder ? asked.order : ledger.next();
    if (started.run === id) ledger.created(run, order);
    if (started.claim !== undefined && run.claim !== undefined) ledger.claimed(started.claim, run.claim, process);
    ledger.starts.push({ ...asked, order, answer: { run: started.run } });
    // Its time stands in its first entry, which may be another one now.
    const [stored] = await inner.read(started.run, 1, 1);
    const known = ledger.runs.get(started.run);
    if (stored !== undefined && known !== undefined) known.entries[0] = stored;
    tell(() => `${key.kind} ${key.key}: ${id} (${asked.query}) is ${started.run}`);
    return started;
  } catch (error) {
    const code = PilotageError.is(error) ? error.code : '';
    const allowedAt = PilotageError.is(error) ? error.data?.['allowedAt'] : undefined;
    const answer = { code, ...(typeof allowedAt === 'number' ? { allowedAt } : {}) };
    ledger.starts.push({ ...asked, answer });
    tell(() => `${key.kind} ${key.key}: ${id} is refused as ${code}`);
    throw error;
  }
}
