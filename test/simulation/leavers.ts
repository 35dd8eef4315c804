/** Those who do something with a run and then leave it alone: they read it in part, fork it, or ask what would be decided today. */

import { isJsonObject, PilotageError } from '#core';
import type { Run } from '#runtime';
import type { Ledger } from './ledger.ts';
import { oddValue } from './odd.ts';
import type { SimulatedProcess } from './process.ts';
import type { ForkAct, Reader, SimulationScript } from './script.ts';
import { isOfAnotherVersion, isStoreError } from './store-errors.ts';
import type { Watching } from './watching.ts';
import type { Worker } from './worker.ts';

export interface LeaversWorld {
  readonly script: SimulationScript;
  readonly ledger: Ledger;
  readonly watching: Watching;
  readonly worker: (index: number) => Worker | undefined;
}

/** What may rightly be said to somebody who comes at a bad moment. */
const ORDINARY: ReadonlySet<string> = new Set([
  'run_not_found',
  'runtime_closed',
  'idempotency_conflict',
  // A step that was not taken, or that leaves nothing of the limits.
  'invalid_config',
]);

export class Leavers {
  readonly #world: LeaversWorld;
  #forked = 0;
  readonly #forking = new Map<ForkAct, SimulatedProcess>();

  constructor(world: LeaversWorld) {
    this.#world = world;
  }

  /** A fork is on its way, or to come. */
  get isBusy(): boolean {
    const isForking = [...this.#forking.values()].some(({ alive }) => alive);
    return isForking || this.#forked < this.#world.script.forks.length;
  }

  async fork(act: ForkAct): Promise<void> {
    this.#forked += 1;
    const process = this.#world.worker(act.worker)?.process;
    if (process !== undefined) this.#forking.set(act, process);
    await this.#fork(act);
    this.#forking.delete(act);
  }

  async #fork({ root, task, worker, run, step, effects, result }: ForkAct): Promise<void> {
    const { ledger } = this.#world;
    const place = this.#world.worker(worker);
    const tree = [...ledger.runs.keys()].filter((id) => id === root || id.startsWith(`${root}.`));
    const of = tree[task % Math.max(tree.length, 1)];
    const first = of === undefined ? undefined : ledger.runs.get(of)?.entries[0];
    if (place?.runtime === undefined || of === undefined || first?.kind !== 'started') return;
    const taken = ledger.runs.get(of)?.entries.filter(({ kind }) => kind === 'moved').length ?? 0;
    const options = {
      identity: { ...first.identity, run },
      effects,
      ...(step === undefined ? {} : { step: step % (taken + 1) }),
      ...(result === undefined ? {} : { result: { value: { id: 'another', forked: true } } }),
    };
    ledger.tell('people', () => `${of}: forked as ${run} ${JSON.stringify(options)}`);
    const { watching } = this.#world;
    const forked = place.does((runtime, process) =>
      watching.wait(of, 'a fork', process, runtime.run(of).fork(options)),
    );
    if (forked !== undefined) await this.#heard(of, forked);
  }

  async read({ root, worker, how, after }: Reader): Promise<void> {
    const place = this.#world.worker(worker);
    if (place?.runtime === undefined) return;
    this.#world.ledger.tell('people', () => `${root}: ${how} by a reader`);
    if (how === 'replayed') return this.replay(root, place);
    const read = place.does((runtime) => readInPart(runtime.run(root), how, after));
    if (read !== undefined) await this.#heard(root, read);
  }

  /** @returns when it was compared. */
  async replay(run: string, place: Worker): Promise<void> {
    const { ledger, script, watching } = this.#world;
    const replayed = place.does((runtime, process) =>
      watching.wait(run, 'a replay', process, runtime.run(run).replay()),
    );
    if (replayed === undefined) return;
    const compared = replayed.then(({ divergence }) => {
      if (divergence === undefined || hasModel(run, ledger) || isUnderWay(run, divergence.step, script, ledger)) return;
      const now = JSON.stringify(divergence.now);
      ledger.violated('replay', `step ${divergence.step} would be decided as ${now} today`, run);
    });
    await this.#heard(run, compared);
  }

  async #heard(run: string, done: Promise<unknown>): Promise<void> {
    try {
      await done;
    } catch (error) {
      const isOrdinary = PilotageError.is(error) && ORDINARY.has(error.code);
      if (isOrdinary || isStoreError(error) || isOfAnotherVersion(error)) return;
      if (error === LEFT) return;
      this.#world.ledger.violated('no fault', `somebody who came by was told: ${String(error)}`, run);
    }
  }
}

const LEFT = oddValue('symbol');

async function readInPart(run: Run, how: Exclude<Reader['how'], 'replayed'>, after: number): Promise<void> {
  switch (how) {
    case 'unread':
      run.events();
      return;
    case 'dropped': {
      const events = run.events();
      for (let left = after; left > 0; left -= 1) if ((await events.next()).done === true) return;
      return;
    }
    case 'returned': {
      let left = after;
      for await (const _ of run.events()) {
        if (left === 0) return;
        left -= 1;
      }
      return;
    }
    case 'thrown':
      for await (const _ of run.events({
        redact: () => {
          throw LEFT;
        },
      }));
      return;
    case 'raced': {
      const [first, second] = await Promise.all([run.result(), run.result(), run.payload()]);
      void [first, second];
      return;
    }
    default:
      how satisfies never;
  }
}

/** Models may say something else today, and a plan that came in parts comes in parts. */
function hasModel(run: string, ledger: Ledger): boolean {
  const first = ledger.runs.get(run)?.entries[0];
  return first?.kind === 'started' && /^(react|pipeline|graph-stream)/.test(first.agent);
}

/** A plan that grows is recorded as far as it has come, and one that breaks off stays so. */
function isUnderWay(run: string, step: number, { plans }: SimulationScript, ledger: Ledger): boolean {
  const first = ledger.runs.get(run)?.entries[0];
  if (first?.kind !== 'started') return false;
  const { query, context } = first;
  const args = context?.args;
  const named = args !== undefined && isJsonObject(args) ? args['plan'] : undefined;
  return plans[typeof named === 'string' ? named : query]?.moves[step]?.growMs !== undefined;
}
