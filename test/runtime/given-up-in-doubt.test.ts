/** A `keyed` call that is given up after the process died that made it: it may have happened, so no other key stands for the same act. */
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Branch, type CallParallel, type Decision, local, type PlannerFunction } from '#core';
import { edge, flow, node } from '#flow';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Run, type Runtime } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { finish } from '../kit/decisions.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, kindsOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const open: Runtime[] = [];
afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close();
});

/** What came in at the provider: for whom, and under which key. */
interface Provider {
  readonly paid: (readonly [to: string, key: string])[];
  /** The first `hanging` payments never come back to whoever asked for them. */
  tools(hanging: number, more?: Partial<Tool>): readonly Tool[];
}

function provider(): Provider {
  const paid: [string, string][] = [];
  return {
    paid,
    tools: (hanging, more = {}) => [
      make(
        'pay',
        ({ to }, { idempotencyKey }) => {
          paid.push([String(to), idempotencyKey.split('/').at(-1) ?? '']);
          return paid.length <= hanging ? new Promise(() => {}) : { to: to ?? null };
        },
        { effect: 'keyed', ...more },
      ),
      make('look', ({ of }) => of ?? null),
    ],
  };
}

const pay = (to: string, more: Partial<Branch> = {}): Branch => ({ id: to, tool: 'pay', args: { to }, ...more });
const look = (of: string, more: Partial<Branch> = {}): Branch => ({ id: of, tool: 'look', args: { of }, ...more });
const plan = (branches: readonly Branch[], more: Partial<CallParallel> = {}): Decision => ({
  kind: 'call_parallel',
  plan: 'p',
  branches,
  onInvalid: 'per_branch',
  ...more,
});
const planned = (...decisions: readonly Decision[]): PlannerFunction => {
  return ({ trajectory }) => decisions[trajectory.count] ?? finish(null);
};

interface Died {
  readonly id: string;
  readonly journal: Journal;
  readonly clock: VirtualClock;
}

/** A process carries out a plan, and dies when it is as far as that. */
async function died(planner: PlannerFunction, tools: readonly Tool[], isSoFar: (j: Journal) => unknown): Promise<Died> {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const dying = cutJournal(journal);
  const { id } = await start(world({ planner, tools, journal: dying.journal, clock }));
  await until(async () => Boolean(await isSoFar(journal)));
  await quiet();
  dying.cut();
  clock.advance(5_001);
  return { id, journal, clock };
}

const redirect = (journal: Journal, run: string): Promise<boolean> =>
  journal.signal(run, { id: 'new goal', type: 'REDIRECT', payload: { goal: 'another' } });

/** Another process goes on until the run has ended, or asks somebody. */
async function goesOn({ id, journal, clock }: Died, planner: PlannerFunction, tools: readonly Tool[]): Promise<Run> {
  const { runtime } = world({ planner, tools, journal, clock });
  open.push(runtime);
  runtime.work();
  await advanceUntil(clock, async () => {
    const { status, lease } = (await journal.get(id)) ?? {};
    if (status === 'finished') return true;
    return status === 'paused' && lease === undefined && (await journal.inbox(id)).length === 0;
  });
  return runtime.run(id);
}

async function kindsAt(run: Run, step: number): Promise<readonly string[]> {
  return (await run.state()).steps[step]?.calls.map(({ outcome }) => outcome.kind) ?? [];
}

describe('a new goal after a process died in the middle of a keyed call of a plan', () => {
  it('is planned for when the call has been made to its end, under its key; a node that had not begun is not made', async () => {
    const { paid, tools } = provider();
    const planner = planned(plan([pay('ana'), pay('ben', { after: ['ana'] })]), plan([pay('ana', { reuse: true })]));
    const at = await died(planner, tools(1), () => paid.length === 1);
    await redirect(at.journal, at.id);
    const run = await goesOn(at, planner, tools(1));
    expect(paid).toEqual([
      ['ana', '0.0'],
      ['ana', '0.0'],
    ]);
    expect(await kindsAt(run, 0)).toEqual(['value', 'skipped']);
    expect((await run.state()).steps[1]?.calls[0]).toMatchObject({ attempts: 0, reuses: { step: 0, call: 0 } });
  });

  it('that was taken before it died gives up nothing that may have happened either', async () => {
    const { paid, tools } = provider();
    const planner = planned(plan([pay('ana'), look('a', { after: ['ana'] })]));
    let isSent: Promise<unknown> | undefined;
    const at = await died(planner, tools(1), async (journal) => {
      const [{ identity } = {}] = await journal.list({});
      if (identity === undefined || paid.length === 0) return false;
      isSent ??= redirect(journal, identity.run);
      return (await journal.inbox(identity.run)).length === 0 || identity.run;
    });
    await isSent;
    const run = await goesOn(at, planner, tools(1));
    expect(paid.map(([, key]) => key)).toEqual(['0.0', '0.0']);
    expect(await kindsAt(run, 0)).toEqual(['value', 'skipped']);
  });

  it('makes none of those that waited for room at their tool', async () => {
    const { paid, tools } = provider();
    const planner = planned(plan(['ana', 'ben', 'cem'].map((to) => pay(to))));
    const at = await died(planner, tools(1, { concurrency: 1 }), () => paid.length === 1);
    await redirect(at.journal, at.id);
    const run = await goesOn(at, planner, tools(1, { concurrency: 1 }));
    expect(paid.map(([to]) => to)).toEqual(['ana', 'ana']);
    expect(await kindsAt(run, 0)).toEqual(['value', 'skipped', 'skipped']);
  });

  it('is nothing to a flow, whose node has one key all the same', async () => {
    const paid: string[] = [];
    const first = node('pay', {
      effect: 'keyed',
      execute: (to: string, { idempotencyKey }) => {
        paid.push(idempotencyKey.split('/').at(-1) ?? '');
        return paid.length === 1 ? new Promise<string>(() => {}) : to;
      },
    });
    const last = node('end', { effect: 'pure', execute: (to: string) => `${to} is paid` });
    const line = flow({ name: 'line', inputSchema: z.string(), entry: first, exit: last, edges: [edge(first, last)] });
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const dying = cutJournal(journal);
    const here = (store: Journal): Runtime => createRuntime({ agents: [line], journal: store, clock });
    const { id } = await line.start(here(dying.journal), 'ana', { identity: local('ana') });
    await until(() => paid.length === 1);
    await quiet();
    dying.cut();
    clock.advance(5_001);
    await redirect(journal, id);
    const runtime = here(journal);
    open.push(runtime);
    const run = runtime.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'ana is paid' });
    expect(paid).toEqual(['0.0', '0.0']);
  });
});

describe('a plan that somebody holds', () => {
  it('has nothing in doubt that had not begun: a new goal skips it, also in another process', async () => {
    const { paid, tools } = provider();
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const go = Promise.withResolvers<void>();
    const all = [...tools(0), make('wait', () => go.promise.then(() => null))];
    const planner = planned(plan([{ id: 'w', tool: 'wait', args: {} }, pay('ana', { after: ['w'] })]));
    const first = world({ planner, tools: all, journal, clock });
    const held = await start(first);
    await until(async () => (await held.state()).open !== null);
    await held.steer('PAUSE');
    await until(async () => (await held.state()).pauses.length > 0);
    go.resolve();
    await held.result();
    await first.runtime.close();
    await redirect(journal, held.id);
    await journal.signal(held.id, { id: 'on', type: 'RESUME' });
    const run = await goesOn({ id: held.id, journal, clock }, planner, all);
    expect(paid).toEqual([]);
    expect(await kindsAt(run, 0)).toEqual(['value', 'skipped']);
  });

  it('is not edited where a call may have been made by a process that died', async () => {
    const { paid, tools } = provider();
    const planner = planned(plan([pay('ana'), pay('ben', { after: ['ana'] })]));
    const at = await died(planner, tools(1), () => paid.length === 1);
    await at.journal.signal(at.id, { id: 'hold', type: 'PAUSE' });
    const run = await goesOn(at, planner, tools(1));
    const edited = (nodes: object): Promise<unknown> => run.resume({ nodes: nodes as never });
    await expect(edited({ ana: { args: { to: 'cem' } } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(edited({ ana: { skip: true } })).rejects.toMatchObject({
      message: expect.stringMatching(/has begun/),
    });
    await edited({ ben: { args: { to: 'cem' } } });
    await run.result();
    expect(paid).toEqual([
      ['ana', '0.0'],
      ['ana', '0.0'],
      ['cem', '0.1'],
    ]);
  });
});

describe('a keyed call that is not needed any more when its process has died', () => {
  const ways: [string, readonly Branch[], Partial<CallParallel>][] = [
    ['a join has what it needed', [pay('ana'), look('b')], { join: { kind: 'first_success' } }],
    ['a plan has come to its end', [pay('ana'), { id: 'end', tool: '_finish', args: 1 }], {}],
    ['another branch has failed', [pay('ana'), { id: 'x', tool: 'nobody', args: {} }], { failFast: true }],
  ];

  it.each(ways)('leaves its key to the plans behind it: %s', async (_, branches, more) => {
    const { paid, tools } = provider();
    const again = plan([pay('ana', { reuse: true }), ...branches.slice(1)], more);
    const planner = planned(plan(branches, more), again, plan([pay('ana', { reuse: true })]));
    const isSoFar = async (journal: Journal): Promise<boolean> => {
      const [{ identity } = {}] = await journal.list({});
      const entries = identity === undefined ? [] : await journal.read(identity.run);
      return paid.length > 0 && entries.some(({ kind }) => kind === 'call_ended');
    };
    const first = await died(planner, tools(1), isSoFar);
    const run = await goesOn(first, planner, tools(1));
    expect(new Set(paid.map(([, key]) => key))).toEqual(new Set(['0.0']));
    expect(await kindsAt(run, 0)).toEqual(['cancelled', expect.any(String)]);
    expect((await run.state()).steps[2]?.calls[0]).toMatchObject({ outcome: { kind: 'value' } });
  });
});

it('that a keyed call begins is written where it may be given up, and nowhere else', async () => {
  const { tools } = provider();
  const both = [pay('ana'), pay('ben')];
  const decisions: readonly Decision[] = [
    plan(both),
    { kind: 'call_parallel', branches: both },
    { kind: 'call_tool', tool: 'pay', args: { to: 'ana' } },
    plan([look('a')]),
  ];
  const made = world({ planner: planned(...decisions), tools: tools(0) });
  open.push(made.runtime);
  const run = await start(made);
  await run.result();
  const began = await entriesOf(made.journal, run, 'call_began');
  expect(began.map(({ step, call, repeatable }) => [step, call, repeatable])).toEqual([
    [0, 0, true],
    [0, 1, true],
  ]);
  expect((await kindsOf(made.journal, run)).at(-1)).toBe('finished');
});
