/** Nodes of flows wait as tools do: for a value that comes later, and no longer than they are told; what a document says of them is the same. */
import { describe, expect, it } from 'vitest';
import type { RunView } from '#core';
import { edge, type Flow, flow, join, map, node } from '#flow';
import { flowFrom } from '#flow/document';
import { memoryJournal } from '#journal';
import { agent, agentTool, type Json, local, type Run } from '#pilotage';
import { askUser, later, sleep, waitForEvent } from '#pilotage/tools';
import { make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { type World, world } from '../kit/world.ts';

const anything = {};

/** What the flow gives, with the clock going on until it does. */
async function outputOf({ runtime, journal, clock }: World, of: Flow, input: unknown): Promise<Json | undefined> {
  const run: Run = await of.start(runtime, input as never, { identity: local('ana') });
  await advanceUntil(clock, async () => {
    const { status } = (await journal.get(run.id)) ?? {};
    return status === 'finished' || status === 'failed';
  });
  return run.payload();
}

describe('a value that comes later', () => {
  it('is found by the poll of a node, of an item of a map and of a node of a document', async () => {
    const polls: string[] = [];
    const poll = (key: string, city: string): string | undefined => {
      polls.push(key);
      return polls.filter((asked) => asked === key).length < 3 ? undefined : `${city}.mp4`;
    };
    const render = (city: string) => later({ key: `film of ${city}`, pollEveryMs: 1_000 });
    const one = node('render', { effect: 'keyed', execute: render, poll });
    const each = map('each', { effect: 'keyed', execute: render, poll });
    const document = {
      ...{ name: 'written', inputSchema: anything, entry: 'render', exit: 'render' },
      nodes: { render: { execute: 'render', poll: 'poll', effect: 'keyed' } },
    };
    const flows = [
      flow({ name: 'one', inputSchema: anything, entry: one, exit: one }),
      flow({ name: 'many', inputSchema: anything, entry: each, exit: each }),
      flowFrom(document, { functions: { render, poll } }),
    ];
    const there = world({ agents: flows, journal: memoryJournal() });
    const inputs = ['Oslo', ['Rome', 'Bonn'], 'Kiel'];
    const made = await Promise.all(flows.map((each, index) => outputOf(there, each, inputs[index])));
    expect(made).toEqual(['Oslo.mp4', ['Rome.mp4', 'Bonn.mp4'], 'Kiel.mp4']);
    expect(polls).toHaveLength(12);
  });
});

describe('a node that is silent', () => {
  it('ends at the limit of its policy, in a map and a document too', async () => {
    const silent = (): Promise<never> => new Promise(() => {});
    const options = { effect: 'keyed', execute: silent } as const;
    const one = node('one', { ...options, policy: { firstByteMs: 2_000, idleMs: 9_000 } });
    const each = map('each', { ...options, policy: { idleMs: 3_000 } });
    const document = {
      ...{ name: 'written', inputSchema: anything, entry: 'read', exit: 'read' },
      nodes: { read: { execute: 'silent', effect: 'keyed', idleMs: 4_000 } },
    };
    const flows = [
      flow({ name: 'one', inputSchema: anything, entry: one, exit: one }),
      flow({ name: 'many', inputSchema: anything, entry: each, exit: each }),
      flowFrom(document, { functions: { silent } }),
    ];
    const there = world({ agents: flows, journal: memoryJournal() });
    const errors = flows.map(async (made) => {
      const run: Run = await made.start(there.runtime, [1] as never, { identity: local('ana') });
      await advanceUntil(there.clock, async () => (await there.journal.get(run.id))?.status === 'failed');
      return (await run.result()) as { readonly error: { readonly code: string; readonly message: string } };
    });
    expect(await Promise.all(errors)).toMatchObject([
      { error: { code: 'node_timeout', message: expect.stringContaining('said nothing in its first 2000 ms') } },
      { error: { code: 'node_timeout', message: expect.stringContaining('said nothing for 3000 ms') } },
      { error: { code: 'node_timeout', message: expect.stringContaining('said nothing for 4000 ms') } },
    ]);
  });

  it('refuses a limit that is not a time', () => {
    for (const policy of [{ idleMs: 0 }, { firstByteMs: 1.5 }]) {
      const wrong = node('wrong', { execute: () => 1, policy });
      const made = flow({ name: 'wrong', inputSchema: anything, entry: wrong, exit: wrong });
      expect(() => world({ agents: [made] })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
  });
});

describe('a node of a document with undo', () => {
  it('is undone when the run fails', async () => {
    const undone: unknown[] = [];
    const functions = {
      book: (city: string) => `room in ${city}`,
      cancel: (city: string, room: string) => undone.push([city, room]),
      fail: () => {
        throw new Error('no');
      },
    };
    const document = {
      ...{ name: 'trip', inputSchema: anything, entry: 'book', exit: 'fly', edges: [['book', 'fly']] },
      nodes: { book: { execute: 'book', effect: 'keyed', undo: 'cancel' }, fly: { execute: 'fail', effect: 'pure' } },
    };
    const trip = flowFrom(document, { functions });
    const { runtime } = world({ agents: [trip], journal: memoryJournal(), onFail: 'undo' });
    const run: Run = await trip.start(runtime, 'Oslo', { identity: local('ana') });
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { data: { undo: { undone: [{ tool: 'book' }] } } },
    });
    expect(undone).toEqual([['Oslo', 'room in Oslo']]);
  });
});

describe('a tool as a node', () => {
  it('asks, sleeps, waits for an event and polls, under the name of the node', async () => {
    const question = node('question', { effect: 'pure', execute: () => ({ question: 'Which city?' }) });
    const city = node('city', askUser);
    const rest = node('rest', { effect: 'pure', execute: () => ({ seconds: 60 }) });
    const nap = node('nap', sleep);
    const key = node('key', { effect: 'pure', execute: () => ({ key: 'order-17' }) });
    const paid = node('paid', waitForEvent);
    let polls = 0;
    const render = node('render', {
      ...make('film', () => later({ key: 'film', pollEveryMs: 1_000 }), {
        effect: 'once',
        poll: () => (++polls < 3 ? undefined : 'film.mp4'),
      }),
      allowCycle: false,
    });
    const all = join('all', { of: [city, nap, paid, render], effect: 'pure', execute: (values) => values });
    const start = node('start', { effect: 'pure', execute: () => ({}) });
    const trip = flow({
      ...{ name: 'trip', inputSchema: anything, entry: start, exit: all },
      edges: [
        ...[question, rest, key, render].map((to) => edge(start, to as typeof render)),
        ...[edge(question, city), edge(rest, nap), edge(key, paid)],
      ],
    });
    const there = world({ agents: [trip], journal: memoryJournal() });
    const run: Run = await trip.start(there.runtime, {} as never, { identity: local('ana') });
    await until(async () => (await run.state()).pauses.length > 0);
    await run.answer(undefined, { kind: 'answer', value: 'Oslo' });
    await there.runtime.signal('order-17', 90);
    await advanceUntil(there.clock, async () => (await there.journal.get(run.id))?.status === 'finished');
    expect(await run.payload()).toEqual({ city: 'Oslo', nap: { woke: true }, paid: 90, render: 'film.mp4' });
  });

  it('is carried out by an agent, when it is the tool of one', async () => {
    const writer = agent({
      name: 'writer',
      planner: (view: RunView) => ({ kind: 'finish', reason: 'goal', payload: `About ${view.query}.` }),
    });
    const write = node('write', agentTool(writer, { description: 'Writes.', effect: 'pure' }));
    const made = flow({ name: 'made', inputSchema: anything, entry: write, exit: write });
    const { runtime } = world({ agents: [made], journal: memoryJournal() });
    expect(await made.run(runtime, { input: 'fjords' } as never, { identity: local('ana') })).toBe('About fjords.');
  });

  it('is refused when it has what a node cannot have', () => {
    const undo = () => ({ tool: 'cancel', args: {} });
    expect(() =>
      node(
        'book',
        make('book', () => 1, { undo }),
      ),
    ).toThrow(
      expect.objectContaining({
        code: 'invalid_config',
        message: expect.stringContaining('made from a tool with undo'),
      }),
    );
  });
});
