/**
 * Carries one run forward while this process holds its lease: asks what the run needs, does it, writes it down, and asks
 * again. Every fact goes through `#commit`.
 *
 * Invariants:
 * D1 A fact is applied to the state, and told to listeners, only after the journal has it.
 * D2 Nothing is in flight when the driver exits, but for work that ignored its abort for the whole grace time.
 * D3 A refused append (lease or head) ends the driver; it never tries to win.
 */
import type { Control } from '../core/control.ts';
import type { Entry, EntryBody } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import type { Delta } from '../core/planner.ts';
import type { Claim, RunStatus } from '../journal/port.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import { applyEntry, nextStep, type RunState } from '../view/run-state.ts';
import { append } from './append.ts';
import { Calls } from './calls.ts';
import { takeControls } from './controls.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Flight, LazySignal } from './flight.ts';
import { next } from './next.ts';
import type { Notice } from './notices.ts';
import { askPlanner } from './plan.ts';

/** Why a driver let go of its run. */
export type Exit =
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
  readonly #signal = new LazySignal();
  #planning: Flight | undefined;
  #toolView: { readonly hasArtifacts: boolean; readonly tools: AuthorisedTools } | undefined;
  #inboxDirty: boolean;
  /** Why everything in flight is being stopped, once it is. */
  #stop: 'cancel' | 'deadline' | 'closing' | 'lost' | undefined;
  #committing: Promise<void> | undefined;

  constructor(deps: DriverDeps, state: RunState, claim: Claim) {
    this.#deps = deps;
    this.state = state;
    this.fence = claim.fence;
    this.#inboxDirty = claim.signals > state.controlsTaken;
    this.#calls = new Calls({
      deps,
      state,
      begin: (step, call) => this.#commit([{ kind: 'call_began', step, call }]),
      tools: () => this.#tools(),
    });
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
    const cancelTimer = this.#armDeadline();
    try {
      return await this.#loop();
    } catch (error) {
      this.#halt('lost');
      await this.#calls.settle();
      if (PilotageError.is(error, 'lease_lost') || PilotageError.is(error, 'journal_conflict')) return { kind: 'lost' };
      return { kind: 'broken', error };
    } finally {
      cancelTimer();
    }
  }

  async #loop(): Promise<Exit> {
    const { clock, newToken } = this.#deps;
    for (;;) {
      if (this.#stop === 'closing' || this.#stop === 'lost') return this.#letGo();
      if (this.#inboxDirty && this.#isBoundary()) await this.#takeControls();
      const todo = next(this.state, clock.now(), newToken);
      switch (todo.do) {
        case 'end':
          return { kind: 'ended' };
        case 'record':
          await this.#record(todo.entries);
          break;
        case 'plan':
          await this.#plan();
          break;
        case 'calls':
          await this.#carryOut();
          break;
        case 'park':
          if (await this.#park(todo.wakeAt)) return { kind: 'parked' };
          break;
        default:
          todo satisfies never;
      }
    }
  }

  /** Between steps, while paused, or on the way to an ending. */
  #isBoundary(): boolean {
    const { open } = this.state;
    if (open === null || open.move.decision.kind === 'request_pause') return true;
    return this.#stop !== undefined && this.#calls.inFlight === 0;
  }

  async #takeControls(): Promise<void> {
    this.#inboxDirty = false;
    const controls = await this.#deps.journal.inbox(this.state.identity.run);
    if (controls.length === 0) return;
    const { entries, status } = takeControls(this.state, controls, this.#deps.newToken);
    const takes = controls.map((control) => control.id);
    await this.#commit(entries, status, takes);
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

  async #plan(): Promise<void> {
    const { planner, clock, artifacts, newToken, hub } = this.#deps;
    const flight = new Flight(clock, () => {});
    this.#planning = flight;
    if (this.#stop !== undefined) flight.abort(this.#stopReason());
    const step = nextStep(this.state);
    const offsets = { text: 0, reasoning: 0 };
    const tell = (delta: Delta): void => {
      this.#tell({ type: 'delta', step, delta, offset: offsets[delta.type] });
      offsets[delta.type] += delta.text.length;
    };
    const streaming = hub.wantsTokens(this.state.identity.run);
    const tools = this.#tools();
    const signal = this.#signal;
    const ask = { planner, state: this.state, tools, flight, signal, clock, artifacts, streaming, tell, newToken };
    const entries = await askPlanner(ask);
    this.#planning = undefined;
    // An aborted planner's move is dropped; why it was aborted is found at the boundary.
    if (entries !== undefined) await this.#commit(entries);
  }

  async #carryOut(): Promise<void> {
    const { open } = this.state;
    if (open === null) return;
    if (this.#stop === undefined) return this.#commit(await this.#calls.advance(open));
    await this.#calls.settle();
    return this.#commit(this.#calls.take());
  }

  async #park(wakeAt: number | null): Promise<boolean> {
    const { run } = this.state.identity;
    const parked = await this.#deps.journal.release(
      { run, fence: this.fence },
      { wakeAt, seenSignals: this.state.controlsTaken },
    );
    if (!parked) this.#inboxDirty = true;
    return parked;
  }

  #tools(): AuthorisedTools {
    const { scopes, hasArtifacts } = this.state;
    if (this.#toolView?.hasArtifacts !== hasArtifacts) {
      this.#toolView = { hasArtifacts, tools: this.#deps.toolsOf(scopes, hasArtifacts) };
    }
    return this.#toolView.tools;
  }

  /** Appends, then applies, then tells. One at a time: a call may begin while another's end is being written. */
  async #commit(bodies: readonly EntryBody[], status?: RunStatus, takes?: readonly string[]): Promise<void> {
    if (bodies.length === 0) return;
    while (this.#committing !== undefined) await this.#committing;
    const committed = this.#commitNow(bodies, status, takes);
    this.#committing = committed.then(this.#committed, this.#committed);
    await committed;
  }

  readonly #committed = (): void => {
    this.#committing = undefined;
  };

  async #commitNow(bodies: readonly EntryBody[], status?: RunStatus, takes?: readonly string[]): Promise<void> {
    const { identity, head } = this.state;
    const at = this.#deps.clock.now();
    const entries = bodies.map((body, index) => Object.freeze({ ...body, seq: head + 1 + index, at }) as Entry);
    const changed = status ?? statusAfter(bodies);
    await append(this.#deps, {
      run: identity.run,
      fence: this.fence,
      expected: head,
      entries,
      ...(changed === undefined ? {} : { status: changed }),
      ...(takes === undefined ? {} : { takes }),
    });
    for (const entry of entries) {
      applyEntry(this.state, entry);
      this.#tell({ type: 'entry', entry });
    }
  }

  #tell(notice: Notice): void {
    this.#deps.hub.tell(this.state.identity.run, notice);
  }

  #halt(why: 'cancel' | 'deadline' | 'closing' | 'lost'): void {
    // A run that was lost or given back writes nothing more, whatever else stops it.
    if (this.#stop !== undefined && why !== 'lost' && why !== 'closing') return;
    this.#stop = why;
    const reason = this.#stopReason();
    this.#planning?.abort(reason);
    this.#calls.abort(reason);
  }

  #stopReason(): PilotageError {
    return new PilotageError('cancelled', `The run was stopped: ${this.#stop ?? 'cancel'}.`);
  }

  #armDeadline(): () => void {
    const { deadlineAt, onCeiling } = this.state.limits;
    if (deadlineAt === undefined || onCeiling === 'pause') return () => {};
    let cancel = (): void => {};
    const check = (): void => {
      const left = deadlineAt - this.#deps.clock.now();
      if (left <= 0) this.#halt('deadline');
      else cancel = this.#deps.clock.after(left, check);
    };
    check();
    return () => cancel();
  }

  /** Gives the run back. Results that landed are kept; calls that were cut off are left to the next owner. */
  async #letGo(): Promise<Exit> {
    await this.#calls.settle();
    if (this.#stop === 'lost') return { kind: 'lost' };
    await this.#commit(this.#calls.take().filter((ended) => ended.outcome.kind === 'value'));
    const { run } = this.state.identity;
    await this.#deps.journal.release({ run, fence: this.fence }, { seenSignals: this.state.controlsTaken });
    return { kind: 'closed' };
  }
}

function isHardCancel(control: Control): boolean {
  return control.type === 'CANCEL' && control.payload?.['hard'] !== false;
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
