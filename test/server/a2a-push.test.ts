/** Push notifications of A2A: configs by the real client over both bindings, and what is posted to a real receiver. */
import type { TaskPushNotificationConfig } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { PushNotificationNotSupportedError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#core';
import { memoryJournal } from '#journal';
import { webhooks } from '#server';
import { until } from '../kit/waiting.ts';
import { asked, BINDINGS, type BindingName, clientAt, said, sendFor, servedAgent } from './a2a-kit.ts';
import { bearer } from './bearer.ts';
import { type Receiver, receiver } from './receiver.ts';

function configTo(url: string, more: Partial<TaskPushNotificationConfig> = {}): TaskPushNotificationConfig {
  return { id: 'mine', taskId: '', tenant: '', url, token: 'secret-token', authentication: undefined, ...more };
}

/** An agent whose server posts, and its client. */
async function posting(binding: BindingName, to: Receiver, handler: object = {}) {
  const journal = memoryJournal({ clock: systemClock });
  const made = await servedAgent({ world: { journal } });
  const hooks = webhooks({
    runtime: made.runtime,
    allowHosts: [to.host],
    ...{ pollMs: 20, backoff: { baseMs: 5, maxMs: 20 }, leaseMs: 500 },
  });
  const { url } = await servedAgent({ a2a: { webhooks: hooks }, world: { journal }, handler });
  const stop = hooks.work();
  onTestFinished(() => stop());
  return { url, client: await clientAt(url, binding) };
}

const idsOf = async (client: Client, taskId: string) => {
  const { configs } = await client.listTaskPushNotificationConfig({ taskId } as never);
  return configs.map(({ id }) => id).sort();
};
const states = (to: Receiver) => to.received.map(({ body }) => (body.task ?? body.statusUpdate).status.state as string);

describe.each(BINDINGS)('push notifications of A2A over %s', (binding) => {
  it('push: a config that comes with SendMessage is one config, also when the message is sent again', async () => {
    const to = await receiver();
    const { client } = await posting(binding, to);
    const message = said('refund A-17');
    const config = configTo(to.url, { id: '' });
    const first = await sendFor(client, message, { taskPushNotificationConfig: config });
    expect((await sendFor(client, message, { taskPushNotificationConfig: config })).id).toBe(first.id);
    expect(await idsOf(client, first.id)).toHaveLength(1);
  });

  it('push: the webhook is told of input-required (ggcode#1050, a2a-js#418), with X-A2A-Notification-Token and a StreamResponse', async () => {
    const to = await receiver();
    const { client } = await posting(binding, to);
    const task = await sendFor(client, said('refund A-17'), { taskPushNotificationConfig: configTo(to.url) });
    await until(() => states(to).includes('TASK_STATE_INPUT_REQUIRED'));
    const waits = to.received.at(-1);
    expect(waits?.headers['x-a2a-notification-token']).toBe('secret-token');
    expect(waits?.headers['content-type']).toBe('application/a2a+json');
    expect(JSON.stringify(waits?.body)).toContain('approve');
    await sendFor(client, said('approve', { taskId: task.id }));
    await until(() => states(to).includes('TASK_STATE_COMPLETED'));
    expect(to.received.at(-1)?.body.task.artifacts[0].parts[0].text).toBe('A-17 is refunded.');
    for (const { body } of to.received) {
      expect(Object.keys(body)).toHaveLength(1);
      expect(['task', 'statusUpdate']).toContain(Object.keys(body)[0]);
    }
    const once = states(to).filter((state, index, all) => state !== all[index - 1]);
    expect(once.slice(-3)).toEqual(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
  });

  it('push: configs are created later, got, listed and deleted', async () => {
    const to = await receiver();
    const { client } = await posting(binding, to);
    const task = await sendFor(client, said('refund A-17'), { taskPushNotificationConfig: configTo(to.url) });
    const authentication = { scheme: 'Bearer', credentials: 'for the receiver' };
    const later = configTo(to.url, { id: 'la/t er', token: '', taskId: task.id, authentication });
    expect(await client.createTaskPushNotificationConfig(later)).toMatchObject({ id: 'la/t er', taskId: task.id });
    expect(await idsOf(client, task.id)).toEqual(['la/t er', 'mine']);
    const got = await client.getTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'la/t er' });
    expect(got).toMatchObject({ url: to.url, authentication: { scheme: 'Bearer', credentials: '' } });
    await client.deleteTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'mine' });
    expect(await idsOf(client, task.id)).toEqual(['la/t er']);
    const gone = client.getTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'mine' });
    await expect(gone).rejects.toThrow(TaskNotFoundError);
    await sendFor(client, said('approve', { taskId: task.id }));
    const ofLater = () => to.received.filter(({ headers }) => headers.authorization === 'Bearer for the receiver');
    await until(() => ofLater().some(({ body }) => body.task?.status.state === 'TASK_STATE_COMPLETED'));
  });

  it('push: a config too many is refused before the message that it comes with does anything', async () => {
    const to = await receiver();
    const { client } = await posting(binding, to);
    const task = await sendFor(client, said('refund A-17'));
    for (let index = 0; index < 20; index += 1)
      await client.createTaskPushNotificationConfig(configTo(to.url, { id: `config ${index}`, taskId: task.id }));
    const more = { taskPushNotificationConfig: configTo(to.url, { id: 'one more' }) };
    const sent = client.sendMessage(asked(said('approve', { taskId: task.id }), more));
    await expect(sent).rejects.toThrow(/at most 20/);
    expect(await client.getTask({ tenant: '', id: task.id, historyLength: undefined })).toEqual(task);
  });

  it("push: an address that is not public begins nothing; a config of another's task is not found; without webhooks there are none", async () => {
    const to = await receiver();
    const { url } = await posting(binding, to, { authenticate: bearer });
    const as =
      (who: string): typeof fetch =>
      (input, init) =>
        fetch(input, { ...init, headers: { ...(init?.headers as object), authorization: `Bearer acme/${who}` } });
    const [ann, ben] = [await clientAt(url, binding, as('ann')), await clientAt(url, binding, as('ben'))];
    const inside = { taskPushNotificationConfig: configTo('https://169.254.169.254/') };
    await expect(ann.sendMessage(asked(said('say hi'), inside))).rejects.toThrow(/not a public/);
    // Nobody has the names of an inner network resolved.
    const named = { taskPushNotificationConfig: configTo('https://localhost/') };
    const refused = await ann.sendMessage(asked(said('say hi'), named)).catch(String);
    expect(refused).toMatch(/localhost does not lead to a public address\.$/);
    const task = await sendFor(ann, said('refund A-17'), { taskPushNotificationConfig: configTo(to.url) });
    const { tasks } = await ann.listTasks({ tenant: '', contextId: '', status: 0, pageToken: '' } as never);
    expect(tasks).toHaveLength(1);
    await expect(idsOf(ben, task.id)).rejects.toThrow(TaskNotFoundError);
    const his = ben.createTaskPushNotificationConfig(configTo(to.url, { taskId: task.id }));
    await expect(his).rejects.toThrow(TaskNotFoundError);
    const plain = await clientAt((await servedAgent()).url, binding);
    const none = sendFor(plain, said('say hi'), { taskPushNotificationConfig: configTo(to.url) });
    await expect(none).rejects.toThrow(PushNotificationNotSupportedError);
  });
});
