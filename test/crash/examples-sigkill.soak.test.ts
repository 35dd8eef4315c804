/**
 * The processes of the examples die before and after each write, and the examples are started again. What a process leaves that dies there is a copy of its
 * files at that moment; at each eighth moment it is killed, and the one that goes on too. Each time these are other ones.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { examples, goOnFrom, playKilled, playWhole } from './examples.ts';

const EVERY = 8;

describe.each(examples)('%s', (example) => {
  it('comes to the same when it is killed at any moment and started again, and does nothing twice', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-example-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { moments, runs, problems } = await playWhole(example, folder);
    expect(problems).toEqual([]);
    expect(moments.length).toBeGreaterThan(10);
    for (const [index, played] of (await goOnFrom(example, moments)).entries()) {
      expect(played, `after moment ${index + 1} of ${moments.length}`).toEqual({ runs, problems: [] });
    }
    const seed = Number(process.env['PILOTAGE_SEED'] ?? Math.floor(Math.random() * EVERY));
    for (let at = 1 + (seed % EVERY); at <= moments.length; at += EVERY) {
      const played = await playKilled(example, at);
      expect(played, `killed at ${at} of ${moments.length}: PILOTAGE_SEED=${seed}`).toEqual({ runs, problems: [] });
    }
  }, 600_000);
});
