/**
 * Plays the double-act kit: `node scripts/double-act.ts --kills 300 --stops 200 --seed 1` cuts agents in every scenario until so many
 * processes were killed and so many stopped, with `--others` plays of each other cut in each scenario. Prints what failed, a table,
 * and at last one line of JSON. `--scenario "react text" --cut stop --seed 17` plays that one again.
 */
import { parseArgs } from 'node:util';
import { cuts } from '../test/double-act/cuts.ts';
import type { PlayReport } from '../test/double-act/play.ts';
import { scenarios } from '../test/double-act/scenarios.ts';
import { type Planned, season } from '../test/double-act/season.ts';
import { countsOf, isClean, problemLines, table } from '../test/double-act/tell.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '300' },
    stops: { type: 'string', default: '200' },
    others: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    lanes: { type: 'string', default: '4' },
    scenario: { type: 'string' },
    cut: { type: 'string' },
  },
});
const [kills, stops, others, seed, lanes] = [values.kills, values.stops, values.others, values.seed, values.lanes].map(
  Number,
) as [number, number, number, number, number];
for (const [name, value] of Object.entries({ kills, stops, others, seed, lanes })) {
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} must be a whole number from 0 up.`);
}
const cast = scenarios.filter(({ name }) => values.scenario === undefined || name === values.scenario);
const ways = cuts.filter((name) => values.cut === undefined || name === values.cut);
if (cast.length === 0 || ways.length === 0) throw new Error('There is no such scenario, or no such cut.');

const reports: PlayReport[] = [];
const isGiven = (...names: readonly string[]): boolean => names.some((name) => process.argv.includes(`--${name}`));
const isOne = cast.length === 1 && ways.length === 1 && isGiven('seed') && !isGiven('kills', 'stops', 'others');

/** The plays in turn: each round has every scenario with every cut that is still wanted. */
function* plays(): Generator<Planned> {
  for (let round = 0; ; round += 1) {
    let isOver = true;
    for (const cut of ways) {
      for (const scenario of cast) {
        const isWanted =
          cut === 'kill'
            ? countsOf(reports).kills < kills
            : cut === 'stop'
              ? countsOf(reports).stops < stops
              : round < others;
        if (!isWanted) continue;
        isOver = false;
        yield [scenario, cut, isOne ? seed : seed + round * scenarios.length + scenarios.indexOf(scenario)];
        if (isOne) return;
      }
    }
    if (isOver) return;
  }
}

const started = performance.now();
await season(isOne ? 1 : Math.max(1, lanes), plays(), (report) => {
  reports.push(report);
  for (const line of problemLines(report)) console.log(line);
  if (isOne) console.log(JSON.stringify(report, undefined, 2));
});
console.log(table(reports));
console.log(JSON.stringify({ ...countsOf(reports), seed, ms: Math.round(performance.now() - started) }));
process.exitCode = reports.every(isClean) ? 0 : 1;
