/** The HTN benchmark: its domains and its validator. Its program: `htn-bench.soak.test.ts`. No data but its own. */
import { describe, expect, it } from 'vitest';
import { floorPlan } from '../../bench/htn/floor.ts';
import { blocksProblem, choiceProblem, hanoiProblem } from '../../bench/htn/generate.ts';
import { digestOf, planner } from '../../bench/htn/planning.ts';
import type { Action, Problem } from '../../bench/htn/problem.ts';
import { faultOfPlan } from '../../bench/htn/validate.ts';

const LOGISTICS_STATE: Problem['state'] = {
  packages: ['o1', 'o2'],
  trucks: ['t1', 't2'],
  airplanes: ['p1'],
  locations: ['c1-l1', 'c1-l2', 'c2-l1', 'c2-l2'],
  airports: ['c1-l1', 'c2-l1'],
  cities: ['c1', 'c2'],
  at: [
    ['o1', 'c1-l2'],
    ['o2', 'c2-l2'],
  ],
  truck_at: [
    ['t1', 'c1-l2'],
    ['t2', 'c2-l1'],
  ],
  plane_at: [['p1', 'c2-l1']],
  in_city: [
    ['c1-l1', 'c1'],
    ['c1-l2', 'c1'],
    ['c2-l1', 'c2'],
    ['c2-l2', 'c2'],
  ],
};

function problem(domain: string, state: Problem['state'], todo: Problem['todo']): Problem {
  return { name: domain, domain, state, goals: {}, todo };
}

function planOf(given: Problem): Action[] {
  const plan = planner(given)();
  if (plan === undefined) throw new Error(`${given.name}: no plan`);
  return plan;
}

describe('the domains of the HTN benchmark', () => {
  const generated = [
    ...[1, 2, 3, 4, 5].map((seed) => blocksProblem(12, seed)),
    blocksProblem(60, 1),
    hanoiProblem(6),
    choiceProblem(6, 2),
    choiceProblem(4, 4),
  ];
  for (const given of generated) {
    it(`${given.name}: the plan of the floor, and a valid one`, () => {
      const plan = planOf(given);
      expect(faultOfPlan(given, plan)).toBeUndefined();
      expect(digestOf(plan)).toBe(digestOf(floorPlan(given) ?? []));
    });
  }

  it('hanoi has the shortest plan there is', () => {
    expect(planOf(hanoiProblem(6))).toHaveLength(2 ** 6 - 1);
  });

  it('logistics has the same plan by goals and by tasks', () => {
    const byGoals = problem('logistics_hgn', LOGISTICS_STATE, [
      ['at', 'o1', 'c2-l2'],
      ['at', 'o2', 'c2-l1'],
    ]);
    const byTasks = problem('logistics_htn', LOGISTICS_STATE, [
      ['deliver', 'o1', 'c2-l2'],
      ['deliver', 'o2', 'c2-l1'],
    ]);
    const plan = planOf(byTasks);
    expect(plan.slice(0, 5)).toEqual([
      ['load_truck', 'o1', 't1'],
      ['drive_truck', 't1', 'c1-l1'],
      ['unload_truck', 'o1', 'c1-l1'],
      ['fly_plane', 'p1', 'c1-l1'],
      ['load_plane', 'o1', 'p1'],
    ]);
    expect(planOf(byGoals)).toEqual(plan);
    expect(faultOfPlan(byTasks, plan)).toBeUndefined();
    expect(faultOfPlan(byGoals, plan)).toBeUndefined();
  });

  it('travel: alice takes a taxi, bob walks', () => {
    const given = problem(
      'simple_htn',
      {
        loc: [
          ['alice', 'home_a'],
          ['bob', 'home_b'],
          ['taxi1', 'park'],
          ['taxi2', 'station'],
        ],
        cash: [
          ['alice', 20],
          ['bob', 15],
        ],
        owe: [
          ['alice', 0],
          ['bob', 0],
        ],
      },
      [
        ['travel', 'alice', 'park'],
        ['travel', 'bob', 'park'],
      ],
    );
    const plan = planOf(given);
    expect(plan).toEqual([
      ['call_taxi', 'alice', 'home_a'],
      ['ride_taxi', 'alice', 'park'],
      ['pay_driver', 'alice', 'park'],
      ['walk', 'bob', 'home_b', 'park'],
    ]);
    expect(faultOfPlan(given, plan)).toBeUndefined();
  });

  for (const [need, value] of [
    ['need0', 0],
    ['need01', 0],
    ['need10', 0],
    ['need1', 1],
  ] as const) {
    it(`backtracking: ${need}`, () => {
      const given = problem('backtracking_htn', { flag: { scalar: -1 } }, [['put_it'], [need]]);
      const plan = planOf(given);
      expect(plan).toEqual([
        ['putv', value],
        ['getv', value],
        ['getv', value],
      ]);
      expect(faultOfPlan(given, plan)).toBeUndefined();
    });
  }
});

describe('the validator', () => {
  const blocks = blocksProblem(10, 3);
  const plan = planOf(blocks);

  it('finds each action that is left out', () => {
    for (const index of plan.keys()) {
      expect(
        faultOfPlan(
          blocks,
          plan.filter((_, at) => at !== index),
        ),
      ).toBeDefined();
    }
  });

  it('finds two actions that changed places', () => {
    for (let index = 0; index + 1 < plan.length; index += 1) {
      const swapped = plan.with(index, plan[index + 1] ?? ['']).with(index + 1, plan[index] ?? ['']);
      expect(faultOfPlan(blocks, swapped)).toBeDefined();
    }
  });

  it('says which action is wrong, and how', () => {
    expect(faultOfPlan(hanoiProblem(2), [['move', 'd2', 'peg1', 'peg3']])).toBe(
      'action 1, ["move","d2","peg1","peg3"]: its precondition does not hold',
    );
    expect(faultOfPlan(hanoiProblem(1), [['fly', 'd1']])).toBe('action 1, ["fly","d1"]: no such operator');
    expect(faultOfPlan(hanoiProblem(1), [['move', 'd1']])).toBe('action 1, ["move","d1"]: 3 arguments expected');
    expect(faultOfPlan(hanoiProblem(1), [])).toBe('at the end d1 is not at peg3');
  });
});
