/** `pilotage prune` and `pilotage migrate`, on a file. */
import { describe, expect, it } from 'vitest';
import { type Journal, SCHEMA_VERSION } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { ana, createClaimed, identity, newRun, startedEntry, step, VirtualClock } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { makeOlder, withDatabase } from '../kit/sqlite.ts';
import { makeFolder } from './command.ts';

async function end(journal: Journal, run: string, tenant: string, status: 'finished' | 'failed'): Promise<void> {
  const id = identity(run, { session: run, tenant });
  const entries = [startedEntry(id, { conversation: false })];
  const claim = await journal.create(newRun(run, { identity: id, entries, claim: ana }));
  if (claim !== undefined) await journal.append(step(claim, 1, { status }));
}

/** Runs that ended long before today. */
async function filled(): Promise<string> {
  const path = temporaryFile();
  const journal = sqliteJournal({ path, clock: new VirtualClock(Date.UTC(2020, 0, 1)) });
  for (const run of ['f1', 'f2']) await end(journal, run, 'acme', 'finished');
  await end(journal, 'failed', 'acme', 'failed');
  await end(journal, 'theirs', 'other', 'finished');
  await createClaimed(journal, 'open');
  await journal.close();
  return path;
}

describe('pilotage prune', () => {
  it('deletes what ended long ago, as it is asked to, and says how much', async () => {
    const path = await filled();
    const folder = makeFolder();
    const prune = (...args: string[]) => folder.run(['prune', ...args, '--journal', path]);
    const said = async (...args: string[]): Promise<string> => (await prune(...args)).stdout;
    expect(await said('--older-than', '30d', '--dry-run')).toBe('Would delete 4 runs.\n');
    expect(await said('--older-than', '90000d')).toBe('Deleted 0 runs.\n');
    expect(await said('--older-than', '30d', '--status', 'finished', '--tenant', 'acme')).toBe('Deleted 2 runs.\n');
    expect(await said('--older-than', '12h', '--status', 'finished,failed', '--json')).toBe(
      '{"runs":2,"dryRun":false}\n',
    );
    const { stdout } = await folder.run(['list', '--json', '--journal', path]);
    expect(JSON.parse(stdout).identity.run).toBe('open');
  });

  it('says what is wrong with how it was called, and deletes nothing then', async () => {
    const path = await filled();
    const folder = makeFolder();
    const refused = async (args: readonly string[], what: string): Promise<void> => {
      const { code, stdout, stderr } = await folder.run(['prune', ...args, '--journal', path]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(what);
    };
    await refused([], 'prune needs --older-than');
    await refused(['--status', 'finished'], 'prune needs --older-than');
    for (const wrong of ['30', '0d', 'soon', '1.5d']) await refused(['--older-than', wrong], 'such as 30d, 12h');
    await refused(['--older-than', '30d', '--status', 'paused'], '--status takes finished, failed, cancelled');
    await refused(['--older-than', '30d', '--status', 'over'], '--status takes');
    await refused(['f1', '--older-than', '30d'], 'prune takes no further words');
    const missing = await folder.run(['prune', '--older-than', '30d', '--journal', `${path}-missing`]);
    expect(missing).toMatchObject({ code: 4, stderr: expect.stringContaining('journal_unavailable') });
    expect((await folder.run(['list', '--json', '--journal', path])).stdout.split('\n')).toHaveLength(6);
  });
});

describe('pilotage migrate', () => {
  it('brings a file to the present format, which commands that only look do not', async () => {
    const path = await filled();
    makeOlder(path);
    const folder = makeFolder();
    const run = (...args: string[]) => folder.run([...args, '--journal', path]);
    const looked = await run('list');
    expect(looked).toMatchObject({ code: 4, stderr: expect.stringMatching(/pilotage migrate.*journal_older/) });
    expect((await run('migrate')).stdout).toBe(`The journal was brought from format 8 to ${SCHEMA_VERSION}.\n`);
    expect((await run('list')).stdout).toContain('query of open');
    expect((await run('migrate')).stdout).toBe(`The journal has format ${SCHEMA_VERSION}. Nothing was to be done.\n`);
    expect((await run('migrate', '--json')).stdout).toBe(`{"from":${SCHEMA_VERSION},"to":${SCHEMA_VERSION}}\n`);
    withDatabase(path, (db) => db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`));
    const newer = await run('migrate');
    expect(newer).toMatchObject({ code: 4, stderr: expect.stringMatching(/Upgrade Pilotage.*journal_newer/) });
  });

  it('makes no file, and leaves alone what a configuration has opened', async () => {
    const folder = makeFolder();
    expect(await folder.run(['migrate'])).toMatchObject({ code: 4, stderr: expect.stringContaining('no journal') });
    folder.write('pilotage.config.mjs', 'export default { journal: { create() {}, claim() {}, artifacts: {} } };');
    const opened = await folder.run(['migrate', '--config', 'pilotage.config.mjs']);
    expect(opened).toMatchObject({ code: 2, stderr: expect.stringContaining('say with --journal where it is') });
  });
});
