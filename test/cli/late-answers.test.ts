/** Answers of an operator to questions that are not open any more, and events of races as an operator reads them. */
import { expect, it } from 'vitest';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { asks, parallel, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { makeFolder } from './command.ts';

const ask = make('ask', async (_, context) => (await context.ask({ question: 'Well?' })) as string);
const wait = make('wait', async (_, context) => (await context.event({ key: 'bell' })) as null);
const branches = ['ask', 'wait'].map((tool) => ({ id: `by_${tool}`, tool, args: {} }));
const race = parallel(branches, { join: { kind: 'first_success' } });

it.each([
  ['goes on', [asks]],
  ['has ended', []],
] as const)('are told which branch was faster, when the run %s', async (how, then) => {
  const path = temporaryFile();
  const folder = makeFolder();
  const journal = sqliteJournal({ path });
  const runtime = createRuntime({ planner: script(race, ...then), tools: [ask, wait], journal });
  const run = await runtime.start('q', { identity: local('ana', { run: 'r1' }) });
  await until(async () => (await runtime.waiting()).length === 2);
  const [{ token = '' } = {}] = await runtime.waiting({ for: 'answer' });
  await runtime.signal('bell');
  await until(async () => (await run.state()).steps.length > 0);
  await run.result();
  await runtime.close();
  await journal.close();
  const command = (...args: string[]) => folder.run([...args, '--journal', path]);
  const words =
    /^Refused: The question .* before anybody answered, since .* was faster \(by_wait\); .* \(superseded\)\n$/;
  for (const said of [['approve'], ['answer', '--value', '"yes"'], ['reject']]) {
    const [name = '', ...more] = said;
    const late = await command(name, 'r1', '--token', token, ...more);
    expect(late).toEqual({ code: 6, stdout: '', stderr: expect.stringMatching(words) });
  }
  const told = (await command('events', 'r1')).stdout;
  expect(told).toContain('The join had what it needed before this branch ended.');
  expect(told).not.toContain('superseded');
  if (how === 'goes on')
    expect((await command('approve', 'r1', '--token', 'pause_none')).stderr).toContain('none is known');
});

it('events --follow shows how each question is answered once, also when others come after it', async () => {
  const path = temporaryFile();
  const folder = makeFolder();
  const journal = sqliteJournal({ path });
  const gates = [gate(), gate(), gate()];
  const asks = make('asks', async ({ after }, context) => {
    await gates[Number(after)]?.opened;
    return (await context.ask({ question: `Number ${Number(after)}?` })) as string;
  });
  const calls = gates.map((_, after) => ({ tool: 'asks', args: { after } }));
  const runtime = createRuntime({ planner: script(parallel(calls)), tools: [asks], journal });
  const run = await runtime.start('q', { identity: local('ana', { run: 'r1' }) });
  const follower = folder.start(['events', 'r1', '--follow', '--journal', path]);
  for (const [number, each] of gates.entries()) {
    each.open();
    await follower.untilOutput(new RegExp(`asks: Number ${number}\\?[^]*answer `));
  }
  await run.cancel();
  await run.result();
  await runtime.close();
  const { stdout } = await follower.done;
  await journal.close();
  const shown = stdout.split('\n').filter((line) => line.includes('waits for an answer'));
  expect(shown.map((line) => /Number \d/.exec(line)?.[0])).toEqual(['Number 0', 'Number 1', 'Number 2']);
  // The first one names its question too: others came after it.
  const ways = stdout.split('\n').filter((line) => line.includes('pilotage resume'));
  expect(ways.map((line) => line.includes('--token '))).toEqual([true, true, true]);
});
