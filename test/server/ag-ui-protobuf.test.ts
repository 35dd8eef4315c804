/** AG-UI in protobuf, for clients that ask for it. */
import { expect, it } from 'vitest';
import { agUiServer, client, say, textOf } from '../kit/ag-ui.ts';

const PROTOBUF = 'application/vnd.ag-ui.event+proto';

it.each([
  'say one two',
  'weather in Oslo',
  'refund A-17',
  'data',
  'fail',
  'pick a color',
])('AG-UI protobuf if Accept says so: "%s" is told as in SSE', async (text) => {
  const { url } = await agUiServer();
  const [binary, plain] = [client(url, { accept: PROTOBUF }), client(url)];
  const types: (string | null)[] = [];
  const { fetch: ask } = binary;
  binary.fetch = async (address, init) => {
    const answer = await ask(address, init);
    types.push(answer.headers.get('content-type'));
    return answer;
  };
  for (const agent of [binary, plain]) await say(agent, text, 'm1').catch(() => {});
  // In how many pieces something comes depends on when it is read.
  const of = (agent: typeof binary): unknown => [new Set(agent.types), agent.state];
  expect(of(binary)).toEqual(of(plain));
  expect(binary.messages.map(({ role, content }) => [role, content])).toEqual(
    plain.messages.map(({ role, content }) => [role, content]),
  );
  const again = Object.assign(client(url, { accept: PROTOBUF, threadId: binary.threadId }), { fetch: binary.fetch });
  await again.connectAgent().catch(() => {});
  expect(again.messages).toEqual(binary.messages);
  expect(again.pendingInterrupts).toEqual(binary.pendingInterrupts);
  expect(types).toEqual([PROTOBUF, PROTOBUF]);
});

it('AG-UI protobuf is not sent to clients of 0.0.59, whose protobuf has no results of calls', async () => {
  const { url } = await agUiServer();
  const agent = client(url, { version: '0.0.59', accept: PROTOBUF });
  await say(agent, 'weather in Oslo');
  expect(agent.types).toContain('TOOL_CALL_RESULT');
  expect(textOf(agent)).toBe('It is 7 degrees in Oslo.');
});

it.each([
  ['*/*', 'text/event-stream'],
  ['application/*', 'text/event-stream'],
  ['text/event-stream, application/vnd.ag-ui.event+proto;q=0.5', 'text/event-stream'],
  ['application/vnd.ag-ui.event+proto, text/event-stream;q=0.5', PROTOBUF],
  ['application/vnd.ag-ui.event+proto;q=0', 'text/event-stream'],
])('AG-UI protobuf: Accept %s is answered with %s', async (accept, type) => {
  const { url } = await agUiServer();
  const body = { threadId: 't', runId: 'r', protocolVersion: '1.0', messages: [] };
  const answer = await fetch(`${url}/ag-ui`, { method: 'POST', headers: { accept }, body: JSON.stringify(body) });
  expect(answer.headers.get('content-type')).toContain(type);
  await answer.arrayBuffer();
});
