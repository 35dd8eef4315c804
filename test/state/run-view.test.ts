import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type Json, local, type Run, type Tool, tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';
import { call } from '../kit/decisions.ts';
import { type RecordOptions, record, scripted } from '../kit/recorded.ts';

function made(name: string, more: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `The ${name}`,
    inputSchema: { type: 'object' },
    effect: 'pure',
    execute: () => name,
    ...more,
  };
}

/** Every function that can be reached from a value, by its path. */
function callables(value: unknown, path: string, found: string[] = []): string[] {
  if (typeof value === 'function') found.push(path);
  if (typeof value === 'object' && value !== null) {
    for (const key of Object.keys(value)) callables((value as Record<string, unknown>)[key], `${path}.${key}`, found);
  }
  return found;
}

const isFrozen = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));

describe('the view of a planner', () => {
  it('PC-06 is made afresh for each step, and writing to it throws', async () => {
    const { views } = await record([call('a'), call('a')], { tools: [made('a')] });
    expect(new Set(views).size).toBe(3);
    const [first] = views as [RunView];
    for (const key of Object.keys(first)) {
      expect(() => Object.assign(first, { [key]: 'mine' })).toThrow(TypeError);
    }
    expect(() => Object.assign(first.identity, { user: 'eve' })).toThrow(TypeError);
    expect(() => Object.assign(first.budget, { stepsLeft: 99 })).toThrow(TypeError);
    expect(() => Object.assign(first.trajectory, { count: 99 })).toThrow(TypeError);
  });

  it('PC-06 an attempt to change a step or a list fails and changes nothing for the next step', async () => {
    let failures = 0;
    const attempt = (change: () => void): void => {
      try {
        change();
      } catch {
        failures += 1;
      }
    };
    const spoil = (run: RunView): Decision => {
      attempt(() => (run.trajectory.steps as unknown[]).push('mine'));
      attempt(() => Object.assign(run.trajectory.step(0)?.calls[0]?.outcome as object, { value: 'mine' }));
      attempt(() => Object.assign(run.trajectory.step(0)?.decision as object, { tool: 'mine' }));
      attempt(() => (run.tools.list() as unknown[]).push('mine'));
      attempt(() => Object.assign(run.tools.list()[0]?.inputSchema as object, { type: 'mine' }));
      attempt(() => (run.history as unknown[]).push('mine'));
      attempt(() => (run.controls as unknown[]).push('mine'));
      attempt(() => (run.trajectory.steering as unknown[]).push('mine'));
      attempt(() => (run.trajectory.tasks as unknown[]).push('mine'));
      attempt(() => (run.trajectory.background as unknown[]).push('mine'));
      return call('a');
    };
    const history = [{ role: 'user', text: 'before' }] as const;
    const { views } = await record([call('a'), spoil], { tools: [made('a')], start: { history } });
    expect(failures).toBe(10);
    expect(JSON.stringify(views.at(-1))).not.toContain('mine');
    expect(views.at(-1)?.trajectory.steps[0]).toMatchObject({
      decision: { tool: 'a' },
      calls: [{ outcome: { value: 'a' } }],
    });
  });

  it('TJ-14 an old view does not grow with the run', async () => {
    const { views } = await record([call('a'), call('a')], { tools: [made('a')] });
    const [first, second] = views as [RunView, RunView];
    expect(first.trajectory.steps).toEqual([]);
    expect(first.trajectory.step(0)).toBeUndefined();
    expect(second.trajectory.count).toBe(1);
    expect(second.trajectory.steps).toHaveLength(1);
    expect(second.trajectory.step(1)).toBeUndefined();
    expect(isFrozen(second.trajectory.steps)).toBe(true);
  });

  it('PC-16 has name, description, schema and hints of a tool, and no callable', async () => {
    const given = made('a', { tags: ['t'], scopes: [], reconcile: () => ({ status: 'unknown' }) });
    const { views } = await record([], { tools: [given] });
    const { tools } = views[0] as RunView;
    const plain = {
      name: 'a',
      description: 'The a',
      inputSchema: { type: 'object' },
      effect: 'pure',
      tags: ['t'],
      loading: 'always',
      examples: [],
    };
    expect(tools.list()).toEqual([plain]);
    expect(tools.get('a')).toEqual(plain);
    expect(callables(tools.list(), 'tools')).toEqual([]);
    expect(isFrozen(tools.list())).toBe(true);
  });

  it('PC-17 lists the 3 of 10 tools that the run may see; the other 7 are unknown to it', async () => {
    const tools = Array.from({ length: 10 }, (_, index) =>
      made(`t${index}`, { scopes: index < 3 ? ['base'] : ['base', 'admin'] }),
    );
    const hidden = Array.from({ length: 7 }, (_, index) => call(`t${index + 3}`));
    const { views, entries } = await record(hidden, { tools, scopes: ['base'] });
    const view = views[0] as RunView;
    expect(view.tools.list().map(({ name }) => name)).toEqual(['t0', 't1', 't2']);
    for (let index = 3; index < 10; index += 1) expect(view.tools.get(`t${index}`)).toBeUndefined();
    const outcomes = entries.flatMap((entry) => (entry.kind === 'call_ended' ? [entry.outcome] : []));
    expect(outcomes).toHaveLength(7);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        kind: 'error',
        error: { code: 'tool_not_found', message: expect.stringMatching(/are: t0, t1, t2\.$/) },
      });
    }
  });

  it('PC-18 after a REDIRECT between steps the goal is new and the query is the old one', async () => {
    const journal = memoryJournal();
    let run: Run | undefined;
    let steered: Promise<void> | undefined;
    const steer = tool({
      name: 'steer',
      description: 'd',
      inputSchema: { type: 'object' },
      execute: async () => {
        steered = run?.steer('REDIRECT', { goal: 'the new goal' });
        while ((await journal.inbox(run?.id ?? '')).length === 0) await new Promise(setImmediate);
        return 1;
      },
    });
    const views: RunView[] = [];
    const runtime = createRuntime({ planner: scripted([call('steer')], views), tools: [steer], journal });
    run = await runtime.start('the query', { identity: local('ana') });
    await run.result();
    await steered;
    await runtime.close();
    expect(views.map(({ goal, query }) => [goal, query])).toEqual([
      ['the query', 'the query'],
      ['the new goal', 'the query'],
    ]);
    expect(views[1]?.controls).toMatchObject([{ type: 'REDIRECT' }]);
    expect(views[1]?.trajectory.steering).toMatchObject([
      { atStep: 1, control: { payload: { goal: 'the new goal' } } },
    ]);
  });

  it('PC-19 50 branches are carried out, 51 are refused whole', async () => {
    let calls = 0;
    const count = made('count', {
      execute: () => {
        calls += 1;
        return calls;
      },
    });
    const parallel = (branches: number): Decision => ({
      kind: 'call_parallel',
      branches: Array.from({ length: branches }, () => ({ tool: 'count', args: {} })),
    });
    expect((await record([parallel(50)], { tools: [count] })).result.status).toBe('finished');
    expect(calls).toBe(50);
    const { result } = await record([parallel(51)], { tools: [count] });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'parallel_cap_exceeded' } });
    expect(calls).toBe(50);
  });

  it('the budget left counts down, and never below nothing', async () => {
    const usage = { inputTokens: 60, outputTokens: 60, costMicroUsd: 30 };
    const script = [{ decision: call('a'), usage }, call('a')];
    const limits = { steps: 3, tokens: 1_000, costUsd: 0.0001, deadlineAt: 8_640_000_000_000_000 };
    const { views } = await record(script, { tools: [made('a', { costUsd: 0.000005 })], limits });
    expect(views.map(({ budget }) => budget)).toEqual([
      { stepsLeft: 3, deadlineAt: limits.deadlineAt, costMicroUsdSpent: 0, costMicroUsdLeft: 100, tokensLeft: 1000 },
      { stepsLeft: 2, deadlineAt: limits.deadlineAt, costMicroUsdSpent: 35, costMicroUsdLeft: 65, tokensLeft: 880 },
      { stepsLeft: 1, deadlineAt: limits.deadlineAt, costMicroUsdSpent: 40, costMicroUsdLeft: 60, tokensLeft: 880 },
    ]);
  });

  /** The views of a run with the query `root`, whose tasks finish at once with what they were asked. */
  async function viewsWithTasks(decide: (run: RunView) => Decision, options: RecordOptions = {}): Promise<RunView[]> {
    const done: Decision = { kind: 'finish', reason: 'goal', payload: 'done' };
    const step = (run: RunView): Decision => (run.query === 'root' ? decide(run) : { ...done, payload: run.query });
    const { views } = await record(Array(20).fill(step), { query: 'root', ...options });
    return views.filter(({ query }) => query === 'root');
  }
  const spawn = (task: 'foreground' | 'background', query: string, more: object = {}): Decision => ({
    kind: 'spawn_task',
    task,
    spec: { description: `the ${query}`, query, ...more },
  });
  const finish: Decision = { kind: 'finish', reason: 'goal', payload: 'done' };

  it('TK-34 has the tasks, their groups, and results that came by themselves, frozen', async () => {
    const views = await viewsWithTasks((run) => {
      const { count, background } = run.trajectory;
      if (count < 2) return count === 0 ? spawn('background', 'later') : spawn('foreground', 'now');
      return background.length > 0 ? finish : { kind: 'request_pause', reason: 'external_event' };
    });
    const [first, second] = views as [RunView, RunView];
    expect([first.trajectory.tasks, [...first.trajectory.groups], first.trajectory.background]).toEqual([[], [], []]);
    const id = `${first.identity.run}.0.0`;
    expect(second.trajectory.tasks).toMatchObject([{ id, kind: 'background', description: 'the later', step: 0 }]);
    const { tasks, groups, background } = (views.at(-1) as RunView).trajectory;
    expect(tasks).toMatchObject([{ end: { status: 'complete', result: 'later' } }, { kind: 'foreground' }]);
    expect(groups.get(tasks[0]?.group ?? '')).toMatchObject({ status: 'completed', members: [{ id }] });
    expect(background).toMatchObject([{ group: { members: [{ id, end: { result: 'later' } }] } }]);
    expect([tasks, background, ...groups.values()].every(isFrozen)).toBe(true);
    // Later steps stay out of sight of an old view.
    expect(second.trajectory.tasks[0]?.end).toBeUndefined();
    expect(second.trajectory.background).toEqual([]);
  });

  it('what a planner writes into the groups of one view is in no other, of any run', async () => {
    const sizes: number[] = [];
    const poison = (run: RunView): Decision => {
      const groups = run.trajectory.groups as Map<string, unknown>;
      sizes.push(groups.size);
      groups.set('forged', {});
      sizes.push(run.trajectory.groups.size);
      return finish;
    };
    await record([poison]);
    await record([poison]);
    expect(sizes).toEqual([0, 0, 0, 0]);
  });

  it('the budget left is without what tasks used, and without what is set aside for those under way', async () => {
    const limits = { steps: 10, costUsd: 0.0001 };
    const views = await viewsWithTasks(
      ({ trajectory: { count } }) => {
        if (count === 0) return spawn('foreground', 'now');
        return count === 1 ? spawn('background', 'later', { limits: { steps: 3, costUsd: 0.00004 } }) : finish;
      },
      { limits },
    );
    expect(views.map(({ budget }) => budget.stepsLeft)[0]).toBe(10);
    // The task took no step: it finished at once.
    expect(views[1]?.budget).toEqual({ stepsLeft: 9, costMicroUsdSpent: 0, costMicroUsdLeft: 100 });
    expect(views[2]?.budget.stepsLeft).toBeOneOf([5, 8]);
    expect(views[2]?.budget.costMicroUsdLeft).toBe(views[2]?.budget.stepsLeft === 5 ? 60 : 100);
  });

  it('says whether tasks can be spawned: not at the deepest place', async () => {
    const { views } = await record(
      Array(3).fill(({ trajectory: { count } }: RunView) => (count === 0 ? spawn('foreground', 'q') : finish)),
    );
    const seen = new Map(views.map((view) => [view.identity.run.split('.').length, view.tasks]));
    expect([...seen.values()]).toEqual([true, true, true, true, false]);
  });

  it('says once that the last steps were the same ones over and over', async () => {
    const { views } = await record([call('a'), call('a'), call('a'), call('b')], { tools: [made('a'), made('b')] });
    expect(views.map(({ noProgress }) => noProgress ?? null)).toEqual([
      null,
      null,
      null,
      { period: 1, times: 3 },
      null,
    ]);
  });

  it('a value that the tool changes after it returned it is as it was returned', async () => {
    const kept: { list: number[] } = { list: [1] };
    const { views } = await record(
      [
        call('keeps'),
        () => {
          kept.list.push(2);
          return call('keeps');
        },
      ],
      { tools: [made('keeps', { execute: () => kept })] },
    );
    const values = views.at(-1)?.trajectory.steps.map(({ calls }) => (calls[0]?.outcome as { value: Json }).value);
    expect(values).toEqual([{ list: [1] }, { list: [1, 2] }]);
  });
});
