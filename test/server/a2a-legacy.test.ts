/** A2A 0.3: peers that do not send `A2A-Version`, by the SDK of 0.3, unmodified, and by the 0.3 of the SDK of 1.0. */
import { type Task as TaskOf1, TaskState } from '@a2a-js/sdk';
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';
import type { Message, Part, PushNotificationConfig, Task } from 'a2a-sdk-03';
import { type Client, ClientFactory, TaskNotCancelableError, TaskNotFoundError } from 'a2a-sdk-03/client';
import { describe, expect, it } from 'vitest';
import { webhooks } from '#server';
import { agent } from '#tools';
import { finish } from '../kit/decisions.ts';
import { until } from '../kit/waiting.ts';
import { answerOf, asked, BINDINGS, clientAt, data, said as saidIn1, sendFor, servedAgent } from './a2a-kit.ts';
import { receiver } from './receiver.ts';

/** The client takes the card by its address, and what it finds there. */
function client03(url: string): Promise<Client> {
  return new ClientFactory().createFromUrl(url);
}

const text = (...parts: readonly Part[]) => parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
const said = (words: string, more: Partial<Message> = {}): Message => messageOf([{ kind: 'text', text: words }], more);

function messageOf(parts: Part[], more: Partial<Message> = {}): Message {
  return { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts, ...more };
}

async function sent(client: Client, message: Message, configuration = {}): Promise<Task> {
  const task = await client.sendMessage({ message, configuration: { blocking: true, ...configuration } });
  if (task.kind !== 'task') throw new Error('A message came in place of a task.');
  return task;
}

const answer = ({ artifacts = [] }: Task) => text(...(artifacts[0]?.parts ?? []));

describe('A2A 0.3 (no header A2A-Version) over JSON-RPC', () => {
  it('message/send, tasks/get, tasks/cancel: kind, states and roles are those of 0.3, and errors have its codes', async () => {
    const { url } = await servedAgent();
    const client = await client03(url);
    const task = await sent(client, said('say one two'));
    expect(task).toMatchObject({ kind: 'task', status: { state: 'completed' } });
    expect(task.history).toMatchObject([
      { kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'say one two' }] },
    ]);
    expect(answer(task)).toBe('one two');
    expect(await client.getTask({ id: task.id })).toEqual(task);
    await expect(client.getTask({ id: 'nothing' })).rejects.toThrow(TaskNotFoundError);
    await expect(client.cancelTask({ id: task.id })).rejects.toThrow(TaskNotCancelableError);
    const waits = await sent(client, said('refund A-17'));
    expect((await client.cancelTask({ id: waits.id })).status.state).toBe('canceled');
    const soon = await sent(client, said('slow 5'), { blocking: false });
    expect(['submitted', 'working']).toContain(soon.status.state);
  });

  it('message/stream and tasks/resubscribe: the first event is a task, the last is final, also when the task asks', async () => {
    const { url, effects } = await servedAgent();
    const client = await client03(url);
    const read = async (stream: ReturnType<Client['sendMessageStream']>) => {
      const events = [];
      for await (const event of stream) events.push(event);
      return events;
    };
    const events = await read(client.sendMessageStream({ message: said('refund A-17') }));
    expect(events[0]).toMatchObject({ kind: 'task' });
    expect(events.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'input-required' } });
    const { id } = events[0] as Task;
    const going = read(client.resubscribeTask({ id }));
    // Data parts are answers in 0.3 too.
    await sent(client, messageOf([{ kind: 'data', data: { approved: true } }], { taskId: id }));
    const more = await going;
    expect(more[0]).toMatchObject({ kind: 'task', status: { state: 'input-required' } });
    expect(more.map(({ kind }) => kind)).toContain('artifact-update');
    const finals = more.flatMap((event) => (event.kind === 'status-update' ? [event.final] : []));
    expect([finals.at(-1), finals.slice(0, -1).includes(true)]).toEqual([true, false]);
    expect(answer(await client.getTask({ id }))).toBe('A-17 is refunded.');
    expect(effects.count('refund')).toBe(1);
  });

  it('parts: text, data that is no object, and files come and go in the shapes of 0.3', async () => {
    const seen: unknown[] = [];
    const tells = agent({
      name: 'tells',
      tools: [],
      planner: {
        name: 'tells',
        next: ({ query, inputs }) => {
          seen.push([query, inputs.map(({ fileName }) => fileName)]);
          return finish(query === 'number' ? [7, { seven: 7 }] : { seven: 7 });
        },
      },
    });
    const { url } = await servedAgent({ world: { agents: [tells] } });
    const client = await client03(url);
    const parts: Part[] = [
      { kind: 'text', text: 'take it' },
      { kind: 'file', file: { bytes: Buffer.from('hello').toString('base64'), mimeType: 'text/plain', name: 'a.txt' } },
      { kind: 'data', data: { a: 1 } },
    ];
    const task = await sent(client, messageOf(parts));
    expect(task.artifacts?.[0]?.parts).toEqual([{ kind: 'data', data: { seven: 7 } }]);
    expect(seen).toEqual([['take it\n\n{"a":1}', ['a.txt']]]);
    const list = await sent(client, said('number'));
    expect(list.artifacts?.[0]?.parts).toEqual([
      { kind: 'data', data: { value: [7, { seven: 7 }] }, metadata: { data_part_compat: true } },
    ]);
    // The SDK of 1.0 gives it back as it was.
    const legacy = new LegacyJsonRpcTransport({ endpoint: `${url}/a2a` });
    const { artifacts } = await legacy.getTask({ tenant: '', id: list.id, historyLength: undefined });
    expect(artifacts[0]?.parts[0]?.content).toEqual({ $case: 'data', value: [7, { seven: 7 }] });
    await expect(sent(client, messageOf([{ kind: 'sound' } as never]))).rejects.toThrow(/parts/);
  });

  it('tasks/pushNotificationConfig/set, get, list, delete: a config without an id has that of its task, and a task is posted', async () => {
    const to = await receiver();
    const made = await servedAgent();
    const hooks = webhooks({ runtime: made.runtime, allowHosts: [to.host], pollMs: 20 });
    const { url } = await servedAgent({ a2a: { webhooks: hooks }, world: { journal: made.journal } });
    const stop = hooks.work();
    const client = await client03(url);
    const config: PushNotificationConfig = {
      url: to.url,
      token: 'secret',
      authentication: { schemes: ['Bearer'], credentials: 'x' },
    };
    const task = await sent(client, said('refund A-17'), { pushNotificationConfig: config });
    await until(() => to.received.some(({ body }) => body.status?.state === 'input-required'));
    expect(to.received.at(-1)).toMatchObject({
      body: { kind: 'task', id: task.id, status: { message: { kind: 'message', role: 'agent' } } },
      headers: { 'x-a2a-notification-token': 'secret', authorization: 'Bearer x', 'content-type': 'application/json' },
    });
    const stored = {
      taskId: task.id,
      pushNotificationConfig: { id: task.id, url: to.url, token: 'secret', authentication: { schemes: ['Bearer'] } },
    };
    expect(await client.getTaskPushNotificationConfig({ id: task.id } as never)).toEqual(stored);
    const other = { taskId: task.id, pushNotificationConfig: { id: 'other', url: to.url } };
    expect(await client.setTaskPushNotificationConfig(other)).toEqual(other);
    expect(await client.listTaskPushNotificationConfig({ id: task.id })).toEqual(
      expect.arrayContaining([stored, other]),
    );
    await client.deleteTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: 'other' });
    expect(await client.listTaskPushNotificationConfig({ id: task.id })).toEqual([stored]);
    await sent(client, said('approve', { taskId: task.id }));
    await until(() => to.received.some(({ body }) => body.status?.state === 'completed'));
    expect(answer(to.received.at(-1)?.body)).toBe('A-17 is refunded.');
    await stop();
  });

  it('requests that are none are refused with the codes of the protocol, and begin nothing', async () => {
    const { url, runtime } = await servedAgent();
    const rpc = async (method: string, params: object) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      const headers = { 'content-type': 'application/json' };
      const answer = await (await fetch(`${url}/a2a`, { method: 'POST', headers, body })).json();
      return (answer as { error: { code: number } }).error.code;
    };
    const good = said('say hi');
    const bad = [{}, 7, null, [], { ...good, role: 'agent' }, { ...good, parts: null }, { ...good, parts: [] }];
    const parts = [null, {}, { kind: 'data' }, { kind: 'text' }, { kind: 'file', file: 7 }, { text: 'of 1.0' }];
    const messages = [...bad, ...parts.map((part) => ({ ...good, parts: [part] }))];
    for (const method of ['message/send', 'message/stream'])
      for (const message of messages) expect(await rpc(method, { message }), JSON.stringify(message)).toBe(-32_602);
    expect(await rpc('message/send', { message: good, configuration: { pushNotificationConfig: 7 } })).toBe(-32_602);
    for (const verb of ['set', 'get', 'list', 'delete'])
      expect(await rpc(`tasks/pushNotificationConfig/${verb}`, {}), verb).toBe(-32_602);
    expect(await rpc('tasks/pushNotificationConfig/list', { id: 'x' })).toBe(-32_003);
    expect(await rpc('agent/getAuthenticatedExtendedCard', {})).toBe(-32_007);
    expect(await rpc('tasks/get', { id: ['x'] })).toBe(-32_602);
    expect(await runtime.list()).toEqual([]);
  });

  it('card: supportedInterfaces lists 1.0 before 0.3, and a 0.3 client finds url, preferredTransport and its extended card', async () => {
    const { url } = await servedAgent({ a2a: { extendedCard: { name: 'for those let in' } } });
    const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as { supportedInterfaces: unknown };
    expect(card.supportedInterfaces).toEqual([
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${url}/a2a/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ]);
    expect(card).toMatchObject({ url: `${url}/a2a`, preferredTransport: 'JSONRPC', protocolVersion: '0.3.0' });
    const client = await client03(url);
    expect((await client.getAgentCard()).name).toBe('for those let in');
  });

  it('a task of 0.3 is the same task in 1.0, and one of 1.0 in 0.3', async () => {
    const { url } = await servedAgent();
    const old = await client03(url);
    for (const binding of BINDINGS) {
      const fresh = await clientAt(url, binding);
      const waits = await sent(old, said('refund A-17'));
      const done = await sendFor(fresh, data({ approved: true }, { taskId: waits.id }));
      expect([done.status?.state, answerOf(done)]).toEqual([TaskState.TASK_STATE_COMPLETED, 'A-17 is refunded.']);
      const task = await sendFor(fresh, saidIn1('say both'));
      expect(answer(await old.getTask({ id: task.id }))).toBe('both');
    }
    const compat = new LegacyJsonRpcTransport({ endpoint: `${url}/a2a` });
    const task = (await compat.sendMessage(asked(saidIn1('say hello')))) as TaskOf1;
    expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']).toContain(
      TaskState[task.status?.state ?? 0],
    );
  });
});
