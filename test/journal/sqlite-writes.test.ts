import { describe, expect, it, onTestFinished } from 'vitest';
import { type Journal, openDatabase } from '#journal';
import { SqliteJournal } from '#journal/sqlite';
import { ana, control, createClaimed, expectCode, sequence, step, stepEntry } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, resetWal, walOf, withDatabase } from '../kit/sqlite.ts';

/** A journal on a connection that the test holds too, so that it can be set up to be full or to refuse writes. */
function adjustableJournal(): { journal: Journal; pragma: (pragma: string) => number } {
  const path = temporaryFile();
  const db = openDatabase({ path });
  const journal = new SqliteJournal(db, { path });
  onTestFinished(() => journal.close());
  const pragma = (text: string): number => Number(Object.values(db.prepare(`PRAGMA ${text}`).get() ?? {})[0]);
  return { journal, pragma };
}

describe('writes to a SQLite journal', () => {
  it('of the same moment share one commit', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claims = await Promise.all(Array.from({ length: 50 }, (_, index) => createClaimed(journal, `r${index}`)));
    resetWal(path);
    await Promise.all([
      ...claims.slice(0, 47).map((claim) => journal.append(step(claim, 1))),
      journal.signal('r47', control('c1')),
      journal.renew([{ run: 'r48', fence: 1 }], 2_000),
      journal.release({ run: 'r49', fence: 1 }, { seenSignals: 0 }),
      createClaimed(journal, 'r50'),
    ]);
    expect(walOf(path).commits).toBe(1);
    for (const claim of claims.slice(0, 47)) expect(await sequence(journal, claim.run)).toEqual([1, 2]);
  });

  it('share a commit also when they are ready some microtasks later', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claims = await Promise.all(Array.from({ length: 20 }, (_, index) => createClaimed(journal, `r${index}`)));
    resetWal(path);
    await Promise.all(
      claims.map(async (claim, index) => {
        for (let turn = 0; turn < index; turn += 1) await undefined;
        await journal.append(step(claim, 1));
      }),
    );
    expect(walOf(path).commits).toBe(1);
  });

  it('that are refused do not disturb the others of their commit', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claims = await Promise.all(Array.from({ length: 10 }, (_, index) => createClaimed(journal, `r${index}`)));
    resetWal(path);
    const results = await Promise.allSettled(
      claims.map((claim, index) => journal.append(index % 2 === 0 ? step(claim, 1) : step({ ...claim, fence: 0 }, 1))),
    );
    expect(walOf(path).commits).toBe(1);
    expect(results.map((result) => result.status === 'fulfilled')).toEqual(claims.map((_, index) => index % 2 === 0));
    for (const [index, claim] of claims.entries()) {
      expect(await sequence(journal, claim.run)).toEqual(index % 2 === 0 ? [1, 2] : [1]);
    }
  });

  it('that the file does not take fail alone, and the others of their commit are made', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claims = await Promise.all(Array.from({ length: 10 }, (_, index) => createClaimed(journal, `r${index}`)));
    withDatabase(path, (db) =>
      db.exec(
        `CREATE TRIGGER no BEFORE INSERT ON entries WHEN NEW.body LIKE '%not this%' BEGIN SELECT RAISE(ABORT, 'no'); END`,
      ),
    );
    const results = await Promise.allSettled(
      claims.map((claim, index) =>
        journal.append(step(claim, 1, { entries: [stepEntry(2, index === 3 ? 'not this' : 'this')] })),
      ),
    );
    expect(results.map((result) => result.status === 'fulfilled')).toEqual(claims.map((_, index) => index !== 3));
    for (const [index, claim] of claims.entries()) {
      expect(await sequence(journal, claim.run)).toEqual(index === 3 ? [1] : [1, 2]);
    }
  });

  it('belong to their run also behind two thousand million others', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const stream = { step: 0, call: 0, attempt: 1, rows: [1, 2, 3].map((value) => ({ name: 's', value })) };
    await journal.streams.append({ ...(await createClaimed(journal, 'r1')), ...stream });
    // The next ones have the next keys, with which ids are beyond what a float holds exactly.
    withDatabase(path, (db) => {
      db.exec('UPDATE runs SET key = 2147480001; UPDATE streams SET run = 2147480001, key = 2147480001');
      for (const table of ['entries', 'stream_rows'])
        db.exec(`UPDATE ${table} SET id = (2147480001 << 32) + (id & 4294967295)`);
    });
    const claim = await createClaimed(journal, 'r2');
    await journal.append(step(claim, 1));
    await journal.signal('r2', control('c1'));
    const entries = [3, 4, 5].map((seq) => stepEntry(seq));
    await journal.append({ ...step(claim, 2), entries, takes: ['c1'], status: 'paused' });
    expect(await sequence(journal, 'r2')).toEqual([1, 2, 3, 4, 5]);
    expect(await journal.inbox('r2')).toEqual([]);
    await journal.streams.append({ ...claim, ...stream });
    expect((await journal.streams.read('r2', 's', 2, 10)).rows.map(({ index }) => index)).toEqual([2, 3]);
    await journal.release(claim, { seenSignals: 1, wakeInMs: null });
    const standing = { head: 5, signals: 1, status: 'paused', agent: 'finish', drops: [], waits: [] } as const;
    await journal.repair({ run: 'r2', keep: 3, entries: [stepEntry(4), stepEntry(5)], ...standing });
    expect(await sequence(journal, 'r2')).toEqual([1, 2, 3, 4, 5]);
    expect(await journal.get('r2')).toMatchObject({ head: 5, status: 'paused' });
    expect(await sequence(journal, 'r1')).toEqual([1]);
  });

  it('TJ-18 write the new step only, however long the run is', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    const appendAlone = async (head: number): Promise<number> => {
      resetWal(path);
      await journal.append({ ...step(claim, head), entries: [stepEntry(head + 1, 'x'.repeat(200))] });
      return walOf(path).pages;
    };
    const early = await appendAlone(1);
    const entries = Array.from({ length: 999 }, (_, index) => stepEntry(index + 3, 'x'.repeat(200)));
    await journal.append({ ...step(claim, 2), entries });
    const late: number[] = [];
    for (let head = 1_001; head <= 1_010; head += 1) late.push(await appendAlone(head));
    // The page with the end of the run; now and then another one begins.
    expect(early).toBe(1);
    expect(late.filter((pages) => pages === 1).length).toBeGreaterThanOrEqual(8);
    expect(Math.max(...late)).toBeLessThanOrEqual(3);
  });

  it('cost little more than the bytes of the entry', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claims = await Promise.all(Array.from({ length: 20 }, (_, index) => createClaimed(journal, `r${index}`)));
    const value = 'x'.repeat(400);
    for (let head = 1; head <= 100; head += 1) {
      await Promise.all(
        claims.map((claim) => journal.append({ ...step(claim, head), entries: [stepEntry(head + 1, value)] })),
      );
    }
    await journal.close();
    const { stored, raw } = withDatabase(path, (db) => ({
      stored: Number(db.prepare("SELECT sum(pgsize) AS n FROM dbstat WHERE name = 'entries'").get()?.['n']),
      raw: Number(db.prepare('SELECT sum(length(body)) AS n FROM entries').get()?.['n']),
    }));
    expect(raw).toBeGreaterThan(2_000 * 400);
    // The pages of runs that are written at the same time are split now and then.
    expect(stored / raw).toBeLessThan(1.25);
  });

  it('are rolled back and refused together when the disk is full, and can be made again', async () => {
    const { journal, pragma } = adjustableJournal();
    const claims = await Promise.all(Array.from({ length: 5 }, (_, index) => createClaimed(journal, `r${index}`)));
    const most = pragma('max_page_count');
    pragma(`max_page_count = ${pragma('page_count') + 3}`);
    const large = claims.map((claim) => ({ ...step(claim, 1), entries: [stepEntry(2, 'x'.repeat(20_000))] }));
    const results = large.map((append) => journal.append(append));
    for (const result of results) {
      const error = await expectCode(result, 'journal_full');
      expect(error.message).toContain('make room');
    }
    for (const claim of claims) expect(await sequence(journal, claim.run)).toEqual([1]);
    pragma(`max_page_count = ${most}`);
    await Promise.all(large.map((append) => journal.append(append)));
    for (const claim of claims) expect(await sequence(journal, claim.run)).toEqual([1, 2]);
  });

  it('are refused by a file that has become read only, and reads go on', async () => {
    const { journal, pragma } = adjustableJournal();
    const claim = await createClaimed(journal, 'r1');
    pragma('query_only = 1');
    await expectCode(journal.append(step(claim, 1)), 'journal_read_only');
    expect(await sequence(journal, 'r1')).toEqual([1]);
    pragma('query_only = 0');
    await journal.append(step(claim, 1));
  });
});

describe('a SQLite journal that holds what this version cannot read', () => {
  async function journalWith(change: string): Promise<Journal> {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1', ana);
    for (let head = 1; head <= 4; head += 1) await journal.append(step(claim, head));
    await journal.release({ run: 'r1', fence: claim.fence }, { seenSignals: 0 });
    withDatabase(path, (db) => db.exec(change));
    return journal;
  }

  it.each([
    ['an unknown kind', `{"v":1,"kind":"teleported"}`, 'journal_entry_unknown', '"teleported"'],
    ['a newer format', `{"v":7,"kind":"moved"}`, 'journal_newer', 'format 7'],
    ['no JSON', `{"v":1,`, 'journal_corrupt', 'JSON'],
    ['an unknown decision', `{"v":1,"kind":"moved","decision":{"kind":"dream"}}`, 'unknown_decision_kind', '"dream"'],
  ] as const)('names the run, the entry and the trouble: %s', async (_what, body, code, word) => {
    const journal = await journalWith(`UPDATE entries SET body = '${body}' WHERE seq = 3`);
    const error = await expectCode(journal.read('r1'), code);
    expect(error.data).toMatchObject({ run: 'r1', seq: 3 });
    expect(error.message).toContain('r1');
    expect(error.message).toContain(word);
    expect((await journal.read('r1', 4)).length).toBe(2);
  });

  it.each([
    ['an entry is missing', 'DELETE FROM entries WHERE seq = 3'],
    ['the last entry is missing', 'DELETE FROM entries WHERE seq = 5'],
    ['all that followed an entry is missing', 'DELETE FROM entries WHERE seq > 2'],
    ['an entry belongs to another run', 'UPDATE entries SET id = (99 << 32) + seq WHERE seq = 2'],
  ])('never hands out a part as the whole: %s', async (_what, change) => {
    const journal = await journalWith(change);
    const error = await expectCode(journal.read('r1'), 'journal_corrupt');
    expect(error.data).toMatchObject({ run: 'r1' });
  });

  it('finds artifacts whose bytes have changed', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const scope = { tenant: 't', user: 'u', session: 's' };
    const { artifactRef } = await journal.artifacts.put(scope, Buffer.from('right'), { mime: 'text/plain' });
    withDatabase(path, (db) => db.exec("UPDATE artifacts SET bytes = CAST('wrong' AS BLOB)"));
    await expectCode(journal.artifacts.get(scope, artifactRef), 'journal_corrupt');
  });

  it('does not take other bytes for an artifact because their digests begin alike', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const scope = { tenant: 't', user: 'u', session: 's' };
    await journal.artifacts.put(scope, Buffer.from('first'), { mime: 'text/plain' });
    withDatabase(path, (db) => db.exec("UPDATE artifacts SET sha256 = substr(sha256, 1, 32) || 'rest'"));
    await expectCode(journal.artifacts.put(scope, Buffer.from('first'), { mime: 'text/plain' }), 'journal_conflict');
  });
});
