/** `pilotage memory`: people read and correct what is remembered of a user. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { scriptedModel } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { type Finished, makeFolder } from './command.ts';

describe('the memory of a user', () => {
  it('is listed with where it comes from, shown, corrected and deleted', async () => {
    const path = temporaryFile();
    const journal = sqliteJournal({ path });
    const model = scriptedModel([
      { calls: [{ tool: 'remember', args: { facts: ['Ann likes \u001b[31mgreen tea.'] } }] },
      { text: 'done' },
    ]);
    const runtime = createRuntime({ planner: react({ model, memory: {} }), journal });
    await (await runtime.start('q', { identity: local('ann', { run: 'r1' }) })).result();
    await runtime.store.of(local('ann')).put(['notes'], 'twice', 1);
    await runtime.store.of(local('ann')).put(['other'], 'twice', 2);
    await runtime.store.of(local('ben')).put(['notes'], 'secret', 3);
    await runtime.close();
    await journal.close();

    const folder = makeFolder();
    const memory = (...args: string[]): Promise<Finished> =>
      folder.run(['memory', ...args, '--user', 'ann', '--journal', path]);
    const listed = await memory('list');
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    const [fact = '', ...more] = listed.stdout.trim().split('\n');
    expect(fact).toMatch(/^memory \/ facts +\w{12} +\{"text":"Ann likes .*green tea."\} {2}from r1, step 1$/);
    expect(fact).not.toContain('\u001b');
    expect(more).toHaveLength(2);
    expect(listed.stdout).not.toContain('secret');
    expect((await folder.run(['memory', 'list', '--user', 'nobody', '--journal', path])).stderr).toContain(
      'Nothing is',
    );

    const key = /facts +(\w{12})/.exec(fact)?.[1] ?? '';
    expect((await memory('set', key, '--value', '{"text":"Ann likes black tea."}')).code).toBe(0);
    expect((await memory('show', key)).stdout).toBe('{"text":"Ann likes black tea."}\n');
    expect(JSON.parse((await memory('show', key, '--json')).stdout)).toMatchObject({
      namespace: ['memory', 'facts'],
      key,
    });
    expect((await memory('set', 'new', '--value', '{"text":"New."}')).code).toBe(0);
    expect((await memory('list', '--namespace', '["memory"]')).stdout.split('\n')).toHaveLength(3);

    const several = await memory('delete', 'twice');
    expect(several.code).toBe(2);
    expect(several.stderr).toContain('--namespace with one of ["notes"], ["other"]');
    expect((await memory('delete', 'twice', '--namespace', '["other"]')).code).toBe(0);
    expect((await memory('show', 'twice')).stdout).toBe('1\n');
    expect((await memory('show', 'secret')).code).toBe(2);
  });

  it.each([
    [['memory'], 'memory takes list'],
    [['memory', 'list', 'x'], 'memory takes list'],
    [['memory', 'show'], 'memory takes list'],
    [['memory', 'drop', 'x'], 'memory takes list'],
    [['memory', 'set', 'x'], 'memory set needs --value'],
    [['memory', 'show', 'x', '--value', '1'], '--value goes with memory set'],
    [['memory', 'list', '--namespace', 'notes'], '--namespace is not JSON'],
    [['memory', 'list', '--namespace', '[1]'], '--namespace takes a list of texts'],
  ])('%j is wrong usage', async (args, said) => {
    const { code, stderr } = await makeFolder().run(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(said)]);
  });
});
