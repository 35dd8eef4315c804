/** The planners that a runtime knows, each with the tools that its runs see. */
import { asPlanner, PilotageError, type Planner, type PlannerFunction } from '#core';
import { type Catalogue, carriersOf, type EquippedPlanner, type RunBudget, type ToolSet } from '#tools';
import { assertParallelCalls, callLimit } from './at-once.ts';
import type { Equipped } from './driver-deps.ts';
import { assertPriced, unpricedOf } from './prices.ts';
import { assertBudget } from './run-budget.ts';

export interface Given {
  readonly planner: Planner;
  readonly tools: ToolSet;
  readonly budget?: RunBudget;
  readonly parallelCalls?: number;
  readonly readArgs?: EquippedPlanner['readArgs'];
}

/** The planners of a runtime, its main one first. */
export class Planners {
  readonly all: readonly Equipped[];
  readonly main: Equipped;
  readonly #byName: ReadonlyMap<string, Equipped>;

  /**
   * @param others beside them those are known that carry out tools of any of them.
   * @param atOnce so many calls of a step run at once, as the runtime says.
   * @throws PilotageError `price_missing` for a budget of cost that could not hold, `invalid_config` for two planners of one
   * name, or for one that is given twice and has other tools
   * or another budget the second time; `no_planner`, or a tool's registration error.
   */
  constructor(
    main: Given,
    others: readonly EquippedPlanner[],
    catalogueOf: (tools: ToolSet) => Catalogue,
    atOnce?: number,
  ) {
    const catalogues = new Map<ToolSet, Catalogue>();
    const equip = ({ planner, tools, budget, parallelCalls, readArgs }: Given): Equipped => {
      // Planners that have the very same set share what was made of it.
      const catalogue = catalogues.get(tools) ?? catalogueOf(tools);
      catalogues.set(tools, catalogue);
      const limit = callLimit(atOnce, parallelCalls);
      const unpriced = unpricedOf(planner, tools);
      assertPriced(planner.name, unpriced, budget?.costUsd !== undefined);
      return { planner, budget, limit, unpriced, readArgs, toolsOf: (scopes, found) => catalogue.view(scopes, found) };
    };
    const byName = new Map([...gathered(main, others)].map(([name, given]) => [name, equip(given)]));
    this.main = byName.get(main.planner.name) ?? equip(main);
    this.#byName = byName;
    this.all = [...byName.values()];
  }

  get names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /** Who goes on with a run of the planner of that name: the main one, when it is not known any more. */
  heirOf(name: string | undefined): Equipped {
    return (name === undefined ? undefined : this.find(name)) ?? this.main;
  }

  find(name: string): Equipped | undefined {
    return this.#byName.get(name);
  }

  /** @throws PilotageError `planner_unknown`. */
  named(name: string): Equipped {
    const found = this.find(name);
    if (found !== undefined) return found;
    throw new PilotageError(
      'planner_unknown',
      `This runtime knows no planner ${JSON.stringify(name)}, only ${this.names.join(', ')}. Give it to createRuntime, in planners.`,
      { data: { planner: name, known: this.names } },
    );
  }
}

/**
 * The main planner as a runtime is given it.
 * @throws PilotageError `no_planner`, or `invalid_config` for tools beside a planner that has its own.
 */
export function mainOf(planner: Planner | PlannerFunction | EquippedPlanner, tools: ToolSet | undefined): Given {
  if (typeof planner !== 'object' || planner === null || !('planner' in planner)) {
    return { planner: asPlanner(planner), tools: tools ?? [] };
  }
  if (tools === undefined) return asGiven(planner, 'planner');
  const message = `The planner ${planner.planner.name} brings its tools along: leave tools out, or give it in planners.`;
  throw new PilotageError('invalid_config', message);
}

/** What was given under each name; a circle of tools ends where it began. */
function gathered(main: Given, others: readonly EquippedPlanner[]): ReadonlyMap<string, Given> {
  if (!Array.isArray(others))
    throw new PilotageError(
      'invalid_config',
      'planners is no list. Give one of { planner, tools, budget? }, such as flows.',
    );
  const known = new Map<string, Given>();
  const named = others.map((given, index) => asGiven(given, `planners[${index}]`));
  const open: Given[] = [...named.reverse(), main];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { name } = next.planner;
    const before = known.get(name);
    if (before === undefined) open.push(...carriersOf(next.tools).map((given) => asGiven(given, CARRIER)));
    else assertSame(before, next, before.planner === main.planner && before.budget === undefined);
    known.set(name, { ...before, ...next });
  }
  return known;
}

const WANTED = 'Give { planner, tools, budget? }, such as a flow.';
const CARRIER = 'The carriedOutBy of a tool';

/** @param where it stands, for messages. */
function asGiven(given: EquippedPlanner, where: string): Given {
  if (typeof given !== 'object' || given === null || !Array.isArray(given.tools)) {
    throw new PilotageError('invalid_config', `${where} has no list of tools. ${WANTED}`);
  }
  const { tools, budget, parallelCalls } = given;
  const planner = asPlanner(given.planner);
  assertParallelCalls(parallelCalls, `The parallelCalls of the planner ${JSON.stringify(planner.name)}`);
  if (budget !== undefined) assertBudget(planner.name, budget);
  return {
    planner,
    tools,
    ...(budget === undefined ? {} : { budget }),
    ...(parallelCalls === undefined ? {} : { parallelCalls }),
    ...(given.readArgs === undefined ? {} : { readArgs: given.readArgs.bind(given) }),
  };
}

/** @param isOpen the first had no place for a budget. */
function assertSame(first: Given, second: Given, isOpen: boolean): void {
  const name = JSON.stringify(first.planner.name);
  if (first.planner !== second.planner) {
    throw new PilotageError(
      'invalid_config',
      `Two planners are named ${name}. Every run records the name: rename one.`,
    );
  }
  const isSame = sameBudget(first.budget, second.budget) && first.parallelCalls === second.parallelCalls;
  if (sameTools(first.tools, second.tools) && (isOpen || isSame)) return;
  throw new PilotageError(
    'invalid_config',
    `The planner ${name} is given twice, with other tools or another budget. Give it once, or make two of two names.`,
  );
}

function sameTools(first: ToolSet, second: ToolSet): boolean {
  const [one, other] = [Object.values(first), new Set<unknown>(Object.values(second))];
  return one.length === other.size && one.every((tool) => other.has(tool));
}

function sameBudget(first: RunBudget = {}, second: RunBudget = {}): boolean {
  const axes = new Set([...Object.keys(first), ...Object.keys(second)] as (keyof RunBudget)[]);
  return [...axes].every((axis) => first[axis] === second[axis]);
}
