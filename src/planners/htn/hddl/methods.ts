/** The methods of a domain as the search calls them: the subtasks under each binding of the variables, found one at a time. */

import type { HtnTask } from '../domain.ts';
import type { HtnState } from '../state.ts';
import { compileCondition, newBinding, type Test } from './compile.ts';
import { type Binding, type Facts, type ObjectSet, objectOf, objectsOf, type Row, type World } from './facts.ts';
import type { Atom, Condition, HddlAction, HddlDomain, HddlEffect, HddlMethod, Term, Variable } from './model.ts';

/** A generator only where there is something to bind: one that waits for its turn takes memory. */
export type CompiledMethod = (
  state: HtnState,
  ...args: readonly string[]
) => HtnTask[] | Generator<HtnTask[], void, void> | undefined;

export function compileMethod(method: HddlMethod, world: World, facts: Facts): CompiledMethod {
  const { parameters, precondition, slots, subtasks, task } = method;
  const bound = task.args.filter((term) => typeof term === 'number');
  const matcher = compileMatcher(precondition, parameters, bound, world, facts);
  const types = new Map(parameters.map(({ slot, type }) => [slot, world.ofType(type)]));
  const bind = (args: readonly string[]): Binding | undefined => {
    const binding = newBinding(slots, []);
    return bindTask(task.args, args, binding, types) ? binding : undefined;
  };
  const subtasksOf = (binding: Binding): HtnTask[] =>
    subtasks.map(({ task: name, args }): HtnTask => [name, ...objectsOf(args, binding)]);
  if (matcher.levels.length === 0) {
    return (state, ...args) => {
      const binding = bind(args);
      return binding !== undefined && matcher.test(state, binding) ? subtasksOf(binding) : undefined;
    };
  }
  return function* (state, ...args) {
    const binding = bind(args);
    if (binding === undefined) return;
    for (const _ of matches(matcher, state, binding)) yield subtasksOf(binding);
  };
}

/** `false`: an object out of type, one that is not the constant of the method, or two where the method has one variable. */
function bindTask(
  terms: readonly Term[],
  args: readonly string[],
  binding: Binding,
  types: ReadonlyMap<number, ObjectSet>,
): boolean {
  return terms.every((term, index) => {
    const given = args[index] ?? '';
    if (typeof term === 'string') return term === given;
    if (binding[term] !== '') return binding[term] === given;
    binding[term] = given;
    return types.get(term)?.has(given) ?? false;
  });
}

// The bindings under which a precondition holds, one at a time. Positive facts bind variables first, those that leave
// the fewest open before others; what no fact binds is taken from the objects of its type. A test is made as soon as
// its variables are bound. The next binding is looked for only when it is asked for, and the state must be then what it
// was: a search that has gone on and come back.

/** Binds some variables: to each row in turn, if it fits. */
interface Level {
  readonly rows: (state: HtnState, binding: Binding) => readonly Row[];
  readonly bind: (row: Row, binding: Binding) => boolean;
}

interface Matcher {
  /** What is known before anything is bound. */
  readonly test: Test;
  /** None: there is nothing to bind. */
  readonly levels: readonly (Level & { readonly test: Test })[];
}

interface Part {
  readonly part: Condition;
  readonly slots: ReadonlySet<number>;
}

/** `variables` are those to be bound, `bound` the slots that have their object before. */
function compileMatcher(
  condition: Condition,
  variables: readonly Variable[],
  bound: Iterable<number>,
  world: World,
  facts: Facts,
): Matcher {
  const known = new Set(bound);
  let waiting: readonly Part[] = conjuncts(condition).map((part) => ({ part, slots: freeSlots(part) }));
  const takeTests = (): Test => {
    const ready = waiting.filter(({ slots }) => openSlots(slots, known) === 0);
    waiting = waiting.filter((item) => !ready.includes(item));
    return compileCondition({ kind: 'and', of: ready.map(({ part }) => part) }, world);
  };
  const types = new Map(variables.map(({ slot, type }) => [slot, world.ofType(type)]));
  const test = takeTests();
  const levels: (Level & { readonly test: Test })[] = [];
  for (;;) {
    const free = variables.find(({ slot }) => !known.has(slot));
    if (free === undefined) return { test, levels };
    const fact = closestFact(waiting, known);
    const level = fact === undefined ? typeLevel(free, world) : factLevel(fact.atom, known, types, facts);
    waiting = waiting.filter(({ part }) => part !== fact);
    for (const slot of fact === undefined ? [free.slot] : slotsOf(fact.atom.args)) known.add(slot);
    levels.push({ ...level, test: takeTests() });
  }
}

/** The fact that leaves the fewest variables open. */
function closestFact(waiting: readonly Part[], known: ReadonlySet<number>): (Condition & { kind: 'fact' }) | undefined {
  let closest: (Condition & { kind: 'fact' }) | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const { part, slots } of waiting) {
    const open = openSlots(slots, known);
    if (part.kind !== 'fact' || open >= fewest) continue;
    closest = part;
    fewest = open;
  }
  return closest;
}

function openSlots(slots: Iterable<number>, known: ReadonlySet<number>): number {
  let count = 0;
  for (const slot of slots) if (!known.has(slot)) count += 1;
  return count;
}

/** Fills in `binding` and yields, once for each way to do it. */
function* matches({ test, levels }: Matcher, state: HtnState, binding: Binding): Generator<void, void, void> {
  const top = levels[0];
  if (top === undefined || !test(state, binding)) return;
  const stack = [{ level: top, rows: top.rows(state, binding), next: 0 }];
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const { level, rows } = frame;
    const row = rows[frame.next];
    frame.next += 1;
    if (row === undefined) stack.pop();
    else if (level.bind(row, binding) && level.test(state, binding)) {
      const deeper = levels[stack.length];
      if (deeper === undefined) yield;
      else stack.push({ level: deeper, rows: deeper.rows(state, binding), next: 0 });
    }
  }
}

function conjuncts(condition: Condition): Condition[] {
  return condition.kind === 'and' ? condition.of.flatMap(conjuncts) : [condition];
}

/** The slots that a condition reads, without those of its own quantifiers. */
function freeSlots(condition: Condition): Set<number> {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return new Set(condition.of.flatMap((part) => [...freeSlots(part)]));
    case 'not':
      return freeSlots(condition.of);
    case 'fact':
      return slotsOf(condition.atom.args);
    case 'equal':
      return slotsOf([condition.left, condition.right]);
    case 'forall':
    case 'exists': {
      const slots = freeSlots(condition.of);
      for (const { slot } of condition.variables) slots.delete(slot);
      return slots;
    }
    default:
      return condition satisfies never;
  }
}

function slotsOf(terms: readonly Term[]): Set<number> {
  return new Set(terms.filter((term) => typeof term === 'number'));
}

/** Known terms choose the rows; each other variable takes the object at its first place, and must be the same at the next. */
function factLevel(
  { predicate, args }: Atom,
  known: ReadonlySet<number>,
  types: ReadonlyMap<number, ObjectSet>,
  facts: Facts,
): Level {
  const places = Array.from(args, (term, position) => ({ term, position }));
  const given = places.filter(({ term }) => typeof term === 'string' || known.has(term));
  const select = facts.select(
    predicate,
    given.map(({ position }) => position),
  );
  const open = places.flatMap(({ term, position }) => {
    if (typeof term === 'string' || known.has(term)) return [];
    return [{ slot: term, position, first: args.indexOf(term), objects: types.get(term) }];
  });
  return {
    rows: (state, binding) =>
      select(
        state,
        given.map(({ term }) => objectOf(term, binding)),
      ),
    bind: (row, binding) =>
      open.every(({ slot, position, first, objects }) => {
        const name = row[position] ?? '';
        binding[slot] = name;
        return first === position ? objects?.has(name) === true : row[first] === name;
      }),
  };
}

function typeLevel({ slot, type }: Variable, world: World): Level {
  const { rows } = world.ofType(type);
  return {
    rows: () => rows,
    bind: ([name = ''], binding) => {
      binding[slot] = name;
      return true;
    },
  };
}

// What can be said of a method before its subtasks are tried: of the actions among them, those conditions that no action of the
// domain ever changes. A binding under which one does not hold leads nowhere in any case.

/** The method with these conditions as tests: they bind nothing, so what is left is tried in the order in which it was before. */
export function withStaticTests(
  method: HddlMethod,
  { actions }: HddlDomain,
  changing: ReadonlySet<string>,
): HddlMethod {
  const tests = method.subtasks.flatMap(({ task, args }) => {
    const action = actions.get(task);
    return action === undefined ? [] : staticTests(action, args, changing);
  });
  if (tests.length === 0) return method;
  const { precondition } = method;
  return { ...method, precondition: { kind: 'and', of: [precondition, ...tests] } };
}

/** The predicates that some action adds or deletes. */
export function changingPredicates({ actions }: HddlDomain): ReadonlySet<string> {
  const changing = new Set<string>();
  for (const { effect } of actions.values()) addChanged(effect, changing);
  return changing;
}

function addChanged(effect: HddlEffect, changing: Set<string>): void {
  if (effect.kind === 'and') for (const part of effect.of) addChanged(part, changing);
  else if (effect.kind === 'add' || effect.kind === 'delete') changing.add(effect.atom.predicate);
  else addChanged(effect.of, changing);
}

function staticTests(
  { parameters, precondition }: HddlAction,
  args: readonly Term[],
  changing: ReadonlySet<string>,
): Condition[] {
  const given = new Map(parameters.map(({ slot }, index) => [slot, args[index]]));
  return conjuncts(precondition).flatMap((part) => {
    const told = renamed(part, given, changing);
    // One alternative alone: a test, and nothing that variables are bound by.
    return told === undefined ? [] : [{ kind: 'or' as const, of: [told] }];
  });
}

/** In the terms of the method. `undefined`: it changes, or has variables of its own. */
function renamed(
  condition: Condition,
  given: ReadonlyMap<number, Term | undefined>,
  changing: ReadonlySet<string>,
): Condition | undefined {
  const termOf = (term: Term): Term | undefined => (typeof term === 'number' ? given.get(term) : term);
  switch (condition.kind) {
    case 'not': {
      const of = renamed(condition.of, given, changing);
      return of && { kind: 'not', of };
    }
    case 'fact': {
      const { predicate, args } = condition.atom;
      if (changing.has(predicate)) return undefined;
      const terms = args.map(termOf).filter((term) => term !== undefined);
      return terms.length === args.length ? { kind: 'fact', atom: { predicate, args: terms } } : undefined;
    }
    case 'equal': {
      const [left, right] = [termOf(condition.left), termOf(condition.right)];
      return left === undefined || right === undefined ? undefined : { kind: 'equal', left, right };
    }
    default:
      return undefined;
  }
}
