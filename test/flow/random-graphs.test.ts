/** Flows of any shape that passes the check, against a plain interpreter, by hand and in a runtime. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Json, local, PilotageError } from '#core';
import { checkedGraph, type FlowGraph, flowPlanner, type GraphNode } from '#flow';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { drawn, play } from './by-hand.ts';
import { interpret } from './interpreter.ts';
import { block, programOf, type Runs } from './programs.ts';

interface Sketched {
  readonly kind: 'node' | 'router' | 'join';
  /** How far on the edges lead; of a router also back. */
  readonly on: readonly number[];
  readonly back: readonly number[];
}

const sketched: fc.Arbitrary<Sketched> = fc.record({
  kind: fc.oneof(
    { arbitrary: fc.constant('node' as const), weight: 4 },
    { arbitrary: fc.constant('router' as const), weight: 5 },
    { arbitrary: fc.constant('join' as const), weight: 1 },
  ),
  on: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
  back: fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { maxLength: 1 }),
});

/** A graph that may be wrong in any way; `undefined`: it is. */
function graphOf(sketch: readonly Sketched[]): FlowGraph | undefined {
  const letter = (index: number): string => `${sketch[index]?.kind ?? 'node'}${index}`;
  const last = sketch.length;
  const edges = new Set<string>();
  for (const [index, { kind, on, back }] of sketch.entries()) {
    const ways = kind === 'router' ? on : on.slice(0, 2);
    for (const step of ways) edges.add(`${letter(index)} > ${letter(Math.min(last, index + step))}`);
    if (kind === 'router')
      for (const step of back) if (index - step >= 0) edges.add(`${letter(index)} > ${letter(index - step)}`);
  }
  const all = [...edges].map((text) => text.split(' ') as [string, string, string]);
  const joins: Record<string, string[]> = {};
  for (const [from, , to] of all) if (to.startsWith('join')) joins[to] = [...(joins[to] ?? []), from];
  const routers = sketch.flatMap(({ kind }, index) => (kind === 'router' ? [letter(index)] : []));
  return passing(drawn({ entry: letter(0), exits: [letter(last)], edges: [...edges], routers, joins }));
}

/** The graph as the check sees it, with its own opinion of what leads back. */
function passing(given: FlowGraph): FlowGraph | undefined {
  const nodes = new Map<string, GraphNode & { targets?: GraphNode[] }>();
  for (const { name, kind, tool, effect, parents } of given.nodes.values()) {
    const more = { ...(kind === 'router' ? { targets: [] } : {}), ...(parents === undefined ? {} : { parents }) };
    nodes.set(name, { name, kind, tool, effect, allowCycle: true, ...more });
  }
  const nodeOf = (name: string): GraphNode => nodes.get(name) as GraphNode;
  for (const { from, to } of given.edges) nodes.get(from)?.targets?.push(nodeOf(to));
  for (const node of nodes.values()) {
    if (node.parents !== undefined) Object.assign(node, { parents: node.parents.map(({ name }) => nodeOf(name)) });
  }
  const plain = given.edges.filter(({ from, to }) => nodeOf(from).kind !== 'router' && nodeOf(to).kind !== 'join');
  try {
    return checkedGraph({
      name: 'random',
      budget: { hops: 1_000 },
      entry: nodeOf(given.entry),
      exits: given.exits.map(nodeOf),
      edges: plain.map(({ from, to }) => ({ from: nodeOf(from), to: nodeOf(to) })),
    });
  } catch (thrown) {
    if (PilotageError.is(thrown, 'flow_invalid')) return undefined;
    throw thrown;
  }
}

const VISITS = 4;

/** Nodes come to their names, turns and arguments; routers to what the dice say, and in the end to a way on, if they have one. */
function runsOf({ nodes, edges }: FlowGraph, dice: readonly number[]): { readonly run: Runs; readonly ran: string[] } {
  const visits = new Map<string, number>();
  const ran: string[] = [];
  const run: Runs = (name, args) => {
    const visit = (visits.get(name) ?? 0) + 1;
    visits.set(name, visit);
    ran.push(`${name}.${visit} of ${JSON.stringify(args)}`);
    if (visit > 200) throw new Error('It goes round for ever.');
    if (nodes.get(name)?.kind !== 'router') return `${name}.${visit}`;
    const ways = edges.filter(({ from }) => from === name);
    const on = ways.filter(({ back }) => !back);
    const wanted = visit > VISITS && on.length > 0 ? on : ways;
    const die = dice[(name.charCodeAt(name.length - 1) * 7 + visit) % dice.length] ?? 0;
    return wanted[die % wanted.length]?.to ?? 'nowhere';
  };
  return { run, ran };
}

const dice = fc.array(fc.nat({ max: 1_000 }), { minLength: 8, maxLength: 30 });
const orders = fc.infiniteStream(fc.nat({ max: 99 }));

function endless(run: () => void): boolean {
  try {
    run();
    return false;
  } catch (thrown) {
    if (thrown instanceof Error && thrown.message.includes('for ever')) return true;
    throw thrown;
  }
}

describe('flows of any shape', () => {
  it('RT-06 RT-22 W88 W93 what passes the check has one way to each node, comes to an exit, and runs as it is read', () => {
    let passed = 0;
    fc.assert(
      fc.property(fc.array(sketched, { minLength: 2, maxLength: 9 }), dice, orders, (sketch, thrown, order) => {
        const graph = graphOf(sketch);
        if (graph === undefined) return;
        passed += 1;
        const plain = runsOf(graph, thrown);
        let output: Json | undefined;
        // Routers that only lead back.
        if (endless(() => (output = interpret(graph, 'x', plain.run)))) return;
        const flow = runsOf(graph, thrown);
        const pick = (count: number): number => (order.next().value as number) % count;
        const { end } = play(flowPlanner(graph), { input: 'x', run: flow.run, pick });
        expect(flow.ran.toSorted()).toEqual(plain.ran.toSorted());
        expect(output).toBeDefined();
        expect(end).toEqual({ kind: 'finish', reason: 'goal', payload: output });
      }),
      { numRuns: 1_500 },
    );
    expect(passed).toBeGreaterThan(100);
  });

  it('every program passes the check', () => {
    fc.assert(
      fc.property(block, (given) => {
        expect(passing(programOf(given).graph)).toBeDefined();
      }),
      { numRuns: 300 },
    );
  });

  it('W93 in a runtime they run as by hand', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(block, dice, async (given, thrown) => {
        const { graph } = programOf(given);
        const plain = runsOf(graph, thrown);
        const output = interpret(graph, 'x', plain.run);
        const flow = runsOf(graph, thrown);
        const tools = [...graph.nodes.values()].map(({ name, tool }) => ({
          ...tool,
          inputSchema: {},
          execute: (args: Json) => flow.run(name, args),
        }));
        const runtime = createRuntime({ planner: flowPlanner(graph), tools: tools as never, journal: memoryJournal() });
        const context = { args: 'x' };
        const run = await runtime.start('q', { identity: local('ana'), context, limits: { steps: 1_000 } });
        const result = await run.result();
        await runtime.close();
        expect(result).toMatchObject({ status: 'finished', reason: 'goal', payload: output });
        expect(flow.ran.toSorted()).toEqual(plain.ran.toSorted());
      }),
      { numRuns: 60 },
    );
  });
});
