/** Planners for runs that start other runs, and the decisions they make. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AwaitTask, Decision, SpawnSpec, SpawnTask } from '../../src/core/decision.ts';
import { type Identity, local, type Scope } from '../../src/core/identity.ts';
import type { Json, JsonObject } from '../../src/core/json.ts';
import { observe } from '../../src/core/observation.ts';
import type { PlannerFunction, RunView } from '../../src/core/planner.ts';
import type { Journal } from '../../src/journal/port.ts';
import type { Run } from '../../src/runtime/run.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { finish, turn } from './support.ts';

/** The session in which `local('ana')` runs. */
export const ANA: Scope = { tenant: 'local', user: 'ana', session: 'default' };

/** The run that starts the others, with an id that theirs can be told from: `p.<step>.<call>`. */
export const PARENT: Identity = local('ana', { run: 'p' });

/** One planner for all runs: each query has its own script. A query without one finishes with itself. */
export function plays(scripts: Readonly<Record<string, PlannerFunction>>): PlannerFunction {
  return (run, signal) => scripts[run.query]?.(run, signal) ?? finish(run.query);
}

type Spawning = Partial<SpawnSpec> & Partial<Pick<SpawnTask, 'task' | 'groupId' | 'callId'>>;

/** In the background, unless `more` says otherwise. */
export function spawns(query: string, { task = 'background', groupId, callId, ...spec }: Spawning = {}): SpawnTask {
  return {
    kind: 'spawn_task',
    task,
    spec: { description: `does ${query}`, query, ...spec },
    ...(groupId === undefined ? {} : { groupId }),
    ...(callId === undefined ? {} : { callId }),
  };
}

export function awaits(taskId: string, more: Omit<Partial<AwaitTask>, 'kind' | 'taskId'> = {}): AwaitTask {
  return { kind: 'await_task', taskId, ...more };
}

/** A branch that spawns. */
export function spawning(query: string, args: JsonObject = {}, spec: JsonObject = {}): { tool: string; args: Json } {
  return { tool: '_spawn_task', args: { ...args, spec: { description: `does ${query}`, query, ...spec } } };
}

/** A branch that awaits. */
export function awaiting(taskId: string, args: JsonObject = {}): { tool: string; args: Json } {
  return { tool: '_await_task', args: { task_id: taskId, ...args } };
}

/** Ends with what the planner was told of its last step. */
export const tellLast: PlannerFunction = (run) => finish(lastOf(run));

export function lastOf({ trajectory }: RunView): Json {
  const step = trajectory.step(trajectory.count - 1);
  return step === undefined ? null : observe(step);
}

/** The decisions in order, and then `tellLast`. */
export function thenTell(...decisions: readonly Decision[]): PlannerFunction {
  return (run, signal) => decisions[run.trajectory.count] ?? tellLast(run, signal);
}

export const fails: PlannerFunction = () => ({ kind: 'finish', reason: 'no_path', payload: { why: 'no way' } });

/** A file in a folder of its own, which is removed after the test. */
export function databaseFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-tasks-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'journal.db');
}

/** The payload that a run has finished with. */
export async function payloadOf(run: Run): Promise<Json | undefined> {
  const result = await run.result();
  if (result.status !== 'finished') throw new Error(`The run is ${result.status}.`);
  return result.payload;
}

/** The run is there, and has ended. */
export async function hasEnded({ journal }: { readonly journal: Journal }, run: string): Promise<boolean> {
  const { status = 'pending' } = (await journal.get(run)) ?? {};
  return status === 'finished' || status === 'failed' || status === 'cancelled';
}

/** The run waits for a task, and nobody drives it. */
export async function isWaiting({ journal }: { readonly journal: Journal }, run: string): Promise<boolean> {
  return (await journal.get(run))?.status === 'waiting';
}

/** A journal each of whose answers comes after a number of turns that the seed says. */
export function shuffledJournal(journal: Journal, seed: number): Journal {
  const random = seededRandom(seed);
  return new Proxy(journal, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key);
      if (typeof own !== 'function') return own;
      if (key === 'watch') return own.bind(target);
      return async (...args: unknown[]) => {
        for (let turns = Math.floor(random() * 3); turns > 0; turns -= 1) await turn();
        return own.apply(target, args);
      };
    },
  });
}
