/** What MCP clients keep for the server: what was tampered with is refused, what is sent again begins nothing again, and any process takes it. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { memoryJournal } from '#journal';
import { mcpServed, messagesIn, modern, older, olderSession, type ServedOptions } from '../kit/mcp.ts';
import { until } from '../kit/waiting.ts';

const ASKABLE = { elicitation: { form: {} } };
const REFUND = { name: 'scenario', arguments: { input: 'refund A-17' } };
const ACCEPT = { action: 'accept', content: {} };
/** Whoever says a name is that user. */
const authenticate = (request: Request) => {
  const user = request.headers.get('authorization') ?? '';
  return user === '' ? new Response('who?', { status: 401 }) : { identity: { tenant: 'acme', user } };
};

async function asked(options: ServedOptions = {}) {
  const served = await mcpServed({ ...options, handler: { authenticate, ...options.handler } });
  const send = (method: string, params: JsonObject, user = 'ana') =>
    modern(served.url, method, params, { capabilities: ASKABLE, headers: { authorization: user } });
  const { result = {} } = await send('tools/call', REFUND);
  const requestState = String(result['requestState']);
  const [token = ''] = Object.keys(result['inputRequests'] as JsonObject);
  const again = (more: JsonObject = {}, user?: string) =>
    send('tools/call', { ...REFUND, requestState, inputResponses: { [token]: ACCEPT }, ...more }, user);
  return { ...served, send, again, requestState, token, result };
}

describe('MCP, approvals: the state of a call that asks (requestState)', () => {
  it('is refused when it is forged, altered, of other arguments, another tool or another person, and runs nothing', async () => {
    const { again, requestState, effects, send, token, runtime } = await asked();
    const [body = '', mac = ''] = requestState.split('.');
    const [content, until] = JSON.parse(Buffer.from(body, 'base64url').toString());
    const altered = Buffer.from(JSON.stringify([content, until + 1])).toString('base64url');
    for (const forged of [`${altered}.${mac}`, body, `${body}.`, '.', '', `${requestState}.x`, 'x'.repeat(20_000)])
      expect(await again({ requestState: forged })).toMatchObject({ error: { code: -32_602 } });
    expect(await again({ arguments: { input: 'refund B-18' } })).toMatchObject({ error: { code: -32_602 } });
    expect(await again({ name: 'run_result' })).toMatchObject({ error: { code: -32_602 } });
    expect(await again({}, 'ben')).toMatchObject({ error: { code: -32_602 } });
    // What is asked stands in the journal: a state has no say in which calls are approved, nor have answers to other tokens.
    await send('tools/call', { ...REFUND, requestState, inputResponses: { [`${token}x`]: ACCEPT } });
    expect(effects.count('refund')).toBe(0);
    expect(await runtime.list()).toHaveLength(1);
    expect(await again()).toMatchObject({ result: { structuredContent: { status: 'finished' } } });
    expect(effects.count('refund')).toBe(1);
  });

  it('that is sent again, also at once, finds the run and runs nothing again; another answer is refused', async () => {
    const { again, effects, runtime, token } = await asked();
    const answers = await Promise.all([again(), again(), again()]);
    const text = [{ type: 'text', text: 'A-17 is refunded.' }];
    for (const answer of [...answers, await again()]) expect(answer).toMatchObject({ result: { content: text } });
    const other = await again({ inputResponses: { [token]: { action: 'decline' } } });
    expect(other).toMatchObject({ error: { code: -32_602, data: { code: 'pause_not_found' } } });
    expect([effects.count('refund'), (await runtime.list()).length]).toEqual([1, 1]);
  });

  it('is out of date after its time, and the run waits on', async () => {
    const { again, requestState, runtime } = await asked({ holdsMs: 1 });
    const [, endsAt] = JSON.parse(Buffer.from(requestState.split('.')[0] ?? '', 'base64url').toString());
    await until(() => Date.now() > endsAt);
    expect((await again()).error).toBeDefined();
    expect((await runtime.list())[0]?.status).toBe('paused');
  });

  it('is taken by any process that has the journal and the secret, also after the secret was changed', async () => {
    const journal = memoryJournal();
    const first = await asked({ runtime: { journal } });
    await first.close();
    const others = { runtime: { journal }, handler: { authenticate } };
    const second = await mcpServed({
      ...others,
      secret: ['another secret, of 32 bytes or more', 'a secret of the tests, long enough'],
    });
    const third = await mcpServed({ ...others, secret: 'another secret, of 32 bytes or more' });
    const { requestState, token } = first;
    const params = { ...REFUND, requestState, inputResponses: { [token]: ACCEPT } };
    const headers = { authorization: 'ana' };
    expect(await modern(third.url, 'tools/call', params, { headers })).toMatchObject({ error: { code: -32_602 } });
    expect(await modern(second.url, 'tools/call', params, { headers })).toMatchObject({
      result: { content: [{ text: 'A-17 is refunded.' }] },
    });
  });

  it('has nothing in it but the run and its question', async () => {
    const { requestState, token } = await asked();
    const [content] = JSON.parse(Buffer.from(requestState.split('.')[0] ?? '', 'base64url').toString());
    expect(content).toEqual({ run: expect.stringMatching(/^run_/), tokens: [token] });
  });
});

describe('MCP, ids: a call with the key pilotage/idempotencyKey', () => {
  it('begins one run, however often it is sent, and refuses other arguments; of another person it is another call', async () => {
    const { url, runtime, effects } = await mcpServed({ handler: { authenticate } });
    const send = (key: string, user: string, input: string) =>
      modern(
        url,
        'tools/call',
        { name: 'scenario', arguments: { input }, _meta: { 'pilotage/idempotencyKey': key } },
        { headers: { authorization: user } },
      );
    const same = await Promise.all([send('k', 'ana', 'weather in Oslo'), send('k', 'ana', 'weather in Oslo')]);
    const later = await send('k', 'ana', 'weather in Oslo');
    const runs = [...same, later].map(({ result }) => (result?.['structuredContent'] as JsonObject)['runId']);
    expect(new Set(runs).size).toBe(1);
    expect(effects.count('weather')).toBe(1);
    expect(await send('k', 'ana', 'weather in Rome')).toMatchObject({
      error: { data: { code: 'idempotency_conflict' } },
    });
    await send('k', 'ben', 'weather in Oslo');
    expect(await runtime.list()).toHaveLength(2);
  });
});

describe('MCP, two eras: a session of 2025-11-25', () => {
  it('is known in every process; one that is not known is answered with 404, never with 503 (fastmcp#3073, claude-code#59442, neotoma#1923, qwen-code#9962)', async () => {
    const [one, other] = [
      await mcpServed({ handler: { authenticate } }),
      await mcpServed({ handler: { authenticate } }),
    ];
    const headers = { authorization: 'ana' };
    const session = await olderSession(one.url, {}, headers);
    const list = (id: string, user = 'ana') =>
      older(other.url, { id: 1, method: 'tools/list' }, { authorization: user, 'mcp-session-id': id });
    expect((await list(session)).status).toBe(200);
    for (const [id, user] of [
      ['forged', 'ana'],
      [`${session}x`, 'ana'],
      [session, 'ben'],
    ] as const) {
      const refused = await list(id, user);
      expect([refused.status, await refused.json()]).toMatchObject([404, { error: { message: 'Session not found' } }]);
    }
    const gone = await fetch(other.url, {
      headers: { ...headers, accept: 'text/event-stream', 'mcp-session-id': 'x' },
    });
    expect(gone.status).toBe(404);
    const quiet = await fetch(other.url, {
      headers: { ...headers, accept: 'text/event-stream', 'mcp-session-id': session },
    });
    expect(quiet.status).toBe(405);
    const ended = await fetch(other.url, {
      method: 'DELETE',
      body: '',
      headers: { ...headers, 'mcp-session-id': session },
    });
    expect([ended.status, other.faults]).toEqual([405, []]);
  });

  it('has each call once, also when the request is sent again to another process, and an answer may go to any', async () => {
    const journal = memoryJournal();
    const [one, other] = [await mcpServed({ runtime: { journal } }), await mcpServed({ runtime: { journal } })];
    const headers = { 'mcp-session-id': await olderSession(one.url, ASKABLE) };
    const message = { id: 7, method: 'tools/call', params: REFUND };
    const calls = [one, one, other].map(async ({ url }) => messagesIn(await older(url, message, headers)));
    await until(async () => (await one.runtime.waiting()).length === 1);
    const [first] = await Promise.all([
      older(one.url, message, headers).then(async (response) => {
        const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ''; ; ) {
          text += (await reader?.read())?.value ?? '';
          const [, data] = /^data: (\{.*elicitation.*\})$/m.exec(text) ?? [];
          if (data !== undefined) return JSON.parse(data) as JsonObject;
        }
      }),
    ]);
    const id = first?.['id'] as string;
    const answer = await older(other.url, { id, result: ACCEPT }, headers);
    expect(answer.status).toBe(202);
    expect((await older(other.url, { id: `${id}x`, result: ACCEPT }, headers)).status).toBe(202);
    for (const messages of await Promise.all(calls))
      expect(messages.at(-1)).toMatchObject({ id: 7, result: { content: [{ text: 'A-17 is refunded.' }] } });
    // What was answered is not asked again.
    expect(await messagesIn(await older(one.url, message, headers))).toMatchObject([{ id: 7, result: {} }]);
    expect([(await one.runtime.list()).length, one.effects.count('refund') + other.effects.count('refund')]).toEqual([
      1, 1,
    ]);
  });

  it('reattaching: goes on with the stream of a call after a connection that broke, where the client had come to', async () => {
    const { url } = await mcpServed();
    const headers = { 'mcp-session-id': await olderSession(url) };
    const params = { name: 'scenario', arguments: { input: 'weather in Oslo' }, _meta: { progressToken: 'p' } };
    const response = await older(url, { id: 1, method: 'tools/call', params }, headers);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('Step 1')) text += (await reader?.read())?.value ?? '';
    await reader?.cancel();
    const last = [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? '';
    const rest = (id: string) =>
      fetch(url, { headers: { ...headers, accept: 'text/event-stream', 'last-event-id': id } });
    const heard = [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data));
    const messages = [...heard, ...(await messagesIn(await rest(last)))];
    expect(messages.slice(0, -1).map(({ params: told }) => told.message)).toEqual([
      ...['It begins.', 'Step 1: weather', 'weather is done.', 'Step 2: Finish'],
    ]);
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: 'It is 7 degrees in Oslo.' }] } });
    expect((await rest('forged')).status).toBe(404);
  });

  it('cancellation: notifications/cancelled cancels a call also before its run is stored', async () => {
    const { url, runtime } = await mcpServed();
    const headers = { 'mcp-session-id': await olderSession(url) };
    const cancelled = { method: 'notifications/cancelled', params: { requestId: 1 } };
    expect((await older(url, cancelled, headers)).status).toBe(202);
    const params = { name: 'scenario', arguments: { input: 'slow 500' } };
    const [last, ...more] = await messagesIn(await older(url, { id: 1, method: 'tools/call', params }, headers));
    expect(last).toMatchObject({ result: { isError: true, structuredContent: { status: 'cancelled' } } });
    // Nobody has asked to hear of progress.
    expect(more).toEqual([]);
    expect((await runtime.list()).map(({ status }) => status)).toEqual(['cancelled']);
  });

  it('cancellation: notifications/cancelled cancels a call that was sent again by its key, in another session', async () => {
    const { url, runtime } = await mcpServed();
    const _meta = { 'pilotage/idempotencyKey': 'report-7' };
    const call = { method: 'tools/call', params: { name: 'scenario', arguments: { input: 'refund A-17' }, _meta } };
    const begun = { 'mcp-session-id': await olderSession(url, ASKABLE) };
    await (await older(url, { id: 1, ...call }, begun)).body?.cancel();
    await until(async () => (await runtime.list())[0]?.status === 'paused');
    const headers = { 'mcp-session-id': await olderSession(url, ASKABLE) };
    const again = await older(url, { id: 5, ...call }, headers);
    await older(url, { method: 'notifications/cancelled', params: { requestId: 5 } }, headers);
    expect((await messagesIn(again)).at(-1)).toMatchObject({ id: 5, result: { isError: true } });
    expect((await runtime.list()).map(({ status }) => status)).toEqual(['cancelled']);
  });

  it('takes a list of messages, as its first version had them, and no version that there is not', async () => {
    const { url } = await mcpServed();
    const params = { name: 'scenario', arguments: { input: 'say hello' } };
    const calls = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params }));
    const init = {
      method: 'POST',
      body: JSON.stringify(calls),
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    };
    const answers = await messagesIn(await fetch(url, init));
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2]);
    expect(answers).toMatchObject([{ result: { content: [{ text: 'hello' }] } }, { result: {} }]);
    const unknown = await older(url, { id: 1, method: 'tools/call', params }, { 'mcp-protocol-version': '2020-01-01' });
    expect(unknown.status).toBe(400);
  });

  it('the client going away: a connection that breaks cancels nothing', async () => {
    const { url, runtime } = await mcpServed();
    const headers = { 'mcp-session-id': await olderSession(url) };
    const call = { id: 1, method: 'tools/call', params: { name: 'scenario', arguments: { input: 'weather in Oslo' } } };
    await (await older(url, call, headers)).body?.cancel();
    await until(async () => (await runtime.list())[0]?.status === 'finished');
  });
});
