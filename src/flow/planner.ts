/** The planner of a flow: a pure function of its graph and of what its run has come to. */
import { createHash } from 'node:crypto';
import {
  assertIdentity,
  type Branch,
  type CallParallel,
  defined,
  type Finish,
  type Json,
  literal,
  MAX_AT_ONCE,
  type Move,
  type OnFailedPlan,
  PilotageError,
  type Planner,
  type Route,
  type RunView,
} from '#core';
import { inputOfFailure, nodeFailed, toleratedOf, wayOfFailure } from './error.ts';
import { type FlowGraph, type GraphNode, inOrder, sourcesOf } from './graph.ts';
import {
  type Done,
  type Failure,
  failureOf,
  failuresOf,
  hasOpen,
  type Last,
  lastOf,
  lastRound,
  OPEN,
  PASSED,
  type Progress,
  type Round,
  roundNotes,
  type Status,
  type Steps,
} from './progress.ts';

const NO_STEPS: Steps = { count: 0, step: () => undefined };

/**
 * Each round of the flow is one plan, whose branches are its nodes. The run has the flow's input as `context.args`; it
 * finishes with the value of the exit, and fails with the error of the first node that fails.
 * @throws PilotageError `flow_invalid` when too many ways lead to a node.
 */
export function flowPlanner(graph: FlowGraph, onFailedPlan?: OnFailedPlan): Planner {
  const shape = flowShapeOf(graph);
  nextPart(shape, NO_STEPS, null);
  return Object.freeze({
    name: `flow:${graph.name}`,
    version: digestOf(graph),
    wakeMode: 'poll' as const,
    whileAsked: 'keep' as const,
    costless: true as const,
    ...defined({ onFailedPlan }),
    next: (run: RunView, signal: AbortSignal): Move => {
      signal.throwIfAborted();
      assertIdentity(run.identity);
      return decide(shape, run);
    },
  });
}

function decide(shape: FlowShape, run: RunView): Move {
  const { graph } = shape;
  const { trajectory } = run;
  const part = nextPart(shape, trajectory, literal(inputOf(graph.name, run)));
  switch (part.do) {
    case 'run': {
      const plan = trajectory.count === 0 ? graph.name : `${graph.name}#${trajectory.count + 1}`;
      const how = { onInvalid: 'per_branch', failFast: true, concurrency: MAX_AT_ONCE } as const;
      const decision: CallParallel = { kind: 'call_parallel', branches: part.branches, plan, ...how };
      return { decision, provenance: roundNotes(part.round) };
    }
    case 'fail':
      throw nodeFailed(graph.name, nodeNamed(graph, part.failure.node), part.failure);
    case 'end':
      if (part.exit === undefined) throw noExit(graph.name, part.round);
      return { decision: finishWith(part.exit) };
    default:
      return part satisfies never;
  }
}

/**
 * What a planner that is called as a function is given.
 * @throws PilotageError `validation_failed` when it is missing.
 */
export function inputOf(name: string, { context: { args } }: RunView): Json {
  if (args !== undefined) return args;
  const message = `The run of ${name} has no input. Start it with context.args, or through the flow's start or run.`;
  throw new PilotageError('validation_failed', message, { data: { flow: name, where: 'input' } });
}

/** What has come to a value, whole also when that was stored. */
export function finishWith({ value, artifact }: Pick<Done, 'value' | 'artifact'>): Finish {
  if (artifact === undefined) return { kind: 'finish', reason: 'goal', payload: value };
  return { kind: 'finish', reason: 'goal', payload: artifact, stored: true };
}

/** A node that failed under other code may be gone from the graph. */
function nodeNamed({ nodes }: FlowGraph, name: string): Pick<GraphNode, 'name' | 'kind'> {
  return nodes.get(name) ?? { name, kind: 'node' };
}

function noExit(flow: string, { nodes }: Round): PilotageError {
  for (const [node, status] of nodes) {
    if (status.kind !== 'passed' || status.removed === undefined) continue;
    const message = `The flow ${flow} has come to no exit: the node ${node}, which an exit needs, was taken out of its plan.`;
    const data = { flow, node, attempts: 0, cause: { ...status.removed } };
    return new PilotageError('node_exception', message, { data });
  }
  const message = `The flow ${flow} has come to no exit: nothing is left to run. Was its graph changed under way?`;
  return new PilotageError('node_exception', message, { data: { flow, attempts: 0 } });
}

/**
 * The version of a flow: a digest of everything that decides which nodes run, and with what. A run must not go on unasked when it
 * has changed.
 */
function digestOf({ nodes, edges, entry, exits }: FlowGraph): string {
  const described = [...nodes.values()].map(describe);
  const whole = JSON.stringify([
    described,
    edges.map(({ from, to, back, on }) => (on === undefined ? [from, to, back] : [from, to, back, on])),
    entry,
    exits,
  ]);
  return createHash('sha256').update(whole).digest('hex').slice(0, 32);
}

function describe({ name, kind, parents, branches, need }: GraphNode): unknown {
  const described = [name, kind, parents?.map((node) => node.name)];
  return branches === undefined ? described : [...described, branches.map(describe), need];
}

// The rounds of a flow: from the graph and the steps so far to what runs next. A round begins at the entry, or at the
// nodes to which routers have led back, and has whatever these reach without another way back. Nodes outside it keep
// their last values, for joins. Nothing here keeps state: the same steps give the same round.

/** What rounds need to know of a graph, found out once. */
interface FlowShape {
  readonly graph: FlowGraph;
  /** Each behind those that lead to it. Ways back are not looked at. */
  readonly order: readonly GraphNode[];
  /** For each node those that lead to it, the last in the order first; of a join its parents. Without ways back. */
  readonly sources: ReadonlyMap<string, readonly GraphNode[]>;
  /** For each router the nodes to which it leads back. Failure edges are not looked at either. */
  readonly heads: ReadonlyMap<string, ReadonlySet<string>>;
}

function flowShapeOf(graph: FlowGraph): FlowShape {
  const ahead = new Map<string, string[]>([...graph.nodes.keys()].map((name) => [name, []]));
  const heads = new Map<string, Set<string>>();
  for (const { from, to, back, on } of graph.edges) {
    if (on !== undefined) continue;
    if (back) heads.set(from, (heads.get(from) ?? new Set<string>()).add(to));
    else ahead.get(from)?.push(to);
  }
  const waysFrom = (name: string): readonly string[] => ahead.get(name) ?? [];
  const nodesOf = (names: readonly string[]) => names.flatMap((name) => graph.nodes.get(name) ?? []);
  const order = inOrder([...ahead.keys()], waysFrom);
  const sources = sourcesOf(order.toReversed(), waysFrom);
  return {
    graph,
    order: nodesOf(order),
    sources: new Map([...sources].map(([name, names]) => [name, nodesOf(names)])),
    heads,
  };
}

type NextPart =
  /** The next round, or the rest of the last one. */
  | { readonly do: 'run'; readonly branches: readonly Branch[]; readonly round: Round }
  | { readonly do: 'fail'; readonly failure: Failure }
  /** `exit` is the exit that has run; none: somebody has taken nodes out, or the graph is another than it was. */
  | { readonly do: 'end'; readonly exit?: Done; readonly round: Round };

/** @param input the arguments of the entry. */
function nextPart(shape: FlowShape, steps: Steps, input: Json): NextPart {
  const { graph } = shape;
  const before = lastRound(graph, steps);
  const last = lastOf(graph, steps);
  if (before === undefined)
    return run(shape, { round: roundFrom(shape, 1, new Map([[graph.entry, input]]), last), last });
  const latest = steps.step(steps.count - 1);
  const failure = latest && failureOf(latest, (failed) => wayOfFailure(graph, failed) !== undefined);
  if (failure !== undefined) return { do: 'fail', failure };
  const progress: Progress = { round: before, last };
  if (hasOpen(before)) passUnreachable(shape, progress);
  if (hasOpen(before)) return run(shape, progress);
  const heads = headsAfter(shape, progress);
  if (heads.size === 0) return endOf(graph, progress);
  return run(shape, { round: roundFrom(shape, before.number + 1, heads, last), last });
}

function run(shape: FlowShape, progress: Progress): NextPart {
  return { do: 'run', branches: branchesOfRound(shape, progress), round: progress.round };
}

/** In a round that was cut short, some nodes may never have their turn. */
function passUnreachable(shape: FlowShape, progress: Progress): void {
  visit(shape, progress, ({ name }, status, routes) => {
    if (status.kind === 'open' && routes.length === 0) progress.round.nodes.set(name, PASSED);
  });
}

/** The nodes to which routers of the round have led back, with what these were handed, and those to which failures lead. */
function headsAfter(shape: FlowShape, progress: Progress): ReadonlyMap<string, Json> {
  const heads = new Map<string, Json>();
  for (const failure of failuresOf(progress.round)) {
    const to = wayOfFailure(shape.graph, failure);
    // When several fail and lead to one node, the node gets the first failure.
    if (to !== undefined && !heads.has(to)) heads.set(to, inputOfFailure(failure));
  }
  if (shape.heads.size === 0) return heads;
  visit(shape, progress, ({ name }, status, [route]) => {
    if (status.kind !== 'done' || route === undefined) return;
    const { value } = status;
    if (typeof value === 'string' && shape.heads.get(name)?.has(value) === true) heads.set(value, route.args);
  });
  return heads;
}

function roundFrom(
  shape: FlowShape,
  number: number,
  heads: ReadonlyMap<string, Json>,
  last: ReadonlyMap<string, Last>,
): Round {
  const nodes: Round['nodes'] = new Map();
  for (const node of shape.order) {
    if (heads.has(node.name) || isReached(shape, node, nodes, last)) nodes.set(node.name, OPEN);
  }
  return { number, heads, nodes };
}

/** A join without one of its parents cannot run, however the round goes on. */
function isReached(
  { sources }: FlowShape,
  { name, parents }: GraphNode,
  nodes: Round['nodes'],
  last: ReadonlyMap<string, Last>,
): boolean {
  const isOfRound = (sources.get(name) ?? []).some((source) => nodes.has(source.name));
  return (
    isOfRound && (parents ?? []).every((parent) => nodes.has(parent.name) || last.get(parent.name)?.done !== undefined)
  );
}

function branchesOfRound(shape: FlowShape, progress: Progress): readonly Branch[] {
  const branches: Branch[] = [];
  visit(shape, progress, (node, status, routes) => {
    if (status.kind !== 'open') return;
    const tolerates = toleratedOf(shape.graph, node.name);
    const branch = branchOf(node, instanceOf(node.name, progress), routes);
    branches.push(tolerates.length === 0 ? branch : { ...branch, tolerates });
  });
  return branches;
}

/** The nodes of the round that were not passed over, each behind its sources: so no way is followed twice. */
function visit(
  shape: FlowShape,
  progress: Progress,
  look: (node: GraphNode, status: Status, routes: readonly Route[]) => void,
): void {
  const ways = new Ways(shape, progress);
  for (const node of shape.order) {
    const status = progress.round.nodes.get(node.name);
    if (status !== undefined && status.kind !== 'passed') look(node, status, ways.to(node));
  }
}

function branchOf({ name: tool }: GraphNode, id: string, routes: readonly Route[]): Branch {
  const [only] = routes;
  return routes.length === 1 && only !== undefined ? { id, tool, ...only } : { id, tool, args: null, routes };
}

function endOf({ exits }: FlowGraph, { round, last }: Progress): NextPart {
  let exit: Done | undefined;
  for (const name of exits) {
    const done = last.get(name)?.done;
    if (done !== undefined && (exit === undefined || done.step > exit.step)) exit = done;
  }
  return exit === undefined ? { do: 'end', round } : { do: 'end', exit, round };
}

/** The most ways that may lead to one node. More come only from routers behind routers, each with several ways in. */
const MAX_WAYS = 1_000;

/** The name of the next instance of a node: its own, then with `#2` behind it, and so on. */
function instanceOf(node: string, { last }: Pick<Progress, 'last'>): string {
  const before = last.get(node);
  if (before === undefined) return node;
  if (before.isFree) return before.id;
  const [, number = '1'] = before.id.split('#');
  return `${node}#${Number(number) + 1}`;
}

/** How the nodes of a round are reached: what is handed to each, and on which condition. */
class Ways {
  readonly #shape: FlowShape;
  readonly #progress: Progress;
  readonly #references = new Map<string, Json>();
  readonly #payloads = new Map<string, readonly Route[]>();

  constructor(shape: FlowShape, progress: Progress) {
    this.#shape = shape;
    this.#progress = progress;
  }

  /**
   * The ways to a node of the round; of those that are open at once the first is the right one. None: it will not run.
   *
   * A router hands on what it was handed, so a target refers to the value of the node before the router. Of two nodes before
   * a router that have both run, the later in the order is the one from which it was reached: the other has led to that one.
   */
  to(node: GraphNode): readonly Route[] {
    const { heads } = this.#progress.round;
    const given = heads.get(node.name);
    if (given !== undefined) return [{ args: given }];
    const { parents } = node;
    if (parents !== undefined) return this.#toJoin(parents);
    const ways = (this.#shape.sources.get(node.name) ?? []).flatMap((source) => this.#from(source, node.name));
    if (ways.length <= MAX_WAYS) return ways;
    throw new PilotageError(
      'flow_invalid',
      `More than ${MAX_WAYS} ways lead to the node ${node.name}. Put a node between the routers, or split the flow.`,
      { data: { flow: this.#shape.graph.name, node: node.name } },
    );
  }

  /** A parent outside the round has the value of its last instance. */
  #toJoin(parents: readonly GraphNode[]): readonly Route[] {
    const { round, last } = this.#progress;
    const values: [string, Json][] = [];
    for (const { name } of parents) {
      const status = round.nodes.get(name) ?? last.get(name)?.done;
      if (status === undefined || status.kind === 'passed') return [];
      values.push([name, this.#reference(name, status)]);
    }
    return [{ args: Object.fromEntries(values) }];
  }

  /** What a node that is not of the round has led to was led to in its own. */
  #from(source: GraphNode, target: string): readonly Route[] {
    const { name } = source;
    const status = this.#progress.round.nodes.get(name);
    if (status === undefined || status.kind === 'passed') return [];
    if (source.kind !== 'router') return [{ args: this.#reference(name, status) }];
    if (status.kind === 'done') return status.value === target ? this.#payloadsOf(source) : [];
    const when = { branch: instanceOf(name, this.#progress), equals: target };
    return this.#payloadsOf(source).map((way) => ({ ...way, when }));
  }

  /** What the router may have been handed; of those that are open at once the first counts, if it has run. */
  #payloadsOf(router: GraphNode): readonly Route[] {
    const known = this.#payloads.get(router.name);
    if (known !== undefined) return known;
    const ways = this.to(router);
    const first = ways[0];
    const isOne = first !== undefined && ways.every(({ args }) => args === first.args);
    const payloads = isOne ? [{ args: first.args }] : ways.map(throughRouter);
    this.#payloads.set(router.name, payloads);
    return payloads;
  }

  /** Returns the same object each time. */
  #reference(name: string, status: Done | { readonly kind: 'open' }): Json {
    const known = this.#references.get(name);
    if (known !== undefined) return known;
    const made =
      status.kind === 'done' ? { $from: status.id, step: status.step } : { $from: instanceOf(name, this.#progress) };
    this.#references.set(name, made);
    return made;
  }
}

/** The routers on the way have run; of the last one the condition is the next node's. */
function throughRouter({ args, after = [], when }: Route): Route {
  return when === undefined ? { args, after } : { args, after: [...after, when.branch] };
}
