/** The words of errors that runs have recorded reach no client of our own API and no receiver of webhooks, wherever they stand; what tools are given does. */
import { expect, it, onTestFinished } from 'vitest';
import type { PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { webhooks } from '#server';
import { scriptedModel } from '#testing';
import { agent, OutcomeUnknown } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { httpError } from '../kit/model.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { serveApi } from './api-kit.ts';
import { receiver } from './receiver.ts';

const INSIDE = 'no such host\n    at connect (/srv/app/secret/db.ts:12:3) key=sk-12345678901234567890';
const OF_INSIDE = /no such host|srv|db\.ts|sk-1/;
/** What a tool is given only looks like an error. */
const GIVEN = { error: { code: 'E17', message: 'The label is torn.' } };

const failing = () => {
  const reply = { error: Object.assign(httpError(500), { message: INSIDE }), errorAt: 'call' } as const;
  return scriptedModel([reply, reply, reply]);
};
const asks = { calls: [{ tool: 'long', args: {} }] };

interface Scene {
  readonly planner: RuntimeOptions['planner'];
  /** The event that tells of the error. */
  readonly event: string;
}

const send = make('send', () => Promise.reject(new OutcomeUnknown(INSIDE)), { effect: 'once' });
const breaks = make('breaks', () => Promise.reject(new Error(INSIDE)));
const long = make('long', () => 'word '.repeat(600));
const inParallel: PlannerFunction = script(
  {
    kind: 'call_parallel',
    branches: [
      { tool: 'breaks', args: GIVEN },
      { tool: 'breaks', args: {} },
    ],
  },
  finish(),
);
const SCENES: Readonly<Record<string, Scene>> = {
  'a call in doubt': { planner: script(call('send', GIVEN)), event: 'pause.requested' },
  'a model that is away': { planner: react({ model: failing(), retries: 0 }), event: 'pause.requested' },
  'a planner in the place of models that are away': {
    planner: react({ model: failing(), retries: 0, fallback: script(finish()) }),
    event: 'planner.repair_exhausted',
  },
  'a history that could not be summarised': {
    planner: react({
      model: scriptedModel([asks, asks, asks, { text: 'done' }]),
      retries: 0,
      compaction: { budgetTokens: 1_500, summariser: { name: 'of summaries', model: failing() } },
    }),
    event: 'trajectory.compression_failed',
  },
  'calls that fail': { planner: inParallel, event: 'tool.failed' },
};

it.each(Object.entries(SCENES))('%s', async (_, { planner, event }) => {
  const desk = agent({ name: 'desk', planner: planner ?? (() => finish()), tools: [send, breaks, long] });
  const runtime = createRuntime({ agents: [desk], journal: memoryJournal(), patienceMs: 0 });
  const to = await receiver();
  const hooks = webhooks({ runtime, allowHosts: [to.host] });
  await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
  const stop = hooks.work();
  onTestFinished(async () => {
    await stop();
    await runtime.close();
  });
  const { as, ask } = await serveApi({ runtime });
  const run = await as('acme/ana').runs.start('q', { session: 'talk' });
  await run.result();
  const { events } = await runtime.run(run.id).recorded();
  const isRecorded = events.some((each) => each.type === event && OF_INSIDE.test(JSON.stringify(each)));
  expect(isRecorded, 'what is to be hidden is there').toBe(true);

  const own = ['', '/state', '/result', '/events', '/trajectory'].map((path) => `/runs/${run.id}${path}`);
  const paths = [...own, '/runs', '/waiting', '/sessions/talk/messages', '/sessions/talk/result'];
  const answers = await Promise.all(paths.map(async (path) => (await ask(path)).text()));
  for (const [index, text] of answers.entries()) expect(text, paths[index]).not.toMatch(OF_INSIDE);
  const stream = await ask(`/runs/${run.id}/events`, { headers: { accept: 'text/event-stream' } });
  expect(await stream.text()).not.toMatch(OF_INSIDE);
  await until(() => to.received.length >= events.length);
  const posted = to.received.map(({ body }) => body.data.event);
  expect(posted.map(({ type }) => type)).toContain(event);
  expect(JSON.stringify(posted)).not.toMatch(OF_INSIDE);
  const invoked = events.find(({ type }) => type === 'tool.invoked');
  const isGiven = invoked !== undefined && JSON.stringify(invoked).includes('E17');
  if (isGiven) {
    expect(posted.find(({ type }) => type === 'tool.invoked')).toMatchObject({ args: GIVEN });
    expect(answers[paths.indexOf(`/runs/${run.id}/events`)]).toContain('The label is torn.');
  }
});

it('leaves what an agent asks as it is, also where it looks like an error', async () => {
  const payload = { code: 'E17', message: 'The label is torn. Send another?', label: 17 };
  const planner: PlannerFunction = () => ({ kind: 'request_pause', reason: 'await_input', payload });
  const runtime = createRuntime({ agents: [agent({ name: 'desk', planner })], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  const { as } = await serveApi({ runtime });
  const client = as('acme/ana');
  const run = await client.runs.start('q');
  expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload }] });
  expect((await client.waiting()).items).toMatchObject([{ payload, question: payload.message }]);
});
