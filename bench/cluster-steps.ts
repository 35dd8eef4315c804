/** Durable steps on Postgres beside hand-written ones of the same rows: one run alone, and a thousand runs on two workers. */
import { encodeEntry } from '#core';
import type { Append, Journal } from '#pilotage/journal';
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
import { type Group, HAND_TABLES, Hand } from './cluster-hand.ts';
import type { HandOptions } from './cluster-hand-child.ts';
import { type Measured, median, short, wallMs } from './measure.ts';

const ALONE_STEPS = 100;
const ALONE_ROUNDS = scaled(25, 3);
const RUNS = scaled(1_000, 20);
const STEPS = 10;
const ROUNDS = Number(process.env['CLUSTER_ROUNDS'] ?? 4);
/** As many as a runtime has that was told nothing. */
const SLOTS = Number(process.env['CLUSTER_SLOTS'] ?? 10);
const LEASE_MS = 60_000;

const groupsOf = (appends: readonly Append[]): Group[] => appends.map(({ entries }) => entries.map(encodeEntry));

/** In turns; the first round warms up. */
export async function appendRatio(place: Place): Promise<Measured> {
  return withJournal(place, 'steps', async (journal) => {
    const hand = new Hand(place.pool);
    const sides: { ours: number; journal: number; hand: number; appends: number }[] = [];
    for (let round = 0; round <= ALONE_ROUNDS; round += 1) {
      const recorded = await recordRun(journal, `notes ${ALONE_STEPS}`, `alone-${round}`);
      const groups = groupsOf(recorded.ofSteps);
      const side = {
        ours: recorded.stepsMs / ALONE_STEPS,
        hand: (await handMs(place, hand, `alone-${round}`, groups)) / ALONE_STEPS,
        journal: (await journalMs(journal, recorded, `again-${round}`)) / ALONE_STEPS,
        appends: groups.length / ALONE_STEPS,
      };
      if (round > 0) sides.push(side);
    }
    const middle = (of: (side: (typeof sides)[number]) => number): number => short(median(sides.map(of)));
    const ratio = middle(({ ours, hand: by }) => ours / by);
    const alone = middle(({ journal: by, hand: byHand }) => by / byHand);
    const ms = {
      ours: middle(({ ours }) => ours),
      hand: middle((side) => side.hand),
      journal: middle((side) => side.journal),
    };
    return {
      keys: { pg_append_ratio: ratio, pg_journal_append_ratio: alone, pg_step_ms: ms },
      rows: [
        [
          'Postgres, one run: a durable step over a hand-written fenced append of its rows',
          `${ratio} x`,
          `${ms.ours} ms over ${ms.hand} ms, ${middle(({ appends }) => appends)} appends a step; at most 1.3`,
        ],
        ['the same appends through the journal alone', `${alone} x`, `${ms.journal} ms a step`],
      ],
    };
  });
}

async function handMs({ pool }: Place, hand: Hand, id: string, groups: readonly Group[]): Promise<number> {
  await pool.query('INSERT INTO hand.runs (id) VALUES ($1)', [id]);
  return wallMs(async () => {
    let head = 0;
    for (const bodies of groups) head = await hand.append({ id, fence: 0, head }, head, bodies);
  });
}

/** The recorded appends once more, to another run. */
async function journalMs(journal: Journal, { run, appends, ofSteps }: Recorded, name: string): Promise<number> {
  const text = JSON.stringify(run).replaceAll(`"${run.identity.run}"`, JSON.stringify(name));
  const claim = await journal.create({ ...JSON.parse(text), claim: { owner: 'bench', leaseMs: LEASE_MS } });
  if (claim === undefined) throw new Error(`The run ${name} was not claimed.`);
  const { fence } = claim;
  const appendAll = async (each: readonly Append[]): Promise<void> => {
    for (const append of each) await journal.append({ ...append, run: name, fence });
  };
  const first = appends.indexOf(ofSteps[0] as Append);
  await appendAll(appends.slice(0, first));
  const ms = await wallMs(() => appendAll(ofSteps));
  await appendAll(appends.slice(first + ofSteps.length));
  await journal.release({ run: name, fence }, { seenSignals: 0, wakeInMs: null });
  return ms;
}

export async function stepsPerS(place: Place): Promise<Measured> {
  return withJournal(place, 'steps', async (journal) => {
    const recorded = await recordRun(journal, `notes ${STEPS}`, 'recorded');
    const given: ChildOptions = { url: place.url, schema: 'steps', slots: SLOTS, tells: ['letGo'] };
    const byHand: HandOptions = { ...given, groups: groupsOf(recorded.appends) };
    const [ours, hand] = [new Ended(), new Ended()];
    const crews = {
      ours: await Promise.all([1, 2].map(() => Worker.start(given, (told) => ours.hear(told)))),
      hand: await Promise.all(
        [1, 2].map(() => Worker.start(byHand, (told) => hand.hear(told), { file: './cluster-hand-child.ts' })),
      ),
    };
    const rates: Record<'ours' | 'hand', Rate>[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const names = numbered(`round-${round}`, RUNS);
      await putRuns(journal, recorded, names);
      const oursRate = await rateOf(crews.ours, ours);
      await place.pool.query('INSERT INTO hand.runs (id) SELECT unnest($1::text[])', [names]);
      const handRate = await rateOf(crews.hand, hand);
      if (round > 0) rates.push({ ours: oursRate, hand: handRate });
    }
    await Promise.all([...crews.ours, ...crews.hand].map((worker) => worker.end()));
    const ratios = rates.map((rate) => rate.ours.perS / rate.hand.perS);
    const ratio = short(median(ratios));
    const middle = (side: 'ours' | 'hand', of: keyof Rate): number =>
      Math.round(median(rates.map((rate) => rate[side][of])));
    const [oursPerS, handPerS] = [middle('ours', 'perS'), middle('hand', 'perS')];
    const cpu = { ours: middle('ours', 'cpuUs'), hand: middle('hand', 'cpuUs') };
    return {
      keys: { pg_steps_per_s_1000: { ours: oursPerS, hand: handPerS, ratio }, pg_worker_cpu_us: cpu },
      rows: [
        [
          `Postgres, ${RUNS.toLocaleString('en')} runs of ${STEPS} steps on two workers`,
          `${oursPerS} steps/s`,
          `${ratio} x the ${handPerS} of a hand-written lease loop in two processes; at least 0.9 (worst round ${short(at(ratios, 0))}); CPU of the workers for a step ${cpu.ours} µs, by hand ${cpu.hand}`,
        ],
      ],
    };
  });
}

interface Rate {
  readonly perS: number;
  /** Of the workers, for a step. Microseconds. */
  readonly cpuUs: number;
}

async function rateOf(crew: readonly Worker[], ended: Ended): Promise<Rate> {
  const last = ended.after(RUNS);
  const begin = machineMs();
  await Promise.all(crew.map((worker) => worker.do('open')));
  const perS = (RUNS * STEPS * 1_000) / ((await last) - begin);
  const closed = await Promise.all(crew.map((worker) => worker.do('close')));
  const cpuMs = closed.reduce((sum, { cpuMs = Number.NaN }) => sum + cpuMs, 0);
  return { perS, cpuUs: (cpuMs * 1_000) / (RUNS * STEPS) };
}

/** Waits for a number of runs to end. */
class Ended {
  #left = 0;
  #resolve: (atMs: number) => void = () => {};

  /** @returns when the last one of so many has ended. */
  after(count: number): Promise<number> {
    this.#left = count;
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  hear({ value, atMs }: { readonly value?: string | number; readonly atMs: number }): void {
    if (value !== 'finished') throw new Error(`A run is ${value}.`);
    this.#left -= 1;
    if (this.#left === 0) this.#resolve(atMs);
  }
}

export { HAND_TABLES };
