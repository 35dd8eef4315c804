/** A domain file and a problem file, checked: each name is declared, each use has as many arguments as its declaration. */
import { GOAL } from '../domain.ts';
import { readCondition, readEffect, readSubtasks, SUBTASK_SECTIONS, TRUE } from './body.ts';
import type { Condition, HddlAction, HddlDomain, HddlMethod, HddlProblem, Signature, TypeTree } from './model.ts';
import {
  declare,
  type Names,
  newScope,
  parametersOf,
  readAtom,
  readTypedList,
  readTypes,
  readUse,
  type TypedName,
  typeName,
  type VariableScope,
} from './scope.ts';
import {
  type Frame,
  found,
  headOf,
  invalidHddl,
  isList,
  itemsIn,
  type List,
  listOf,
  nameOf,
  oneSection,
  readFrame,
  readKeys,
  type Sections,
} from './tree.ts';

const DOMAIN_SECTIONS = new Set([
  ':requirements',
  ':types',
  ':constants',
  ':predicates',
  ':functions',
  ':task',
  ':method',
  ':action',
]);
/** A task may have the same keys. */
const ACTION_KEYS = [':parameters', ':precondition', ':effect'];
const METHOD_KEYS = [':parameters', ':task', ':precondition', ':constraints', ...SUBTASK_SECTIONS];

/** @throws hddl_invalid, with the place and what was expected there */
export function readDomain(text: string, file: string): HddlDomain {
  const frame = readFrame(text, file, 'domain', DOMAIN_SECTIONS);
  const types = readTypes(itemsIn(frame, ':types'));
  const constants = new Map<string, string>();
  addObjects(constants, readTypedList(itemsIn(frame, ':constants'), false), types);
  const names: Names = { types, predicates: readPredicates(frame, types), objects: constants };
  const actions = new Map<string, HddlAction>();
  const known = new Map<string, Signature>();
  const tasks = new Map<string, Signature>();
  for (const section of all(frame, ':action')) {
    const action = readAction(section, names);
    addName(known, section, action.name, action.parameters.length);
    actions.set(action.name, action);
  }
  for (const section of all(frame, ':task')) {
    const { name, arity } = readTask(section, names);
    addName(known, section, name, arity);
    tasks.set(name, { arity, place: section.place });
  }
  const methods = all(frame, ':method').map((section) => readMethod(section, names, tasks, known));
  checkMethodNames(methods, all(frame, ':method'));
  return { name: frame.name, types, constants, predicates: names.predicates, tasks, methods, actions };
}

function all(frame: Frame, name: string): readonly List[] {
  return frame.sections.filter((section) => headOf(section) === name);
}

/** Adds to `objects`, in file order. @throws hddl_invalid for a name that is there under another type */
function addObjects(objects: Map<string, string>, names: readonly TypedName[], types: TypeTree): void {
  for (const typed of names) {
    const { text, place } = typed.name;
    const type = typeName(typed, types);
    const known = objects.get(text);
    if (known !== undefined && known !== type) throw invalidHddl(place, `object ${text} is of type ${known} already`);
    objects.set(text, type);
  }
}

function addName(known: Map<string, Signature>, section: List, name: string, arity: number): void {
  if (name === GOAL) {
    const place = section.items[1]?.place ?? section.place;
    throw invalidHddl(
      place,
      `"${name}" cannot be the name of an action or a task: it has a meaning of its own in the search`,
    );
  }
  const earlier = known.get(name);
  if (earlier !== undefined) {
    throw invalidHddl(
      section.place,
      `a task or an action named ${name} is declared in line ${earlier.place.line} already`,
    );
  }
  known.set(name, { arity, place: section.place });
}

function readPredicates(frame: Frame, types: TypeTree): ReadonlyMap<string, Signature> {
  const predicates = new Map<string, Signature>();
  for (const item of itemsIn(frame, ':predicates')) {
    const list = listOf(item, 'a predicate such as (at ?x - thing)', item.place);
    const name = nameOf(list.items[0], 'the name of a predicate', list.place);
    if (predicates.has(name.text)) throw invalidHddl(name.place, `predicate ${name.text} is declared twice`);
    const parameters = readTypedList(list.items.slice(1), true);
    for (const parameter of parameters) typeName(parameter, types);
    predicates.set(name.text, { arity: parameters.length, place: list.place });
  }
  return predicates;
}

function readTask(list: List, names: Names): { readonly name: string; readonly arity: number } {
  const name = nameOf(list.items[1], 'the name of a task', list.place);
  const keys = readKeys(list, 2, ACTION_KEYS);
  const { variables } = declare(newScope(names), parametersOf(keys, list));
  return { name: name.text, arity: variables.length };
}

function readAction(list: List, names: Names): HddlAction {
  const name = nameOf(list.items[1], 'the name of an action', list.place);
  const keys = readKeys(list, 2, ACTION_KEYS);
  const { scope, variables } = declare(newScope(names), parametersOf(keys, list));
  const effect = keys.get(':effect');
  return {
    name: name.text,
    parameters: variables,
    precondition: conditionAt(keys, ':precondition', scope),
    effect:
      effect === undefined
        ? { kind: 'and', of: [] }
        : readEffect(listOf(effect.value, 'an effect', effect.key.place), scope),
    slots: scope.counter.slots,
  };
}

function conditionAt(keys: Sections, name: string, scope: VariableScope): Condition {
  const given = keys.get(name);
  return given === undefined ? TRUE : readCondition(listOf(given.value, 'a condition', given.key.place), scope);
}

function readMethod(
  list: List,
  names: Names,
  tasks: ReadonlyMap<string, Signature>,
  known: ReadonlyMap<string, Signature>,
): HddlMethod {
  const name = nameOf(list.items[1], 'the name of a method', list.place);
  const keys = readKeys(list, 2, METHOD_KEYS);
  const { scope, variables } = declare(newScope(names), parametersOf(keys, list));
  const task = keys.get(':task');
  if (task === undefined) throw invalidHddl(list.place, `method ${name.text}: expected :task`);
  const use = readUse(listOf(task.value, 'a task such as (deliver ?p)', task.key.place), scope, 'compound task', tasks);
  const constraints = conditionAt(keys, ':constraints', scope);
  const precondition = conditionAt(keys, ':precondition', scope);
  return {
    name: name.text,
    task: { task: use.name.text, args: use.args },
    parameters: variables,
    precondition: { kind: 'and', of: [constraints, precondition] },
    subtasks: readSubtasks(keys, scope, known),
    slots: scope.counter.slots,
  };
}

function checkMethodNames(methods: readonly HddlMethod[], sections: readonly List[]): void {
  const lines = new Map<string, number>();
  for (const [index, { name }] of methods.entries()) {
    const section = sections[index];
    const earlier = lines.get(name);
    if (section === undefined) continue;
    if (earlier !== undefined) throw invalidHddl(section.place, `a method named ${name} is in line ${earlier} already`);
    lines.set(name, section.place.line);
  }
}

// The problem is read against its domain.

const PROBLEM_SECTIONS = new Set([':domain', ':requirements', ':objects', ':htn', ':init', ':goal', ':metric']);
const HTN_KEYS = [':parameters', ':constraints', ...SUBTASK_SECTIONS];

/** @throws hddl_invalid, with the place and what was expected there */
export function readProblem(text: string, file: string, domain: HddlDomain): HddlProblem {
  const frame = readFrame(text, file, 'problem', PROBLEM_SECTIONS);
  checkDomain(frame, domain);
  const objects = new Map(domain.constants);
  addObjects(objects, readTypedList(itemsIn(frame, ':objects'), false), domain.types);
  const names = { types: domain.types, predicates: domain.predicates, objects };
  const goal = oneSection(frame, ':goal');
  const goalScope = newScope(names);
  const htn = readNetwork(frame, newScope(names), domain);
  return {
    objects,
    init: readInit(frame, newScope(names)),
    ...htn,
    goal: goal === undefined ? undefined : readCondition(listOf(goal.items[1], 'a condition', goal.place), goalScope),
    slots: Math.max(htn.slots, goalScope.counter.slots),
  };
}

function checkDomain(frame: Frame, domain: HddlDomain): void {
  const section = oneSection(frame, ':domain');
  if (section === undefined) return;
  const name = nameOf(section.items[1], 'the name of a domain', section.place);
  if (name.text !== domain.name)
    throw invalidHddl(name.place, `expected the domain ${domain.name}, found ${found(name)}`);
}

function readNetwork(
  frame: Frame,
  outer: VariableScope,
  domain: HddlDomain,
): Omit<HddlProblem, 'objects' | 'init' | 'goal'> {
  const section = oneSection(frame, ':htn');
  if (section === undefined) throw invalidHddl(frame.root.place, 'expected (:htn …) with the tasks to be done');
  const keys = readKeys(section, 1, HTN_KEYS);
  const { scope, variables } = declare(outer, parametersOf(keys, section));
  const known = new Map<string, Signature>(domain.tasks);
  for (const action of domain.actions.values()) {
    known.set(action.name, { arity: action.parameters.length, place: section.place });
  }
  return {
    parameters: variables,
    constraint: conditionAt(keys, ':constraints', scope),
    subtasks: readSubtasks(keys, scope, known),
    slots: scope.counter.slots,
  };
}

/** The values of functions, `(= (total-cost) 0)`, are passed over: no cost is read. */
function readInit(frame: Frame, scope: VariableScope): HddlProblem['init'] {
  const facts = [];
  for (const item of itemsIn(frame, ':init')) {
    const list = listOf(item, 'a fact such as (at a b)', item.place);
    if (isFunctionValue(list)) continue;
    if (headOf(list) === 'not') continue;
    if (headOf(list) === 'at' && !scope.names.predicates.has('at')) {
      throw invalidHddl(list.place, `found ${found(list)}: timed facts are outside the subset read here`);
    }
    const { predicate, args } = readAtom(list, scope);
    facts.push({ predicate, args: args.map(String) });
  }
  return facts;
}

function isFunctionValue(list: List): boolean {
  const target = list.items[1];
  return headOf(list) === '=' && target !== undefined && isList(target);
}
