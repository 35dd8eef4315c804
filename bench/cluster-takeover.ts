/**
 * One of two workers is killed with SIGKILL while it has ten runs, again and again: how long until the other has gone on with each of them, and what was
 * done twice. A dead process of the same machine is known by its number, without waiting for its lease; two workers that believe that they are on machines
 * of their own show what the lease alone does.
 */
import { setTimeout as passed } from 'node:timers/promises';
import type { Journal } from '#pilotage/journal';
import { machineMs } from './cluster-agent.ts';
import type { ChildOptions } from './cluster-child.ts';
import {
  at,
  numbered,
  type Place,
  putRuns,
  type Recorded,
  recordRun,
  scaled,
  Worker,
  withJournal,
} from './cluster-crew.ts';
import { type Measured, type Row, short } from './measure.ts';

const ROUNDS = scaled(20, 2);
const RUNS = 10;
const STEPS = 40;
const LEASE_MS = 2_000;
/** The kill comes at a moment between, after the victim has all its runs. */
const KILL_MS = [50, 450] as const;
const MOST_MS = 120_000;

interface Taken {
  readonly times: readonly number[];
  readonly finishedTwice: number;
  readonly onceTwice: number;
  /** Effects whose outcome died with the worker before it was recorded: they may be done again with the same key. */
  readonly openTwice: number;
  readonly notEnded: number;
}

export async function takeover(place: Place): Promise<Measured> {
  const alone = await rounds(place, 'takeover', true);
  const same = await rounds(place, 'takeover_same', false);
  const numbers = ({ times, finishedTwice, onceTwice, openTwice, notEnded }: Taken) => ({
    ...{ p50: short(at(times, 0.5)), p95: short(at(times, 0.95)), max: short(at(times, 1)) },
    ...{ finished_repeated: finishedTwice, once_twice: onceTwice, open_repeated: openTwice, not_ended: notEnded },
  });
  const row = (where: string, taken: Taken, wanted: string): Row => [
    `Postgres, kill -9 of one of two workers, ${ROUNDS} times with ${RUNS} runs, lease of ${LEASE_MS / 1_000} s, ${where}`,
    `all go on within ${short(at(taken.times, 1))} ms`,
    `p50 ${short(at(taken.times, 0.5))}, p95 ${short(at(taken.times, 0.95))}${wanted}; finished effects repeated ${taken.finishedTwice}, once twice ${taken.onceTwice}, repeated since the kill came before their record ${taken.openTwice}, not ended ${taken.notEnded}`,
  ];
  return {
    keys: { takeover_ms: numbers(alone), takeover_same_machine_ms: numbers(same) },
    rows: [
      row('by the lease alone (host names of their own)', alone, '; at most 2,500'),
      row('on one machine, where its death is seen', same, ''),
    ],
  };
}

async function rounds(place: Place, schema: string, isElsewhere: boolean): Promise<Taken> {
  return withJournal(place, schema, async (journal) => {
    const recorded = await recordRun(journal, 'ledger 0', 'recorded');
    const longer = JSON.stringify(recorded.run).replace('"ledger 0"', JSON.stringify(`ledger ${STEPS}`));
    const template: Recorded = { ...recorded, run: JSON.parse(longer) };
    const times: number[] = [];
    let notEnded = 0;
    const crew = new Crew(
      { url: place.url, schema, slots: RUNS, leaseMs: LEASE_MS, tells: ['claimed', 'went', 'letGo'] },
      isElsewhere,
    );
    await crew.begin();
    for (let round = 0; round < ROUNDS; round += 1) {
      const seen = await crew.round(journal, template, `${schema}-${round}`);
      times.push(...seen.times);
      notEnded += seen.notEnded;
    }
    await crew.end();
    return { times, notEnded, ...(await repeated(place, journal, schema)) };
  });
}

class Crew {
  readonly #options: ChildOptions;
  readonly #isElsewhere: boolean;
  #survivor: Worker | undefined;
  /** By run. */
  readonly #claimedBy = new Map<string, number>();
  readonly #wentAt = new Map<string, number>();
  readonly #ended = new Set<string>();

  constructor(options: ChildOptions, isElsewhere: boolean) {
    this.#options = options;
    this.#isElsewhere = isElsewhere;
  }

  /** The one that is left has room for what the other leaves. */
  async begin(): Promise<void> {
    this.#survivor = await this.#start(2 * RUNS, true);
  }

  #start(slots: number, isSurvivor: boolean): Promise<Worker> {
    const hears: Parameters<typeof Worker.start>[1] = ({ tells, run = '', value, atMs }) => {
      if (tells === 'claimed') this.#claimedBy.set(run, isSurvivor ? 1 : 0);
      else if (tells === 'went' && isSurvivor) this.#wentAt.set(run, this.#wentAt.get(run) ?? atMs);
      else if (tells === 'letGo' && value === 'finished') this.#ended.add(run);
    };
    return Worker.start({ ...this.#options, slots }, hears, { isElsewhere: this.#isElsewhere });
  }

  async round(journal: Journal, template: Recorded, name: string): Promise<{ times: number[]; notEnded: number }> {
    const victim = await this.#start(RUNS, false);
    const lost = numbered(`${name}-lost`, RUNS);
    const kept = numbered(`${name}-kept`, RUNS);
    await putRuns(journal, template, lost);
    await victim.do('open');
    await until(() => lost.every((run) => this.#claimedBy.has(run)));
    await this.#survivor?.do('open');
    await putRuns(journal, template, kept);
    const [from, to] = KILL_MS;
    await passed(from + Math.random() * (to - from));
    const open = lost.filter((run) => !this.#ended.has(run));
    const killedAt = machineMs();
    await victim.kill();
    const all = [...lost, ...kept];
    await until(() => all.every((run) => this.#ended.has(run)));
    await this.#survivor?.do('close');
    return {
      times: open.flatMap((run) => (this.#ended.has(run) ? [(this.#wentAt.get(run) ?? Number.NaN) - killedAt] : [])),
      notEnded: all.filter((run) => !this.#ended.has(run)).length,
    };
  }

  async end(): Promise<void> {
    await this.#survivor?.end();
  }
}

async function until(isSo: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + MOST_MS;
  while (!isSo() && performance.now() < giveUpAt) await passed(2);
}

interface LedgerRow {
  readonly run: string;
  readonly step: number;
  readonly kind: string;
  readonly ats: readonly number[];
}

/** The ledger says what was done twice, and the journal whether its outcome was recorded before. */
async function repeated(
  { pool }: Place,
  journal: Journal,
  prefix: string,
): Promise<Pick<Taken, 'finishedTwice' | 'onceTwice' | 'openTwice'>> {
  const { rows } = await pool.query<LedgerRow>(
    `SELECT run, step, kind, array_agg(at ORDER BY at) AS ats FROM ledger WHERE starts_with(run, $1) GROUP BY run, step, kind HAVING count(*) > 1`,
    [`${prefix}-`],
  );
  let [finishedTwice, onceTwice, openTwice] = [0, 0, 0];
  for (const { run, step, kind, ats } of rows) {
    const entries = await journal.read(run);
    const ended = entries.find((entry) => entry.kind === 'call_ended' && entry.step === step);
    const { rows: stored } = await pool.query<{ at: string }>(
      `SELECT at FROM "${prefix}".entries WHERE run = (SELECT key FROM "${prefix}".runs WHERE id = $1) AND seq = $2`,
      [run, ended?.seq],
    );
    const recordedAt = Number(stored[0]?.at ?? Number.POSITIVE_INFINITY);
    if (kind === 'once') onceTwice += 1;
    if ((ats.at(-1) ?? 0) > recordedAt + 1) finishedTwice += 1;
    else openTwice += 1;
  }
  return { finishedTwice, onceTwice, openTwice };
}
