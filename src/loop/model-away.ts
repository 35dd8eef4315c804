/**
 * What happens when no model can be asked for a move: the run tries again later, and gives its slot back meanwhile. When the time for
 * waiting is over, or waiting cannot help, the run is paused, and `resume` starts again. This is the same for every planner.
 */
import {
  defined,
  type EntryBody,
  type ErrorData,
  type JsonObject,
  type ModelAway,
  type MoveNotes,
  type Paused,
  PilotageError,
  timeAfter,
} from '#core';
import { nextStep } from '#state';
import type { Ask } from './ask.ts';

/** How long a run waits for its models by default, in milliseconds. */
const PATIENCE_MS = 15 * 60_000;
/** How long a run without steps waits when nothing has ever answered at its model's address, and most likely nothing will. */
const FIRST_CONTACT_MS = 5_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** What `data.why` of the error may say; anything else is an outage. */
const HOPELESS: ReadonlySet<unknown> = new Set(['key_refused', 'model_unknown', 'misdirected']);
const NOBODY_THERE = 'unreachable';

type Notes = Pick<MoveNotes, 'usage' | 'remarks'>;

/** @param error of the code `model_unavailable`. */
export function modelAway(ask: Ask, { code, message, data = {} }: ErrorData, notes: Notes): EntryBody[] {
  const { deps, state } = ask;
  const now = deps.clock.now();
  const { usage: _, retryAfterMs, ...known } = data;
  const error = { code, message, ...(Object.keys(known).length === 0 ? {} : { data: known }) };
  const waitMs = HOPELESS.has(known['why']) ? 0 : nextWaitMs(ask, known, retryAfterMs, now);
  const { usage, remarks = [] } = notes;
  const away: ModelAway = {
    kind: 'model_away',
    step: nextStep(state),
    error,
    ...(waitMs === 0 ? {} : { retryAt: timeAfter(now, waitMs) }),
    ...defined({ usage }),
    ...(remarks.length === 0 ? {} : { remarks }),
  };
  if (waitMs === 0) return [away, pausedBy(error, deps.newToken())];
  if (state.modelAway === null) tellOf(ask, message, waitMs);
  return [away];
}

/**
 * Milliseconds until the next try; 0 when the time for waiting is over. A provider that asks for a longer wait gets the time that
 * is left.
 */
function nextWaitMs({ deps, state }: Ask, { why }: JsonObject, asked: unknown, now: number): number {
  const { since = now, tries = 0 } = state.modelAway ?? {};
  const isFirstContact = why === NOBODY_THERE && state.totals.steps === 0;
  const patienceMs = deps.patienceMs ?? (isFirstContact ? FIRST_CONTACT_MS : PATIENCE_MS);
  // A clock that was set back must not make the wait longer.
  const leftMs = Math.min(since, now) + patienceMs - now;
  if (leftMs <= 0) return 0;
  const boundMs = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
  // Half of it is jitter, so that runs that failed together do not come back together.
  const ownMs = (boundMs * (1 + deps.random())) / 2;
  const askedMs = typeof asked === 'number' && asked > 0 ? asked : 0;
  return Math.max(1, Math.ceil(Math.min(Math.max(ownMs, askedMs), leftMs)));
}

function pausedBy({ message, data }: ErrorData, token: string): Paused {
  const why = data?.['why'];
  const payload = { message, ...(typeof why === 'string' ? { why } : {}) };
  return { kind: 'paused', token, reason: 'model_unavailable', payload };
}

/** A program that does not listen to its run is not left in the dark for minutes. */
function tellOf({ deps, state }: Ask, message: string, waitMs: number): void {
  const { run } = state.identity;
  if (deps.hub.hasReaders(run)) return;
  const seconds = Math.ceil(waitMs / 1_000);
  const text = `The run ${run} waits for its model, and tries again in ${seconds} s: ${message}`;
  deps.onFault(new PilotageError('model_unavailable', text, { data: { run } }));
}
