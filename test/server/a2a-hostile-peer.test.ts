/** Agents that answer a call of `a2aTool` with what no agent should say. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Json, systemClock } from '#core';
import type { RunResult } from '#runtime';
import { type A2aToolOptions, type AgentCard, a2aTool } from '#server/a2a';
import { call, finish } from '../kit/decisions.ts';
import { start, world } from '../kit/world.ts';

type Asked = { readonly method: string; readonly count: number; readonly response: ServerResponse };
/** Gives the fields of the answer over JSON-RPC, or answers itself. */
type Answers = (asked: Asked) => object | undefined;

const REFUSED = { error: { code: -32_601, message: 'There is no such method.' } };
const WORKS = { id: 't1', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } };
const DONE = { ...WORKS, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'done' }] }] };

/** @returns the card of an agent that answers so, and how often each method was asked of it. */
async function peer(answers: Answers): Promise<{ readonly card: AgentCard; readonly asked: Record<string, number> }> {
  const asked: Record<string, number> = {};
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += String(piece);
    const { method, id } = JSON.parse(text) as { method: string; id: number };
    const count = (asked[method] ?? 0) + 1;
    asked[method] = count;
    const answer = answers({ method, count, response });
    if (answer !== undefined) response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { card: cardAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), asked };
}

function cardAt(url: string): AgentCard {
  return {
    ...{ name: 'peer', description: 'A peer.', version: '1', skills: [], capabilities: {} },
    ...{ defaultInputModes: ['text'], defaultOutputModes: ['text'] },
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  };
}

/** What a run comes to that asks the agent once, and finishes with the outcome of the call. */
async function asks(options: A2aToolOptions): Promise<RunResult> {
  const made = world({
    planner: (run) => {
      const outcome = run.trajectory.step(0)?.calls?.[0]?.outcome;
      if (outcome === undefined) return call('ask_peer', { message: 'Book it.' });
      return finish(JSON.parse(JSON.stringify(outcome)) as Json);
    },
    tools: [a2aTool({ name: 'ask_peer', ...options })],
    clock: systemClock as never,
  });
  return (await start(made)).result();
}

const begins = (method: string): boolean => method === 'SendMessage';

describe('an agent whose answer to a message cannot be read', () => {
  const answers: readonly (readonly [what: string, answer: object])[] = [
    ['nothing', { result: null }],
    ['a text', { result: 'ok' }],
    ['no task', { result: { task: null } }],
    ['a task without an id', { result: { task: { ...WORKS, id: undefined } } }],
    ['a task whose id is a book', { result: { task: { ...WORKS, id: 'i'.repeat(10_000) } } }],
    ['a task that stands nowhere', { result: { task: { id: 't1', contextId: 'c' } } }],
    ['a message without parts', { result: { message: {} } }],
    ['a part that is none', { result: { message: { parts: [null] } } }],
    ['the answer to another request', { id: 999, result: { task: WORKS } }],
    ['more than can be recorded', { result: { message: { parts: [{ text: 'x'.repeat(5_000_000) }] } } }],
  ];

  it('may have done it, and is not asked again', async () => {
    const wrong = answers.map(async ([what, answer]) => {
      const { card, asked } = await peer(({ method }) => (begins(method) ? answer : REFUSED));
      expect(await asks({ card }), what).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
      expect(asked['SendMessage'], what).toBe(1);
    });
    await Promise.all(wrong);
  });
});

describe('an agent that is asked after its task', () => {
  it.each<[what: string, answer: object]>([
    ['of another task', { result: { ...DONE, id: 't2', artifacts: [{ parts: [{ text: 'of somebody else' }] }] } }],
    ['to another request', { id: 'another', result: { ...DONE, artifacts: [{ parts: [{ text: 'elsewhere' }] }] } }],
    ['without a status', { result: { id: 't1' } }],
    ['without artifacts that can be read', { result: { ...DONE, artifacts: [{}] } }],
  ])('is asked again for an answer %s', async (_, answer) => {
    const { card } = await peer(({ method, count }) => {
      if (begins(method)) return { result: { task: WORKS } };
      return count < 3 ? answer : { result: DONE };
    });
    expect(await asks({ card })).toMatchObject({ payload: { kind: 'value', value: { answer: 'done', taskId: 't1' } } });
  });

  it('and sends for ever is not heard out', async () => {
    let sent = 0;
    const { card } = await peer(({ method, count, response }) => {
      if (begins(method)) return { result: { task: WORKS } };
      if (count > 1) return { result: DONE };
      const piece = 'x'.repeat(1_000_000);
      const more = (): void => {
        sent += 1;
        if (!response.destroyed) response.write(piece, () => setImmediate(more));
      };
      response.write('{"result":"');
      more();
      return undefined;
    });
    expect(await asks({ card })).toMatchObject({ payload: { kind: 'value', value: { answer: 'done' } } });
    expect(sent).toBeLessThan(100);
  });

  it('and takes longer than the call may is in doubt: its task was begun', async () => {
    const { card, asked } = await peer(({ method }) => ({ result: begins(method) ? { task: WORKS } : WORKS }));
    const result = await asks({ card, timeoutMs: 150 });
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect(asked['SendMessage']).toBe(1);
  });

  it('asks by a schema that is none, and is answered without', async () => {
    const schema = { type: 'bogus' };
    const parts = [{ text: 'How many?' }, { data: { pauses: [{ token: 'p1', reason: 'await_input', schema }] } }];
    const status = { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts } };
    const { card } = await peer(({ method }) => ({
      result: begins(method) ? { task: WORKS } : { ...WORKS, status },
    }));
    expect(await asks({ card })).toMatchObject({ status: 'paused', pauses: [{ payload: { message: 'How many?' } }] });
  });
});

describe('an agent that has moved', () => {
  it('is not followed, and the status says it', async () => {
    const followed: string[] = [];
    const server = createServer((request, response) => {
      followed.push(request.url ?? '');
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const result = await asks({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    expect(JSON.stringify(result)).toMatch(/There is no card of an agent at .* \(status 302\)/);
    expect(new Set(followed)).toEqual(new Set(['/.well-known/agent-card.json']));
  });
});

describe('a card that cannot be used', () => {
  it.each<[what: string, interfaces: unknown]>([
    ['has no list of interfaces', {}],
    ['has one without a version', [{ url: 'http://127.0.0.1:9', protocolBinding: 'JSONRPC' }]],
    ['leads to no server', [{ url: 'nowhere', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]],
  ])('is refused before anything is sent: it %s', async (_, interfaces) => {
    const card = { ...cardAt('http://127.0.0.1:9'), supportedInterfaces: interfaces } as AgentCard;
    const { payload } = (await asks({ card })) as { payload?: { error?: { message: string } } };
    expect(payload?.error?.message).toMatch(/^The (card of the agent cannot be used|agent does not speak A2A)/);
  });
});
