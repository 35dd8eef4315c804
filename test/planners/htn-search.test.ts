/** The search by itself: plans, goals, limits, the trace. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import {
  findPlan,
  type HtnDomain,
  type HtnResult,
  type HtnState,
  type HtnTask,
  htnDomain,
  htnState,
  type Method,
  type SearchOptions,
  traceText,
} from '#planners/htn';

/** One table `flag` with numbers in it. */
const flags = (): HtnState => htnState({ flag: [['v', -1]] });

/** Counts in the table `n`. */
function tick(state: HtnState): boolean {
  state.set('n', 'n', Number(state.get('n', 'n')) + 1);
  return true;
}

const BACKTRACKING: HtnDomain = htnDomain({
  operators: {
    putv: (state, value: number) => {
      state.set('flag', 'v', value);
      return true;
    },
    getv: (state, value: number) => state.get('flag', 'v') === value,
  },
  tasks: {
    put_it: [
      () => [
        ['putv', 0],
        ['getv', 1],
      ],
      () => [
        ['putv', 0],
        ['getv', 0],
      ],
      () => [
        ['putv', 1],
        ['getv', 1],
      ],
    ],
    need0: () => [['getv', 0]],
    need1: () => [['getv', 1]],
    need2: () => [['getv', 2]],
  },
});

describe('AG-36 backtracking', () => {
  const solve = (...tasks: string[]): HtnResult =>
    findPlan(
      BACKTRACKING,
      flags(),
      tasks.map((task): HtnTask => [task]),
    );

  it('AG-36 a method that leads nowhere is followed by the next, also after its task seemed to be done', () => {
    // The reference planner's digests and node counts of these two problems.
    const digest = ({ actions }: HtnResult): string =>
      createHash('sha256').update(JSON.stringify(actions)).digest('hex').slice(0, 16);
    const need0 = solve('put_it', 'need0');
    expect([digest(need0), need0.nodes]).toEqual(['a8e7906aa1458b68', 8]);
    expect(digest(solve('put_it', 'need1'))).toBe('a2091aca1e565820');
  });

  it('AG-36 when all methods fail there is no plan, and the state is as it was', () => {
    const state = flags();
    const result = findPlan(BACKTRACKING, state, [['put_it'], ['need2']]);
    expect(result.actions).toBeUndefined();
    expect(state.tables()).toEqual({ flag: [['v', -1]] });
    expect(state.mark()).toBe(0);
  });

  it('leaves the state as the plan leaves it', () => {
    const state = flags();
    findPlan(BACKTRACKING, state, [['put_it'], ['need1']]);
    expect(state.get('flag', 'v')).toBe(1);
  });

  it('tries a method only when the ones before it have failed', () => {
    const tried: string[] = [];
    const method =
      (name: string, tasks: readonly HtnTask[] | undefined): Method =>
      () => {
        tried.push(name);
        return tasks;
      };
    const domain = htnDomain({
      operators: { no: () => false, yes: () => true },
      tasks: { t: [method('a', undefined), method('b', [['no']]), method('c', [['yes']]), method('d', [['yes']])] },
    });
    expect(findPlan(domain, htnState({}), [['t']]).actions).toEqual([['yes']]);
    expect(tried).toEqual(['a', 'b', 'c']);
  });
});

describe('goals', () => {
  const set = (state: HtnState, key: string, value: Json): boolean => {
    state.set('at', key, value);
    return true;
  };
  const nothing = (): boolean => true;
  const never = (): boolean => false;
  const places = (): HtnState => htnState({ at: [['o', 'here']] });
  const goal = (value: string): HtnTask => ['goal', 'at', 'o', value];

  it('drops a goal that holds already', () => {
    const domain = htnDomain({ operators: { set }, goals: { at: () => [['set', 'o', 'away']] } });
    expect(findPlan(domain, places(), [goal('here')]).actions).toEqual([]);
    // Also one that no method reaches.
    expect(findPlan(htnDomain({ operators: {} }), places(), [goal('here')]).actions).toEqual([]);
    expect(findPlan(htnDomain({ operators: {} }), places(), [goal('there')]).actions).toBeUndefined();
  });

  it('finds the plan of a goal whose first method fails, without anything left of it', () => {
    const goals = {
      at: [
        (): HtnTask[] => [['nothing'], ['never']],
        (_: HtnState, o: string, value: string): HtnTask[] => [['set', o, value]],
      ],
    };
    const domain = htnDomain({ operators: { set, nothing, never }, goals });
    expect(findPlan(domain, places(), [goal('there'), ['nothing']]).actions).toEqual([
      ['set', 'o', 'there'],
      ['nothing'],
    ]);
  });

  it('checks after the subgoals of a method that the goal holds, and tries the next one if not', () => {
    const domain = htnDomain({
      operators: { set, nothing },
      goals: {
        at: {
          forgets: () => [['nothing']],
          does: (_, o: string, value: string) => [['set', o, value]],
        },
      },
    });
    const { actions, trace } = findPlan(domain, places(), [goal('there')], { trace: 100 });
    expect(actions).toEqual([['set', 'o', 'there']]);
    expect(trace?.nodes).toContainEqual(
      expect.objectContaining({ method: 'forgets', status: 'failed', why: 'goal_not_reached' }),
    );
  });
});

describe('limits', () => {
  const countdown = htnDomain({
    operators: { tick: () => true },
    tasks: { count: (_, left: number) => (left === 0 ? [] : [['count', left - 1]]) },
  });
  const limited = (domain: HtnDomain, task: HtnTask, options: SearchOptions = {}): HtnResult =>
    findPlan(domain, htnState({}), [task], options);

  it('AG-36 the depth and the number of nodes are limited with errors of their own', () => {
    expect(limited(countdown, ['count', 31], { depth: 32 }).actions).toEqual([]);
    expect(() => limited(countdown, ['count', 32], { depth: 32 })).toThrow(
      expect.objectContaining({ code: 'htn_depth', data: { task: 'count' } }),
    );
    expect(() => limited(countdown, ['count', 1_000], { nodes: 1_000 })).toThrow(
      expect.objectContaining({ code: 'htn_nodes' }),
    );
    expect(limited(countdown, ['count', 998], { nodes: 1_000 }).actions).toEqual([]);
  });

  it('AG-36 a task that comes to itself with nothing changed is a cycle, which is named', () => {
    const domain = htnDomain({
      operators: {
        on: tick,
        stay: (state) => {
          state.set('n', 'n', 0);
          return true;
        },
      },
      tasks: {
        loop: () => [['loop']],
        same: () => [['stay'], ['same']],
        a: () => [['b', 1]],
        b: () => [['a']],
        changes: (state) => (state.get('n', 'n') === 5 ? [] : [['on'], ['changes']]),
      },
    });
    const state = (): HtnState => htnState({ n: [['n', 0]] });
    for (const options of [{}, { depth: 32 }]) {
      for (const task of ['loop', 'same']) {
        expect(() => findPlan(domain, state(), [[task]], options)).toThrow(
          expect.objectContaining({ code: 'htn_cycle' }),
        );
      }
    }
    expect(() => findPlan(domain, state(), [['a']], { depth: 32 })).toThrow(
      expect.objectContaining({ code: 'htn_cycle', data: { path: ['a', 'b', 'a'] } }),
    );
    // The same task with a state that has changed is none.
    expect(findPlan(domain, state(), [['changes']], { depth: 32 }).actions).toHaveLength(5);
  });

  it('stops when its signal is aborted', () => {
    const abort = new AbortController();
    const reason = new Error('enough');
    const domain = htnDomain({
      operators: {},
      tasks: {
        endless: (_, count: number) => {
          if (count === 10_000) abort.abort(reason);
          return [['endless', count + 1]];
        },
      },
    });
    expect(() => findPlan(domain, htnState({}), [['endless', 0]], { signal: abort.signal })).toThrow(reason);
  });

  it('a plan of 100,000 actions overflows nothing, by a long list, by depth, and with a way back over all of it', () => {
    const length = 100_000;
    const domain = htnDomain({
      operators: {
        tick,
        no: () => false,
      },
      tasks: {
        deep: (_, left: number) => (left === 0 ? [] : [['tick'], ['deep', left - 1]]),
        inside: (_, left: number) => (left === 0 ? [] : [['inside', left - 1], ['tick']]),
        twice: { fails: () => [['deep', length], ['no']], works: () => [['deep', length]] },
        many: () => Array.from({ length }, (): HtnTask => ['tick']),
      },
    });
    for (const name of ['many', 'twice']) {
      const state = htnState({ n: [['n', 0]] });
      const task: HtnTask = [name];
      const { actions, trace } = findPlan(domain, state, [task], { trace: 50 });
      expect([name, actions?.length, state.get('n', 'n'), trace?.nodes.length, trace?.cut]).toEqual([
        name,
        length,
        length,
        50,
        true,
      ]);
    }
    for (const name of ['deep', 'inside']) {
      expect(findPlan(domain, htnState({ n: [['n', 0]] }), [[name, length]]).actions).toHaveLength(length);
    }
  });
});

describe('domains that are not sound', () => {
  it('are refused when they are made', () => {
    const f = (): boolean => true;
    const refused = (spec: Parameters<typeof htnDomain>[0]): unknown => {
      try {
        return htnDomain(spec);
      } catch (error) {
        return error;
      }
    };
    const invalid = expect.objectContaining({ code: 'invalid_config' });
    expect(refused({ operators: { a: f }, tasks: { a: () => [] } })).toEqual(invalid);
    expect(refused({ operators: { goal: f } })).toEqual(invalid);
    expect(refused({ operators: { a: 'f' as never } })).toEqual(invalid);
    expect(refused({ operators: {}, tasks: { t: [undefined as never] } })).toEqual(invalid);
    const same: Method = () => [];
    expect(refused({ operators: {}, tasks: { t: [same, same] } })).toEqual(invalid);
    expect(() => htnState({ a: [] }).table('b')).toThrow(invalid);
  });

  const domain = htnDomain({
    operators: {
      maybe: () => undefined as unknown as boolean,
      throws: () => {
        throw new TypeError('no such thing');
      },
      write: tick,
    },
    tasks: {
      unknown: () => [['nowhere']],
      text: () => 'nowhere' as never,
      noTask: () => [7 as never],
      writes: (state) => (tick(state) ? [] : undefined),
      later: { waits: (() => Promise.resolve([])) as never },
      deep: () => [['write'], ['throws']],
    },
  });

  it.each([
    ['maybe', /operator maybe returned neither true nor false/],
    ['throws', /operator throws failed: no such thing/],
    ['unknown', /method unknown of the task unknown returned nowhere, which the domain does not have/],
    ['text', /method text of the task text must return a list/],
    ['noTask', /returned a value that is not a task/],
    ['writes', /changed the state/],
    ['later', /method waits of the task later returned a promise/],
    ['deep', /operator throws failed/],
    ['nobody', /The todo list returned nobody/],
  ])('%s is an error that names it, and the state is as before', (task, message) => {
    const state = htnState({ n: [['n', 0]] });
    expect(() => findPlan(domain, state, [[task]])).toThrow(
      expect.objectContaining({ code: 'htn_invalid_decomposition', message: expect.stringMatching(message) }),
    );
    if (task !== 'writes') expect(state.tables()).toEqual({ n: [['n', 0]] });
  });
});

describe('the trace', () => {
  it('shows the tree with what was tried in vain, as a text too', () => {
    const { trace } = findPlan(BACKTRACKING, flags(), [['put_it'], ['need1']], { trace: 100 });
    expect(trace && traceText(trace).split('\n')).toEqual([
      '✓ put_it()',
      '  ✗ by method 1: at getv(1), its precondition does not hold',
      '    ✓ putv(0)',
      '    ✗ getv(1): its precondition does not hold',
      '  ✗ by method 2: at getv(1), its precondition does not hold',
      '    ✓ putv(0)',
      '    ✓ getv(0)',
      '  ✓ by method 3',
      '    ✓ putv(1)',
      '    ✓ getv(1)',
      '✓ need1()',
      '  ✓ by need1',
      '    ✓ getv(1)',
    ]);
    expect(JSON.parse(JSON.stringify(trace))).toEqual(trace);
  });

  it('says what was not looked at when there is no plan', () => {
    const domain = htnDomain({
      operators: { no: () => false, yes: () => true },
      tasks: { t: { never: () => undefined, tries: () => [['yes'], ['u'], ['yes']] }, u: () => [['no'], ['yes']] },
    });
    const { actions, trace } = findPlan(domain, htnState({}), [['t'], ['yes']], { trace: 100 });
    expect(actions).toBeUndefined();
    expect(trace && traceText(trace).split('\n')).toEqual([
      '✗ t()',
      '  ✗ by never: does not apply',
      '  ✗ by tries: at no(), its precondition does not hold',
      '    ✓ yes()',
      '    ✗ u()',
      '      ✗ by u: at no(), its precondition does not hold',
      '        ✗ no(): its precondition does not hold',
      '        · yes()',
      '    · yes()',
      '· yes()',
    ]);
  });
});
