/**
 * Graphs of tasks: what the scheduler costs a node, and how near to the least possible time it comes. `--dags FILE` replays
 * recorded graphs in place of the measures.
 */
import { readFileSync } from 'node:fs';
import type { Branch } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, local, type Runtime, tool } from '#pilotage';
import { Schedule } from '#runtime';
import { floor } from './dag-floor.ts';
import { boundMs, DONE, graphOf, LIMIT, RANDOM_GRAPHS, type TaskGraph, virtualMs, workMs } from './dag-graphs.ts';
import { type Measured, type Row, short, type Work } from './measure.ts';
import { table } from './table.ts';

const CPU_ROUNDS = 15;
const TIMER_ROUNDS = 3;
const RUN_ROUNDS = 7;

type Runner = (branches: readonly Branch[], work: (task: number) => Promise<unknown>) => Promise<void>;

/** The scheduler as the runtime uses it, without a run around it. */
const ours: Runner = (branches, work) => {
  const schedule = new Schedule({ plan: 'bench', concurrency: LIMIT });
  schedule.grow(branches, []);
  let running = 0;
  return new Promise((resolve, reject) => {
    const end = (call: number): void => {
      running -= 1;
      schedule.ended([{ call, outcome: DONE }]);
      if (schedule.open === 0) resolve();
      else advance();
    };
    const advance = (): void => {
      while (running < LIMIT) {
        const call = schedule.next(() => true);
        if (call === undefined) return;
        running += 1;
        work(call).then(() => end(call), reject);
      }
    };
    advance();
  });
};

export async function dag(): Promise<Measured> {
  const keys: Record<string, number> = {};
  const rows: Row[] = [];
  for (const graph of RANDOM_GRAPHS) {
    const { ourUs, floorUs } = await cpuOf(graph);
    if (graph.branches.length === 10_000) worst(keys, 'dag_10k_cpu_us', ourUs);
    rows.push([
      `CPU a node, ${graph.name}, nodes that end at once`,
      `${ourUs} us`,
      `${floorUs} us by hand (at most 5)`,
    ]);
  }
  for (const graph of RANDOM_GRAPHS) {
    const bound = boundMs(graph);
    const ratio = virtualMs(graph) / bound;
    worst(keys, 'dag_10k_virtual_ratio', ratio);
    rows.push([`${graph.name}, 1 ms a node, in virtual time`, String(short(ratio)), `over the bound, ${bound} ms (1)`]);
  }
  for (const graph of RANDOM_GRAPHS) {
    const our = await timed(graph, ours);
    const byHand = await timed(graph, floor);
    worst(keys, 'dag_timer_ratio', our.ratio);
    const note = `over the bound of what the timers took; ${our.ms} ms in all. By hand ${byHand.ratio}, ${byHand.ms} ms`;
    rows.push([`${graph.name}, timers of 1 ms`, String(our.ratio), note]);
  }
  keys['dag_1k_run_cpu_us'] = await cpuOfRun(RANDOM_GRAPHS[0] as TaskGraph);
  rows.push(['CPU a node of a plan, a whole run, wide 1k, in memory', `${keys['dag_1k_run_cpu_us']} us`]);
  return { keys, rows };
}

function worst(keys: Record<string, number>, name: string, value: number): void {
  keys[name] = Math.max(keys[name] ?? 0, value);
}

/** Microseconds a node, the best of some rounds in which both take turns. */
async function cpuOf({ branches }: TaskGraph): Promise<{ readonly ourUs: number; readonly floorUs: number }> {
  const atOnce = async (): Promise<void> => {};
  let ourUs = Number.POSITIVE_INFINITY;
  let floorUs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < CPU_ROUNDS; round += 1) {
    floorUs = Math.min(floorUs, await usOf(() => floor(branches, atOnce)));
    ourUs = Math.min(ourUs, await usOf(() => ours(branches, atOnce)));
  }
  return { ourUs: short(ourUs / branches.length), floorUs: short(floorUs / branches.length) };
}

async function usOf(work: Work): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The round that came nearest to its own bound: with the time that each timer really took. */
async function timed(graph: TaskGraph, run: Runner): Promise<{ readonly ms: number; readonly ratio: number }> {
  let best = { ms: Number.POSITIVE_INFINITY, ratio: Number.POSITIVE_INFINITY };
  for (let round = 0; round < TIMER_ROUNDS; round += 1) {
    const took = graph.ms.map(() => 0);
    const begin = performance.now();
    await run(graph.branches, (task) => timer(graph.ms[task] ?? 0, took, task));
    const ms = performance.now() - begin;
    const ratio = ms / boundMs({ needs: graph.needs, ms: took });
    if (ratio < best.ratio) best = { ms: short(ms), ratio: short(ratio) };
  }
  return best;
}

function timer(ms: number, took: number[], task: number): Promise<void> {
  const begin = performance.now();
  return new Promise((resolve) => {
    const end = (): void => {
      took[task] = performance.now() - begin;
      resolve();
    };
    setTimeout(end, ms);
  });
}

/** The best of some rounds. */
async function cpuOfRun({ branches, name: plan }: TaskGraph): Promise<number> {
  const work = tool({
    name: 'work',
    description: 'Does nothing',
    inputSchema: { type: 'object' },
    effect: 'pure',
    execute: async () => null,
  });
  const runtime = createRuntime({
    planner: ({ trajectory }) =>
      trajectory.count === 0
        ? { kind: 'call_parallel', plan, branches, onInvalid: 'per_branch', concurrency: LIMIT }
        : { kind: 'finish', reason: 'goal' },
    tools: [work],
    journal: memoryJournal(),
  });
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < RUN_ROUNDS; round += 1) {
    best = Math.min(best, await usOf(() => runPlan(runtime, branches.length)));
  }
  await runtime.close();
  return short(best / branches.length);
}

async function runPlan(runtime: Runtime, nodes: number): Promise<void> {
  const run = await runtime.start('Carry it out.', { identity: local('bench') });
  const result = await run.result();
  if (result.status !== 'finished' || result.usage.calls !== nodes) throw new Error('The plan went wrong.');
}

interface RecordedGraphs {
  readonly dags: readonly {
    readonly id: string;
    readonly tasks: readonly { readonly id: string; readonly deps: readonly string[]; readonly ms: number | null }[];
  }[];
}

/**
 * Recorded graphs with the times that were recorded, a second as a millisecond: one task after another, ours, and the bound.
 * Graphs without times are left out.
 */
export function replayGraphs(path: string): string {
  const { dags } = JSON.parse(readFileSync(path, 'utf8')) as RecordedGraphs;
  const graphs = dags.flatMap(({ id, tasks }): TaskGraph[] => {
    if (tasks.some(({ ms }) => ms === null)) return [];
    const branches = tasks.map((task): Branch => ({ id: task.id, tool: 'work', args: {}, after: task.deps }));
    return [
      graphOf(
        id,
        branches,
        tasks.map(({ ms }) => (ms ?? 0) / 1_000),
      ),
    ];
  });
  const head = ['graph', 'tasks', 'one by one, ms', 'ours, ms', 'bound, ms', 'gain', 'possible gain', 'ours / bound'];
  const rows = graphs.map((graph) => {
    const [work, our, bound] = [workMs(graph.ms), virtualMs(graph), boundMs(graph)];
    const gains = [work / our, work / bound, our / bound].map((ratio) => ratio.toFixed(3));
    return [graph.name, String(graph.branches.length), ...[work, our, bound].map((ms) => ms.toFixed(1)), ...gains];
  });
  return table('lrrrrrrr', [head, ...rows]);
}
