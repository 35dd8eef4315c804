import { describe, expect, it } from 'vitest';
import { createClaimed, expectCode, newRun, sequence, step, stepEntry } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal } from '../kit/sqlite.ts';
import { startChild } from './children.ts';

const counted = (length: number): number[] => Array.from({ length }, (_, index) => index + 1);

describe('several processes on one SQLite journal', () => {
  it('open a new file at the same time, and lose nothing that either appends', async () => {
    const path = temporaryFile();
    const children = [startChild('writeRuns', path), startChild('writeRuns', path), startChild('writeRuns', path)];
    const started = await Promise.race(children.map((child) => child.line()));
    expect(started).toBe('opening');
    const journal = openJournal(path);
    const claims = await Promise.all(counted(10).map((index) => createClaimed(journal, `parent${index}`)));
    await Promise.all(
      claims.map(async (claim) => {
        for (let head = 1; head <= 20; head += 1) await journal.append(step(claim, head));
      }),
    );
    for (const child of children) expect(await child.ended).toBe(0);
    const runs = await journal.list({ limit: 200 });
    expect(runs.length).toBe(40);
    for (const { identity } of runs) expect(await sequence(journal, identity.run)).toEqual(counted(21));
  });

  it('wait for each other: a short lock delays an append', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    let settled = false;
    const append = Promise.resolve(journal.append(step(claim, 1))).then(() => {
      settled = true;
    });
    // Reads go on, and the append waits.
    expect(await sequence(journal, 'r1')).toEqual([1]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toBe(false);
    child.process.stdin?.write('go\n');
    await append;
    expect(await sequence(journal, 'r1')).toEqual([1, 2]);
  });

  it('give up on a lock that is held too long, and the same append succeeds later', async () => {
    const path = temporaryFile();
    const journal = openJournal(path, { busyTimeoutMs: 100 });
    const claim = await createClaimed(journal, 'r1');
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    const refused = [journal.append(step(claim, 1)), journal.create(newRun('r2'))];
    for (const write of refused) {
      const error = await expectCode(write, 'journal_busy');
      expect(error.message).toContain('Another process');
    }
    child.process.stdin?.write('go\n');
    expect(await child.line()).toBe('free');
    await journal.append(step(claim, 1));
    expect(await sequence(journal, 'r1')).toEqual([1, 2]);
    expect(await journal.get('r2')).toBe(undefined);
  });

  it('close: what waits for a lock is written first', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    const append = journal.append(step(claim, 1));
    const closing = journal.close();
    child.process.stdin?.write('go\n');
    await Promise.all([append, closing]);
    expect(await sequence(openJournal(path), 'r1')).toEqual([1, 2]);
  });

  it('may be killed: everything that was acknowledged is there', async () => {
    const path = temporaryFile();
    const child = startChild('appendForEver', path);
    let acknowledged = 0;
    while (acknowledged < 200) acknowledged = Number(await child.line());
    child.process.kill('SIGKILL');
    for (let line = await child.line(); line !== undefined; line = await child.line()) {
      // The last line may be cut.
      acknowledged = Math.max(acknowledged, Number(line));
    }
    expect(await child.ended).toBe('SIGKILL');
    const journal = openJournal(path);
    const entries = await journal.read('endless');
    expect(entries.length).toBeGreaterThanOrEqual(acknowledged);
    expect(entries.slice(1)).toEqual(counted(entries.length - 1).map((index) => stepEntry(index + 1)));
    const claim = await journal.claim({ owner: 'heir', leaseMs: 1_000, from: 'child' });
    expect(claim).toEqual({
      run: 'endless',
      fence: 2,
      head: entries.length,
      signals: 0,
      before: { status: 'running', wakeAt: 0 },
    });
  });
});
