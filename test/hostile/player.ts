/** Plays cases: an agent with a hostile model server and a hostile tool, until its run has ended or waits for somebody. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ERROR_CONSEQUENCES } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { openaiCompatible } from '#model/openai-compatible';
import { createRuntime, local, type Run, type Runtime } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Effect } from '#pilotage/tools';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import type { RunResult } from '#runtime';
import { type Mode, type Plan, planOf } from './cases.ts';
import { oddTool } from './tools.ts';

const STALL_MS = 300;
const DEADLINE_MS = 2_500;
const PATIENCE_MS = 200;
/** A case that takes longer is stuck. */
const STUCK_MS = 30_000;

export interface Played {
  readonly plan: Plan;
  /** `finished: goal`, `failed: <code>`, `paused: <reason>`. */
  readonly ending: string;
  /** What is wrong with it. */
  readonly problem?: string;
  readonly ms: number;
}

export class Player {
  readonly #folder = mkdtempSync(join(tmpdir(), 'pilotage-hostile-'));
  readonly #journal: Journal = sqliteJournal({ path: join(this.#folder, 'pilotage.db'), synchronous: 'normal' });
  readonly #server: Worker;
  readonly #baseUrl: string;
  readonly #runtimes = new Map<string, Runtime>();
  readonly faults: Record<string, number> = {};

  static async open(): Promise<Player> {
    const server = new Worker(new URL('model-server.ts', import.meta.url));
    const port = await new Promise<number>((resolve, reject) => {
      server.once('message', resolve);
      server.once('error', reject);
    });
    return new Player(server, `http://127.0.0.1:${port}/v1`);
  }

  private constructor(server: Worker, baseUrl: string) {
    this.#server = server;
    this.#baseUrl = baseUrl;
  }

  /** @param again which time it is that the case is played, if it was played before. */
  async play(seed: number, again: number = 0): Promise<Played> {
    const plan = planOf(seed);
    const started = performance.now();
    const { ending, problem } = await this.#course(plan, `case_${seed}_${again}`);
    const ms = Math.round(performance.now() - started);
    return problem === undefined ? { plan, ending, ms } : { plan, ending, ms, problem };
  }

  async close(): Promise<void> {
    for (const runtime of this.#runtimes.values()) await runtime.close();
    await this.#journal.close();
    await this.#server.terminate();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #course(plan: Plan, id: string): Promise<{ readonly ending: string; readonly problem?: string }> {
    const runtime = this.#runtimeOf(plan.mode, plan.effect);
    let run: Run;
    try {
      run = await runtime.start(`Do something odd: ${id}.`, {
        identity: local('ana', { run: id }),
        limits: { steps: 8, deadlineAt: Date.now() + DEADLINE_MS },
        conversation: false,
      });
    } catch (error) {
      return { ending: 'not started', problem: `it was not started: ${String(error)}` };
    }
    if (plan.listens) void listen(run);
    const result = await within(run.result(), STUCK_MS);
    if (result === undefined) return { ending: 'stuck', problem: `neither ended nor waiting after ${STUCK_MS} ms` };
    const ending = endingOf(result);
    const problem = problemOf(result, plan);
    // Its deadline may have come first.
    if (result.status === 'paused')
      await within(
        run.cancel().catch(() => {}),
        STUCK_MS,
      );
    return problem === undefined ? { ending } : { ending, problem };
  }

  #runtimeOf(mode: Mode, effect: Effect): Runtime {
    const key = `${mode} ${effect}`;
    const found = this.#runtimes.get(key);
    if (found !== undefined) return found;
    const model = openaiCompatible({ baseUrl: this.#baseUrl, model: 'hostile' });
    const more = { stallMs: STALL_MS, retries: 1 };
    const planner = {
      native: () => react({ model, ...more }),
      text: () => react({ model: { model, toolCalls: 'text' }, ...more }),
      pipeline: () => pipeline({ model, replans: 1, stream: effect === 'read', ...more }),
    }[mode]();
    const runtime = createRuntime({
      planner: { ...planner, name: key },
      tools: [oddTool(effect, (run) => planOf(seedOf(run)).tool)],
      journal: this.#journal,
      patienceMs: PATIENCE_MS,
      maxLiveRuns: 64,
      maxLiveRunsPerTenant: 64,
      onFault: (error) => {
        const { code = 'untyped' } = Object(error) as { code?: string };
        this.faults[code] = (this.faults[code] ?? 0) + 1;
      },
    });
    this.#runtimes.set(key, runtime);
    return runtime;
  }
}

/** Of a run, or of a task of it. */
function seedOf(run: string): number {
  return Number(/^case_(\d+)/.exec(run)?.[1] ?? 0);
}

/** Somebody who wants to see each token. */
async function listen(run: Run): Promise<void> {
  try {
    for await (const _ of run.events());
  } catch {
    // What the run came to is looked at elsewhere.
  }
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function endingOf(result: RunResult): string {
  switch (result.status) {
    case 'finished':
      return `finished: ${result.reason}`;
    case 'failed':
      return `failed: ${result.error.code}`;
    case 'paused':
      return `paused: ${result.pauses.map(({ reason }) => reason).join()}`;
    default:
      return result satisfies never;
  }
}

/** Every cause has a word that programs can go by. */
function problemOf(result: RunResult, { server }: Plan): string | undefined {
  if (result.status === 'failed') {
    const { code, message } = result.error;
    // Nothing that a model or a tool does is a fault of the planner or of the journal; but a server may refuse the request.
    const isRefused = code === 'planner_failed' && server === 'an odd status';
    const isTyped = code in ERROR_CONSEQUENCES && (isRefused || !OURS.includes(code));
    return isTyped ? undefined : `it failed with ${code}: ${message.slice(0, 300)}`;
  }
  if (result.status === 'paused') return result.pauses.length > 0 ? undefined : 'it is paused, and nobody is asked';
  return undefined;
}

/** `invalid_decision` is none: a model that says what cannot be recorded is told so three times. */
const OURS: readonly string[] = ['planner_failed', 'entry_refused', 'journal_corrupt', 'lease_lost'];
