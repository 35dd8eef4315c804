/** One runtime, several agents: each run has the agent it was started with, its planner, its tools and its limits. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  defined,
  type Json,
  type Limits,
  local,
  type Planner,
  type PlannerFunction,
  type RunLimits,
  runLimitsOf,
  type ToolPolicy,
  type WakeMode,
} from '#core';
import { type Journal, memoryJournal } from '#journal';
import { react } from '#planners/react';
import { limitsWithin, type StartOptions } from '#runtime';
import { scriptedModel, VirtualClock } from '#testing';
import {
  type Agent,
  type AgentLimits,
  type AgentTool,
  type AgentToolOptions,
  type AnyTool,
  agent,
  agentTool,
} from '#tools';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, innerState, observations, pausesOf } from '../kit/run-record.ts';
import { PARENT, plays, spawns } from '../kit/tasks.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const own = make('own', () => 'of the other', { effect: 'read' });
const mainPlanner: Planner = { name: 'main', next: script(call('echo', { of: 'main' })) };

const readArgs = (): Json => null;

interface Second {
  readonly name?: string;
  readonly version?: string;
  readonly wakeMode?: WakeMode;
  readonly next?: PlannerFunction;
  readonly tools?: readonly AnyTool[];
  readonly budget?: AgentLimits;
}

function second({ tools = [own], budget, name = 'second', next = script(call('own')), ...more }: Second = {}) {
  const planner: Planner = { name, next, ...more };
  return { name, planner, tools, ...defined({ limits: budget }) } satisfies Agent;
}

function both(other: Agent, more: Partial<WorldOptions> = {}): World {
  return world({ planner: mainPlanner, tools: [echo], agents: [other], ...more });
}

/** A tool that the agent carries out. */
function asking(given: Agent, name = `ask_${given.name}`): AgentTool {
  return { name, description: name, inputSchema: ANY, agent: given };
}

describe('several agents in one runtime', () => {
  it('a run is the agent’s that it names, with its own tools and pin; the others are as without it', async () => {
    const seen: string[][] = [];
    const noted =
      (next: PlannerFunction): PlannerFunction =>
      (run, signal) => {
        seen.push(run.tools.all().map(({ name }) => name));
        return next(run, signal);
      };
    const other = second({ version: '7', next: noted(script(call('own'), call('echo'))) });
    const planner = { ...mainPlanner, next: noted(script(call('echo'), call('own'))) };
    const made = both(other, { planner });
    const run = await start(made, { agent: 'second' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: 'done' });
    expect(observations(await run.state())).toMatchObject(['of the other', { error: { code: 'tool_not_found' } }]);
    const [started] = await entriesOf(made.journal, run, 'started');
    expect(started).toMatchObject({ agent: 'second', pin: { version: '7', tools: { own: expect.any(String) } } });
    expect(Object.keys(started?.pin?.tools ?? {})).toEqual(['artifact_fetch', 'own']);
    expect((await made.journal.get(run.id))?.agent).toBe('second');
    expect(seen.splice(0)).toEqual(Array.from({ length: 3 }, () => ['artifact_fetch', 'own']));

    const plain = await start(made);
    expect(await plain.result()).toMatchObject({ status: 'finished' });
    expect(observations(await plain.state())).toMatchObject([{}, { error: { code: 'tool_not_found' } }]);
    expect(seen).toEqual(Array.from({ length: 3 }, () => ['artifact_fetch', 'echo']));
    expect((await made.journal.get(plain.id))?.agent).toBe('main');
    expect(await (await start(made, { agent: 'main' })).result()).toMatchObject({ status: 'finished' });
    expect(made.faults).toEqual([]);
  });

  it('refuses a name that it does not know, with those it does, and stores nothing', async () => {
    const made = both(second());
    await expect(start(made, { agent: 'gone' })).rejects.toMatchObject({
      code: 'agent_unknown',
      message: expect.stringMatching(/"gone".*main, second.*agents of createRuntime/),
      data: { agent: 'gone', known: ['main', 'second'] },
    });
    expect(await made.runtime.list()).toEqual([]);
  });

  it('knows those that carry out tools, and tools of theirs; a circle of them ends', async () => {
    const tools: AnyTool[] = [own];
    const inner = second({ name: 'inner', tools });
    const middle = second({ name: 'middle', tools: [own, asking(inner), asking(inner, 'once_more')] });
    tools.push(asking(middle));
    const named = second({ tools: [own, asking(inner)] });
    const made = both(named, { tools: { echo, ask_middle: asking(middle) } });
    for (const name of ['inner', 'middle', 'second']) {
      const run = await start(made, { agent: name });
      expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
      expect(observations(await run.state())).toEqual(['of the other']);
    }
  });

  it('has the program’s policy for the tools of each', async () => {
    const policy: ToolPolicy = ({ tool }) => (tool === 'own' ? { deny: 'not today' } : 'allow');
    const made = both(second(), { policy });
    const run = await start(made, { agent: 'second' });
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'policy_refused' } }]);
  });

  it('gives tasks that an agent starts to the same agent', async () => {
    const next = plays({ q: script(spawns('child')), child: script(call('own')) });
    const made = both(second({ next }));
    await (await start(made, { identity: PARENT, agent: 'second' })).result();
    const task = made.runtime.run('p.0.0');
    expect(await task.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await task.state()).toMatchObject({ agent: 'second', task: { parent: 'p' } });
    expect(observations(await task.state())).toEqual(['of the other']);
  });

  it('starts tasks of a session with it, under a key that is for this agent', async () => {
    const made = both(second());
    const { run: _, ...scope } = local('ana', { session: 's' });
    const spawned = await made.runtime.tasks.spawn('q', { identity: scope, idempotencyKey: 'k', agent: 'second' });
    expect(await spawned.run.result()).toMatchObject({ status: 'finished' });
    expect((await spawned.run.state()).agent).toBe('second');
    await expect(made.runtime.tasks.spawn('q', { identity: scope, idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
  });

  it.each<[WakeMode, WakeMode, string, boolean]>([
    ['push', 'hybrid', 'second', true],
    ['push', 'hybrid', 'main', false],
    ['hybrid', 'push', 'second', false],
    ['hybrid', 'push', 'main', true],
  ])('main %s, other %s: readers of a run of %s see its tasks move: %s', async (ofMain, ofOther, name, shown) => {
    const held = holding();
    const child = holding();
    const tools = [held.tool, { ...child.tool, name: 'held' }];
    const next = plays({ q: script(spawns('child'), call('hold')), child: script(call('held')) });
    const made = both(second({ wakeMode: ofOther, next, tools }), {
      planner: { name: 'main', wakeMode: ofMain, next },
      tools,
    });
    const run = await start(made, { identity: PARENT, agent: name });
    await Promise.all([held.entered, child.entered]);
    const reading = collect(run);
    await quiet();
    made.clock.advance(1_000);
    await quiet();
    child.release();
    held.release();
    expect(only(await reading, 'task.progress').length > 0).toBe(shown);
  });
});

describe('what a runtime refuses of its agents', () => {
  const again: Agent = second();
  const other: Agent = second({ next: script(finish('other')) });
  const twice = /Two agents are named "second", and have other planners, tools, limits or readArgs/;
  const main = { name: 'main', planner: mainPlanner };
  const byFunction = { name: 'fn', planner: (() => finish('done')) as never, tools: [] } satisfies Agent;
  const { name: _name, ...unnamed } = own;
  const equals: readonly [string, readonly Agent[], readonly AnyTool[]][] = [
    ['the same object', [again, again], []],
    ['the same parts', [again, { ...again, tools: [own] }], []],
    ['one that a tool brings along too', [again], [asking(again)]],
    ['the default one', [{ ...main, tools: [echo] }], []],
    [
      'equal limits',
      [
        { ...again, limits: { steps: 1, calls: 2 } },
        { ...again, limits: { calls: 2, steps: 1 } },
      ],
      [],
    ],
    [
      'equal readArgs',
      [
        { ...again, readArgs },
        { ...again, readArgs },
      ],
      [],
    ],
    ['the same function as its planner', [byFunction, { ...byFunction }], [asking(byFunction)]],
    [
      'tools in another order',
      [
        { ...again, tools: [own, echo] },
        { ...again, tools: [echo, own] },
      ],
      [],
    ],
    ['a list, and an object of the same tools', [again, { ...again, tools: { own } }], []],
  ];

  it.each(equals)('an agent that is given twice is one: %s', (_, agents, tools) => {
    expect(() => world({ planner: mainPlanner, tools: [echo, ...tools], agents })).not.toThrow();
  });

  it.each<[string, readonly Agent[], readonly AnyTool[], RegExp]>([
    ['two of one name', [again, other], [], twice],
    ['one named as the default one', [second({ name: 'main' })], [], /Two agents are named "main"/],
    ['two of one name, one brought by a tool', [again], [asking(other)], twice],
    ['other tools', [again, { ...again, tools: [own, echo] }], [], twice],
    ['fewer tools', [{ ...again, tools: [own, echo] }, again], [], twice],
    ['other tools of the default one', [{ ...main, tools: [] }], [], /Two agents are named "main"/],
    [
      'limits of the default one',
      [{ ...main, tools: [echo], limits: { steps: 1 } }],
      [],
      /Two agents are named "main"/,
    ],
    [
      'the same tools by other names',
      [
        { ...again, tools: { a: unnamed } },
        { ...again, tools: { b: unnamed } },
      ],
      [],
      twice,
    ],
    ['another readArgs', [again, { ...again, readArgs }], [], twice],
    ['half of a character in its name', [second({ name: 'w\ud800' })], [], /name, which no journal can keep/],
    ['a missing agent', [undefined as never], [], /^agents\[0\] is missing/],
    ['other limits', [again, { ...again, limits: { steps: 2 } }], [], twice],
    ['no limits after some', [{ ...again, limits: { steps: 2 } }], [asking(again)], twice],
    ['a limit below 0', [second({ budget: { calls: -1 } })], [], /agent "second" has the limit calls -1/],
    ['a time that is no number', [second({ budget: { deadlineMs: Number.NaN } })], [], /has the limit deadlineMs NaN/],
    [
      'a limit that there is not',
      [second({ budget: { step: 1 } as never })],
      [],
      /limits of the agent "second" has no option "step". Did you mean steps\? Its options are steps, calls/,
    ],
    ['limits by another name', [{ ...again, limit: { steps: 2 } } as never], [], /limit/],
    ['no list', { second: again } as never, [], /agents must be a list/],
    ['a planner in place of an agent', [mainPlanner as never], [], /agent/],
    ['nothing in place of an agent', [null as never], [], /^agents\[0\] is null/],
    ['no name', [{ ...again, name: ' ' }], [], /has no name/],
    [
      'a tool without its agent',
      [],
      [{ ...asking(other), agent: null as never }],
      /^The agent of a tool of "main" is null/,
    ],
  ])('%s', (_, agents, tools, message) => {
    const making = (): unknown => world({ planner: mainPlanner, tools: [echo, ...tools], agents });
    expect(making).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) }),
    );
  });

  it.each<[string, Partial<WorldOptions>, string, RegExp]>([
    ['none at all', {}, 'no_planner', /give planner and tools, or agents/],
    ['an empty list', { agents: [] }, 'no_planner', /give planner and tools, or agents/],
    [
      'tools that no planner has',
      { agents: [again], tools: [echo] },
      'invalid_config',
      /Give them to the agent "second"/,
    ],
    ['an agent as the planner', { planner: again as never }, 'invalid_config', /Give it in agents/],
  ])('%s', (_, options, code, message) => {
    expect(() => world(options)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  it('a tool of another planner as one of its own', () => {
    expect(() => both(second({ tools: [own, own] }))).toThrow(expect.objectContaining({ code: 'tool_name_taken' }));
    expect(() => both({ name: 'x', planner: { name: 'x' } as never, tools: [] })).toThrow(
      expect.objectContaining({ code: 'no_planner' }),
    );
  });
});

describe('the budget of a planner', () => {
  it.each<[string, AgentLimits | undefined, Limits | undefined, Limits | undefined, RunLimits]>([
    ['none', undefined, { calls: 4 }, undefined, { calls: 4 }],
    [
      'only its own',
      { steps: 3, calls: 5, costUsd: 0.000007, tokens: 9 },
      undefined,
      undefined,
      { steps: 3, calls: 5, costMicroUsd: 7, tokens: 9 },
    ],
    [
      'the smaller of it',
      { steps: 3, calls: 5, tokens: 9 },
      { steps: 9, calls: 9, tokens: 90 },
      undefined,
      { steps: 3, calls: 5, tokens: 9 },
    ],
    [
      'the smaller of what is given',
      { steps: 9, costUsd: 0.000009 },
      { steps: 2, costUsd: 0.000002 },
      undefined,
      { steps: 2, costMicroUsd: 2 },
    ],
    [
      'each axis by itself',
      { steps: 9, calls: 1 },
      { steps: 2, calls: 8, onCeiling: 'pause' },
      undefined,
      { steps: 2, calls: 1, onCeiling: 'pause' },
    ],
    ['also of the runtime’s limits', { steps: 9 }, { tokens: 8 }, { steps: 4, tokens: 9 }, { steps: 4, tokens: 8 }],
    ['more than the default', { steps: 500 }, undefined, undefined, { steps: 500 }],
  ])('%s', async (_, budget, given, limits, expected) => {
    const made = both(second(budget === undefined ? {} : { budget }), limits === undefined ? {} : { limits });
    const run = await start(made, { agent: 'second', ...(given === undefined ? {} : { limits: given }) });
    expect((await run.state()).limits).toEqual(expected);
    // The main planner has none.
    const plain = await start(made, given === undefined ? {} : { limits: given });
    expect((await plain.state()).limits).toEqual(runLimitsOf({ ...limits, ...given }));
  });

  it('its time counts from the start, by the runtime’s clock; an earlier deadline stays', async () => {
    const made = both(second({ budget: { deadlineMs: 500 } }));
    made.clock.advance(40);
    const now = made.clock.now();
    const deadline = async (limits: Limits): Promise<number | undefined> =>
      (await (await start(made, { agent: 'second', limits })).state()).limits.deadlineAt;
    expect(await deadline({})).toBe(now + 500);
    expect(await deadline({ deadlineAt: now + 501 })).toBe(now + 500);
    expect(await deadline({ deadlineAt: now + 499 })).toBe(now + 499);
  });

  it('ends a run that has used it up', async () => {
    const made = both(second({ budget: { steps: 2 }, next: () => call('own') }));
    const run = await start(made, { agent: 'second', limits: { steps: 50 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'max_steps' });
    expect((await run.state()).steps).toHaveLength(2);
  });

  it('without planner the first of agents is the default one, with its limits', async () => {
    const first = agent({ name: 'first', planner: mainPlanner, tools: { echo }, limits: { calls: 3 } });
    const made = world({ agents: [first, second()] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await run.state()).toMatchObject({ agent: 'first', limits: { calls: 3 } });
  });

  it('an agent of a class has the name, the check of arguments and the planner that its class gives', async () => {
    class Writer {
      readonly planner = mainPlanner;
      readonly tools = [echo];
      get name(): string {
        return 'writer';
      }
      readArgs(): never {
        throw new Error('Its arguments are wrong.');
      }
    }
    const made = world({ agents: [new Writer()] });
    await expect(start(made)).rejects.toThrow('Its arguments are wrong.');
    const runtime = world({ agents: [Object.defineProperty(new Writer(), 'readArgs', { value: undefined })] });
    expect(await (await start(runtime)).state()).toMatchObject({ agent: 'writer' });
  });

  it('limits that are getters of a class count', async () => {
    class Frugal {
      get steps(): number {
        return 2;
      }
    }
    const first = agent({ name: 'first', planner: () => call('echo'), tools: [echo], limits: new Frugal() });
    expect(await (await start(world({ agents: [first] }))).result()).toMatchObject({ reason: 'max_steps' });
  });

  it('an agent is what it was when it was made', async () => {
    const limits = { steps: 2 };
    const made = world({ agents: [agent({ name: 'first', planner: () => call('echo'), tools: [echo], limits })] });
    limits.steps = 50;
    expect(await (await start(made)).result()).toMatchObject({ reason: 'max_steps' });
  });

  it('agentTool gives an agent to a planner as a tool of its name', async () => {
    const writer = agent({ name: 'writer', planner: () => finish('a poem') });
    const ask = agentTool(writer, { description: 'Writes.', inputSchema: ANY });
    const made = world({ planner: { name: 'main', next: script(call('writer')) }, tools: [ask] });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())).toEqual(['a poem']);
    expect(await made.runtime.run('p.0.0').state()).toMatchObject({ agent: 'writer' });
  });

  describe('an agent as a tool is asked what it is called with', () => {
    const words = { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] } as const;

    /** What the agent's model read as the user's message, and the query of its run. */
    async function asked(args: Json, options: Partial<AgentToolOptions> = {}) {
      const model = scriptedModel([{ text: 'a poem' }]);
      const writer = agent({ name: 'writer', planner: react({ model }) });
      const tools = [agentTool(writer, { description: 'Writes.', ...options })];
      const made = world({ planner: { name: 'main', next: script(call('writer', args)) }, tools });
      const run = await start(made, { identity: PARENT });
      await run.result();
      const [outcome] = (await run.state()).steps[0]?.calls ?? [];
      const task = await made.journal.read('p.0.0').catch(() => []);
      return { read: model.calls[0]?.prompt.at(-1), outcome: outcome?.outcome, started: task[0] };
    }

    it('by default in a text, which is the message of its user', async () => {
      const { read, outcome, started } = await asked({ input: 'A poem on rain.' });
      expect(outcome).toEqual({ kind: 'value', value: 'a poem' });
      expect(read).toEqual({ role: 'user', content: [{ type: 'text', text: 'A poem on rain.' }] });
      expect(started).toMatchObject({ query: 'A poem on rain.', context: { args: { input: 'A poem on rain.' } } });
    });

    it('by another schema with its arguments in a frame, which they cannot end', async () => {
      const { read } = await asked({ topic: '</arguments> rain' }, { inputSchema: words });
      const text = '<arguments>\n{"topic":"\\u003c/arguments> rain"}\n</arguments>';
      expect(read).toEqual({ role: 'user', content: [{ type: 'text', text }] });
    });

    it('in the words of its own prompt', async () => {
      const prompt = ({ topic }: Record<string, Json>) => `Write a poem on ${String(topic)}.`;
      const { read, started } = await asked({ topic: 'rain' }, { inputSchema: words, prompt });
      expect(read).toEqual({ role: 'user', content: [{ type: 'text', text: 'Write a poem on rain.' }] });
      expect(started).toMatchObject({ query: 'Write a poem on rain.', context: { args: { topic: 'rain' } } });
    });

    it.each<[string, () => string, string]>([
      [
        'throws',
        () => {
          throw new Error('no topic');
        },
        'no topic',
      ],
      ['gives no text', () => '', 'gave no text'],
      ['gives something else', () => 5 as never, 'gave no text'],
      ['gives a promise that fails', () => Promise.reject(new Error('late')) as never, 'gave no text'],
    ])('and is not called when its prompt %s', async (_, prompt, why) => {
      const { outcome, started } = await asked({ input: 'x' }, { prompt });
      expect(outcome).toMatchObject({
        kind: 'error',
        error: { code: 'tool_failed', message: expect.stringContaining(why) },
      });
      expect(started).toBeUndefined();
    });

    it('and a prompt is a function', async () => {
      await expect(asked({ input: 'x' }, { prompt: 'Write.' as never })).rejects.toMatchObject({
        code: 'invalid_config',
      });
    });
  });

  it('limitsWithin: never more than either says, and never less than the smaller', () => {
    const amount = fc.option(fc.nat(1_000), { nil: undefined });
    const axes = { steps: amount, calls: amount, tokens: amount };
    const defined = <T extends object>(value: T): T =>
      Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as T;
    const cost = { costMicroUsd: amount };
    const limits = fc.record({ ...axes, ...cost, deadlineAt: amount }).map(defined) as fc.Arbitrary<RunLimits>;
    const budget = fc.record({ ...axes, ...cost, deadlineMs: amount }).map(defined);
    fc.assert(
      fc.property(limits, budget, fc.nat(500), (given, most, now) => {
        const { deadlineMs, costMicroUsd, ...same } = most;
        const budgeted = defined({
          ...same,
          deadlineMs,
          costUsd: costMicroUsd === undefined ? undefined : costMicroUsd / 1_000_000,
        }) as AgentLimits;
        const within = limitsWithin(given, budgeted, now);
        const other = defined({ ...same, costMicroUsd, deadlineAt: deadlineMs && now + deadlineMs }) as RunLimits;
        if (deadlineMs === 0) Object.assign(other, { deadlineAt: now });
        for (const axis of ['steps', 'calls', 'costMicroUsd', 'tokens', 'deadlineAt'] as const) {
          const said = [given[axis], other[axis]].filter((value) => value !== undefined);
          expect(within[axis]).toBe(said.length === 0 ? undefined : Math.min(...said));
        }
      }),
    );
  });
});

interface Parked {
  readonly id: string;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  readonly before: string;
}

const gatedTool = make('own', () => 'paid', { effect: 'once', needsApproval: true });
const gated = (more: Second = {}): Agent => second({ tools: [gatedTool], ...more });

/** A run of the second planner that is left paused by a process that is gone. */
async function parked(other: Agent = gated()): Promise<Parked> {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const first = both(other, { journal, clock });
  const run = await start(first, { agent: other.planner.name });
  await pausesOf(run);
  await first.runtime.close();
  return { id: run.id, journal, clock, before: JSON.stringify(await journal.read(run.id)) };
}

describe('a run of the second planner, in another process', () => {
  it('is taken over by work(), and goes on with its own planner and tools', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool: hold, entered } = holding();
    const first = both(second({ next: script(call('own')), tools: [{ ...hold, name: 'own' }] }), { journal, clock });
    const run = await start(first, { agent: 'second' });
    await entered;
    await first.runtime.close();
    const other = both(second({ tools: [{ ...own, effect: 'pure' }] }), { journal, clock });
    other.runtime.work();
    const there = other.runtime.run(run.id);
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
    expect(observations(await there.state())).toEqual(['of the other']);
    expect(await entriesOf(journal, there, 'repinned')).toEqual([]);
    expect(other.faults).toEqual([]);
    await other.runtime.close();
  });

  it('is left alone by a worker that does not know its planner, and taken by one that does', async () => {
    const { id, journal, clock, before } = await parked();
    // Whoever answers it drives nothing.
    const { runtime } = both(gated(), { journal, clock });
    const [open] = await pausesOf(runtime.run(id));
    await runtime.close();
    await journal.signal(id, { id: 'c1', type: 'APPROVE', payload: { token: open?.token ?? '' } });
    const lost = world({ planner: mainPlanner, tools: [echo], journal, clock });
    lost.runtime.work();
    // It takes what is its own meanwhile.
    const mine = await start(lost);
    await mine.result();
    clock.advance(60_000);
    await quiet();
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    expect((await journal.get(id))?.lease).toBeUndefined();
    expect(lost.faults).toEqual([]);
    await lost.runtime.close();
    const knows = both(gated(), { journal, clock });
    knows.runtime.work();
    await until(async () => (await journal.get(id))?.status === 'finished');
    expect(observations(await knows.runtime.run(id).state())).toEqual(['paid']);
    await knows.runtime.close();
  });

  it('that a deploy does not know any more: run_changed names it, nothing is lost, and it goes on where it is known', async () => {
    const { id, journal, clock, before } = await parked();
    const lost = world({ planner: mainPlanner, tools: [echo], journal, clock });
    const run = lost.runtime.run(id);
    const [open] = await pausesOf(run);
    // To approve says something; to go on asks this process for it.
    await run.approve(open?.token);
    await expect(run.resume()).rejects.toMatchObject({
      code: 'run_changed',
      message: expect.stringContaining('agent: second → main'),
      data: { run: id, changes: expect.arrayContaining([{ what: 'agent', was: 'second', now: 'main' }]) },
    });
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    expect(await journal.inbox(id)).toMatchObject([{ message: { type: 'APPROVE' } }]);
    expect(await journal.get(id)).toMatchObject({ status: 'paused', agent: 'second' });
    await lost.runtime.close();
    const back = both(gated(), { journal, clock });
    await back.runtime.run(id).resume();
    expect(await back.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await back.runtime.run(id).state())).toEqual(['paid']);
  });

  it('goes on with the main planner and its tools when somebody accepts that', async () => {
    const { id, journal, clock } = await parked();
    const planner = watched(script(call('echo')));
    const next: Planner = { name: 'main', next: planner };
    const lost = world({ planner: next, tools: [echo], journal, clock });
    const run = lost.runtime.run(id);
    await run.resume({ acceptChanges: true });
    expect(await entriesOf(journal, run, 'repinned')).toMatchObject([{ agent: 'main' }]);
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(planner.views[0]?.tools.all().map(({ name }) => name)).toEqual(['artifact_fetch', 'echo']);
    expect((await journal.get(id))?.agent).toBe('main');
  });

  it('another version or tool of its own planner is a change, those of the main one are none', async () => {
    const { id, journal, clock } = await parked(gated({ version: '1' }));
    const changes = both(gated({ version: '2', tools: [{ ...gatedTool, effect: 'keyed' }] }), { journal, clock });
    await expect(changes.runtime.run(id).resume()).rejects.toMatchObject({
      data: {
        changes: [
          { what: 'planner version', was: '1', now: '2' },
          { what: 'tool own', was: expect.any(String), now: expect.any(String) },
        ],
      },
    });
    await changes.runtime.close();
    const same = both(gated({ version: '1' }), {
      journal,
      clock,
      planner: { name: 'another', version: '3', next: script() },
      tools: [{ ...gatedTool, effect: 'keyed' }],
    });
    await same.runtime.run(id).approve();
    expect(await same.runtime.run(id).result()).toMatchObject({ status: 'finished' });
    expect(await entriesOf(journal, same.runtime.run(id), 'repinned')).toEqual([]);
  });
});

describe('fork and replay of a run of the second planner', () => {
  const branching = script(call('own'), call('own', { again: true }));

  it('are made with its planner and tools', async () => {
    const made = both(second({ version: '2', next: branching }));
    const run = await start(made, { agent: 'second' });
    await run.result();
    expect(await run.replay()).toEqual({ run: run.id, from: 0, compared: 3 });
    const fork = await run.fork({ step: 1 });
    expect(await fork.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await innerState(made.journal, fork)).toMatchObject({
      agent: 'second',
      pin: { version: '2' },
      fork: { run: run.id, step: 1 },
    });
    expect(observations(await fork.state())).toEqual(['of the other', 'of the other']);
    expect(await entriesOf(made.journal, fork, 'repinned')).toEqual([]);
    expect(await fork.replay()).toEqual({ run: fork.id, from: 1, compared: 2 });
  });

  it('are made with the main planner where its own is not known any more', async () => {
    const { id, journal, clock } = await parked();
    const lost = world({ planner: mainPlanner, tools: [echo], journal, clock });
    expect(await lost.runtime.run(id).replay()).toMatchObject({
      compared: 1,
      divergence: { step: 0, recorded: { decision: { tool: 'own' } }, now: { decision: { tool: 'echo' } } },
    });
    const fork = await lost.runtime.run(id).fork({ step: 0 });
    expect(await fork.result()).toMatchObject({ status: 'finished' });
    expect((await fork.state()).agent).toBe('main');
    await expect(lost.runtime.run('nobody').fork()).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(lost.runtime.run('nobody').replay()).rejects.toMatchObject({ code: 'run_not_found' });
  });

  it('that was accepted by the main planner, are made with the main one', async () => {
    const { id, journal, clock } = await parked();
    const lost = world({ planner: mainPlanner, tools: [echo], journal, clock });
    await lost.runtime.run(id).resume({ acceptChanges: true });
    await pausesOf(lost.runtime.run(id));
    await lost.runtime.close();
    const back = both(gated(), { journal, clock });
    const fork = await back.runtime.run(id).fork({ step: 0 });
    expect((await fork.state()).agent).toBe('main');
  });
});

describe('what a run is called with', () => {
  const given = async (context: StartOptions['context']) => {
    const planner = watched(script(call('own')));
    const made = both(second({ next: planner }));
    const run = await start(made, { agent: 'second', ...(context === undefined ? {} : { context }) });
    await run.result();
    const [started] = await entriesOf(made.journal, run, 'started');
    return { recorded: started?.context, seen: planner.views.map((view) => view.context) };
  };

  it.each([
    { text: 'x', list: [1, null] },
    [1, 2],
    'text',
    0,
    false,
    null,
  ])('arguments %j are recorded, and there at every step', async (args) => {
    const meta = { route_policy: { by_topic: 'refund' } };
    const { recorded, seen } = await given({ args, meta });
    expect(recorded).toEqual({ args, meta });
    expect(seen).toEqual([recorded, recorded]);
    expect(Object.isFrozen(recorded?.meta)).toBe(true);
  });

  it('without any there is nothing', async () => {
    expect(await given({ hints: { constraints: 'c' } })).toMatchObject({ recorded: { hints: { constraints: 'c' } } });
    expect((await given({ hints: {} })).recorded).not.toHaveProperty('args');
    expect((await given(undefined)).recorded).toBeUndefined();
  });

  it.each<[string, object, string, RegExp]>([
    ['meta that is a list', { meta: [1] }, 'invalid_config', /context\.meta must be an object/],
    ['meta that is a text', { meta: 'x' }, 'invalid_config', /context\.meta must be an object/],
    ['meta that is null', { meta: null }, 'invalid_config', /context\.meta must be an object/],
    ['arguments that are no JSON', { args: { at: [() => 1] } }, 'unserializable', /context\.args\.at/],
    ['meta that is no JSON', { meta: { run: () => 1 } }, 'unserializable', /context\.meta\.run/],
  ])('refuses %s, and starts nothing', async (_, context, code, message) => {
    const made = both(second());
    await expect(start(made, { agent: 'second', context })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    expect(await made.runtime.list()).toEqual([]);
  });
});
