/** A flow as data and as a picture. The same definition gives the same, each time. */
import type { Effect } from '#core';
import type { FlowGraph, GraphEdge, NodeKind } from './graph.ts';

export interface TopologyNode {
  readonly name: string;
  readonly kind: NodeKind;
  readonly effect: Effect;
  readonly allowCycle: boolean;
  /** For a flow as a node: the name of that flow. */
  readonly flow?: string;
}

export interface Topology {
  readonly name: string;
  readonly entry: string;
  readonly exits: readonly string[];
  /** In the order of first sight from the entry on. */
  readonly nodes: readonly TopologyNode[];
  readonly edges: readonly GraphEdge[];
}

export function topologyOf({ name, entry, exits, nodes, edges }: FlowGraph): Topology {
  const shown = [...nodes.values()].map(({ name: node, kind, effect, allowCycle, flow }) =>
    flow === undefined ? { name: node, kind, effect, allowCycle } : { name: node, kind, effect, allowCycle, flow },
  );
  return { name, entry, exits: [...exits], nodes: shown, edges: edges.map((edge) => ({ ...edge })) };
}

/** What stands before and after the name of each kind. */
const SHAPES: Readonly<Record<NodeKind, readonly [string, string]>> = {
  node: ['[', ']'],
  router: ['{', '}'],
  join: ['{{', '}}'],
  map: ['[/', '/]'],
  flow: ['[[', ']]'],
};

/**
 * The text of a Mermaid flowchart: routers are diamonds, joins hexagons, maps slanted, flows framed. Where the flow begins and
 * ends there are round marks; edges that lead back are dotted, and those of failures say so.
 */
export function mermaidOf({ nodes, edges, entry, exits }: FlowGraph): string {
  // Names such as `end` mean something in Mermaid, so that they stand in labels alone.
  const ids = new Map([...nodes.keys()].map((name, index) => [name, `n${index}`]));
  const lines = [
    ...[...nodes.values()].map(({ name, kind, flow }) => {
      const [before, after] = SHAPES[kind];
      const label = flow === undefined || flow === name ? name : `${name}: ${flow}`;
      return `${ids.get(name)}${before}"${label}"${after}`;
    }),
    `input((" ")) --> ${ids.get(entry)}`,
    ...edges.map(
      ({ from, to, back, on }) =>
        `${ids.get(from)} ${on === undefined ? '' : `-- ${on} `}${back ? '-.->' : '-->'} ${ids.get(to)}`,
    ),
    ...exits.map((exit) => `${ids.get(exit)} --> output(((" ")))`),
  ];
  return `flowchart TD\n${lines.map((line) => `  ${line}\n`).join('')}`;
}
