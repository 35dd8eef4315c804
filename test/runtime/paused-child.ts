/**
 * Pauses runs in one process and prints, as JSON, what it holds after every so many of them; then lets one of each kind go
 * on. `node --expose-gc paused-child.ts <file> <every> <all>`
 */
import { local, type PlannerFunction } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { LoginRequired } from '#tools';
import { call, finish } from '../kit/decisions.ts';
import { echo, make } from '../kit/tools.ts';
import { turn } from '../kit/waiting.ts';

const [, , path = '', every, all] = process.argv;
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
const gated = make('gated', () => 'made', { needsApproval: { approver: 'anyone', expiresInMs: HOUR_MS } });
const closed = make('closed', () => {
  if (!isLoggedIn) throw new LoginRequired('http://127.0.0.1/login');
  return 'made';
});

const journal = sqliteJournal({ path, synchronous: 'normal' });
const runtime = createRuntime({ planner: pausing, tools: [echo, gated, closed], journal });

const holds: Held[] = [];
for (let count = 0; count < Number(all); count += Number(every)) holds.push(await pauseMore(count, Number(every)));
isLoggedIn = true;
const wentOn = await Promise.all([0, 1, 2].map(goOn));
console.log(JSON.stringify({ holds, wentOn }));
await runtime.close();
await journal.close();

interface Held {
  readonly heapBytes: number;
  readonly resources: readonly string[];
}

async function pauseMore(from: number, count: number): Promise<Held> {
  for (let first = from; first < from + count; first += BATCH) {
    await Promise.all(Array.from({ length: BATCH }, (_, index) => pauseRun(first + index)));
  }
  // The last ones are still being let go of; a timer that stays is seen by the test.
  const giveUpAt = performance.now() + MOST_WAIT_MS;
  while (resources().length > 0 && performance.now() < giveUpAt) await turn();
  gc?.();
  return { heapBytes: process.memoryUsage().heapUsed, resources: resources() };
}

/** What keeps the process alive, but for this program's own turns of the event loop. */
function resources(): string[] {
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
  const result = await run.result();
  const reason = result.status === 'paused' ? result.pauses[0]?.reason : undefined;
  await (reason === 'await_input' ? run.resume({ payload: { text: 'yes' } }) : run.approve());
  return (await run.result()).status;
}
