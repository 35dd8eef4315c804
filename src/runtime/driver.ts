/**
 * Carries one run forward while this process holds its lease: asks what the run needs, does it, writes it down, and asks
 * again. Every fact goes through `#commit`.
 *
 * Invariants:
 * D1 A fact is applied to the state, and told to listeners, only after the journal has it.
 * D2 Nothing is in flight when the driver exits, but for work that ignored its abort for the whole grace time.
 * D3 A refused append (lease or head) ends the driver; it never tries to win.
 */
import type { LoadedInput } from '../core/context.ts';
import type { Control } from '../core/control.ts';
import type { CallEnded, Entry, EntryBody } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { deepFreeze } from '../core/json.ts';
import type { Limits } from '../core/limits.ts';
import type { Delta } from '../core/planner.ts';
import type { Append, Claim, RunStatus } from '../journal/port.ts';
import type { SessionTurn } from '../journal/session-memory.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import { applyEntry, nextStep, type RunState } from '../view/run-state.ts';
import { appendAgain } from './append.ts';
import { Calls } from './calls.ts';
import { takeControls } from './controls.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Flight, LazySignal } from './flight.ts';
import { loadInputs } from './inputs.ts';
import { next } from './next.ts';
import { type Ask, askPlanner } from './plan.ts';
import { turnOf } from './session-memory.ts';

/** Why a driver let go of its run. */
export type Exit =
  /** Parked although `hasNews`: it has to be claimed again. */
  | { readonly kind: 'ended' | 'parked' }
  /** Another process has the run. */
  | { readonly kind: 'lost' }
  /** This runtime was closed; the run stays due. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'broken'; readonly error: unknown };

export class RunDriver {
  readonly state: RunState;
  readonly fence: number;
  readonly #deps: DriverDeps;
  readonly #calls: Calls;
  /** The planner's moves, one after another, under the run's one signal. */
  readonly #moves: Flight;
  readonly #signal = new LazySignal();
  #toolView: { readonly found: readonly string[]; readonly tools: AuthorisedTools } | undefined;
  /** The attachments with their bytes, once they were read. */
  #inputs: readonly LoadedInput[] | undefined;
  #inboxDirty: boolean;
  /** Why everything in flight is being stopped, once it is. */
  #stop: 'cancel' | 'deadline' | 'closing' | 'lost' | undefined;
  #committing: Promise<void> | undefined;
  #deadline: { readonly limits: Limits; readonly cancel: () => void } | undefined;

  constructor(deps: DriverDeps, state: RunState, claim: Claim) {
    this.#deps = deps;
    this.state = state;
    this.fence = claim.fence;
    this.#moves = new Flight(deps.clock, () => {});
    this.#inboxDirty = claim.signals > state.controlsTaken;
    this.#calls = new Calls({
      deps,
      state,
      begin: (step, call) => this.#commit([{ kind: 'call_began', step, call }]),
      tools: () => this.#tools(),
    });
  }

  /** Something came, or may have come, after the inbox was last read. */
  get hasNews(): boolean {
    return this.#inboxDirty;
  }

  /** Something may be new in the inbox. A hard cancel is heard at once, everything else at the next boundary. */
  poke(): void {
    this.#inboxDirty = true;
    this.#deps.journal.inbox(this.state.identity.run).then((controls) => {
      if (controls.some(isHardCancel)) this.#halt('cancel');
    }, this.#deps.onFault);
  }

  /** Lets go of the run: `closing` gives it back, `lost` only stops. */
  stop(why: 'closing' | 'lost'): void {
    this.#halt(why);
  }

  async drive(): Promise<Exit> {
    try {
      return await this.#loop();
    } catch (error) {
      this.#halt('lost');
      await this.#calls.settle();
      if (PilotageError.is(error, 'lease_lost')) return this.#lost();
      await this.#giveUp();
      return { kind: 'broken', error };
    } finally {
      this.#deadline?.cancel();
      this.#calls.close();
    }
  }

  async #loop(): Promise<Exit> {
    const { clock, newToken } = this.#deps;
    for (;;) {
      if (this.#isLettingGo()) return this.#letGo();
      if (this.#inboxDirty && this.#isBoundary()) await this.#takeControls();
      this.#armDeadline();
      const todo = next(this.state, clock, newToken);
      const goesOn = todo.do === 'plan' || todo.do === 'calls';
      if (goesOn && this.#stop !== undefined && this.#calls.isIdle && !this.#inboxDirty) return this.#startOver();
      switch (todo.do) {
        case 'end':
          return { kind: 'ended' };
        case 'record':
          await this.#record(todo.entries);
          break;
        case 'plan':
          if (nextStep(this.state) % STEPS_PER_TURN === STEPS_PER_TURN - 1) await turn();
          if (this.state.context.inputs !== undefined && this.#inputs === undefined) await this.#loadInputs();
          // Stopped: why is in the inbox.
          if (this.#stop === undefined) await this.#commit((await askPlanner(this.#ask())) ?? []);
          break;
        case 'calls': {
          const ended = await this.#carryOut();
          await this.#commit(this.#isLettingGo() ? ended.filter(isResult) : ended);
          break;
        }
        case 'park':
          await this.#park(todo.wakeAt);
          return { kind: 'parked' };
        default:
          todo satisfies never;
      }
    }
  }

  /** Between steps, while paused, or on the way to an ending; after it nothing is taken. */
  #isBoundary(): boolean {
    const { open, ending } = this.state;
    if (ending !== null) return false;
    if (open === null || open.move.decision.kind === 'request_pause') return true;
    return this.#stop !== undefined && this.#calls.inFlight === 0;
  }

  async #takeControls(): Promise<void> {
    const { journal, clock, newToken } = this.#deps;
    this.#inboxDirty = false;
    const controls = await journal.inbox(this.state.identity.run);
    if (controls.length === 0) return;
    const { entries, status } = takeControls(this.state, controls, clock.now(), newToken);
    const takes = controls.map((control) => control.id);
    await this.#commit(entries, status, takes);
    // A turn of the event loop: whoever answered a pause can begin to listen before the planner is asked.
    if (entries.some(({ kind }) => kind === 'resumed')) await turn();
  }

  /** Only an ending finds calls in flight: they are stopped, and heard out, before it is written. */
  async #record(entries: readonly EntryBody[]): Promise<void> {
    if (this.#calls.inFlight > 0) {
      this.#halt('cancel');
      await this.#calls.settle();
    }
    const landed = this.#calls.take();
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
    };
  }

  /** Passes a move's deltas on, with the offset that shows a reader what it has missed. */
  #teller(): (delta: Delta) => void {
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

  #carryOut(): Promise<readonly CallEnded[]> {
    const { open } = this.state;
    if (open === null) return Promise.resolve([]);
    if (this.#stop === undefined) return this.#calls.advance(open);
    return this.#calls.settle().then(() => this.#calls.take());
  }

  async #park(wakeAt: number | null): Promise<void> {
    const { run } = this.state.identity;
    const parked = await this.#deps.journal.release(
      { run, fence: this.fence },
      { wakeAt, seenSignals: this.state.controlsTaken },
    );
    if (!parked) this.#inboxDirty = true;
  }

  /** A deadline that had stopped everything was moved: what was aborted stays so, and a fresh driver is needed. */
  async #startOver(): Promise<Exit> {
    const { run } = this.state.identity;
    await this.#deps.journal.release({ run, fence: this.fence }, { seenSignals: this.state.controlsTaken });
    this.#inboxDirty = true;
    return { kind: 'parked' };
  }

  #tools(): AuthorisedTools {
    const { scopes, found } = this.state;
    if (this.#toolView?.found !== found) this.#toolView = { found, tools: this.#deps.toolsOf(scopes, found) };
    return this.#toolView.tools;
  }

  /** Appends, then applies, then tells. One at a time: a call may begin while another's end is being written. */
  #commit(bodies: readonly EntryBody[], status?: RunStatus, takes?: readonly string[]): Promise<void> {
    if (bodies.length === 0) return Promise.resolve();
    const before = this.#committing;
    if (before !== undefined) {
      const again = (): Promise<void> => this.#commit(bodies, status, takes);
      return before.then(again, again);
    }
    this.#committing = this.#commitNow(bodies, status, takes);
    return this.#committing;
  }

  async #commitNow(bodies: readonly EntryBody[], status?: RunStatus, takes?: readonly string[]): Promise<void> {
    const { journal, clock, hub, remembers } = this.#deps;
    const { identity, head } = this.state;
    const at = clock.now();
    const entries = toEntries(bodies, head, at);
    const plain = { run: identity.run, fence: this.fence, expected: head, entries };
    const changed = status ?? statusAfter(bodies);
    const turn = remembers ? turnOf(this.state, bodies.at(-1), at) : undefined;
    const request = changed === undefined && takes === undefined ? plain : withChanges(plain, changed, takes, turn);
    try {
      try {
        await journal.append(request);
      } catch (error) {
        await appendAgain(this.#deps, request, error);
      }
      for (const entry of entries) applyEntry(this.state, entry);
    } finally {
      this.#committing = undefined;
    }
    if (!hub.hasListeners(identity.run)) return;
    for (const entry of entries) hub.tell(identity.run, { type: 'entry', entry });
  }

  #halt(why: 'cancel' | 'deadline' | 'closing' | 'lost'): void {
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
    await this.#calls.settle();
    if (this.#stop === 'lost') return this.#lost();
    await this.#commit(this.#calls.take().filter(isResult));
    const { run } = this.state.identity;
    await this.#deps.journal.release({ run, fence: this.fence }, { seenSignals: this.state.controlsTaken });
    return { kind: 'closed' };
  }

  /** What had landed here is not recorded; it is for the new owner to find out what became of those calls. */
  #lost(): Exit {
    const { run } = this.state.identity;
    const message = `Another process took over the run ${run}, and goes on with it. This one was silent for too long.`;
    this.#deps.onFault(new PilotageError('lease_lost', message, { data: { run } }));
    return { kind: 'lost' };
  }

  /** The run may be resumed at once; a worker tries it again after a while. */
  async #giveUp(): Promise<void> {
    const { journal, clock, onFault } = this.#deps;
    const { run } = this.state.identity;
    const park = { wakeAt: clock.now() + TRY_AGAIN_MS, seenSignals: Number.MAX_SAFE_INTEGER };
    await journal.release({ run, fence: this.fence }, park).catch(onFault);
  }
}

/** A broken run is left alone for so long. */
const TRY_AGAIN_MS = 5_000;

/** A call that ended by itself, not because it was stopped. */
function isResult({ outcome }: CallEnded): boolean {
  return outcome.kind === 'value' || outcome.kind === 'error';
}

/** A planner and tools that never wait would keep timers, signals and other runs from their turn for ever. */
const STEPS_PER_TURN = 32;

/** Lets the event loop go round once. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isHardCancel(control: Control): boolean {
  return control.type === 'CANCEL' && control.payload?.['hard'] !== false;
}

/** The bodies themselves become the entries: each was made for this one commit. */
function toEntries(bodies: readonly EntryBody[], head: number, at: number): readonly Entry[] {
  let seq = head;
  for (const body of bodies as readonly { seq?: number; at?: number }[]) {
    seq += 1;
    body.seq = seq;
    body.at = at;
    freezeEntry(body as Entry);
  }
  return bodies as readonly Entry[];
}

/** Most parts were frozen when they were captured; a deep walk of every entry would look at all of them again. */
function freezeEntry(entry: Entry): void {
  if (entry.kind === 'call_ended') deepFreeze(entry.outcome);
  else if (entry.kind !== 'moved' || entry.rejected !== undefined) deepFreeze(entry);
  Object.freeze(entry);
}

function withChanges(
  request: Append,
  status: RunStatus | undefined,
  takes: readonly string[] | undefined,
  turn: SessionTurn | undefined,
): Append {
  return {
    ...request,
    ...(status === undefined ? {} : { status }),
    ...(takes === undefined ? {} : { takes }),
    ...(turn === undefined ? {} : { turn }),
  };
}

/** The status that the last of these entries leaves the run in, if they change it. */
function statusAfter(bodies: readonly EntryBody[]): RunStatus | undefined {
  const last = bodies.at(-1);
  switch (last?.kind) {
    case 'finished':
      return last.reason === 'cancelled' ? 'cancelled' : 'finished';
    case 'failed':
      return 'failed';
    case 'paused':
      return 'paused';
    case 'resumed':
      return 'running';
    default:
      return undefined;
  }
}
