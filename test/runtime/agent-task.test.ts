/** Tools whose calls are tasks: what a planner that carries them out gives, as the value of the call. On SQLite. */
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { type Decision, type EntryKind, type Json, PilotageError, type PlannerFunction, type RunView } from '#core';
import type { Append } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { graph } from '#planners/graph';
import { react } from '#planners/react';
import { scriptedModel, VirtualClock } from '#testing';
import { type AgentTool, type AnyTool, createCatalogue, type Tool } from '#tools';
import { call, finish, parallel, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import {
  entriesOf,
  hasEnded,
  innerState,
  kindsOf,
  observations,
  outcomes,
  pausesOf,
  payloadOf,
} from '../kit/run-record.ts';
import { awaits, lastOf, PARENT, spawns, thenTell } from '../kit/tasks.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

/** A tool that a planner function with tools of its own carries out. */
function carried(name: string, next: PlannerFunction, tools: readonly AnyTool[] = [], more: Partial<AgentTool> = {}) {
  const planner = { name: `by ${name}`, next };
  return {
    name,
    description: name,
    inputSchema: ANY,
    ...more,
    agent: { name: planner.name, planner, tools },
  } satisfies AgentTool;
}

/** The same with a budget. */
function budgeted(tool: AgentTool, budget: NonNullable<AgentTool['agent']['limits']>): AgentTool {
  return { ...tool, agent: { ...tool.agent, limits: budget } };
}

const argsOf = ({ context }: RunView): Json => context.args ?? null;
const giveArgs: PlannerFunction = (run) => finish(argsOf(run));

/** One process after another over one file, on one clock. */
function machine(): { next(options: WorldOptions, dies?: (request: Append) => boolean): World; die(): void } {
  const path = temporaryFile();
  const clock = new VirtualClock();
  let die = (): void => {};
  return {
    next: (options, dies = () => false) => {
      const stored = sqliteJournal({ path, clock });
      onTestFinished(() => stored.close());
      const { journal, cut } = cutJournal(stored);
      die = cut;
      const append = async (request: Append): Promise<void> => {
        await journal.append(request);
        if (dies(request)) cut();
      };
      return world({ ...options, journal: changed(journal, { append }), clock });
    },
    die: () => die(),
  };
}

const onSqlite = (options: WorldOptions): World => machine().next(options);

const appends =
  (kind: EntryKind, run: string) =>
  (request: Append): boolean =>
    request.run === run && request.entries.some((entry) => entry.kind === kind);

describe('a call that a task carries out', () => {
  it('has as its value what the task finishes with, and is one call', async () => {
    const tool = carried('double', (run) =>
      finish({ twice: [argsOf(run), argsOf(run)], meta: run.context.meta ?? null }),
    );
    const made = onSqlite({ planner: thenTell(call('double', { n: 1 })), tools: [tool] });
    const run = await start(made, { identity: PARENT, context: { meta: { trace: 't1' } } });
    expect(await payloadOf(run)).toEqual({ twice: [{ n: 1 }, { n: 1 }], meta: { trace: 't1' } });
    expect(await kindsOf(made.journal, run)).toEqual([
      ...['started', 'moved', 'spawned', 'task_ended', 'call_ended', 'moved', 'finished'],
    ]);
    const [spawned] = await entriesOf(made.journal, run, 'spawned');
    expect(spawned).toMatchObject({
      ...{
        task: 'p.0.0',
        agentCall: true,
        taskKind: 'foreground',
        description: 'double',
        onCancel: 'cascade',
        retained: true,
      },
    });
    const [ended] = await entriesOf(made.journal, run, 'call_ended');
    expect(ended).toMatchObject({ attempts: 1, startedAt: spawned?.at });
    expect((await run.state()).totals).toMatchObject({ calls: 1, steps: 1 });
    const events = await collect(run);
    const seen = events.map(({ type }) => type).filter((type) => type.startsWith('task.') || type.startsWith('tool.'));
    expect(seen).toEqual(['tool.invoked', 'task.spawned', 'task.completed', 'tool.completed']);
    const [task] = await made.journal.read('p.0.0', 1, 1);
    expect(task).toMatchObject({
      query: '<arguments>\n{"n":1}\n</arguments>',
      agent: 'by double',
      conversation: false,
      pin: { tools: {} },
    });
    expect(await made.runtime.run('p.0.0').payload()).toEqual(await payloadOf(run));
  });

  it('has its own tools and the builtins, and none of the caller’s', async () => {
    const names: PlannerFunction = (run) => finish(run.tools.all().map(({ name }) => name));
    const tool = carried('inner', names, [make('own', () => 1)]);
    const made = onSqlite({ planner: thenTell(call('inner')), tools: [tool, echo] });
    expect(await payloadOf(await start(made, { identity: PARENT }))).toEqual(['artifact_fetch', 'own']);
  });

  it('hands a value of 40,000 bytes on whole', async () => {
    const long = 'ä'.repeat(20_000);
    const tool = carried('long', () => finish({ text: long }));
    const length = make('length', ({ text }) => String(text).length);
    const made = onSqlite({
      planner: thenTell({
        kind: 'call_parallel',
        branches: [
          { id: 'a', tool: 'long', args: {} },
          { tool: 'length', args: { text: { $from: 'a', path: '/text' } } },
        ],
      }),
      tools: [tool, length],
    });
    const run = await start(made, { identity: PARENT });
    expect(await payloadOf(run)).toMatchObject([{ value: { truncated: true } }, { value: 20_000 }]);
    const inner = made.runtime.run('p.0.0');
    expect(await inner.payload()).toEqual({ text: long });
    const [stored] = await entriesOf(made.journal, inner, 'finished');
    const [told] = await entriesOf(made.journal, run, 'task_ended');
    const [ended] = await entriesOf(made.journal, run, 'call_ended');
    expect(stored).toMatchObject({ stored: true });
    expect(told).toMatchObject({ stored: true, result: stored?.payload });
    // The same bytes are the same artifact.
    expect(ended).toMatchObject({ outcome: { artifact: stored?.payload }, discovered: ['artifact_fetch'] });
  });

  it('a run that only hands on what was stored gives the whole', async () => {
    const long = 'x'.repeat(40_000);
    const whole = carried('whole', () => finish(long));
    const plan = graph({
      plan: {
        steps: [
          { id: 'a', type: 'tool', toolId: 'whole', input: {} },
          { id: 'end', type: 'finish', input: { $from: 'a' } },
        ],
      },
    });
    const outer: AgentTool = { ...carried('outer', giveArgs), agent: { name: 'plan', planner: plan, tools: [whole] } };
    const made = onSqlite({ planner: script(call('outer'), finish()), tools: [outer] });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(await made.runtime.run('p.0.0').payload()).toBe(long);
    const [ended] = await entriesOf(made.journal, run, 'call_ended');
    expect(ended?.outcome).toMatchObject({ kind: 'value', artifact: { sizeBytes: 40_002 } });
  });

  it('fails with the code, the message and the data of the task', async () => {
    const broken = carried('broken', () => {
      throw new PilotageError('route_not_found', 'No way for it.', { data: { router: 'by_kind' } });
    });
    const lost = carried('lost', () => ({ kind: 'finish', reason: 'max_cost' }));
    const made = onSqlite({
      planner: script(
        parallel([
          { tool: 'broken', args: {} },
          { tool: 'lost', args: {} },
        ]),
      ),
      tools: [broken, lost],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    const [step] = (await run.state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome)).toMatchObject([
      {
        kind: 'error',
        error: { code: 'route_not_found', message: 'No way for it.', data: { router: 'by_kind', step: 0 } },
      },
      { kind: 'error', error: { code: 'max_cost' } },
    ]);
  });

  it('TL-20 what does not fit the tool’s output schema is tool_invalid_output', async () => {
    const output = { type: 'object', required: ['n'] } as const;
    const made = onSqlite({
      planner: script(call('count', { n: 1 }), call('count', {})),
      tools: [carried('count', giveArgs, [], { outputSchema: output })],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ n: 1 }, { error: { code: 'tool_invalid_output' } }]);
  });

  it('gets the arguments as the schema gives them; those that do not fit start nothing', async () => {
    const inputSchema = z.object({ n: z.number(), unit: z.string().default('m') });
    const tool = { ...carried('measure', giveArgs), inputSchema };
    const never = {
      ...carried('never', giveArgs),
      inputSchema: z.object({ at: z.string().transform((at) => new Map([[at, 1]])) }),
    };
    const made = onSqlite({
      planner: script(call('measure', { n: 1 }), call('measure', { n: 'x' }), call('never', { at: 'noon' })),
      tools: [tool, never],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())).toMatchObject([
      { n: 1, unit: 'm' },
      { error: { code: 'tool_invalid_args' } },
      { error: { code: 'tool_invalid_args', message: expect.stringContaining('cannot be recorded') } },
    ]);
    expect(await entriesOf(made.journal, run, 'spawned')).toHaveLength(1);
  });

  it('a tool that nobody may use, a policy, and a run too deep below refuse it before it starts', async () => {
    const deep = (depth: number): AgentTool =>
      carried(`deep${depth}`, thenTell(call(`deep${depth + 1}`)), depth > 5 ? [] : [deep(depth + 1)]);
    const made = onSqlite({
      planner: script(call('hidden'), call('forbidden'), call('deep1')),
      tools: [carried('hidden', giveArgs, [], { scopes: ['admin'] }), carried('forbidden', giveArgs), deep(1)],
      policy: ({ tool }) => (tool === 'forbidden' ? { deny: 'not today' } : 'allow'),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())).toMatchObject([
      { error: { code: 'tool_not_found' } },
      { error: { code: 'policy_refused' } },
      // The fourth below it asks in vain for a fifth.
      { error: { code: 'task_limit' } },
    ]);
    expect((await run.state()).tasks.map(({ id }) => id)).toEqual(['p.2.0']);
    expect(await made.journal.get('p.2.0.0.0.0.0.0.0')).toMatchObject({ status: 'finished' });
  });

  it('is carried out within a carried out call', async () => {
    const inner = carried('inner', (run) => finish([argsOf(run), run.context.meta ?? null]));
    const outer = carried('outer', (run) => thenTell(call('inner', { of: argsOf(run) }))(run, run as never), [inner]);
    const made = onSqlite({ planner: thenTell(call('outer', { n: 1 })), tools: [outer] });
    const run = await start(made, { identity: PARENT, context: { meta: { who: 'me' } } });
    expect(await payloadOf(run)).toEqual([{ of: { n: 1 } }, { who: 'me' }]);
    expect(await made.journal.get('p.0.0.0.0')).toMatchObject({ root: 'p', status: 'finished' });
  });

  it('RT-33 a hundred calls in one plan, of which no more are under way at once than it says', async () => {
    let most = 0;
    let under = 0;
    const work = make('work', async () => {
      under += 1;
      most = Math.max(most, under);
      await new Promise((resolve) => setImmediate(resolve));
      under -= 1;
    });
    const tool = carried('busy', script(call('work')), [work]);
    const branches = Array.from({ length: 100 }, (_, index) => ({ id: `n${index}`, tool: 'busy', args: {} }));
    const made = onSqlite({
      planner: script({ kind: 'call_parallel', plan: 'p', concurrency: 8, branches }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    const state = await run.state();
    expect(outcomes(state)).toEqual(Array(100).fill('value'));
    expect([state.groups, state.background]).toEqual([[], []]);
    expect(most).toBeLessThanOrEqual(8);
  });

  it('a react planner calls it as any tool', async () => {
    const model = scriptedModel([{ calls: [{ id: 'a', tool: 'ask', args: { q: 'why' } }] }, { text: 'Because.' }]);
    const made = onSqlite({ planner: react({ model }), tools: [carried('ask', () => finish('it is so'))] });
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ reason: 'goal', answer: 'Because.' });
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('it is so');
  });
});

describe('while the task is under way', () => {
  it('a message to the run does not end the call, and comes to the planner after it', async () => {
    const { tool, entered, release } = holding();
    const views: RunView[] = [];
    const planner: PlannerFunction = (run) => {
      views.push(run);
      return run.trajectory.count === 0 ? call('slow') : finish(lastOf(run));
    };
    const made = onSqlite({ planner, tools: [carried('slow', thenTell(call('hold')), [tool])] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await run.steer('USER_MESSAGE', { message: 'hurry' });
    await quiet();
    expect((await innerState(made.journal, run)).open?.waits).toMatchObject([{ task: 'p.0.0' }]);
    release();
    expect(await payloadOf(run)).toBe('run 1');
    expect(views[1]?.controls.map(({ type }) => type)).toEqual(['USER_MESSAGE']);
  });

  it('a cancel of the run reaches it', async () => {
    const { tool, entered } = holding();
    const made = onSqlite({ planner: script(call('slow')), tools: [carried('slow', script(call('hold')), [tool])] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await run.cancel();
    await until(() => hasEnded(made, 'p.0.0'));
    expect(await made.runtime.run('p.0.0').result()).toMatchObject({ reason: 'cancelled' });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
  });

  it('whoever cancels the task alone has cancelled the call, and the run goes on', async () => {
    const { tool, entered } = holding();
    const made = onSqlite({ planner: script(call('slow')), tools: [carried('slow', script(call('hold')), [tool])] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await made.runtime.run('p.0.0').cancel();
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
  });

  it.each([
    ['a join that is met', { join: { kind: 'first_success' } as const }],
    ['the end of a plan', { plan: 'p' }],
    ['a branch that fails', { failFast: true as const }],
  ])('%s stops it', async (what, how) => {
    const inside = gate();
    const tool = make('hold', (_, { signal }) => {
      inside.open();
      return aborted(signal);
    });
    const other = what === 'the end of a plan' ? '_finish' : what.startsWith('a branch') ? 'fail' : 'echo';
    const gated = make('after', () => inside.opened);
    const fail = make('fail', () => {
      throw new Error('no');
    });
    const decision: Decision = {
      kind: 'call_parallel',
      ...how,
      branches: [
        { id: 'slow', tool: 'slow', args: {} },
        { id: 'gate', tool: 'after', args: {} },
        { id: 'end', tool: other, args: {}, after: ['gate'] },
      ],
    };
    const made = onSqlite({
      planner: script(what.startsWith('a join') ? { ...decision, join: { kind: 'n', n: 2 } } : decision),
      tools: [carried('slow', script(call('hold')), [tool]), echo, gated, fail],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    await until(() => hasEnded(made, 'p.0.0'));
    expect(await made.runtime.run('p.0.0').result()).toMatchObject({
      ...{ reason: 'cancelled', metadata: { reason: 'The call that started the task is not needed any more.' } },
    });
    expect(outcomes(await run.state())[0]).toBe('cancelled');
    expect((await run.state()).background).toEqual([]);
  });

  it('keeps its place: with concurrency 1 calls run in order', async () => {
    const order: Json[] = [];
    const note = make('note', ({ n }) => void order.push(n ?? null));
    const slow = carried('slow', (run) => (run.trajectory.count < 2 ? call('note', argsOf(run)) : finish()), [note]);
    const branches = [
      { tool: 'slow', args: { n: 1 } },
      { tool: 'note', args: { n: 2 } },
      { tool: 'slow', args: { n: 3 } },
    ];
    const made = onSqlite({
      planner: script({ kind: 'call_parallel', branches, concurrency: 1 }),
      tools: [slow, note],
    });
    await (await start(made, { identity: PARENT })).result();
    expect(order).toEqual([1, 1, 2, 3, 3]);
  });

  it('a tool’s own concurrency counts those under way, also those that wait for somebody', async () => {
    const asks = carried('asks', script(pause), [], { concurrency: 2 });
    const branches = Array.from({ length: 5 }, () => ({ tool: 'asks', args: {} }));
    const made = onSqlite({
      planner: script(parallel([...branches, { tool: 'echo', args: {} }])),
      tools: [asks, echo],
    });
    const run = await start(made, { identity: PARENT });
    const answered = new Set<string>();
    for (const wanted of [2, 2, 1]) {
      await until(async () => {
        const live = (await run.state()).tasks.filter(({ end }) => end === undefined);
        const isNew = ({ token }: { readonly token: string }): boolean => !answered.has(token);
        return live.length === wanted && live.every(({ pauses }) => pauses.some(isNew));
      });
      // It is the whole run that waits: nothing else of it can go on.
      const pauses = await pausesOf(run);
      expect(pauses).toHaveLength(wanted);
      for (const { token } of pauses) answered.add(token);
      for (const { token } of pauses) await run.resume({ token });
    }
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())).toEqual(Array(6).fill('value'));
    let under = 0;
    for (const { kind } of await made.journal.read('p')) {
      under += kind === 'spawned' ? 1 : kind === 'task_ended' ? -1 : 0;
      expect(under).toBeLessThanOrEqual(2);
    }
  });

  it('does not take the room of tasks that the planner spawns', async () => {
    const { tool, entered, release } = holding();
    const slow = carried('slow', script(call('hold')), [tool]);
    const planner: PlannerFunction = (run, signal) =>
      run.query === 'child' ? finish('c') : thenTell(parallel([{ tool: 'slow', args: {} }, ...SIXTEEN]))(run, signal);
    const made = onSqlite({ planner, tools: [slow] });
    const run = await start(made, { identity: PARENT });
    await entered;
    release();
    const told = (await payloadOf(run)) as { value?: Json }[];
    expect(told.every(({ value }) => value !== undefined)).toBe(true);
  });
});

const SIXTEEN = Array.from({ length: 16 }, () => ({
  tool: '_spawn_task',
  args: { kind: 'background', spec: { description: 'd', query: 'child' } },
}));

describe('pauses', () => {
  const pay = (paid: unknown[]): Tool =>
    make('pay', (args) => paid.push(args), { effect: 'once', needsApproval: true });

  it('an approval inside is told to the run, and answered through it', async () => {
    const paid: unknown[] = [];
    const tool = carried('order', thenTell(call('pay', { sum: 5 })), [pay(paid)]);
    const made = onSqlite({ planner: thenTell(call('order')), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    expect(await pausesOf(run)).toMatchObject([{ run: 'p.0.0', reason: 'approval_required' }]);
    await run.approve(undefined, { args: { sum: 4 } });
    expect(await payloadOf(run)).toBe(1);
    expect(paid).toEqual([{ sum: 4 }]);
  });

  it('is answered from another process', async () => {
    const paid: unknown[] = [];
    const pc = machine();
    const options = (): WorldOptions => ({
      planner: thenTell(call('order')),
      tools: [carried('order', thenTell(call('pay', { sum: 5 })), [pay(paid)])],
    });
    const one = pc.next(options());
    await pausesOf(await start(one, { identity: PARENT }));
    pc.die();
    const two = pc.next(options());
    const run = two.runtime.run('p');
    await run.approve();
    await advanceUntil(two.clock, () => hasEnded(two, 'p'));
    expect(await payloadOf(run)).toBe(1);
    expect(paid).toEqual([{ sum: 5 }]);
  });

  it('a gate of the tool itself is passed before the task starts, with the arguments of whoever approved', async () => {
    const tool = carried('order', giveArgs, [], { needsApproval: true });
    const made = onSqlite({ planner: script(call('order', { n: 1 }), call('order', { n: 2 })), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    expect(await pausesOf(run)).toMatchObject([{ run: 'p', payload: { tool: 'order', args: { n: 1 } } }]);
    expect(await entriesOf(made.journal, run, 'spawned')).toEqual([]);
    await run.approve(undefined, { args: { n: 10 } });
    await pausesOf(run);
    await run.reject(undefined, { reason: 'no' });
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ n: 10 }, { error: { code: 'tool_rejected' } }]);
  });
});

describe('budgets', () => {
  const limitsOf: PlannerFunction = ({ budget }) => finish({ ...budget });

  it('asks for what its planner’s budget names, and gets what is left on the other axes when nothing runs beside it', async () => {
    const tool = budgeted(carried('spend', limitsOf), { steps: 3, costUsd: 0.001, deadlineMs: 60_000 });
    const made = onSqlite({ planner: thenTell(call('spend')), tools: [tool] });
    const at = made.clock.now();
    const limits = { costUsd: 0.0004, tokens: 100, steps: 50, deadlineAt: at + 90_000 };
    const run = await start(made, { identity: PARENT, limits });
    expect(await payloadOf(run)).toMatchObject({
      ...{ stepsLeft: 3, costMicroUsdLeft: 400, tokensLeft: 100, deadlineAt: at + 60_000 },
    });
  });

  it('what a run has no limit for is as the budget says', async () => {
    const tool = budgeted(carried('spend', limitsOf), { tokens: 7 });
    const made = onSqlite({ planner: thenTell(call('spend')), tools: [tool] });
    const told = (await payloadOf(await start(made, { identity: PARENT }))) as Record<string, Json>;
    expect(told).toMatchObject({ tokensLeft: 7, stepsLeft: 64 });
    expect(told['costMicroUsdLeft']).toBeUndefined();
  });

  it('calls that run beside each other get equal parts: none is refused for what others have been lent', async () => {
    const shares: number[] = [];
    const tool = carried('spend', ({ budget }) => {
      shares.push(budget.costMicroUsdLeft ?? 0);
      return finish();
    });
    const branches = Array.from({ length: 60 }, () => ({ tool: 'spend', args: {} }));
    const made = onSqlite({
      planner: script({ kind: 'call_parallel', plan: 'p', branches, concurrency: 20 }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT, limits: { costUsd: 0.001 } });
    await run.result();
    expect(outcomes(await run.state())).toEqual(Array(60).fill('value'));
    expect([shares[0], Math.min(...shares) > 0]).toEqual([50, true]);
  });

  it('BG-08 the calls inside count, and one too many is refused before it starts', async () => {
    let worked = 0;
    const work = make('work', () => (worked += 1));
    const tool = carried('twice', thenTell(call('work'), call('work')), [work]);
    const made = onSqlite({ planner: thenTell(call('twice'), call('work'), call('twice')), tools: [tool, work] });
    const run = await start(made, { identity: PARENT, limits: { calls: 5 } });
    await run.result();
    expect(observations(await run.state())).toMatchObject([2, 3, { error: { code: 'budget_exceeded' } }]);
    expect(worked).toBe(3);
    expect((await run.state()).totals).toMatchObject({ calls: 2, taskCalls: 2 });
  });
});

describe('after a crash', () => {
  it.each([
    ['spawned', 'p'],
    ['started', 'p'],
    ['call_ended', 'p.0.0'],
    ['finished', 'p.0.0'],
    ['task_ended', 'p'],
    ['call_ended', 'p'],
  ] as const)('the call is carried out once, whoever dies when: %s of %s', async (kind, of) => {
    let worked = 0;
    const options = (): WorldOptions => ({
      planner: thenTell(call('order')),
      tools: [carried('order', thenTell(call('work')), [make('work', () => (worked += 1), { effect: 'once' })])],
    });
    const pc = machine();
    const one = pc.next(options(), kind === 'started' ? appends('spawned', of) : appends(kind, of));
    await start(one, { identity: PARENT });
    // What this process does not hear any more is read by the next.
    await quiet();
    pc.die();
    const two = pc.next(options());
    const stop = two.runtime.work();
    await advanceUntil(two.clock, () => hasEnded(two, 'p'));
    stop();
    expect(await payloadOf(two.runtime.run('p'))).toBe(1);
    expect(worked).toBe(1);
    expect(await entriesOf(two.journal, two.runtime.run('p'), 'spawned')).toHaveLength(1);
  });
});

describe('registration', () => {
  const refused = (tool: object): unknown => {
    try {
      createCatalogue([tool as AnyTool]);
      return undefined;
    } catch (error) {
      return PilotageError.is(error) ? error.code : error;
    }
  };

  it.each([
    ['a cost', { costUsd: 5 }],
    ['a function', { execute: () => 1 }],
    ['an effect that there is not', { effect: 'some' }],
    ['a gate that is none', { needsApproval: 7 }],
    ['a concurrency of 0', { concurrency: 0 }],
  ])('%s is refused', (_, more) => {
    expect(refused({ ...carried('tool', giveArgs), ...more })).toBe('invalid_config');
  });

  it('has the schema of any tool: `once` when nothing is said, listed, and found in a record', () => {
    const tools = { order: carried('order', giveArgs, [], { tags: ['money'], outputSchema: ANY }) };
    const view = createCatalogue(tools).view([]);
    expect(view.get('order')).toMatchObject({ effect: 'once', loading: 'always', tags: ['money'] });
    expect(view.digests()).toEqual(
      createCatalogue([make('order', () => 1, { effect: 'once' })])
        .view([])
        .digests(),
    );
  });

  it('arguments of a typed schema are those that the gate is asked with', () => {
    const input = z.object({ n: z.number() });
    const typed: AgentTool<typeof input> = {
      ...carried('typed', giveArgs),
      inputSchema: input,
      needsApproval: ({ n }) => {
        expectTypeOf(n).toEqualTypeOf<number>();
        return n > 1;
      },
    };
    const tools: readonly AnyTool[] = [typed];
    expect(tools).toHaveLength(1);
  });
});

describe('beside tasks that a planner spawns', () => {
  it('a task of a run that a tool brought along has the same planner', async () => {
    const inner: PlannerFunction = (run, signal) =>
      run.query === 'part' ? finish('a part') : thenTell(spawns('part', { task: 'foreground' }))(run, signal);
    const made = onSqlite({ planner: thenTell(call('whole')), tools: [carried('whole', inner)] });
    const run = await start(made, { identity: PARENT });
    expect(await payloadOf(run)).toMatchObject({ result: 'a part' });
    expect((await made.journal.read('p.0.0.0.0', 1, 1))[0]).toMatchObject({ agent: 'by whole' });
  });

  it('a call can be awaited by its task’s id, as any task', async () => {
    const made = onSqlite({
      planner: thenTell(call('order'), awaits('p.0.0')),
      tools: [carried('order', () => finish('ok'))],
    });
    const run = await start(made, { identity: PARENT });
    expect(await payloadOf(run)).toMatchObject({ status: 'complete', result: 'ok' });
    expect(only(await collect(run), 'task.group_resolved')).toEqual([]);
  });
});

describe('a tool whose calls are tasks', () => {
  it('is refused with what only an attempt of a function has, and is not without its time limit in silence', () => {
    const timed: object = { timeoutMs: 5, retries: 1 };
    const message = "leave out timeoutMs, retries. It costs what the agent's runs use";
    expect(() => world({ planner: script(), tools: [carried('asks', giveArgs, [], timed)] })).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(message) }),
    );
  });
});
