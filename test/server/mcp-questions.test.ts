/** What MCP clients are asked beside approvals, what becomes of answers that do not fit, and who may do what. */
import { describe, expect, it } from 'vitest';
import type { Decision, JsonObject, PlannerFunction } from '#core';
import { askUser } from '#pilotage/tools';
import { type Agent, agent, LoginRequired, OutcomeUnknown, type Tool } from '#tools';
import { asks, call, finish, script } from '../kit/decisions.ts';
import {
  type ClientName,
  type ClientOptions,
  mcpClient,
  mcpServed,
  modern,
  noting,
  older,
  type ServedOptions,
} from '../kit/mcp.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';

const ERAS: readonly ClientName[] = ['client 2.4, 2025-11-25', 'client 2.4, auto'];
const accept = (content: JsonObject = {}) => ({ action: 'accept', content });

/** Serves an agent that makes the calls, and says what came of the last one. */
async function served(tools: readonly Tool[], planner: PlannerFunction, options: ServedOptions = {}) {
  const agents: Agent[] = [agent({ name: 'clerk', planner: { name: 'clerk', next: planner }, tools })];
  return mcpServed({ ...options, runtime: { agents, ...options.runtime } });
}

const lastOutcome: PlannerFunction = ({ trajectory }) => {
  const outcome = trajectory.step(trajectory.count - 1)?.calls[0]?.outcome;
  return finish(outcome?.kind === 'value' ? outcome.value : (outcome?.kind ?? null));
};
const saying = (...calls: readonly Decision[]): PlannerFunction => {
  const first = script(...calls);
  return (run, signal) => (run.trajectory.count < calls.length ? first(run, signal) : lastOutcome(run, signal));
};

/** A call of which nobody knows whether it has happened. */
function unsure() {
  let made = 0;
  const pay = make(
    'pay',
    () => {
      made += 1;
      throw new OutcomeUnknown();
    },
    { effect: 'once' },
  );
  return { pay, made: () => made };
}

describe.each(ERAS)('MCP, %s', (name) => {
  const asked = async (
    tools: readonly Tool[],
    planner: PlannerFunction,
    answers: ClientOptions['onAsked'] & object,
    options: ServedOptions = {},
  ) => {
    const { url, ...more } = await served(tools, planner, options);
    const shown: JsonObject[] = [];
    const client = await mcpClient(name, url, { onAsked: noting(shown, answers) });
    return { ...more, shown, answer: await client.call('go', { tool: 'clerk' }) };
  };

  it('a pause that is not a tool call (login): a browser opens it (mode url), and the call is made after it', async () => {
    let isIn = false;
    const mail = make('mail', () => {
      if (!isIn) throw new LoginRequired('https://login.example.com/start', { message: 'Log in to your mail.' });
      return 'sent';
    });
    const { shown, answer } = await asked([mail], saying(call('mail')), () => {
      isIn = true;
      return { action: 'accept' };
    });
    expect(shown).toMatchObject([
      {
        mode: 'url',
        url: 'https://login.example.com/start',
        message: 'mail needs somebody to log in. Log in to your mail.',
      },
    ]);
    expect(answer).toMatchObject({ structuredContent: { answer: 'sent' } });
  });

  it('a pause that is not a tool call (a question of a tool): is answered in words, by a field, or by a form', async () => {
    const form = { type: 'object', properties: { seats: { type: 'integer' } }, required: ['seats'] };
    const calls = [
      call('ask_user', { question: 'Which color?' }),
      call('ask_user', { question: 'How many?', schema: { type: 'integer' } }),
      call('ask_user', { question: 'Which seats?', schema: form }),
      call('ask_user', { question: 'Which list?', schema: { type: 'array', items: { type: 'string' } } }),
    ];
    const said = [accept({ answer: 'blue' }), accept({ answer: 3 }), accept({ seats: 2 }), accept({ answer: '["a"]' })];
    const { shown, answer, runtime } = await asked([askUser], saying(...calls), () => said.shift() ?? {});
    expect(shown.map(({ message }) => message)).toEqual(['Which color?', 'How many?', 'Which seats?', 'Which list?']);
    expect(shown[2]).toMatchObject({ requestedSchema: form });
    const { steps } = await runtime.run(String(answer.structuredContent?.['runId'])).state();
    const values = steps
      .map(({ calls: made }) => made[0]?.outcome)
      .map((outcome) => outcome?.kind === 'value' && outcome.value);
    expect(values.slice(0, 4)).toEqual(['blue', 3, { seats: 2 }, ['a']]);
  });

  it.each([
    'await_input',
    'external_event',
    'constraints_conflict',
  ] as const)('a question of the planner itself (%s) has the form of its schema, and is answered by it', async (reason) => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const nested = { type: 'object', properties: { at: { type: 'object', required: ['x'] } }, required: ['at'] };
    const payload = { message: 'Which?', tool: 'a name of its own' };
    const questions = [schema, nested].map(
      (form): Decision => ({ kind: 'request_pause', reason, payload, schema: form }),
    );
    const said = [accept({ n: 3 }), accept({ answer: '{"at":{"x":1}}' })];
    const planner: PlannerFunction = ({ trajectory }) =>
      questions[trajectory.count] ?? finish(JSON.stringify(trajectory.steps.map(({ calls }) => calls[0]?.outcome)));
    const { shown, answer } = await asked([], planner, () => said.shift() ?? {});
    expect(shown).toMatchObject([
      { message: 'Which?', requestedSchema: schema },
      { message: 'Which?', requestedSchema: { required: ['answer'] } },
    ]);
    expect(answer.structuredContent?.['answer']).toMatch(/"payload":\{"n":3\}.*"payload":\{"at":\{"x":1\}\}/);
  });

  it('approvals: is asked again when an answer does not fit, and told why', async () => {
    const question = call('ask_user', { question: 'How many?', schema: { type: 'integer', minimum: 3 } });
    const said = [1, 5];
    const { shown, answer } = await asked([askUser], saying(question), () => accept({ answer: said.shift() ?? 0 }));
    expect(shown.map(({ message }) => String(message))).toEqual([
      'How many?',
      expect.stringMatching(/does not fit[\s\S]*How many\?$/),
    ]);
    expect(answer).toMatchObject({ structuredContent: { answer: '5' } });
  });

  it('a pause that is not a tool call (doubt): says what became of a call of which nobody knows', async () => {
    const { pay, made } = unsure();
    const { shown, answer } = await asked([pay], saying(call('pay')), () =>
      accept({ happened: true, value: '{"paid":9}' }),
    );
    expect(shown).toMatchObject([{ requestedSchema: { required: ['happened'] } }]);
    expect(answer).toMatchObject({ structuredContent: { answer: '{"paid":9}' } });
    expect(made()).toBe(1);
  });

  it('a form that is accepted without what it asks for is no answer: a call in doubt is not made again for it', async () => {
    const { pay, made } = unsure();
    const said = [accept(), accept({ happened: true }), accept(), accept({ answer: 'blue' })];
    const calls = [call('pay'), call('ask_user', { question: 'Which color?' })];
    const { shown, answer } = await asked([pay, askUser], saying(...calls), () => said.shift() ?? {});
    expect(shown.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^Nobody knows/),
      expect.stringMatching(/without its field happened[\s\S]*Nobody knows/),
      'Which color?',
      expect.stringMatching(/without its field answer[\s\S]*Which color\?$/),
    ]);
    expect(answer).toMatchObject({ structuredContent: { answer: 'blue' } });
    expect(made()).toBe(1);
  });

  it('approvals: says when arguments are too long to be shown whole', async () => {
    const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
    const long = call('pay', { to: ['x'.repeat(3_000)] });
    const { shown } = await asked([pay], saying(long), () => ({ action: 'decline' }));
    expect(shown[0]?.['message']).toMatch(/xxx… \(1011 characters more, which are not shown here\)/);
  });

  it('a pause that is not a tool call (the planner’s own): is answered by a form', async () => {
    const planner: PlannerFunction = (run) => (run.trajectory.count === 0 ? asks : finish('thanks'));
    const { answer } = await asked([], planner, () => accept({ answer: 'blue' }));
    expect(answer).toMatchObject({ structuredContent: { answer: 'thanks' } });
  });

  it('auth: may not approve what only others may; it is told so, and nothing runs', async () => {
    let made = 0;
    const once = { effect: 'once', needsApproval: { approver: 'another' } } as const;
    const pay = make(
      'pay',
      () => {
        made += 1;
      },
      once as unknown as Partial<Tool>,
    );
    const { answer } = await asked([pay], saying(call('pay')), () => accept());
    expect(answer).toMatchObject({ structuredContent: { status: 'waiting' } });
    expect(made).toBe(0);
  });
});

describe('MCP, the server', () => {
  it('asks no client for a limit that whoever runs the agent raises', async () => {
    const runtime = { limits: { steps: 1, onCeiling: 'pause' } } as const;
    const { url } = await served([make('look', () => 1)], () => call('look'), { runtime });
    const shown: JsonObject[] = [];
    const client = await mcpClient('client 2.4, 2025-11-25', url, { onAsked: noting(shown, () => accept()) });
    const { structuredContent } = await client.call('go', { tool: 'clerk' });
    expect(structuredContent).toMatchObject({
      status: 'waiting',
      waitsFor: [{ question: 'The run has reached its limit of steps, which is 1.' }],
    });
    expect(shown).toEqual([]);
  });

  it('names to whom it cannot ask a command that answers the question', async () => {
    const tools = [askUser, make('pay', () => 'paid', { effect: 'once', needsApproval: true })];
    const planner: PlannerFunction = ({ query }) => call(query, { question: 'Which color?' });
    const { url } = await served(tools, planner);
    const client = await mcpClient('client 2.4, auto', url);
    const told = async (query: string) => JSON.stringify((await client.call(query, { tool: 'clerk' })).content);
    expect(await told('pay')).toContain('pilotage approve run_');
    expect(await told('ask_user')).toContain('pilotage inspect run_');
  });

  it('runs as tools, annotations: hints at what an agent may do by what its tools do', async () => {
    const { runtime, url } = await served([make('look', () => 1, { effect: 'read' })], saying(call('look')), {
      agents: [
        {
          agent: 'clerk',
          name: 'ask_clerk',
          description: 'Looks.',
          inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
        },
      ],
    });
    const client = await mcpClient('client 2.4, auto', url);
    const [tool] = await client.tools();
    expect(tool).toMatchObject({
      name: 'ask_clerk',
      description: 'Looks.',
      inputSchema: { properties: { city: {} } },
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    });
    const { structuredContent } = await client.call({ city: 'Oslo' }, { tool: 'ask_clerk' });
    const run = await runtime.run(String(structuredContent?.['runId'])).state();
    expect([run.query, run.context.args]).toEqual(['{"city":"Oslo"}', { city: 'Oslo' }]);
  });

  it('wire 2026, lists: tools/list is for who asks, and never cached (claude-code#83147)', async () => {
    const { url } = await mcpServed({
      handler: {
        authenticate: (request) => ({
          identity: { tenant: 'acme', user: 'ana' },
          may: (action) => action !== 'start' || request.headers.get('authorization') === 'starter',
        }),
      },
    });
    const list = (authorization: string) => modern(url, 'tools/list', {}, { headers: { authorization } });
    expect(await list('starter')).toMatchObject({
      result: { ttlMs: 0, cacheScope: 'private', tools: [{ name: 'scenario' }, { name: 'run_result' }] },
    });
    expect(await list('reader')).toMatchObject({ result: { tools: [{ name: 'run_result' }] } });
    const params = { name: 'scenario', arguments: { input: 'say no' } };
    // A tool that is not listed is told of as one that there is not.
    const called = async (name: string) => {
      const answer = await older(url, { id: 1, method: 'tools/call', params: { ...params, name } });
      const task = { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
      const now = { ...params, name };
      return [await answer.json(), await modern(url, 'tools/call', now), await modern(url, 'tools/call', now, task)];
    };
    const hidden = await called('scenario');
    expect(hidden[1]).toMatchObject({ error: { message: expect.stringContaining('no tool') } });
    expect(JSON.stringify(await called('nobody'))).toBe(JSON.stringify(hidden).replaceAll('scenario', 'nobody'));
  });

  it('wire 2026: answers what is no message of the protocol by an error, and pages of other origins not at all', async () => {
    const { url, faults } = await mcpServed();
    const post = (body: string, headers: Record<string, string> = {}) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      });
    expect((await post('{', {})).status).toBe(400);
    expect((await post('{}', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post('{}', { origin: 'https://evil.example' })).status).toBe(403);
    for (const body of ['[]', '1', 'null', '{}', '{"id":1}', '{"jsonrpc":"2.0","id":1,"method":"nothing"}'])
      expect((await post(body)).status).toBeLessThan(500);
    const calls: JsonObject[] = [
      {},
      { name: 1 },
      { name: 'scenario', arguments: [] },
      { name: 'scenario', _meta: { 'pilotage/idempotencyKey': 1 } },
    ];
    for (const params of calls) {
      expect(await (await older(url, { id: 1, method: 'tools/call', params })).json()).toMatchObject({
        error: { code: -32_602 },
      });
      expect(await modern(url, 'tools/call', params)).toMatchObject({ error: {} });
    }
    expect(await modern(url, 'nothing', {})).toMatchObject({ status: 404, error: { code: -32_601 } });
    expect(faults).toEqual([]);
  });

  it('cancellation: a server that ends its connections itself cancels no run', async () => {
    const held = gate();
    const entered = gate();
    const hold = make('hold', () => {
      entered.open();
      return held.opened;
    });
    const { url, runtime, close } = await served([hold], saying(call('hold')));
    const called = modern(url, 'tools/call', { name: 'clerk', arguments: { input: 'go' } }).catch(() => 'cut');
    await entered.opened;
    await close();
    expect(await called).toBe('cut');
    held.open();
    await until(async () => (await runtime.list())[0]?.status === 'finished');
  });

  it('the client going away: closing a call cancels only the call, where the program says so', async () => {
    const { url, runtime } = await mcpServed({ onClosedCall: 'leave' });
    const left = new AbortController();
    const called = modern(
      url,
      'tools/call',
      { name: 'scenario', arguments: { input: 'weather in Oslo' } },
      { signal: left.signal },
    );
    await until(async () => (await runtime.list()).length === 1);
    left.abort();
    await expect(called).rejects.toThrow();
    await until(async () => (await runtime.list())[0]?.status === 'finished');
  });

  it('auth: gives a user so many streams, those of calls too', async () => {
    const { url, runtime } = await mcpServed({ handler: { maxStreamsPerUser: 1 } });
    const params = { name: 'scenario', arguments: { input: 'slow 500' } };
    const left = new AbortController();
    const first = modern(url, 'tools/call', params, { signal: left.signal }).catch(() => undefined);
    await until(async () => (await runtime.list()).length === 1);
    expect(await modern(url, 'tools/call', params)).toMatchObject({ error: { data: { code: 'streams_full' } } });
    expect((await older(url, { id: 1, method: 'tools/call', params })).status).toBe(429);
    left.abort();
    await first;
    await until(async () => (await runtime.list()).every(({ status }) => status === 'cancelled'));
  });
});
