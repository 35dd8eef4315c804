/** Looks at runs that were told something, or whose time has come: whether they are to be driven here now, at some time, or not at all. */
import { defined, PilotageError } from '#core';
import { hasEnded, type Journal, mayComeBack, type RunRecord, type RunStatus } from '#journal';
import { isPaused, type RunState, waitsForEvent } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { TRY_AGAIN_MS } from '../loop/let-go.ts';
import { goesOnAt } from '../loop/next.ts';
import type { Advances } from './advances.ts';
import type { Alarms } from './alarms.ts';
import { isDeadOwner } from './leases.ts';
import type { Refusals } from './pick-up.ts';
import type { Postponed } from './postponed.ts';
import type { QueuedRun } from './run-queue.ts';
import type { Cover } from './slices.ts';

const UNDER_WAY: readonly RunStatus[] = ['pending', 'running', 'waiting', 'paused'];
const PAGE = 200;

/** The tasks of the run that have not ended: those that it spawned, and those that carry out its calls. */
export async function* tasksUnderWay(journal: Pick<Journal, 'list'>, parent: string): AsyncGenerator<RunRecord, void> {
  for (let after: string | undefined; ; ) {
    const page = await journal.list({ parent, status: UNDER_WAY, limit: PAGE, ...defined({ after }) });
    yield* page;
    after = page.at(-1)?.identity.run;
    if (page.length < PAGE) return;
  }
}

export interface WakePorts {
  readonly later: Postponed;
  readonly alarms: Alarms;
  readonly refusals: Refusals;
  isClosing(): boolean;
  drives(run: string): boolean;
  /** False: the run is not driven here. */
  poke(run: string): boolean;
  record(run: string): Promise<RunRecord>;
  /** Drives a stored run as soon as there is a slot, or has it driven. */
  enqueue(waiting: QueuedRun): void;
  advances(): Advances | undefined;
  /** Whether a run is to be ended: a turn that waits for the turns before it, or one that could not be carried out here. */
  isCancelled(turn: Pick<RunRecord, 'head'> & { readonly run: string }): Promise<boolean>;
  /** Its turn has come, or it is gone. */
  forgetTurn(run: string): void;
  /** Whether the run goes on in a slice. */
  cover(identity: RunRecord['identity']): Cover;
  /** A look is over. */
  looked(): void;
}

export class Waking {
  readonly #deps: Pick<DriverDeps, 'journal' | 'clock' | 'hub' | 'onFault' | 'agentNamed'>;
  readonly #ports: WakePorts;
  readonly #waking = new Set<Promise<void>>();

  constructor(deps: Pick<DriverDeps, 'journal' | 'clock' | 'hub' | 'onFault' | 'agentNamed'>, ports: WakePorts) {
    this.#deps = deps;
    this.#ports = ports;
  }

  get underWay(): number {
    return this.#waking.size;
  }

  async settle(): Promise<void> {
    await Promise.all(this.#waking);
  }

  /** A run was told something, or was just stored, by one that is driven here. */
  wake(run: string, acceptChanges: boolean = false): void {
    if (!this.#ports.poke(run)) this.look(run, () => this.#wakeStored(run, acceptChanges));
  }

  /** Looks at a stored run, and again when the store could not. */
  look(run: string, look: () => Promise<void>): void {
    const { isClosing, later, looked } = this.#ports;
    const waking: Promise<void> = look()
      .catch((error: unknown) => {
        if (!this.isGone(run, error)) this.#deps.onFault(error);
        if (mayComeBack(error) && !isClosing()) later.after(TRY_AGAIN_MS, run, () => this.look(run, look));
        else this.#deps.hub.tell(run, { type: 'exit', error });
      })
      .then(() => {
        this.#waking.delete(waking);
        looked();
      });
    this.#waking.add(waking);
  }

  /** Its session was deleted since it was stored, or it was pruned: only who reads it wants to know. */
  isGone(run: string, error: unknown): boolean {
    const isGone = PilotageError.is(error, 'run_not_found');
    if (isGone) this.#ports.forgetTurn(run);
    return isGone;
  }

  /** The time of a parked run has come, or without `isTime` perhaps a signal. A living process that has it hears of that itself. */
  async ring(run: string, isTime = true): Promise<void> {
    const { drives, record, isClosing, refusals } = this.#ports;
    if (drives(run)) return;
    const { identity, priority, status, wakeAt, lease } = await record(run);
    if (isClosing() || hasEnded(status) || wakeAt === null || refusals.has(run)) return;
    if ((wakeAt !== undefined && !isTime) || (lease !== undefined && !isDeadOwner(lease.owner))) return;
    this.#ports.enqueue({ run, tenant: identity.tenant, priority });
  }

  /** A run of this state is followed here: when it is parked, and its time or a signal comes, it goes on here, unless it cannot. */
  remind(state: RunState): void {
    const { run } = state.identity;
    const { drives, isClosing, alarms } = this.#ports;
    if (drives(run) || isClosing() || state.ending !== null || !this.#deps.agentNamed(state.agent)) return;
    const at = goesOnAt(state, isPaused(state) ? undefined : state.modelAway?.retryAt);
    if (at !== null) alarms.set(run, at, false);
    if (waitsForEvent(state)) this.look(run, () => this.ring(run, false));
  }

  async #wakeStored(run: string, acceptChanges: boolean): Promise<void> {
    const { record, isClosing, alarms, refusals, advances } = this.#ports;
    const { identity, priority, status, wakeAt = 0, readAt, waits, head } = await record(run);
    if (waits === true) return this.#endCancelled({ identity, priority, head });
    this.#ports.forgetTurn(run);
    if (isClosing() || hasEnded(status)) return;
    // What is parked is left alone until its time, or until somebody says something to it; its tasks may not be.
    if (wakeAt === null) return this.wakeTasks(run);
    const cover = this.#ports.cover(identity);
    if (cover === 'leaving') return;
    const wakeInMs = wakeAt - readAt;
    if (wakeInMs > 0) {
      const at = this.#deps.clock.now() + wakeInMs;
      const driven = advances();
      if (driven !== undefined) driven.hand(run, at);
      else if (cover === 'none') alarms.set(run, at, status === 'waiting');
      return this.wakeTasks(run);
    }
    if (this.#ports.drives(run)) this.#ports.poke(run);
    else if (acceptChanges || !refusals.has(run) || (await this.#ports.isCancelled({ run, head }))) {
      this.#ports.enqueue({ run, tenant: identity.tenant, priority, acceptChanges });
    }
  }

  /** A turn that waits is ended by whoever hears that it was cancelled: the process in which that was said may be gone. */
  async #endCancelled({ identity, priority, head }: Pick<RunRecord, 'identity' | 'priority' | 'head'>): Promise<void> {
    const { run, tenant } = identity;
    const { drives, isCancelled, isClosing, cover, enqueue } = this.#ports;
    if (drives(run) || !(await isCancelled({ run, head })) || isClosing()) return;
    if (cover(identity) !== 'leaving') enqueue({ run, tenant, priority });
  }

  async wakeTasks(parent: string): Promise<void> {
    for await (const { identity } of tasksUnderWay(this.#deps.journal, parent)) this.wake(identity.run);
  }
}
