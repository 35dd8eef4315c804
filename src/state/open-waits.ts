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
import { type OpenPause, openBranches, type RunState } from './state.ts';
import { copyState } from './stored-state.ts';
import { openWaits } from './waiting-calls.ts';

/** All that the run waits for: open pauses, and waits of its calls for a time or an event. A question of a call is a pause. */
export function openWaitsOf(state: RunState): readonly WaitRow[] {
  return [...rowsOf(state).values()];
}

function rowsOf(state: RunState): Map<string, WaitRow> {
  const rows = new Map<string, WaitRow>();
  if (!mayWait(state) || state.ending !== null) return rows;
  for (const pause of state.pauses) rows.set(pause.token, boundedWait(pauseRow(state, pause)));
  const { open } = state;
  for (const waiting of open?.waiting ?? []) {
    for (const { wait, for: what, until, key, schema, requestedAt } of openWaits(waiting)) {
      if (open === null || what === 'answer') continue;
      const at = { step: open.move.step, call: waiting.call, wait };
      const id = waitId(at);
      const tool = toolOf(state, at);
      rows.set(id, boundedWait({ id, for: what, requestedAt, ...at, ...defined({ until, key, schema, tool }) }));
    }
  }
  return rows;
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
  return differences(rowsOf(state), rowsOf(after), passed ?? []);
}

function differences(
  before: ReadonlyMap<string, WaitRow>,
  after: ReadonlyMap<string, WaitRow>,
  passed: readonly EventPassed[],
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
  const isOver = removes.length > 0 && after.size === 0;
  if (adds.length + removes.length + returns.length === 0) return undefined;
  return {
    ...(isOver ? { ends: true } : removes.length > 0 ? { removes } : {}),
    ...(adds.length === 0 ? {} : { adds }),
    ...(returns.length === 0 ? {} : { returns }),
  };
}
