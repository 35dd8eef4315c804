/** A crash at every moment of a run that undoes its calls: nothing stays booked, and nothing is undone twice. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { assertCrashProof, crashEverywhere } from '#testing';
import { undoScenarios } from './undo-scenarios.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-undo-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a crash at every moment of undoing', () => {
  it.each(
    undoScenarios.map((scenario) => [scenario.name, scenario] as const),
  )('leaves nothing: %s', async (_, scenario) => {
    const report = await crashEverywhere(scenario, { doubles: 5 });
    assertCrashProof(report);
    expect(report.points.length).toBeGreaterThan(20);
  });

  it('leaves nothing in a SQLite file that is opened again', async () => {
    const [scenario] = undoScenarios;
    if (scenario === undefined) throw new Error('There is no scenario.');
    const journal = (clock: Parameters<NonNullable<typeof scenario.journal>>[0], store: string) =>
      sqliteJournal({ path: join(folder, `${store}.db`), clock, synchronous: 'normal' });
    assertCrashProof(await crashEverywhere({ ...scenario, journal }, { doubles: 2 }));
  });
});
