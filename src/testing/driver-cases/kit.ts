/** What the cases of drivers are written with. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Decision, local, type RunView } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { type Advance, type Advanced, createRuntime, type Driver, type Runtime } from '#runtime';
import type { Tool, ToolContext } from '#tools';

/** An engine without runs. */
export interface DriverEngine {
  /** The driver of another process. `undefined`: that of the runtime itself. */
  driver(): Driver | undefined | Promise<Driver | undefined>;
  close?(): void | Promise<void>;
}

export interface DriverCase {
  readonly name: string;
  run(bench: DriverBench): Promise<void>;
}

/** What becomes of the wakes of a process. */
export type Wakes = (wake: Driver['wake'], run: string, at?: number) => Promise<void>;

export interface BenchProcess {
  readonly runtime: Runtime;
  /** What `advance` has said here, by the run. */
  readonly said: readonly (readonly [run: string, advanced: Advanced])[];
  /** How many calls of `advance` have no answer yet. */
  readonly under: () => number;
  readonly driver: Driver | undefined;
}

export class DriverBench {
  readonly journal: Journal = memoryJournal();
  /** How often the call of each run and step was carried out. */
  readonly done: Map<string, number> = new Map();
  readonly #open: () => Promise<DriverEngine>;
  readonly #engines: DriverEngine[] = [];
  readonly #runtimes: Runtime[] = [];
  #held: PromiseWithResolvers<void> | undefined;

  constructor(open: () => Promise<DriverEngine>) {
    this.#open = open;
  }

  /** Another engine. */
  async engine(): Promise<DriverEngine> {
    const engine = await this.#open();
    this.#engines.push(engine);
    return engine;
  }

  /** A process on the journal, which carries out runs if it `works`. */
  async process(engine: DriverEngine, works: boolean, wakes?: Wakes): Promise<BenchProcess> {
    const given = await engine.driver();
    const said: [string, Advanced][] = [];
    let under = 0;
    const started = Promise.withResolvers<void>();
    const told = async (run: string, advance: Advance): Promise<Advanced> => {
      under += 1;
      const advanced = await advance(run);
      under -= 1;
      said.push([run, advanced]);
      return advanced;
    };
    const driver: Driver | undefined = given && {
      start: async (advance) => {
        const listens = async (): Promise<void> => given.start((run) => told(run, advance));
        await listens().then(started.resolve, started.reject);
      },
      wake: (run, at) => (wakes ?? ((wake, ...about) => wake(...about)))(given.wake.bind(given), run, at),
      stop: () => given.stop(),
    };
    const runtime = createRuntime({
      planner,
      tools: [this.#step, this.#sleep, this.#ask, this.#hold],
      journal: this.journal,
      ...(driver === undefined ? {} : { driver }),
      onFault: () => undefined,
    });
    this.#runtimes.push(runtime);
    if (works) {
      runtime.work();
      if (driver !== undefined) await started.promise;
    }
    return { runtime, said, under: () => under, driver };
  }

  /** Calls of the tool `hold` wait from now on, until the returned function is called. */
  hold(): () => void {
    const held = Promise.withResolvers<void>();
    this.#held = held;
    return () => {
      this.#held = undefined;
      held.resolve();
    };
  }

  async close(): Promise<void> {
    this.#held?.resolve();
    await Promise.all(this.#runtimes.map((runtime) => runtime.close()));
    for (const engine of this.#engines) await engine.close?.();
    await this.journal.close();
  }

  readonly #step: Tool = this.#tool('step', async () => undefined);
  readonly #sleep: Tool = this.#tool('sleep', (context) => context.sleep({ forMs: 400 }));
  readonly #ask: Tool = this.#tool('ask', (context) => context.ask({ question: 'Go on?' }));
  readonly #hold: Tool = this.#tool('hold', async () => this.#held?.promise);

  #tool(name: string, work: (context: ToolContext) => Promise<unknown>): Tool {
    return {
      name,
      description: name,
      inputSchema: { type: 'object' },
      effect: 'keyed',
      execute: async (_: unknown, context: ToolContext) => {
        await work(context);
        const key = context.idempotencyKey;
        this.done.set(key, (this.done.get(key) ?? 0) + 1);
        return name;
      },
    } as Tool;
  }
}

/** The query names the calls, one after another. What the user said before the end is the answer. */
function planner({ query, trajectory, controls }: RunView): Decision {
  const tool = query.split(' ')[trajectory.count];
  if (tool !== undefined) return { kind: 'call_tool', tool, args: {} };
  return { kind: 'finish', reason: 'goal', payload: controls.map(({ payload }) => payload?.['message'] ?? '').join() };
}

export async function start(process: BenchProcess, query: string, id: string = crypto.randomUUID()): Promise<string> {
  return (await process.runtime.start(query, { identity: local(`session of ${id}`, { run: id }) })).id;
}

/** The run ends well, each of its calls was carried out once, and its answer is this. */
export async function ends(bench: DriverBench, process: BenchProcess, run: string, answer = ''): Promise<void> {
  const result = await process.runtime.run(run).result();
  assert.deepEqual(
    { status: result.status, payload: 'payload' in result && result.payload },
    { status: 'finished', payload: answer },
  );
  for (const [key, count] of bench.done) assert.equal(count, 1, `the call ${key} was carried out ${count} times`);
}

export async function met(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}
