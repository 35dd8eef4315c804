/** Runtimes of two tenants on a database that separates them, and a worker of all. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type JsonObject, local } from '#core';
import { createRuntime, type Runtime } from '#runtime';
import { expectCode } from '#testing';
import { tool } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { plays, spawns } from '../kit/tasks.ts';
import { ours, separated, theirs } from './separated.ts';

const TEXT = { type: 'object', properties: { text: { type: 'string' } } } as const;

describe('runtimes with separated tenants', async () => {
  const admin = await postgresUrl();

  const note = tool({
    name: 'note',
    description: 'Keeps a note.',
    effect: 'keyed',
    inputSchema: TEXT,
    execute: async ({ text }: JsonObject, { store }) => {
      await store.put(['notes'], 'last', { text: text ?? '' });
      // It is stored as an artifact.
      return 'x'.repeat(40_000);
    },
  });
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    effect: 'once',
    needsApproval: true,
    inputSchema: TEXT,
    execute: () => 'paid',
  });
  const planner = plays({
    work: script(spawns('part', { task: 'foreground' }), call('note', { text: 'blue' }), call('pay'), finish('done')),
    part: script(call('note', { text: 'of the task' }), finish('part')),
  });

  async function opened() {
    const place = await separated(admin);
    onTestFinished(() => place.close());
    const faults: unknown[] = [];
    const open = (tenant?: string, works = false): Runtime => {
      const onFault = (error: unknown) => void faults.push(error);
      const runtime = createRuntime({ planner, tools: [note, pay], journal: place.open(tenant), onFault });
      if (works) runtime.work();
      onTestFinished(() => runtime.close());
      return runtime;
    };
    return { open, faults, place };
  }

  const who = (tenant: string) => ({ tenant, user: 'ana', session: 's' });
  const as = (tenant: string) => ({ ...who(tenant), scope: 'admin' }) as const;

  it('each has its runs, approvals, tasks, artifacts and memory, and nothing of the other', async () => {
    const { open, faults, place } = await opened();
    const worker = open(undefined, true);
    const runtimes = [ours, theirs].map((tenant) => ({ tenant, runtime: open(tenant) }));
    const started = [];
    for (const { tenant, runtime } of runtimes) {
      const run = await runtime.start('work', { identity: { ...who(tenant), run: `${tenant}-1` } });
      const paused = await run.result();
      expect(paused.status).toBe('paused');
      started.push({ tenant, runtime, run, token: paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '' });
    }
    for (const { tenant, runtime, token } of started) {
      const other = tenant === ours ? theirs : ours;
      expect((await runtime.waiting({})).map((wait) => wait.tenant)).toEqual([tenant]);
      expect(new Set((await runtime.list({})).map(({ identity }) => identity.tenant))).toEqual(new Set([tenant]));
      expect((await runtime.list({})).length).toBe(2);
      expect(await runtime.store.of(who(other)).list([])).toEqual([]);
      expect((await runtime.store.of(who(tenant)).get(['notes'], 'last'))?.value).toEqual({ text: 'blue' });
      const foreign = runtime.run(`${other}-1`, { as: as(other) });
      await expectCode(foreign.approve(token), 'run_not_found');
      await expectCode(foreign.state(), 'run_not_found');
      await expectCode(foreign.cancel(), 'run_not_found');
      expect((await place.open(tenant).artifacts.list(who(other), 10)).total).toBe(0);
      expect((await place.open(tenant).artifacts.list(who(tenant), 10)).total).toBeGreaterThan(0);
    }
    // One is answered through its own runtime, the other through the worker of all.
    const [first, second] = started as [(typeof started)[number], (typeof started)[number]];
    await first.run.approve(first.token);
    await worker.run(`${theirs}-1`, { as: as(theirs) }).approve(second.token);
    for (const { run } of started) expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
    expect((await worker.list({})).length).toBe(4);
    expect(faults).toEqual([]);
  });

  it('what is started, sent or signalled for another tenant is refused, and nothing is stored', async () => {
    const { open, faults } = await opened();
    const runtime = open(ours);
    const worker = open();
    const started = await expectCode(
      runtime.start('work', { identity: { ...who(theirs), run: 'r' } }),
      'scope_mismatch',
    );
    expect(started.message).toContain('serves one tenant');
    // Clients of a server are told it.
    expect(started.message).not.toContain('row-level');
    expect(String(started.cause)).toContain('row-level');
    const odd = await expectCode(runtime.session('a\0b', { identity: who(ours) }).send('hello'), 'invalid_config');
    expect([odd.message, String(odd.cause)]).toEqual([
      expect.not.stringContaining('encoding'),
      expect.stringContaining('encoding'),
    ]);
    await expectCode(
      runtime.session('s', { identity: { tenant: theirs, user: 'ana' } }).send('hello'),
      'scope_mismatch',
    );
    await expectCode(runtime.signal('paid', { tenant: theirs, id: 's1', payload: 1 }), 'scope_mismatch');
    await expectCode(runtime.store.put(['common'], 'key', 1), 'scope_mismatch');
    const taken = await worker.start('other', { identity: { ...who(theirs), run: 'taken' } });
    await taken.result();
    await expectCode(
      runtime.start('other', { identity: { ...local('ana'), ...who(ours), run: 'taken' } }),
      'scope_mismatch',
    );
    expect((await worker.list({})).map(({ identity }) => identity.run)).toEqual(['taken']);
    expect(faults).toEqual([]);
  });
});
