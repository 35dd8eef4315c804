/** The schedule of a graph of branches, beside a model that looks at every branch at every turn. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type CallRecord,
  dependenciesOf,
  errorOf,
  type Join,
  jsonEquals,
  type Outcome,
  type Route,
  referencesIn,
} from '#core';
import { type Ended, Schedule } from '#runtime';
import { seededRandom } from '#testing';
import { boundMs, RANDOM_GRAPHS, randomGraph, virtualMs } from '../../bench/dag-graphs.ts';

const value = (given: number): Outcome => ({ kind: 'value', value: given });
const FAILED: Outcome = { kind: 'error', error: { code: 'tool_failed', message: 'no' } };
const UNKNOWN: Outcome = { kind: 'unknown', error: { code: 'outcome_unknown', message: 'no' } };
const REMOVED: Outcome = { kind: 'skipped', error: { code: 'node_removed', message: 'no' } };
const anyTool = (): boolean => true;

const record = (outcome: Outcome): CallRecord => ({ outcome, endedAt: 1, attempts: 1, seq: 2 });

function scheduleOf(
  branches: readonly Branch[],
  more: { concurrency?: number; join?: Join; plan?: string; failFast?: true } = {},
): Schedule {
  const schedule = new Schedule({ plan: 'p', ...more });
  schedule.grow(branches, []);
  return schedule;
}

const node = (id: string, after: string[] = [], more: Partial<Branch> = {}): Branch => ({
  id,
  tool: 't',
  args: {},
  after,
  ...more,
});

/** All that may start now. */
function startsOf(schedule: Schedule, mayStart: (tool: string) => boolean = anyTool): number[] {
  const starts: number[] = [];
  for (let call = schedule.next(mayStart); call !== undefined; call = schedule.next(mayStart)) starts.push(call);
  return starts;
}

describe('the order', () => {
  it('begins with the longest chain, and goes by index among equals', () => {
    const list = [
      node('a'),
      node('b'),
      node('c', ['b']),
      node('d', ['c']),
      node('e'),
      node('f', ['e']),
      node('g', ['e']),
    ];
    expect(startsOf(scheduleOf(list))).toEqual([1, 4, 0]);
  });

  it('is that of the indices when branches run one at a time', () => {
    expect(startsOf(scheduleOf([node('a'), node('b'), node('c', ['b'])], { concurrency: 1 }))).toEqual([0, 1]);
  });

  it('is another one when what was added makes a chain longer, through branches that wait and one that is ready', () => {
    const schedule = scheduleOf([node('a'), node('b'), node('c', ['b']), node('d')]);
    schedule.grow([node('e', ['d']), node('f', ['e']), node('g', ['f']), node('h', ['c'])], []);
    expect(startsOf(schedule)).toEqual([3, 1, 0]);
  });

  it('is another one also for the only two that are ready', () => {
    const schedule = scheduleOf([node('a'), node('b')]);
    schedule.grow([node('c', ['b'])], []);
    expect(startsOf(schedule)).toEqual([1, 0]);
  });

  it.each([
    [{ concurrency: 60, plan: 'p' }, 50],
    [{ concurrency: 30, plan: 'p' }, 30],
    [{ plan: 'p' }, 50],
    [{ concurrency: 60 }, 50],
    [{ concurrency: 30 }, 30],
    [{}, 50],
  ])('PX-22, AG-44 the call %j has at most %i at once', (call, most) => {
    expect(new Schedule(call).concurrency).toBe(most);
  });

  it('gives each place of a tool that has few to the first in line, and never waits behind a tool that is full', () => {
    const slow = { tool: 'slow' };
    const schedule = scheduleOf([
      node('a', [], slow),
      node('b', [], slow),
      node('c', [], slow),
      node('d'),
      node('e', ['b']),
    ]);
    let busy = 0;
    const oneSlow = (tool: string): boolean => {
      if (tool !== 'slow') return true;
      busy += 1;
      return busy === 1;
    };
    expect(startsOf(schedule, oneSlow)).toEqual([1, 3]);
    busy = 0;
    schedule.ended([{ call: 1, outcome: value(1) }]);
    expect(startsOf(schedule, oneSlow)).toEqual([0, 4]);
    busy = 0;
    schedule.park(0);
    expect(startsOf(schedule, oneSlow)).toEqual([2]);
  });
});

describe('AG-42 what will never run', () => {
  it('is a chain of 10,000 behind a failure, all at once', () => {
    const chain = Array.from({ length: 10_000 }, (_, index) => node(`n${index}`, index === 0 ? [] : [`n${index - 1}`]));
    const schedule = scheduleOf(chain.reverse());
    expect(startsOf(schedule)).toEqual([9_999]);
    schedule.ended([{ call: 9_999, outcome: FAILED }]);
    const settled = schedule.takeSettled();
    expect(settled).toHaveLength(9_999);
    expect(settled[0]?.outcome).toMatchObject({
      kind: 'skipped',
      error: { code: 'branch_not_started', data: { branch: 9_999 } },
    });
    expect(schedule.open).toBe(0);
  });

  it('names the first of its needs that failed, whichever failed first', () => {
    const schedule = scheduleOf([node('a'), node('b'), node('c', ['a', 'b'])]);
    startsOf(schedule);
    schedule.ended([{ call: 1, outcome: FAILED }]);
    expect(schedule.takeSettled()).toEqual([]);
    schedule.ended([{ call: 0, outcome: FAILED }]);
    expect(schedule.takeSettled()).toMatchObject([{ call: 2, outcome: { error: { data: { branch: 0 } } } }]);
  });
});

describe('AG-41 made again from the records', () => {
  it('goes on where it was: nothing that has ended is started or settled again', () => {
    const list = [node('a'), node('b', ['a']), node('c', ['a']), node('d', ['c']), node('e', ['b']), node('f', ['d'])];
    const ends = new Map<number, Outcome>([
      [0, value(1)],
      [1, value(1)],
      [2, FAILED],
      [3, { kind: 'skipped', error: { code: 'branch_not_started', message: 'm' } }],
    ]);
    const records = list.map((_, call): CallRecord | null => {
      const outcome = ends.get(call);
      return outcome === undefined ? null : record(outcome);
    });
    const schedule = new Schedule({ plan: 'p' });
    schedule.grow(list, records);
    expect(schedule.takeSettled()).toMatchObject([{ call: 5, outcome: { error: { data: { branch: 3 } } } }]);
    expect(startsOf(schedule)).toEqual([4]);
    expect(schedule.open).toBe(1);
  });
});

describe('AG-45 the end of a plan', () => {
  it('settles all that has not been started, also what is added later; what runs is for others to stop', () => {
    const schedule = scheduleOf([node('a'), node('end', [], { tool: '_finish' }), node('c', ['a']), node('d')]);
    expect(startsOf(schedule)).toEqual([0, 1, 3]);
    schedule.park(3);
    expect(schedule.isMet).toBe(false);
    schedule.ended([{ call: 1, outcome: value(1) }]);
    expect(schedule.isMet).toBe(true);
    const settled = schedule.takeSettled();
    expect(settled.map(({ call }) => call).sort()).toEqual([2, 3]);
    expect(settled.every(({ outcome }) => outcome.kind === 'cancelled')).toBe(true);
    schedule.grow([node('f', ['a'])], []);
    expect(schedule.takeSettled()).toMatchObject([{ call: 4, outcome: { kind: 'cancelled' } }]);
    expect(schedule.open).toBe(1);
  });

  it('is known again from the records: nothing is started any more', () => {
    const schedule = new Schedule({ plan: 'p' });
    schedule.grow([node('a'), node('end', [], { tool: '_finish' })], [null, record(value(1))]);
    expect(startsOf(schedule)).toEqual([]);
    expect(schedule.takeSettled()).toMatchObject([{ call: 0, outcome: { kind: 'cancelled' } }]);
  });

  it('is none when the finish fails, and none without a plan', () => {
    const list = [node('a'), node('end', [], { tool: '_finish' })];
    const failed = scheduleOf(list);
    startsOf(failed);
    failed.ended([{ call: 1, outcome: FAILED }]);
    expect(failed.isMet).toBe(false);
    const unplanned = new Schedule({});
    unplanned.grow(list, []);
    startsOf(unplanned);
    unplanned.ended([{ call: 1, outcome: value(1) }]);
    expect(unplanned.isMet).toBe(false);
  });
});

const routed = (id: string, ...routes: Route[]): Branch => ({ id, tool: 't', args: null, routes });
const way = (need: string, equals?: number): Route => ({
  args: { $from: need },
  ...(equals === undefined ? {} : { when: { branch: 'r', equals } }),
});

describe('a branch with routes', () => {
  const list = [
    node('r'),
    node('a', [], { when: { branch: 'r', equals: 1 } }),
    node('b'),
    routed('m', way('a'), way('b')),
  ];

  it('waits for all that its routes need, whatever that comes to, and takes an open one', () => {
    const schedule = scheduleOf(list);
    expect(startsOf(schedule)).toEqual([0, 2]);
    schedule.ended([{ call: 2, outcome: value(1) }]);
    expect(startsOf(schedule)).toEqual([]);
    schedule.ended([{ call: 0, outcome: value(2) }]);
    expect(schedule.takeSettled()).toMatchObject([{ call: 1, outcome: { error: { data: { branch: 0 } } } }]);
    expect(startsOf(schedule)).toEqual([3]);
  });

  it('names of its needs the one that failed, also when that failed for another one', () => {
    const chain = [node('f'), node('x', ['f']), ...list.slice(0, 2), routed('m', way('a'), way('x'))];
    const schedule = scheduleOf(chain);
    startsOf(schedule);
    schedule.ended([
      { call: 2, outcome: value(2) },
      { call: 0, outcome: FAILED },
    ]);
    const settled = schedule.takeSettled();
    expect(settled.find(({ call }) => call === 4)?.outcome).toMatchObject({
      kind: 'skipped',
      error: { code: 'branch_not_started', data: { branch: 1 } },
    });
  });

  it('is passed over when nothing failed: it names what its first route waited for', () => {
    const schedule = scheduleOf([...list.slice(0, 2), routed('m', way('a'), way('r', 5)), routed('n', way('r', 5))]);
    startsOf(schedule);
    schedule.ended([{ call: 0, outcome: value(2) }]);
    const causes = schedule.takeSettled().map(({ call, outcome }) => [call, errorOf(outcome)?.data?.['branch']]);
    expect(causes.sort()).toEqual([
      [1, 0],
      [2, 1],
      [3, 0],
    ]);
  });
});

describe('a call that fails fast', () => {
  it.each([
    ['an error', FAILED],
    ['an outcome that nobody knows', UNKNOWN],
  ])('stops all that has not ended at %s, parked calls too', (_, outcome) => {
    const schedule = scheduleOf([node('a'), node('b', ['a']), node('c'), node('d')], { failFast: true });
    startsOf(schedule);
    schedule.park(3);
    schedule.ended([{ call: 0, outcome }]);
    expect(schedule.isMet).toBe(true);
    expect(schedule.takeSettled().map(({ call, outcome: made }) => [call, made.kind])).toEqual([
      [1, 'cancelled'],
      [3, 'cancelled'],
    ]);
    expect(schedule.open).toBe(1);
  });

  it('goes on when a branch is cancelled or passed over, and without failFast whatever happens', () => {
    const list = [node('a'), node('b', [], { when: { branch: 'a', equals: 5 } }), node('c', ['a'])];
    const schedule = scheduleOf(list, { failFast: true });
    startsOf(schedule);
    schedule.ended([{ call: 0, outcome: value(1) }]);
    expect([schedule.isMet, startsOf(schedule)]).toEqual([false, [2]]);
    const slow = scheduleOf([node('a'), node('b')]);
    startsOf(slow);
    slow.ended([{ call: 0, outcome: FAILED }]);
    expect(slow.isMet).toBe(false);
  });
});

describe('a plan that is given up for another goal', () => {
  it('starts nothing more but calls that were cut off; parked ones stay, and are left out when their turn comes', () => {
    const schedule = scheduleOf([node('a'), node('cut'), node('ask'), node('b', ['a']), node('c', ['cut'])], {
      concurrency: 9,
    });
    schedule.park(2);
    schedule.redirect([1]);
    expect(schedule.takeSettled().map(({ call, outcome }) => [call, outcome.kind])).toEqual([
      [0, 'skipped'],
      [3, 'skipped'],
      [4, 'skipped'],
    ]);
    expect(startsOf(schedule)).toEqual([1]);
    schedule.ended([{ call: 1, outcome: value(1) }]);
    schedule.unpark(2);
    expect(schedule.takeSettled()).toMatchObject([{ call: 2, outcome: { error: { code: 'plan_redirected' } } }]);
    expect(schedule.open).toBe(0);
  });
});

describe('the time it takes', () => {
  it.each(
    RANDOM_GRAPHS.map((graph) => [graph.name, graph] as const),
  )('is the least possible for %s, tasks of one length, 50 at once', (_, graph) => {
    expect(virtualMs(graph)).toBe(boundMs(graph));
  });

  it('is the least possible for other graphs of these kinds', () => {
    for (let seed = 2; seed < 12; seed += 1) {
      for (const shape of ['wide', 'deep'] as const) {
        const graph = randomGraph(shape, 1_000, seed);
        expect([shape, seed, virtualMs(graph)]).toEqual([shape, seed, boundMs(graph)]);
      }
    }
  });
});

interface Scene {
  readonly branches: readonly Branch[];
  /** How many there are at first, and after each growth. */
  readonly sizes: readonly number[];
  readonly concurrency: number;
  readonly join: Join | undefined;
  readonly plan: boolean;
  readonly failFast: boolean;
  readonly seed: number;
}

const LIMITS: Readonly<Record<string, number>> = { one: 1, two: 2 };

const scenes: fc.Arbitrary<Scene> = fc
  .record({
    raw: fc.array(
      fc.record({
        picks: fc.array(fc.nat(), { maxLength: 3 }),
        routed: fc.option(fc.record({ pick: fc.nat(), equals: fc.nat(1) }), { freq: 4 }),
        routes: fc.option(
          fc.array(
            fc.record({
              after: fc.array(fc.nat(), { maxLength: 2 }),
              from: fc.option(fc.nat()),
              when: fc.option(fc.record({ pick: fc.nat(), equals: fc.nat(1) })),
            }),
            { minLength: 1, maxLength: 3 },
          ),
          { freq: 3 },
        ),
        tool: fc.constantFrom('any', 'any', 'any', 'one', 'two', 'two', '_finish'),
      }),
      { minLength: 1, maxLength: 24 },
    ),
    cuts: fc.array(fc.nat(), { maxLength: 3 }),
    concurrency: fc.integer({ min: 1, max: 6 }),
    wanted: fc.option(fc.integer({ min: 1, max: 6 }), { freq: 2 }),
    plan: fc.boolean(),
    failFast: fc.constantFrom(true, false, false),
    seed: fc.nat(),
  })
  .map(({ raw, cuts, concurrency, wanted, plan, failFast, seed }) => {
    const branches = raw.map(({ picks, routed, routes, tool }, index): Branch => {
      const id = (pick: number): string => `n${pick % index}`;
      if (routes !== null && index > 0) {
        const ways = routes.map(
          ({ after: others, from, when: condition }): Route => ({
            args: from === null ? {} : { $from: id(from) },
            after: others.map(id),
            ...(condition === null ? {} : { when: { branch: id(condition.pick), equals: condition.equals } }),
          }),
        );
        return { id: `n${index}`, tool: tool === '_finish' ? 'any' : tool, args: null, routes: ways };
      }
      const after = index === 0 ? [] : [...new Set(picks.map((pick) => `n${pick % index}`))];
      const when =
        routed === null || index === 0 ? {} : { when: { branch: `n${routed.pick % index}`, equals: routed.equals } };
      return node(`n${index}`, after, { tool: tool === '_finish' && index % 3 > 0 ? 'any' : tool, ...when });
    });
    const sizes = [...new Set([...cuts.map((cut) => 1 + (cut % raw.length)), raw.length])].sort((a, b) => a - b);
    // What is there at first may stand in any order.
    const first = seededShuffle(branches.slice(0, sizes[0]), seed);
    const join: Join | undefined = wanted === null ? undefined : { kind: 'n', n: wanted };
    return { branches: [...first, ...branches.slice(sizes[0])], sizes, concurrency, join, plan, failFast, seed };
  });

function seededShuffle<T>(items: readonly T[], seed: number): T[] {
  const random = seededRandom(seed);
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** The same judgement, made from nothing at every turn. */
class Model {
  readonly running: number[] = [];
  readonly parked: number[] = [];
  readonly outcomes: (Outcome | undefined)[] = [];
  isRedirected = false;
  #branches: readonly Branch[] = [];
  readonly #chains: number[] = [];
  readonly #scene: Scene;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  grow(size: number): void {
    this.#branches = this.#scene.branches.slice(0, size);
    while (this.outcomes.length < size) {
      this.outcomes.push(undefined);
      this.#chains.push(0);
    }
    if (this.#scene.concurrency === 1) return;
    for (let changed = true; changed; ) {
      changed = false;
      for (const call of this.#branches.keys()) {
        for (const need of this.#needs(call)) {
          if (this.#chain(need) > this.#chain(call)) continue;
          this.#chains[need] = this.#chain(call) + 1;
          changed = true;
        }
      }
    }
  }

  get isMet(): boolean {
    const { join, plan, failFast } = this.#scene;
    const values = this.#branches.filter((_, call) => this.outcomes[call]?.kind === 'value');
    if (failFast && this.outcomes.some((outcome) => outcome?.kind === 'error' || outcome?.kind === 'unknown'))
      return true;
    return (plan && values.some(({ tool }) => tool === '_finish')) || (join?.kind === 'n' && values.length >= join.n);
  }

  get open(): number {
    return this.#branches.filter((_, call) => this.outcomes[call] === undefined).length;
  }

  /** Those that somebody may take out. */
  get waiting(): number[] {
    return [...this.#branches.keys()].filter((call) => this.#isIdle(call) && !this.parked.includes(call));
  }

  settle(): Ended[] {
    const settled: Ended[] = [];
    for (let before = -1; before !== settled.length; ) {
      before = settled.length;
      for (const call of this.#branches.keys()) {
        const outcome = this.#isIdle(call) ? this.#judge(call) : undefined;
        if (typeof outcome !== 'object') continue;
        this.outcomes[call] = outcome;
        this.#forget(call);
        settled.push({ call, outcome });
      }
    }
    return settled;
  }

  start(): number | undefined {
    if (this.running.length >= this.#scene.concurrency) return undefined;
    const ready = [...this.#branches.keys()].filter(
      (call) =>
        this.#isIdle(call) &&
        !this.parked.includes(call) &&
        this.#judge(call) === 'ready' &&
        this.hasRoom(this.#tool(call)),
    );
    ready.sort((a, b) => this.#chain(b) - this.#chain(a) || a - b);
    const [call] = ready;
    if (call !== undefined) this.running.push(call);
    return call;
  }

  hasRoom(tool: string): boolean {
    return this.running.filter((call) => this.#tool(call) === tool).length < (LIMITS[tool] ?? Number.POSITIVE_INFINITY);
  }

  end(call: number, outcome: Outcome): void {
    this.#forget(call);
    this.outcomes[call] = outcome;
  }

  park(call: number): void {
    this.#forget(call);
    this.parked.push(call);
  }

  unpark(call: number): void {
    this.#forget(call);
  }

  #judge(call: number): 'ready' | 'wait' | Outcome {
    if (this.isMet) return { kind: 'cancelled', error: { code: 'cancelled', message: expect.any(String) } };
    if (this.parked.includes(call)) return 'wait';
    if (this.isRedirected) return { kind: 'skipped', error: { code: 'plan_redirected', message: expect.any(String) } };
    const skipped = (message: string, branch: number): Outcome => ({
      kind: 'skipped',
      error: { code: 'branch_not_started', message, data: { branch } },
    });
    const { when, routes } = this.#branches[call] as Branch;
    if (routes !== undefined) return this.#judgeRoutes(call, routes);
    for (const need of this.#needs(call)) {
      const outcome = this.outcomes[need];
      if (outcome === undefined) return 'wait';
      if (outcome.kind !== 'value')
        return skipped(`The branch needs branch ${need}, which did not end with a value.`, need);
    }
    if (when === undefined) return 'ready';
    const route = this.#index(when.branch);
    const outcome = this.outcomes[route];
    const holds = outcome?.kind === 'value' && jsonEquals(outcome.value, when.equals);
    return holds ? 'ready' : skipped(`The condition on branch ${route} does not hold.`, route);
  }

  #judgeRoutes(call: number, routes: readonly Route[]): 'ready' | 'wait' | Outcome {
    const needs = this.#needs(call);
    if (needs.some((need) => this.outcomes[need] === undefined)) return 'wait';
    // Of each route the first need that closes it.
    const closed = routes.map(({ args, after = [], when }) => {
      const ids = [...after, ...(when === undefined ? [] : [when.branch]), ...referencesIn(args)];
      const without = ids.find((id) => this.outcomes[this.#index(id)]?.kind !== 'value');
      if (without !== undefined || when === undefined) return without;
      const outcome = this.outcomes[this.#index(when.branch)];
      return outcome?.kind === 'value' && jsonEquals(outcome.value, when.equals) ? undefined : when.branch;
    });
    if (closed.includes(undefined)) return 'ready';
    const branch = needs.find((need) => this.#isLost(need)) ?? this.#index(closed[0] as string);
    return { kind: 'skipped', error: { code: 'branch_not_started', message: expect.any(String), data: { branch } } };
  }

  #isLost(call: number): boolean {
    const outcome = this.outcomes[call];
    if (outcome?.kind !== 'skipped') return outcome?.kind !== 'value';
    const cause = outcome.error.data?.['branch'];
    return typeof cause === 'number' ? this.#isLost(cause) : outcome.error.code !== 'node_removed';
  }

  #isIdle(call: number): boolean {
    return this.outcomes[call] === undefined && !this.running.includes(call);
  }

  #forget(call: number): void {
    for (const list of [this.running, this.parked]) if (list.includes(call)) list.splice(list.indexOf(call), 1);
  }

  #needs(call: number): number[] {
    return dependenciesOf(this.#branches[call] as Branch).map((id) => this.#index(id));
  }

  #index(id: string): number {
    return this.#branches.findIndex((branch) => branch.id === id);
  }

  #tool(call: number): string {
    return this.#branches[call]?.tool ?? '';
  }

  #chain(call: number): number {
    return this.#chains[call] ?? 0;
  }
}

const byCall = (a: Ended, b: Ended): number => a.call - b.call;

describe('any graph', () => {
  it('AG-40, AG-42 is carried out as the model does it: failures, conditions, limits, joins, ends, growth, parked calls, routes, crashes', () => {
    const seen = { settled: 0, parked: 0, grown: 0, redirected: 0, met: 0, crashed: 0, routes: 0, removed: 0 };
    fc.assert(
      fc.property(scenes, (scene) => {
        const { branches, sizes, concurrency, join, plan, failFast, seed } = scene;
        const random = seededRandom(seed);
        const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
        const model = new Model(scene);
        const how = {
          concurrency,
          ...(join === undefined ? {} : { join }),
          ...(plan ? { plan: 'p' } : {}),
          ...(failFast ? { failFast } : {}),
        };
        let schedule = new Schedule(how);
        // Another process has the records alone: what was running may be run again.
        const crash = (): void => {
          model.running.length = 0;
          const records = model.outcomes.map((outcome) => (outcome === undefined ? null : record(outcome)));
          const { size } = schedule;
          schedule = new Schedule(how);
          if (model.isRedirected) schedule.redirect(model.parked);
          schedule.grow(branches.slice(0, size), records);
          for (const call of model.parked) schedule.park(call);
        };
        const grow = (size: number): void => {
          schedule.grow(branches.slice(schedule.size, size), []);
          model.grow(size);
        };
        const left = [...sizes];
        grow(left.shift() ?? 0);
        for (let turn = 0; model.open > 0 || left.length > 0; turn += 1) {
          expect(turn).toBeLessThan(1_000);
          if (random() < 0.1) {
            crash();
            seen.crashed += 1;
          }
          const settled = model.settle();
          seen.routes += settled.filter(({ call }) => branches[call]?.routes !== undefined).length;
          expect([...schedule.takeSettled()].sort(byCall)).toEqual(settled.sort(byCall));
          seen.settled += settled.length;
          expect([schedule.open, schedule.isMet]).toEqual([model.open, model.isMet]);
          if (model.isMet) seen.met += 1;
          const running = [...model.running];
          for (let call = model.start(); call !== undefined; call = model.start()) {
            const own = model.running.pop();
            expect(schedule.next((tool) => model.hasRoom(tool))).toBe(own);
            model.running.push(call);
          }
          expect(model.running.length).toBeLessThanOrEqual(concurrency);
          if (model.running.length < concurrency) expect(schedule.next((tool) => model.hasRoom(tool))).toBeUndefined();
          expect(running.every((call) => !schedule.hasEnded(call))).toBe(true);
          const chance = random();
          if (left.length > 0 && (chance < 0.3 || model.running.length + model.parked.length === 0)) {
            grow(left.shift() as number);
            seen.grown += 1;
          } else if (model.parked.length > 0 && (chance < 0.45 || model.running.length === 0)) {
            const call = pick(model.parked);
            schedule.unpark(call);
            model.unpark(call);
          } else if (model.running.length > 0 && chance < 0.55) {
            const call = pick(model.running);
            schedule.park(call);
            model.park(call);
            seen.parked += 1;
          } else if (model.waiting.length > 0 && chance < 0.57) {
            const call = pick(model.waiting);
            model.end(call, REMOVED);
            schedule.ended([{ call, outcome: REMOVED }]);
            seen.removed += 1;
          } else if (plan && !model.isMet && chance < 0.59) {
            schedule.redirect([]);
            model.isRedirected = true;
            seen.redirected += 1;
          } else {
            const ends = [...new Set(model.running.length > 0 ? [pick(model.running), pick(model.running)] : [])].map(
              (call): Ended => ({
                call,
                outcome: random() < 0.15 ? pick([FAILED, UNKNOWN]) : value(random() < 0.7 ? 1 : 0),
              }),
            );
            for (const { call, outcome } of ends) model.end(call, outcome);
            schedule.ended(ends);
          }
        }
        expect(schedule.takeSettled()).toEqual([]);
        expect([schedule.open, schedule.parked.size, model.outcomes.length]).toEqual([0, 0, branches.length]);
      }),
      { numRuns: 1_000 },
    );
    for (const [what, count] of Object.entries(seen)) expect([what, count > 10]).toEqual([what, true]);
  });
});
