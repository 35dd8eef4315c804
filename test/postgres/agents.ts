/** Runs whose tools write down what they did, and what is said of them when the store was away meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Entry, encodeEntry, PilotageError } from '#core';
import type { Journal } from '#journal';
import { local, type Runtime, type Tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';
import type { Effect } from '#pilotage/tools';
import { make } from '../kit/tools.ts';

const EFFECTS = ['read', 'keyed', 'once', 'pure'] as const satisfies readonly Effect[];
export const STEPS = 8;

/** What happened in the world. */
export class Ledger {
  /** How often each call was carried out, by its key. */
  readonly done: Map<string, { readonly effect: Effect; count: number }> = new Map();
  #heard: ((count: number) => void) | undefined;
  #count = 0;

  get tools(): readonly Tool[] {
    return EFFECTS.map((effect) =>
      make(
        effect,
        async (args, { idempotencyKey }) => {
          const before = this.done.get(idempotencyKey)?.count ?? 0;
          this.done.set(idempotencyKey, { effect, count: before + 1 });
          this.#count += 1;
          this.#heard?.(this.#count);
          return args['step'];
        },
        { effect },
      ),
    );
  }

  /** When so many calls have been carried out. */
  async reached(count: number): Promise<void> {
    if (this.#count >= count) return;
    await new Promise<void>((resolve) => {
      this.#heard = (now) => {
        if (now >= count) resolve();
      };
    });
  }

  /** Calls that were carried out more than once, and by their effect must not have been. */
  get repeated(): string[] {
    return [...this.done].flatMap(([key, { effect, count }]) => (effect === 'once' && count > 1 ? [key] : []));
  }
}

/** A call of each tool after another, twice. */
export function planner({ trajectory }: RunView): Decision {
  const step = trajectory.count;
  const tool = EFFECTS[step % EFFECTS.length];
  if (tool === undefined || step >= STEPS) return { kind: 'finish', reason: 'goal', payload: `done ${step}` };
  return { kind: 'call_tool', tool, args: { step } };
}

export async function startAll(runtime: Runtime, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `run-${index}`);
  await Promise.all(ids.map((run) => start(runtime, run)));
  return ids;
}

/** As long as the store cannot take it, whoever starts a run is told so, and may start it again. */
export async function start(runtime: Runtime, run: string): Promise<void> {
  for (;;) {
    try {
      await runtime.start('go', { identity: local(`session of ${run}`, { run }) });
      return;
    } catch (error) {
      // Whoever waits here is told why a run stands still.
      if (!PilotageError.is(error, 'journal_unavailable') && !PilotageError.is(error, 'journal_full')) throw error;
      await sleep(20);
    }
  }
}

/** As long as the store cannot be read, whoever asks is told so, and may ask again. */
export async function result(runtime: Runtime, run: string): Promise<unknown> {
  for (;;) {
    try {
      return await runtime.run(run).result();
    } catch (error) {
      // Whoever waits here is told why a run stands still.
      if (!PilotageError.is(error, 'journal_unavailable') && !PilotageError.is(error, 'journal_full')) throw error;
      await sleep(20);
    }
  }
}

/** Says what it has acknowledged. */
export class Acknowledged {
  readonly #entries: [run: string, entry: Entry][] = [];

  add(entry: Entry, run: string): void {
    this.#entries.push([run, entry]);
  }

  get count(): number {
    return this.#entries.length;
  }

  /** Entries that were acknowledged and are not there, and such that are there twice. */
  async lost(journal: Journal): Promise<string[]> {
    const runs = Map.groupBy(this.#entries, ([run]) => run);
    const lost: string[] = [];
    for (const [run, said] of runs) {
      const there = await journal.read(run);
      for (const [, entry] of said) {
        if (!isSame(there[entry.seq - 1], entry)) lost.push(`${run} ${entry.seq} ${entry.kind}`);
      }
      const calls = there.flatMap((entry) =>
        entry.kind === 'call_ended' ? [`${run} ${entry.step}.${entry.call}`] : [],
      );
      lost.push(...calls.filter((call, index) => calls.indexOf(call) !== index).map((call) => `${call} ended twice`));
    }
    return lost;
  }
}

/** As they are stored. */
function isSame(one: Entry | undefined, other: Entry): boolean {
  const stored = (entry: Entry): unknown => JSON.parse(encodeEntry(entry));
  return one !== undefined && isDeepStrictEqual(stored(one), stored(other));
}
