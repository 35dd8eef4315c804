/** Preconditions, goals and effects: `and`, `or`, `not`, `imply`, `=`, `forall`, `exists`, `when` over facts. */
import type { Condition, HddlEffect } from './model.ts';
import { declare, readAtom, readTerm, type VariableScope } from './scope.ts';
import { found, headOf, invalidHddl, isList, type List, listOf, type Tree } from './tree.ts';

const NUMERIC = new Set(['<', '>', '<=', '>=', 'increase', 'decrease', 'assign', 'scale-up', 'scale-down']);
const UNREAD = new Set([
  'preference',
  'sometime',
  'always',
  'at-most-once',
  'within',
  'at end',
  'probabilistic',
  'oneof',
]);

export const TRUE: Condition = { kind: 'and', of: [] };

/** An empty list is true. */
export function readCondition(tree: Tree, scope: VariableScope): Condition {
  const list = listOf(tree, 'a condition such as (and …)', tree.place);
  if (list.items.length === 0) return TRUE;
  const rest = list.items.slice(1);
  switch (headOf(list)) {
    case 'and':
      return { kind: 'and', of: rest.map((item) => readCondition(item, scope)) };
    case 'or':
      return { kind: 'or', of: rest.map((item) => readCondition(item, scope)) };
    case 'not':
      return { kind: 'not', of: readCondition(exactly(list, 1)[0] ?? list, scope) };
    case 'imply':
      return readImply(list, scope);
    case '=':
      return readEquality(list, scope);
    case 'forall':
    case 'exists':
      return readQuantified(list, scope);
    default:
      refuseUnread(list);
      return { kind: 'fact', atom: readAtom(list, scope) };
  }
}

function exactly(list: List, count: number): readonly Tree[] {
  if (list.items.length !== count + 1) {
    throw invalidHddl(list.place, `(${headOf(list)} …) takes ${count} parts, found ${list.items.length - 1}`);
  }
  return list.items.slice(1);
}

function readImply(list: List, scope: VariableScope): Condition {
  const [left, right] = exactly(list, 2).map((part) => readCondition(part, scope));
  return { kind: 'or', of: [{ kind: 'not', of: left ?? TRUE }, right ?? TRUE] };
}

function readEquality(list: List, scope: VariableScope): Condition {
  const parts = exactly(list, 2);
  const number = parts.find((part) => isList(part) || /^[+-]?\.?\d/.test(part.text));
  if (number !== undefined && (isList(number) || !scope.names.objects.has(number.text))) {
    throw invalidHddl(list.place, 'a comparison of numbers is outside the subset read here');
  }
  const [left = '', right = ''] = parts.map((part) => readTerm(part, scope));
  return { kind: 'equal', left, right };
}

function readQuantified(list: List, scope: VariableScope): Condition {
  const [variables, body] = exactly(list, 2);
  const inner = declare(scope, listOf(variables, 'a list of variables', list.place));
  const kind = headOf(list) === 'forall' ? 'forall' : 'exists';
  return { kind, variables: inner.variables, of: readCondition(body ?? list, inner.scope) };
}

/** A predicate of the domain may bear one of these names; then it is that predicate. */
function refuseUnread(list: List): void {
  const head = headOf(list);
  if (!NUMERIC.has(head) && !UNREAD.has(head)) return;
  const what = NUMERIC.has(head) ? 'numeric fluents are' : 'it is';
  throw invalidHddl(list.place, `found ${found(list)}: ${what} outside the subset read here`);
}

/** An empty list has no effect. Cost is not read: `(increase (total-cost) …)` has no effect either. */
export function readEffect(tree: Tree, scope: VariableScope): HddlEffect {
  const list = listOf(tree, 'an effect such as (and …)', tree.place);
  switch (headOf(list)) {
    case '':
      if (list.items.length > 0) throw invalidHddl(list.place, `expected an effect, found ${found(list)}`);
      return { kind: 'and', of: [] };
    case 'and':
      return { kind: 'and', of: list.items.slice(1).map((item) => readEffect(item, scope)) };
    case 'not': {
      const atom = listOf(exactly(list, 1)[0], 'a fact', list.place);
      return { kind: 'delete', atom: readAtom(atom, scope) };
    }
    case 'forall': {
      const [variables, body] = exactly(list, 2);
      const inner = declare(scope, listOf(variables, 'a list of variables', list.place));
      return { kind: 'forall', variables: inner.variables, of: readEffect(body ?? list, inner.scope) };
    }
    case 'when': {
      const [condition, body] = exactly(list, 2);
      return { kind: 'when', condition: readCondition(condition ?? list, scope), of: readEffect(body ?? list, scope) };
    }
    case 'increase':
      return readIncrease(list);
    default:
      refuseUnread(list);
      return { kind: 'add', atom: readAtom(list, scope) };
  }
}

function readIncrease(list: List): HddlEffect {
  const target = list.items[1];
  if (target === undefined || !isList(target) || headOf(target) !== 'total-cost') refuseUnread(list);
  return { kind: 'and', of: [] };
}
