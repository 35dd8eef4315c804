import type { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { encodeEntry, scopeKey } from '#core';
import { artifactDigest, MIGRATIONS, type RunStatus, SCHEMA_VERSION } from '#journal';
import {
  claimFirst,
  control,
  expectCode,
  identity,
  newTask,
  sequence,
  startedEntry,
  step,
  stepEntry,
  waiting,
  watchMessage,
} from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';

/** A file as the version of that format made it, with what `fill` writes into it. */
function oldFile(version: number, fill: (db: DatabaseSync) => void): string {
  const path = temporaryFile();
  withDatabase(path, (db) => {
    for (const migration of MIGRATIONS.slice(0, version)) db.exec(migration);
    db.exec(`PRAGMA user_version = ${version}`);
    fill(db);
    db.exec('PRAGMA journal_mode = WAL');
  });
  return path;
}

interface OldRun {
  readonly status?: RunStatus;
  readonly fence?: number;
  readonly owner?: string;
  readonly leaseUntil?: number;
  readonly wakeAt?: number | null;
  readonly agent?: string;
  /** In place of the text of the first entry. */
  readonly firstBody?: string;
}

/** As an entry of version 1: the agent was its planner. */
function inOldWords(body: string): string {
  const { agent, ...rest } = JSON.parse(body);
  return JSON.stringify({ ...rest, v: 1, planner: agent });
}

/** A run with two entries, as versions 1 and 2 stored it. Returns its key. */
function insertOldRun(db: DatabaseSync, run: string, old: OldRun = {}): number {
  const { status = 'running', fence = 0, owner = null, leaseUntil = null, wakeAt = 0, agent = 'react' } = old;
  const inserted = db
    .prepare(`
      INSERT INTO runs (id, tenant, user, session, priority, status, created_at, updated_at, head, signals, fence, wake_at, owner, lease_until)
      VALUES (?, 'acme', 'ana', 's1', 4, ?, 10, 20, 2, 0, ?, ?, ?, ?)`)
    .run(run, status, fence, wakeAt, owner, leaseUntil);
  const key = Number(inserted.lastInsertRowid);
  const insert = db.prepare('INSERT INTO entries (run, seq, previous, body) VALUES (?, ?, ?, ?)');
  const body = old.firstBody ?? inOldWords(encodeEntry(startedEntry(identity(run), { agent })));
  const first = insert.run(key, 1, null, body).lastInsertRowid;
  const last = insert.run(key, 2, first, encodeEntry(stepEntry(2))).lastInsertRowid;
  db.prepare('UPDATE runs SET first_entry = ?, last_entry = ? WHERE key = ?').run(first, last, key);
  return key;
}

function schemaOf(path: string): unknown {
  return withDatabase(path, (db) => db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all());
}

describe('the file of an older version', () => {
  it('has the schema of a new file when it has been opened', async () => {
    const fresh = temporaryFile();
    await openJournal(fresh).close();
    for (let version = 1; version < SCHEMA_VERSION; version += 1) {
      const path = oldFile(version, () => undefined);
      expect(schemaOf(path)).not.toEqual(schemaOf(fresh));
      await openJournal(path).close();
      expect(schemaOf(path)).toEqual(schemaOf(fresh));
      withDatabase(path, (db) => {
        expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: SCHEMA_VERSION });
      });
    }
  });

  it('of format 1 gets the tables that came later, and keeps what it has', async () => {
    const scope = identity('r1');
    const bytes = Buffer.from('{"a":1}');
    const { artifactRef, sha256 } = artifactDigest(bytes);
    const path = oldFile(1, (db) => {
      insertOldRun(db, 'r1', { fence: 1, owner: 'ana', leaseUntil: 1 });
      db.prepare('INSERT INTO artifacts (scope, ref, sha256, mime, bytes) VALUES (?, ?, ?, ?, ?)').run(
        scopeKey(scope),
        artifactRef,
        sha256,
        'application/json',
        bytes,
      );
    });
    const journal = openJournal(path);
    expect(await sequence(journal, 'r1')).toEqual([1, 2]);
    expect(await journal.artifacts.list(scope, 5)).toEqual({
      rows: [{ artifactRef, mime: 'application/json', sizeBytes: 7, source: 'unknown', createdAt: 0 }],
      total: 1,
    });
    expect((await journal.artifacts.put(scope, bytes, { mime: 'text/plain' })).artifactRef).toBe(artifactRef);
    expect((await journal.artifacts.list(scope, 5)).total).toBe(1);
    const claim = { run: 'r1', fence: 1, head: 2, signals: 0 };
    await journal.append(step(claim, 2, { status: 'failed' }));
  });

  it('of format 2 keeps its runs, and those that nobody has claimed are pending', async () => {
    const path = oldFile(2, (db) => {
      insertOldRun(db, 'new', { agent: 'deep "x"' });
      insertOldRun(db, 'leased', { fence: 3, owner: 'dead', leaseUntil: 9e15 });
      insertOldRun(db, 'parked', { fence: 1, wakeAt: null, status: 'paused' });
      insertOldRun(db, 'timed', { fence: 1, wakeAt: 9e15 });
      insertOldRun(db, 'over', { fence: 1, owner: 'dead', leaseUntil: 9e15, status: 'finished' });
    });
    const journal = openJournal(path);
    const parts = {
      query: 'query of new',
      agent: 'deep "x"',
      priority: 4,
      createdAt: 10,
      updatedAt: 20,
      head: 2,
      turn: 1,
    };
    expect(await journal.get('new')).toEqual({
      identity: identity('new'),
      status: 'pending',
      ...parts,
      readAt: expect.any(Number),
    });
    const rest = (await journal.list({})).map(({ identity: { run }, status, agent, wakeAt }) => [
      run,
      status,
      agent,
      wakeAt,
    ]);
    expect(rest).toEqual([
      ['over', 'finished', 'react', null],
      ['timed', 'running', 'react', 9e15],
      ['parked', 'paused', 'react', null],
      ['leased', 'running', 'react', undefined],
      ['new', 'pending', 'deep "x"', undefined],
    ]);
    expect(await journal.read('new')).toEqual([startedEntry(identity('new'), { agent: 'deep "x"' }), stepEntry(2)]);
    const lease = { owner: 'heir', leaseMs: 60_000 };
    expect(await claimFirst(journal, { ...lease, agents: ['finish'] })).toBe(undefined);
    expect(await claimFirst(journal, { ...lease, agents: ['react'] })).toBe(undefined);
    expect(await journal.claim({ ...lease, run: 'leased' })).toBe(undefined);
    expect((await journal.claim({ ...lease, run: 'leased', from: 'dead' }))?.run).toBe('leased');
    expect((await claimFirst(journal, { ...lease, agents: ['deep "x"'] }))?.run).toBe('new');
    expect(await claimFirst(journal, lease)).toBe(undefined);
  });

  it('of format 2 keeps what was said to its runs, and they can have tasks', async () => {
    const path = oldFile(2, (db) => {
      const key = insertOldRun(db, 'r1', { fence: 1 });
      const insert = db.prepare('INSERT INTO controls (run, id, number, body) VALUES (?, ?, ?, ?)');
      insert.run(key, 'taken', 1, null);
      for (let index = 0; index < 256; index += 1) {
        insert.run(key, `c${index}`, index + 2, JSON.stringify(control(`c${index}`)));
      }
      db.exec('UPDATE runs SET signals = 257');
    });
    const journal = openJournal(path);
    expect((await waiting(journal, 'r1')).length).toBe(256);
    expect((await journal.inbox('r1'))[0]).toEqual({ message: control('c0'), storedAt: 0 });
    expect(await journal.signal('r1', control('taken'))).toBe(false);
    await expectCode(journal.signal('r1', control('more')), 'inbox_full');
    const claim = { run: 'r1', fence: 1, head: 2, signals: 257 };
    const tells = [{ run: 'r1', message: watchMessage('w1') }];
    await expectCode(journal.append(step(claim, 2, { tells, seenSignals: 256 })), 'inbox_changed');
    await journal.append(step(claim, 2, { tells, seenSignals: 257, starts: [newTask('r1.0', 'r1')], treeLimit: 1 }));
    expect((await waiting(journal, 'r1')).at(-1)).toBe('w1');
    expect((await journal.list({ parent: 'r1' })).length).toBe(1);
    withDatabase(path, (db) => {
      expect(db.prepare('PRAGMA foreign_key_check').all()).toEqual([]);
      expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    });
  });

  it('of format 2 can be opened although a run in it cannot be read', async () => {
    const path = oldFile(2, (db) => {
      insertOldRun(db, 'torn', { firstBody: '{"v":1,' });
      insertOldRun(db, 'whole');
    });
    const journal = openJournal(path);
    expect((await journal.get('whole'))?.agent).toBe('react');
    expect(await journal.get('torn')).toMatchObject({ query: '', problem: { code: 'journal_corrupt' } });
  });
});
