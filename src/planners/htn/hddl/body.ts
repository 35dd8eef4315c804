/** What stands inside actions, methods and problems: conditions, effects, and subtasks in a total order. */
import type { Condition, HddlEffect, Signature, TaskUse } from './model.ts';
import { declare, readAtom, readTerm, readUse, type VariableScope } from './scope.ts';
import {
  found,
  headOf,
  invalidHddl,
  isList,
  type List,
  listOf,
  nameOf,
  type Sections,
  type Tree,
  type Word,
  wordOf,
} from './tree.ts';

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

// Subtasks stand in the order written, or are labelled and have an ordering that is total.

interface Labelled {
  readonly label: string | undefined;
  readonly use: TaskUse;
  readonly list: List;
}

const ORDERED = [':ordered-subtasks', ':ordered-tasks'];
const UNORDERED = [':subtasks', ':tasks'];

export const SUBTASK_SECTIONS: readonly string[] = [...ORDERED, ...UNORDERED, ':ordering'];

/** No such section: no subtasks. */
export function readSubtasks(
  sections: Sections,
  scope: VariableScope,
  known: ReadonlyMap<string, Signature>,
): readonly TaskUse[] {
  const given = [...ORDERED, ...UNORDERED].flatMap((name) => sections.get(name) ?? []);
  const [first, second] = given;
  if (second !== undefined) throw invalidHddl(second.key.place, `found ${second.key.text} beside ${first?.key.text}`);
  const ordering = sections.get(':ordering');
  if (first === undefined) {
    if (ordering !== undefined) throw invalidHddl(ordering.key.place, 'found :ordering without subtasks');
    return [];
  }
  const steps = stepsOf(listOf(first.value, 'a list of subtasks', first.key.place), scope, known);
  const ordered = ORDERED.includes(first.key.text.toLowerCase());
  if (ordering === undefined) {
    if (!ordered && steps.length > 1) throw partial(first.key);
    return steps.map(({ use }) => use);
  }
  if (ordered) throw invalidHddl(ordering.key.place, `found :ordering beside ${first.key.text}`);
  return sorted(steps, ordering.key, listOf(ordering.value, 'an ordering such as (and (< a b))', ordering.key.place));
}

function partial(at: Word): Error {
  return invalidHddl(at.place, `${at.text}: partial order is outside the subset read here; expected a total order`);
}

function stepsOf(list: List, scope: VariableScope, known: ReadonlyMap<string, Signature>): Labelled[] {
  if (list.items.length === 0) return [];
  const items = headOf(list) === 'and' ? list.items.slice(1) : [list];
  return items
    .map((item) => listOf(item, 'a subtask such as (move ?a ?b)', item.place))
    .filter((item) => item.items.length > 0)
    .map((item) => readStep(item, scope, known));
}

/** `(task term …)` or `(label (task term …))`. */
function readStep(list: List, scope: VariableScope, known: ReadonlyMap<string, Signature>): Labelled {
  const inner = list.items[1];
  const labelled = list.items.length === 2 && inner !== undefined && isList(inner);
  const label = labelled ? nameOf(list.items[0], 'the label of a subtask', list.place).text : undefined;
  const { name, args } = readUse(labelled ? inner : list, scope, 'task', known);
  return { label, use: { task: name.text, args }, list };
}

/** A total order: the first is before all others, the second before all but that, and so on. */
function sorted(steps: readonly Labelled[], key: Word, ordering: List): readonly TaskUse[] {
  const byLabel = new Map<string, Labelled>();
  for (const step of steps) {
    if (step.label === undefined) throw invalidHddl(step.list.place, `expected a label before ${found(step.list)}`);
    if (byLabel.has(step.label)) throw invalidHddl(step.list.place, `label ${step.label} is used twice`);
    byLabel.set(step.label, step);
  }
  const after = pairsOf(ordering, byLabel);
  const rank = (step: Labelled): number => after.get(step.label ?? '')?.size ?? 0;
  const chain = [...steps].sort((left, right) => rank(right) - rank(left));
  if (chain.some((step, index) => rank(step) !== chain.length - 1 - index)) throw partial(key);
  return chain.map(({ use }) => use);
}

/** For each label, all the labels behind it, through others too. */
function pairsOf(ordering: List, byLabel: ReadonlyMap<string, Labelled>): Map<string, Set<string>> {
  const after = new Map<string, Set<string>>();
  for (const item of headOf(ordering) === 'and'
    ? ordering.items.slice(1)
    : ordering.items.length > 0
      ? [ordering]
      : []) {
    const pair = listOf(item, 'a pair such as (< a b)', ordering.place);
    if (headOf(pair) !== '<' || pair.items.length !== 3) {
      throw invalidHddl(pair.place, `expected a pair such as (< a b), found ${found(pair)}`);
    }
    const [left, right] = pair.items.slice(1).map((label) => knownLabel(label, byLabel));
    if (left === undefined || right === undefined) continue;
    after.set(left, (after.get(left) ?? new Set()).add(right));
  }
  closeOver(after);
  for (const [label, behind] of after) {
    if (behind.has(label)) throw invalidHddl(ordering.place, `the ordering puts ${label} before itself`);
  }
  return after;
}

function knownLabel(tree: Tree, byLabel: ReadonlyMap<string, Labelled>): string {
  const word = wordOf(tree, 'the label of a subtask', tree.place);
  if (!byLabel.has(word.text)) throw invalidHddl(word.place, `unknown label ${found(word)}`);
  return word.text;
}

function closeOver(after: ReadonlyMap<string, Set<string>>): void {
  for (const behind of after.values()) {
    // A set's iteration also meets what is added on the way.
    for (const label of behind) for (const further of after.get(label) ?? []) behind.add(further);
  }
}
