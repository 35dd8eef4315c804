/**
 * Sets of routings. A routing is what every router of a flow picks; a set says under which of them something happens. Sets
 * are decision diagrams: each is kept once, so that two are the same when their numbers are, and what does not depend on a
 * router does not speak of it. A chain of routers whose ways meet again costs no more than its length.
 */

/** A set of routings, as a number. */
export type Routings = number;

export const NEVER: Routings = 0;
export const ALWAYS: Routings = 1;

/** What some routers pick, by their names. */
export type Picks = ReadonlyMap<string, string>;

/** The most diagram nodes that are made. A flow that needs more has too many alternatives to be checked. */
const MAX_SIZE = 100_000;

export class TooManyRoutings extends Error {
  override readonly name: string = 'TooManyRoutings';
}

interface Router {
  readonly name: string;
  readonly targets: readonly string[];
  /** The test of target i is `first + i`; the last target is what is left when no test holds. */
  readonly first: number;
}

const NO_ROUTER: Router = { name: '', targets: [], first: 0 };

interface Test {
  readonly router: Router;
  readonly target: number;
}

/** A diagram node: when its test holds, `yes`, or else `rest`. */
interface Branching {
  readonly test: number;
  readonly yes: Routings;
  readonly rest: Routings;
  /** What it comes to when no test of its router holds. */
  readonly past: Routings;
}

type Operation = 'and' | 'or';

export class RoutingSets {
  readonly #routers = new Map<string, Router>();
  readonly #tests: Test[] = [];
  // The places of NEVER and ALWAYS are not looked at.
  readonly #nodes: Branching[] = [NEVER, ALWAYS].map((end) => ({ test: END, yes: end, rest: end, past: end }));
  readonly #known = new Map<string, Routings>();
  readonly #done: Readonly<Record<Operation, Map<number, Routings>>> = { and: new Map(), or: new Map() };

  /**
   * @param routers with their targets, those that come first in a flow first. They are tested last: what a router adds to a
   * condition stands before it, and leaves it as it is.
   */
  constructor(routers: readonly (readonly [string, readonly string[]])[]) {
    for (const [name, targets] of routers.toReversed()) {
      const router = { name, targets, first: this.#tests.length };
      this.#routers.set(name, router);
      for (let target = 0; target < targets.length - 1; target += 1) this.#tests.push({ router, target });
    }
  }

  /** The routings under which the router picks the target. */
  picking(router: string, target: string): Routings {
    const { targets, first } = this.#routers.get(router) ?? NO_ROUTER;
    const place = targets.indexOf(target);
    if (place < 0) return NEVER;
    if (place < targets.length - 1) return this.#make(first + place, ALWAYS, NEVER);
    let left: Routings = ALWAYS;
    for (let test = first + place - 1; test >= first; test -= 1) left = this.#make(test, NEVER, left);
    return left;
  }

  both(left: Routings, right: Routings): Routings {
    return this.#combine('and', left, right);
  }

  either(left: Routings, right: Routings): Routings {
    return this.#combine('or', left, right);
  }

  /** All of several. */
  all(sets: readonly Routings[]): Routings {
    return balanced(sets, ALWAYS, (left, right) => this.both(left, right));
  }

  /** Any of several, and those under which two of them hold: as far as it was looked, until some were found. */
  any(sets: readonly Routings[]): { readonly any: Routings; readonly twice: Routings } {
    let twice: Routings = NEVER;
    const any = balanced(sets, NEVER, (left, right) => {
      if (twice === NEVER) twice = this.both(left, right);
      return this.either(left, right);
    });
    return { any, twice };
  }

  /** A routing of the set that is not empty, as far as it matters. */
  example(set: Routings): Picks {
    return this.#pathTo(ALWAYS, set);
  }

  /** A routing that is not in the set, which is not all of them. */
  counterexample(set: Routings): Picks {
    return this.#pathTo(NEVER, set);
  }

  /** Whether the routing is in the set. A router that is not spoken of picks its last target. */
  has(set: Routings, picks: Picks): boolean {
    let at = set;
    while (at > ALWAYS) {
      const { test, yes, rest } = this.#node(at);
      const { router, target } = this.#tests[test] as Test;
      at = picks.get(router.name) === router.targets[target] ? yes : rest;
    }
    return at === ALWAYS;
  }

  #node(set: Routings): Branching {
    return this.#nodes[set] as Branching;
  }

  #routerOf(set: Routings): Router | undefined {
    return this.#tests[this.#node(set).test]?.router;
  }

  #make(test: number, yes: Routings, rest: Routings): Routings {
    const past = this.#routerOf(rest) === this.#tests[test]?.router ? this.#node(rest).past : rest;
    // Nothing hangs on the test: when it holds, no other of its router does.
    if (yes === past) return rest;
    const key = `${test},${yes},${rest}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#nodes.length >= MAX_SIZE) throw new TooManyRoutings();
    const made = this.#nodes.push({ test, yes, rest, past }) - 1;
    this.#known.set(key, made);
    return made;
  }

  /** With a stack of its own: a diagram is as deep as a flow has routers. */
  #combine(operation: Operation, left: Routings, right: Routings): Routings {
    const done = this.#done[operation];
    const open: [Routings, Routings][] = [[left, right]];
    for (let pair = open.at(-1); pair !== undefined; pair = open.at(-1)) {
      const test = Math.min(this.#node(pair[0]).test, this.#node(pair[1]).test);
      const thens = [this.#when(pair[0], test), this.#when(pair[1], test)] as const;
      const rests = [this.#otherwise(pair[0], test), this.#otherwise(pair[1], test)] as const;
      const own = ended(operation, ...pair);
      const yes = own ?? this.#found(operation, ...thens);
      const rest = own ?? this.#found(operation, ...rests);
      if (yes === undefined) open.push([...thens]);
      else if (rest === undefined) open.push([...rests]);
      else {
        done.set(keyOf(...pair), own ?? this.#make(test, yes, rest));
        open.pop();
      }
    }
    return done.get(keyOf(left, right)) as Routings;
  }

  #found(operation: Operation, left: Routings, right: Routings): Routings | undefined {
    return ended(operation, left, right) ?? this.#done[operation].get(keyOf(left, right));
  }

  #when(set: Routings, test: number): Routings {
    const node = this.#node(set);
    if (node.test === test) return node.yes;
    return node.test < END && this.#routerOf(set) === this.#tests[test]?.router ? node.past : set;
  }

  #otherwise(set: Routings, test: number): Routings {
    const node = this.#node(set);
    return node.test === test ? node.rest : set;
  }

  #pathTo(end: Routings, set: Routings): Picks {
    const picks = new Map<string, string>();
    const other = end === ALWAYS ? NEVER : ALWAYS;
    for (let at = set; at > ALWAYS; ) {
      const { test, yes, rest } = this.#node(at);
      const { router, target } = this.#tests[test] as Test;
      const holds = yes !== other;
      // At least one side of a diagram node leads to each end.
      const place = holds ? target : target + 1;
      picks.set(router.name, router.targets[place] as string);
      at = holds ? yes : rest;
    }
    return picks;
  }
}

const END: number = Number.MAX_SAFE_INTEGER;

function ended(operation: Operation, left: Routings, right: Routings): Routings | undefined {
  const [neutral, absorbing] = operation === 'and' ? [ALWAYS, NEVER] : [NEVER, ALWAYS];
  if (left === absorbing || right === absorbing) return absorbing;
  if (left === neutral || left === right) return right;
  return right === neutral ? left : undefined;
}

function keyOf(left: Routings, right: Routings): number {
  return left < right ? left * MAX_SIZE + right : right * MAX_SIZE + left;
}

/** Pairs first, then pairs of these: what is combined late is small. */
function balanced(
  sets: readonly Routings[],
  none: Routings,
  combine: (left: Routings, right: Routings) => Routings,
): Routings {
  let level = sets;
  while (level.length > 1) {
    const next: Routings[] = [];
    for (let at = 0; at < level.length; at += 2) {
      const [left, right] = [level[at] as Routings, level[at + 1]];
      next.push(right === undefined ? left : combine(left, right));
    }
    level = next;
  }
  return level[0] ?? none;
}
