/** Checks whether a flow can be carried out. All faults are reported at once. */
import { MAX_AT_ONCE, MAX_PLAN_BRANCHES, MAX_TASK_DEPTH, meantBy, whyNoUsd } from '#core';
import { type AnyTool, agentsOf, type ToolSet } from '#tools';
import type { FlowBudget, FlowGraph, GraphEdge, GraphNode } from '../graph.ts';
import { cyclesOf } from './cycles.ts';
import { type FlowFault, faultOf, flowInvalid, listedNames } from './fault.ts';
import { routingFaults } from './guards.ts';
import { raceFaults } from './races.ts';
import { type FlowParts, gatherGraph, isNode, type Sketch, unreachedFaults } from './sketch.ts';

export interface GivenFlow extends FlowParts {
  readonly name: string;
  readonly budget: FlowBudget;
}

/** @throws PilotageError `flow_invalid` with every fault. */
export function checkedGraph(given: GivenFlow): FlowGraph {
  const { name, budget, exits } = given;
  const { sketch, faults: gathered } = gatherGraph(given);
  const faults = [...nameFaults(`The flow ${JSON.stringify(name)}`, name), ...budgetFaults(budget), ...gathered];
  if (exits.length === 0)
    faults.push(faultOf('no_exit', 'The flow has no exit. Name the node that gives its output.', []));
  if (sketch === undefined) throw flowInvalid(shownFlow(name), faults);
  const nodes = new Map([...sketch.nodes].map(([at, node]) => [at, inFlow(node, name, sketch)]));
  for (const node of nodes.values()) faults.push(...nodeFaults(node, sketch.nodes));
  faults.push(...shapeFaults(sketch), ...failureFaults(sketch), ...unreachedFaults(sketch));
  const cycles = cyclesOf(sketch);
  faults.push(...cycles.faults, ...hopFaults(cycles.goesRound, budget));
  // Without these it cannot be said what runs.
  if (!faults.some(({ code }) => MISSHAPEN.has(code))) faults.push(...routingFaults(sketch, cycles.back));
  if (faults.length > 0) throw flowInvalid(shownFlow(name), faults);
  const edges = [...sketch.nodes.keys()].flatMap((from): GraphEdge[] => [
    ...(sketch.ways.get(from) ?? []).map((to) => ({ from, to, back: cycles.back.get(from)?.has(to) === true })),
    ...(sketch.failures.get(from) ?? []).map(({ on, to }) => ({ from, to, back: false, on })),
  ]);
  const { entry } = sketch;
  return Object.freeze({ name, nodes, edges: Object.freeze(edges), entry, exits: sketch.exits, budget });
}

const MISSHAPEN: ReadonlySet<FlowFault['code']> = new Set([
  'not_a_node',
  'duplicate_name',
  'no_exit',
  'no_parents',
  'no_targets',
  'router_as_parent',
  'edge_into_join',
  'failure_to_itself',
  'failure_of_router',
  'failures_differ',
  'join_as_entry',
  'too_many_nodes',
  'cycle_without_router',
]);

function shownFlow(name: unknown): string {
  return typeof name === 'string' && isName(name) ? name : 'without a proper name';
}

function inFlow({ toolIn, ...node }: GraphNode, flow: string, { ways }: Sketch): GraphNode {
  if (toolIn === undefined) return Object.freeze(node);
  return Object.freeze({ ...node, tool: toolIn({ flow, waysOut: ways.get(node.name) ?? [] }) });
}

/** Checks names of nodes, and of flows, whose names become names of agents. */
function isName(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(name);
}

function nameFaults(owner: string, name: unknown): FlowFault[] {
  if (typeof name === 'string' && isName(name)) return [];
  const message = `${owner} has no proper name: give a letter, then letters, digits, "_", "-" and ".", 64 at most.`;
  return [faultOf('bad_name', message, typeof name === 'string' ? [name] : [])];
}

const AXES = ['hops', 'deadlineMs', 'costUsd', 'tokens'] as const;

function budgetFaults(budget: FlowBudget): FlowFault[] {
  // A misspelt axis would bound nothing.
  const others = Object.keys(budget).filter((key) => !AXES.some((axis) => axis === key));
  const unknown = others.map((key) => {
    const meant = meantBy(key, AXES);
    const message = `budget.${key} is not an axis of a budget.${meant === undefined ? '' : ` ${meant.advice}`} The axes are ${AXES.join(', ')}; costUsd is in US dollars.`;
    return faultOf('bad_budget', message, []);
  });
  const amounts = AXES.flatMap((axis) => {
    const amount = budget[axis];
    const isAmount = axis === 'costUsd' ? whyNoUsd : whyNoAmount;
    const why = amount === undefined ? undefined : isAmount(amount);
    return why === undefined ? [] : [faultOf('bad_budget', `budget.${axis} is ${amount}; ${why}.`, [])];
  });
  return [...unknown, ...amounts];
}

function whyNoAmount(amount: number): string | undefined {
  return Number.isFinite(amount) && amount >= 0 ? undefined : 'give a number from 0 up, or leave it out';
}

function hopFaults(hasCycle: boolean, { hops }: FlowBudget): FlowFault[] {
  if (!hasCycle || hops !== undefined) return [];
  const message =
    'The flow has a cycle and no budget.hops, so that nothing bounds how often the cycle repeats. Give a budget with hops.';
  return [faultOf('cycle_without_hops', message, [])];
}

/** @param nodes the nodes of the flow. */
function nodeFaults(node: GraphNode, nodes: ReadonlyMap<string, GraphNode>): FlowFault[] {
  const { name, kind, tool, concurrency = 1, branches = [] } = node;
  const faults = nameFaults(`The ${kind} ${JSON.stringify(name)}`, name);
  // The function of a map is that of its items.
  const called = kind === 'map' && 'agent' in tool ? (Object.values(tool.agent.tools)[0] as AnyTool) : tool;
  if (!('agent' in called)) {
    if (typeof called.execute !== 'function') {
      faults.push(faultOf('no_function', `The ${kind} ${name} has no function to run.`, [name]));
    }
  }
  if (kind === 'race') faults.push(...raceFaults(node, nodes));
  for (const branch of branches.filter(isNode)) faults.push(...nodeFaults(branch, nodes));
  const levels = levelsOf([tool]);
  if (levels > MAX_TASK_DEPTH) {
    const message = `The ${kind} ${name} has ${levels} levels of flows, maps and races in it; a run has at most ${MAX_TASK_DEPTH} below it. Take one level out.`;
    faults.push(faultOf('too_deep', message, [name]));
  }
  if (!(Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= MAX_AT_ONCE)) {
    const message = `The map ${name} has the concurrency ${concurrency}; give a whole number from 1 to ${MAX_AT_ONCE}.`;
    faults.push(faultOf('bad_concurrency', message, [name]));
  }
  return faults;
}

/** How many runs below each other carry out a call of one of the tools. */
function levelsOf(tools: ToolSet): number {
  return Math.max(0, ...agentsOf(tools).map((agent) => 1 + levelsOf(agent.tools)));
}

/** Checks each failure edge by itself. */
function failureFaults({ nodes, failures }: Sketch): FlowFault[] {
  return [...failures].flatMap(([from, ways]) => {
    const faults: FlowFault[] = [];
    const isRouter = nodes.get(from)?.kind === 'router';
    if (isRouter) {
      const message = `A failure edge leads from the router ${from}. A router does nothing that may fail in a way that is foreseen: give it a default.`;
      faults.push(faultOf('failure_of_router', message, [from]));
    }
    for (const [on, same] of Map.groupBy(ways, (way) => way.on)) {
      const names = same.map(({ to }) => to);
      if (names.length < 2) continue;
      const message = `When ${from} fails (${on}), it leads to ${listedNames(names)}. Give it one node, from which several may follow.`;
      faults.push(faultOf('failures_differ', message, [from, ...names]));
    }
    for (const { to } of ways) {
      if (to === from) {
        const message = `A failure edge leads from ${from} to itself. Give it retries, or lead to another node and from there back.`;
        faults.push(faultOf('failure_to_itself', message, [from]));
      }
      if (nodes.get(to)?.kind !== 'join') continue;
      const message = `A failure edge leads from ${from} to the join ${to}, which gets its input from its parents alone. Lead to a node, and make that a parent.`;
      faults.push(faultOf('edge_into_join', message, [from, to]));
    }
    return faults;
  });
}

/** Checks what each kind of node requires of the nodes around it. */
function shapeFaults({ nodes, ways, exits, entry }: Sketch): FlowFault[] {
  const faults: FlowFault[] = [];
  const add = (code: FlowFault['code'], message: string, ...names: string[]): void => {
    faults.push(faultOf(code, message, names));
  };
  if (nodes.size > MAX_PLAN_BRANCHES) {
    add('too_many_nodes', `The flow has ${nodes.size} nodes; at most ${MAX_PLAN_BRANCHES} are allowed. Split it.`);
  }
  for (const { name, kind, parents = [] } of nodes.values()) {
    if (kind === 'router' && ways.get(name)?.length === 0) {
      add('no_targets', `The router ${name} has no node that it could pick.`, name);
    }
    if (kind === 'router' && exits.includes(name)) {
      add('router_as_exit', `The router ${name} is an exit. A router gives no output: let its targets be exits.`, name);
    }
    if (kind !== 'join') continue;
    const names = parents.map((parent) => parent?.name);
    if (new Set(names).size < Math.max(1, names.length)) {
      add(
        'no_parents',
        `The join ${name} needs at least one parent, and each once. It has: ${listedNames(names) || 'none'}.`,
        name,
      );
    }
    if (name === entry) add('join_as_entry', `The join ${name} is the entry, to which no parent leads.`, name);
    for (const parent of parents) {
      if (parent?.kind !== 'router') continue;
      add(
        'router_as_parent',
        `The router ${parent.name} is a parent of the join ${name}. A router gives no value of its own: name its targets.`,
        name,
        parent.name,
      );
    }
  }
  for (const [from, targets] of ways) {
    for (const to of targets) {
      const { kind, parents = [] } = nodes.get(to) as GraphNode;
      if (kind !== 'join' || parents.some((parent) => parent?.name === from)) continue;
      add(
        'edge_into_join',
        `An edge leads from ${from} to the join ${to}, which gets its input from its parents alone. Make ${from} a parent, or take the edge away.`,
        from,
        to,
      );
    }
  }
  return faults;
}
