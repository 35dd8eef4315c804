/** A problem file, read against its domain. */
import { readCondition, TRUE } from './condition.ts';
import type { HddlDomain, HddlProblem, Signature } from './model.ts';
import { addObjects } from './read-domain.ts';
import { declare, newScope, parametersOf, readAtom, type VariableScope } from './scope.ts';
import { checkRequirements, checkSections, type Frame, oneSection, readFrame, readKeys } from './sections.ts';
import { readSubtasks, SUBTASK_SECTIONS } from './subtasks.ts';
import { found, headOf, invalidHddl, isList, type List, listOf, nameOf } from './tree.ts';
import { readTypedList } from './typed-list.ts';

const SECTIONS = new Set([':domain', ':requirements', ':objects', ':htn', ':init', ':goal', ':metric']);
const HTN_KEYS = [':parameters', ':constraints', ...SUBTASK_SECTIONS];

/** @throws hddl_invalid, with the place and what was expected there */
export function readProblem(text: string, file: string, domain: HddlDomain): HddlProblem {
  const frame = readFrame(text, file, 'problem');
  checkSections(frame, SECTIONS);
  checkRequirements(frame);
  checkDomain(frame, domain);
  const objects = new Map(domain.constants);
  addObjects(objects, readTypedList(oneSection(frame, ':objects')?.items.slice(1) ?? [], false), domain.types);
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
  const { scope, variables } = declare(outer, parametersOf(keys.get(':parameters')?.value, section));
  const constraints = keys.get(':constraints');
  const known = new Map<string, Signature>(domain.tasks);
  for (const action of domain.actions.values()) {
    known.set(action.name, { arity: action.parameters.length, place: section.place });
  }
  return {
    parameters: variables,
    constraint:
      constraints === undefined
        ? TRUE
        : readCondition(listOf(constraints.value, 'a condition', constraints.key.place), scope),
    subtasks: readSubtasks(keys, scope, known),
    slots: scope.counter.slots,
  };
}

/** The values of functions, `(= (total-cost) 0)`, are passed over: no cost is read. */
function readInit(frame: Frame, scope: VariableScope): HddlProblem['init'] {
  const section = oneSection(frame, ':init');
  const facts = [];
  for (const item of section?.items.slice(1) ?? []) {
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
