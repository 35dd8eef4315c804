/** A pattern that takes for ever, in a schema of a model, a user or a server, blocks no process. */
import { expect, it } from 'vitest';
import { askUser } from '#pilotage/tools';
import { call, script } from '../kit/decisions.ts';
import { observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const schema = { type: 'string', pattern: '^(a+)+$' };
const slow = `${'a'.repeat(40)}!`;

it('an answer that cannot be checked in time is refused, and the question stays open', async () => {
  const { runtime } = world({ planner: script(call('ask_user', { question: 'Which?', schema })), tools: [askUser] });
  const run = await start({ runtime });
  const [pause] = await pausesOf(run);
  await expect(run.answer(pause?.token, { kind: 'answer', value: slow })).rejects.toMatchObject({
    code: 'payload_invalid',
    message: expect.stringContaining('takes more than'),
  });
  await run.answer(pause?.token, { kind: 'answer', value: 'aaa' });
  await run.result();
  expect(observations(await run.state())).toEqual(['aaa']);
});

it('so is a signal', async () => {
  const waits = make('waits', (_, context) => context.event({ key: 'k', schema }));
  const { runtime } = world({ planner: script(call('waits')), tools: [waits] });
  const run = await start({ runtime });
  await until(async () => (await runtime.waiting()).length === 1);
  await expect(runtime.signal('k', slow)).rejects.toMatchObject({ code: 'payload_invalid' });
  await runtime.signal('k', 'a');
  await until(async () => (await run.state()).ending !== null);
});

it('arguments are, and a rule with such a match fits nothing', async () => {
  const inputSchema = { type: 'object', properties: { to: schema } };
  const [fenced, gated] = [make('fenced', () => 1, { inputSchema }), make('gated', () => 1, { needsApproval: true })];
  const planner = script(call('fenced', { to: slow }), call('gated', { to: slow }), call('gated', { to: slow }));
  const { runtime } = world({ planner, tools: [fenced, gated] });
  const run = await start({ runtime });
  await pausesOf(run);
  const match = { type: 'object', properties: { to: schema }, required: ['to'] };
  await run.approve(undefined, { remember: { scope: 'run', match } }).catch(() => run.approve());
  expect(await pausesOf(run)).toHaveLength(1);
  expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_invalid_args' } });
});
