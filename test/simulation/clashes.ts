/** Those who start runs under names that others use too, and what each of them may be told. */
import { type ErrorCode, PilotageError, spawnerOf } from '#core';
import type { Runtime } from '#runtime';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';
import type { Clash } from './script-world.ts';
import { isStoreError } from './store-errors.ts';

type Keyed = Extract<Clash, { kind: 'key' }>;

interface KeyedStart {
  readonly run: string;
  readonly plan: string;
  readonly reused: boolean;
}

export interface ClashesWorld {
  readonly ledger: Ledger;
  /** Does it in the process of this worker; `undefined` while that is down. */
  readonly does: <T>(
    worker: number,
    act: (runtime: Runtime, process: SimulatedProcess) => Promise<T>,
  ) => Promise<T> | undefined;
  readonly after: (ms: number, act: () => void) => void;
}

export class Clashes {
  readonly #world: ClashesWorld;
  /** By session and key. */
  readonly #keyed = new Map<string, KeyedStart[]>();

  /** Starts that are to come. */
  #left: number;
  /** Those who wait for an answer. */
  readonly #asking = new Set<{ readonly process: SimulatedProcess }>();

  constructor(world: ClashesWorld, clashes: readonly Clash[]) {
    this.#world = world;
    this.#left = clashes.reduce((sum, { kind }) => sum + (kind === 'key' ? 2 : 1), 0);
  }

  /** A run may be started yet. */
  get isBusy(): boolean {
    return this.#left > 0 || [...this.#asking].some(({ process }) => process.alive);
  }

  begin(clash: Clash): void {
    if (clash.kind === 'id') {
      void this.#withId(clash);
      return;
    }
    void this.#withKey(clash, clash.worker, clash.plan);
    const { worker, afterMs, plan } = clash.again;
    this.#world.after(afterMs, () => void this.#withKey(clash, worker, plan));
  }

  /** Of each key one run was started, by one of those who asked; whoever asked for another one was refused. */
  check(): void {
    const { ledger } = this.#world;
    for (const [key, starts] of this.#keyed) {
      const runs = new Set(starts.map(({ run }) => run));
      const [run = ''] = runs;
      if (runs.size > 1) ledger.violated('ids', `the key ${key} stands for ${[...runs].join(' and ')}`);
      const fresh = starts.filter(({ reused }) => !reused).length;
      if (fresh > 1) ledger.violated('ids', `${fresh} were told that they had started the run of ${key}`, run);
      const first = ledger.runs.get(run)?.entries[0];
      const given = first?.kind === 'started' ? first.query : undefined;
      for (const { plan } of starts) {
        if (plan !== given)
          ledger.violated('ids', `${plan} was asked for under ${key}, and ${String(given)} is done`, run);
      }
    }
  }

  async #withId({ worker, tenant, user, session, run, plan }: Extract<Clash, { kind: 'id' }>): Promise<void> {
    const { ledger } = this.#world;
    // What is asked of a root stands in the script.
    if (spawnerOf(run) === undefined && !ledger.runs.has(run)) {
      this.#left -= 1;
      return;
    }
    ledger.tell('people', () => `${tenant}/${user}/${session} starts ${run}`);
    const identity = { tenant, user, session, run };
    const started = await this.#ask(worker, ID_REFUSALS, (runtime) => runtime.start(plan, { identity }));
    if (started === undefined) return;
    const first = ledger.runs.get(run)?.entries[0];
    const owner = first?.kind === 'started' ? first.identity : undefined;
    const isOwn = owner?.tenant === tenant && owner.user === user && owner.session === session;
    if (!isOwn) ledger.violated('no foreign data', 'its handle was given to somebody else', run);
  }

  async #withKey({ tenant, user, session, key }: Keyed, worker: number, plan: string): Promise<void> {
    const identity = { tenant, user, session };
    const options = { identity, idempotencyKey: key };
    const given = await this.#ask(worker, KEY_REFUSALS, (runtime) => runtime.tasks.spawn(plan, options));
    if (given === undefined) return;
    const name = `${tenant}/${user}/${session}/${key}`;
    const starts = this.#keyed.get(name) ?? [];
    this.#keyed.set(name, starts);
    starts.push({ run: given.run.id, plan, reused: given.reused });
  }

  /** `undefined` for what was rightly refused. */
  async #ask<T>(
    worker: number,
    refusals: ReadonlySet<ErrorCode>,
    act: (runtime: Runtime) => Promise<T>,
  ): Promise<T | undefined> {
    this.#left -= 1;
    try {
      return await this.#world.does(worker, async (runtime, process) => {
        const asking = { process };
        this.#asking.add(asking);
        try {
          return await act(runtime);
        } finally {
          this.#asking.delete(asking);
        }
      });
    } catch (error) {
      const isRefusal = PilotageError.is(error) && refusals.has(error.code);
      if (isRefusal || isStoreError(error)) return undefined;
      this.#world.ledger.violated('no fault', `whoever started a run was told: ${String(error)}`);
      return undefined;
    }
  }
}

/** The id is somebody else's, or kept for a task of a run that is there. */
const ID_REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'runtime_closed',
  'scope_mismatch',
  'invalid_config',
  'idempotency_conflict',
]);
const KEY_REFUSALS: ReadonlySet<ErrorCode> = new Set(['runtime_closed', 'idempotency_conflict']);
