/**
 * Runs that wait for a time, an event or an answer: what they cost a process, how long it takes from a signal to the next step, how late timers are, and
 * what an open runtime uses while nothing happens. A schedule that fires every second, for an hour of simulated time.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, type Runtime, tool } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import { VirtualClock } from '#testing';
import { heapBytes, type Measured, median, short } from './measure.ts';
import { withScratch } from './scratch.ts';

const WAITING = 100_000;
const AT_ONCE = 200;
const SIGNALS = 200;
/** So many timers are due within so long, in each wave. */
const DUE = 10_000;
const DUE_MS = 1_000;
/** By then all of a wave wait. */
const UNTIL_DUE_MS = 40_000;
const IDLE_MS = 5_000;
const HOUR_SECONDS = 3_600;
const NEVER = { forMs: 365 * 86_400_000 };

/** When each run's planner was asked for its second step, and how late each timer was. Milliseconds. */
interface Seen {
  readonly steps: Map<string, number>;
  readonly lagsMs: number[];
  /** When the timers of the runs that sleep are due. Milliseconds since the epoch. */
  dueFrom: number;
}

export async function waits(): Promise<Measured> {
  return withScratch(async (folder) => {
    const path = join(folder, 'waiting.db');
    const made = await makeWaiting(path);
    const opened = await open(path);
    const due = await dueTimers(join(folder, 'due.db'));
    const fired = await hourOfSeconds();
    const perRun = short(opened.heapBytes / WAITING);
    return {
      keys: {
        waiting_runs: WAITING,
        waiting_bytes_in_process: perRun,
        waiting_bytes_on_disk: made.bytes,
        signal_to_step_ms: opened.signalMs,
        signal_to_step_p95_ms: opened.signalP95Ms,
        idle_cpu_percent: opened.idlePercent,
        due_timer_lag_ms: due.steady,
        due_timer_lag_cold_ms: due.cold,
        schedule_hour: fired,
      },
      rows: [
        [
          'a waiting run, in an open process',
          `${perRun} bytes`,
          `of ${WAITING.toLocaleString('en')}: a third each sleeps, waits for an event, asks`,
        ],
        ['a waiting run, on disk', `${made.bytes} bytes`, `made in ${made.msEach} ms each`],
        [
          'from a signal to the next step',
          `${opened.signalMs} ms`,
          `p95 ${opened.signalP95Ms} ms, SQLite, durable; at most 10 at the median`,
        ],
        ['an open runtime, while all of them wait', `${opened.idlePercent} % of a core`, 'at most 1'],
        [
          `a timer, of ${DUE.toLocaleString('en')} that are due within a second, cold`,
          `p95 ${due.cold.p95} ms late`,
          `p50 ${due.cold.p50} ms; all had gone on after ${due.cold.all_after} ms; ${due.cold.cpu_us} µs of the processor each; the first that go off in the process, whose code is compiled meanwhile`,
        ],
        [
          'the same, steady',
          `p95 ${due.steady.p95} ms late`,
          `p50 ${due.steady.p50} ms; all had gone on after ${due.steady.all_after} ms; ${due.steady.cpu_us} µs of the processor each; a second wave in the same process; at most 50 is wanted`,
        ],
        [
          'a schedule every second, for an hour of simulated time',
          `${fired.fired} runs`,
          `missed ${fired.missed}, twice ${fired.twice}`,
        ],
      ],
    };
  });
}

function runtimeOn(journal: Journal, seen: Seen, maxLiveRuns: number): Runtime {
  const inputSchema = { type: 'object' } as const;
  const effect = 'pure';
  const tools = [
    tool({ name: 'sleep', description: 's', effect, inputSchema, execute: (_, context) => context.sleep(NEVER) }),
    tool({
      name: 'event',
      description: 'e',
      effect,
      inputSchema,
      execute: (_, context) => context.event({ key: context.identity.run }),
    }),
    tool({
      name: 'ask',
      description: 'a',
      effect,
      inputSchema,
      execute: (_, context) => context.ask({ question: 'Well?' }),
    }),
    tool({
      name: 'due',
      description: 'd',
      effect,
      inputSchema,
      execute: async (_, context) => {
        const until = seen.dueFrom + ((Number(context.identity.run) % DUE) * DUE_MS) / DUE;
        await context.sleep({ until });
        seen.lagsMs.push(Date.now() - until);
      },
    }),
  ];
  const planner = {
    name: 'waits',
    next: ({
      identity,
      query,
      trajectory,
    }: {
      identity: { run: string };
      query: string;
      trajectory: { count: number };
    }) => {
      if (trajectory.count === 0) return { kind: 'call_tool', tool: query, args: {} } as const;
      seen.steps.set(identity.run, performance.now());
      return { kind: 'finish', reason: 'goal' } as const;
    },
  };
  return createRuntime({ planner, tools, journal, maxLiveRuns, maxLiveRunsPerTenant: maxLiveRuns });
}

const nothingSeen = (): Seen => ({ steps: new Map(), lagsMs: [], dueFrom: 0 });

async function startAll(
  runtime: Runtime,
  journal: Journal,
  count: number,
  query: (number: number) => string,
  first = 0,
): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, index) => first + from + index);
    await Promise.all(
      numbers.map((number) =>
        runtime.start(query(number), { identity: { ...local('bench'), run: String(number) }, conversation: false }),
      ),
    );
  }
  while ((await journal.list({ status: ['pending', 'running'], limit: 1 })).length > 0) await passed(10);
}

const KINDS = ['sleep', 'event', 'ask'] as const;

async function makeWaiting(path: string): Promise<{ readonly bytes: number; readonly msEach: number }> {
  const journal = sqliteJournal({ path, synchronous: 'normal' });
  const runtime = runtimeOn(journal, nothingSeen(), AT_ONCE);
  const before = performance.now();
  await startAll(runtime, journal, WAITING, (number) => KINDS[number % KINDS.length] ?? 'sleep');
  const msEach = short((performance.now() - before) / WAITING);
  await runtime.close();
  await journal.close();
  return { bytes: Math.round(statSync(path).size / WAITING), msEach };
}

interface Opened {
  readonly heapBytes: number;
  readonly idlePercent: number;
  readonly signalMs: number;
  readonly signalP95Ms: number;
}

/** The runtime and the journal that made the runs are closed: these are new ones, to which no run is known. */
async function open(path: string): Promise<Opened> {
  const heapBefore = heapBytes();
  const journal = sqliteJournal({ path });
  const seen = nothingSeen();
  const runtime = runtimeOn(journal, seen, 10);
  await runtime.waiting({ limit: 1 });
  // From its first use on it goes on with what is due.
  await runtime.run('0').state();
  const cpuBefore = process.cpuUsage();
  await passed(IDLE_MS);
  const { user, system } = process.cpuUsage(cpuBefore);
  const heap = heapBytes() - heapBefore;
  const times: number[] = [];
  for (let number = 0; number < SIGNALS; number += 1) {
    const run = String(1 + KINDS.length * number);
    const before = performance.now();
    await runtime.signal(run, number);
    while (!seen.steps.has(run)) await new Promise((resolve) => setImmediate(resolve));
    times.push((seen.steps.get(run) ?? Number.NaN) - before);
  }
  await runtime.close();
  await journal.close();
  const sorted = times.toSorted((left, right) => left - right);
  return {
    heapBytes: heap,
    idlePercent: short((user + system) / 10 / IDLE_MS),
    signalMs: short(median(times)),
    signalP95Ms: short(at(sorted, 0.95)),
  };
}

/** How late timers were, and what each cost the process. */
type Lags = {
  readonly p50: number;
  readonly p95: number;
  readonly all_after: number;
  readonly cpu_us: number;
};

/** Two waves in one process: the first meets code that has not run yet. */
export async function dueTimers(
  path: string,
  untilDueMs: number = UNTIL_DUE_MS,
): Promise<{ readonly cold: Lags; readonly steady: Lags }> {
  const journal = sqliteJournal({ path, synchronous: 'normal' });
  const seen = nothingSeen();
  const runtime = runtimeOn(journal, seen, AT_ONCE);
  const wave = async (first: number): Promise<Lags> => {
    seen.dueFrom = Date.now() + untilDueMs;
    seen.lagsMs.length = 0;
    await startAll(runtime, journal, DUE, () => 'due', first);
    if (Date.now() >= seen.dueFrom)
      throw new Error('The timers were due before all of them waited: make the time until then longer.');
    await passed(seen.dueFrom - Date.now());
    const cpuBefore = process.cpuUsage();
    while (seen.lagsMs.length < DUE) await passed(20);
    const { user, system } = process.cpuUsage(cpuBefore);
    const allAfter = Date.now() - seen.dueFrom;
    const sorted = seen.lagsMs.toSorted((left, right) => left - right);
    const cpuUs = Math.round((user + system) / DUE);
    return { p50: short(at(sorted, 0.5)), p95: short(at(sorted, 0.95)), all_after: allAfter, cpu_us: cpuUs };
  };
  const cold = await wave(0);
  const steady = await wave(DUE);
  await runtime.close();
  await journal.close();
  return { cold, steady };
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function hourOfSeconds(): Promise<{ readonly fired: number; readonly missed: number; readonly twice: number }> {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const fires: string[] = [];
  const planner = ({ identity }: { identity: { run: string } }) => {
    fires.push(identity.run);
    return { kind: 'finish', reason: 'goal' } as const;
  };
  const runtime = createRuntime({ planner, tools: [], journal, clock });
  runtime.work();
  await runtime.schedules.put({
    id: 'tick',
    everyMs: 1_000,
    query: 'tick',
    overlap: 'parallel',
    catchUp: 'all',
    identity: { tenant: 'local', user: 'bench' },
  });
  for (let second = 0; second < HOUR_SECONDS; second += 1) {
    clock.advance(1_000);
    await passed(0);
  }
  for (let turns = 0; turns < 1_000 && fires.length < HOUR_SECONDS; turns += 1) await passed(0);
  await runtime.close();
  const distinct = new Set(fires);
  const twice = fires.length - distinct.size;
  return { fired: fires.length, missed: Math.max(0, HOUR_SECONDS - distinct.size), twice };
}
