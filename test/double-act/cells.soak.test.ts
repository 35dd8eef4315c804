/** Every scenario, cut in every way, once; `node scripts/double-act.ts` plays many more. */
import { beforeAll, describe, expect, it } from 'vitest';
import { cuts } from './cuts.ts';
import type { PlayReport } from './play.ts';
import { scenarios } from './scenarios.ts';
import { type Planned, season } from './season.ts';
import { countsOf, isCut, problemLines } from './tell.ts';

const STAGES = 4;
/** A run may end before it comes by the place where it was to be cut: then it is played with another seed. */
const TRIES = 5;

const seed = Number(process.env['PILOTAGE_SEED'] ?? 1);
const reports: PlayReport[] = [];
const all = scenarios.flatMap((scenario) => cuts.map((cut) => ({ scenario, cut })));

function* plays(): Generator<Planned> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    for (const [index, { scenario, cut }] of all.entries()) {
      const wasCut = reports.some((each) => each.scenario === scenario.name && each.cut === cut && isCut(each));
      if (!wasCut) yield [scenario, cut, seed + attempt * all.length + index];
    }
  }
}

beforeAll(async () => {
  console.log(`PILOTAGE_SEED=${seed}`);
  await season(STAGES, plays(), (report) => void reports.push(report));
  console.log(JSON.stringify(countsOf(reports)));
}, 300_000);

describe.each(scenarios.map(({ name }) => name))('%s', (name) => {
  it.each(cuts)('nothing happens twice, and nothing that nobody asked for: %s', (cut) => {
    const own = reports.filter((each) => each.scenario === name && each.cut === cut);
    expect(own.flatMap(problemLines)).toEqual([]);
    expect(own.some(isCut)).toBe(true);
  });
});
