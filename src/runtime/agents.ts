/** The agents that a runtime knows. */
import {
  asPlanner,
  assertTexts,
  defined,
  type Effect,
  type GivenPlanner,
  type NamedModel,
  PilotageError,
  type Planner,
  type PlannerMemory,
} from '#core';
import {
  type Agent,
  type AgentLimits,
  type AuthorisedTools,
  agent,
  agentsOf,
  asCheckedAgent,
  type Catalogue,
  carriesOneCall,
  type ToolSet,
  withClientTools,
} from '#tools';
import type { ReadyAgent } from '../loop/driver-deps.ts';
import { callLimit } from '../loop/driver-deps.ts';
import { assertPriced, unpricedOf } from '../loop/prices.ts';

export interface AgentParts {
  /**
   * The agents that runs can be started with, by their names. Runs that name none have the first; agents that tools bring along
   * need not be named.
   */
  readonly agents?: readonly Agent[];
  /** With `tools` the short form of one agent, which has the planner's name. It comes before those of `agents`. */
  readonly planner?: GivenPlanner;
  /** The tools of `planner`: a list, or an object of tools by their names, whose values may be AI SDK `tool()` objects. */
  readonly tools?: ToolSet;
}

/** What is known of an agent from outside. */
export interface AgentRecord {
  readonly name: string;
  /** What its tools may do to the world, each once, and those of the agents that it may give tasks to. */
  readonly effects: readonly Effect[];
}

/** The agents of a runtime, the default one first. */
export class Agents {
  readonly all: readonly ReadyAgent[];
  /** The agent of runs that name none. */
  readonly default: ReadyAgent;
  /** Those that the program has given. */
  readonly #given: readonly string[];
  readonly #byName: ReadonlyMap<string, ReadyAgent>;
  #only: readonly string[] | undefined;
  /** Those that a task may be given to by name. */
  readonly #workers: readonly string[];

  /**
   * @param given the default one first. Beside them those agents are known that carry out tools of any of them.
   * @param atOnce so many calls of a step run at once, as the runtime says.
   * @throws PilotageError `price_missing` for a limit of cost that could not hold, `invalid_config` for two agents of one name;
   * or a tool's registration error.
   */
  constructor(
    given: readonly [Agent, ...Agent[]],
    catalogueOf: (tools: ToolSet, memory?: PlannerMemory) => Catalogue,
    atOnce?: number,
  ) {
    const catalogues = new Map<ToolSet, Catalogue>();
    const ready = (made: Agent): ReadyAgent => {
      const { name, planner, tools, limits, parallelCalls, onFail, undo } = made;
      // Agents that have the very same set share what was made of it.
      const { remembers } = planner;
      const shared = remembers === undefined ? catalogues.get(tools) : undefined;
      const catalogue = shared ?? catalogueOf(tools, remembers);
      if (remembers === undefined) catalogues.set(tools, catalogue);
      assertToolsOffered(name, planner, catalogue);
      const limit = callLimit(atOnce, parallelCalls);
      const unpriced = unpricedOf(planner, tools);
      assertPriced(name, unpriced, limits?.costUsd !== undefined);
      const readArgs = made.readArgs?.bind(made);
      const toolsOf: ReadyAgent['toolsOf'] = (scopes, found, withheld, clientTools = null) => {
        const own = catalogue.view(scopes, found, withheld);
        const view = clientTools === null ? own : withClientTools(own, clientTools, withheld);
        return this.#workers.length < 2 ? view : withAgents(view, this.#workers);
      };
      const undoing = { ...defined({ onFail, undo }) };
      return { agent: name, planner, limits, limit, unpriced, readArgs, isFlow: 'graph' in made, toolsOf, undoing };
    };
    const [first] = given;
    this.#given = given.map(({ name }) => name);
    const known = gathered(given);
    // A flow takes an input of its own, and no request in words.
    const works = [...known.values()].filter((each) => !carriesOneCall(each) && !('graph' in each));
    this.#workers = Object.freeze(works.map(({ name }) => name));
    const byName = new Map([...known].map(([name, found]) => [name, ready(found)]));
    this.default = byName.get(first.name) ?? ready(first);
    this.#byName = byName;
    this.all = [...byName.values()];
  }

  get names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /** Those whose runs are taken over by this process. */
  get takenOver(): readonly string[] {
    return this.#only ?? this.names;
  }

  /** Those that the program has given, the default one first; not those that their tools bring along. */
  get records(): readonly AgentRecord[] {
    return this.#given.map((name) => ({ name, effects: this.#effectsOf(name) }));
  }

  #effectsOf(name: string): readonly Effect[] {
    const own = this.named(name).toolsOf([], []);
    const others = (own.agents ?? []).flatMap((other) => this.find(other)?.toolsOf([], []).all() ?? []);
    return [...new Set([...own.all(), ...others].map(({ effect }) => effect))];
  }

  /**
   * Only runs of these are taken over until the returned function is called; `undefined`: of all.
   * @throws PilotageError `agent_unknown`, or `invalid_config` for a list of none.
   */
  takeOver(only: readonly string[] | undefined): () => void {
    if (only !== undefined) assertTexts('The option agents of work', only, "['billing']");
    for (const name of only ?? []) this.named(name);
    if (only?.length === 0) {
      const message = 'The option agents of work names none. Leave it out, and runs of all agents are taken over.';
      throw new PilotageError('invalid_config', message);
    }
    const taken = only === undefined ? undefined : Object.freeze([...only]);
    this.#only = taken;
    return () => {
      if (this.#only === taken) this.#only = undefined;
    };
  }

  /** Who goes on with a run of the agent of that name: the default one, when it is not known any more. */
  successorOf(name: string | undefined): ReadyAgent {
    return (name === undefined ? undefined : this.find(name)) ?? this.default;
  }

  find(name: string): ReadyAgent | undefined {
    return this.#byName.get(name);
  }

  /** The model of that name of the first agent that has one. */
  modelNamed(name: string): NamedModel | undefined {
    return this.all.map(({ planner }) => planner.modelNamed?.(name)).find((model) => model !== undefined);
  }

  /** @throws PilotageError `agent_unknown`. */
  named(name: string): ReadyAgent {
    const found = this.find(name);
    if (found !== undefined) return found;
    throw new PilotageError(
      'agent_unknown',
      `This runtime has no agent ${JSON.stringify(name)}, only ${this.names.join(', ')}. Add it to agents of createRuntime.`,
      { data: { agent: name, known: this.names } },
    );
  }
}

const VIEWS = new WeakMap<AuthorisedTools, AuthorisedTools>();

/** The same view is the same object again. */
function withAgents(view: AuthorisedTools, agents: readonly string[]): AuthorisedTools {
  const known = VIEWS.get(view);
  if (known !== undefined && known.agents === agents) return known;
  const made = Object.freeze({ ...view, agents });
  VIEWS.set(view, made);
  return made;
}

/** @throws PilotageError `invalid_config` for a provider's tool that nobody could call. */
function assertToolsOffered(agent: string, planner: Planner, { ofProviders }: Catalogue): void {
  if (ofProviders.length === 0) return;
  planner.assertOffered?.(ofProviders);
  const isTold = planner.assertOffered !== undefined;
  const hosted = isTold ? undefined : ofProviders.find(({ provider }) => provider?.hosted === true);
  if (hosted === undefined) return;
  const message = `The agent ${JSON.stringify(agent)} has the tool ${hosted.name} (${hosted.provider?.id}), which its provider carries out for a model that is offered it, and its planner ${planner.name} offers tools to no model. Leave it out, or give the tool to an agent of react.`;
  throw new PilotageError('invalid_config', message);
}

/**
 * The agents that a runtime is given, the default one first: the one made of `planner` and `tools`, or the first of `agents`.
 * @throws PilotageError `no_planner`, or `invalid_config` for options that make no agent.
 */
export function agentsGiven({ planner, tools, agents = [] }: AgentParts): readonly [Agent, ...Agent[]] {
  if (!Array.isArray(agents)) {
    throw new PilotageError('invalid_config', 'agents must be a list: agents: [agent({ name, planner, tools })].');
  }
  const others = agents.map((each: Agent, index) => asCheckedAgent(each, `agents[${index}]`));
  if (planner === undefined) {
    const [first, ...rest] = others;
    if (first === undefined) {
      const message =
        'createRuntime needs an agent: give planner and tools, or agents. A program that only lists, reads and answers the runs of others takes one that does nothing: planner: finish(), of pilotage/planners/finish.';
      throw new PilotageError('no_planner', message);
    }
    if (tools === undefined) return [first, ...rest];
    const message = `tools belong to a planner, and each of agents has its own. Give them to the agent ${JSON.stringify(first.name)}, or give planner too.`;
    throw new PilotageError('invalid_config', message);
  }
  if (typeof planner === 'object' && planner !== null && 'planner' in planner) {
    throw new PilotageError(
      'invalid_config',
      'planner is an agent with tools of its own. Give it in agents: agents: [it].',
    );
  }
  const own = asPlanner(planner);
  return [agent({ name: own.name, planner: own, ...defined({ tools }) }), ...others];
}

/** The agents by name, with those that their tools bring along; a circle of tools ends where it began. */
function gathered(given: readonly Agent[]): ReadonlyMap<string, Agent> {
  const known = new Map<string, Agent>();
  const open = [...given].reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const before = known.get(next.name);
    if (before === undefined) {
      known.set(next.name, next);
      const { name } = next;
      open.push(
        ...agentsOf(next.tools).map((each) => asCheckedAgent(each, `The agent of a tool of ${JSON.stringify(name)}`)),
      );
    } else if (before !== next) assertSame(before, next);
  }
  return known;
}

function assertSame(first: Agent, second: Agent): void {
  const isSame = first.readArgs === second.readArgs && first.parallelCalls === second.parallelCalls;
  if (
    isSame &&
    sameLimits(first.limits, second.limits) &&
    first.planner === second.planner &&
    sameTools(first.tools, second.tools)
  )
    return;
  const name = JSON.stringify(first.name);
  throw new PilotageError(
    'invalid_config',
    `Two agents are named ${name}, and have other planners, tools, limits or readArgs. Every run records the name: rename one.`,
  );
}

function sameTools(first: ToolSet, second: ToolSet): boolean {
  const [one, other] = [toolsByName(first), toolsByName(second)];
  return one.size === other.size && [...one].every(([name, tool]) => other.get(name) === tool);
}

/** In an object a tool may have no name but its key. */
function toolsByName(tools: ToolSet): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(tools).map(([key, tool]) => [(tool as { name?: string }).name ?? key, tool]));
}

function sameLimits(first: AgentLimits = {}, second: AgentLimits = {}): boolean {
  const axes = new Set([...Object.keys(first), ...Object.keys(second)] as (keyof AgentLimits)[]);
  return [...axes].every((axis) => first[axis] === second[axis]);
}
