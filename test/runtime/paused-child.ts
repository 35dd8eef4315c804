/**
 * Pauses runs in one process and prints, as JSON, what it holds with some of them and with all; then lets one of each kind
 * go on. `node --expose-gc paused-child.ts <file> <some> <all>`
 */
import { local } from '../../src/core/identity.ts';
import type { PlannerFunction } from '../../src/core/planner.ts';
import { sqliteJournal } from '../../src/journal/sqlite.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { LoginRequired } from '../../src/tools/tool.ts';
import { call, echo, finish, make, turn } from './support.ts';

const [, , path = '', some, all] = process.argv;
const BATCH = 100;
const HOUR_MS = 3_600_000;
const MOST_WAIT_MS = 10_000;

/** The query says how the run pauses; it has done a step by then. */
const pausing: PlannerFunction = ({ query, trajectory: { count } }) => {
  if (count === 0) return call('echo', { before: 'the pause' });
  if (count > 1) return finish('done');
  return query === 'asked' ? { kind: 'request_pause', reason: 'await_input', expiresInMs: HOUR_MS } : call(query);
};
const KINDS = ['asked', 'gated', 'closed'];

let isLoggedIn = false;
const gated = make('gated', () => 'made', { approve: { approver: 'anyone', expiresInMs: HOUR_MS } });
const closed = make('closed', () => {
  if (!isLoggedIn) throw new LoginRequired('http://127.0.0.1/login');
  return 'made';
});

const journal = sqliteJournal({ path, synchronous: 'normal' });
const runtime = createRuntime({ planner: pausing, tools: [echo, gated, closed], journal });

const [withSome, withAll] = [await pauseUntil(0, Number(some)), await pauseUntil(Number(some), Number(all))];
isLoggedIn = true;
const wentOn = await Promise.all([0, 1, 2].map(goOn));
console.log(JSON.stringify({ withSome, withAll, wentOn }));
await runtime.close();
await journal.close();

async function pauseUntil(from: number, to: number): Promise<{ heapBytes: number; resources: string[] }> {
  for (let first = from; first < to; first += BATCH) {
    await Promise.all(Array.from({ length: Math.min(BATCH, to - first) }, (_, index) => pauseRun(first + index)));
  }
  // The last ones are still being let go of; a timer that stays is seen by the test.
  const giveUpAt = performance.now() + MOST_WAIT_MS;
  while (held().length > 0 && performance.now() < giveUpAt) await turn();
  gc?.();
  return { heapBytes: process.memoryUsage().heapUsed, resources: held() };
}

/** What keeps the process alive, but for this program's own turns of the event loop. */
function held(): string[] {
  return process.getActiveResourcesInfo().filter((resource) => resource !== 'Immediate');
}

async function pauseRun(index: number): Promise<void> {
  const run = await runtime.start(KINDS[index % KINDS.length] ?? '', {
    identity: local('ana', { run: `run_${index}` }),
  });
  const { status } = await run.result();
  if (status !== 'paused') throw new Error(`The run ${run.id} is ${status}.`);
}

async function goOn(index: number): Promise<string> {
  const run = runtime.run(`run_${index}`);
  await run.approve();
  return (await run.result()).status;
}
