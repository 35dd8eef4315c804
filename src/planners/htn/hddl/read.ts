/** `pilotage/planners/htn/hddl`: a domain file and a problem file as what a search works on. */
import { assertOptions, type OptionShape, PilotageError } from '#core';
import { type HtnDomain, type HtnTask, htnDomain } from '../domain.ts';
import { type HtnState, htnState } from '../state.ts';
import { TRUE } from './body.ts';
import { compileAction } from './compile.ts';
import { createFacts, createWorld, fingerprint, objectsOf } from './facts.ts';
import { type CompiledMethod, changingPredicates, compileMethod, withStaticTests } from './methods.ts';
import type { HddlMethod, HddlProblem } from './model.ts';
import { readDomain, readProblem } from './read-files.ts';

/** What messages call the two texts. */
export interface HddlFiles {
  readonly domain: string;
  readonly problem: string;
}

export interface HddlPlanning {
  readonly domain: HtnDomain;
  /** A fact `(at a b)` is the entry `a b` of the table `at`; tables whose names begin with `:` are the reader's own. */
  readonly state: HtnState;
  readonly todo: readonly HtnTask[];
}

/** Names that no file can give. */
const NETWORK = ':htn';
const FINAL = ':goal';

const FILES: OptionShape<HddlFiles> = { domain: 'text', problem: 'text' };

/**
 * The methods of a task are tried in file order; of one method the bindings of its variables in the order of the objects
 * in the files, each looked for when the one before it has failed. The plan's actions are `[action, ...objects]`. The
 * tasks of the problem stand in `todo`; if it has a goal, a task behind them that only checks it.
 * @throws PilotageError `hddl_invalid`, with file, line, column and what was expected there.
 */
export function readHddl(
  domainText: string,
  problemText: string,
  files: HddlFiles = { domain: 'domain', problem: 'problem' },
): HddlPlanning {
  assertOptions('readHddl', files, FILES);
  for (const text of [domainText, problemText]) {
    if (typeof text !== 'string')
      throw new PilotageError('invalid_config', 'readHddl takes the texts of a domain and a problem.');
  }
  const domain = readDomain(domainText, files.domain);
  const problem = readProblem(problemText, files.problem, domain);
  const world = createWorld(domain, problem);
  const facts = createFacts(domain, problem, world);
  const actions = Array.from(
    domain.actions.values(),
    (action) => [action.name, compileAction(action, world, facts)] as const,
  );
  const changing = changingPredicates(domain);
  const tasks = new Map<string, Map<string, CompiledMethod>>();
  for (const name of domain.tasks.keys()) tasks.set(name, new Map());
  for (const written of [...domain.methods, networkMethod(problem), finalMethod(problem)]) {
    const method = withStaticTests(written, domain, changing);
    const { task } = method.task;
    tasks.set(task, (tasks.get(task) ?? new Map()).set(method.name, compileMethod(method, world, facts)));
  }
  return {
    domain: htnDomain({
      operators: Object.fromEntries(actions),
      tasks: Object.fromEntries(Array.from(tasks, ([name, methods]) => [name, Object.fromEntries(methods)])),
      fingerprint,
    }),
    state: htnState(facts.tables()),
    todo: todoOf(problem),
  };
}

/** The variables of the problem's own network stand for whichever objects will do. */
function networkMethod({ parameters, constraint, subtasks, slots }: HddlProblem): HddlMethod {
  return { name: NETWORK, task: { task: NETWORK, args: [] }, parameters, precondition: constraint, subtasks, slots };
}

function finalMethod({ goal, slots }: HddlProblem): HddlMethod {
  const task = { task: FINAL, args: [] };
  return { name: FINAL, task, parameters: [], precondition: goal ?? TRUE, subtasks: [], slots };
}

function todoOf({ parameters, constraint, subtasks, goal }: HddlProblem): HtnTask[] {
  const todo: HtnTask[] =
    parameters.length > 0 || constraint !== TRUE
      ? [[NETWORK]]
      : subtasks.map(({ task, args }) => [task, ...objectsOf(args, [])]);
  return goal === undefined ? todo : [...todo, [FINAL]];
}
