/** What a run asks comes in the same words over every protocol, and what it has recorded for operators over none. */
import { expect, it, onTestFinished } from 'vitest';
import type { Decision, PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { createHandler } from '#server';
import { a2a } from '#server/a2a';
import { agUi } from '#server/ag-ui';
import { mcp } from '#server/mcp';
import { scriptedModel } from '#testing';
import { agent, LoginRequired, OutcomeUnknown } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError } from '../kit/model.ts';
import { make } from '../kit/tools.ts';

const SECRET = 'sk-live-12345';
const asking = (reason: 'await_input' | 'external_event' | 'constraints_conflict', payload?: object): PlannerFunction =>
  script({ kind: 'request_pause', reason, ...(payload && { payload }) } as Decision);

const asks = make('asks', (_, context) => context.ask({ question: 'How many nights?' }));
const pay = make('pay', () => 'paid', { needsApproval: true });
const mail = make('mail', () => {
  throw new LoginRequired('https://login.example/a', { message: 'Log in to your mail.' });
});
const send = make('send', () => Promise.reject(new OutcomeUnknown(`the key ${SECRET} was cut off`)), {
  effect: 'once',
});

const refusal = {
  error: Object.assign(httpError(401), { message: `the key ${SECRET} is not known` }),
  errorAt: 'call',
} as const;

interface Scene {
  readonly planner: RuntimeOptions['planner'];
  readonly words: string;
  /** What AG-UI shows beside it. */
  readonly metadata?: object;
}

const SCENES: Readonly<Record<string, Scene>> = {
  'a question of a tool': { planner: script(call('asks')), words: 'How many nights?' },
  'a question of the planner': { planner: asking('await_input', { message: 'What color?' }), words: 'What color?' },
  'a question in what the planner said': {
    planner: () => ({ decision: { kind: 'request_pause', reason: 'await_input' }, text: 'Which city?' }),
    words: 'Which city?',
  },
  'a conflict': { planner: asking('constraints_conflict', { message: 'A or B?' }), words: 'A or B?' },
  'a login of the planner': {
    planner: asking('external_event', { url: 'https://login.example/b', message: 'It is your bank.' }),
    words: 'Somebody has to log in at https://login.example/b. It is your bank.',
    metadata: { url: 'https://login.example/b' },
  },
  'a login of a tool': {
    planner: script(call('mail')),
    words: 'mail needs somebody to log in at https://login.example/a. Log in to your mail.',
    metadata: { url: 'https://login.example/a' },
  },
  'an approval': { planner: script(call('pay', { amount: 3 })), words: 'May pay be called with {"amount":3}?' },
  'a pause without words': { planner: asking('external_event'), words: 'The run waits (external event).' },
  'a call in doubt': {
    planner: script(call('send', { to: 'ana' })),
    words: 'Nobody knows whether the call of send with {"to":"ana"} has happened.',
    metadata: { tool: 'send', args: { to: 'ana' } },
  },
  'a model that refuses': {
    planner: react({ model: scriptedModel([refusal, refusal, refusal]), retries: 0, clock: new ImpatientClock() }),
    words: 'The run has no model that answers.',
  },
};

it.each(Object.entries(SCENES))('%s', async (_, { planner, words, metadata = {} }) => {
  const desk = agent({ name: 'desk', planner: planner ?? (() => finish()), tools: [asks, pay, mail, send] });
  const runtime = createRuntime({ agents: [desk], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  const parts = [agUi(), a2a(), mcp({ secret: 'a secret of the tests, long enough' })];
  const handler = createHandler({ runtime, parts });
  const ask = async (path: string, body: object): Promise<string> => {
    const accept = 'application/json, text/event-stream';
    const headers = { 'content-type': 'application/json', accept, 'a2a-version': '1.0' };
    const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await handler(request)).text();
  };

  const input = { threadId: 'talk', runId: 'one', messages: [{ id: 'm', role: 'user', content: 'go' }], tools: [] };
  const told = await ask('/ag-ui', { ...input, context: [] });
  const last = JSON.parse(told.trim().split('\n\n').at(-1)?.slice('data: '.length) ?? '');
  expect(last.outcome.interrupts).toMatchObject([{ message: words, metadata }]);

  const message = { messageId: 'n', role: 'ROLE_USER', parts: [{ text: 'go' }] };
  const rpc = { jsonrpc: '2.0', id: 1 };
  const sent = await ask('/a2a', { ...rpc, method: 'SendMessage', params: { message } });
  const { parts: said } = JSON.parse(sent).result.task.status.message;
  expect(said[0].text.slice(0, words.length)).toBe(words);

  const asked = await ask('/mcp', {
    ...rpc,
    method: 'tools/call',
    params: { name: 'desk', arguments: { input: 'go' } },
  });
  expect(asked).toContain(JSON.stringify(words).slice(1, -1));
  for (const each of [told, sent, asked]) expect(each).not.toContain(SECRET);
});
