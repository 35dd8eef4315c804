/** What a claim costs in tables with a million ended runs, beside empty ones, and what a worker uses that has nothing to do there. */
import { postgresJournal } from '#journal/postgres';
import type { Journal } from '#pilotage/journal';
import type { ChildOptions } from './cluster-child.ts';
import { at, type Place, putRuns, type Recorded, recordRun, scaled, Worker } from './cluster-crew.ts';
import { type Measured, short } from './measure.ts';

const ENDED = scaled(1_000_000);
const WAITING = scaled(100_000);
const CLAIMS = scaled(1_000, 50);
const WARM_UP = 100;
const LEASE_MS = 60_000;
/** So many runs were due and have ended while a transaction stands open that may see them still, so that nothing can be cleaned up. */
const DEAD = scaled(20_000);

const FILL = (schema: string): string => `
  INSERT INTO ${schema}.runs (id, tenant, "user", session, agent, priority, status, created_at, updated_at, head, wake_at)
  SELECT 'ended-' || i, 'local', 'bench', 's' || i, agent, 0, 'finished', created_at, updated_at, 3, NULL
  FROM ${schema}.runs CROSS JOIN generate_series(1, ${ENDED}) AS i WHERE id = 'recorded';
  INSERT INTO ${schema}.runs (id, tenant, "user", session, agent, priority, status, created_at, updated_at, head, wake_at)
  SELECT 'waiting-' || i, 'local', 'bench', 'w' || i, agent, 0, 'waiting', created_at, updated_at, 3, 99999999999999
  FROM ${schema}.runs CROSS JOIN generate_series(1, ${WAITING}) AS i WHERE id = 'recorded'`;
const WERE_DUE = (schema: string): string => `
  INSERT INTO ${schema}.runs (id, tenant, "user", session, agent, priority, status, created_at, updated_at, head, wake_at)
  SELECT 'due-' || i, 'local', 'bench', 'd' || i, agent, 0, 'pending', created_at, updated_at, 3, 0
  FROM ${schema}.runs CROSS JOIN generate_series(1, ${DEAD}) AS i WHERE id = 'recorded';
  UPDATE ${schema}.runs SET status = 'finished', wake_at = NULL WHERE starts_with(id, 'due-')`;

interface Side {
  readonly journal: Journal;
  readonly recorded: Recorded;
  readonly agent: string;
  readonly name: string;
  readonly claims: number[];
  /** Of claims that find nothing. */
  readonly idle: number[];
}

export async function claim(place: Place): Promise<Measured> {
  const sides = await Promise.all(['claim_empty', 'claim_full'].map((name) => open(place, name)));
  const [empty, full] = sides as [Side, Side];
  await place.pool.query(FILL(full.name));
  await place.pool.query(`VACUUM ANALYZE ${full.name}.runs`);
  await measureInTurns(sides);
  const idleShare = await idleWorker(place, full.name);
  const dead = await withOldTransaction(place, full);
  for (const { journal } of sides) await journal.close();
  const numbers = ({ claims, idle }: Pick<Side, 'claims' | 'idle'>) => ({
    ...{ p50: short(at(claims, 0.5)), p95: short(at(claims, 0.95)) },
    ...{ nothing_p50: short(at(idle, 0.5)), nothing_p95: short(at(idle, 0.95)) },
  });
  const [ofFull, ofEmpty, ofDead] = [numbers(full), numbers(empty), numbers(dead)];
  const ratios = { p50: short(ofFull.p50 / ofEmpty.p50), p95: short(ofFull.p95 / ofEmpty.p95) };
  return {
    keys: {
      claim_ms: ofFull,
      claim_empty_ms: ofEmpty,
      claim_ratio: ratios,
      claim_old_transaction_ms: ofDead,
      idle_worker_percent: short(idleShare * 100),
    },
    rows: [
      [
        `Postgres, a claim beside ${ENDED.toLocaleString('en')} ended and ${WAITING.toLocaleString('en')} waiting runs`,
        `p95 ${ofFull.p95} ms`,
        `at most 2; ${ratios.p95} x the ${ofEmpty.p95} ms of an empty table, at most 1.5; p50 ${ofFull.p50} ms, ${ratios.p50} x; that finds nothing: p95 ${ofFull.nothing_p95} ms`,
      ],
      [
        `the same after ${DEAD.toLocaleString('en')} due runs that have ended, while an old transaction keeps them from being cleaned up`,
        `p95 ${ofDead.p95} ms`,
        `p50 ${ofDead.p50} ms`,
      ],
      ['a worker that has nothing to do there', `${short(idleShare * 100)} % of a core`, 'at most 1'],
    ],
  };
}

async function open({ url }: Place, name: string): Promise<Side> {
  const journal = postgresJournal({ url }, { schema: name });
  const recorded = await recordRun(journal, 'notes 1', 'recorded');
  const [first] = recorded.run.entries;
  const agent = first?.kind === 'started' ? first.agent : '';
  return { journal, recorded, agent, name, claims: [], idle: [] };
}

/** Runs have had these numbers. */
let puts = 0;

async function measureInTurns(sides: readonly Side[], count = CLAIMS): Promise<void> {
  for (let round = 0; round < count + WARM_UP; round += 1) {
    for (const side of sides) {
      puts += 1;
      const run = `claim-${puts}`;
      await putRuns(side.journal, side.recorded, [run]);
      const ms = await claimOnce(side, run);
      const nothingMs = await claimOnce(side, undefined);
      if (round < WARM_UP) continue;
      side.claims.push(ms);
      side.idle.push(nothingMs);
    }
  }
}

/** As a worker claims. What was claimed is ended, as a run ends. */
async function claimOnce({ journal, agent }: Side, expected: string | undefined): Promise<number> {
  const request = { owner: 'bench', leaseMs: LEASE_MS, agents: [agent], exceptTenants: [], exceptRuns: [], limit: 1 };
  const before = performance.now();
  const [due] = await journal.claimDue(request);
  const claimed = due?.claim;
  const ms = performance.now() - before;
  if (claimed?.run !== expected) throw new Error(`The claim gave ${claimed?.run}, not ${expected}.`);
  if (claimed === undefined) return ms;
  const { run, fence, head } = claimed;
  const entry = { seq: head + 1, at: 0, kind: 'finished', reason: 'goal', payload: null } as never;
  await journal.append({ run, fence, expected: head, entries: [entry], status: 'finished' });
  await journal.release({ run, fence }, { seenSignals: 0, wakeInMs: null });
  return ms;
}

async function withOldTransaction({ pool }: Place, side: Side): Promise<Side> {
  const old = await pool.connect();
  const after: Side = { ...side, claims: [], idle: [] };
  try {
    await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await old.query(`SELECT count(*) FROM ${side.name}.format`);
    await pool.query(WERE_DUE(side.name));
    await measureInTurns([after], scaled(300, 20));
  } finally {
    await old.query('ROLLBACK');
    old.release();
  }
  return after;
}

async function idleWorker({ url }: Place, schema: string): Promise<number> {
  const options: ChildOptions = { url, schema, slots: 10, tells: [] };
  const worker = await Worker.start(options);
  await worker.do('open');
  const { cpuShare = Number.NaN } = await worker.do('use');
  await worker.end();
  return cpuShare;
}
