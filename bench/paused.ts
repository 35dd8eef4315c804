/** Runs that wait for an answer: what one costs on disk and in memory, and how long it takes until it goes on. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteJournal } from '#journal/sqlite';
import type { Journal } from '#pilotage/journal';
import { heapBytes, type Measured, median, short } from './measure.ts';
import { pauseRuns, pausingRuntime } from './paused-runs.ts';
import { withScratch } from './scratch.ts';

const STEPS = 100;
const SAMPLES = 101;
const WARM_UP_SAMPLES = 20;
/** The most that going on may take of the time of a raw read. */
const MOST = 5;

type Synchronous = 'full' | 'normal';

/**
 * A tenth of the runs has 100 steps: those are weighed and resumed. The others have one step.
 * @param runs how many are paused in all.
 */
export async function paused(runs: number = 10_000): Promise<Measured> {
  return withScratch(async (folder) => {
    const path = join(folder, 'paused.db');
    const long = Math.round(runs / 10);
    const { diskBytes, textBytes } = await weigh(path, long);
    const heapGrowth = await watchHeap(path, long);
    const full = await besideRead(path, long, 'full');
    const normal = await besideRead(path, long, 'normal');
    return {
      keys: {
        paused_bytes_100: diskBytes,
        paused_resume_ms_100: full.resumeMs,
        raw_read_ms_100: full.readMs,
        paused_resume_ratio_100: full.ratio,
        paused_resume_cpu_ratio_100: full.cpuRatio,
        paused_heap_bytes: heapGrowth,
      },
      rows: [
        ['a paused run of 100 steps, on disk', `${diskBytes} bytes`, `of which ${textBytes} are its entries' JSON`],
        [
          'a paused run, in memory',
          `${heapGrowth} bytes`,
          `growth of the heap with every ${long} runs more, from ${2 * long} to ${runs}, divided by them`,
        ],
        [
          'a paused run of 100 steps goes on',
          `${full.resumeMs} ms`,
          `${full.ratio} x a raw read and parse of its rows, ${full.readMs} ms (at most ${MOST}); CPU ${full.cpuRatio} x`,
        ],
        [
          "the same with synchronous: 'normal'",
          `${normal.resumeMs} ms`,
          `${normal.ratio} x a raw read and parse of its rows, ${normal.readMs} ms; CPU ${normal.cpuRatio} x`,
        ],
      ],
    };
  });
}

interface Weight {
  /** Growth of the closed file for each run, its write-ahead log being in it. */
  readonly diskBytes: number;
  /** What of it is the stored text of the run's entries. */
  readonly textBytes: number;
}

async function weigh(path: string, count: number): Promise<Weight> {
  await withJournal(path, async () => {});
  const emptyBytes = statSync(path).size;
  await withJournal(path, (journal) => makePaused(journal, { prefix: 'long', count, steps: STEPS }));
  const diskBytes = Math.round((statSync(path).size - emptyBytes) / count);
  const db = new DatabaseSync(path, { readOnly: true });
  const total = db.prepare('SELECT sum(octet_length(body)) AS bytes FROM entries').get();
  db.close();
  return { diskBytes, textBytes: Math.round(Number(total?.['bytes']) / count) };
}

/**
 * Growth of the heap of the process that pauses nine times `count` runs, for each of them: the median of eight, because code
 * that is compiled or thrown away is in one or two.
 */
async function watchHeap(path: string, count: number): Promise<number> {
  return withJournal(path, async (journal) => {
    const runtime = pausingRuntime(journal);
    const heaps: number[] = [];
    for (let part = 0; part < 9; part += 1) {
      await pauseRuns(runtime, { prefix: `short_${part}`, count, steps: 1 });
      heaps.push(heapBytes());
    }
    await runtime.close();
    return short(median(heaps.slice(1).map((bytes, part) => bytes - (heaps[part] ?? Number.NaN))) / count);
  });
}

async function makePaused(journal: Journal, runs: Parameters<typeof pauseRuns>[1]): Promise<void> {
  const runtime = pausingRuntime(journal);
  await pauseRuns(runtime, runs);
  await runtime.close();
}

async function withJournal<T>(path: string, use: (journal: Journal) => Promise<T>): Promise<T> {
  const journal = sqliteJournal({ path, synchronous: 'normal' });
  try {
    return await use(journal);
  } finally {
    await journal.close();
  }
}

interface BesideRead {
  readonly resumeMs: number;
  readonly readMs: number;
  readonly ratio: number;
  /** Of the CPU of both: it leaves out waits for the disk, and for a machine that is busy with other things. */
  readonly cpuRatio: number;
}

interface Spent {
  readonly ms: number;
  readonly cpuUs: number;
}

/** Each sample is another run, read and then resumed; the first ones warm up. Every other long run is for `full`. */
async function besideRead(path: string, count: number, synchronous: Synchronous): Promise<BesideRead> {
  const pairs: { readonly read: Spent; readonly resume: Spent }[] = [];
  const offset = synchronous === 'full' ? 0 : 1;
  const samples = Math.min(SAMPLES + WARM_UP_SAMPLES, Math.floor(count / 2));
  const stride = 2 * Math.floor(count / 2 / samples);
  for (let sample = 0; sample < samples; sample += 1) {
    const run = `long_${sample * stride + offset}`;
    const read = await spendRawRead(path, run);
    const resume = await spendResume(path, run, synchronous);
    if (sample >= WARM_UP_SAMPLES) pairs.push({ read, resume });
  }
  return {
    resumeMs: short(median(pairs.map(({ resume }) => resume.ms))),
    readMs: short(median(pairs.map(({ read }) => read.ms))),
    ratio: short(median(pairs.map(({ read, resume }) => resume.ms / read.ms))),
    cpuRatio: short(median(pairs.map(({ read, resume }) => resume.cpuUs / read.cpuUs))),
  };
}

async function spent(work: () => Promise<void> | void): Promise<Spent> {
  const cpu = process.cpuUsage();
  const before = performance.now();
  await work();
  const ms = performance.now() - before;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuUs: user + system };
}

const ROWS_OF_RUN = `
  SELECT body FROM entries, (SELECT key << 32 AS first FROM runs WHERE id = ?)
  WHERE entries.id BETWEEN first AND first + 4294967295 ORDER BY entries.id`;

/** For the run's rows, each parsed, on a connection that has not read them before. Opening it does not count. */
async function spendRawRead(path: string, run: string): Promise<Spent> {
  const db = new DatabaseSync(path, { readOnly: true });
  const select = db.prepare(ROWS_OF_RUN);
  let count = 0;
  const used = await spent(() => {
    const rows = select.all(run);
    for (const { body } of rows) JSON.parse(String(body));
    count = rows.length;
  });
  db.close();
  if (count < 2 * STEPS) throw new Error(`The run ${run} has ${count} rows.`);
  return used;
}

/** From the answer to the planner's next move in the file, with a journal and a runtime that know nothing. */
async function spendResume(path: string, run: string, synchronous: Synchronous): Promise<Spent> {
  const token = await tokenOf(path, run);
  const journal = sqliteJournal({ path, synchronous });
  const { told, moved } = tellMove(journal);
  const runtime = pausingRuntime(told);
  const handle = runtime.run(run);
  let resumed: Promise<void> | undefined;
  const used = await spent(() => {
    resumed = handle.resume({ token });
    return Promise.race([moved, resumed.then(() => moved)]);
  });
  await resumed;
  const { status } = await handle.result();
  if (status !== 'finished') throw new Error(`The resumed run ${run} is ${status}.`);
  await runtime.close();
  await journal.close();
  return used;
}

/** On a connection of its own, so that the one that is timed has read nothing. */
async function tokenOf(path: string, run: string): Promise<string> {
  const result = await withJournal(path, (journal) => pausingRuntime(journal).run(run).result());
  if (result.status !== 'paused') throw new Error(`The run ${run} is ${result.status}, not paused.`);
  const [pause] = result.pauses;
  if (pause === undefined) throw new Error(`The run ${run} waits for nothing.`);
  return pause.token;
}

/** The same journal, and when the next move is in it. */
function tellMove(journal: Journal): { readonly told: Journal; readonly moved: Promise<void> } {
  const { promise: moved, resolve } = Promise.withResolvers<void>();
  const append: Journal['append'] = async (request) => {
    await journal.append(request);
    if (request.entries.some(({ kind }) => kind === 'moved')) resolve();
  };
  const told = new Proxy(journal, {
    get(target, key) {
      if (key === 'append') return append;
      const own: unknown = Reflect.get(target, key);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
  return { told, moved };
}
