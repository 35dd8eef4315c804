/** How the nodes of a round are reached: what is handed to each, and on which condition. */
import { type Json, PilotageError, type Route } from '#core';
import type { GraphNode } from './graph.ts';
import type { Done, Progress } from './progress.ts';
import type { FlowShape } from './shape.ts';

/** The most ways that may lead to one node. More come only from routers behind routers, each with several ways in. */
const MAX_WAYS = 1_000;

/** The name of the next instance of a node: its own, then with `#2` behind it, and so on. */
export function instanceOf(node: string, { last }: Pick<Progress, 'last'>): string {
  const before = last.get(node);
  if (before === undefined) return node;
  if (before.isFree) return before.id;
  const [, number = '1'] = before.id.split('#');
  return `${node}#${Number(number) + 1}`;
}

export class Ways {
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
