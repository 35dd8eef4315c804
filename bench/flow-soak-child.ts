/**
 * `node flow-soak-child.ts <file> <every> <all> <at once>`: runs of one flow, one after another, and then many at once, on one
 * runtime. Prints, as JSON, what the process holds after every so many of them and at the end.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#pilotage';
import { runAtOnce, runInTurn, soakFlow, Waiting } from './flow-soak-work.ts';
import { heapBytes, wallMs } from './measure.ts';

/** What a process holds. */
export interface Held {
  readonly heapBytes: number;
  /** What keeps it alive. */
  readonly resources: readonly string[];
}

export interface Soaked {
  /** Before the first run. */
  readonly before: readonly string[];
  readonly holds: readonly Held[];
  readonly inTurnMs: number;
  readonly atOnceMs: number;
  readonly after: Held;
}

const MOST_WAIT_MS = 10_000;
const ROOM = 10_000;

const [path = '', every = '', all = '', atOnce = ''] = process.argv.slice(2);
const before = resources();
const waiting = new Waiting();
const made = soakFlow(waiting);
const journal = sqliteJournal({ path, synchronous: 'normal' });
const runtime = createRuntime({
  agents: [made],
  journal,
  maxLiveRuns: ROOM,
  maxLiveRunsPerTenant: ROOM,
});
const place = { runtime, flow: made, waiting };
const holds: Held[] = [];
const inTurnMs = await wallMs(async () => {
  for (let n = 1; n <= Number(all); n += 1) {
    await runInTurn(place, n);
    if (n % Number(every) === 0) holds.push(await held());
  }
});
const atOnceMs = await wallMs(() => runAtOnce(place, Number(atOnce)));
const soaked: Soaked = { before, holds, inTurnMs, atOnceMs, after: await held() };
await runtime.close();
await journal.close();
console.log(JSON.stringify(soaked));

/** The last ones are still being let go of; what stays is seen by the reader. */
async function held(): Promise<Held> {
  const giveUpAt = performance.now() + MOST_WAIT_MS;
  while (resources().length > before.length && performance.now() < giveUpAt) await turn();
  return { heapBytes: heapBytes(), resources: resources() };
}

function resources(): string[] {
  return process.getActiveResourcesInfo().filter((resource) => resource !== 'Immediate');
}
