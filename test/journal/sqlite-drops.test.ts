/** What is removed from a file goes in commits of bounded size: everybody else who writes waits for each. */
import { describe, expect, it } from 'vitest';
import type { Journal } from '#journal';
import { identity, newRun, startedEntry, step } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, resetWal, walOf } from '../kit/sqlite.ts';

const ARTIFACTS = 2_500;
const scope = identity('r1');

async function filled(): Promise<{ journal: Journal; path: string }> {
  const path = temporaryFile();
  const journal = openJournal(path);
  const texts = Array.from({ length: ARTIFACTS }, (_, number) => Buffer.from(`artifact ${number}`));
  await Promise.all(texts.map((bytes) => journal.artifacts.put(scope, bytes, { mime: 'text/plain' })));
  resetWal(path);
  return { journal, path };
}

describe('artifacts are removed in parts', () => {
  it('those of a user', async () => {
    const { journal, path } = await filled();
    expect(await journal.artifacts.erase(scope)).toBe(ARTIFACTS);
    expect(walOf(path).commits).toBe(3);
    expect((await journal.artifacts.list(scope, 10)).total).toBe(0);
  });

  it('those of a session whose last run is pruned, which goes behind them', async () => {
    const { journal, path } = await filled();
    const entries = [startedEntry(scope, { conversation: false })];
    await journal.create(newRun('r1', { entries, claim: { owner: 'ana', leaseMs: 1_000 } }));
    await journal.append(step({ run: 'r1', fence: 1 }, 1, { status: 'finished' }));
    resetWal(path);
    const request = { olderThanMs: 0, status: ['finished'] } as const;
    expect(await journal.prune({ ...request, dryRun: true })).toEqual({ runs: 1 });
    expect(await journal.prune(request)).toEqual({ runs: 1 });
    expect(walOf(path).commits).toBe(3);
    expect((await journal.artifacts.list(scope, 10)).total).toBe(0);
    expect(await journal.get('r1')).toBe(undefined);
  });
});
