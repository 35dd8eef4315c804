/** A real process is killed behind each entry of a run that undoes its calls; the next one goes on. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { foldEntries } from '#state';
import { builtFile } from '../kit/built.ts';

const CHILD = builtFile('test/crash/undo-child.ts');

/** @param killAt the entry behind which it is killed. @returns the entries that it said, and whether it came to its end. */
async function life(folder: string, end: string, killAt = Number.POSITIVE_INFINITY) {
  const child = spawn(process.execPath, [CHILD, folder, end], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
    const last = Math.max(0, ...Array.from(text.matchAll(/^ack (\d+) /gm), ([, seq]) => Number(seq)));
    if (last >= killAt) child.kill('SIGKILL');
  });
  await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  return { entries: text.match(/^ack /gm)?.length ?? 0, isDone: text.includes('done') };
}

async function played(end: string, killAt?: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-undo-kill-'));
  try {
    const first = await life(folder, end, killAt);
    if (!first.isDone) expect((await life(folder, end)).isDone).toBe(true);
    const world = readFileSync(join(folder, 'world.txt'), 'utf8').trimEnd().split('\n');
    const done = world.map((line) => line.split(' ').slice(0, 2).join(' '));
    expect(done, `killed at ${killAt}`).toEqual(['book 0', 'book 1', 'book 2', 'cancel 2', 'cancel 1', 'cancel 0']);
    const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
    const { ending } = foldEntries(await journal.read('trip'));
    await journal.close();
    const reason = ending?.kind === 'failed' ? ending.error.code : ending?.reason;
    expect(reason, `killed at ${killAt}`).toBe(end === 'failure' ? 'planner_failed' : 'cancelled');
    return first.entries;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

it.each(['failure', 'cancel'])('after a %s, nothing stays booked and nothing is cancelled twice', async (end) => {
  const entries = await played(end);
  expect(entries).toBeGreaterThan(15);
  for (let killAt = 1; killAt < entries; killAt += 1) await played(end, killAt);
});
