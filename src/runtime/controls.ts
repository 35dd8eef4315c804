/** Takes what is in the inbox: each control becomes one entry, applied or refused, and never ends a run by being wrong. */
import type { Control } from '../core/control.ts';
import type { EntryBody, Resumed } from '../core/entry.ts';
import { type ErrorCode, type ErrorData, PilotageError } from '../core/errors.ts';
import { assertLimits, type Limits } from '../core/limits.ts';
import type { Verdict } from '../core/outcome.ts';
import type { RunStatus } from '../journal/port.ts';
import type { OpenPause, RunState } from '../view/run-state.ts';

export interface Taken {
  readonly entries: readonly EntryBody[];
  /** The run's status after these entries. */
  readonly status: RunStatus;
}

const VERDICTS: Partial<Record<Control['type'], Verdict>> = { RESUME: 'resume', APPROVE: 'approve', REJECT: 'reject' };

/** @param now milliseconds since the epoch: a pause that has expired takes no other answer. */
export function takeControls(
  state: RunState,
  controls: readonly Control[],
  now: number,
  newToken: () => string,
): Taken {
  let open: readonly OpenPause[] = state.pauses.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > now);
  const entries: EntryBody[] = [];
  for (const control of controls) {
    const effect = effectOf(control, open, newToken);
    if (PilotageError.is(effect)) {
      entries.push({ kind: 'control', control, applied: false, error: effect.toJSON() satisfies ErrorData });
      continue;
    }
    entries.push({ kind: 'control', control, applied: true });
    if (effect === undefined) continue;
    entries.push(effect);
    if (effect.kind === 'resumed') open = open.filter((pause) => pause.token !== effect.token);
    else if (effect.kind === 'paused') open = [...open, { ...effect, requestedAt: 0 }];
  }
  return { entries, status: open.length > 0 ? 'paused' : 'running' };
}

/** The entry that follows from a control, nothing, or why it is refused. */
function effectOf(
  control: Control,
  open: readonly OpenPause[],
  newToken: () => string,
): EntryBody | PilotageError | undefined {
  const { type, payload } = control;
  switch (type) {
    case 'RESUME':
    case 'APPROVE':
    case 'REJECT':
      return answer(control, open, VERDICTS[type] ?? 'resume');
    case 'PAUSE':
      // Paused already: nothing to add.
      if (open.length > 0) return undefined;
      return { kind: 'paused', token: newToken(), reason: 'external_event', payload: { by: 'operator' } };
    case 'REDIRECT':
      return typeof payload?.['goal'] === 'string'
        ? undefined
        : refuse('payload_invalid', 'REDIRECT needs a payload { goal }.');
    case 'USER_MESSAGE':
      return typeof payload?.['message'] === 'string'
        ? undefined
        : refuse('payload_invalid', 'USER_MESSAGE needs a payload { message }.');
    case 'PRIORITIZE':
      return refuse('tasks_unavailable', 'PRIORITIZE needs tasks, which this runtime does not have.');
    case 'CANCEL':
    case 'INJECT_CONTEXT':
      return undefined;
    default:
      return type satisfies never;
  }
}

function answer(control: Control, open: readonly OpenPause[], verdict: Verdict): Resumed | PilotageError {
  const { token, ...rest } = control.payload ?? {};
  if (open.length === 0) return refuse('pause_not_found', `${control.type} was refused: the run is not paused.`);
  if (token === undefined && open.length > 1) {
    return refuse('pause_not_found', `${control.type} must name one of ${open.length} open pauses by its token.`);
  }
  const pause = token === undefined ? open[0] : open.find((candidate) => candidate.token === token);
  if (pause === undefined) return refuse('pause_not_found', `${control.type} names a pause that is not open.`);
  const limits = rest['limits'];
  if (pause.step === undefined && typeof limits === 'object' && limits !== null) {
    try {
      assertLimits(limits as Limits);
    } catch (error) {
      if (PilotageError.is(error)) return error;
      throw error;
    }
  }
  const resumed = { kind: 'resumed' as const, token: pause.token, verdict };
  return Object.keys(rest).length === 0 ? resumed : { ...resumed, payload: rest };
}

function refuse(code: ErrorCode, message: string): PilotageError {
  return new PilotageError(code, message);
}
