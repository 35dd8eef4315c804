/** Malformed requests on every route of every protocol at once, over real sockets: typed answers, nothing of others, nothing carried out, no growth. */
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { api, createHandler, problem, RequestRefused, serve } from '#server';
import { a2a } from '#server/a2a';
import { agUi } from '#server/ag-ui';
import { aiSdk } from '#server/ai-sdk';
import { mcp } from '#server/mcp';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { type OddRequest, OddRequests } from '../kit/odd-requests.ts';
import { until } from '../kit/waiting.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const REQUESTS = 10_000;
const AT_ONCE = 8;
/** As long as a result is waited for at most, and a little more. */
const LONGEST_MS = 5_000;
const MOST_GROWTH = 40 * 2 ** 20;
/** What the other user has said, which nobody else may read. */
const SECRET = 'SECRETOFBEN';

const bodiesFor = (ids: readonly string[]): readonly unknown[] => {
  const [run = '', token = '', session = ''] = ids;
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'nothing much' }] };
  const approved = {
    type: 'dynamic-tool',
    toolName: 'refund',
    toolCallId: `${run}.0.0`,
    state: 'approval-responded',
    input: {},
    approval: { id: token, approved: true },
  };
  const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
  const task = {
    message: { messageId: 'a1', role: 'ROLE_USER', taskId: run, contextId: session, parts: [{ text: 'approve' }] },
  };
  return [
    { id: session, messages: [message], trigger: 'submit-message' },
    {
      id: session,
      messages: [message, { id: `${run}:1`, role: 'assistant', parts: [approved] }],
      trigger: 'submit-message',
      messageId: `${run}:1`,
    },
    { id: session, messages: [message], trigger: 'regenerate-message', messageId: `${run}:1` },
    { approvalId: token, approved: true, args: { order: 'A-17', amount: 1 } },
    {
      threadId: session,
      runId: 'r1',
      protocolVersion: '1.0',
      messages: [{ id: 'm1', role: 'user', content: 'hello' }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    },
    {
      threadId: session,
      runId: 'r2',
      messages: [],
      tools: [],
      context: [],
      resume: [{ interruptId: token, status: 'resolved', payload: { approved: true } }],
    },
    rpc('SendMessage', task),
    rpc('GetTask', { id: run }),
    rpc('CancelTask', { id: run }),
    rpc('SubscribeToTask', { id: run }),
    rpc('CreateTaskPushNotificationConfig', { taskId: run, url: 'http://127.0.0.1:9/', token: 't' }),
    rpc('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }),
    rpc('tools/call', { name: 'scenario', arguments: { query: 'say hi' } }),
    rpc('tools/call', { name: 'run_result', arguments: { runId: run } }),
    rpc('tasks/get', { taskId: run }),
    task,
    { query: 'say hi', agent: 'scenario' },
    { message: 'say hi', busy: 'queue' },
    { kind: 'approve', token },
    { answers: { [token]: { kind: 'approve' } } },
    { id: 's1', everyMs: 1_000, query: 'tick', agent: 'scenario' },
    { payload: { n: 1 } },
  ];
};

async function target() {
  const effects = new Effects();
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal(), limits: { steps: 3 } });
  const faults: unknown[] = [];
  const users: Readonly<Record<string, string>> = { 'Bearer ana': 'ana', 'Bearer ben': 'ben' };
  const handler = createHandler({
    runtime,
    parts: [api(), aiSdk(), agUi(), a2a(), mcp({ secret: 'a secret for the tests of hostile requests' })],
    authenticate: (asked) => {
      const user = users[asked.headers.get('authorization') ?? ''];
      if (user === undefined) return problem(new RequestRefused('unauthenticated', 'Who are you?'));
      return {
        identity: { tenant: 'acme', user },
        may: (action) => user === 'ben' || !['start', 'manage'].includes(action),
      };
    },
    maxStreamsPerUser: 20,
    onFault: (error) => void faults.push(error),
  });
  const served = await serve(handler, { port: 0, requestTimeoutMs: 2_000 });
  onTestFinished(async () => {
    await served.close();
    await runtime.close();
  });
  const session = runtime.session('of-ben', { identity: { tenant: 'acme', user: 'ben' } });
  const sent = await session.send(`refund ${SECRET}`);
  const result = await sent.result();
  const token = result.status === 'paused' ? (result.pauses[0]?.token ?? '') : '';
  const routes = handler.app.routes
    .filter(({ method, path }) => !(method === 'ALL' && path.endsWith('*')))
    .map(({ method, path }) => [method === 'ALL' ? 'POST' : method, path] as const);
  return { runtime, effects, faults, served, ids: [sent.turn, token, 'of-ben'], routes };
}

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

/** @returns status and the beginning of the body: a stream is left after its first piece. */
function fire(port: number, { method, path, headers, body }: OddRequest): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent, method, path, headers }, (answer) => {
      let text = '';
      const done = (): void => resolve({ status: answer.statusCode ?? 0, text });
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (String(answer.headers['content-type']).startsWith('text/event-stream')) answer.destroy();
      });
      answer.on('close', done);
      // A stream may have nothing to say for a long time.
      if (String(answer.headers['content-type']).startsWith('text/event-stream'))
        setTimeout(() => answer.destroy(), 30);
    });
    asked.on('error', (error: NodeJS.ErrnoException) => {
      // A request that HTTP itself does not allow is cut by Node.
      if (['ECONNRESET', 'EPIPE'].includes(error.code ?? '')) resolve({ status: 400, text: '' });
      else reject(error);
    });
    asked.setTimeout(LONGEST_MS, () => resolve({ status: 0, text: 'It was not answered.' }));
    asked.end(body);
  });
}

it('answers 10,000 of them, and has carried out nothing, told nothing and kept nothing', {
  timeout: 400_000,
}, async () => {
  const made = await target();
  const { port } = made.served;
  expect(made.routes.length).toBeGreaterThan(50);
  const odd = new OddRequests({
    seed: 27,
    routes: made.routes,
    ids: made.ids,
    bodies: bodiesFor(made.ids),
    headers: { authorization: 'Bearer ana' },
  });
  const heaps: number[] = [];
  const wrong: string[] = [];
  const taken = new Set<string>();
  let refused = 0;
  for (let fired = 0; fired < REQUESTS && wrong.length < 5; fired += AT_ONCE) {
    const asked = Array.from({ length: AT_ONCE }, () => odd.next());
    const answers = await Promise.all(asked.map((each) => fire(port, each)));
    for (const [index, { status, text }] of answers.entries()) {
      const { method, path, body } = asked[index] as OddRequest;
      if (status < 300) taken.add(path.split(/[/?]/)[1] ?? '');
      else refused += 1;
      const told = text.includes(SECRET) && !String(body).includes(SECRET);
      if (status >= 500 || status < 200 || told || /\n\s+at |node_modules|\/src\//.test(text))
        wrong.push(`${method} ${path.slice(0, 200)} ${String(body).slice(0, 300)} → ${status} ${text.slice(0, 300)}`);
    }
    if (fired % 2_000 === 0) {
      collect();
      heaps.push(process.memoryUsage().heapUsed);
    }
  }
  expect(wrong.slice(0, 5)).toEqual([]);
  // They came through to every part, and most of them were refused there.
  expect([...taken]).toEqual(expect.arrayContaining(['api', 'ag-ui', 'a2a', 'mcp']));
  expect(refused).toBeGreaterThan(REQUESTS / 3);
  expect(made.faults.map(String)).toEqual([]);
  expect(made.effects.count('refund') + made.effects.count('weather')).toBe(0);
  const runs = await made.runtime.list({ limit: 200 });
  expect(runs.map(({ identity }) => identity.user)).toEqual(['ben']);
  expect(runs[0]?.status).toBe('paused');
  expect((heaps.at(-1) ?? 0) - (heaps[1] ?? 0)).toBeLessThan(MOST_GROWTH);
});

it('closes connections that are half open, and serves others meanwhile', { timeout: 60_000 }, async () => {
  const made = await target();
  const { port, server } = made.served;
  const halves = Array.from({ length: 200 }, (_, index) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    if (index % 3 === 1) socket.write('POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1\r\n');
    if (index % 3 === 2)
      socket.write(
        'POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ben\r\ncontent-length: 90\r\n\r\n{"id":',
      );
    return new Promise<void>((resolve) => socket.on('close', () => resolve()));
  });
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { authorization: 'Bearer ben' } });
  expect(answer.status).toBe(200);
  // Those that have sent nothing at all are no request yet; Node closes them with the server.
  await Promise.all(halves.filter((_, index) => index % 3 !== 0));
  await until(async () => {
    const open = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    return open <= 200 / 3 + 10;
  });
});
