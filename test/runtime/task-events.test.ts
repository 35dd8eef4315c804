/** The events of a run with those of the tasks below it, in one stream. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Decision, Delta, Planner, PlannerFunction, RunEvent } from '#core';
import type { Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { graph } from '#planners/graph';
import { createRuntime, type EventOptions, type Run } from '#runtime';
import { VirtualClock } from '#testing';
import type { AgentTool, AnyTool } from '#tools';
import { call, finish, named, parallel, pause, script } from '../kit/decisions.ts';
import { only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { hasEnded } from '../kit/run-record.ts';
import { PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

async function read(run: Run, options: EventOptions = { tasks: true }): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events(options)) events.push(event);
  return events;
}

/** What a journal tells of an event, without what passes and is not recorded. */
const PASSING: ReadonlySet<string> = new Set([
  ...['token', 'token.reset', 'tool.chunk', 'tool.late', 'task.progress', 'run.paused'],
]);
const recorded = (events: readonly RunEvent[]) => events.filter(({ type }) => !PASSING.has(type));
const shortOf = ({ type, identity }: RunEvent): string => `${identity.run} ${type}`;
const kept = (query: string): PlannerFunction => thenTell(spawns(query, { task: 'foreground' }));

/** That every run has its own order, and that what a task does stands between its start and what comes of it in the run above. */
async function assertOrdered(events: readonly RunEvent[], made: Pick<World, 'runtime'>): Promise<void> {
  const runs = [...new Set(events.map(({ identity }) => identity.run))];
  for (const id of runs) {
    const own = recorded(events).filter(({ identity }) => identity.run === id);
    const alone = recorded(await read(made.runtime.run(id), {}));
    expect(own.map(({ path: _, ...event }) => event)).toEqual(alone.slice(0, own.length));
    const [first] = own;
    const { path } = first as RunEvent;
    for (const event of own) expect(event.path).toEqual(path);
    if (path === undefined) continue;
    expect(path.at(-1)?.run).toBe(id);
    const started = events.findIndex((event) => event.type === 'task.spawned' && event.taskId === id);
    const told = events.findLastIndex(
      (event) => /^task\.(completed|failed|cancelled)$/.test(event.type) && 'taskId' in event && event.taskId === id,
    );
    const begins = events.findIndex(({ identity }) => identity.run === id);
    const ends = events.findLastIndex(({ identity }) => identity.run === id);
    expect(started).toBeGreaterThanOrEqual(0);
    expect(begins).toBeGreaterThan(started);
    if (told !== -1) expect(ends).toBeLessThan(told);
  }
}

/** A tool that an agent carries out. */
function carried(name: string, planner: Planner, tools: readonly AnyTool[] = []): AgentTool {
  return { name, description: name, inputSchema: ANY, agent: { name: planner.name ?? name, planner, tools } };
}

const inner = carried('ask_inner', { name: 'inner', next: script(call('echo', { deep: 1 })) }, [echo]);
const outer = carried('ask_outer', { name: 'outer', next: script(call('ask_inner')) }, [inner]);

describe('events with tasks', () => {
  it('has what agents as tools do, at any depth, between the call and its end, each with its path', async () => {
    const made = world({ planner: script(call('ask_outer')), tools: [outer] });
    const run = await start(made, { identity: PARENT });
    await run.result();
    const events = await read(run);
    expect(events.map(shortOf)).toEqual([
      ...['p run.started', 'p planner.decision', 'p tool.invoked', 'p task.spawned'],
      ...['p.0.0 run.started', 'p.0.0 planner.decision', 'p.0.0 tool.invoked', 'p.0.0 task.spawned'],
      ...['p.0.0.0.0 run.started', 'p.0.0.0.0 planner.decision', 'p.0.0.0.0 tool.invoked', 'p.0.0.0.0 tool.completed'],
      ...['p.0.0.0.0 planner.decision', 'p.0.0.0.0 planner.finish'],
      ...['p.0.0 task.completed', 'p.0.0 tool.completed', 'p.0.0 planner.decision', 'p.0.0 planner.finish'],
      ...['p task.completed', 'p tool.completed', 'p planner.decision', 'p planner.finish'],
    ]);
    const deep = events.find(({ identity }) => identity.run === 'p.0.0.0.0');
    expect(deep?.path).toEqual([
      { run: 'p.0.0', step: 0, call: 0, agent: 'outer' },
      { run: 'p.0.0.0.0', step: 0, call: 0, agent: 'inner' },
    ]);
    expect(events.filter(({ path }) => path === undefined)).toEqual(await read(run, {}));
  });

  it('is the same for every later reader, in every process', async () => {
    const path = temporaryFile();
    const planner = plays({
      q: script(parallel([spawning('child', { kind: 'foreground' }), spawning('child', { kind: 'foreground' })])),
      child: kept('grandchild'),
    });
    const tools = [echo];
    const first = createRuntime({ planner: { name: 'function', next: planner }, tools, journal: path });
    const run = await first.start('q', { identity: PARENT });
    await run.result();
    const told = await read(run);
    await first.close();
    const journal = sqliteJournal({ path, readOnly: true });
    onTestFinished(() => journal.close());
    const elsewhere = world({ planner, tools, journal });
    expect(await read(elsewhere.runtime.run('p'))).toEqual(told);
    expect(told.filter(({ identity }) => identity.run === 'p.0.1.0.0')).not.toEqual([]);
    await assertOrdered(told, elsewhere);
  });

  it('comes while the run goes on in another process', async () => {
    const path = temporaryFile();
    const { tool, entered, release } = holding();
    const planner = { name: 'function', next: plays({ q: kept('child'), child: script(call('hold')) }) };
    const driver = createRuntime({ planner, tools: [tool], journal: path });
    const reader = createRuntime({ planner, tools: [tool], journal: path });
    onTestFinished(async () => {
      await driver.close();
      await reader.close();
    });
    await driver.start('q', { identity: PARENT });
    await entered;
    const stream = reader.run('p').events({ tasks: true });
    const events: RunEvent[] = [];
    while (events.at(-1)?.path === undefined || events.at(-1)?.type !== 'tool.invoked') {
      events.push((await stream.next()).value as RunEvent);
    }
    release();
    for await (const event of stream) events.push(event);
    expect(events.at(-1)?.type).toBe('planner.finish');
    expect(only(events, 'planner.finish').map(({ identity }) => identity.run)).toEqual(['p.0.0', 'p']);
    await assertOrdered(events, { runtime: reader });
  });

  it('has the tokens of a task that this process drives, from its first on', async () => {
    const streaming = (text: string): Planner => ({
      name: 'streaming',
      async *next(view) {
        if (view.streaming) for (const piece of text) yield { type: 'text', text: piece } satisfies Delta;
        return { decision: finish(text) };
      },
    });
    const tool = carried('speaks', { ...streaming('words'), name: 'speaker' });
    const made = world({ planner: script(call('speaks')), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    const events = await read(run);
    const tokens = only(events, 'token');
    expect(tokens.map(({ text }) => text).join('')).toBe('words');
    expect(tokens.map(({ path }) => path?.at(-1)?.agent)).toEqual(Array(5).fill('speaker'));
    const at = (type: string, id: string): number => events.findIndex((each) => shortOf(each) === `${id} ${type}`);
    expect(at('run.started', 'p.0.0')).toBeLessThan(at('token', 'p.0.0'));
    expect(at('token', 'p.0.0')).toBeLessThan(at('planner.decision', 'p.0.0'));
    // Another reader of the same run asked for nothing of the kind.
    const next = await made.runtime.start('q', { identity: { ...PARENT, run: 'n' } });
    expect(only(await read(next, {}), 'token')).toEqual([]);
  });

  it('keeps at most so many tokens for a slow reader, of all tasks together', async () => {
    const gate = Promise.withResolvers<void>();
    const many: Planner = {
      name: 'many',
      async *next(view) {
        for (let piece = 0; piece < 3_000; piece += 1)
          if (view.streaming) yield { type: 'text', text: '.' } satisfies Delta;
        await gate.promise;
        return { decision: finish('x') };
      },
    };
    const made = world({ planner: script(parallel(named('m', 'm', 'm'))), tools: [carried('m', many)] });
    const run = await start(made, { identity: PARENT });
    const stream = run.events({ tasks: true });
    const events: RunEvent[] = [];
    while (only(events, 'task.spawned').length < 3) events.push((await stream.next()).value as RunEvent);
    // It looks away until everything was said.
    const before = only(events, 'token').length;
    await until(async () => (await Promise.all([0, 1, 2].map((at) => made.journal.get(`p.0.${at}`)))).every(Boolean));
    gate.resolve();
    for (const at of [0, 1, 2]) await until(() => hasEnded(made, `p.0.${at}`));
    await until(() => hasEnded(made, 'p'));
    for await (const event of stream) events.push(event);
    const tokens = only(events, 'token').length - before;
    expect(tokens).toBeGreaterThan(0);
    expect(tokens).toBeLessThanOrEqual(4_096);
    await assertOrdered(events, made);
  });

  it('tells a piece of a call once, in the run that gave it', async () => {
    const speaks = make('speaks', (_, { emit }) => {
      emit('piece');
      return 'done';
    });
    const made = world({
      planner: plays({ q: kept('child'), child: script(call('speaks')) }),
      tools: [speaks],
    });
    const events = await read(await start(made, { identity: PARENT }));
    expect(only(events, 'tool.chunk').map(({ run, path }) => [run, path?.at(-1)?.run])).toEqual([['p.0.0', 'p.0.0']]);
  });

  it('ends when the run is paused, behind what its task asks; and can go on over pauses', async () => {
    const made = world({ planner: plays({ q: kept('child'), child: script(pause) }) });
    const run = await start(made, { identity: PARENT });
    const whole = read(run, { tasks: true, overPauses: true });
    const paused = await read(run);
    expect(paused.slice(-3).map(shortOf)).toEqual(['p.0.0 pause.requested', 'p task.paused', 'p run.paused']);
    await run.approve();
    const heard = await whole;
    expect(heard.at(-1)?.type).toBe('planner.finish');
    expect(only(heard, 'run.paused')).toEqual([]);
    expect(recorded(heard).map(shortOf).sort()).toEqual(
      recorded(await read(run))
        .map(shortOf)
        .sort(),
    );
    await assertOrdered(heard, made);
  });

  it('from: leaves out tasks that have ended by then, and tells of the others from their beginning', async () => {
    const made = world({
      planner: plays({ q: script(spawns('one', { task: 'foreground' }), spawns('two', { task: 'foreground' })) }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    const events = await read(run);
    const second = only(events, 'task.spawned')[1];
    const from = (second?.seq ?? 0) + 1;
    const later = await read(run, { tasks: true, from });
    expect(later).toEqual(events.slice(events.indexOf(second as RunEvent) + 1));
    expect(later.map(({ identity }) => identity.run)).toContain('p.1.0');
    expect(later.map(({ identity }) => identity.run)).not.toContain('p.0.0');
  });

  it('redacts what tasks say as well, but not where they stand', async () => {
    const made = world({ planner: script(call('ask_outer')), tools: [outer] });
    const run = await start(made, { identity: PARENT });
    const events = await read(run, { tasks: true, redact: () => 'x' });
    const invoked = only(events, 'tool.invoked').at(-1);
    expect(invoked).toMatchObject({ tool: 'x', path: [{ agent: 'outer' }, { agent: 'inner' }] });
  });

  it('goes on with a task behind the retry that opens it again, and repeats nothing', async () => {
    let tries = 0;
    const shaky = make('shaky', () => {
      tries += 1;
      if (tries === 1) throw new Error('down');
      return 'up';
    });
    const planOf = (toolId: string): Planner => ({
      ...graph({ plan: { planId: 'p', steps: [{ id: 'n', type: 'tool', toolId }] } }),
      name: `plan of ${toolId}`,
    });
    const tool = carried('work', planOf('shaky'), [shaky]);
    const made = world({ planner: planOf('work'), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    expect((await run.result()).status).toBe('failed');
    await run.retry();
    expect((await run.result()).status).toBe('finished');
    const events = await read(run);
    const seen = recorded(events).map(({ identity, seq, type }) => `${identity.run} ${seq} ${type}`);
    expect(new Set(seen).size).toBe(seen.length);
    const order = events.map(shortOf);
    expect(order.indexOf('p.0.0 run.reopened')).toBeGreaterThan(order.indexOf('p run.reopened'));
    expect(order.indexOf('p.0.0 planner.error')).toBeLessThan(order.indexOf('p task.failed'));
    expect(order.indexOf('p.0.0 planner.finish')).toBeLessThan(order.lastIndexOf('p task.completed'));
  });

  it('a damaged task does not hide the run above it', async () => {
    const { tool, entered, release } = holding();
    const made = world({ planner: plays({ q: kept('child'), child: script(call('hold')) }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    release();
    await run.result();
    const { journal } = made;
    const lost: Journal = changed(journal, {
      read: (id, ...rest) => journal.read(id === 'p.0.0' ? 'nobody' : id, ...rest),
    });
    const broken = world({ planner: script(), journal: lost, clock: made.clock });
    const events = await read(broken.runtime.run('p'));
    expect(events.map(({ identity }) => identity.run)).not.toContain('p.0.0');
    expect(events.at(-1)?.type).toBe('planner.finish');
  });
});

interface Tree {
  readonly calls: number;
  readonly children: readonly Tree[];
}

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.record({
    calls: fc.integer({ min: 0, max: 2 }),
    children: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      fc.constant([]),
      fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
    ),
  }),
}));

function plan({ calls, children }: Tree): Decision[] {
  const own = Array.from({ length: calls }, () => call('echo'));
  if (children.length === 0) return own;
  const branches = children.map((child) => spawning(JSON.stringify(child), { kind: 'foreground' }));
  return [...own, parallel(branches), ...own];
}

describe('for any tree of tasks', () => {
  it('a reader from the start and one from afterwards get the same events of each run, in an order that fits the rule', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (shape) => {
        const planner: PlannerFunction = (view, signal) => script(...plan(JSON.parse(view.query)))(view, signal);
        const made = world({ planner, tools: [echo], clock: new VirtualClock() });
        const run = await start(made, { identity: PARENT, query: JSON.stringify(shape) });
        const live = await read(run);
        const later = await read(run);
        expect(await read(run)).toEqual(later);
        await assertOrdered(live, made);
        await assertOrdered(later, made);
        const key = ({ identity, seq, type }: RunEvent): string => `${identity.run}/${String(seq).padStart(4)}/${type}`;
        expect(recorded(live).map(key).sort()).toEqual(recorded(later).map(key).sort());
      }),
      { numRuns: 20 },
    );
  });
});
