/**
 * Writes `format-<n>.sql`: the journal that the program of this folder leaves when its process dies. Run by hand, once for each
 * format of the file, before the format is changed: `node test/old-journal/make.ts`. What is there already is never written anew.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteJournal } from '#journal/sqlite';
import { local, type Run, type Runtime } from '#pilotage';
import { VirtualClock } from '#testing';
import { dumpOf } from './dump.ts';
import { program, RUNS, type World } from './program.ts';

/** Later than the tools' time limit and the grace after it. */
const OVERDUE_MS = 62_000;

const folder = mkdtempSync(join(tmpdir(), 'old-journal-'));
const path = join(folder, 'pilotage.db');
const clock = new VirtualClock(Date.UTC(2024, 0, 1));
const journal = sqliteJournal({ path, clock });
const holds = new Set<string>();
const world: World = { done: [], holds, views: [] };
const runtime = program(world, journal, { clock });

await start(runtime, 'finish', RUNS.finished, 'talk').then((run) => run.result());
await start(runtime, 'Look at the model.', RUNS.reacted, 'talk', 'react').then((run) => run.result());
await start(runtime, 'fail', RUNS.failed).then((run) => run.result());
const cancelled = await start(runtime, 'ask', RUNS.cancelled);
await cancelled.result();
await cancelled.cancel({ reason: 'not needed', until: 'applied' });
await start(runtime, 'gate', RUNS.gated).then((run) => run.result());
const asking = await start(runtime, 'ask', RUNS.asking);
await asking.result();
await asking.steer('USER_MESSAGE', { message: 'a word in between' }, { until: 'applied' });
await start(runtime, 'delegate', RUNS.delegating).then((run) => run.result());
await runtime
  .start('shipping', {
    identity: local('ana', { session: 'work', run: RUNS.flowed }),
    agent: 'shipping',
    conversation: false,
    context: { args: { parcel: 1 } },
  })
  .then((run) => run.result());
await start(runtime, 'parent', RUNS.parent).then((run) => run.result());
holds.add('fails');
const inDoubt = await start(runtime, 'doubt', RUNS.inDoubt);
await until(() => world.done.some((what) => what.startsWith('fails')));
clock.advance(OVERDUE_MS);
await inDoubt.result();
holds.add('pay').add('post');
const full = program(world, journal, { clock, maxLiveRuns: 1 });
await start(full, 'cut', RUNS.doubtful);
await until(async () => (await journal.read(RUNS.doubtful)).some(({ kind, seq }) => kind === 'call_ended' && seq > 4));
await start(full, 'pending', RUNS.pending);
await journal.signal(RUNS.pending, {
  id: 'said-before',
  type: 'USER_MESSAGE',
  payload: { message: 'before it began' },
});

const db = new DatabaseSync(path);
const { format, sql } = dumpOf(db);
db.close();
writeFileSync(new URL(`format-${format}.sql`, import.meta.url), sql, { flag: 'wx' });
rmSync(folder, { recursive: true });
// Nothing is closed: what is held is what a process leaves that dies.
process.exit();

function start(on: Runtime, query: string, run: string, session = 'work', agent?: string): Promise<Run> {
  const of = agent === undefined ? {} : { agent };
  return on.start(query, { identity: local('ana', { session, run }), ...of });
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
