/** Conditions and actions as functions on the state. */
import type { Operator } from '../domain.ts';
import type { HtnState } from '../state.ts';
import { type Binding, type Fact, type Facts, holds, objectOf, objectsOf, type World } from './facts.ts';
import type { Condition, HddlAction, HddlEffect, Variable } from './model.ts';

/** Whether a condition holds; every variable in it must have its object. */
export type Test = (state: HtnState, binding: Binding) => boolean;

interface Changes {
  readonly added: Fact[];
  readonly deleted: Fact[];
}

type Collect = (state: HtnState, binding: Binding, changes: Changes) => void;

export function compileCondition(condition: Condition, world: World): Test {
  switch (condition.kind) {
    case 'and': {
      const tests = condition.of.map((part) => compileCondition(part, world));
      return (state, binding) => tests.every((test) => test(state, binding));
    }
    case 'or': {
      const tests = condition.of.map((part) => compileCondition(part, world));
      return (state, binding) => tests.some((test) => test(state, binding));
    }
    case 'not': {
      const test = compileCondition(condition.of, world);
      return (state, binding) => !test(state, binding);
    }
    case 'fact':
      return (state, binding) => holds(state, condition.atom, binding);
    case 'equal':
      return (_state, binding) => objectOf(condition.left, binding) === objectOf(condition.right, binding);
    case 'forall':
    case 'exists': {
      const test = compileCondition(condition.of, world);
      // Some assignment for which the body is as sought: it then exists, or not all are.
      const sought = condition.kind === 'exists';
      return (state, binding) =>
        sought === someAssignment(condition.variables, world, binding, () => test(state, binding) === sought);
    }
    default:
      return condition satisfies never;
  }
}

/** Whether `test` says yes for some assignment of the variables. */
function someAssignment(
  variables: readonly Variable[],
  world: World,
  binding: Binding,
  test: () => boolean,
  index = 0,
): boolean {
  const variable = variables[index];
  if (variable === undefined) return test();
  return world.ofType(variable.type).rows.some(([name = '']) => {
    binding[variable.slot] = name;
    return someAssignment(variables, world, binding, test, index + 1);
  });
}

/** Parameters out of type, or a precondition that does not hold: the action does not apply. */
export function compileAction(action: HddlAction, world: World, facts: Facts): Operator {
  const test = compileCondition(action.precondition, world);
  const collect = compileEffect(action.effect, world);
  const types = action.parameters.map(({ type }) => world.ofType(type));
  return (state: HtnState, ...args: readonly string[]) => {
    if (!types.every((objects, index) => objects.has(args[index] ?? ''))) return false;
    const binding = newBinding(action.slots, args);
    if (!test(state, binding)) return false;
    const changes: Changes = { added: [], deleted: [] };
    // All conditions of effects are read before anything changes.
    collect(state, binding, changes);
    facts.change(state, changes.added, changes.deleted);
    return true;
  };
}

export function newBinding(slots: number, args: readonly string[]): Binding {
  const binding = [...args];
  while (binding.length < slots) binding.push('');
  return binding;
}

function compileEffect(effect: HddlEffect, world: World): Collect {
  switch (effect.kind) {
    case 'add':
    case 'delete': {
      const { predicate, args } = effect.atom;
      const into = effect.kind === 'add' ? 'added' : 'deleted';
      return (_state, binding, changes) => {
        changes[into].push({ predicate, args: objectsOf(args, binding) });
      };
    }
    case 'and': {
      const parts = effect.of.map((part) => compileEffect(part, world));
      return (state, binding, changes) => {
        for (const part of parts) part(state, binding, changes);
      };
    }
    case 'forall': {
      const part = compileEffect(effect.of, world);
      return (state, binding, changes) => {
        someAssignment(effect.variables, world, binding, () => {
          part(state, binding, changes);
          return false;
        });
      };
    }
    case 'when': {
      const test = compileCondition(effect.condition, world);
      const part = compileEffect(effect.of, world);
      return (state, binding, changes) => {
        if (test(state, binding)) part(state, binding, changes);
      };
    }
    default:
      return effect satisfies never;
  }
}
