/** A method of a domain as the search calls it: the subtasks under each binding of its variables, found one at a time. */
import type { HtnTask } from '../domain.ts';
import type { HtnState } from '../state.ts';
import { newBinding } from './compile.ts';
import type { Facts } from './facts.ts';
import { compileMatcher, matches } from './match.ts';
import type { HddlMethod, Term } from './model.ts';
import { type Binding, type ObjectSet, objectsOf, type World } from './world.ts';

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
