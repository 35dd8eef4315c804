/** A handle of one run. The handle holds no state: any process with the journal can make one. */

import {
  assertOptions,
  type Caller,
  type Clock,
  type Control,
  type ControlType,
  defined,
  type ErrorCode,
  type EventPayloads,
  type Json,
  type JsonObject,
  type Limits,
  type OptionShape,
  PilotageError,
  type RunEvent,
} from '#core';
import type { Journal } from '#journal';
import {
  answerable,
  event,
  eventsOf,
  foldEntries,
  isPaused,
  nextStep,
  type Redact,
  type RunSnapshot,
  type RunState,
  type RunTrajectory,
  redacted,
  snapshotOf,
  trajectoryOf,
  wakesByTasks,
} from '#state';
import { storedJson } from '../calls/large-values.ts';
import { isVerdict } from '../loop/controls.ts';
import type { Notice, NoticeHub } from '../loop/notices.ts';
import { Follower, keptAlive } from './follow.ts';
import { assertForkOptions, type ForkOptions } from './fork.ts';
import { type Diagnosis, diagnose, type RepairOptions, repairRun } from './repair.ts';
import type { ReplayReport } from './replay.ts';
import { type RunResult, wholeResultOf } from './result.ts';
import type { RunHost } from './run-host.ts';
import { addressee, assertKnown, pausesBelow, untilTaken } from './send-control.ts';

export interface EventOptions {
  /** The journal position of the first event, from 1. Default 1. */
  readonly from?: number;
  /**
   * A function that changes every text of an event's payload before this reader gets the event; the journal keeps the text whole.
   * An error that it throws ends the stream. Tokens and chunks are left out, since a secret may be cut in two by them: the full text
   * is in the step's decision, and the full value in the end of the call.
   */
  readonly redact?: Redact;
}

/** Says what became of a call in doubt, and why the person who says it knows. */
export type Settlement = { readonly reason?: string } & (
  | {
      readonly happened: true;
      /** The value of the call. It must fit the tool's output schema, if the tool has one. Default null. */
      readonly value?: Json;
    }
  /** The call did not happen. It is made now, with the same idempotency key. */
  | { readonly happened: false }
);

/** Options of an answer to a pause. */
export interface Answer {
  /** A JSON object that the planner gets as the pause's outcome, or a note that goes with an approval. */
  readonly payload?: JsonObject;
  /** The reason of the answer. When a call is rejected, the planner is told the reason. */
  readonly reason?: string;
}

export interface Approval extends Answer {
  /** Arguments that replace the call's own. They are checked against the tool's schema. */
  readonly args?: Json;
  /** The `digest` of the payload of the pause that was shown. An approval of other arguments than those is refused. */
  readonly digest?: string;
}

export interface Resumption {
  /** The token of the pause; needed only when several are open. */
  readonly token?: string;
  /** A JSON object that the planner gets as the pause's outcome. */
  readonly payload?: JsonObject;
  /** New limits, to answer a pause at a limit that was reached. */
  readonly limits?: Limits;
  /**
   * Changes to a run that was paused in the middle of a plan, by the ids of nodes that have not begun: `{ args }` gives a node
   * other arguments, which may refer to nodes that it comes after; `{ skip: true }` takes the node out of the plan.
   */
  readonly nodes?: Readonly<Record<string, { readonly args: Json } | { readonly skip: true }>>;
  /** True: the run goes on although its planner or tools have changed since it was started. */
  readonly acceptChanges?: boolean;
  /** Aborting it cancels the run, as with `start`. */
  readonly signal?: AbortSignal;
}

export interface SteerOptions {
  /** What is waited for: that the control is stored, and survives whatever happens, or that the run has taken it. */
  readonly until?: 'stored' | 'applied';
}

export interface CancelOptions extends SteerOptions {
  readonly reason?: string;
  /** False: work in flight is allowed to end. True: it is aborted. Default true. */
  readonly hard?: boolean;
}

const EVENTS: OptionShape<EventOptions> = { from: 'whole?', redact: 'function?' };
const ANSWER: OptionShape<Answer> = { payload: 'any?', reason: 'text?' };
const APPROVAL: OptionShape<Approval> = { args: 'any?', digest: 'text?', ...ANSWER };
const SETTLEMENT: OptionShape<{ happened: boolean; value?: Json; reason?: string }> = {
  happened: 'any',
  value: 'any?',
  reason: 'text?',
};
const RESUMPTION: OptionShape<Resumption> = {
  token: 'any?',
  payload: 'any?',
  limits: 'any?',
  nodes: 'any?',
  acceptChanges: 'flag?',
  signal: 'signal?',
};
const REPAIR: OptionShape<RepairOptions> = { by: 'any', reason: 'text?' };
const REPLAY: OptionShape<{ signal?: AbortSignal }> = { signal: 'signal?' };
const STEER: OptionShape<SteerOptions> = { until: 'text?' };
const CANCEL: OptionShape<CancelOptions> = { ...STEER, reason: 'any?', hard: 'any?' };

export class Run {
  readonly id: string;
  readonly #host: RunHost;
  readonly #as: Caller | undefined;

  /** @param as the caller that uses this handle; absent for the program itself. */
  constructor(id: string, host: RunHost, as?: Caller) {
    this.id = id;
    this.#host = host;
    this.#as = as;
  }

  /**
   * The run's events from journal position `from` (default 1) on, in order. The stream ends when the run has ended, with
   * `planner.finish` or `planner.error`, or is paused, with `run.paused`. Asking for events is what turns token streaming on.
   */
  events(options: EventOptions = {}): AsyncGenerator<RunEvent, void> {
    assertOptions('events', options, EVENTS);
    const { from = 1, redact } = options;
    const host = this.#host;
    const shown = (events: readonly RunEvent[]): readonly RunEvent[] =>
      redact === undefined ? events : events.map((event) => redacted(event, redact));
    const follower = new Follower<RunEvent>({
      ...this.#sources(redact === undefined),
      onEntry: (entry, before) => (entry.seq < from ? [] : shown(eventsOf(entry, before))),
      onPassing: (notice, state) =>
        notice.type === 'progress' || redact === undefined ? passingEvent(notice, state) : [],
      ...(host.showsTasks
        ? { beside: (hear, state) => host.watchTasks(state, (progress) => hear({ type: 'progress', progress })) }
        : {}),
      // The planner waits in its own pause, so that only its tasks can be seen to move.
      isOver: (state) => isSettled(state) && !(host.showsTasks && host.showsTasksOf(state) && wakesByTasks(state)),
      onOver: (state) => (state.ending === null ? shown([pausedEvent(state)]) : []),
    });
    return this.#as === undefined ? follower.follow() : readAfter(() => this.#assertMayRead(), follower);
  }

  /** Waits until the run has ended or is paused. @throws PilotageError `run_not_found`. */
  async result(): Promise<RunResult> {
    await this.#assertMayRead();
    const driven = await this.#host.fleet.settled(this.id);
    const own = driven && (await wholeResultOf(driven, this.#host.deps.artifacts));
    if (own !== undefined) return own;
    const follower = new Follower<never>({
      ...this.#sources(false),
      onEntry: () => [],
      onPassing: () => [],
      isOver: isSettled,
    });
    for await (const _ of follower.follow());
    const { state } = follower;
    const result = state && (await wholeResultOf(state, this.#host.deps.artifacts));
    if (result !== undefined) return result;
    throw new PilotageError('run_not_found', `The run ${this.id} has neither ended nor paused.`);
  }

  /**
   * The payload that the run finished with, read in full when it is stored as an artifact. Waits as `result` does.
   * @returns `undefined` for a run that failed, is paused, or gave nothing.
   * @throws PilotageError `run_not_found`, or `artifact_not_found`.
   */
  async payload(): Promise<Json | undefined> {
    const result = await this.result();
    if (result.status !== 'finished') return undefined;
    const { payload, stored } = result;
    if (payload === undefined || stored === undefined) return payload;
    const { identity } = await this.#folded();
    return storedJson(payload, identity, this.#host.deps.artifacts);
  }

  /** The run as the journal has it now. @throws PilotageError `run_not_found`. */
  async state(): Promise<RunSnapshot> {
    return snapshotOf(await this.#folded());
  }

  async #folded(): Promise<RunState> {
    await this.#assertMayRead();
    return foldEntries(await this.#host.deps.journal.read(this.id));
  }

  /** The run as one JSON value, to be kept and read without the journal. @throws PilotageError `run_not_found`. */
  async trajectory(): Promise<RunTrajectory> {
    await this.#assertMayRead();
    return trajectoryOf(await this.#host.deps.journal.read(this.id));
  }

  /**
   * Resumes the run: answers the open pause, if there is one, and drives the run here unless another process does. A run that was cut
   * off by a crash just goes on. A run that has failed goes on too, whatever the cause was; who resumed it is recorded. A task that
   * has failed cannot be resumed, since the run that it worked for was told of the failure.
   * @throws PilotageError `run_not_found`, `run_ended` for a run that finished or was cancelled, `pause_not_found` for an answer to a pause that is not open, or
   * `run_changed`.
   */
  async resume(options: Resumption = {}): Promise<void> {
    assertOptions('resume', options, RESUMPTION);
    const { signal, ...resumption } = options;
    signal?.throwIfAborted();
    await this.#host.assertMayResume(this.id, this.#as);
    await this.#resume(resumption);
    this.#host.cancelOn(signal, this.id);
  }

  async #resume({ token, payload, limits, nodes, acceptChanges = false }: Resumption): Promise<void> {
    const given = token !== undefined || payload !== undefined || limits !== undefined || nodes !== undefined;
    const answer: JsonObject = {
      ...defined({ payload, token }),
      ...(limits === undefined ? {} : { limits: { ...limits } }),
      ...defined({ nodes }),
    };
    if (given && !acceptChanges) return this.steer('RESUME', answer);
    // The run waits only for an answer that is stored already, and that no process has taken yet.
    const isAnswered = (await this.#host.deps.journal.inbox(this.id)).length > 0;
    if (isAnswered && (!given || acceptChanges)) return this.#host.drive(this.id, acceptChanges);
    const state = await this.#folded();
    if (state.ending !== null) {
      await this.#host.reopen(this.id, this.#as);
      return this.#host.drive(this.id, acceptChanges);
    }
    if (acceptChanges) await this.#host.drive(this.id, true);
    // Only a pause of the run itself is answered; a run that was cut off, or waits for a task, just goes on.
    const asks = state.pauses.length > 0 && isPaused(state) && !acceptsOnly(state, acceptChanges);
    if (given || asks) return this.steer('RESUME', answer);
    // A model that is away asks nobody anything: to resume is the whole answer, also for tasks that wait for a model.
    const away = pausesBelow(state).filter(({ reason }) => reason === 'model_unavailable');
    for (const { token } of away) await this.steer('RESUME', { token }).catch(unlessOldNews);
    return this.#host.drive(this.id, acceptChanges);
  }

  /**
   * Approves: answers a pause with yes. A call that waits for approval is made.
   * @param token the pause, of this run or of a task that it waits for; needed only when several pauses are open.
   * @throws PilotageError `pause_not_found`, `approver_refused`, or `payload_invalid` for arguments that do not fit.
   */
  async approve(token?: string, approval: Approval = {}): Promise<void> {
    assertOptions('approve', approval, APPROVAL);
    const { args, digest, ...answer } = approval;
    return this.#answer('APPROVE', token, answer, defined({ args, digest }));
  }

  /** Rejects: answers a pause with no. A call that waits for approval is not made. @throws PilotageError `pause_not_found`. */
  async reject(token?: string, answer: Answer = {}): Promise<void> {
    assertOptions('reject', answer, ANSWER);
    return this.#answer('REJECT', token, answer, {});
  }

  /**
   * Settles a call in doubt, that is, a call of which nobody knows whether it has happened.
   * @param token the pause, of this run or of a task that it waits for; needed only when several pauses are open.
   * @throws PilotageError `pause_not_found`, or `payload_invalid` when the pause is not about a call in doubt, or when the
   * value does not fit.
   */
  async settle(token: string | undefined, settlement: Settlement): Promise<void> {
    if (typeof settlement?.happened !== 'boolean') {
      throw new PilotageError(
        'payload_invalid',
        'Say whether the call has happened: { happened: true, value } or { happened: false }.',
      );
    }
    assertOptions('settle', settlement, SETTLEMENT);
    const { happened, reason } = settlement;
    const value = settlement.happened ? settlement.value : undefined;
    await this.steer('SETTLE', {
      happened,
      ...defined({ value, reason, token }),
    });
  }

  /** Pauses the run at its next step boundary. */
  pause(options?: SteerOptions): Promise<void> {
    return this.steer('PAUSE', undefined, options);
  }

  /** Ends the run as cancelled. Work in flight is aborted at once, unless `hard` is false. */
  async cancel(options: CancelOptions = {}): Promise<void> {
    assertOptions('cancel', options, CANCEL);
    const { until, ...payload } = options;
    await this.steer('CANCEL', { ...payload }, until === undefined ? {} : { until });
  }

  /**
   * Sends a control. An answer to a pause (`APPROVE`, `REJECT`, `RESUME`, `SETTLE`), which may be refused, is waited for until the run
   * has taken it; anything else until it is stored, which is before the run hears of it.
   * @throws PilotageError why it was refused, or `run_ended`.
   */
  async steer(type: ControlType, payload?: JsonObject, options: SteerOptions = {}): Promise<void> {
    assertOptions('steer', options, STEER);
    const { until = isVerdict({ type }) ? 'applied' : 'stored' } = options;
    const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
    const given = payload === undefined ? {} : { payload };
    const control: Control = { id, type, ...given, ...defined({ from: this.#as }) };
    const to = await addressee(this.#host.deps.journal, this.id, control);
    if (to.run === this.id) return this.#send(control, until);
    try {
      await new Run(to.run, this.#host, this.#as).#send(control, until);
    } catch (error) {
      // This run has an old view of its task: it goes on, and is told.
      if (isOldNews(error)) await this.#host.drive(this.id, false);
      throw error;
    }
    if (to.token !== undefined && until === 'applied') await this.#untilAnswered(to.token);
  }

  /** Waits until this run knows that a pause of a task below it is answered. */
  async #untilAnswered(token: string): Promise<void> {
    const follower = new Follower<never>({
      ...this.#sources(false),
      onEntry: () => [],
      onPassing: () => [],
      isOver: (state) => state.ending !== null || pausesBelow(state).every((pause) => pause.token !== token),
    });
    for await (const _ of follower.follow());
  }

  async #send(control: Control, until: NonNullable<SteerOptions['until']>): Promise<void> {
    if (until === 'stored') return this.#host.signal(this.id, control);
    const { journal, hub } = this.#host.deps;
    const head = (await journal.get(this.id))?.head ?? 0;
    const taken = untilTaken({ journal, hub }, this.id, control.id, head);
    try {
      await this.#host.signal(this.id, control);
    } catch (error) {
      taken.stop();
      throw error;
    }
    await keptAlive(taken.done, this.#host.deps.clock);
  }

  #answer(
    type: 'APPROVE' | 'REJECT',
    token: string | undefined,
    { payload, reason }: Answer,
    more: JsonObject,
  ): Promise<void> {
    return this.steer(type, {
      ...defined({ payload }),
      ...more,
      ...defined({ reason, token }),
    });
  }

  /**
   * Starts a new run that shares the first steps of this run, and goes on with this runtime's planner and tools. This run is not touched.
   * The caller that uses this handle uses the new one, too.
   * @throws PilotageError `run_not_found`, `scope_mismatch`, `idempotency_conflict`, `invalid_config` or `payload_invalid`.
   */
  async fork(options: ForkOptions = {}): Promise<Run> {
    assertForkOptions(options);
    await this.#host.assertMayResume(this.id, this.#as);
    return new Run(await this.#host.fork(this.id, options), this.#host, this.#as);
  }

  /**
   * Says what is wrong with a run that cannot be read or folded; `undefined` when nothing is wrong.
   * @throws PilotageError `run_not_found`.
   */
  async diagnose(): Promise<Diagnosis | undefined> {
    await this.#assertMayRead();
    return diagnose(this.#host.deps.journal, this.id);
  }

  /**
   * Repairs a run that cannot be read or folded: entries that cannot stand are set aside, whole, in an artifact, and a `repaired` entry
   * takes their place. The run is paused then, unless it has ended.
   * @returns what was done; `undefined` when nothing is wrong.
   * @throws PilotageError `run_not_found`, `scope_mismatch`, `journal_conflict` while a process has the run, `journal_corrupt` when
   * not even its first entry can be read.
   */
  async repair(options: RepairOptions): Promise<Diagnosis | undefined> {
    assertOptions('repair', options, REPAIR);
    await this.#host.assertMayResume(this.id, this.#as);
    return repairRun(this.#host.deps, this.id, options);
  }

  /**
   * Asks this runtime's planner what it would decide today at each recorded step, up to the first that differs. No tool is
   * called and nothing is written; a planner with a model asks it.
   * @throws PilotageError `run_not_found`; the signal's reason when it is aborted.
   */
  async replay(options: { readonly signal?: AbortSignal } = {}): Promise<ReplayReport> {
    assertOptions('replay', options, REPLAY);
    await this.#host.assertMayResume(this.id, this.#as);
    return this.#host.replay(this.id, options.signal);
  }

  /** For a caller, the run of somebody else does not exist. @throws PilotageError `run_not_found`. */
  async #assertMayRead(): Promise<void> {
    if (this.#as !== undefined) await assertKnown(this.#host.deps.journal, this.id, this.#as);
  }

  #sources(tokens: boolean): {
    journal: Journal;
    run: string;
    hub: NoticeHub;
    clock: Clock;
    isDriven: () => boolean;
    tokens: boolean;
    onCaughtUp: (state: RunState) => void;
  } {
    const { fleet, deps } = this.#host;
    const { journal, hub, clock } = deps;
    const onCaughtUp = (state: RunState): void => fleet.remind(state);
    return { journal, run: this.id, hub, clock, isDriven: () => fleet.drives(this.id), tokens, onCaughtUp };
  }
}

async function* readAfter(mayRead: () => Promise<void>, follower: Follower<RunEvent>): AsyncGenerator<RunEvent, void> {
  await mayRead();
  yield* follower.follow();
}

/** Whether nothing more comes until somebody answers a pause. */
function isSettled(state: RunState): boolean {
  return state.ending !== null || isPaused(state);
}

/** Whether the run waits for an approval or another answer that `resume` alone cannot give. */
function acceptsOnly({ pauses }: RunState, acceptChanges: boolean): boolean {
  if (!acceptChanges) return false;
  return pauses.some(
    ({ call, reason }) => call !== undefined && (reason === 'approval_required' || reason === 'in_doubt'),
  );
}

const OLD_NEWS: ReadonlySet<ErrorCode> = new Set(['run_ended', 'pause_not_found', 'pause_expired']);

function isOldNews(error: unknown): boolean {
  return PilotageError.is(error) && OLD_NEWS.has(error.code);
}

function unlessOldNews(error: unknown): void {
  if (!isOldNews(error)) throw error;
}

function pausedEvent(state: RunState): RunEvent {
  const at = { seq: state.head, at: state.updatedAt };
  return event('run.paused', at, state.identity, { pauses: answerable(state) });
}

/** What the journal has brought already may be ahead of the driver's notices: nothing comes after the end of its call. */
function isUnderWay({ run, step, call }: EventPayloads['tool.chunk'], { identity, open, tasks }: RunState): boolean {
  if (run === identity.run) return open?.move.step === step && open.calls[call] === null;
  return tasks.every(({ id, end }) => end === undefined || (run !== id && !run.startsWith(`${id}.`)));
}

function passingEvent(notice: Exclude<Notice, { type: 'entry' | 'exit' }>, state: RunState): readonly RunEvent[] {
  const at = { seq: state.head, at: state.updatedAt };
  if (notice.type === 'late') {
    const { step, call, tool } = notice;
    return [event('tool.late', at, state.identity, { step, call, tool })];
  }
  if (notice.type === 'progress') return [event('task.progress', at, state.identity, notice.progress)];
  if (notice.type === 'chunk') {
    return isUnderWay(notice.chunk, state) ? [event('tool.chunk', at, state.identity, notice.chunk)] : [];
  }
  const { step, delta, offset } = notice;
  // The step's decision was read from the journal already: the text is in it.
  if (step < nextStep(state) || state.ending !== null) return [];
  if (delta.type === 'reset') return [event('token.reset', at, state.identity, { step })];
  return [event('token', at, state.identity, { step, channel: delta.type, text: delta.text, offset })];
}
