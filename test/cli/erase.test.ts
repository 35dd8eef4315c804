/** `pilotage erase`: the content of one person. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { finish } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { makeFolder } from './command.ts';

describe('pilotage erase', () => {
  it('erases the content of one user, which list and inspect show, and needs to be meant', async () => {
    const path = temporaryFile();
    const journal = sqliteJournal({ path });
    const runtime = createRuntime({ planner: () => finish('xyzzy'), journal });
    for (const user of ['ann', 'ben']) {
      await (await runtime.start(`query of ${user}`, { identity: local(user, { run: `of_${user}` }) })).result();
      await runtime.store.of(local(user)).put([], 'k', 'xyzzy');
    }
    await runtime.close();
    await journal.close();
    const folder = makeFolder();
    const run = (...args: string[]) => folder.run([...args, '--journal', path]);
    expect(await run('erase')).toMatchObject({ code: 2, stderr: expect.stringContaining('--user') });
    expect(await run('erase', '--user', 'ann')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    expect((await run('list')).stdout).toContain('query of ann');
    const erased = await run('erase', '--user', 'ann', '--yes');
    expect(erased).toMatchObject({ code: 0, stdout: 'Erased of ann: 1 run, 0 artifacts, 1 item.\n', stderr: '' });
    const { stdout } = await run('list');
    expect(stdout).not.toContain('query of ann');
    expect(stdout).toMatch(/of_ann .*\(erased\)/);
    expect(stdout).toContain('query of ben');
    const inspected = await run('inspect', 'of_ann');
    expect(inspected.code).toBe(0);
    expect(inspected.stdout).toContain('erased   ');
    expect(inspected.stdout).not.toContain('xyzzy');
    const again = await run('erase', '--user', 'ann', '--yes', '--json');
    expect(JSON.parse(again.stdout)).toEqual({
      tenant: 'local',
      user: 'ann',
      runs: 0,
      artifacts: 0,
      items: 0,
      schedules: 0,
      left: [],
    });
  });
});
