/**
 * Under which routings each node of a flow runs, and what follows: a join that can never have all its parents, a node that
 * two ways can reach at once, two exits, an end without one. It is looked at for the first round, which begins at the
 * entry, and for the rounds that begin where an edge leads back; in these a node looks only at ways in from inside the
 * round, and a join may have the value that a parent outside of it gave before. A failure edge leads to such a round too; what runs
 * beside a node that fails is looked at with a node that gives nothing.
 */

import { inOrder, reachOf, sourcesOf } from '../graph.ts';
import type { BackEdges } from './cycles.ts';
import { type FlowFault, faultOf, listedNames } from './fault.ts';
import { ALWAYS, NEVER, type Picks, RoutingSets, type Routings, TooManyRoutings } from './routings.ts';
import type { Sketch } from './sketch.ts';

/** @throws nothing: a flow with too many alternatives to look at has that as its fault. */
export function routingFaults(sketch: Sketch, back: BackEdges): readonly FlowFault[] {
  try {
    return new Guards(sketch, back).faults();
  } catch (thrown) {
    if (!(thrown instanceof TooManyRoutings)) throw thrown;
    const message =
      'The routers can be combined in too many ways to look at them all. Split the flow: put a part of it into a flow of its own.';
    return [faultOf('too_many_routings', message, [])];
  }
}

/** What runs until an edge back is taken, or an exit is reached. */
interface Round {
  readonly heads: readonly string[];
  /** No node has a value of an earlier one; a later round may begin at the entry too. */
  readonly isFirst: boolean;
  /** A node that runs and gives nothing: it fails. */
  readonly mute: string | undefined;
  /** What its sets of routings are made with. */
  readonly sets: RoutingSets;
  /** For each of its nodes the routings under which it runs. */
  readonly runs: Map<string, Routings>;
}

/** An edge, and when it is taken. */
interface Way {
  readonly from: string;
  readonly to: string;
  readonly when: Routings;
}

interface JoinFate {
  readonly runs: boolean;
  /** In each round one of its parents never runs. */
  readonly lacks: boolean;
}

/** A routing, for a message. */
function when(picks: Picks): string {
  if (picks.size === 0) return '';
  return `, when ${listedNames([...picks].map(([router, target]) => `${router} picks ${target}`))}`;
}

class Guards {
  readonly #sketch: Sketch;
  readonly #back: BackEdges;
  /** Each node behind those that lead to it. */
  readonly #order: readonly string[];
  readonly #sources: ReadonlyMap<string, readonly string[]>;
  /** The edges that do not lead back. */
  readonly #ahead: ReadonlyMap<string, readonly string[]>;
  /** By the nodes to which edges lead back what these reach. */
  readonly #reach: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(sketch: Sketch, back: BackEdges) {
    this.#sketch = sketch;
    this.#back = back;
    this.#ahead = new Map(
      [...sketch.ways].map(([from, targets]) => [from, targets.filter((to) => back.get(from)?.has(to) !== true)]),
    );
    const names = [...sketch.nodes.keys()];
    const waysFrom = (name: string): readonly string[] => this.#ahead.get(name) ?? [];
    this.#sources = sourcesOf(names, waysFrom);
    this.#order = inOrder(names, waysFrom);
    const returnedTo = new Set([...back.values()].flatMap((targets) => [...targets]));
    for (const ways of sketch.failures.values()) for (const { to } of ways) returnedTo.add(to);
    const heads = names.filter((name) => returnedTo.has(name));
    this.#reach = new Map(heads.map((head) => [head, this.#reachOf([head])]));
  }

  faults(): readonly FlowFault[] {
    const faults: FlowFault[] = [];
    const pairs = new Map<string, readonly [string, string]>();
    const joins = new Map<string, JoinFate>();
    const first = this.#round([this.#sketch.entry], true);
    for (const round of [first, ...this.#headsToLookAt(first).map((head) => this.#round([head]))]) {
      const returns = this.#returns(round);
      this.#noteJoins(round, joins);
      faults.push(
        ...this.#doubles(round),
        ...this.#withoutExit(round, returns),
        ...this.#meeting(round, returns, pairs),
        ...this.#failing(round, pairs),
      );
    }
    for (const pair of pairs.values()) if (this.#mayMeet(pair)) faults.push(...this.#doubles(this.#round(pair)));
    const never = this.#joinsThatNeverRun(joins);
    // Where a join never runs, an exit behind it is not reached: that is told already.
    const told = never.length === 0 ? faults : [...never, ...faults.filter(({ code }) => code !== 'no_exit_reached')];
    // A fault in several rounds is reported for the first one.
    return [...Map.groupBy(told, ({ code, nodes }) => `${code} ${nodes.join(' ')}`).values()].flatMap(
      ([first]) => first ?? [],
    );
  }

  #round(heads: readonly string[], isFirst = false, mute?: string): Round {
    const members = this.#reachOf(heads);
    const order = this.#order.filter((name) => members.has(name));
    const routers = order.filter((name) => this.#isRouter(name));
    const sets = new RoutingSets(routers.map((name) => [name, this.#sketch.ways.get(name) ?? []] as const));
    const round: Round = { heads, isFirst, mute, sets, runs: new Map() };
    for (const name of order) round.runs.set(name, this.#runs(name, round));
    return round;
  }

  #runs(name: string, round: Round): Routings {
    const { heads, isFirst, mute, sets } = round;
    if (heads.includes(name)) return ALWAYS;
    const parents = this.#parentsOf(name);
    if (parents === undefined) return sets.any(this.#waysIn(name, round).map(({ when }) => when)).any;
    // A parent outside a later round may have a value of an earlier round; in the first round it has none.
    const outside = (parent: string) => (isFirst && this.#sketch.reached.has(parent) ? NEVER : ALWAYS);
    return sets.all(parents.map((parent) => (parent === mute ? NEVER : (round.runs.get(parent) ?? outside(parent)))));
  }

  /** From inside the round. */
  #waysIn(name: string, round: Round): readonly Way[] {
    return (this.#sources.get(name) ?? []).flatMap((from) =>
      round.runs.has(from) ? [{ from, to: name, when: this.#taken(from, name, round) }] : [],
    );
  }

  #taken(from: string, to: string, { runs, sets, mute }: Round): Routings {
    if (from === mute) return NEVER;
    const own = runs.get(from) ?? NEVER;
    return this.#isRouter(from) ? sets.both(own, sets.picking(from, to)) : own;
  }

  #doubles(round: Round): readonly FlowFault[] {
    const { heads, sets, runs } = round;
    const faults: FlowFault[] = [];
    for (const name of runs.keys()) {
      if (heads.includes(name) || this.#parentsOf(name) !== undefined) continue;
      const ways = this.#waysIn(name, round);
      if (ways.length < 2) continue;
      const { twice } = sets.any(ways.map(({ when }) => when));
      if (twice === NEVER) continue;
      const picks = sets.example(twice);
      const [one = '', other = ''] = ways.filter(({ when }) => sets.has(when, picks)).map(({ from }) => from);
      const message = `The node ${name} can be reached from ${one} and from ${other} in one round${this.#where(round)}${when(picks)}. Make it a join of what it needs, or let a router decide.`;
      faults.push(faultOf('ways_in_meet', message, [name, one, other]));
    }
    const exits = this.#sketch.exits.filter((exit) => runs.has(exit));
    const { twice } = sets.any(exits.map((exit) => runs.get(exit) ?? NEVER));
    if (twice === NEVER) return faults;
    const picks = sets.example(twice);
    const [one = '', other = ''] = exits.filter((exit) => sets.has(runs.get(exit) ?? NEVER, picks));
    const message = `The exits ${one} and ${other} can both run in one round${this.#where(round)}${when(picks)}. Let one node be the exit, perhaps a join of both.`;
    return [...faults, faultOf('exits_meet', message, [one, other])];
  }

  #noteJoins({ runs }: Round, joins: Map<string, JoinFate>): void {
    for (const [name, own] of runs) {
      const parents = this.#parentsOf(name);
      if (parents === undefined) continue;
      const before = joins.get(name);
      const lacks = parents.some((parent) => runs.get(parent) === NEVER);
      joins.set(name, { runs: before?.runs === true || own !== NEVER, lacks: before?.lacks !== false && lacks });
    }
  }

  #joinsThatNeverRun(joins: ReadonlyMap<string, JoinFate>): readonly FlowFault[] {
    return [...joins].flatMap(([name, { runs, lacks }]) => {
      // A parent that never runs is told itself.
      if (runs || lacks) return [];
      const names = this.#parentsOf(name) ?? [];
      const message = `The join ${name} can never run: no routing leads to all of its parents ${listedNames(names)}. Leave out the join: a node may have several ways in, of which one is taken.`;
      return [faultOf('join_never_runs', message, [name, ...names])];
    });
  }

  #returns(round: Round): readonly Way[] {
    return [...this.#back].flatMap(([from, targets]) =>
      round.runs.has(from) ? [...targets].map((to) => ({ from, to, when: this.#taken(from, to, round) })) : [],
    );
  }

  #withoutExit(round: Round, returns: readonly Way[]): readonly FlowFault[] {
    const { runs, sets } = round;
    const exits = this.#sketch.exits.map((exit) => runs.get(exit) ?? NEVER);
    const { any: ended } = sets.any([...exits, ...returns.map(({ when }) => when)]);
    if (ended === ALWAYS) return [];
    const picks = sets.counterexample(ended);
    const last = [...runs.keys()].filter((name) => {
      const isLast = (this.#sketch.ways.get(name) ?? []).length === 0;
      return isLast && sets.has(runs.get(name) ?? NEVER, picks);
    });
    const advice =
      last.length === 0 ? '' : ` It ends at ${listedNames(last)}: make an exit of it, or lead on from there.`;
    const message = `A round${this.#where(round)} can come to no exit${when(picks)}.${advice}`;
    return [faultOf('no_exit_reached', message, last)];
  }

  /** Edges back that are taken in one round. Heads that do not reach each other may be returned to together. */
  #meeting(round: Round, returns: readonly Way[], pairs: Map<string, readonly [string, string]>): readonly FlowFault[] {
    const { sets } = round;
    if (sets.any(returns.map((way) => way.when)).twice === NEVER) return [];
    return returns.flatMap((one, index) =>
      returns.slice(index + 1).flatMap((other) => {
        const both = one.from === other.from ? NEVER : sets.both(one.when, other.when);
        if (both === NEVER) return [];
        if (!this.#leadsTo(one.to, other.to) && !this.#leadsTo(other.to, one.to)) {
          pairs.set(`${one.to} ${other.to}`, [one.to, other.to]);
          return [];
        }
        const message = `The edges ${one.from} -> ${one.to} and ${other.from} -> ${other.to}, which lead back, can both be taken in one round${this.#where(round)}${when(sets.example(both))}, and meet. Let one router decide whether to go round again.`;
        return [faultOf('back_edges_meet', message, [one.from, one.to, other.from, other.to])];
      }),
    );
  }

  /** What runs beside a node that fails must leave the end of the flow to what its failure leads to. */
  #failing(round: Round, pairs: Map<string, readonly [string, string]>): readonly FlowFault[] {
    return [...this.#sketch.failures].flatMap(([name, failures]) => {
      if ((round.runs.get(name) ?? NEVER) === NEVER) return [];
      const failed = this.#round(round.heads, round.isFirst, name);
      return [...new Set(failures.map(({ to }) => to))].flatMap((to) => this.#besideFailure(name, to, failed, pairs));
    });
  }

  #besideFailure(
    name: string,
    to: string,
    round: Round,
    pairs: Map<string, readonly [string, string]>,
  ): readonly FlowFault[] {
    const { runs, sets } = round;
    const own = runs.get(name) ?? NEVER;
    const beside = (when: Routings): Routings => sets.both(own, when);
    const exit = this.#sketch.exits.find((each) => each !== name && beside(runs.get(each) ?? NEVER) !== NEVER);
    if (exit !== undefined) {
      const picks = sets.example(beside(runs.get(exit) ?? NEVER));
      const message = `When ${name} fails, the exit ${exit} runs all the same${this.#where(round)}${when(picks)}, and the flow would go on at ${to}. Let the exit need what ${name} gives, or take the failure edge away.`;
      return [faultOf('failure_beside_exit', message, [name, exit, to])];
    }
    const others = [...this.#returns(round), ...this.#failureWays(round)];
    return others.flatMap((other) => {
      // When several lead to one node, the first is taken.
      if (other.from === name || other.to === to || beside(other.when) === NEVER) return [];
      if (!this.#leadsTo(to, other.to) && !this.#leadsTo(other.to, to)) {
        pairs.set([to, other.to].sort().join(' '), [to, other.to]);
        return [];
      }
      const message = `When ${name} fails, which leads to ${to}, ${other.from} can lead to ${other.to} in the same round${this.#where(round)}, and they meet. Let both lead to one node.`;
      return [faultOf('back_edges_meet', message, [name, to, other.from, other.to])];
    });
  }

  #failureWays({ runs }: Round): readonly Way[] {
    return [...this.#sketch.failures].flatMap(([from, failures]) =>
      failures.map(({ to }) => ({ from, to, when: runs.get(from) ?? NEVER })),
    );
  }

  #leadsTo(head: string, name: string): boolean {
    return this.#reach.get(head)?.has(name) === true;
  }

  /** Whether a round that begins at both can come to one node by two ways, or to two exits. */
  #mayMeet([one, other]: readonly [string, string]): boolean {
    const [left, right] = [this.#reach.get(one), this.#reach.get(other)];
    if (left === undefined || right === undefined) return false;
    const { exits, nodes } = this.#sketch;
    if (exits.filter((exit) => left.has(exit) || right.has(exit)).length > 1) return true;
    const [smaller, larger] = left.size < right.size ? [left, right] : [right, left];
    return [...smaller].some((name) => larger.has(name) && nodes.get(name)?.parents === undefined);
  }

  /** Which round, for a message. */
  #where({ heads, isFirst }: Round): string {
    return isFirst ? '' : ` that begins at ${listedNames(heads)}`;
  }

  #parentsOf(name: string): readonly string[] | undefined {
    return this.#sketch.nodes.get(name)?.parents?.map((parent) => parent.name);
  }

  #isRouter(name: string): boolean {
    return this.#sketch.nodes.get(name)?.kind === 'router';
  }

  #reachOf(heads: readonly string[]): ReadonlySet<string> {
    return reachOf(heads, (name) => this.#ahead.get(name) ?? []);
  }

  /**
   * The heads whose rounds have to be looked at. What a head reaches is known from the first round when nothing leads to it
   * but over the head, and when the round reaches an end under every choice of its routers.
   */
  #headsToLookAt(first: Round): readonly string[] {
    if (this.#reach.size === 0) return [];
    const ends = this.#alwaysEnding();
    return [...this.#reach].flatMap(([head, reach]) => {
      const isEnteredAtHead = [...reach].every(
        (name) => name === head || (this.#sources.get(name) ?? []).every((source) => reach.has(source)),
      );
      const isKnown = isEnteredAtHead && ends.has(head) && (first.runs.get(head) ?? NEVER) !== NEVER;
      return isKnown ? [] : [head];
    });
  }

  /** The nodes from which an exit or an edge back is reached under every routing, without a join on the way. */
  #alwaysEnding(): ReadonlySet<string> {
    const { ways, exits } = this.#sketch;
    const routers = this.#order.filter((name) => this.#isRouter(name)).toReversed();
    const sets = new RoutingSets(routers.map((name) => [name, ways.get(name) ?? []] as const));
    const ends = new Map<string, Routings>();
    for (const name of this.#order.toReversed()) {
      const onward = (ways.get(name) ?? []).map((to) => {
        const after = this.#back.get(name)?.has(to) === true ? ALWAYS : (ends.get(to) ?? NEVER);
        return this.#isRouter(name) ? sets.both(sets.picking(name, to), after) : after;
      });
      if (this.#parentsOf(name) !== undefined) ends.set(name, NEVER);
      else ends.set(name, exits.includes(name) ? ALWAYS : sets.any(onward).any);
    }
    return new Set([...ends].flatMap(([name, when]) => (when === ALWAYS ? [name] : [])));
  }
}
