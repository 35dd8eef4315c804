/** A2A where there are many tasks: what is asked of some costs nothing for the others, and no page leaves any out. */
import { expect, it } from 'vitest';
import { systemClock } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { webhooks } from '#server';
import { newRun, startedEntry } from '#testing';
import { changed } from '../kit/journals.ts';
import { servedAgent } from './a2a-kit.ts';

type Answer = { readonly result: { readonly tasks: { id: string }[]; nextPageToken: string; totalSize: number } };

const rpc = async (url: string, method: string, params: object): Promise<Answer> => {
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return (await (await fetch(`${url}/a2a`, { method: 'POST', headers, body })).json()) as Answer;
};

/** A journal with tasks that begin some day, and how many runs and items were read of it. */
async function crowded(tasks: number): Promise<{ journal: Journal; read: { runs: number; items: number } }> {
  const journal = memoryJournal({ clock: systemClock });
  for (let task = 0; task < tasks; task += 1) {
    const identity = { tenant: 'local', user: 'local', session: `s ${task}`, run: `task_${task}` };
    const first = { ...startedEntry(identity), agent: 'scenario', startsAt: Date.now() + 1e9 };
    await journal.create({ ...newRun(identity.run), identity, entries: [first] });
  }
  const read = { runs: 0, items: 0 };
  const store = changed(journal.store, {
    list: async (query, after) => {
      const found = await journal.store.list(query, after);
      // A filter is compared with all that lie there.
      read.items += query.filter === undefined ? found.length : tasks;
      return found;
    },
  });
  const list: Journal['list'] = async (query) => {
    const found = await journal.list(query);
    read.runs += found.length;
    return found;
  };
  return { journal: changed(journal, { store, list }), read };
}

it('ListTasks has all of them in its pages, and a page behind the first reads what it shows', async () => {
  const { journal, read } = await crowded(10_030);
  const { url } = await servedAgent({ world: { journal } });
  const ids = new Set<string>();
  const sizes = new Set<number>();
  for (let pageToken = '', pages = 0; pages === 0 || pageToken !== ''; pages += 1) {
    read.runs = 0;
    const { result } = await rpc(url, 'ListTasks', { pageSize: 100, pageToken });
    for (const { id } of result.tasks) ids.add(id);
    sizes.add(result.totalSize);
    if (pages > 0) expect(read.runs).toBeLessThanOrEqual(200);
    pageToken = result.nextPageToken;
  }
  expect(ids.size).toBe(10_030);
  expect([...sizes]).toEqual([10_000]);
});

it('a page behind a task that is not there, or is of somebody else, is refused', async () => {
  const { journal } = await crowded(3);
  const identity = { tenant: 'local', user: 'ben', session: 's', run: 'ben_1' };
  await journal.create({ ...newRun('ben_1'), identity, entries: [startedEntry(identity)] });
  const { url } = await servedAgent({ world: { journal } });
  for (const pageToken of ['3:gone', '3:ben_1', 'task_1'])
    expect(await rpc(url, 'ListTasks', { pageToken })).toMatchObject({ error: { code: -32_602 } });
});

it('the push notification configs of a task are found among those of many', async () => {
  const { journal, read } = await crowded(200);
  const { runtime } = await servedAgent({ world: { journal } });
  const hooks = webhooks({ runtime, allowHosts: ['127.0.0.1:9'] });
  const { url } = await servedAgent({ a2a: { webhooks: hooks }, world: { journal } });
  const put = (taskId: string) =>
    rpc(url, 'CreateTaskPushNotificationConfig', { taskId, id: 'mine', url: 'http://127.0.0.1:9/' });
  for (let task = 0; task < 200; task += 1) expect(await put(`task_${task}`)).toHaveProperty('result');
  read.items = 0;
  const listed = await rpc(url, 'ListTaskPushNotificationConfigs', { taskId: 'task_1' });
  expect(listed).toMatchObject({ result: { configs: [{ id: 'mine', taskId: 'task_1' }] } });
  expect(read.items).toBeLessThan(60);
});
