import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { edge, flow, join, map, node, predicateRouter } from '#flow';
import { drawn } from './drawn.ts';

const any = z.any();
const plain = (name: string, allowCycle = false) =>
  node(name, { inputSchema: any, effect: 'read', execute: (x) => x, allowCycle });

function mixed() {
  const find = plain('find');
  const lookup = flow({ name: 'lookup', inputSchema: any, entry: find, exit: find }).asNode('customer');
  const [start, end] = [plain('start', true), plain('end', true)];
  const scores = map('scores', { execute: (item) => item, effect: 'pure' });
  const both = join('both', { of: [lookup, scores], execute: (input) => input, effect: 'pure' });
  const router = predicateRouter({ branches: [{ when: () => true, to: end }], default: start }).asNode('again', {
    allowCycle: true,
  });
  const last = plain('last', true);
  return flow({
    name: 'mixed',
    inputSchema: any,
    entry: start,
    exit: both,
    budget: { hops: 99 },
    edges: [edge(start, last), edge(last, router), edge(end, lookup), edge(end, scores)],
  });
}

describe('RT-21 topology', () => {
  it('gives nodes and edges in the order of first sight from the entry, those of routers and joins too', () => {
    expect(mixed().topology()).toEqual({
      name: 'mixed',
      entry: 'start',
      exits: ['both'],
      nodes: [
        { name: 'start', kind: 'node', effect: 'read', allowCycle: true },
        { name: 'last', kind: 'node', effect: 'read', allowCycle: true },
        { name: 'again', kind: 'router', effect: 'pure', allowCycle: true },
        { name: 'end', kind: 'node', effect: 'read', allowCycle: true },
        { name: 'customer', kind: 'flow', effect: 'read', allowCycle: false, flow: 'lookup' },
        { name: 'scores', kind: 'map', effect: 'pure', allowCycle: false },
        { name: 'both', kind: 'join', effect: 'pure', allowCycle: false },
      ],
      edges: [
        { from: 'start', to: 'last', back: false },
        { from: 'last', to: 'again', back: false },
        { from: 'again', to: 'end', back: false },
        { from: 'again', to: 'start', back: true },
        { from: 'end', to: 'customer', back: false },
        { from: 'end', to: 'scores', back: false },
        { from: 'customer', to: 'both', back: false },
        { from: 'scores', to: 'both', back: false },
      ],
    });
  });

  it('gives the same each time, and for the same definition', () => {
    const made = mixed();
    expect(made.topology()).toEqual(made.topology());
    expect(JSON.stringify(mixed().topology())).toBe(JSON.stringify(made.topology()));
    expect(mixed().mermaid()).toBe(made.mermaid());
    expect(mixed().planner.version).toBe(made.planner.version);
  });

  it('tells each kind, the ends and the ways back apart in Mermaid', () => {
    expect(mixed().mermaid()).toBe(`flowchart TD
  n0["start"]
  n1["last"]
  n2{"again"}
  n3["end"]
  n4[["customer: lookup"]]
  n5[/"scores"/]
  n6{{"both"}}
  input((" ")) --> n0
  n0 --> n1
  n1 --> n2
  n2 --> n3
  n2 -.-> n0
  n3 --> n4
  n3 --> n5
  n4 --> n6
  n5 --> n6
  n6 --> output(((" ")))
`);
  });

  it('keeps the words of Mermaid out of its ids', () => {
    const nodes = {
      graph: { kind: 'node', to: ['end'] },
      end: { kind: 'node', to: ['a.b-c'] },
      'a.b-c': { kind: 'node' },
    } as const;
    const lines = drawn({ nodes, exits: ['a.b-c'] })
      .mermaid()
      .split('\n');
    expect(lines.slice(1, 4)).toEqual(['  n0["graph"]', '  n1["end"]', '  n2["a.b-c"]']);
    expect(lines.filter((line) => /(graph|end|a\.b-c)(?!")/.test(line.replace(/"[^"]*"/g, '')))).toEqual([]);
  });
});
