/** What a planner itself asks (`request_pause` with a schema): it is shown with a way to answer it, and that way works. */
import { expect, it } from 'vitest';
import { type JsonObject, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { finish } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { makeFolder } from './command.ts';

const schema: JsonObject = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };

/** A run that asks so, in a journal that nobody drives. */
async function asking(reason: 'await_input' | 'external_event' | 'constraints_conflict', form?: JsonObject) {
  const path = temporaryFile();
  const journal = sqliteJournal({ path });
  const payload = { message: 'Which \u001b[31mroom?', floor: 2 };
  const question = { kind: 'request_pause', reason, payload, ...(form === undefined ? {} : { schema: form }) } as const;
  const planner = () => question;
  const runtime = createRuntime({ planner, tools: [], journal });
  const run = await runtime.start('q', { identity: local('ana', { run: 'r1' }) });
  await run.result();
  await runtime.close();
  const folder = makeFolder();
  const command = (...args: string[]) => folder.run([...args, '--journal', path]);
  /** What the run says when it has its answer. */
  const goneOn = async () => {
    const after = createRuntime({
      planner: {
        name: 'planner',
        next: ({ trajectory }) => finish(JSON.stringify(trajectory.step(0)?.calls[0]?.outcome)),
      },
      tools: [],
      journal,
    });
    await after.run('r1').resume({ acceptChanges: true });
    const result = await after.run('r1').result();
    await after.close();
    await journal.close();
    return result.status === 'finished' ? result.answer : result;
  };
  return { command, goneOn };
}

it.each([
  'await_input',
  'external_event',
  'constraints_conflict',
] as const)('a question of the planner (%s) is shown with its schema, and answered by a value that fits', async (reason) => {
  const { command, goneOn } = await asking(reason, schema);
  const shown = (await command('inspect', 'r1')).stdout;
  expect(shown).toContain('The run waits for an answer: Which ␛[31mroom?');
  expect(shown).toMatch(/about {4}\{\n.*"floor": 2/);
  expect(shown).toMatch(/answer .*answer r1 .*--value '\{"n":1\}'/);
  for (const value of ['{"n":"x"}', '7']) {
    const refused = await command('answer', 'r1', '--value', value);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([6, '', expect.stringContaining('payload_invalid')]);
  }
  expect(await command('answer', 'r1', '--value', '{"n":3}')).toMatchObject({ code: 0, stderr: '' });
  expect(await goneOn()).toContain('"payload":{"n":3}');
});

it('what a planner asks in words is shown, too, and takes an object where somebody gives one', async () => {
  const { command, goneOn } = await asking('await_input');
  expect((await command('inspect', 'r1')).stdout).toContain('The run waits for your message: Which ␛[31mroom?');
  expect(await command('answer', 'r1', '--value', '{"n":3}')).toMatchObject({ code: 0, stderr: '' });
  expect(await goneOn()).toContain('"payload":{"n":3}');
});
