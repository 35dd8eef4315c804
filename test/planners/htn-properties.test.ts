/** The search against a plain planner on random domains, and the state against a Map. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { findPlan, type HtnDomain, type HtnState, type HtnTask, htnDomain, htnState, type Method } from '#planners/htn';

/** A domain as data: operators change a few keys, tasks give fixed lists. */
interface Small {
  readonly operators: readonly { needs?: [number, number]; sets: [number, number | null][] }[];
  readonly tasks: readonly (readonly { needs?: [number, number]; gives: string[] }[])[];
  readonly todo: readonly string[];
}

const KEYS = ['a', 'b', 'c'];
const OPERATORS = 4;
const TASKS = 4;

const condition = fc.tuple(fc.nat(2), fc.nat(2)) as fc.Arbitrary<[number, number]>;
const effect = fc.tuple(fc.nat(2), fc.option(fc.nat(2))) as fc.Arbitrary<[number, number | null]>;
/** A task gives only tasks that come after it, so that every search ends. */
const method = (task: number): fc.Arbitrary<{ needs?: [number, number]; gives: string[] }> => {
  const names = [
    ...Array.from({ length: OPERATORS }, (_, index) => `o${index}`),
    ...Array.from({ length: TASKS - task - 1 }, (_, index) => `t${task + 1 + index}`),
    'g',
  ];
  return fc.record(
    { needs: condition, gives: fc.array(fc.constantFrom(...names), { maxLength: 3 }) },
    { requiredKeys: ['gives'] },
  );
};
const small: fc.Arbitrary<Small> = fc.record({
  operators: fc.array(
    fc.record({ needs: condition, sets: fc.array(effect, { maxLength: 2 }) }, { requiredKeys: ['sets'] }),
    { minLength: OPERATORS, maxLength: OPERATORS },
  ),
  tasks: fc.tuple(
    ...Array.from({ length: TASKS }, (_, task) => fc.array(method(task), { minLength: 1, maxLength: 3 })),
  ),
  todo: fc.array(fc.constantFrom('t0', 't1', 'o0', 'g'), { minLength: 1, maxLength: 3 }),
});

const START: readonly [string, Json][] = [
  ['a', 0],
  ['b', 1],
];

/** `g`: the goal that the second key is 2, by the operators 1 or 2. */
const taskFor = (name: string): HtnTask => (name === 'g' ? ['goal', 'k', 'b', 2] : [name]);
const GOAL_METHODS = [['o1'], ['o2']];

function domainOf({ operators, tasks }: Small): HtnDomain {
  const holds = (state: HtnState, needs?: [number, number]): boolean =>
    needs === undefined || state.get('k', KEYS[needs[0]] ?? '') === needs[1];
  return htnDomain({
    operators: Object.fromEntries(
      operators.map(({ needs, sets }, index) => [
        `o${index}`,
        (state: HtnState) => {
          // Half of the changes are made before it is found that it does not apply.
          const [first, ...others] = sets;
          if (first !== undefined) change(state, first);
          if (!holds(state, needs)) return false;
          for (const other of others) change(state, other);
          return true;
        },
      ]),
    ),
    tasks: Object.fromEntries(
      tasks.map((methods, index) => [
        `t${index}`,
        methods.map(
          ({ needs, gives }): Method =>
            (state) =>
              holds(state, needs) ? gives.map(taskFor) : undefined,
        ),
      ]),
    ),
    goals: { k: GOAL_METHODS.map((gives) => () => gives.map(taskFor)) },
  });
}

function change(state: HtnState, [key, value]: [number, number | null]): void {
  const name = KEYS[key] ?? '';
  if (value === null) state.table('k').delete(name);
  else state.set('k', name, value);
}

/** The same semantics, as plainly as can be: recursion, and a copy of the state at each action. */
function reference(spec: Small): { plan?: string[]; state?: [string, Json][] } {
  type State = Map<string, Json>;
  const holds = (state: State, needs?: [number, number]): boolean =>
    needs === undefined || state.get(KEYS[needs[0]] ?? '') === needs[1];
  const changed = (state: State, [key, value]: [number, number | null]): void => {
    const name = KEYS[key] ?? '';
    if (value === null) state.delete(name);
    else state.set(name, value);
  };
  const seek = (
    state: State,
    todo: readonly string[],
    plan: string[],
  ): { plan: string[]; state: State } | undefined => {
    const [item, ...rest] = todo;
    if (item === undefined) return { plan, state };
    if (item === 'check') return state.get('b') === 2 ? seek(state, rest, plan) : undefined;
    if (item.startsWith('o')) {
      const { needs, sets } = spec.operators[Number(item.slice(1))] ?? { sets: [] };
      const copy = new Map(state);
      const [first, ...others] = sets;
      if (first !== undefined) changed(copy, first);
      if (!holds(copy, needs)) return undefined;
      for (const other of others) changed(copy, other);
      return seek(copy, rest, [...plan, item]);
    }
    if (item === 'g' && state.get('b') === 2) return seek(state, rest, plan);
    const methods =
      item === 'g'
        ? GOAL_METHODS.map((gives) => ({ gives: [...gives, 'check'] }))
        : (spec.tasks[Number(item.slice(1))] ?? []);
    for (const { gives, ...more } of methods) {
      if (!holds(state, 'needs' in more ? (more.needs as [number, number]) : undefined)) continue;
      const found = seek(state, [...gives, ...rest], plan);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const found = seek(new Map(START), spec.todo, []);
  return found === undefined ? {} : { plan: found.plan, state: [...found.state] };
}

describe('against a plain planner', () => {
  it('AG-35 AG-36 finds the same plan, the same state in the same order, and fails when it does', () => {
    let solved = 0;
    let failed = 0;
    fc.assert(
      fc.property(small, (spec) => {
        const wanted = reference(spec);
        if (wanted.plan === undefined) failed += 1;
        else solved += 1;
        for (const options of [{}, { trace: 1_000 }]) {
          const state = htnState({ k: START });
          const { actions } = findPlan(domainOf(spec), state, spec.todo.map(taskFor), options);
          expect(actions?.map(([name]) => name)).toEqual(wanted.plan);
          expect(state.tables()['k']).toEqual(wanted.state ?? START);
        }
      }),
      { numRuns: 600 },
    );
    // Both kinds were there.
    expect(Math.min(solved, failed)).toBeGreaterThan(30);
  });
});

describe('the state', () => {
  type Change = readonly ['set', string, number] | readonly ['delete', string] | readonly ['mark'] | readonly ['undo'];
  const key = fc.constantFrom('a', 'b', 'c', 'd', '1', '0');
  const changes: fc.Arbitrary<Change[]> = fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.tuple(fc.constant('set' as const), key, fc.nat(3)) },
      { weight: 3, arbitrary: fc.tuple(fc.constant('delete' as const), key) },
      { weight: 2, arbitrary: fc.constant(['mark'] as const) },
      { weight: 2, arbitrary: fc.constant(['undo'] as const) },
    ),
    { maxLength: 60 },
  );

  it('is at each moment what a Map would be, and after an undo what it was, in the same order', () => {
    fc.assert(
      fc.property(changes, (list) => {
        const state = htnState({
          t: [
            ['a', 0],
            ['b', 0],
          ],
          other: [],
        });
        const table = state.table('t');
        let model = new Map<string, Json>([
          ['a', 0],
          ['b', 0],
        ]);
        const marks: { mark: number; model: Map<string, Json> }[] = [];
        for (const [what, name = '', value = 0] of list) {
          if (what === 'set') {
            table.set(name, value);
            model.set(name, value);
          } else if (what === 'delete') {
            table.delete(name);
            model.delete(name);
          } else if (what === 'mark') {
            marks.push({ mark: state.mark(), model: new Map(model) });
          } else {
            const last = marks.pop();
            if (last === undefined) continue;
            state.undo(last.mark);
            ({ model } = last);
          }
          expect([...table.keys()]).toEqual([...model.keys()]);
          expect(state.tables()).toEqual({ t: [...model], other: [] });
          expect(table.size).toBe(model.size);
          expect(table.find((_, held) => held === 2)).toBe([...model].find(([, held]) => held === 2)?.[0]);
        }
      }),
      { numRuns: 500 },
    );
  });
});
