/** `pilotage repair`, and what the other commands show of a run that cannot be read. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { withDatabase } from '../kit/sqlite.ts';
import { echo } from '../kit/tools.ts';
import { type Finished, makeFolder } from './command.ts';

/** A run that has ended, of which one entry is damaged. @param sql what is there in the place of the entry. */
async function damaged(sql: string): Promise<string> {
  const path = temporaryFile();
  const journal = sqliteJournal({ path });
  const runtime = createRuntime({ planner: script(call('echo')), tools: [echo], journal });
  await (await runtime.start('Say it twice', { identity: local('ana', { run: 'r1' }) })).result();
  await (await runtime.start('Another', { identity: local('ana', { run: 'r2' }) })).result();
  await runtime.close();
  await journal.close();
  // A damaged page gives what the table does not allow.
  withDatabase(path, (db) => {
    const made = db.prepare("SELECT sql FROM sqlite_schema WHERE name = 'entries'").get()?.['sql'];
    const allowing = String(made).replace('body TEXT NOT NULL', 'body ANY');
    db.exec(`ALTER TABLE entries RENAME TO whole; ${allowing}`);
    db.exec('INSERT INTO entries (id, at, body) SELECT id, at, body FROM whole; DROP TABLE whole');
  });
  withDatabase(path, (db) => db.exec(`UPDATE entries SET body = ${sql} WHERE seq = 3 AND run = 1`));
  return path;
}

describe('a run with an entry', () => {
  it.each([
    "'{'",
    'NULL',
    "x'00ff'",
  ])('of which %s is left is listed and inspected up to there, repaired by somebody, and inspected to its end', async (sql) => {
    const journal = await damaged(sql);
    const folder = makeFolder();
    const run = (...args: string[]): Promise<Finished> => folder.run([...args, '--journal', journal]);
    const list = await run('list');
    expect(list.stdout).toContain('r1');
    expect(list.stdout).toContain('r2');
    const before = await run('inspect', 'r1');
    expect(before.code).toBe(4);
    expect(before.stdout).toContain('step 1  echo');
    expect(before.stderr).toContain('is shown up to entry 2');
    expect(before.stderr).toContain('repair r1');

    const plan = await run('repair', 'r1');
    expect(plan.code).toBe(4);
    expect(plan.stdout).toContain('entry 3:');
    expect(plan.stdout).toContain('--apply --by');
    expect((await run('repair', 'r1')).stdout).toBe(plan.stdout);
    expect((await run('repair', 'r1', '--apply')).code).toBe(2);
    const done = await run('repair', 'r1', '--apply', '--by', 'olga', '--reason', 'a bad disk');
    expect(done.code).toBe(0);
    expect(done.stdout).toContain('Set aside');
    const after = await run('inspect', 'r1');
    expect(after.code).toBe(0);
    expect(after.stdout).toContain('set right by olga');
    expect((await run('repair', 'r1')).stdout).toContain('Nothing is wrong');
  });
});
