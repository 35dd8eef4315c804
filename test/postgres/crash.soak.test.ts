/** Processes that die at any moment, or are killed, with their journal on Postgres. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { assertCrashProof, crashEverywhere } from '#testing';
import { approvalScenarios } from '../crash/approval-scenarios.ts';
import { flowScenarios } from '../crash/flow-scenarios.ts';
import { killAtRandom } from '../crash/killing.ts';
import { planScenarios } from '../crash/plan-scenarios.ts';
import { scenarios } from '../crash/scenarios.ts';
import { taskScenarios } from '../crash/task-scenarios.ts';
import { problemsOf, summaryOf } from '../crash/verdict.ts';
import { waitScenarios } from '../crash/wait-scenarios.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { emptied, sharedPool } from './emptied.ts';

const all = [
  ...scenarios,
  ...taskScenarios,
  ...planScenarios,
  ...flowScenarios,
  ...waitScenarios,
  ...approvalScenarios,
];
const PLAYED = [
  'one after another',
  'pauses',
  'heavy results',
  'a task that asks somebody, twice',
  'a flow with a router, a map, a subflow, an approval and a join',
  'a once call that does something, asks, and does something else',
  'two people approve, and both remember it',
];
/** Each of its processes makes connections of its own. With the others they come out of one pool: making them takes most of the time. */
const CONNECTS = 'heavy results';
const KILLS = 50;

const folder = mkdtempSync(join(tmpdir(), 'pilotage-crash-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a journal on Postgres', async () => {
  const url = await postgresUrl();
  const pool = sharedPool(url, 4);
  const schemaFor = emptied(pool);

  it.each(PLAYED)('loses and repeats nothing in a crash at every moment: %s', async (name) => {
    const scenario = all.find((candidate) => candidate.name === name);
    if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
    const report = await crashEverywhere({
      ...scenario,
      name: `${name}, on Postgres`,
      journal: async (clock, store) => {
        const schema = await schemaFor(store);
        return name === CONNECTS
          ? postgresJournal({ url }, { clock, schema, maxConnections: 4 })
          : postgresJournal({ pool }, { clock, schema });
      },
    });
    console.log(`${name}: ${report.points.length} points`);
    assertCrashProof(report);
  }, 900_000);

  it('survives SIGKILL at random moments: no entry lost, nothing done twice, every run ends as it would have', async () => {
    const seed = Number(process.env['PILOTAGE_SEED'] ?? Math.floor(Math.random() * 1e6));
    console.log(`PILOTAGE_SEED=${seed}`);
    const { kills, witnesses } = await killAtRandom({ folder, place: `${url}?maxConnections=4`, seed, kills: KILLS });
    const problems = witnesses.flatMap(problemsOf);
    console.log(`${kills} kills, ${summaryOf(witnesses)}, ${problems.length} violations`);
    expect(problems, `PILOTAGE_SEED=${seed}`).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(KILLS);
    expect(witnesses.some(({ state }) => state.task?.depth === 2)).toBe(true);
  }, 600_000);
});
