/** A flow run by hand, node by node, as slowly and plainly as can be: what the rounds of its planner are held against. */
import type { Json } from '#core';
import type { FlowGraph, GraphNode } from '#flow';
import type { Runs } from './programs.ts';

/** Two ways lead to one node at once: the flow should not have passed its check. */
export class Ambiguous extends Error {}

/** @returns what the exit that ran last has come to; `undefined`: none has. */
export function interpret(graph: FlowGraph, input: Json, run: Runs): Json | undefined {
  const latest = new Map<string, Json>();
  let exit: Json | undefined;
  let heads: ReadonlyMap<string, Json> = new Map([[graph.entry, input]]);
  while (heads.size > 0) {
    const round = new RoundByHand(graph, heads, latest);
    round.runAll(run);
    for (const name of graph.exits) if (round.values.has(name)) exit = round.values.get(name);
    heads = round.nextHeads();
  }
  return exit;
}

class RoundByHand {
  readonly values = new Map<string, Json>();
  readonly #graph: FlowGraph;
  readonly #heads: ReadonlyMap<string, Json>;
  readonly #latest: Map<string, Json>;
  readonly #members = new Set<string>();
  readonly #payloads = new Map<string, Json>();

  constructor(graph: FlowGraph, heads: ReadonlyMap<string, Json>, latest: Map<string, Json>) {
    this.#graph = graph;
    this.#heads = heads;
    this.#latest = latest;
    for (let size = -1; size !== this.#members.size; ) {
      size = this.#members.size;
      for (const node of graph.nodes.values()) if (this.#belongs(node)) this.#members.add(node.name);
    }
  }

  runAll(run: Runs): void {
    const open = new Set(this.#members);
    while (open.size > 0) {
      for (const name of open) {
        if (this.#sources(name).some((source) => open.has(source))) continue;
        open.delete(name);
        const given = this.#given(this.#node(name));
        this.#latest.delete(name);
        if (given === undefined) continue;
        const value = run(name, given);
        this.#payloads.set(name, given);
        this.values.set(name, value);
        this.#latest.set(name, value);
      }
    }
  }

  nextHeads(): ReadonlyMap<string, Json> {
    const heads = new Map<string, Json>();
    for (const { from, to, back } of this.#graph.edges) {
      const payload = this.#payloads.get(from);
      if (back && payload !== undefined && this.values.get(from) === to) heads.set(to, payload);
    }
    return heads;
  }

  #belongs({ name, parents }: GraphNode): boolean {
    if (this.#heads.has(name)) return true;
    const isReached = this.#sources(name).some((source) => this.#members.has(source));
    return isReached && (parents ?? []).every((each) => this.#members.has(each.name) || this.#latest.has(each.name));
  }

  /** What the node is handed; `undefined`: it is passed over. */
  #given({ name, parents }: GraphNode): Json | undefined {
    if (this.#heads.has(name)) return this.#heads.get(name);
    if (parents !== undefined) {
      const all = parents.map((each) => [each.name, this.#latest.get(each.name)] as const);
      return all.some(([, value]) => value === undefined) ? undefined : (Object.fromEntries(all) as Json);
    }
    const ways = this.#sources(name).flatMap((source) => {
      const value = this.values.get(source);
      if (value === undefined) return [];
      if (this.#node(source).kind !== 'router') return [value];
      return value === name ? [this.#payloads.get(source) as Json] : [];
    });
    if (ways.length > 1) throw new Ambiguous(`${ways.length} ways lead to ${name}.`);
    return ways[0];
  }

  #sources(name: string): readonly string[] {
    return this.#graph.edges.flatMap(({ from, to, back }) => (to === name && !back ? [from] : []));
  }

  #node(name: string): GraphNode {
    return this.#graph.nodes.get(name) as GraphNode;
  }
}
