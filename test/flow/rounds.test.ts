/** The rounds of a flow, against the same programs run plainly. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Branch, type CallParallel, type Json, type Move, type Outcome, PilotageError, type Step } from '#core';
import { flowPlanner } from '#flow';
import { runView } from '#testing';
import { stepOfMove } from '../kit/steps.ts';
import { type Drawn, drawn, type Played, type PlayOptions, play } from './by-hand.ts';
import { block, type Program, programOf, type Runs, runPlainly } from './programs.ts';

const VISITS = 3;

/** Every node comes to its name, its turn and what it was given; routers pick what the dice say. */
function runsOf({ targets, backs, graph }: Program, dice: readonly number[]): { run: Runs; ran: string[] } {
  const visits = new Map<string, number>();
  const ran: string[] = [];
  const run: Runs = (node, args) => {
    const visit = (visits.get(node) ?? 0) + 1;
    visits.set(node, visit);
    const text = `${node}.${visit} of ${JSON.stringify(args)}`;
    ran.push(text);
    if (graph.nodes.get(node)?.kind !== 'router') return `${node}.${visit}:${digest(text)}`;
    const ways = targets.get(node) ?? [];
    const die = dice[(digest(node) + visit) % dice.length] ?? 0;
    const isBack = backs.has(node) && visit > VISITS;
    return (isBack ? ways.at(-1) : ways[die % ways.length]) ?? 'nowhere';
  };
  return { run, ran };
}

function digest(text: string): number {
  let sum = 7;
  for (let at = 0; at < text.length; at += 1) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) >>> 0;
  return sum;
}

const dice = fc.array(fc.nat({ max: 1_000 }), { minLength: 8, maxLength: 40 });

describe('rounds', () => {
  it('RT-06 W82 W93 run what the program runs: each node as often, with the same values, in any order', () => {
    fc.assert(
      fc.property(block, dice, fc.infiniteStream(fc.nat({ max: 99 })), (given, thrown, order) => {
        const program = programOf(given);
        const plain = runsOf(program, thrown);
        const output = runPlainly(program, { q: 1 }, plain.run);
        const flow = runsOf(program, thrown);
        const pick = (count: number): number => (order.next().value as number) % count;
        const { end } = play(flowPlanner(program.graph), { input: { q: 1 }, run: flow.run, pick });
        expect(flow.ran.toSorted()).toEqual(plain.ran.toSorted());
        expect(end).toEqual({ kind: 'finish', reason: 'goal', payload: output });
      }),
      { numRuns: 400 },
    );
  });

  it('a goal that is changed on the way leaves nothing out, and repeats nothing', () => {
    const cuts = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(block, dice, fc.infiniteStream(fc.nat({ max: 99 })), cuts, (given, thrown, order, left) => {
        const program = programOf(given);
        const plain = runsOf(program, thrown);
        const output = runPlainly(program, 'x', plain.run);
        const flow = runsOf(program, thrown);
        const pick = (count: number): number => (order.next().value as number) % count;
        const cut = (step: number): number => left[step] ?? Number.POSITIVE_INFINITY;
        const { end } = play(flowPlanner(program.graph), { input: 'x', run: flow.run, pick, cut });
        expect(flow.ran.toSorted()).toEqual(plain.ran.toSorted());
        expect(end).toMatchObject({ reason: 'goal', payload: output });
      }),
      { numRuns: 300 },
    );
  });
});

/** Plays a graph in which each router picks what stands there for it, one after the other, and each node comes to its name and turn. */
function playDrawn(
  graph: Drawn,
  picks: Readonly<Record<string, readonly string[]>>,
  more: Partial<PlayOptions> = {},
): Played & { readonly order: readonly string[] } {
  const visits = new Map<string, number>();
  const run = (node: string): Json => {
    const visit = (visits.get(node) ?? 0) + 1;
    visits.set(node, visit);
    return picks[node]?.[visit - 1] ?? `${node}.${visit}`;
  };
  const played = play(flowPlanner(drawn(graph)), { input: 'in', run, ...more });
  return { ...played, order: played.ran.map(({ node }) => node) };
}

const argsOf = ({ ran }: Played, node: string): Json[] =>
  ran.filter((each) => each.node === node).map(({ args }) => args);
const payloadOf = ({ end }: Played): Json | undefined => (end.kind === 'finish' ? (end.payload as Json) : undefined);

describe('a round', () => {
  it('RT-05 RT-06 a router as the entry hands on the input; only what it picks runs', () => {
    const graph = { entry: 'r', exits: ['a', 'b', 'c'], edges: ['r > a', 'r > b', 'r > c'], routers: ['r'] };
    const played = playDrawn(graph, { r: ['b'] });
    expect(played.order).toEqual(['r', 'b']);
    expect(argsOf(played, 'b')).toEqual(['in']);
    expect(payloadOf(played)).toBe('b.1');
  });

  it('RT-05 a payload passes several routers unchanged', () => {
    const graph = {
      entry: 'a',
      exits: ['x', 'y', 'z'],
      edges: ['a > r', 'r > s', 'r > x', 's > t', 's > y', 't > z', 't > x'],
      routers: ['r', 's', 't'],
    };
    const played = playDrawn(graph, { r: ['s'], s: ['t'], t: ['x'] });
    expect(played.order).toEqual(['a', 'r', 's', 't', 'x']);
    expect(played.ran.slice(1).map(({ args }) => args)).toEqual(['a.1', 'a.1', 'a.1', 'a.1']);
  });

  it('a node that a router leads to directly, and by way of another node, has the value of the way that was gone', () => {
    const graph = { entry: 'r', exits: ['t'], edges: ['r > t', 'r > a', 'a > t'], routers: ['r'] };
    expect(argsOf(playDrawn(graph, { r: ['t'] }), 't')).toEqual(['in']);
    expect(argsOf(playDrawn(graph, { r: ['a'] }), 't')).toEqual(['a.1']);
  });

  it('a router that is reached from a router before it, and from behind a node, hands on what was handed last', () => {
    const graph = {
      entry: 'a',
      exits: ['t', 'c'],
      edges: ['a > r', 'r > s', 'r > b', 'b > q', 'q > s', 'q > c', 's > t', 's > c'],
      routers: ['r', 's', 'q'],
    };
    expect(argsOf(playDrawn(graph, { r: ['s'], s: ['t'] }), 't')).toEqual(['a.1']);
    expect(argsOf(playDrawn(graph, { r: ['b'], q: ['s'], s: ['t'] }), 't')).toEqual(['b.1']);
    expect(argsOf(playDrawn(graph, { r: ['b'], q: ['c'] }), 'c')).toEqual(['b.1']);
  });

  it('one payload through many routers that part and meet has one way to each node', () => {
    const edges = Array.from({ length: 40 }, (_, at) => [
      `r${at} > s${at}`,
      `r${at} > t${at}`,
      `s${at} > r${at + 1}`,
      `t${at} > r${at + 1}`,
    ]).flat();
    const routers = edges.map((edge) => edge.split(' ')[0] ?? '');
    const graph = { entry: 'a', exits: ['z'], edges: ['a > r0', ...edges, 'r40 > z'], routers: [...routers, 'r40'] };
    const picks = Object.fromEntries(
      routers.filter((name) => name.startsWith('r')).map((r) => [r, [`s${r.slice(1)}`]]),
    );
    const after = Object.fromEntries(routers.map((name) => [name, [`r${Number(name.slice(1)) + 1}`]]));
    const played = playDrawn(graph, { ...after, ...picks, r40: ['z'] });
    expect(argsOf(played, 'z')).toEqual(['a.1']);
    expect(JSON.stringify(played.steps[0]?.decision).length).toBeLessThan(30_000);
  });

  it('RT-22 W88 a join runs once, with the values of all its parents by their names', () => {
    const graph = {
      entry: 'a',
      exits: ['j'],
      edges: ['a > b', 'a > c', 'a > d'],
      joins: { j: ['b', 'c', 'd'] },
    };
    const played = playDrawn(graph, {}, { pick: (count) => count - 1 });
    expect(argsOf(played, 'j')).toEqual([{ b: 'b.1', c: 'c.1', d: 'd.1' }]);
  });
});

describe('ways back', () => {
  const loop = { entry: 'a', exits: ['z'], edges: ['a > h', 'h > r', 'r < h', 'r > z'], routers: ['r'] };

  it('a head that is led back to runs again, with what the router was handed; its instances are numbered', () => {
    const played = playDrawn(loop, { r: ['h', 'h', 'z'] });
    expect(played.order).toEqual(['a', 'h', 'r', 'h', 'r', 'h', 'r', 'z']);
    expect(argsOf(played, 'h')).toEqual(['a.1', 'h.1', 'h.2']);
    const plans = played.steps.map(({ decision }) => (decision.kind === 'call_parallel' ? decision : undefined));
    expect(plans.map((each) => each?.plan)).toEqual(['drawn', 'drawn#2', 'drawn#3']);
    expect(plans[2]?.branches.map(({ id }) => id)).toEqual(['h#3', 'r#3', 'z#3']);
  });

  it('a head that only a way back leads to is not of the first round', () => {
    const graph = {
      entry: 'draft',
      exits: ['publish'],
      edges: ['draft > check', 'check < revise', 'check > publish', 'revise > draft'],
      routers: ['check'],
    };
    const played = playDrawn(graph, { check: ['revise', 'publish'] });
    expect(played.order).toEqual(['draft', 'check', 'revise', 'draft', 'check', 'publish']);
    expect(argsOf(played, 'draft')).toEqual(['in', 'revise.1']);
    expect(argsOf(played, 'revise')).toEqual(['draft.1']);
  });

  it('RT-22 a join has the value of a parent from an earlier round', () => {
    const graph = {
      entry: 'a',
      exits: ['j'],
      edges: ['a > b', 'a > h', 'h > r', 'r < h', 'r > e'],
      routers: ['r'],
      joins: { j: ['b', 'e'] },
    };
    const played = playDrawn(graph, { r: ['h', 'e'] });
    expect(argsOf(played, 'j')).toEqual([{ b: 'b.1', e: 'e.1' }]);
    expect(played.order.filter((node) => node === 'b')).toHaveLength(1);
  });

  it('two loops side by side go round each by itself', () => {
    const graph = {
      entry: 'a',
      exits: ['j'],
      edges: ['a > h', 'h > r', 'r < h', 'r > e', 'a > g', 'g > q', 'q < g', 'q > f'],
      routers: ['r', 'q'],
      joins: { j: ['e', 'f'] },
    };
    const played = playDrawn(graph, { r: ['h', 'h', 'e'], q: ['g', 'f'] });
    expect(played.order.toSorted()).toEqual('a e f g g h h h j q q r r r'.split(' '));
    expect(argsOf(played, 'j')).toEqual([{ e: 'e.1', f: 'f.1' }]);
  });

  it('a parent that was passed over in its last round has no value from the one before', () => {
    const graph = {
      entry: 'a',
      exits: ['x'],
      edges: [
        'a > z',
        'z > y',
        'z > q',
        'a > h',
        'h > r',
        'r < h',
        'r > o',
        'j > t',
        'k > t',
        't > w',
        'w < a',
        'w > x',
      ],
      routers: ['z', 'r', 'w'],
      joins: { j: ['y', 'o'], k: ['q', 'o'] },
    };
    const played = playDrawn(graph, { z: ['y', 'q'], r: ['o', 'h', 'o'], w: ['a', 'x'] });
    expect(argsOf(played, 'j')).toEqual([{ y: 'y.1', o: 'o.1' }]);
    expect(argsOf(played, 'k')).toEqual([{ q: 'q.1', o: 'o.2' }]);
    expect(argsOf(played, 't')).toEqual(['j.1', 'k.1']);
    expect(payloadOf(played)).toBe('x.1');
  });

  it('a node that nothing of the round can lead to keeps its value', () => {
    const graph = {
      entry: 'a',
      exits: ['x'],
      edges: ['a > z', 'z > y', 'z > q', 'y > t', 'j > t', 'a > h', 'h > r', 'r < h', 'r > o'],
      routers: ['z', 'r'],
      joins: { j: ['h', 'q'], x: ['t', 'o'] },
    };
    const played = playDrawn(graph, { z: ['y'], r: ['h', 'o'] });
    expect(argsOf(played, 't')).toEqual(['y.1']);
    expect(argsOf(played, 'x')).toEqual([{ t: 't.1', o: 'o.1' }]);
  });
});

const failing = (code: string, data?: Record<string, Json>): Outcome => ({
  kind: 'error',
  error: { code, message: 'It is so.', ...(data === undefined ? {} : { data }) },
});

function failureOf(graph: Drawn, run: PlayOptions['run'], more: Partial<PlayOptions> = {}): PilotageError {
  try {
    play(flowPlanner(drawn(graph)), { input: 'in', run, ...more });
  } catch (thrown) {
    if (PilotageError.is(thrown)) return thrown;
    throw thrown;
  }
  throw new Error('It did not fail.');
}

it('a chain of thousands of routers is no deeper than one of three', () => {
  const count = 3_000;
  const names = Array.from({ length: count }, (_, at) => `r${at}`);
  const last = names.at(-1) ?? '';
  const edges = [...names.slice(1).map((name, at) => `r${at} > ${name}`), `${last} > z`, `${last} < a`];
  const planner = flowPlanner(drawn({ entry: 'a', exits: ['z'], edges: ['a > r0', ...edges], routers: names }));
  const steps: Step[] = [];
  /** Carries out the first so many branches; then the goal is changed. */
  const go = (carried: number, end: string): readonly Branch[] => {
    const view = runView({ steps, context: { args: 'in' } });
    const move = planner.next(view, new AbortController().signal) as Move & { readonly decision: CallParallel };
    const { decision } = move;
    const outcomes = decision.branches.map(({ tool }, at): Outcome => {
      const value = tool === last ? end : tool.startsWith('r') ? `r${Number(tool.slice(1)) + 1}` : tool;
      const error = { code: 'plan_redirected', message: 'Later.' };
      return at < carried ? { kind: 'value', value } : { kind: 'skipped', error };
    });
    steps.push(stepOfMove(steps.length, move, outcomes));
    return decision.branches;
  };
  expect(go(count - 10, '')).toHaveLength(count + 2);
  expect(go(count, 'a')).toHaveLength(12);
  expect(go(count, 'a')[0]).toEqual({ id: 'a#2', tool: 'a', args: { $from: 'a', step: 0 } });
});

describe('how a flow ends', () => {
  const line: Drawn = { entry: 'a', exits: ['c'], edges: ['a > b', 'b > c'] };

  it.each([
    ['tool_timeout', 'node_timeout'],
    ['tool_failed', 'node_exception'],
    ['my_own_word', 'node_exception'],
    ['node_timeout', 'node_exception'],
    ['tool_invalid_args', 'validation_failed'],
    ['tool_invalid_output', 'validation_failed'],
    ['unserializable', 'validation_failed'],
    ['tool_rejected', 'node_exception'],
  ])('RT-17 RT-18 a node that fails with %s fails the flow with %s', (code, expected) => {
    const { data, code: found } = failureOf(line, (node) =>
      node === 'b' ? failing(code, { node: 'x', flow: 'y' }) : 1,
    );
    expect(found).toBe(expected);
    expect(data).toMatchObject({ flow: 'drawn', node: 'b', attempts: 1, cause: { code, data: { node: 'x' } } });
  });

  it('RT-17 what was tried again fails with its last error', () => {
    const cause = { code: 'tool_timeout', message: 'It took too long.' };
    const error = failureOf(line, () => failing('tool_retries_exhausted', { attempts: 3, cause }));
    expect(error).toMatchObject({ code: 'node_timeout', data: { cause } });
  });

  it.each([
    ['calls', 'hops'],
    ['cost', 'cost'],
  ])('RT-31 a budget without %s left is told as %s', (axis, expected) => {
    const error = failureOf(line, () => failing('budget_exceeded', { axis }));
    expect(error).toMatchObject({ code: 'flow_budget_exceeded', data: { axis: expected } });
  });

  it('a call of which nobody knows whether it happened is node_exception', () => {
    const unknown: Outcome = { kind: 'unknown', error: { code: 'outcome_unknown', message: 'Who knows.' } };
    const error = failureOf(line, () => unknown);
    expect(error).toMatchObject({ code: 'node_exception', data: { node: 'a', cause: { code: 'outcome_unknown' } } });
  });

  it('of nodes that fail the first counts, and none that was stopped for it', () => {
    const graph: Drawn = { entry: 'a', exits: ['j'], edges: ['a > b', 'a > c'], joins: { j: ['b', 'c'] } };
    const stopped: Outcome = { kind: 'cancelled', error: { code: 'cancelled', message: 'Stopped.' } };
    const outcomes: Record<string, Json | Outcome> = { a: 1, b: stopped, c: failing('tool_timeout') };
    const error = failureOf(graph, (node) => outcomes[node] ?? null);
    expect(error).toMatchObject({ code: 'node_timeout', data: { node: 'c' } });
  });

  it('without a node that somebody took out there is no exit, and the error names it', () => {
    const error = failureOf(line, () => 1, { removed: (id) => id === 'b' });
    expect(error).toMatchObject({ code: 'node_exception', data: { node: 'b', cause: { code: 'node_removed' } } });
    expect(error.message).toContain('b');
  });

  it('a node on which nothing hangs may be taken out', () => {
    const graph: Drawn = { entry: 'a', exits: ['b'], edges: ['a > b', 'a > note'] };
    expect(play(flowPlanner(drawn(graph)), { run: (node) => node, removed: (id) => id === 'note' }).end).toEqual({
      kind: 'finish',
      reason: 'goal',
      payload: 'b',
    });
  });

  it('an exit that was stored is handed on by its reference', () => {
    const artifact = { artifactRef: 'art_1', mime: 'application/json', sizeBytes: 40_000 };
    const planner = flowPlanner(drawn({ entry: 'a', exits: ['b'], edges: ['a > b'] }));
    const [step] = play(planner, { run: (node) => node }).steps;
    if (step === undefined) throw new Error('There is no step.');
    const calls = step.calls.map((record) => ({ ...record, outcome: { ...record.outcome, artifact } as Outcome }));
    const view = runView({ steps: [{ ...step, calls }], context: { args: 1 } });
    expect(planner.next(view, new AbortController().signal)).toEqual({
      decision: { kind: 'finish', reason: 'goal', payload: artifact, stored: true },
    });
  });

  it('an input that looks like a reference is handed on as it is; without one there is nothing to begin with', () => {
    const input = { note: { $from: 'b' } };
    expect(play(flowPlanner(drawn(line)), { input, run: (node, args) => ({ [node]: args }) }).end).toMatchObject({
      payload: { c: { b: { a: input } } },
    });
    expect(() => flowPlanner(drawn(line)).next(runView(), new AbortController().signal)).toThrow(/no input/);
  });

  it('its version is another when the graph is', () => {
    const version = (graph: Drawn): string | undefined => flowPlanner(drawn(graph)).version;
    expect(version(line)).toBe(version({ ...line }));
    expect(version({ ...line, edges: ['a > b', 'b > c', 'a > c'] })).not.toBe(version(line));
    expect(version({ ...line, exits: ['b', 'c'] })).not.toBe(version(line));
  });
});
