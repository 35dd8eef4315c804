/**
 * Carries one run forward while this process holds its lease: asks what the run needs, does it, writes it down, and asks
 * again. Every fact goes through the ledger.
 *
 * Invariants:
 * D1 Nothing is in flight when the driver exits, but for work that ignored its abort for the whole grace time.
 * D2 A refused append (lease or head) ends the driver; it never tries to win.
 */
import type { LoadedInput } from '../core/context.ts';
import { isControl, isDismissal, type Message } from '../core/control.ts';
import type { EntryBody } from '../core/entry.ts';
import { type ErrorData, PilotageError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import type { Limits } from '../core/limits.ts';
import type { Outcome } from '../core/outcome.ts';
import { resolveWakeMode, type SpokenDelta } from '../core/planner.ts';
import { MAX_TREE_CALLS, MAX_TREE_TASKS, type TaskMessage } from '../core/task.ts';
import type { Claim, Park } from '../journal/port.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import type { HandleReason } from '../tools/handle.ts';
import { nextStep, type OpenStep, type RunState } from '../view/run-state.ts';
import { presentName } from '../view/state.ts';
import { answerable, isBlocked, isHeld, nextTimeout } from '../view/waits.ts';
import type { Ask, PlanGrowth } from './ask.ts';
import { Calls } from './calls.ts';
import { stopTasks } from './cascade.ts';
import { isVerdict, type TakePorts, takeMessages } from './controls.ts';
import { keyPrefixOf } from './doubt.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Flight, LazySignal } from './flight.ts';
import { cutOff } from './growth.ts';
import type { HeldLease } from './held-lease.ts';
import { loadInputs } from './inputs.ts';
import { type Changes, isEnding, Ledger } from './ledger.ts';
import { type NextDeps, next } from './next.ts';
import { valueOutcome } from './outcomes.ts';
import { askPlanner } from './plan.ts';
import { prepareCall } from './prepare-call.ts';
import { refused } from './spawn.ts';
import { listenersOf } from './task-end.ts';

/** Why a driver let go of its run. */
export type Exit =
  | { readonly kind: 'ended' }
  /** Although `hasNews`: it has to be claimed again. `wakeAt`: it goes on by itself then. */
  | { readonly kind: 'parked'; readonly wakeAt?: number }
  /** Another process has the run. */
  | { readonly kind: 'lost' }
  /** This runtime was closed; the run stays due. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'broken'; readonly error: unknown };

type Stop = 'cancel' | 'dismissal' | 'deadline' | 'ending' | 'closing' | 'lost';

export class RunDriver {
  readonly state: RunState;
  readonly lease: HeldLease;
  readonly #deps: DriverDeps;
  readonly #nextDeps: NextDeps;
  readonly #ledger: Ledger;
  readonly #calls: Calls;
  /** The planner's moves, one after another, under the run's one signal. */
  readonly #moves: Flight;
  readonly #signal = new LazySignal();
  #toolView: { readonly found: readonly string[]; readonly tools: AuthorisedTools } | undefined;
  /** The attachments with their bytes, once they were read. */
  #inputs: readonly LoadedInput[] | undefined;
  #inboxDirty: boolean;
  /** The planner, while it goes on with the plan of the open step. */
  #growth: PlanGrowth | undefined;
  /** Tasks that were told that their calls are not needed any more. */
  readonly #dismissed = new Set<string>();
  /** Why everything in flight is being stopped, once it is. */
  #stop: Stop | undefined;
  #deadline: { readonly limits: Limits; readonly cancel: () => void } | undefined;

  constructor(deps: DriverDeps, state: RunState, claim: Pick<Claim, 'signals'>, lease: HeldLease) {
    this.#deps = deps;
    const { clock, newToken, progress, planner } = deps;
    this.#nextDeps = {
      clock,
      newToken,
      progress,
      wakeMode: resolveWakeMode(planner),
      costless: planner.costless === true,
      isInFlight: (call) => this.#calls.isInFlight(call),
      isDismissed: (task) => this.#dismissed.has(task),
    };
    this.state = state;
    this.lease = lease;
    this.#ledger = new Ledger(deps, state, lease.fence, () => {
      this.#inboxDirty = true;
    });
    this.#moves = new Flight(deps.clock, () => {});
    this.#inboxDirty = claim.signals > state.messagesTaken;
    this.#calls = new Calls({
      deps,
      state,
      begin: (step, call, costMicroUsd, repeatable) => {
        const cost = costMicroUsd === undefined ? {} : { costMicroUsd };
        return this.#commit([{ kind: 'call_began', step, call, ...cost, ...(repeatable ? { repeatable } : {}) }]);
      },
      lease,
      tools: () => this.#tools(),
    });
  }

  /** Something came, or may have come, after the inbox was last read. */
  get hasNews(): boolean {
    return this.#inboxDirty;
  }

  /**
   * Something may be new in the inbox. A hard cancel is heard at once, an answer to a call that waits beside others too,
   * everything else at the next boundary.
   */
  poke(): void {
    this.#inboxDirty = true;
    this.#deps.journal.inbox(this.state.identity.run).then((messages) => {
      const cancels = messages.filter(isHardCancel);
      if (cancels.length > 0) this.#halt(cancels.every(isDismissal) ? 'dismissal' : 'cancel');
      if (messages.some((message) => this.#isHeardAtOnce(message))) this.#calls.nudge();
    }, this.#deps.onFault);
  }

  /** What may move a call of the open step while others are in flight. */
  #isHeardAtOnce(message: Message): boolean {
    const { open, pauses } = this.state;
    if (open === null) return false;
    if (!isControl(message)) return open.waits.length > 0;
    // A plan is stopped, or given up, between two of its nodes.
    if (isPlan(open) && (message.type === 'PAUSE' || message.type === 'REDIRECT')) return true;
    return isVerdict(message) && pauses.some(({ call }) => call !== undefined);
  }

  /** Lets go of the run: `closing` gives it back, `lost` only stops. */
  stop(why: 'closing' | 'lost'): void {
    this.#halt(why);
  }

  /** Live handles are held as long as it drives, and closed, or kept for a while, before it has let go. */
  async drive(): Promise<Exit> {
    const { handles } = this.#deps;
    const { run } = this.state.identity;
    handles.hold(run);
    const exit = await this.#untilExit();
    await handles.letGo(run, reasonOf(exit, this.state), exit.kind === 'parked' && this.hasNews);
    return exit;
  }

  async #untilExit(): Promise<Exit> {
    try {
      return await this.#loop();
    } catch (error) {
      this.#halt('lost');
      await this.#settle();
      if (PilotageError.is(error, 'lease_lost')) return this.#lost();
      await this.#giveUp();
      return { kind: 'broken', error };
    } finally {
      this.#deadline?.cancel();
      this.#calls.close();
    }
  }

  async #loop(): Promise<Exit> {
    for (const { id, end } of this.state.tasks) if (end === undefined) this.#deps.woke(id);
    for (;;) {
      if (this.#isLettingGo()) return this.#letGo();
      if (this.#inboxDirty) await this.#takeInbox();
      if (this.state.open?.move.growing === true && this.state.ending === null) await this.#takeGrowth(this.state.open);
      this.#armDeadline();
      const todo = next(this.state, this.#nextDeps);
      const goesOn = todo.do === 'plan' || todo.do === 'calls';
      if (goesOn && this.#stop !== undefined && this.#isIdle && !this.#inboxDirty) return this.#startOver();
      switch (todo.do) {
        case 'end':
          return { kind: 'ended' };
        case 'record':
          if (todo.cancels !== undefined) await this.#stopTasks(todo.cancels, 'Its group does not need it any more.');
          await this.#record(todo.entries);
          break;
        case 'dismiss':
          await this.#dismiss(todo.tasks);
          break;
        case 'plan':
          await this.#plan();
          break;
        case 'calls':
          await this.#carryOut();
          break;
        case 'park':
          if (this.#isIdle) {
            await this.#park(todo.wakeAt, todo.status);
            const { wakeAt, status } = todo;
            return wakeAt === null || status === 'paused' ? { kind: 'parked' } : { kind: 'parked', wakeAt };
          }
          await this.#commit(await this.#landed());
          break;
        default:
          todo satisfies never;
      }
    }
  }

  async #plan(): Promise<void> {
    if (nextStep(this.state) % STEPS_PER_TURN === STEPS_PER_TURN - 1) await turn();
    if (this.state.context.inputs !== undefined && this.#inputs === undefined) await this.#loadInputs();
    // Stopped: why is in the inbox.
    if (this.#stop !== undefined) return;
    const made = await askPlanner(this.#ask());
    if (made !== undefined) await this.#commit(made);
  }

  /** More of the plan that is being carried out. After a crash nobody goes on with it: it is whole as it is. */
  #takeGrowth({ move: { step } }: OpenStep): Promise<void> {
    const growth = this.#growth;
    if (growth === undefined) return this.#commit([cutOff(step)]);
    const grown = growth.take();
    if (growth.isOver) this.#growth = undefined;
    return this.#commit(grown);
  }

  get #isIdle(): boolean {
    return this.#calls.isIdle && this.#growth === undefined;
  }

  /** Until nothing is in flight, and the planner has ended too. */
  async #settle(): Promise<void> {
    await this.#calls.settle();
    await this.#growth?.settled;
  }

  /** Between steps, while nothing can go on here, or on the way to an ending; after it nothing is taken. */
  #isBoundary(): boolean {
    const { open, ending } = this.state;
    if (ending !== null) return false;
    if (open === null) return true;
    if (!this.#isIdle) return false;
    return this.#stop !== undefined || isBlocked(this.state) || isHeld(this.state);
  }

  async #takeInbox(): Promise<void> {
    if (this.#isBoundary()) return this.#take(await this.#inbox());
    // The rest waits for the boundary.
    const messages = (await this.#inbox()).filter((message) => this.#isHeardAtOnce(message));
    this.#inboxDirty = true;
    if (this.state.ending === null) await this.#take(messages);
  }

  #inbox(): Promise<Message[]> {
    this.#inboxDirty = false;
    return this.#deps.journal.inbox(this.state.identity.run);
  }

  async #take(messages: readonly Message[]): Promise<void> {
    if (messages.length === 0) return;
    const { clock, newToken } = this.#deps;
    const ports: TakePorts = {
      now: clock.now(),
      newToken,
      misfit: (tool, args) => this.#misfit(tool, args),
      outcomeOf: (tool, value) => this.#outcomeOf(tool, value),
      canLookUp: (tool) => this.#canLookUp(tool),
    };
    const { entries, status } = await takeMessages(this.state, messages, ports);
    await this.#commit(entries, { status, takes: messages.map(({ id }) => id) });
    // A turn of the event loop: whoever answered a pause can begin to listen before the planner is asked.
    if (entries.some(({ kind }) => kind === 'resumed')) await turn();
  }

  async #misfit(name: string, args: Json): Promise<ErrorData | undefined> {
    const prepared = await prepareCall(this.#tools(), presentName(this.state, name), args);
    return 'error' in prepared ? prepared.error : undefined;
  }

  /** What somebody says that a call in doubt came to. */
  async #outcomeOf(name: string, value: Json): Promise<Outcome> {
    const presentTool = presentName(this.state, name);
    const tool = this.#tools().ready(presentTool) ?? { schema: { name: presentTool }, checkValue: undefined };
    const { identity } = this.state;
    return valueOutcome(value, { identity }, tool, { artifacts: this.#deps.artifacts });
  }

  #canLookUp(name: string): boolean {
    const tool = this.#tools().ready(presentName(this.state, name));
    return tool !== undefined && 'source' in tool && tool.source.reconcile !== undefined;
  }

  #stopTasks(tasks: readonly string[], reason: string): Promise<void> {
    return stopTasks(this.#deps, tasks, { by: this.state.identity.run, reason });
  }

  async #dismiss(tasks: readonly string[]): Promise<void> {
    const by = this.state.identity.run;
    await stopTasks(this.#deps, tasks, { by, reason: 'Its call is not needed any more.', dismisses: true });
    for (const task of tasks) this.#dismissed.add(task);
  }

  /** Calls that an ending finds in flight are stopped, and heard out, before it is written. */
  async #record(entries: readonly EntryBody[]): Promise<void> {
    if (!isEnding(entries)) return this.#commit(entries);
    if (this.#calls.inFlight > 0 || this.#growth !== undefined) {
      this.#halt('ending');
      await this.#settle();
    }
    const landed = this.#kept(this.#calls.takeEnded());
    await this.#commit(landed.length > 0 ? landed : entries);
  }

  #ask(): Ask {
    const { hub } = this.#deps;
    return {
      deps: this.#deps,
      state: this.state,
      tools: this.#tools(),
      inputs: this.#inputs ?? [],
      flight: this.#moves,
      signal: this.#signal,
      tell: hub.wantsTokens(this.state.identity.run) ? this.#teller() : undefined,
      isEnding: () => this.#stop !== undefined && !this.#isLettingGo(),
      grows: (growth) => {
        this.#growth = growth;
        growth.onMore = () => this.#calls.nudge();
      },
    };
  }

  /** Passes a move's deltas on, with the offset that shows a reader what it has missed. */
  #teller(): (delta: SpokenDelta) => void {
    const { run } = this.state.identity;
    const step = nextStep(this.state);
    const offsets = { text: 0, reasoning: 0 };
    return (delta) => {
      if (delta.type === 'reset') {
        offsets.text = 0;
        offsets.reasoning = 0;
        this.#deps.hub.tell(run, { type: 'delta', step, delta, offset: 0 });
        return;
      }
      this.#deps.hub.tell(run, { type: 'delta', step, delta, offset: offsets[delta.type] });
      offsets[delta.type] += delta.text.length;
    };
  }

  async #loadInputs(): Promise<void> {
    const { identity, context } = this.state;
    this.#inputs = await loadInputs(context.inputs ?? [], identity, this.#deps.artifacts);
  }

  /** The open step's calls, until one has landed. */
  async #carryOut(): Promise<void> {
    const { open } = this.state;
    if (open === null) return;
    if (this.#stop !== undefined) return this.#commit(await this.#landed());
    const landing = await this.#untilTimeout(() => this.#calls.advance(open));
    const entries = this.#kept(landing.entries);
    if (this.#isLettingGo()) return this.#commit(entries);
    const { starts } = landing;
    if (starts === undefined) return this.#commit(entries);
    const [spawned] = entries;
    const isCalled = spawned?.kind === 'spawned' && spawned.called === true;
    try {
      await this.#commit(entries, { starts, treeLimit: isCalled ? MAX_TREE_CALLS : MAX_TREE_TASKS });
    } catch (error) {
      const isRefusal = PilotageError.is(error, 'task_limit') || PilotageError.is(error, 'task_id_taken');
      if (!isRefusal || spawned?.kind !== 'spawned') throw error;
      const { step, call } = spawned;
      await this.#commit([refused({ step, call }, error.code, error.message)]);
    }
  }

  /** Waits for calls in flight no longer than until something that others wait for is over by itself. */
  async #untilTimeout<T>(wait: () => Promise<T>): Promise<T> {
    const { clock } = this.#deps;
    const at = nextTimeout(this.state);
    if (at === null || at <= clock.now()) return wait();
    const cancel = clock.after(at - clock.now(), () => this.#calls.nudge());
    try {
      return await wait();
    } finally {
      cancel();
    }
  }

  async #landed(): Promise<readonly EntryBody[]> {
    await this.#settle();
    return this.#kept(this.#calls.takeEnded());
  }

  /** Of what landed. A cancel ends a run also when a call is in doubt. */
  #kept(landed: readonly EntryBody[]): readonly EntryBody[] {
    if (this.#isLettingGo()) return landed.filter(isResult);
    const { cancel } = this.state;
    const isCancelled = (cancel !== null && !isDismissal(cancel)) || this.#stop === 'cancel';
    return isCancelled ? landed.filter((body) => !isDoubt(body)) : landed;
  }

  async #park(wakeAt: number | null, status: 'waiting' | 'paused'): Promise<void> {
    if (status === 'paused') await this.#tellPauses();
    const park = { wakeAt, status, seenSignals: this.state.messagesTaken };
    const parked = await this.#release(park);
    if (!parked) this.#inboxDirty = true;
  }

  /** Those who wait for this run are told what it waits for: somebody has to answer. */
  async #tellPauses(): Promise<void> {
    const { journal, woke } = this.#deps;
    const { identity, head } = this.state;
    const id = `pauses:${identity.run}:${head}`;
    for (const listener of listenersOf(this.state)) {
      const pauses = answerable(this.state);
      try {
        const told: TaskMessage = { id, type: 'TASK_PAUSES', task: identity.run, pauses, asOf: head };
        if (await journal.signal(listener, told)) woke(listener);
      } catch (error) {
        if (!PilotageError.is(error, 'run_ended')) throw error;
      }
    }
  }

  /** A deadline that had stopped everything was moved: what was aborted stays so, and a fresh driver is needed. */
  async #startOver(): Promise<Exit> {
    await this.#release({ seenSignals: this.state.messagesTaken });
    this.#inboxDirty = true;
    return { kind: 'parked' };
  }

  #tools(): AuthorisedTools {
    const { scopes, found } = this.state;
    if (this.#toolView?.found !== found) this.#toolView = { found, tools: this.#deps.toolsOf(scopes, found) };
    return this.#toolView.tools;
  }

  #commit(bodies: readonly EntryBody[], changes?: Changes): Promise<void> {
    return this.#ledger.commit(bodies, changes);
  }

  #halt(why: Stop): void {
    // A run that was lost or given back writes nothing more, whatever else stops it.
    if (this.#stop !== undefined && why !== 'lost' && why !== 'closing') return;
    this.#stop = why;
    const reason = this.#stopReason();
    this.#moves.abort(reason);
    this.#calls.abort(reason);
  }

  #stopReason(): PilotageError {
    return new PilotageError('cancelled', `The run was stopped: ${this.#stop ?? 'cancel'}.`);
  }

  /** Limits are replaced when somebody raises them, and the timer with them. */
  #armDeadline(): void {
    const { limits } = this.state;
    if (this.#deadline?.limits === limits) return;
    this.#deadline?.cancel();
    let cancel = (): void => {};
    const check = (): void => {
      const left = (limits.deadlineAt ?? Number.POSITIVE_INFINITY) - this.#deps.clock.now();
      if (left <= 0) this.#halt('deadline');
      else cancel = this.#deps.clock.after(left, check);
    };
    if (limits.deadlineAt !== undefined && limits.onCeiling !== 'pause') check();
    this.#deadline = { limits, cancel: () => cancel() };
  }

  #isLettingGo(): boolean {
    return this.#stop === 'closing' || this.#stop === 'lost';
  }

  /** Gives the run back. Results that landed are kept; calls that were cut off are left to the next owner. */
  async #letGo(): Promise<Exit> {
    await this.#settle();
    if (this.#stop === 'lost') return this.#lost();
    await this.#commit(this.#kept(this.#calls.takeEnded()));
    await this.#release({ seenSignals: this.state.messagesTaken });
    return { kind: 'closed' };
  }

  /** What had landed here is not recorded; it is for the new owner to find out what became of those calls. */
  #lost(): Exit {
    const { run } = this.state.identity;
    const message = `Another process took over the run ${run}, and goes on with it. This one was silent for too long.`;
    this.#deps.onFault(new PilotageError('lease_lost', message, { data: { run } }));
    return { kind: 'lost' };
  }

  /** Whoever has the run next is told when a `once` call of it goes on here although it was given up. */
  #release(park: Park): Promise<boolean> {
    const { journal, atWork } = this.#deps;
    const leavesWork = atWork.hasAny(keyPrefixOf(this.state.identity));
    return journal.release(this.lease, leavesWork ? { ...park, leavesWork } : park);
  }

  /** The run may be resumed at once; a worker tries it again after a while. */
  async #giveUp(): Promise<void> {
    const { clock, onFault } = this.#deps;
    const park = { wakeAt: clock.now() + TRY_AGAIN_MS, seenSignals: Number.MAX_SAFE_INTEGER };
    await this.#release(park).catch(onFault);
  }
}

/** What the handles of a run are told when it is let go of. */
function reasonOf({ kind }: Exit, { ending }: RunState): HandleReason {
  if (kind === 'lost') return 'lost';
  if (kind === 'closed') return 'closing';
  if (ending === null || kind !== 'ended') return 'let_go';
  if (ending.kind === 'failed') return 'failed';
  return ending.reason === 'cancelled' ? 'cancelled' : 'finished';
}

/** A broken run is left alone for so long. */
export const TRY_AGAIN_MS = 5_000;

/** A call that ended by itself, not because it was stopped, or that waits for somebody. */
function isResult(body: EntryBody): boolean {
  if (isDoubt(body)) return false;
  if (body.kind !== 'call_ended') return body.kind === 'paused' || body.kind === 'awaiting';
  return body.outcome.kind === 'value' || body.outcome.kind === 'error';
}

/** The next owner finds out for itself. */
function isDoubt(body: EntryBody): boolean {
  return body.kind === 'paused' && body.reason === 'in_doubt';
}

function isPlan({ move: { decision } }: OpenStep): boolean {
  return decision.kind === 'call_parallel' && decision.plan !== undefined;
}

/** A planner and tools that never wait would keep timers, signals and other runs from their turn for ever. */
const STEPS_PER_TURN = 32;

/** Lets the event loop go round once. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isHardCancel(message: Message): boolean {
  return message.type === 'CANCEL' && message.payload?.['hard'] !== false;
}
