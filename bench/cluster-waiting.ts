/** A hundred thousand runs that wait, on Postgres: what they cost a worker, how soon one goes on when it is told something, and how late timers are. */
import { setTimeout as passed } from 'node:timers/promises';
import { createRuntime } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import { sendControl } from '#runtime';
import { clusterRuntime, identityOf, machineMs } from './cluster-agent.ts';
import type { ChildOptions, Said } from './cluster-child.ts';
import { at, type Place, recordRun, scaled, Worker, withJournal } from './cluster-crew.ts';
import { type Measured, short } from './measure.ts';

const WAITING = scaled(100_000);
const DUE = scaled(10_000);
const DUE_MS = 1_000;
/** From when the timers are stored until the first is due. */
const UNTIL_DUE_MS = 8_000;
const TOLD = scaled(200, 20);
const SLOTS = Number(process.env['CLUSTER_WAIT_SLOTS'] ?? 200);
const SCHEDULE_WORKERS = 5;
const FIRES = scaled(15, 5);
/** So long it may take until all workers have heard of the schedule. */
const HEARD_MS = 6_000;
const MOST_MS = 60_000;
const SCHEMA = 'waiting';
/** A time of which the texts of a run have no other. */
const SOME_TIME = 7_777_777_777_777;
const KINDS = ['sleep', 'event', 'ask'] as const;

export async function waiting(place: Place): Promise<Measured> {
  return withJournal(place, SCHEMA, async (journal) => {
    for (const kind of KINDS) await recordRun(journal, kind, `some-${kind}`);
    await recordRun(journal, `due ${SOME_TIME}`, 'some-due');
    const bytes = await bytesInWorker(place, journal);
    const told = await tellRuns(place, journal);
    const due = await dueTimers(place);
    return {
      keys: {
        pg_waiting_runs: WAITING,
        pg_waiting_bytes_in_worker: bytes,
        pg_signal_to_step_ms: told.signal,
        pg_answer_to_step_ms: told.answer,
        pg_due_timer_lag_ms: due.steady,
        pg_due_timer_lag_cold_ms: due.cold,
      },
      rows: [
        [
          'Postgres, a waiting run, in a worker',
          `${bytes} bytes`,
          `of ${WAITING.toLocaleString('en')}: a third each sleeps, waits for an event, asks`,
        ],
        [
          'from a signal by another process to the next step',
          `${told.signal.p50} ms`,
          `p95 ${told.signal.p95} ms; at most 50 at the median`,
        ],
        [
          'from an answer by another process to the next step',
          `${told.answer.p50} ms`,
          `p95 ${told.answer.p95} ms; at most 50`,
        ],
        [
          `a timer, of ${DUE.toLocaleString('en')} that are due within a second, two workers with ${SLOTS} slots, cold`,
          `p95 ${due.cold.p95} ms late`,
          `p50 ${due.cold.p50} ms; all had gone on after ${due.cold.all_after} ms, ${due.cold.early} before their time; the first that go off in the workers, whose code is compiled meanwhile`,
        ],
        [
          'the same, steady',
          `p95 ${due.steady.p95} ms late`,
          `p50 ${due.steady.p50} ms; all had gone on after ${due.steady.all_after} ms, ${due.steady.early} before their time; a second wave in the same workers; at most 500 at the 95th percentile`,
        ],
      ],
    };
  });
}

interface Column {
  readonly name: string;
}

/** The rows of the recorded run, so many times, under other names. @param until what takes the place of the time in them. */
async function multiply({ pool }: Place, from: string, to: string, count: number, until = 'NULL'): Promise<void> {
  const named = (column: string, number = 'i'): string => `replace(${column}, '${from}', '${to}-' || ${number})`;
  const text = (column: string): string =>
    until === 'NULL' ? named(column) : `replace(${named(column)}, '${SOME_TIME}', (${until})::bigint::text)`;
  const time = (column: string): string =>
    until === 'NULL' ? column : `CASE WHEN ${column} > 0 THEN (${until})::bigint END`;
  const columnsOf = async (table: string): Promise<readonly Column[]> => {
    const asked = `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 AND is_identity = 'NO'`;
    return (await pool.query<Column>(asked, [SCHEMA, table])).rows;
  };
  const [columns, waits] = [await columnsOf('runs'), await columnsOf('open_waits')];
  const value = ({ name }: Column): string => {
    const column = `"${name}"`;
    if (name === 'run') return 'copies.key';
    if (['id', 'session', 'key', 'body'].includes(name)) return text(column);
    return ['wake_at', 'until'].includes(name) ? time(column) : column;
  };
  const names = (given: readonly Column[]): string => given.map(({ name }) => `"${name}"`).join(', ');
  const copies = `SELECT key, id, substr(id, ${to.length + 2})::int AS i FROM ${SCHEMA}.runs WHERE starts_with(id, '${to}-')`;
  const original = `(SELECT key FROM ${SCHEMA}.runs WHERE id = '${from}')`;
  const qualified = (given: readonly Column[]): string =>
    given.map((column) => value(column).replaceAll(`"${column.name}"`, `given."${column.name}"`)).join(', ');
  await pool.query(`
    INSERT INTO ${SCHEMA}.runs (${names(columns)})
      SELECT ${columns.map(value).join(', ')} FROM ${SCHEMA}.runs CROSS JOIN generate_series(1, ${count}) AS i WHERE id = '${from}';
    WITH copies AS (${copies})
      INSERT INTO ${SCHEMA}.entries (run, seq, at, body)
      SELECT copies.key, seq, at, ${text('body')} FROM ${SCHEMA}.entries CROSS JOIN copies WHERE run = ${original};
    WITH copies AS (${copies})
      INSERT INTO ${SCHEMA}.open_waits (${names(waits)})
      SELECT ${qualified(waits)} FROM ${SCHEMA}.open_waits AS given CROSS JOIN copies WHERE given.run = ${original}`);
}

/** Beside the same worker when only the recorded runs were there. */
async function bytesInWorker(place: Place, journal: Journal): Promise<number> {
  const empty = await heapOfWorker(place);
  const each = Math.ceil(WAITING / KINDS.length);
  for (const kind of KINDS) await multiply(place, `some-${kind}`, kind, each);
  await place.pool.query(`VACUUM ANALYZE ${SCHEMA}.runs, ${SCHEMA}.entries, ${SCHEMA}.open_waits`);
  const stored = await journal.list({ status: ['waiting', 'paused'], limit: 1 });
  if (stored.length === 0) throw new Error('No run waits.');
  return short(Math.max(0, (await heapOfWorker(place)) - empty) / WAITING);
}

const optionsOf = ({ url }: Place, tells: ChildOptions['tells'], slots = SLOTS): ChildOptions => ({
  ...{ url, schema: SCHEMA, slots, tells },
});

async function heapOfWorker(place: Place): Promise<number> {
  const worker = await Worker.start(optionsOf(place, []));
  await worker.do('open');
  const { heapBytes = Number.NaN } = await worker.do('use');
  await worker.end();
  return heapBytes;
}

type Percentiles = { readonly p50: number; readonly p95: number };

/** This process says it, and knows nothing of how the runs are carried out. */
async function tellRuns(place: Place, journal: Journal): Promise<{ signal: Percentiles; answer: Percentiles }> {
  const steps = new Map<string, number>();
  const worker = await Worker.start(optionsOf(place, ['planned']), ({ run = '', atMs }) => void steps.set(run, atMs));
  await worker.do('open');
  const runtime = createRuntime({
    agents: [{ name: 'none', planner: { name: 'none', next: () => ({ kind: 'finish', reason: 'goal' }) }, tools: [] }],
    journal,
    goesOn: false,
  });
  const times: { signal: number[]; answer: number[] } = { signal: [], answer: [] };
  const timed = async (kind: keyof typeof times, run: string, tell: () => Promise<unknown>): Promise<void> => {
    const before = machineMs();
    await tell();
    const giveUpAt = before + MOST_MS;
    while (!steps.has(run) && machineMs() < giveUpAt) await passed(1);
    times[kind].push((steps.get(run) ?? Number.NaN) - before);
  };
  for (let number = 1; number <= TOLD; number += 1) {
    const [event, ask] = [`event-${number}`, `ask-${number}`];
    await timed('signal', event, () => runtime.signal(event, number));
    const control = { id: `answer-${number}`, type: 'ANSWER', payload: { value: 'Yes.' } } as const;
    await timed('answer', ask, () => sendControl(journal, ask, control));
  }
  await runtime.close();
  await worker.end();
  const percentiles = (values: readonly number[]): Percentiles => ({
    p50: short(at(values, 0.5)),
    p95: short(at(values, 0.95)),
  });
  return { signal: percentiles(times.signal), answer: percentiles(times.answer) };
}

/** How late timers were. */
type Lags = Percentiles & { readonly all_after: number; readonly early: number };

/** Two waves in the same two workers: the first meets code that has not run yet. */
async function dueTimers(place: Place): Promise<{ readonly cold: Lags; readonly steady: Lags }> {
  const lags: number[] = [];
  const hear = (told: Extract<Said, { tells: string }>): void => void lags.push(Number(told.value));
  const workers = await Promise.all([1, 2].map(() => Worker.start(optionsOf(place, ['lag']), hear)));
  await Promise.all(workers.map((worker) => worker.do('open')));
  const wave = async (name: string): Promise<Lags> => {
    lags.length = 0;
    const dueFrom = Date.now() + UNTIL_DUE_MS;
    await multiply(place, 'some-due', name, DUE, `${dueFrom} + i * ${DUE_MS}::bigint / ${DUE}`);
    if (Date.now() >= dueFrom) throw new Error('The timers were due before all of them were stored.');
    const giveUpAt = dueFrom + MOST_MS;
    while (lags.length < DUE && Date.now() < giveUpAt) await passed(10);
    const allAfter = Date.now() - dueFrom;
    if (lags.length < DUE) throw new Error(`Only ${lags.length} of ${DUE} timers went off.`);
    return {
      ...{ p50: short(at(lags, 0.5)), p95: short(at(lags, 0.95)) },
      ...{ all_after: allAfter, early: lags.filter((ms) => ms < 0).length },
    };
  };
  const cold = await wave('due');
  const steady = await wave('due2');
  await Promise.all(workers.map((worker) => worker.end()));
  return { cold, steady };
}

/** Each fire is a run that writes into the ledger. */
export async function schedule(place: Place): Promise<Measured> {
  return withJournal(place, 'schedule', async (journal) => {
    const runtime = clusterRuntime({ journal, slots: 1 });
    const options: ChildOptions = { url: place.url, schema: 'schedule', slots: 10, tells: [] };
    const workers = await Promise.all(Array.from({ length: SCHEDULE_WORKERS }, () => Worker.start(options)));
    await Promise.all(workers.map((worker) => worker.do('open')));
    const { tenant, user } = identityOf('schedule');
    await runtime.schedules.put({
      ...{ id: 'tick', everyMs: 1_000, query: 'ledger 1', overlap: 'parallel', catchUp: 'all' },
      identity: { tenant, user },
    });
    await runtime.close();
    await passed(FIRES * 1_000 + HEARD_MS);
    const { pool } = place;
    // What was fired by now is carried out, and nothing else is fired.
    await pool.query(`UPDATE schedule.schedules SET paused = true`);
    await passed(1_000);
    await Promise.all(workers.map((worker) => worker.end()));
    const { rows } = await pool.query<{ id: string; times: string }>(`
      SELECT id, (SELECT count(*) FROM ledger WHERE ledger.run = runs.id) AS times FROM schedule.runs WHERE id LIKE '%tick%' ORDER BY id`);
    // The name of a fire has its time.
    const ats = rows.map(({ id }) => Date.parse(/\d{4}-[-0-9:.T]+Z/.exec(id)?.[0] ?? ''));
    const missed = ats.slice(1).filter((next, index) => next - (ats[index] ?? 0) !== 1_000).length;
    const twice = rows.filter((row) => Number(row.times) > 1).length + ats.length - new Set(ats).size;
    const undone = rows.filter((row) => Number(row.times) === 0).length;
    return {
      keys: { pg_schedule_five_workers: { fired: ats.length, missed, twice, undone } },
      rows: [
        [
          `Postgres, a schedule every second on ${SCHEDULE_WORKERS} workers, ${FIRES} s`,
          `${ats.length} runs`,
          `missed ${missed}, twice ${twice}, not carried out ${undone}; once a time`,
        ],
      ],
    };
  });
}
