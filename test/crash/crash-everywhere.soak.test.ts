import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { assertCrashProof, type CrashReport, crashEverywhere } from '#testing';
import { approvalScenarios } from './approval-scenarios.ts';
import { flowScenarios } from './flow-scenarios.ts';
import { planScenarios } from './plan-scenarios.ts';
import { scenarios } from './scenarios.ts';
import { taskScenarios } from './task-scenarios.ts';
import { waitScenarios } from './wait-scenarios.ts';

const all = [
  ...scenarios,
  ...taskScenarios,
  ...planScenarios,
  ...flowScenarios,
  ...waitScenarios,
  ...approvalScenarios,
];
/** Played once more in a file that each process opens anew. */
const IN_SQLITE = [
  'one after another',
  'pauses',
  'heavy results',
  'a task that asks somebody, twice',
  'a plan that grows while it is carried out',
  'a flow with a router, a map, a subflow, an approval and a join',
  'a once call that does something, asks, and does something else',
  'two people approve, and both remember it',
];

const folder = mkdtempSync(join(tmpdir(), 'pilotage-crash-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a crash at every moment', () => {
  const reports: CrashReport[] = [];

  it.each(
    all.map((scenario) => [scenario.name, scenario] as const),
  )('loses and repeats nothing: %s', async (_, scenario) => {
    const report = await crashEverywhere(scenario);
    reports.push(report);
    assertCrashProof(report);
    expect(report.doubles).toBe(20);
  });

  it.each(IN_SQLITE)('holds in a SQLite file that is opened again: %s', async (name) => {
    const scenario = all.find((candidate) => candidate.name === name);
    if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
    const report = await crashEverywhere({
      ...scenario,
      name: `${name}, in SQLite`,
      journal: (clock, store) => sqliteJournal({ path: join(folder, `${store}.db`), clock, synchronous: 'normal' }),
    });
    reports.push(report);
    assertCrashProof(report);
  });

  it('covers at least 1,000 different moments', () => {
    const points = reports.flatMap((report) => report.points.map((point) => `${report.scenario}, ${point}`));
    const distinct = new Set(points).size;
    const doubles = reports.reduce((sum, report) => sum + report.doubles, 0);
    const violations = reports.flatMap((report) => report.violations).length;
    console.log(
      `${distinct} crash points in ${reports.length} scenarios, ${doubles} runs with two crashes, ${violations} violations`,
    );
    expect(reports).toHaveLength(all.length + IN_SQLITE.length);
    expect(distinct).toBe(points.length);
    expect(distinct).toBeGreaterThanOrEqual(1_000);
  });
});
