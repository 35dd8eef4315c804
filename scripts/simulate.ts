/**
 * Plays seeded histories of whole systems and checks what must always hold: `npm run simulate -- --seeds N --from S`. Prints the
 * shortest history it can find for each of the first seeds that fail, and at last one line of JSON. `--stop` ends at the first
 * failure; `--threads` is how many play at once.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Violation } from '../test/simulation/ledger.ts';
import type { SimulatedHistory } from '../test/simulation/simulate.ts';

/** Shared by the threads: the seeds that were taken, and the seeds that failed. */
const TAKEN = 0;
const FAILED = 1;
/** From here on, the seed that each thread plays. */
const PLAYING = 2;
const PRINTED = 3;
/** A history takes some milliseconds of CPU time, and a minute when others poll for a day; one that takes so much goes round and round in one moment of virtual time. */
const STUCK_MS = 180_000;
/** What stands for a seed while a thread looks for a shorter history, which takes hundreds of them. */
const SHRINKING = -1;
const SHRINK_MS = 600_000;
/** Histories throw many errors on purpose: to take the stack of each is about 3 % of the time. */
const NO_STACKS = 0;
/** What Node takes otherwise. */
const STACKS = 10;

interface Job {
  readonly from: number;
  readonly seeds: number;
  readonly stop: boolean;
  readonly thread: number;
  readonly shared: Int32Array;
}

type Report = { readonly violations: number; readonly text: string };

if (isMainThread) await main();
else await work(workerData as Job);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '100000' },
      from: { type: 'string', default: '1' },
      threads: { type: 'string', default: String(availableParallelism()) },
      stop: { type: 'boolean', default: false },
    },
  });
  const [seeds, from, threads] = [values.seeds, values.from, values.threads].map(Number) as [number, number, number];
  for (const [name, value] of Object.entries({ seeds, from, threads })) {
    if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1 up.`);
  }
  const shared = new Int32Array(new SharedArrayBuffer(4 * (PLAYING + threads)));
  const job = { from, seeds, stop: values.stop, shared };
  let violations = 0;
  const report = (found: Report): void => {
    violations += found.violations;
    console.log(found.text);
  };
  await Promise.all(Array.from({ length: threads }, (_, thread) => inThread({ ...job, thread }, report)));
  console.log(JSON.stringify({ seeds: Math.min(seeds, Atomics.load(shared, TAKEN)), violations }));
  process.exitCode = violations === 0 ? 0 : 1;
}

/** Until all seeds are taken; a thread that is stuck is ended, and another goes on in its place. */
async function inThread(job: Job, report: (found: Report) => void): Promise<void> {
  const { shared, thread, from, seeds, stop } = job;
  const isOver = (): boolean => Atomics.load(shared, TAKEN) >= seeds || (stop && Atomics.load(shared, FAILED) > 0);
  do {
    const worker = new Worker(new URL(import.meta.url), { workerData: job });
    worker.on('message', report);
    let seen = { seed: -1, sinceMs: 0 };
    const watch = setInterval(async () => {
      const seed = Atomics.load(shared, PLAYING + thread);
      const usedMs = await cpuMsOf(worker);
      if (seed !== seen.seed) seen = { seed, sinceMs: usedMs };
      else if (usedMs - seen.sinceMs > (seed === SHRINKING ? SHRINK_MS : STUCK_MS)) void worker.terminate();
    }, 1_000);
    const code = await new Promise<number>((resolve, reject) => {
      worker.on('error', reject);
      worker.on('exit', resolve);
    });
    clearInterval(watch);
    if (code === 0) return;
    Atomics.add(shared, FAILED, 1);
    const playing = Atomics.load(shared, PLAYING + thread);
    const which = playing === SHRINKING ? 'a shorter history of a seed that fails' : `seed ${from + playing}`;
    report({ violations: 1, text: `${which}: no hang: it goes round and round without end` });
  } while (!isOver());
}

/** Time on the wall says nothing of a thread while others have the machine. */
async function cpuMsOf(worker: Worker): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage();
    return (user + system) / 1_000;
  } catch {
    // It has not begun yet, or is over.
    return 0;
  }
}

async function work({ from, seeds, stop, thread, shared }: Job): Promise<void> {
  const { shortestHistory, simulate } = await playing();
  const { violationText } = await import('../test/simulation/timeline.ts');
  for (;;) {
    if (stop && Atomics.load(shared, FAILED) > 0) return;
    const taken = Atomics.add(shared, TAKEN, 1);
    if (taken >= seeds) return;
    Atomics.store(shared, PLAYING + thread, taken);
    Error.stackTraceLimit = NO_STACKS;
    const played = await simulate(from + taken);
    if (played.violations.length === 0) continue;
    Error.stackTraceLimit = STACKS;
    const { seed } = played;
    const violations = await withStacks(played);
    const isFirst = Atomics.add(shared, FAILED, 1) < PRINTED;
    const text = violations.map((violation) => `seed ${seed}: ${violationText(violation)}`);
    Atomics.store(shared, PLAYING + thread, SHRINKING);
    if (isFirst && !stop) text.push((await shortestHistory(seed)) ?? '');
    parentPort?.postMessage({ violations: violations.length, text: text.join('\n') } satisfies Report);
  }
}

/** Only the threads load it: that takes as long as playing a hundred histories. */
function playing(): Promise<typeof import('../test/simulation/simulate.ts')> {
  return import('../test/simulation/simulate.ts');
}

/** The same history again, for the stacks of the errors in what it violated. */
async function withStacks({ seed, violations }: SimulatedHistory): Promise<readonly Violation[]> {
  const { simulate } = await playing();
  const again = await simulate(seed);
  return again.violations.length === 0 ? violations : again.violations;
}
