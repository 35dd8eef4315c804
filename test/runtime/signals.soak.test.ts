/** A stream of signals through two processes on one file, of which one is killed again and again: none is lost, none comes twice. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { foldEntries } from '#state';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { turn } from '../kit/waiting.ts';

const COUNT = 60;
const KILLS = 12;

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

it.each([1, 2, 3])('round %i: every signal is taken once, in order, however often the process dies', async (round) => {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-signals-'));
  folders.push(folder);
  const journal = sqliteJournal({ path: join(folder, 'journal.db') });
  const program = builtFile('test/runtime/signal-stream-child.ts');
  let sent = 0;
  const signal = async (): Promise<void> => {
    sent += 1;
    const said = { tenant: 'local', key: 'card', id: `card ${sent}`, payload: sent, keepMs: 600_000 };
    const [one, other] = await Promise.all([journal.events.signal(said), journal.events.signal(said)]);
    expect([one.isNew, other.isNew].filter(Boolean)).toHaveLength(1);
  };
  for (let kill = 0; kill <= KILLS; kill += 1) {
    let heard = 0;
    const born = bear({ program, folder, args: [String(COUNT)] }, (line) => {
      heard += 1;
      const isLast = kill === KILLS;
      if (!isLast && heard > (kill * (round + 1)) % 7) born.child.kill('SIGKILL');
      if (line === 'ended') heard = Number.POSITIVE_INFINITY;
    });
    let isOver = false;
    const end = born.end.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const share = kill === KILLS ? COUNT : Math.ceil((COUNT * (kill + 1)) / (KILLS + 1));
      if (sent < share) await signal();
      await turn();
    }
    await end;
  }
  const { ending } = foldEntries(await journal.read('stream'));
  expect(ending).toMatchObject({ kind: 'finished', reason: 'goal' });
  const [step] = foldEntries(await journal.read('stream')).steps;
  const outcome = step?.calls[0]?.outcome;
  expect(outcome?.kind === 'value' && outcome.value).toEqual(Array.from({ length: COUNT }, (_, index) => index + 1));
  expect(await journal.events.list({ tenant: 'local' })).toEqual([]);
  expect(await journal.waits.list({})).toEqual([]);
  await journal.close();
});
