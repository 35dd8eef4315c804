/** A person at a plan that is under way: it is held between two nodes, changed, taken up again, or given up. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Branch, Decision, RunView } from '#core';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { cutJournal } from '../kit/journals.ts';
import { ANY } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const ran: { id: string; args: unknown }[] = [];
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  ran.length = 0;
  for (const runtime of open.splice(0)) await runtime.close();
});

const node = (id: string, more: Partial<Branch> = {}): Branch => ({ id, tool: 'work', args: { id }, ...more });
/** a, then b and c, then d of both. */
const DIAMOND: readonly Branch[] = [
  node('a'),
  node('b', { after: ['a'] }),
  node('c', { after: ['a'] }),
  node('d', { args: { id: 'd', of: { $from: 'b', path: '/id' } }, after: ['c'] }),
];

interface Scene {
  readonly here: World;
  readonly run: Run;
  /** Opens the gate of the first node. */
  go(): void;
  readonly started: Promise<void>;
  readonly views: RunView[];
}

/** The run waits inside node `a` until the test lets it go. */
async function inTheMiddle(branches: readonly Branch[] = DIAMOND): Promise<Scene> {
  const gate = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const views: RunView[] = [];
  const work: Tool = {
    name: 'work',
    description: 'd',
    effect: 'read',
    inputSchema: { type: 'object', properties: { id: { type: 'string' }, n: { type: 'number' } } },
    execute: async (args) => {
      const { id } = args as { id: string };
      if (id === 'a') {
        started.resolve();
        await gate.promise;
      }
      ran.push({ id, args });
      return { id };
    },
  };
  const here = world({
    planner: (view): Decision => {
      views.push(view);
      if (view.trajectory.count === 0) {
        return { kind: 'call_parallel', plan: 'p', branches, onInvalid: 'per_branch' };
      }
      return { kind: 'finish', reason: 'goal', payload: view.goal };
    },
    tools: [work],
  });
  open.push(here.runtime);
  const run = await start(here);
  await started.promise;
  return { here, run, go: gate.resolve, started: started.promise, views };
}

/** Until the driver has taken what was said. */
async function taken({ here, run }: Scene, type: string): Promise<void> {
  for (;;) {
    const entries = await here.journal.read(run.id);
    if (entries.some((entry) => entry.kind === 'control' && entry.control.type === type)) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function paused(branches?: readonly Branch[]): Promise<Scene> {
  const scene = await inTheMiddle(branches);
  await scene.run.steer('PAUSE');
  await taken(scene, 'PAUSE');
  scene.go();
  expect(await scene.run.result()).toMatchObject({ status: 'paused' });
  return scene;
}

describe('PAUSE in the middle of a plan', () => {
  it('AG-06 lets the running node end and starts no other; RESUME goes on with the same plan', async () => {
    const { run, views } = await paused();
    expect(ran.map(({ id }) => id)).toEqual(['a']);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(ran.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
    expect(views).toHaveLength(2);
  });
});

describe('a plan that is paused', () => {
  it('goes on with the arguments that somebody gave to a waiting node', async () => {
    const { run, here } = await paused();
    await run.resume({ nodes: { b: { args: { id: 'b', n: 7 } }, d: { args: { id: { $from: 'b', path: '/id' } } } } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(ran.find(({ id, args }) => id === 'b' && 'n' in (args as object))?.args).toEqual({ id: 'b', n: 7 });
    expect(ran.at(-1)?.args).toEqual({ id: 'b' });
    const resumed = (await here.journal.read(run.id)).find((entry) => entry.kind === 'resumed');
    expect(resumed).toMatchObject({ nodes: { b: { args: { n: 7 } } } });
  });

  it('goes on without a node that somebody took out, and without what needs it', async () => {
    const { run, views } = await paused();
    await run.resume({ nodes: { c: { skip: true } } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(ran.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(views[1]?.trajectory.step(0)?.calls.map(({ outcome }) => outcome.kind)).toEqual([
      'value',
      'value',
      'skipped',
      'skipped',
    ]);
    const told: unknown[] = [];
    for await (const event of run.events()) if (event.type === 'tool.skipped') told.push([event.call, event.outcome]);
    expect(told).toEqual([
      [2, { kind: 'skipped', error: { code: 'node_removed', message: 'Somebody took it out of the plan.' } }],
      [3, expect.objectContaining({ kind: 'skipped' })],
    ]);
  });

  it.each([
    ['a node that it does not have', { x: { skip: true } }, /no node "x"/],
    ['a node that has ended', { a: { args: { id: 'z' } } }, /"a" has begun, or has ended/],
    ['arguments that do not fit', { b: { args: { id: 'b', n: 'seven' } } }, /"b" do not fit/],
    ['a reference to what does not come before', { b: { args: { id: { $from: 'c' } } } }, /"b" would refer to "c"/],
    ['an edit that is none', { b: {} }, /neither \{ args \} nor \{ skip: true \}/],
  ])('is not changed, and stays paused: %s', async (_, nodes, message) => {
    const { run, here } = await paused();
    await expect(run.resume({ nodes: nodes as never })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringMatching(message),
    });
    expect(await here.journal.get(run.id)).toMatchObject({ status: 'paused' });
    expect(ran.map(({ id }) => id)).toEqual(['a']);
  });
});

it('what a node was given in place of its plan is what is asked about when nobody knows whether it has happened', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const dying = cutJournal(journal);
  const [held, entered] = [gate(), gate()];
  const tools: Tool[] = [
    { name: 'work', description: 'd', effect: 'read', inputSchema: ANY, execute: () => held.opened.then(() => null) },
    {
      name: 'pay',
      description: 'd',
      effect: 'once',
      inputSchema: ANY,
      execute: () => {
        entered.open();
        return new Promise(() => {});
      },
    },
  ];
  const branches = [node('a'), node('b', { tool: 'pay', args: { amount: 100 }, after: ['a'] })];
  const planner = (): Decision => ({ kind: 'call_parallel', plan: 'p', branches, onInvalid: 'per_branch' });
  const first = world({ planner, tools, journal: dying.journal, clock });
  const run = await start(first, { limits: { deadlineAt: clock.now() + 30_000 } });
  await until(async () => (await journal.read(run.id)).some(({ kind }) => kind === 'moved'));
  await run.steer('PAUSE');
  await until(async () => (await journal.read(run.id)).some(({ kind }) => kind === 'control'));
  held.open();
  await run.result();
  await run.resume({ nodes: { b: { args: { amount: 40 } } } });
  await entered.opened;
  dying.cut();
  clock.advance(60_000);
  const { runtime } = world({ planner, tools, journal, clock });
  open.push(runtime);
  await runtime.run(run.id).resume();
  await until(async () => (await runtime.run(run.id).state()).pauses.length > 0);
  expect((await runtime.run(run.id).state()).pauses).toMatchObject([
    { reason: 'in_doubt', payload: { tool: 'pay', args: { amount: 40 } } },
  ]);
});

it('whoever resumes a run whose plan has come to its end meanwhile is told that nothing can be changed of it', async () => {
  const { run } = await paused([node('a')]);
  await expect(run.resume({ nodes: { a: { skip: true } } })).rejects.toMatchObject({
    code: 'payload_invalid',
    message: expect.stringMatching(/no plan that is under way/),
  });
  expect(await run.result()).toMatchObject({ status: 'paused' });
  await run.resume();
  expect(await run.result()).toMatchObject({ status: 'finished' });
});

describe('REDIRECT in the middle of a plan', () => {
  it('AG-06 lets the running node end, leaves out the others, and asks the planner with the new goal', async () => {
    const scene = await inTheMiddle();
    await scene.run.steer('REDIRECT', { goal: 'another goal' });
    await taken(scene, 'REDIRECT');
    scene.go();
    expect(await scene.run.result()).toMatchObject({ status: 'finished', answer: 'another goal' });
    expect(ran.map(({ id }) => id)).toEqual(['a']);
    const outcomes = scene.views[1]?.trajectory.step(0)?.calls.map(({ outcome }) => outcome);
    expect(outcomes?.map(({ kind }) => kind)).toEqual(['value', 'skipped', 'skipped', 'skipped']);
    expect(outcomes?.[1]).toMatchObject({ error: { code: 'plan_redirected' } });
    expect(scene.views[1]?.controls.map(({ type }) => type)).toEqual(['REDIRECT']);
  });
});

describe('a message in the middle of a plan', () => {
  it('waits for the end of the plan, and interrupts nothing', async () => {
    const scene = await inTheMiddle();
    const sent = scene.run.steer('USER_MESSAGE', { message: 'hello' });
    scene.go();
    await sent;
    expect(await scene.run.result()).toMatchObject({ status: 'finished' });
    expect(ran.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
    expect(scene.views[1]?.controls.map(({ type }) => type)).toEqual(['USER_MESSAGE']);
  });
});

describe('answers to a plan that is paused', () => {
  it('take a node out once, also when two of them are read together', async () => {
    const { here, run } = await paused();
    const nodes = { b: { skip: true } };
    const { runtime, journal } = here;
    await runtime.close();
    for (const [id, type, payload] of [
      ['one', 'RESUME', { nodes }],
      ['two', 'PAUSE', undefined],
      ['three', 'RESUME', { nodes }],
      ['four', 'RESUME', undefined],
    ] as const) {
      await journal.signal(run.id, { id, type, ...(payload === undefined ? {} : { payload }) });
    }
    const next = world({
      planner: () => ({ kind: 'finish', reason: 'goal' }),
      tools: [{ name: 'work', description: 'd', effect: 'read', inputSchema: { type: 'object' }, execute: () => null }],
      journal,
      clock: here.clock,
    });
    open.push(next.runtime);
    await next.runtime.run(run.id).resume({ acceptChanges: true });
    expect(await next.runtime.run(run.id).result()).toMatchObject({ status: 'finished' });
    const { steps } = await next.runtime.run(run.id).state();
    expect(steps[0]?.calls.map(({ outcome }) => outcome.kind)).toEqual(['value', 'skipped', 'value', 'skipped']);
  });
});
