/**
 * What can be said of a method before its subtasks are tried: of the actions among them, those conditions that no action of the
 * domain ever changes. A binding under which one does not hold leads nowhere in any case.
 */
import type { Condition, HddlAction, HddlDomain, HddlEffect, HddlMethod, Term } from './model.ts';

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

function conjuncts(condition: Condition): readonly Condition[] {
  return condition.kind === 'and' ? condition.of.flatMap(conjuncts) : [condition];
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
