/** Several processes post the webhooks of one journal: each event once, and at least once when one of them is killed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { webhooks } from '#server';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { until } from '../kit/waiting.ts';
import { programAt } from './peers.ts';

const postgres = await postgresUrl();

interface Store {
  readonly journal: Journal;
  /** What a child is told of it, behind the folder and the host. */
  readonly args: readonly string[];
}

const STORES: Record<string, (folder: string) => Store> = {
  SQLite: (folder) => ({ journal: sqliteJournal({ path: join(folder, 'journal.db'), watchIntervalMs: 10 }), args: [] }),
  Postgres: () => {
    const schema = `hooks_${crypto.randomUUID().slice(0, 8)}`;
    return { journal: postgresJournal({ url: postgres }, { schema }), args: [postgres, schema] };
  },
};

interface Taken {
  readonly id: string;
  readonly run: string;
  readonly seq: number;
  readonly type: string;
}

/** @param before what is done before a post is answered: it may never end. */
async function world(store: keyof typeof STORES, before: () => Promise<void> = async () => {}) {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-hooks-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const taken: Taken[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += String(piece);
    const { type, data } = JSON.parse(text) as { type: string; data: { run: string; seq: number } };
    taken.push({ id: String(request.headers['webhook-id']), run: data.run, seq: data.seq, type });
    await before();
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { journal, args } = (STORES[store] as (folder: string) => Store)(folder);
  onTestFinished(() => journal.close());
  const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal });
  onTestFinished(() => runtime.close());
  // It posts nothing itself.
  const hooks = webhooks({ runtime, allowHosts: [host] });
  await hooks.put({ id: 'all', tenant: 'acme', url: `http://${host}/` });
  const start = (query: string) =>
    runtime.start(query, {
      identity: { tenant: 'acme', user: 'ann', session: crypto.randomUUID(), run: crypto.randomUUID() },
    });
  const born = () => programAt('hooks-child.ts', folder, host, ...args);
  const isDone = async (count: number) => {
    const all = await hooks.deliveries('acme', 'all');
    return all.length === count && all.every(({ done }) => done === true);
  };
  return { runtime, hooks, taken, start, born, isDone };
}

describe.each(Object.keys(STORES))('processes that post on one journal on %s', (store) => {
  it('post each event once and in order, and hear of webhooks that another process stores', async () => {
    const { hooks, taken, start, born, isDone } = await world(store);
    await Promise.all([born(), born()]);
    const queries = Array.from({ length: 12 }, (_, index) => (index % 2 ? 'weather in Oslo' : 'say one two'));
    const runs = await Promise.all(queries.map(start));
    await until(() => isDone(runs.length));
    expect(new Set(taken.map(({ id }) => id)).size).toBe(taken.length);
    for (const run of runs) {
      const { events } = await run.recorded();
      expect(taken.filter((each) => each.run === run.id).map(({ seq }) => seq)).toEqual(events.map(({ seq }) => seq));
    }
    // One that comes while they are at work.
    const waits = await start('refund A-17');
    await waits.result();
    const { url } = (await hooks.get('acme', 'all')) ?? { url: '' };
    await hooks.put({ id: 'late', tenant: 'acme', run: waits.id, url, events: ['planner.finish'] });
    await waits.approve();
    await until(async () => (await hooks.deliveries('acme', 'late'))[0]?.done === true);
    await until(() => taken.filter(({ run, type }) => run === waits.id && type === 'planner.finish').length === 2);
  });

  it('go on after one of them was killed between a post and its position: the post comes again under its id', async () => {
    let kill: (() => Promise<unknown>) | undefined;
    const { taken, start, born, isDone } = await world(store, async () => {
      if (taken.length !== 2 || kill === undefined) return;
      const now = kill;
      kill = undefined;
      await now();
      await new Promise(() => {});
    });
    const first = await born();
    kill = first.kill;
    const run = await start('weather in Oslo');
    await until(() => kill === undefined);
    await born();
    await until(() => isDone(1));
    const { events } = await run.recorded();
    const seqs = taken.map(({ seq }) => seq);
    expect(seqs.toSpliced(1, 1)).toEqual(events.map(({ seq }) => seq));
    expect(taken[2]?.id).toBe(taken[1]?.id);
  });

  it('go on after one was killed, also when the other had left the run to it', async () => {
    const lives = new Map<number, () => Promise<unknown>>();
    const { taken, start, born, isDone } = await world(store, async () => {
      // Whoever it is that posts, one of the two at random is killed: the other one has all.
      if (taken.length !== 2) return;
      await lives.get(0)?.();
    });
    for (const index of [0, 1]) lives.set(index, (await born()).kill);
    const run = await start('weather in Oslo');
    await until(() => isDone(1));
    const { events } = await run.recorded();
    expect([...new Set(taken.map(({ id }) => id))]).toHaveLength(events.length);
  });
});
