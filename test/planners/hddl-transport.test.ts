/** A left-recursive domain: to get somewhere, get to the place before it first. */
import { describe, expect, it } from 'vitest';
import { findPlan, htn, htnDomain, htnState } from '#planners/htn';
import { readHddl } from '#planners/htn/hddl';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

/** @param order of the three ways to get somewhere, as the file has them. */
function domainOf(order: readonly ('direct' | 'via' | 'there')[]): string {
  const ways = {
    direct: `(:method direct :parameters (?v - truck ?from ?to - place) :task (get-to ?v ?to)
      :ordered-subtasks (and (drive ?v ?from ?to)))`,
    via: `(:method via :parameters (?v - truck ?before ?to - place) :task (get-to ?v ?to)
      :ordered-subtasks (and (get-to ?v ?before) (drive ?v ?before ?to)))`,
    there: `(:method there :parameters (?v - truck ?to - place) :task (get-to ?v ?to)
      :ordered-subtasks (and (stay ?v ?to)))`,
  };
  return `(define (domain parcels)
    (:requirements :typing :hierarchy :method-preconditions)
    (:types place - object truck - object parcel - object)
    (:predicates (road ?a ?b - place) (at ?v - truck ?p - place) (lies ?x - parcel ?p - place) (in ?x - parcel ?v - truck))
    (:task deliver :parameters (?x - parcel ?to - place))
    (:task get-to :parameters (?v - truck ?to - place))
    (:method carry :parameters (?x - parcel ?from ?to - place ?v - truck) :task (deliver ?x ?to)
      :precondition (lies ?x ?from)
      :ordered-subtasks (and (get-to ?v ?from) (load ?v ?x ?from) (get-to ?v ?to) (unload ?v ?x ?to)))
    ${order.map((way) => ways[way]).join('\n')}
    (:action drive :parameters (?v - truck ?a ?b - place)
      :precondition (and (at ?v ?a) (road ?a ?b)) :effect (and (not (at ?v ?a)) (at ?v ?b)))
    (:action stay :parameters (?v - truck ?p - place) :precondition (at ?v ?p))
    (:action load :parameters (?v - truck ?x - parcel ?p - place)
      :precondition (and (at ?v ?p) (lies ?x ?p)) :effect (and (not (lies ?x ?p)) (in ?x ?v)))
    (:action unload :parameters (?v - truck ?x - parcel ?p - place)
      :precondition (and (at ?v ?p) (in ?x ?v)) :effect (and (not (in ?x ?v)) (lies ?x ?p))))`;
}

/** A grid of places, `parcels` of them to be taken across it. With a hole in it no road leads to the last one. */
function problemOf(width: number, height: number, parcels: number, cutOff = false): string {
  const name = (x: number, y: number): string => `p${x}-${y}`;
  const places = Array.from({ length: width * height }, (_, at) => name(at % width, Math.floor(at / width)));
  const roads: string[] = [];
  const connect = (a: string, b: string): void => {
    if (cutOff && (a === places.at(-1) || b === places.at(-1))) return;
    roads.push(`(road ${a} ${b})`, `(road ${b} ${a})`);
  };
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (x + 1 < width) connect(name(x, y), name(x + 1, y));
      if (y + 1 < height) connect(name(x, y), name(x, y + 1));
    }
  }
  const ids = Array.from({ length: parcels }, (_, at) => `x${at}`);
  const last = places.length - 1;
  return `(define (problem grid) (:domain parcels)
    (:objects ${places.join(' ')} - place t - truck ${ids.join(' ')} - parcel)
    (:htn :ordered-subtasks (and ${ids.map((id, at) => `(deliver ${id} ${places[last - (at % 2)]})`).join(' ')}))
    (:init (at t ${places[0]}) ${ids.map((id, at) => `(lies ${id} ${places[(at + 1) % places.length]})`).join(' ')} ${roads.join(' ')}))`;
}

const ORDERS = [
  ['direct', 'via', 'there'],
  ['via', 'direct', 'there'],
  ['there', 'via', 'direct'],
] as const;

/** Carries the plan out; says where it does not fit. */
function carriedOut(actions: readonly (readonly unknown[])[], problem: string): void {
  const facts = new Set(problem.match(/\((?:road|at|lies) [^()]*\)/g));
  const swap = (out: string, into: string): void => {
    expect(facts.delete(out), out).toBe(true);
    facts.add(into);
  };
  for (const [name, v, a, b] of actions) {
    if (name === 'drive') {
      expect(facts.has(`(road ${a} ${b})`)).toBe(true);
      swap(`(at ${v} ${a})`, `(at ${v} ${b})`);
    } else if (name === 'load') swap(`(lies ${a} ${b})`, `(in ${a} ${v})`);
    else if (name === 'unload') swap(`(in ${a} ${v})`, `(lies ${a} ${b})`);
  }
}

describe('AG-36 transport, left-recursive', () => {
  it.each(
    ORDERS.flatMap((order) =>
      [
        [2, 2, 1],
        [3, 3, 2],
        [4, 4, 2],
        [6, 5, 4],
      ].map((size) => [order, size] as const),
    ),
  )('with the methods %j a grid of %j is solved within the limits of a planner', (order, [
    width = 0,
    height = 0,
    parcels = 0,
  ]) => {
    const problem = problemOf(width, height, parcels);
    const { domain, state, todo } = readHddl(domainOf(order), problem);
    const { actions } = findPlan(domain, state, todo, { depth: 32, nodes: 20_000 });
    expect(actions).toBeDefined();
    carriedOut(actions ?? [], problem);
  });

  it.each(ORDERS)('without a road the search ends, and says that a task comes to itself (%s first)', (...order) => {
    const { domain, state, todo } = readHddl(domainOf(order), problemOf(2, 2, 1, true));
    expect(() => findPlan(domain, state, todo, { depth: 32, nodes: 20_000 })).toThrow(
      expect.objectContaining({ code: 'htn_cycle', message: expect.stringContaining('get-to') }),
    );
  });

  it('a planner carries such a plan out', async () => {
    const { domain, state, todo } = readHddl(domainOf(ORDERS[0]), problemOf(4, 4, 1));
    const tables = state.tables();
    const made: string[] = [];
    const drive = make('act', ({ action }) => void made.push(String(action)));
    const planner = htn({
      domain,
      state: () => tables,
      todo: () => todo,
      step: (action) => ({ type: 'tool', toolId: 'act', input: { action: action.join(' ') } }),
    });
    const run = await start(world({ planner, tools: [drive] }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made.filter((text) => text.startsWith('unload'))).toHaveLength(1);
  });

  it('AG-36 a cycle prunes its branch alone: another way is found, and a plan that begins a task by itself again is missed', () => {
    const count = (most: number) =>
      htnDomain({
        operators: {
          tick: (from: ReturnType<typeof htnState>) => {
            from.set('n', 'n', Number(from.get('n', 'n')) + 1);
            return true;
          },
          full: (from: ReturnType<typeof htnState>) => from.get('n', 'n') === most,
        },
        tasks: { up: { again: () => [['up'], ['tick']], once: () => [['tick']] } },
      });
    const zero = () => htnState({ n: [['n', 0]] });
    expect(findPlan(count(1), zero(), [['up'], ['full']]).actions).toEqual([['tick'], ['full']]);
    expect(() => findPlan(count(3), zero(), [['up'], ['full']])).toThrow(
      expect.objectContaining({ code: 'htn_cycle' }),
    );
  });
});
