/**
 * Carries one run forward while this process holds its lease: asks what the run needs, does it, writes it down, and asks
 * again. Every entry is written by the run writer.
 *
 * Invariants:
 * D1 Nothing is in flight when the driver exits, except work that ignored its abort. The driver waits the whole grace period for a
 *    `once` call, and for other calls only so long that they can notice the abort.
 * D2 A refused append (the lease is lost, or the head has moved) ends the driver; it never competes with another owner.
 */

import {
  type Clock,
  type Control,
  callEnded,
  type EntryBody,
  isDismissal,
  LONGEST_NAP_MS,
  MAX_TREE_CALLS,
  MAX_TREE_TASKS,
  PilotageError,
  resolveWakeMode,
  timeAfter,
  withTraceOf,
} from '#core';
import type { Claim } from '#journal';
import {
  isBlocked,
  isHeld,
  isPaused,
  liveIn,
  nextStep,
  nextTimeout,
  type OpenStep,
  type RunState,
  withheldTools,
} from '#state';
import type { AuthorisedTools } from '#tools';
import { Calls } from '../calls/executor.ts';
import { endAgentCalls } from '../calls/functionless-calls.ts';
import { turn } from '../calls/large-values.ts';
import { stopTasks } from '../tasks/cancel.ts';
import { type Landing, refused } from '../tasks/spawn.ts';
import { placeToCancel } from './controls.ts';
import type { DriverDeps } from './driver-deps.ts';
import type { HeldLease } from './held-lease.ts';
import { RunInbox } from './inbox.ts';
import { Kept } from './kept.ts';
import { lastMove } from './last-move.ts';
import { type Exit, giveBack, giveUp, type Held, lost, park, reasonOf, tellPauses } from './let-go.ts';
import { Moves } from './moves.ts';
import { type Next, type NextDeps, next, stopsAt } from './next.ts';
import { recalled } from './recall.ts';
import { runTracing } from './run-tracing.ts';
import { type Changes, isEnding, RunWriter } from './run-writer.ts';
import { Undo } from './undo.ts';

type Stop = 'cancel' | 'dismissal' | 'deadline' | 'ending' | 'closing' | 'lost';

export class RunDriver {
  readonly state: RunState;
  readonly lease: HeldLease;
  readonly kept: Kept;
  readonly #deps: DriverDeps;
  readonly #held: Held;
  readonly #nextDeps: NextDeps;
  readonly #writer: RunWriter;
  readonly #inbox: RunInbox;
  readonly #calls: Calls;
  readonly #moves: Moves;
  readonly #undo: Undo;
  readonly #deadline: Deadline;
  #toolView: { readonly found: readonly string[]; readonly tools: AuthorisedTools } | undefined;
  /** Tasks that this driver has told that their calls are not needed any more. */
  readonly #dismissed = new Set<string>();
  /** Tasks that this driver has told to undo what they did. */
  readonly #told = new Set<string>();
  /** Set when everything in flight is being stopped: why. */
  #stop: Stop | undefined;
  /** It is a turn that waits for the turns before it, and was cancelled: nothing is done with it but that. */
  readonly #endsOnly: boolean;
  /** Nothing more begins; what is in flight may end. */
  #isLeaving = false;
  /** The run is given back only to be driven further soon. */
  #goesOn = false;
  /** Somebody waits until the run reads as paused. */
  #asks: PromiseWithResolvers<void> | undefined;
  /** The head of the run when those above were told what its calls ask. */
  #askedAt: number | undefined;

  constructor(
    deps: DriverDeps,
    state: RunState,
    claim: Pick<Claim, 'signals' | 'startsInMs' | 'waits'>,
    lease: HeldLease,
    kept: Kept = new Kept(),
  ) {
    this.#deps = deps;
    this.state = state;
    this.lease = lease;
    this.kept = kept;
    this.#held = { deps, state, lease };
    this.#endsOnly = claim.waits === true;
    const { clock, newToken, progress, planner } = deps;
    const tools = (): AuthorisedTools => this.#tools();
    this.#nextDeps = {
      clock,
      newToken,
      progress,
      wakeMode: resolveWakeMode(planner),
      costless: planner.costless === true,
      remembers: planner.remembers !== undefined,
      // The store counts the wait: its clock may be another one.
      ...(claim.startsInMs === undefined ? {} : { startsAt: timeAfter(clock.now(), claim.startsInMs) }),
      moveNeeds: () => this.#moves.needs,
      isInFlight: (call) => this.#calls.isInFlight(call),
      mayLand: (call) => this.#calls.mayLand(call),
      isDismissed: (task) => this.#dismissed.has(task),
      isToldToUndo: (task) => this.#told.has(task),
    };
    const isLettingGo = (): boolean => this.#isLettingGo();
    const tracing = runTracing(state, deps);
    this.#writer = new RunWriter(this.#held, () => this.#inbox, isLettingGo, tracing);
    const commit = (bodies: readonly EntryBody[], changes: Changes): Promise<void> | undefined =>
      this.#commit(bodies, changes);
    const onHeard = (): void => this.#calls.nudge();
    const isBoundary = (): boolean => this.#isBoundary();
    const onCancel = (why: 'cancel' | 'dismissal'): void => this.#halt(why);
    const hasNews = claim.signals > state.messagesTaken;
    const onCallCancelled = (control: Control): void =>
      this.#calls.stopped.stop(placeToCancel(control), control.payload?.['reason']);
    const untilWritten = (): Promise<void> => this.#writer.untilWritten();
    const heard = { isBoundary, onCancel, onCallCancelled, onHeard };
    this.#inbox = new RunInbox({ deps, state, tools, commit, untilWritten, ...heard }, hasNews);
    const isEnding = (): boolean => this.#stop !== undefined && !this.#isLettingGo();
    this.#moves = new Moves({ deps, state, kept, tracing, tools, isEnding, onMore: onHeard });
    this.#undo = new Undo({ deps, state, tools });
    this.#deadline = new Deadline(clock, () => this.#halt('deadline'));
    this.#calls = new Calls({
      deps,
      state,
      begin: (step, call, costMicroUsd, repeatable) => {
        const cost = costMicroUsd === undefined ? {} : { costMicroUsd };
        return this.#writer.begin({ kind: 'call_began', step, call, ...cost, ...(repeatable ? { repeatable } : {}) });
      },
      writer: this.#writer,
      lease,
      tracing,
      prove: async () => this.#inbox.hear(await lease.prove()),
      tools,
    });
  }

  /** Whether the inbox may hold something that came after it was last read. */
  get hasNews(): boolean {
    return this.#inbox.hasNews;
  }

  /** Called when the inbox may hold something new. */
  poke(): void {
    this.#inbox.poke();
  }

  /** Stops driving the run: `closing` gives the run back to the journal, `lost` only stops. */
  stop(why: 'closing' | 'lost'): void {
    this.#halt(why);
  }

  /** Until the run reads as paused although a call of it stays open here. */
  untilItAsks(): Promise<void> {
    if (this.#asks === undefined || this.#isAsking) this.#asks = Promise.withResolvers();
    if (this.#isAsking) this.#asks.resolve();
    return this.#asks.promise;
  }

  get #isAsking(): boolean {
    return this.#calls.onlyAsk && isPaused(this.state);
  }

  /** A run that is not parked tells the runs above what its calls ask, too. */
  async #tellAsked(): Promise<void> {
    this.#asks?.resolve();
    if (this.#askedAt === this.state.head) return;
    this.#askedAt = this.state.head;
    await tellPauses(this.#held);
  }

  /** Begins nothing more, and gives the run back when what is under way has ended. @param goesOn to be driven further soon, here or elsewhere. */
  leave(goesOn = false): void {
    this.#isLeaving = true;
    this.#goesOn = goesOn;
    this.#calls.nudge();
  }

  /** Live handles are held while the driver runs. Before it has stopped, they are closed, or kept for a while. */
  async drive(): Promise<Exit> {
    const { handles } = this.#deps;
    const { run } = this.state.identity;
    handles.hold(run);
    const exit = await withTraceOf(this.state, () => this.#untilExit());
    await handles.letGo(run, reasonOf(exit, this.state), exit.kind === 'parked' && this.hasNews);
    return exit;
  }

  async #untilExit(): Promise<Exit> {
    try {
      return await this.#loop();
    } catch (error) {
      // The journal may have refused its beginning.
      this.#calls.aloneIsOver();
      this.#halt('lost');
      await this.#settle();
      if (PilotageError.is(error, 'lease_lost')) return lost(this.#held);
      await giveUp(this.#held, error);
      return { kind: 'broken', error };
    } finally {
      this.#deadline.cancel();
    }
  }

  async #loop(): Promise<Exit> {
    for (const { id } of liveIn(this.state.tasks)) this.#deps.woke(id);
    for (;;) {
      if (this.#isLettingGo() && !this.#isEndingTurn) return this.#letGo();
      if (this.#inbox.hasNews) await this.#inbox.take();
      if (this.#endsOnly && !this.#isEndingTurn) return this.#leaveTurn();
      this.#calls.questions.hear();
      if (this.state.pauses.length > 0 && this.#isAsking) await this.#tellAsked();
      const { open, ending } = this.state;
      if (open?.move.growing === true && ending === null) {
        await this.#commit(this.#moves.takeGrowth(open));
        // That may have ended the step: what came meanwhile is read before the planner is asked again.
        if (this.state.open === null && this.#inbox.hasNews) continue;
      }
      this.#deadline.arm(stopsAt(this.state));
      const todo = next(this.state, this.#nextDeps);
      const goesOn = todo.do === 'ask' || todo.do === 'calls' || (todo.do === 'undo' && todo.stopped === undefined);
      if (goesOn && this.#isLeaving) {
        if (this.#isIdle) this.stop('closing');
        else await this.#hearOut();
        continue;
      }
      if (goesOn && this.#stop !== undefined && this.#isIdle && !this.#inbox.hasNews) return this.#startOver();
      switch (todo.do) {
        case 'end':
          return { kind: 'ended' };
        case 'record':
          if (todo.cancels !== undefined)
            await this.#stopTasks(todo.cancels, 'The group of the task does not need it any more.');
          await this.#record(todo.entries);
          break;
        case 'dismiss':
          await this.#dismiss(todo.tasks);
          break;
        case 'end_calls':
          await this.#commit(await endAgentCalls(todo.calls, this.#calls.ownPorts));
          break;
        case 'look_up':
          if (open !== null) this.#calls.lookUp(open, todo.calls);
          await this.#commit(this.#kept((await this.#landed()).entries));
          break;
        case 'undo':
          await this.#record(await this.#undo.next(todo.stopped));
          break;
        case 'undo_task':
          await this.#undoTask(todo.task);
          break;
        case 'recall':
          await this.#commit([await recalled(this.#deps, this.state)]);
          break;
        case 'ask': {
          const made = await this.#moves.next();
          if (made !== undefined && this.state.answering !== null) {
            await this.#record(lastMove(this.state, made));
            break;
          }
          const writing = made && this.#commit(made);
          if (writing !== undefined) await writing;
          if (made !== undefined && this.#isTurnDue) await this.#turn();
          break;
        }
        case 'calls': {
          const ended = await this.#nextLanding();
          // Why it ended stands before its end.
          if (this.#calls.stopped.any && this.#inbox.hasNews) await this.#inbox.take();
          const writing = this.#land(this.#calls.landed(ended));
          if (writing !== undefined) await writing;
          break;
        }
        case 'park':
          if (this.#isIdle) return this.#park(todo);
          await this.#hearOut();
          break;
        default:
          todo satisfies never;
      }
    }
  }

  /** After a move was written: none is made on what was true before others had their turn. */
  get #isTurnDue(): boolean {
    return nextStep(this.state) % STEPS_PER_TURN === STEPS_PER_TURN - 1;
  }

  /** Others have their turn, and the run is stored when it has become long. */
  #turn(): Promise<void> {
    this.#deps.states.goesOn(this.state, this.kept, this.lease.fence);
    return turn();
  }

  async #park({ wakeAt, status }: Extract<Next, { do: 'park' }>): Promise<Exit> {
    if (!(await park(this.#held, wakeAt, status))) this.#inbox.look();
    return wakeAt === null ? { kind: 'parked' } : { kind: 'parked', wakeAt, isPaused: status === 'paused' };
  }

  get #isIdle(): boolean {
    return this.#calls.isIdle && !this.#moves.isGrowing;
  }

  /** Waits until nothing is in flight and the planner has ended too. */
  async #settle(): Promise<void> {
    await this.#calls.settle();
    await this.#moves.settle();
  }

  /** Reads the inbox between steps, while nothing can go on here, or on the way to an ending; after an ending nothing is taken. */
  #isBoundary(): boolean {
    const { open, ending } = this.state;
    if (ending !== null) return false;
    if (open === null) return true;
    if (!this.#isIdle) return false;
    return this.#stop !== undefined || isBlocked(this.state) || isHeld(this.state);
  }

  #stopTasks(tasks: readonly string[], reason: string): Promise<void> {
    return stopTasks(this.#deps, tasks, { by: this.state.identity.run, reason });
  }

  async #dismiss(tasks: readonly string[]): Promise<void> {
    const by = this.state.identity.run;
    await stopTasks(this.#deps, tasks, {
      by,
      reason: 'The call that started the task is not needed any more.',
      dismisses: true,
    });
    for (const task of tasks) this.#dismissed.add(task);
  }

  async #undoTask(task: string): Promise<void> {
    const { run } = this.state.identity;
    const refused = await this.#deps.undoTask(task, run);
    this.#told.add(task);
    const step = this.state.open?.move.step;
    if (refused === undefined || step === undefined) return;
    await this.#commit([callEnded({ step, call: 0 }, { outcome: { kind: 'error', error: refused }, attempts: 0 })]);
  }

  /** Stops the calls that are in flight when the run ends, and waits for them before the ending is written. */
  async #record(entries: readonly EntryBody[]): Promise<void> {
    if (isExpiry(entries)) return this.#inbox.expire(entries);
    if (!isEnding(entries)) return this.#commit(entries);
    if (this.#calls.inFlight > 0 || this.#moves.isGrowing) {
      this.#halt('ending');
      await this.#settle();
    }
    const { open } = this.state;
    const grown = open !== null && this.#moves.isGrowing ? this.#moves.takeGrowth(open) : [];
    const landed = [...grown, ...this.#kept(this.#calls.takeEnded())];
    await this.#commit(landed.length > 0 ? landed : entries);
  }

  /** Carries out the calls of the open step until one of them has ended. */
  #nextLanding(): ReturnType<Calls['advance']> {
    const { open } = this.state;
    if (open === null || this.#stop !== undefined) return this.#landed();
    const at = nextTimeout(this.state);
    return at === null ? this.#calls.advance(open) : this.#advanceUntil(at, open);
  }

  /** Writes down what landed, unless the run was stopped meanwhile and somebody else is to find it out. */
  #land({ entries, starts }: Landing): Promise<void> | undefined {
    const kept = this.#kept(entries);
    return starts === undefined || this.#isLettingGo() ? this.#commit(kept) : this.#startTasks(kept, starts);
  }

  async #startTasks(entries: readonly EntryBody[], starts: NonNullable<Landing['starts']>): Promise<void> {
    const [spawned] = entries;
    const isAgentCall = spawned?.kind === 'spawned' && spawned.agentCall === true;
    try {
      await this.#commit(entries, { starts, treeLimit: isAgentCall ? MAX_TREE_CALLS : MAX_TREE_TASKS });
    } catch (error) {
      const isRefusal = PilotageError.is(error, 'task_limit') || PilotageError.is(error, 'task_id_taken');
      if (!isRefusal || spawned?.kind !== 'spawned') throw error;
      const { step, call } = spawned;
      await this.#commit([refused({ step, call }, error.code, error.message)]);
    }
  }

  /** Waits for calls in flight, at most until the time of the next time limit or expiry. */
  async #advanceUntil(at: number, open: OpenStep): Promise<Awaited<ReturnType<Calls['advance']>>> {
    const { clock } = this.#deps;
    const leftMs = at - clock.now();
    if (leftMs <= 0) return this.#calls.advance(open);
    const cancel = clock.after(Math.min(leftMs, LONGEST_NAP_MS), () => this.#calls.nudge());
    try {
      return await this.#calls.advance(open);
    } finally {
      cancel();
    }
  }

  /** Starts nothing more. Calls under way are recorded as they end, and one of them may end the step. */
  async #hearOut(): Promise<void> {
    if (this.#calls.inFlight > 0) await this.#calls.untilLanded();
    else await this.#settle();
    await this.#commit(this.#kept(this.#calls.takeEnded()));
  }

  async #landed(): Promise<Landing> {
    await this.#settle();
    return { entries: this.#calls.takeEnded() };
  }

  /** Makes the entries of the calls that have ended. A cancel ends a run also when a call is in doubt. */
  #kept(landed: readonly EntryBody[]): readonly EntryBody[] {
    if (this.#isLettingGo()) return landed.filter(isResult);
    if (this.#isLeaving) return landed.filter((body) => !isOfClosing(body));
    const { cancel } = this.state;
    const isCancelled = (cancel !== null && !isDismissal(cancel)) || this.#stop === 'cancel';
    const { undo, undoStopped } = this.state;
    // What may have happened is to be undone too: a run that undoes its calls waits for it.
    if (undo !== null && !undoStopped) return landed;
    return isCancelled ? landed.filter((body) => !isDoubt(body)) : landed;
  }

  /** The deadline that stopped everything was moved. Aborted work stays aborted: the run is given back, for a fresh driver. */
  async #startOver(): Promise<Exit> {
    await giveBack(this.#held);
    this.#inbox.look();
    return { kind: 'parked' };
  }

  #tools(): AuthorisedTools {
    const { scopes, found, clientTools } = this.state;
    if (this.#toolView?.found !== found) {
      this.#toolView = { found, tools: this.#deps.toolsOf(scopes, found, withheldTools(this.state), clientTools) };
    }
    return this.#toolView.tools;
  }

  #commit(bodies: readonly EntryBody[], changes?: Changes): Promise<void> | undefined {
    if (this.state.undo === null || !isEnding(bodies)) return this.#writer.commit(bodies, changes);
    return this.#commitEnding(bodies, changes);
  }

  /** A run that undoes its calls does so before it ends. */
  async #commitEnding(bodies: readonly EntryBody[], changes?: Changes): Promise<void> {
    await this.#writer.commit(await this.#undo.before(bodies), changes);
  }

  #halt(why: Stop): void {
    // That the run is lost or given back stays the reason, whatever else stops the driver. Results that land are still offered: an old fence is refused.
    if (this.#stop !== undefined && why !== 'lost' && why !== 'closing') return;
    this.#stop = why;
    const reason = new PilotageError('cancelled', `The run was stopped: ${why}.`, { data: { why } });
    // Another process goes on with a run that is given back: what is recorded here need not be done again there.
    const isPatient = this.#isLettingGo();
    this.#moves.abort(reason, isPatient);
    this.#calls.abort(reason, isPatient);
  }

  #isLettingGo(): boolean {
    return this.#stop === 'closing' || this.#stop === 'lost';
  }

  /** Also while the runtime is closed: nothing has to be cut off for it, and nobody else looks at the turn before it has come. */
  get #isEndingTurn(): boolean {
    return this.#endsOnly && this.#stop !== 'lost' && (this.#inbox.hasNews || this.state.cancel !== null);
  }

  /** The cancel was refused: the turn goes on waiting. */
  async #leaveTurn(): Promise<Exit> {
    if (this.#stop === 'lost') return lost(this.#held);
    await giveBack(this.#held);
    return { kind: 'parked' };
  }

  /** Gives the run back. Results of calls that have ended are kept; calls that were cut off are left to the next owner. */
  async #letGo(): Promise<Exit> {
    await this.#settle();
    if (this.#stop === 'lost') return lost(this.#held);
    await this.#commit(this.#kept(this.#calls.takeEnded()));
    await giveBack(this.#held);
    return this.#goesOn ? { kind: 'closed', goesOn: true } : { kind: 'closed' };
  }
}

/** Whether the time of a pause, or of a wait for an event, is over. */
function isExpiry(entries: readonly EntryBody[]): boolean {
  return entries.some(
    (entry) =>
      (entry.kind === 'resumed' && entry.verdict === 'timeout') ||
      (entry.kind === 'wait_ended' && entry.ended === 'timeout'),
  );
}

/** What a call waits for. */
const RESULTS: ReadonlySet<EntryBody['kind']> = new Set(['paused', 'awaiting', 'call_away', 'call_waits']);

/** Whether a call ended by itself rather than by being stopped, or waits for somebody. */
function isResult(body: EntryBody): boolean {
  if (isDoubt(body)) return false;
  if (body.kind !== 'call_ended') return RESULTS.has(body.kind);
  return body.outcome.kind === 'value' || body.outcome.kind === 'error';
}

/** The call waited for a run of this process, which goes on elsewhere: so does the call. */
function isOfClosing(body: EntryBody): boolean {
  return body.kind === 'call_ended' && body.outcome.kind === 'error' && body.outcome.error.code === 'runtime_closed';
}

/**
 * Whether the entry holds the run for a call in doubt. A run that is given back needs no such entry: the next owner finds out for
 * itself.
 */
function isDoubt(body: EntryBody): boolean {
  return body.kind === 'paused' && body.reason === 'in_doubt';
}

/**
 * Steps after which the driver yields: a planner and tools that never wait would otherwise keep timers, signals and other runs
 * waiting for ever.
 */
const STEPS_PER_TURN = 32;

/** Rings when a run's time is over. Limits are replaced when somebody raises them, and the timer with them. */

class Deadline {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #at: number | undefined;
  #cancel = (): void => {};

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** May ring at once. */
  arm(deadlineAt: number | undefined): void {
    if (this.#at === deadlineAt) return;
    this.#cancel();
    this.#at = deadlineAt;
    if (deadlineAt !== undefined) this.#check(deadlineAt);
  }

  cancel(): void {
    this.#cancel();
  }

  #check(deadlineAt: number): void {
    const left = deadlineAt - this.#clock.now();
    if (left <= 0) this.#ring();
    else this.#cancel = this.#clock.after(Math.min(left, LONGEST_NAP_MS), () => this.#check(deadlineAt));
  }
}
