/** `pilotage stream`: the rows that a run's tools have written. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { make } from '../kit/tools.ts';
import { makeFolder } from './command.ts';
import { journalIn, operatedFolder } from './operated.ts';

describe('a breakpoint', () => {
  it('is set, listed and taken away, and a run goes on by single steps', async () => {
    const folder = operatedFolder();
    await folder.run(['run', 'pay', '--json']);
    const run = await journalIn(folder, async (journal) => (await journal.list({}))[0]?.identity.run ?? '');
    expect((await folder.run(['pause', run, '--before-tool', 'pay'])).code).toBe(0);
    expect((await folder.run(['pause', run, '--clear'])).code).toBe(2);
    expect((await folder.run(['pause', run, '--next', '--before-node', 'x'])).code).toBe(2);
    expect((await folder.run(['resume', run, '--until', 'end'])).code).toBe(2);
    await folder.run(['approve', run]);
    expect((await folder.run(['resume', run])).code).toBe(5);
    const inspected = (await folder.run(['inspect', run])).stdout;
    expect(inspected).toContain('stops    before the tool pay');
    expect(existsSync(join(folder.path, 'paid.txt'))).toBe(false);
    expect(await folder.run(['resume', run, '--until', 'next'])).toMatchObject({ code: 0 });
  });
});

describe('the rows of a stream', () => {
  it('are printed with their numbers, from any on, and inspect says which streams there are', async () => {
    const path = temporaryFile();
    const journal = sqliteJournal({ path });
    const writes = make('writes', async (_, { stream }) => {
      for (const value of ['a \u001b[31mline', { n: 2 }, 'two\nlines']) await stream('log').write(value);
      await stream('log').close();
    });
    const runtime = createRuntime({
      planner: { name: 'function', next: script(call('writes')) },
      tools: [writes],
      journal,
    });
    await (await runtime.start('q', { identity: local('ann', { run: 'r1' }) })).result();
    await runtime.close();
    await journal.close();

    const folder = makeFolder();
    const stream = (...args: string[]) => folder.run(['stream', ...args, '--journal', path]);
    const all = await stream('r1', 'log');
    expect(all).toMatchObject({ code: 0, stderr: '' });
    expect(all.stdout.split('\n').slice(1)).toEqual(['     2  {"n":2}', '     3  "two\\nlines"', '']);
    expect(all.stdout).not.toContain('\u001b');
    const followed = await stream('r1', 'log', '--from', '2', '--follow', '--json');
    const rows = followed.stdout.trim().split('\n');
    expect(rows.map((row) => (JSON.parse(row) as { value: unknown }).value)).toEqual([{ n: 2 }, 'two\nlines']);
    expect(await stream('r1', 'other')).toMatchObject({ code: 0, stdout: '', stderr: 'No rows.\n' });
    expect((await stream('nobody', 'log')).stderr).toContain('run_not_found');
    expect((await stream('r1')).stderr).toContain('stream takes a run and the name of a stream.');
    expect((await folder.run(['inspect', 'r1', '--journal', path])).stdout).toContain('streams  log  3 rows, closed');
  });
});
