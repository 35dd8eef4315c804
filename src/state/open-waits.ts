/**
 * What a run waits for, as the index of the whole journal has it, and what entries change in that. Every append of a run asks for it: what most
 * entries cost here is a look at their kinds.
 */
import {
  asJson,
  boundedWait,
  defined,
  type Entry,
  type EntryKind,
  type EventPassed,
  jsonEquals,
  type WaitChanges,
  type WaitRow,
  waitId,
} from '#core';
import { applyFitting } from './fold.ts';
import { type OpenPause, openBranches, type RunState, type WaitingCall, type WaitState } from './state.ts';
import { copyState } from './stored-state.ts';
import { openWaits } from './waiting-calls.ts';

/** All that the run waits for: open pauses, and waits of its calls for a time or an event. A question of a call is a pause. */
export function openWaitsOf(state: RunState): readonly WaitRow[] {
  return state.ending === null ? [...rowsOf(state, waitersOf(state)).values()] : [];
}

/** What has rows in the index. The parts of a state are replaced where they change, so that one that is still there has its rows. */
interface Waiters {
  readonly pauses: readonly OpenPause[];
  readonly calls: readonly WaitingCall[];
}

const NOBODY: Waiters = { pauses: [], calls: [] };

function waitersOf({ pauses, open, ending }: RunState): Waiters {
  return ending === null ? { pauses, calls: open?.waiting ?? [] } : NOBODY;
}

function rowsOf(state: RunState, { pauses, calls }: Waiters): Map<string, WaitRow> {
  const rows = new Map<string, WaitRow>();
  for (const pause of pauses) rows.set(pause.token, boundedWait(pauseRow(state, pause)));
  const { open } = state;
  if (open === null) return rows;
  for (const waiting of calls) {
    for (const { wait, for: what, until, key, schema, requestedAt } of indexedWaits(waiting)) {
      const at = { step: open.move.step, call: waiting.call, wait };
      const id = waitId(at);
      const tool = toolOf(state, at);
      rows.set(id, boundedWait({ id, for: what, requestedAt, ...at, ...defined({ until, key, schema, tool }) }));
    }
  }
  return rows;
}

/** Questions are pauses. */
function indexedWaits(waiting: WaitingCall): readonly WaitState[] {
  return openWaits(waiting).filter(({ for: what }) => what !== 'answer');
}

function pauseRow(state: RunState, pause: OpenPause): WaitRow {
  const { token: id, reason, payload, requestedAt, expiresAt: until, step, call, wait, approver, schema } = pause;
  const tool = toolOf(state, { step, call });
  const about = defined({ until, step, call, wait, tool, payload, approver, schema });
  return { id, for: 'answer', requestedAt, reason, ...about };
}

function toolOf(
  state: RunState,
  { step, call }: { readonly step: number | undefined; readonly call: number | undefined },
) {
  return call === undefined || step !== state.open?.move.step ? undefined : openBranches(state)[call]?.tool;
}

function mayWait({ pauses, open }: RunState): boolean {
  return pauses.length > 0 || (open !== null && open.waiting.length > 0);
}

/** With these a run may begin to wait. */
const BEGINS: ReadonlySet<EntryKind> = new Set(['paused', 'call_waits']);
/** With these what it waits for may change, too. */
const CHANGES: ReadonlySet<EntryKind> = new Set([
  ...([
    'resumed',
    'wait_ended',
    'call_ended',
    'call_away',
    'finished',
    'failed',
    'reopened',
    'repaired',
    'approved',
    'escalated',
  ] as const),
]);

/**
 * What the entries change, of which it was found that they can follow the state. `undefined`: nothing.
 * @param state is as it was before.
 */
export function waitChanges(state: RunState, entries: readonly Entry[]): WaitChanges | undefined {
  let begins = false;
  let changes = false;
  let passed: readonly EventPassed[] | undefined;
  for (const entry of entries) {
    if (BEGINS.has(entry.kind)) begins = true;
    else if (CHANGES.has(entry.kind)) changes = true;
    else if (entry.kind === 'event_passed') passed = [...(passed ?? []), entry];
  }
  if (passed === undefined && !begins && !(changes && mayWait(state))) return undefined;
  const after = copyState(state);
  for (const entry of entries) applyFitting(after, entry);
  // A wait that goes on without its signal is told anew, unchanged as it is.
  const { gone, come } = passed === undefined ? changedWaiters(state, after) : allWaiters(state, after);
  return differences(rowsOf(state, gone), rowsOf(after, come), passed ?? [], !isWaiting(after));
}

interface ChangedWaiters {
  readonly gone: Waiters;
  readonly come: Waiters;
}

function allWaiters(before: RunState, after: RunState): ChangedWaiters {
  return { gone: waitersOf(before), come: waitersOf(after) };
}

/** What may have other rows than before: an append to a run that waits for thousands costs what it changes. */
function changedWaiters(before: RunState, after: RunState): ChangedWaiters {
  const all = allWaiters(before, after);
  // The rows of a pause have the tool of the open step.
  if (before.open?.move.step !== after.open?.move.step) return all;
  const pauses = unlike(all.gone.pauses, all.come.pauses);
  const calls = unlike(all.gone.calls, all.come.calls);
  return { gone: { pauses: pauses.gone, calls: calls.gone }, come: { pauses: pauses.come, calls: calls.come } };
}

/** The two without what is the same in both, in the same order. Where the order changes, more is left than has to be. */
function unlike<T>(before: readonly T[], after: readonly T[]): { gone: readonly T[]; come: readonly T[] } {
  let matched = 0;
  const gone = before.filter((one) => {
    if (one !== after[matched]) return true;
    matched += 1;
    return false;
  });
  return { gone, come: after.slice(matched) };
}

function isWaiting(state: RunState): boolean {
  const { pauses, calls } = waitersOf(state);
  return pauses.length > 0 || calls.some((waiting) => indexedWaits(waiting).length > 0);
}

/** @param ends whether nothing waits any more. */
function differences(
  before: ReadonlyMap<string, WaitRow>,
  after: ReadonlyMap<string, WaitRow>,
  passed: readonly EventPassed[],
  ends: boolean,
): WaitChanges | undefined {
  // The wait goes on without the signal, and is for the next one.
  const goOn = new Set(passed.filter(({ error }) => error.code === 'payload_invalid').map(waitId));
  const adds = [...after.values()].filter((row) => {
    const known = before.get(row.id);
    return known === undefined || goOn.has(row.id) || !jsonEquals(asJson(known), asJson(row));
  });
  const removes = [...before.keys()].filter((id) => !after.has(id));
  const returns = passed.flatMap(({ error, key, signal, payload }) => {
    return error.code === 'wait_over' ? [{ key, signal, payload }] : [];
  });
  const isOver = removes.length > 0 && ends;
  if (adds.length + removes.length + returns.length === 0) return undefined;
  return {
    ...(isOver ? { ends: true } : removes.length > 0 ? { removes } : {}),
    ...(adds.length === 0 ? {} : { adds }),
    ...(returns.length === 0 ? {} : { returns }),
  };
}
