/** What becomes of a branch: the plain definition, and whoever keeps what was found out before says the same. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Branch,
  BranchEnds,
  BranchGraph,
  type CallRecord,
  type Join,
  judgeBranch,
  nothingJudged,
  type Outcome,
  type Route,
} from '#core';
import { Schedule } from '#runtime';

const FAILED: Outcome = { kind: 'error', error: { code: 'tool_failed', message: 'no' } };
const REMOVED: Outcome = { kind: 'skipped', error: { code: 'node_removed', message: 'no' } };
const value = (given: number): Outcome => ({ kind: 'value', value: given });

interface Scene {
  readonly branches: readonly Branch[];
  readonly join: Join | undefined;
  readonly plan: boolean;
  readonly failFast: boolean;
  readonly concurrency: number;
  /** What happens next, turn by turn. */
  readonly picks: readonly { readonly which: number; readonly how: number }[];
}

const condition = fc.record({ pick: fc.nat(), equals: fc.nat(1) });
const ids = (picks: readonly number[], index: number): string[] => [
  ...new Set(index === 0 ? [] : picks.map((pick) => `n${pick % index}`)),
];

const scenes: fc.Arbitrary<Scene> = fc
  .record({
    raw: fc.array(
      fc.record({
        after: fc.array(fc.nat(), { maxLength: 2 }),
        behind: fc.array(fc.nat(), { maxLength: 3 }),
        when: fc.option(condition, { freq: 2 }),
        routes: fc.option(
          fc.array(fc.record({ after: fc.array(fc.nat(), { maxLength: 2 }), when: fc.option(condition) }), {
            minLength: 1,
            maxLength: 3,
          }),
          { freq: 4 },
        ),
        tool: fc.constantFrom('any', 'any', 'any', 'any', 'any', '_finish'),
        tolerates: fc.boolean(),
      }),
      { minLength: 5, maxLength: 14 },
    ),
    wanted: fc.option(fc.integer({ min: 1, max: 6 }), { freq: 4 }),
    plan: fc.boolean(),
    failFast: fc.constantFrom(true, false, false, false),
    concurrency: fc.integer({ min: 1, max: 5 }),
    picks: fc.array(fc.record({ which: fc.nat(), how: fc.nat(9) }), { minLength: 60, maxLength: 60 }),
  })
  .map(({ raw, wanted, ...rest }) => ({
    ...rest,
    join: wanted === null ? undefined : { kind: 'n', n: wanted },
    branches: raw.map(({ after, behind, when, routes, tool, tolerates }, index): Branch => {
      const whenOf = (given: { pick: number; equals: number } | null): Pick<Route, 'when'> =>
        given === null || index === 0 ? {} : { when: { branch: `n${given.pick % index}`, equals: given.equals } };
      const own = { id: `n${index}`, tool, ...(tolerates ? { tolerates: ['error'] as const } : {}) };
      if (routes !== null && index > 0) {
        const ways = routes.map((route) => ({ args: {}, after: ids(route.after, index), ...whenOf(route.when) }));
        return { ...own, args: null, routes: ways };
      }
      return { ...own, args: {}, after: ids(after, index), behind: ids(behind, index), ...whenOf(when) };
    }),
  }));

const NO_ROOM = (): boolean => false;

describe('the graph of branches', () => {
  it('AG-40, AG-42 has one definition: the schedule, told of each end, starts and settles what a look at all of it says', () => {
    const seen = { ready: 0, waits: 0, skipped: 0, over: 0, held: 0, parked: 0, crashed: 0 };
    fc.assert(
      fc.property(scenes, ({ branches, picks, join, plan, failFast, concurrency }) => {
        const how = {
          concurrency,
          ...(join === undefined ? {} : { join }),
          ...(plan ? { plan: 'p' } : {}),
          ...(failFast ? { failFast } : {}),
        };
        const graph = new BranchGraph(branches);
        const outcomes = new Map<number, Outcome>();
        const started = new Set<number>();
        const parked = new Set<number>();
        const make = (): Schedule => {
          const records = branches.map((_, call): CallRecord | null => {
            const outcome = outcomes.get(call);
            return outcome === undefined ? null : { outcome, endedAt: 1, attempts: 1, seq: 2 };
          });
          const made = new Schedule(how);
          made.grow(branches, records);
          for (const call of parked) made.park(call);
          return made;
        };
        let schedule = make();
        /** All of it, from nothing. */
        const settle = (): void => {
          for (let before = -1; before !== outcomes.size; ) {
            before = outcomes.size;
            const ends = new BranchEnds(how);
            for (const [call, outcome] of outcomes) ends.note(graph.branch(call), outcome);
            for (const call of branches.keys()) {
              if (outcomes.has(call) || started.has(call)) continue;
              const verdict = judgeBranch(graph, call, (other) => outcomes.get(other), nothingJudged(graph.size));
              if (typeof verdict === 'number') {
                seen.waits += 1;
                if (!graph.needs(call).includes(verdict)) seen.held += 1;
              }
              if (ends.over !== undefined) {
                seen.over += 1;
                outcomes.set(call, { kind: 'cancelled', error: { code: 'cancelled', message: 'over' } });
              } else if (typeof verdict === 'object' && !parked.has(call)) {
                seen.skipped += 1;
                outcomes.set(call, verdict);
              }
              if (outcomes.has(call)) parked.delete(call);
            }
          }
        };
        for (const { which, how: what } of picks) {
          const [waiting] = parked;
          if (started.size === 0 && waiting !== undefined) {
            parked.delete(waiting);
            schedule.unpark(waiting);
          }
          settle();
          for (const { call, outcome } of schedule.takeSettled()) expect(outcomes.get(call)?.kind).toBe(outcome.kind);
          for (const call of branches.keys())
            expect([call, schedule.hasEnded(call)]).toEqual([call, outcomes.has(call)]);
          const ready = [...branches.keys()].filter(
            (call) =>
              !outcomes.has(call) &&
              !started.has(call) &&
              !parked.has(call) &&
              judgeBranch(graph, call, (other) => outcomes.get(other), nothingJudged(graph.size)) === 'ready',
          );
          seen.ready += ready.length;
          // Whatever the order is in which they are started: all that may start do, and no other.
          const taken: number[] = [];
          for (let call = schedule.next(() => true); call !== undefined; call = schedule.next(() => true))
            taken.push(call);
          expect([...taken].sort((a, b) => a - b)).toEqual(ready);
          for (const call of taken) started.add(call);
          if (started.size === 0 && parked.size === 0) break;
          if (started.size === 0) continue;
          const idle = [...branches.keys()].filter((at) => !outcomes.has(at) && !started.has(at) && !parked.has(at));
          if (what === 2 && idle.length > 0) {
            const call = idle[which % idle.length] as number;
            outcomes.set(call, REMOVED);
            schedule.ended([{ call, outcome: REMOVED }]);
            continue;
          }
          const call = [...started][which % started.size] as number;
          started.delete(call);
          if (what === 0 && !schedule.isMet) {
            parked.add(call);
            schedule.park(call);
            seen.parked += 1;
            continue;
          }
          const outcome = what === 1 ? FAILED : value(what % 2);
          outcomes.set(call, outcome);
          schedule.ended([{ call, outcome }]);
          if (what === 3 && started.size === 0) {
            schedule = make();
            seen.crashed += 1;
          }
        }
        expect(schedule.next(NO_ROOM)).toBeUndefined();
      }),
      { numRuns: 500 },
    );
    for (const [what, count] of Object.entries(seen)) expect([what, count > 0]).toEqual([what, true]);
  });
});
