/** `pilotage waiting` and `pilotage signal`: an operator sees what waits, and says what has happened. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { type Json, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { call, parallel, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { withDatabase } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { makeFolder } from './command.ts';

it('lists what waits, signals what comes, early, late and twice, and says who was told', async () => {
  const path = temporaryFile();
  const folder = makeFolder();
  const command = (...args: string[]) => folder.run([...args, '--journal', path]);
  const early = await command('signal', 'order-18', '{"paid":true}', '--id', 'hook-1', '--keep', '60');
  expect(early).toMatchObject({ code: 0, stderr: '' });
  expect(early.stdout).toMatch(/^order-18: nobody waits for it; it is kept until 20.*Z, as hook-1\.\n$/);
  expect((await command('signal', 'order-18', '--id', 'hook-1')).stdout).toContain('was there before');
  expect((await command('waiting')).stderr).toContain('Nothing waits.');

  const journal = sqliteJournal({ path });
  const wait = make('wait', async ({ key }, context) => (await context.event({ key: String(key) })) as Json);
  const ask = make('ask', async (_, context) => (await context.ask({ question: 'Which \u001b[31mroom?' })) as Json);
  const branches = [
    { tool: 'wait', args: { key: 'order-17' } },
    { tool: 'wait', args: { key: 'order-18' } },
    { tool: 'ask', args: {} },
  ];
  const runtime = createRuntime({ planner: script(parallel(branches)), tools: [wait, ask], journal });
  const run = await runtime.start('q', { identity: local('ana', { run: 'r1' }) });
  await until(async () => (await runtime.waiting()).length === 2);
  await until(async () => (await journal.get('r1'))?.lease === undefined);

  const listed = await command('waiting');
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  const [event = '', question = '', ...more] = listed.stdout
    .trim()
    .split('\n')
    .toSorted((one) => (one.includes('order') ? -1 : 1));
  expect(event).toMatch(/^r1 +event +.* ago +wait: order-17$/);
  expect(question).toMatch(/^r1 +answer +.* ago +ask: await_input Which .*room\? {2}\(pause_\w+\)$/);
  expect([more, listed.stdout.includes('\u001b')]).toEqual([[], false]);
  const [row] = (await command('waiting', '--for', 'event', '--json')).stdout.trim().split('\n');
  expect(JSON.parse(row ?? '')).toMatchObject({ run: 'r1', key: 'order-17', tool: 'wait' });
  expect((await command('waiting', '--key', 'order-99')).stderr).toContain('Nothing waits.');

  const told = await command('signal', 'order-17', '"here"', '--json');
  expect(JSON.parse(told.stdout)).toMatchObject({ key: 'order-17', isNew: true, runs: ['r1'], kept: false });
  // The process that has the agent hears of it by itself.

  await until(async () => (await run.state()).open?.calls.slice(0, 2).every((call) => call !== null) === true);
  expect((await run.state()).open?.calls.slice(0, 2).map((call) => call?.outcome)).toMatchObject([
    { value: 'here' },
    { value: { paid: true } },
  ]);
  await runtime.close();
  await journal.close();
});

it('a run with a message that cannot be read hides none of the others', async () => {
  const path = temporaryFile();
  const journal = sqliteJournal({ path });
  const ask = make('ask', async (_, context) => (await context.ask({ question: 'Which room?' })) as Json);
  const runtime = createRuntime({ planner: script(call('ask', {})), tools: [ask], journal });
  for (const run of ['r1', 'r2']) {
    await runtime.start('q', { identity: local('ana', { run }) });
    await runtime.run(run).result();
  }
  await runtime.close();
  await journal.signal('r1', { id: 'm1', type: 'USER_MESSAGE', payload: { message: 'The blue one.' } });
  await journal.close();
  withDatabase(path, (db) => db.exec("UPDATE controls SET body = '{' WHERE id = 'm1'"));
  const { code, stdout } = await makeFolder().run(['waiting', '--journal', path]);
  expect([code, stdout.match(/^r\d/gm)]).toEqual([0, ['r1', 'r2']]);
});

it('inspect says what is answered and not taken yet, and leaves out how to answer it', async () => {
  const path = temporaryFile();
  const journal = sqliteJournal({ path });
  const pay = make('pay', () => 'paid', { needsApproval: true });
  const runtime = createRuntime({ planner: script(call('pay', {})), tools: [pay], journal });
  const run = await runtime.start('q', { identity: local('ana', { run: 'r1' }) });
  await run.result();
  await runtime.close();
  await journal.close();
  const command = (...args: string[]) => makeFolder().run([...args, '--journal', path]);
  expect((await command('inspect', 'r1')).stdout).toContain('pilotage approve r1');
  expect((await command('approve', 'r1')).stdout).toContain('Stored; nobody drives the run now.');
  const { stdout } = await command('inspect', 'r1');
  expect(stdout).toContain('answered, not taken yet');
  expect(stdout).not.toContain('pilotage approve r1');
});

it('goes through all that waits page by page, of one reason, agent or run, and through the runs, and says how', async () => {
  const path = temporaryFile();
  const journal = sqliteJournal({ path });
  const ask = make('ask', async (_, context) => (await context.ask({ question: 'Which room?' })) as Json);
  const runtime = createRuntime({ planner: script(call('ask', {})), tools: [ask], journal });
  for (const run of ['r1', 'r2', 'r3']) {
    await runtime.start('q', { identity: local('ana', { run }) });
    await runtime.run(run).result();
  }
  const [row] = await runtime.waiting();
  await runtime.close();
  await journal.close();
  const command = (...args: string[]) => makeFolder().run([...args, '--journal', path]);
  for (const [name, order] of [
    ['waiting', ['r1', 'r2', 'r3']],
    ['list', ['r3', 'r2', 'r1']],
  ] as const) {
    const first = await command(name, '--limit', '2');
    expect(first.stdout.match(/^r\d/gm)).toEqual(order.slice(0, 2));
    const [, after = ''] = /the next page has --after (\S+)\.\n$/.exec(first.stderr) ?? [];
    const second = await command(name, '--limit', '2', '--after', after);
    expect([second.stdout.match(/^r\d/gm), second.stderr]).toEqual([order.slice(2), '']);
  }
  const found = async (...filter: string[]) => (await command('waiting', ...filter)).stdout.match(/^r\d/gm);
  expect(await found('--run', 'r2')).toEqual(['r2']);
  expect(await found('--reason', 'await_input', '--agent', row?.agent ?? '')).toEqual(['r1', 'r2', 'r3']);
  expect(await found('--reason', 'in_doubt')).toBe(null);
  expect(await found('--agent', 'nobody')).toBe(null);
  expect(await command('waiting', '--reason', 'money')).toMatchObject({ code: 2 });
});

it('refuses what is no signal', async () => {
  const folder = makeFolder();
  expect(await folder.run(['signal'])).toMatchObject({ code: 2 });
  expect((await folder.run(['signal', 'k', 'words'])).stderr).toContain('The payload is not JSON');
  expect(await folder.run(['waiting', '--for', 'money'])).toMatchObject({ code: 2 });
});

it('a signal that fits none of those who wait is refused with the code for that, and one that is none is wrong use', async () => {
  const path = temporaryFile();
  const folder = makeFolder();
  const journal = sqliteJournal({ path });
  const schema = { type: 'object', required: ['paid'] } as const;
  const wait = make('wait', async (_, context) => (await context.event({ key: 'order-17', schema })) as Json);
  const runtime = createRuntime({ planner: script(call('wait')), tools: [wait], journal });
  await runtime.start('q', { identity: local('ana', { run: 'r1' }) });
  await until(async () => (await runtime.waiting()).length === 1);
  await runtime.close();
  await journal.close();
  const refused = await folder.run(['signal', 'order-17', '{"late":true}', '--journal', path]);
  expect(refused).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('does not fit what waits') });
  expect((await folder.run(['signal', ' ', '1', '--journal', path])).code).toBe(2);
});

it('says why what was signalled was not taken, and what is waited for still', async () => {
  const path = temporaryFile();
  const journal = sqliteJournal({ path });
  const even = z.object({ rows: z.int() }).refine(({ rows }) => rows % 2 === 0, 'The rows come in pairs.');
  const batch = make('batch', async (_, context) => await context.event({ key: 'batch-1', schema: even }));
  const runtime = createRuntime({ planner: script(call('batch')), tools: [batch], journal });
  const run = await runtime.start('q', { identity: local('ana') });
  await until(async () => (await runtime.waiting()).length === 1);
  await runtime.signal('batch-1', { rows: 3 });
  await until(async () => JSON.stringify(await journal.read(run.id)).includes('come in pairs'));
  await runtime.close();
  await journal.close();
  const { stdout } = await makeFolder().run(['inspect', run.id, '--journal', path]);
  expect(stdout).toMatch(/batch waits for batch-1, since what came was not taken: .*The rows come in pairs\./);
});
