/** Durable steps: one run beside raw inserts of what it stored, and 1,000 runs at once beside one after another. */
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import type { Runtime } from '#pilotage';
import type { Effect } from '#pilotage/tools';
import { type Measured, median, type Row, short, times, wallMs } from './measure.ts';
import { ourPlanner, ourRuntime, runOnce, runTogether } from './ours.ts';
import { openRaw, storedTexts } from './raw-sqlite.ts';
import { withScratch } from './scratch.ts';

const RUN_STEPS = 200;
const ROUNDS = 9;
const GROUP_STEPS = 10;
const GROUP_RUNS = 1000;
const SEQUENTIAL_RUNS = 50;
const GROUP_ROUNDS = 5;

export async function durable(): Promise<Measured> {
  return withScratch(async (folder) => {
    const read = await besideRaw(join(folder, 'read'), 'read');
    const once = await besideRaw(join(folder, 'once'), 'once');
    const { alone, together, gain } = await group(join(folder, 'group'));
    const row = (what: string, { stepsPerS, rawPerS, ratio }: BesideRaw): Row => [
      what,
      `${Math.round(stepsPerS)} steps/s`,
      `${ratio} x the time of its entries as raw inserts, ${Math.round(rawPerS)}/s (at most 1.4)`,
    ];
    return {
      keys: { durable_ratio_1: read.ratio, durable_group_gain: gain },
      rows: [
        row("durable, one run, tool 'read'", read),
        row("durable, one run, tool 'once'", once),
        ['durable, runs of 10 steps, one at a time', `${Math.round(alone)} steps/s`],
        ['durable, 1,000 runs of 10 steps at once', `${Math.round(together)} steps/s`, `${gain} x (at least 4)`],
      ],
    };
  });
}

interface BesideRaw {
  readonly ratio: number;
  readonly stepsPerS: number;
  readonly rawPerS: number;
}

/** In turns, each time on fresh files; the first round warms up. */
async function besideRaw(name: string, effect: Effect): Promise<BesideRaw> {
  const ratios: number[] = [];
  const ours: number[] = [];
  const raws: number[] = [];
  let entries = 0;
  for (let round = 0; round <= ROUNDS; round += 1) {
    const path = `${name}-${round}.db`;
    const ourMs = await timeRun(path, effect);
    const texts = storedTexts(path);
    const raw = openRaw(`${name}-${round}-raw.db`);
    const rawMs = await wallMs(async () => raw.insertEach(texts));
    raw.close();
    if (round === 0) continue;
    entries = texts.length;
    ratios.push(ourMs / rawMs);
    ours.push(ourMs);
    raws.push(rawMs);
  }
  return {
    ratio: short(median(ratios)),
    stepsPerS: (RUN_STEPS * 1000) / median(ours),
    rawPerS: (entries * 1000) / median(raws),
  };
}

async function timeRun(path: string, effect: Effect): Promise<number> {
  const journal = sqliteJournal({ path });
  const runtime = ourRuntime(ourPlanner(RUN_STEPS), journal, effect);
  const ms = await wallMs(() => runOnce(runtime, RUN_STEPS));
  await runtime.close();
  await journal.close();
  return ms;
}

interface Group {
  /** Steps per second. */
  readonly alone: number;
  readonly together: number;
  readonly gain: number;
}

/** Runs of one length, in turns one after another and all at once, each time on a fresh file; the first round warms up. */
async function group(name: string): Promise<Group> {
  const alone: number[] = [];
  const together: number[] = [];
  for (let round = 0; round <= GROUP_ROUNDS; round += 1) {
    const oneByOne = await stepsPerS(`${name}-${round}-alone.db`, SEQUENTIAL_RUNS, (runtime) =>
      times(SEQUENTIAL_RUNS, () => runOnce(runtime, GROUP_STEPS)),
    );
    const atOnce = await stepsPerS(`${name}-${round}-together.db`, GROUP_RUNS, (runtime) =>
      runTogether(runtime, GROUP_STEPS, GROUP_RUNS),
    );
    if (round === 0) continue;
    alone.push(oneByOne);
    together.push(atOnce);
  }
  const gains = together.map((rate, round) => rate / (alone[round] ?? Number.NaN));
  return { alone: median(alone), together: median(together), gain: short(median(gains)) };
}

async function stepsPerS(path: string, runs: number, work: (runtime: Runtime) => Promise<void>): Promise<number> {
  const journal = sqliteJournal({ path });
  const runtime = ourRuntime(ourPlanner(GROUP_STEPS), journal);
  await runOnce(runtime, GROUP_STEPS);
  const ms = await wallMs(() => work(runtime));
  await runtime.close();
  await journal.close();
  return (runs * GROUP_STEPS * 1000) / ms;
}
