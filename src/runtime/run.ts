/** A handle of one run. The handle holds no state: any process with the journal can make one. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  assertLimits,
  assertOptions,
  type CallPlace,
  type Control,
  type ControlType,
  captureObject,
  defined,
  givenLimits,
  type Json,
  type JsonObject,
  PilotageError,
  type RunEvent,
  type StreamRow,
} from '#core';
import { type RunRecord, runNotFound, type StreamRecord } from '#journal';
import type { UserMessage } from '#messages';
import {
  assertRetrying,
  type Breakpoint,
  isPaused,
  namedNodes,
  type RunSnapshot,
  type RunState,
  type RunTrajectory,
  snapshotOf,
  trajectoryOf,
} from '#state';
import type { InputSchema } from '#tools';
import { unfitBreakpoint } from '../calls/breakpoint.ts';
import { isVerdict } from '../loop/answers.ts';
import { addressee, answeredBelow, asksTheSame, hearing, pausesBelow } from './addressee.ts';
import {
  APPROVAL,
  type Approval,
  assertAreAnswers,
  assertIsAnswer,
  type PauseAnswer,
  REJECTION,
  type Rejection,
  refusedAmong,
  rememberWord,
  SETTLEMENT,
  type Settlement,
  unknownKind,
  VALUE,
  WORDS,
} from './answers.ts';
import { CANCEL_CALL, type CancelCallOptions, callMeant } from './cancel-call.ts';
import { type FollowOptions, followUntil, keptAlive } from './follow.ts';
import { type ForkOptions, readForkOptions } from './fork.ts';
import { assertMayRead, type HandleOptions } from './gate.ts';
import { payloadReader } from './payload.ts';
import { type RowOptions, readStream } from './read-stream.ts';
import type { ReopenAs } from './reopen.ts';
import { type Diagnosis, diagnose, type RepairOptions, repairRun } from './repair.ts';
import type { ReplayReport } from './replay.ts';
import { type RunResult, wholeResultOf } from './result.ts';
import { acceptsOnly, pauseOfPlan, unlessOldNews } from './resumed-pauses.ts';
import { conversationEvents, type EventPage, isSettled, nextRunOf, recordedEvents } from './run-events.ts';
import type { RunHost, RunSources } from './run-host.ts';
import {
  assertBreakpoint,
  assertStep,
  assertUntil,
  CANCEL,
  type CancelOptions,
  EVENTS,
  type EventOptions,
  type OnceOptions,
  PAGE,
  PAUSE,
  type PageOptions,
  type PauseOptions,
  REPAIR,
  REPLAY,
  RESULT,
  RESUMPTION,
  RETRY,
  type ResultOptions,
  type Resumption,
  type RetryOptions,
  STEER,
  type SteerOptions,
} from './run-options.ts';
import { controlId, isForOthers, wasSaid, whyRefused } from './send-control.ts';
import { messagePayload } from './user-message.ts';

export class Run {
  readonly id: string;
  readonly #host: RunHost;
  readonly #user: HandleOptions;

  constructor(id: string, host: RunHost, user: HandleOptions = {}) {
    this.id = id;
    this.#host = host;
    this.#user = user;
  }

  /**
   * The run's events from journal position `from` (default 1) on, in order. The stream ends when the run has ended, with
   * `planner.finish` or `planner.error`, or is paused, with `run.paused`. Asking for events is what turns token streaming on. With `tasks`, what
   * the tasks below the run do comes between, at any depth.
   */
  events(options: EventOptions = {}): AsyncGenerator<RunEvent, void> {
    assertOptions('events', options, EVENTS);
    return conversationEvents(this.#host, this.id, options, this.#user);
  }

  /**
   * A page of the events that are recorded, from journal position `from` (default 1) on, as far as the run has come, and with `next` where the next page
   * begins. @throws PilotageError `run_not_found`.
   */
  async recorded(options: PageOptions = {}): Promise<EventPage> {
    assertOptions('recorded', options, PAGE);
    await this.#assertMayRead();
    return recordedEvents(this.#host.deps, this.id, options);
  }

  /** Waits until the run has ended or is paused. @throws PilotageError `run_not_found`; the reason of the signal. */
  async result(options: ResultOptions = {}): Promise<RunResult> {
    assertOptions('result', options, RESULT);
    const { signal } = options;
    await this.#assertMayRead();
    for (;;) {
      signal?.throwIfAborted();
      // What waits for the driver cannot be given up.
      const driven = signal === undefined ? await this.#host.fleet.settled(this.id) : undefined;
      const state = driven !== undefined && isSettled(driven) ? driven : await this.#until(isSettled, signal);
      signal?.throwIfAborted();
      const result = await this.#wholeResult(state, options);
      const answered = result.status === 'paused' ? await answeredBelow(this.#host, state) : [];
      if (result.status !== 'paused' || answered.length === 0) return result;
      const pauses = result.pauses.filter(({ token }) => !answered.includes(token));
      if (pauses.length > 0) return { ...result, pauses };
      this.#host.fleet.wake(this.id);
      await this.#until((now) => now.ending !== null || !asksTheSame(now, answered), signal);
    }
  }

  /** @returns the state in which it is over; `undefined` when the run is not there. */
  async #until(isOver: (state: RunState) => boolean, signal?: AbortSignal): Promise<RunState | undefined> {
    return followUntil({ ...this.#silent, isOver }, signal);
  }

  async #wholeResult(state: RunState | undefined, options: ResultOptions): Promise<RunResult> {
    const result = await this.#resultIn(state, options);
    if (result !== undefined) return result;
    throw new PilotageError('run_not_found', `The run ${this.id} has neither ended nor paused.`);
  }

  /** That of the run that goes on where this one has ended, if there is one. */
  async #resultIn(state: RunState | undefined, options: ResultOptions): Promise<RunResult | undefined> {
    const successor = this.#successor(state);
    if (successor !== undefined) return successor.result(options);
    return state && wholeResultOf(state, this.#host.deps);
  }

  #successor(state: RunState | undefined): Run | undefined {
    const run = nextRunOf(state);
    return run === undefined ? undefined : new Run(run, this.#host, this.#user);
  }

  /**
   * The payload that the run finished with, read in full when it is stored as an artifact. Waits as `result` does.
   * @param schema what it has to be: of a library, such as zod, whose output is given then, or a JSON Schema.
   * @returns `undefined` for a run that failed, is paused, or gave nothing.
   * @throws PilotageError `run_not_found`, `artifact_not_found`, or `payload_invalid` for one that does not fit (`data.why`), however the run ended.
   */
  payload<S extends StandardSchemaV1>(schema: S): Promise<StandardSchemaV1.InferOutput<S> | undefined>;
  payload(schema?: JsonObject): Promise<Json | undefined>;
  async payload(schema?: InputSchema): Promise<unknown> {
    const read = payloadReader(this.id, this.#host.deps.artifacts, schema);
    const result = await this.result();
    return result.status === 'finished' ? read(result, async () => (await this.#folded()).identity) : undefined;
  }

  /**
   * A file of the run's session, such as one of the `files` of its result. `undefined` when the session has none of this reference.
   * @throws PilotageError `run_not_found`.
   */
  async artifact(artifactRef: string): Promise<{ readonly bytes: Uint8Array; readonly mime: string } | undefined> {
    const { identity } = await this.#folded();
    return this.#host.deps.artifacts.get(identity, artifactRef);
  }

  /**
   * What the run's tools have written to the stream with `context.stream(name)`, from row `from` (default 1) on, and then what comes. Ends when the
   * run has ended, or has closed the stream; goes on while the run is paused. A reader that was cut off goes on from the row after its last one.
   * @throws PilotageError `run_not_found`, `stream_refused` for a name that no stream can have.
   */
  stream(name: string, options: RowOptions = {}): AsyncGenerator<StreamRow, void> {
    return readStream(this.#host, { run: this.id, name }, options, () => this.#assertMayRead());
  }

  /** The streams that the run's tools have written, in the order of their names. @throws PilotageError `run_not_found`. */
  async streams(): Promise<readonly StreamRecord[]> {
    await this.#assertMayRead();
    return this.#host.deps.journal.streams.list(this.id);
  }

  /** The run as `runtime.list` has it: whose it is, where it stands, without what it did. @throws PilotageError `run_not_found`. */
  async record(): Promise<RunRecord> {
    await this.#assertMayRead();
    const record = await this.#host.deps.journal.get(this.id);
    if (record === undefined) throw runNotFound(this.id);
    return record;
  }

  /** The run as the journal has it now, or the one that goes on where it has ended. @throws PilotageError `run_not_found`. */
  async state(): Promise<RunSnapshot> {
    const state = await this.#folded();
    return this.#successor(state)?.state() ?? snapshotOf(state);
  }

  async #folded(): Promise<RunState> {
    await this.#assertMayRead();
    return this.#host.deps.states.of(this.id);
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
   * `run_changed`, also of a task below it; `acceptChanges` is for these too.
   */
  async resume(options: Resumption = {}): Promise<void> {
    assertOptions('resume', options, RESUMPTION);
    assertStep(options);
    const { signal, ...resumption } = options;
    signal?.throwIfAborted();
    await this.#host.assertMayResume(this.id, this.#user.as);
    await this.#resume(resumption);
    this.#host.cancelOn(signal, this.id);
  }

  async #resume({ token, payload, limits, nodes, until, acceptChanges = false }: Resumption): Promise<void> {
    if (limits !== undefined) assertLimits(limits);
    const given = [token, payload, limits, nodes, until].some((part) => part !== undefined);
    const raised = limits && { ...givenLimits(limits) };
    const answer: JsonObject = { ...defined({ payload, token, until, limits: raised, nodes }) };
    if (given && !acceptChanges) return this.steer('RESUME', answer);
    const state = await this.#folded();
    if (!given && (await this.#isTold(state))) return this.#host.driveWithTasks(this.id, acceptChanges);
    if (state.ending !== null) {
      return this.#reopen(undefined, acceptChanges);
    }
    if (acceptChanges) await this.#host.driveWithTasks(this.id, true);
    // Only a pause of the run itself is answered; a run that was cut off, or waits for a task, just goes on.
    const asks = state.pauses.length > 0 && isPaused(state) && !acceptsOnly(state, acceptChanges);
    if (given || asks) return this.steer('RESUME', answer);
    // A model that is away asks nobody anything: to resume is the whole answer, also for tasks that wait for a model.
    const away = pausesBelow(state).filter(({ reason }) => reason === 'model_unavailable');
    for (const { token } of away) await this.steer('RESUME', { token }).catch(unlessOldNews);
    return this.#host.driveWithTasks(this.id, acceptChanges);
  }

  /** The run waits only for what is stored already, with it or with a task below, and that no process has taken yet. */
  async #isTold(state: RunState): Promise<boolean> {
    const runs = new Set([this.id, ...pausesBelow(state).map(({ run }) => run)]);
    const told = await Promise.all([...runs].map((run) => this.#host.deps.journal.inbox(run)));
    return told.some(({ length }) => length > 0);
  }

  /**
   * Carries out again what has failed of the run's plan, in whichever process: nodes of a graph, of a flow, of any plan. What has a value
   * keeps it. A `once` call that was made is not made again, and of one that may have been made it is found out first. Nodes that tasks carry out
   * go on in these. A run that is paused because its plan has failed is answered with it. A retry that is under way already just goes on.
   * @throws PilotageError `run_not_found`; `run_ended` for a run that finished or was cancelled, or a task whose owner was told;
   * `payload_invalid` when no node of its last plan has failed, while it still goes on, for nodes that have not failed, or an empty list; `budget_exceeded`; or `run_changed`.
   */
  async retry(options: RetryOptions = {}): Promise<void> {
    assertOptions('retry', options, RETRY);
    const { signal, acceptChanges = false } = options;
    const nodes = namedNodes(options.nodes);
    signal?.throwIfAborted();
    await this.#host.assertMayResume(this.id, this.#user.as);
    const state = await this.#folded();
    const asked = state.ending === null ? pauseOfPlan(state) : undefined;
    if (asked !== undefined) {
      if (acceptChanges) await this.#host.drive(this.id, true);
      await this.steer('RESUME', { token: asked.token, ...defined({ retry: nodes }) });
    } else {
      if (state.ending === null) assertRetrying(state, nodes);
      await this.#reopen({ nodes }, acceptChanges);
    }
    this.#host.cancelOn(signal, this.id);
  }

  /** Also the tasks that carry out nodes of a run that goes on already. */
  async #reopen(retry: ReopenAs['retry'], acceptChanges: boolean): Promise<void> {
    const going = await this.#host.reopen(this.id, defined({ by: this.#user.as, retry }));
    for (const run of going) await this.#host.drive(run, acceptChanges);
  }

  /**
   * Approves: answers a pause with yes. A call that waits for approval is made; where several people have to approve, when enough of them have.
   * With `remember` the answer holds for questions to come.
   * @param token the pause, of this run or of a task that it waits for; needed only when several pauses are open.
   * @throws PilotageError `pause_not_found`, `approver_refused`, or `payload_invalid` for arguments that do not fit.
   */
  async approve(token?: string, approval: Approval = {}): Promise<void> {
    assertOptions('approve', approval, APPROVAL);
    return this.#answer('APPROVE', token, approval, {});
  }

  /** Rejects: answers a pause with no. A call that waits for approval is not made. @throws PilotageError `pause_not_found`. */
  async reject(token?: string, answer: Rejection = {}): Promise<void> {
    assertOptions('reject', answer, REJECTION);
    return this.#answer('REJECT', token, answer, {});
  }

  /**
   * Answers a pause with an answer of any kind; `approve`, `reject` and `settle` are short forms.
   * @param token the pause, of this run or of a task that it waits for; needed only when several pauses are open.
   * @throws PilotageError `payload_invalid` for a kind that does not fit (`data.fits` names those that do), or a value that does not; and the errors of
   * `approve`.
   * @param options `id`: an id of the answer, unique in the run: the same one sent again changes nothing.
   */
  async answer(token: string | undefined, answer: PauseAnswer, options: OnceOptions = {}): Promise<void> {
    assertIsAnswer('answer', answer);
    switch (answer.kind) {
      case 'approve': {
        const { kind: _, ...approval } = answer;
        assertOptions('approve', approval, APPROVAL);
        return this.#answer('APPROVE', token, approval, options);
      }
      case 'reject': {
        const { kind: _, ...no } = answer;
        assertOptions('reject', no, REJECTION);
        return this.#answer('REJECT', token, no, options);
      }
      case 'settle': {
        const { kind: _, ...settlement } = answer;
        return this.settle(token, settlement, options);
      }
      case 'answer': {
        assertOptions('answer', answer, VALUE);
        const { value, reason } = answer;
        return this.steer('ANSWER', { value, ...defined({ reason, token }) }, options);
      }
      case 'payload':
        assertOptions('answer', answer, WORDS);
        return this.steer('RESUME', { payload: answer.payload, ...defined({ token }) }, options);
      default:
        throw unknownKind(answer);
    }
  }

  /**
   * Answers several pauses of this run, and of tasks that it waits for, at once. Every answer is taken or refused by itself: one that comes too
   * late keeps back no other.
   * @param answers by the tokens of the pauses.
   * @throws PilotageError of the first that was refused; `data.refused` has the code of each, by its token.
   */
  async answerAll(answers: Readonly<Record<string, PauseAnswer>>): Promise<void> {
    assertAreAnswers(answers);
    const given = Object.entries(answers);
    const settled = await Promise.allSettled(given.map(([token, answer]) => this.answer(token, answer)));
    const why = refusedAmong(Object.keys(answers), settled);
    if (why !== undefined) throw why;
  }

  /**
   * Settles a call in doubt, that is, a call of which nobody knows whether it has happened; or says that a call has failed which a client was to carry out.
   * @param token the pause, of this run or of a task that it waits for; needed only when several pauses are open.
   * @throws PilotageError `pause_not_found`, or `payload_invalid` when the pause is not about a call in doubt, or the value does not fit.
   */
  async settle(token: string | undefined, settlement: Settlement, options: OnceOptions = {}): Promise<void> {
    if (typeof settlement?.happened !== 'boolean') {
      const words = 'Say whether the call has happened: { happened: true, value } or { happened: false }.';
      throw new PilotageError('payload_invalid', words);
    }
    assertOptions('settle', settlement, SETTLEMENT);
    const { happened, reason } = settlement;
    const { value = undefined, error = undefined } = settlement.happened ? settlement : {};
    const failed = error && captureObject(error, 'error').json;
    await this.steer('SETTLE', { happened, ...defined({ value, error: failed, reason, token }) }, options);
  }

  /**
   * Pauses the run at its next step boundary; with `before`, when that call would begin: what runs may end, nothing else starts, and the pause says
   * where it stands. Breakpoints stay until they are taken away (`clear`). @throws PilotageError `invalid_config`, `run_ended`, `tool_not_found` for a tool that the run does not have.
   */
  async pause(options: PauseOptions = {}): Promise<void> {
    assertOptions('pause', options, PAUSE);
    assertBreakpoint(options);
    const { before, clear, ...steering } = options;
    const payload = before === undefined ? undefined : { before, ...defined({ clear }) };
    await this.#assertBreakpoint(payload);
    return this.steer('PAUSE', payload as JsonObject | undefined, steering);
  }

  /** What the run's tools are is known where its agent is. Whoever takes the control knows in any case, and refuses it. */
  async #assertBreakpoint(
    payload: { readonly before: Breakpoint; readonly clear?: boolean } | undefined,
  ): Promise<void> {
    if (payload === undefined) return;
    const state = await this.#folded();
    const tools = this.#host.toolsOf(state);
    const unfit = tools && unfitBreakpoint(payload as unknown as JsonObject, state, tools);
    if (unfit !== undefined) throw unfit;
  }

  /** Ends the run as cancelled. Work in flight is aborted at once, unless `hard` is false. */
  async cancel(options: CancelOptions = {}): Promise<void> {
    assertOptions('cancel', options, CANCEL);
    assertUntil('cancel', options);
    const { until, id, ...payload } = options;
    await this.steer('CANCEL', { ...payload }, defined({ until, id }));
  }

  /**
   * Cancels one call of the step under way, and nothing else: it has the outcome `cancelled`, its siblings go on, what needs it is skipped, and the
   * planner is told. A call under way is aborted at once; a `once` call that may have happened is looked up, or in doubt. A call that waits is not made,
   * and a task that carries it out is cancelled with it.
   * @param which its place, counted from 0, or its id: that of its branch or node, or of the call as its model has named it.
   * @throws PilotageError `call_ended`, `call_not_found`, `call_in_doubt` for one that is to be settled; `run_ended`, `scope_mismatch`.
   */
  async cancelCall(which: CallPlace | string, options: CancelCallOptions = {}): Promise<void> {
    assertOptions('cancelCall', options, CANCEL_CALL);
    const { until = 'applied', id, reason } = options;
    const { step, call } = callMeant(await this.#folded(), which);
    await this.steer('CANCEL_CALL', { step, call, ...defined({ reason }) }, { until, ...defined({ id }) });
  }

  /**
   * Says something to the run, in words and with files, which are stored before the run can hear of them. To a run that asks its user (`await_input`), or waits for
   * a task that does, it is the answer.
   * @throws PilotageError `invalid_config`, `run_not_found`, `run_ended`, `scope_mismatch`, `url_refused` or `url_failed` for a file at a URL, or a store error.
   */
  async send(message: string | UserMessage, options: SteerOptions = {}): Promise<void> {
    assertOptions('send', options, STEER);
    const { identity } = await this.#folded();
    return this.steer(
      'USER_MESSAGE',
      await messagePayload(message, identity, { ...this.#host.deps, files: this.#host.files }),
      options,
    );
  }

  /**
   * Sends a control. A `USER_MESSAGE` to a run that asks its user (`await_input`), or waits for a task that does, is the answer. An answer to a pause (`APPROVE`, `REJECT`, `ANSWER`, `RESUME`, `SETTLE`), which may be refused, is waited for until the run
   * has taken it; anything else until it is stored, which is before the run hears of it.
   * @throws PilotageError why it was refused, or `run_ended`.
   */
  async steer(type: ControlType, payload?: JsonObject, options: SteerOptions = {}): Promise<void> {
    assertOptions('steer', options, STEER);
    assertUntil('steer', options);
    try {
      await this.#steer(type, payload, options);
    } catch (error) {
      const successor = PilotageError.is(error, 'run_ended') ? this.#successor(await this.#folded()) : undefined;
      if (successor === undefined) throw error;
      await successor.steer(type, payload, options);
    }
  }

  async #steer(type: ControlType, payload: JsonObject | undefined, options: SteerOptions): Promise<void> {
    const { until = isVerdict({ type }) ? 'applied' : 'stored' } = options;
    const id = controlId(options.id);
    if (options.id !== undefined && (await wasSaid(this.#host.deps.journal, this.id, id))) return;
    const given = payload === undefined ? {} : { payload };
    const control: Control = { id, type, ...given, ...defined({ from: this.#user.as }) };
    const to = await addressee(this.#host.deps.journal, this.id, control, this.#host.deps.states);
    for (const run of new Set([this.id, to.run])) await this.#user.gate?.assertMaySend(type, run);
    if (to.run === this.id) return void (await this.#send(control, until));
    let isTaken: boolean;
    try {
      isTaken = await new Run(to.run, this.#host, this.#user).#send(control, until);
    } catch (error) {
      unlessOldNews(error);
      // This run has an old view of its task: it goes on, and is told. What is said to it is for itself then.
      if (type === 'USER_MESSAGE') return void (await this.#send(control, until));
      await this.#host.drive(this.id, false).catch((second: unknown) => {
        if (!isForOthers(control, second)) throw second;
      });
      throw error;
    }
    if (!isTaken || to.token === undefined) return;
    const { pauses } = await this.#host.deps.states.of(to.run);
    // Where more people have to approve, the run above is told so, as of other pauses, and nobody waits for that.
    if (pauses.every((pause) => pause.token !== to.token)) await this.#untilAnswered(to.token);
  }

  /** Waits until this run knows that a pause of a task below it is answered. */
  async #untilAnswered(token: string): Promise<void> {
    const hasHeard = await hearing(this.#host.deps.journal, this.id, token);
    await this.#until(
      (state) =>
        state.ending !== null || (hasHeard(state) && pausesBelow(state).every((pause) => pause.token !== token)),
    );
  }

  /** @returns true when it was waited for, and the run has taken it. A process that cannot go on with the run does not wait for those who can. */
  async #send(control: Control, until: NonNullable<SteerOptions['until']>): Promise<boolean> {
    if (until === 'stored') {
      await this.#host.signal(this.id, control);
      return false;
    }
    const head = (await this.#host.deps.journal.get(this.id))?.head ?? 0;
    const taken = this.#host.taken.until(this.id, control, head);
    try {
      if (await this.#host.signal(this.id, control)) {
        await this.#host.fleet.waiting(this.id, keptAlive(taken.done, this.#host.deps.clock));
        return true;
      }
    } catch (error) {
      if (!isForOthers(control, error)) throw error;
    } finally {
      taken.stop();
    }
    const late = (await whyRefused(this.#host.deps, this.id, [control.id])).get(control.id);
    if (late !== undefined) throw late;
    return false;
  }

  #answer(
    type: 'APPROVE' | 'REJECT',
    token: string | undefined,
    answer: Approval,
    options: SteerOptions,
  ): Promise<void> {
    const { payload, args, digest, reason, remember } = answer;
    return this.steer(
      type,
      { ...defined({ payload, args, digest, reason, token }), ...rememberWord(remember) },
      options,
    );
  }

  /**
   * Starts a new run that shares the first steps of this run, and goes on with this runtime's planner and tools. This run is not touched.
   * The caller that uses this handle uses the new one, too.
   * @throws PilotageError `run_not_found`, `scope_mismatch`, `idempotency_conflict`, `invalid_config` or `unserializable`.
   */
  async fork(options: ForkOptions = {}): Promise<Run> {
    const given = readForkOptions(options);
    await this.#host.assertMayResume(this.id, this.#user.as);
    return new Run(await this.#host.fork(this.id, given), this.#host, this.#user);
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
   * @throws PilotageError `run_not_found`, `scope_mismatch`, `journal_conflict` while a process has the run for longer than a second,
   * `journal_corrupt` when not even its first entry can be read.
   */
  async repair(options: RepairOptions): Promise<Diagnosis | undefined> {
    assertOptions('repair', options, REPAIR);
    await this.#host.assertMayResume(this.id, this.#user.as);
    return repairRun(this.#host.deps, this.id, options);
  }

  /**
   * Asks this runtime's planner what it would decide today at each recorded step, up to the first that differs. No tool is
   * called and nothing is written; a planner with a model asks it.
   * @throws PilotageError `run_not_found`; the signal's reason when it is aborted.
   */
  async replay(options: { readonly signal?: AbortSignal } = {}): Promise<ReplayReport> {
    assertOptions('replay', options, REPLAY);
    await this.#host.assertMayResume(this.id, this.#user.as);
    return this.#host.replay(this.id, options.signal);
  }

  /** For a caller, the run of somebody else does not exist. @throws PilotageError `run_not_found`. */
  #assertMayRead(): Promise<void> | undefined {
    return assertMayRead(this.#host, this.id, this.#user);
  }

  /** For a reader that only wants to know when the run has come so far. */
  get #silent(): Omit<FollowOptions<never>, 'isOver'> {
    const begin = (): Promise<RunState> => this.#host.deps.states.of(this.id);
    return { ...this.#sources(false), begin, onEntry: () => [], onPassing: () => [] };
  }

  #sources(tokens: boolean): RunSources & Required<Pick<FollowOptions<never>, 'tokens' | 'onCaughtUp'>> {
    const { fleet } = this.#host;
    return { ...this.#host.sourcesOf(this.id), tokens, onCaughtUp: (state) => fleet.remind(state) };
  }
}
