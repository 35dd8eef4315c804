/** A journal that is opened for reading: nothing is written, also where nothing could be. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { type Journal, MIGRATIONS, SCHEMA_VERSION } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { ana, claimFirst, createClaimed, expectCode, identity, newRun, sequence, step } from '#testing';
import { builtFile } from '../kit/built.ts';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';
import { startChild } from './children.ts';

/** What is in the folder, but for the index that those who have the journal open share. */
function folderOf(path: string): readonly (readonly [string, string])[] {
  const folder = dirname(path);
  return readdirSync(folder).map((name) => [
    name,
    name.endsWith('-shm') ? '' : readFileSync(join(folder, name)).toString('base64'),
  ]);
}

async function written(runs: number): Promise<string> {
  const path = temporaryFile();
  const journal = openJournal(path);
  for (let index = 1; index <= runs; index += 1) await createClaimed(journal, `r${index}`);
  await journal.close();
  return path;
}

const reading = (path: string): Journal => openJournal(path, { readOnly: true, watchIntervalMs: 10 });
const idsOf = async (journal: Journal): Promise<string[]> =>
  (await journal.list({})).map((record) => record.identity.run).toSorted();

/** The journal of a process that was killed. */
async function crashed(): Promise<string> {
  const path = temporaryFile();
  const child = startChild('appendForEver', path);
  while (Number(await child.line()) < 20);
  child.process.kill('SIGKILL');
  await child.ended;
  return path;
}

describe('a SQLite journal that is opened for reading', () => {
  it('leaves the file and its folder as they are', async () => {
    const path = await written(2);
    const before = folderOf(path);
    const journal = reading(path);
    expect(await idsOf(journal)).toEqual(['r1', 'r2']);
    expect(await sequence(journal, 'r1')).toEqual([1]);
    expect(await journal.inbox('r1')).toEqual([]);
    await journal.close();
    expect(folderOf(path)).toEqual(before);
  });

  it('sees what a process writes meanwhile, whether that began before or after', async () => {
    const path = await written(1);
    const early = reading(path);
    expect(await idsOf(early)).toEqual(['r1']);
    const writer = openJournal(path);
    await writer.create(newRun('r2'));
    const late = reading(path);
    expect(await idsOf(early)).toEqual(['r1', 'r2']);
    expect(await idsOf(late)).toEqual(['r1', 'r2']);
    let wakes = 0;
    early.watch('r3', () => {
      wakes += 1;
    });
    await writer.create(newRun('r3'));
    await expect.poll(() => wakes).toBeGreaterThan(0);
    await writer.close();
    expect(await idsOf(early)).toEqual(['r1', 'r2', 'r3']);
    expect(await idsOf(late)).toEqual(['r1', 'r2', 'r3']);
  });

  it.each([
    ['with its log and index', []],
    ['with its log, and without the index', ['-shm']],
  ])('reads what a killed process has left, %s, and leaves it so', async (_, without) => {
    const path = await crashed();
    for (const end of without) rmSync(`${path}${end}`);
    const before = folderOf(path);
    const journal = reading(path);
    expect((await sequence(journal, 'endless')).length).toBeGreaterThanOrEqual(20);
    await journal.close();
    expect(folderOf(path)).toEqual(before);
  });

  it('reads the log beside the file that a symbolic link names, of a living process and of a killed one', async () => {
    const path = await written(1);
    symlinkSync(path, `${path}.link`);
    const early = reading(`${path}.link`);
    expect(await idsOf(early)).toEqual(['r1']);
    const writer = openJournal(path);
    await writer.create(newRun('r2'));
    expect(await idsOf(early)).toEqual(['r1', 'r2']);
    expect(await idsOf(reading(`${path}.link`))).toEqual(['r1', 'r2']);
    await writer.close();
    const left = await crashed();
    symlinkSync(left, `${left}.link`);
    expect((await sequence(reading(`${left}.link`), 'endless')).length).toBeGreaterThanOrEqual(20);
  });

  it('refuses whatever would write', async () => {
    const path = await written(1);
    const journal = reading(path);
    const claim = { run: 'r1', fence: 1, head: 1, signals: 0 };
    const scope = identity('r1');
    for (const write of [
      () => journal.create(newRun('r9')),
      () => journal.append(step(claim, 1)),
      () => claimFirst(journal, ana),
      () => journal.renew([claim], 1_000),
      () => journal.release(claim, { seenSignals: 0 }),
      () => journal.signal('r1', { id: 'c1', type: 'PAUSE' }),
      () => journal.artifacts.put(scope, new Uint8Array(1), { mime: 'x/y' }),
    ]) {
      await expectCode(write(), 'journal_read_only');
    }
  });

  it('makes none where there is none', async () => {
    const path = temporaryFile();
    expect(() => sqliteJournal({ path, readOnly: true })).toThrow(
      expect.objectContaining({ code: 'journal_unavailable' }),
    );
    expect(readdirSync(dirname(path))).toEqual([]);
  });

  it.each([true, false])('refuses a folder in the same words for reading and for writing: %s', (readOnly) => {
    const path = dirname(temporaryFile());
    expect(() => sqliteJournal({ path, readOnly })).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('Give the path of a file.') }),
    );
  });

  it('of an older format says what to do, and does not bring it to this one', () => {
    const path = temporaryFile();
    const db = new DatabaseSync(path);
    const older = SCHEMA_VERSION - 1;
    for (const migration of MIGRATIONS.slice(0, older)) db.exec(migration);
    db.exec(`PRAGMA user_version = ${older}; PRAGMA journal_mode = WAL`);
    db.close();
    const before = folderOf(path);
    const opening = (): Journal => sqliteJournal({ path, readOnly: true });
    expect(opening).toThrow(
      expect.objectContaining({ code: 'journal_older', data: expect.objectContaining({ found: older }) }),
    );
    expect(opening).toThrow(/Run `pilotage migrate` once/);
    expect(folderOf(path)).toEqual(before);
  });

  it('of a newer format is refused as it is for writing', async () => {
    const path = await written(1);
    withDatabase(path, (db) => db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`));
    expect(() => sqliteJournal({ path, readOnly: true })).toThrow(expect.objectContaining({ code: 'journal_newer' }));
  });

  it('of another application, or no database, is refused', async () => {
    const path = temporaryFile();
    withDatabase(path, (db) => db.exec('CREATE TABLE theirs (x)'));
    expect(() => sqliteJournal({ path, readOnly: true })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
  });

  it('that is replaced meanwhile is read as it is then', async () => {
    const path = await written(1);
    const journal = reading(path);
    expect(await idsOf(journal)).toEqual(['r1']);
    copyFileSync(await written(3), path);
    expect(await idsOf(journal)).toEqual(['r1', 'r2', 'r3']);
    rmSync(path);
    await expectCode(journal.list({}), 'journal_unavailable');
  });

  // Root may write everything, so that root becomes nobody for a moment.
  const { geteuid, seteuid } = process;
  describe.skipIf(geteuid?.() !== 0 || seteuid === undefined)('without the right to write', () => {
    it.each([
      ['that was closed', () => written(1), 'r1'],
      ['whose process was killed', crashed, 'endless'],
    ])('reads one %s', async (_, make, run) => {
      const path = await make();
      for (const end of ['', '-wal', '-shm']) {
        try {
          chmodSync(`${path}${end}`, 0o444);
        } catch {}
      }
      chmodSync(dirname(path), 0o555);
      const before = folderOf(path);
      seteuid?.(65_534);
      try {
        const journal = sqliteJournal({ path, readOnly: true });
        expect((await sequence(journal, run)).length).toBeGreaterThan(0);
        await journal.close();
      } finally {
        seteuid?.(0);
        chmodSync(dirname(path), 0o755);
      }
      expect(folderOf(path)).toEqual(before);
    });
  });

  it.each([
    ['that was closed', () => written(1), 'r1'],
    ['whose process was killed', crashed, 'endless'],
  ])('is listed and inspected on a disk that takes nothing more: one %s', async (_, make, run) => {
    const path = await make();
    // Entries of the kit are no run that can be folded: one that can stands beside them.
    const before = folderOf(path);
    const cli = builtFile('src/cli/main.ts');
    const command = `ulimit -f 0; exec "${process.execPath}" "${cli}" list --journal "${path}"`;
    const out = execFileSync('bash', ['-c', command], { encoding: 'utf8', cwd: dirname(path) });
    expect(out).toContain(run);
    expect(folderOf(path)).toEqual(before);
  });
});
