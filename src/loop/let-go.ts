/** How a driver lets go of its run: parks it, gives it back, or finds that somebody else has it. */
import { type ErrorData, PilotageError, type TaskMessage, Thrown } from '#core';
import type { Park } from '#journal';
import { answerable, type RunState } from '#state';
import type { HandleReason } from '#tools';
import { keyPrefixOf } from '../calls/doubt.ts';
import { listenersOf } from '../tasks/ending.ts';
import type { DriverDeps } from './driver-deps.ts';
import type { HeldLease } from './held-lease.ts';

const MOST_WORDS_CHARS = 2_000;

/** What the record of a run says of why it was let go of. */
export function problemOf(error: unknown): ErrorData {
  const { code, name, message } = Thrown.of(error);
  return { code: code ?? name, message: message.slice(0, MOST_WORDS_CHARS) };
}

/** Why a driver let go of its run. */
export type Exit =
  | { readonly kind: 'ended' }
  /**
   * Although `hasNews`: it has to be claimed again. `wakeAt`: it goes on by itself then; until then somebody may answer one that
   * `isPaused`.
   */
  | { readonly kind: 'parked'; readonly wakeAt?: number; readonly isPaused?: boolean }
  /** Another process has the run. */
  | { readonly kind: 'lost' }
  /** This runtime was closed, or with `goesOn` a slice of the run is over; the run stays due. */
  | { readonly kind: 'closed'; readonly goesOn?: true }
  | { readonly kind: 'broken'; readonly error: unknown };

/** A run that this process has. */
export interface Held {
  readonly deps: DriverDeps;
  readonly state: RunState;
  readonly lease: HeldLease;
}

/** A broken run is left alone for so long. */
export const TRY_AGAIN_MS = 5_000;

/** False: something was said to the run meanwhile, and it stays due. */
export async function park(held: Held, wakeAt: number | null, status: 'waiting' | 'paused'): Promise<boolean> {
  if (status === 'paused') await tellPauses(held);
  // A duration is stored, not a time: the store's clock may be ahead of this clock, or behind it.
  const wakeInMs = wakeAt === null ? null : Math.max(0, wakeAt - held.deps.clock.now());
  return release(held, { wakeInMs, status, seenSignals: held.state.messagesTaken });
}

/** The run stays due. */
export async function giveBack(held: Held): Promise<void> {
  await release(held, { seenSignals: held.state.messagesTaken });
}

/** The run may be resumed at once; a worker tries it again after a while. Its record says why. */
export async function giveUp(held: Held, error: unknown): Promise<void> {
  const { onFault, redaction } = held.deps;
  const problem = redaction.error(problemOf(error));
  await release(held, { wakeInMs: TRY_AGAIN_MS, problem, seenSignals: Number.MAX_SAFE_INTEGER }).catch(onFault);
}

/** What had landed here is not recorded; it is for the new owner to find out what became of those calls. */
export async function lost({ deps, state }: Held): Promise<Exit> {
  const { run } = state.identity;
  deps.onFault(new PilotageError('lease_lost', await whyLost(deps, run), { data: { run } }));
  return { kind: 'lost' };
}

async function whyLost({ journal }: Pick<DriverDeps, 'journal'>, run: string): Promise<string> {
  try {
    const record = await journal.get(run);
    if (record === undefined) return `The run ${run} was deleted while this process carried it out.`;
    if (record.erased !== undefined) return `The run ${run} was erased while this process carried it out.`;
  } catch {
    // That it is lost is known all the same.
  }
  return `The run ${run} was taken over while this process carried it out, and goes on there. This process did not renew its lease in time: it stood still, or could not write to its journal.`;
}

/** What the handles of a run are told when it is let go of. */
export function reasonOf(exit: Exit, { ending }: RunState): HandleReason {
  const { kind } = exit;
  if (kind === 'lost') return 'lost';
  if (kind === 'closed' && exit.goesOn !== true) return 'closing';
  if (ending === null || kind !== 'ended') return 'let_go';
  if (ending.kind === 'failed') return 'failed';
  return ending.reason === 'cancelled' ? 'cancelled' : 'finished';
}

/** The next owner of the run is told when a `once` call that was given up goes on in this process. */
function release({ deps, state, lease }: Held, park: Park): Promise<boolean> {
  const leavesWork = deps.atWork.hasAny(keyPrefixOf(state.identity));
  return deps.journal.release(lease, leavesWork ? { ...park, leavesWork } : park);
}

/** Tells the runs that wait for this run about its open pauses, which somebody must answer. */
export async function tellPauses({ deps: { journal, woke }, state }: Held): Promise<void> {
  const { identity, head } = state;
  const id = `pauses:${identity.run}:${head}`;
  for (const listener of listenersOf(state)) {
    const pauses = answerable(state);
    try {
      const told: TaskMessage = { id, type: 'TASK_PAUSES', task: identity.run, pauses, asOf: head };
      if (await journal.signal(listener, told)) woke(listener);
    } catch (error) {
      if (!PilotageError.is(error, 'run_ended')) throw error;
    }
  }
}

/** What those who wait for the run are told, when it has neither ended nor been parked. */
export function exitError(exit: Exit, run: string): unknown {
  if (exit.kind === 'broken') return exit.error;
  if (exit.kind !== 'closed' || exit.goesOn === true) return undefined;
  return new PilotageError('runtime_closed', `The runtime was closed while it drove ${run}; the run can be resumed.`);
}
