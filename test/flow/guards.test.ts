import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FlowFault, Topology } from '#flow';
import { type Drawing, type Drawn, drawn, faultsOf } from './drawn.ts';

const faults = (nodes: Drawing['nodes'], ...exits: string[]): readonly FlowFault[] =>
  faultsOf(() => drawn({ nodes, exits }));
const codes = (found: readonly FlowFault[]): string[] => found.map(({ code }) => code);
const plain = (...to: string[]): Drawn => ({ kind: 'node', to });
const router = (...to: string[]): Drawn => ({ kind: 'router', to });
const joined = (...of: string[]): Drawn => ({ kind: 'join', of });

describe('what can run together', () => {
  it('takes ways that a router parts and that meet again', () => {
    const nodes = { a: plain('r'), r: router('b', 'c'), b: plain('d'), c: plain('d'), d: plain() };
    expect(faults(nodes, 'd')).toEqual([]);
  });

  it('refuses a node that two ways can reach at once, and says when', () => {
    const nodes = { a: plain('r', 'e'), r: router('b', 'c'), b: plain('d'), c: plain('d'), e: plain('d'), d: plain() };
    expect(faults(nodes, 'd')).toEqual([
      {
        code: 'ways_in_meet',
        message:
          'The node d can be reached from e and from b in one round, when r picks b. Make it a join of what it needs, or let a router decide.',
        nodes: ['d', 'e', 'b'],
      },
    ]);
  });

  it('refuses a join of alternatives, and takes one of what runs side by side', () => {
    const apart = { a: plain('r'), r: router('b', 'c'), b: plain(), c: plain(), d: joined('b', 'c') };
    expect(faults(apart, 'd')).toMatchObject([
      {
        code: 'join_never_runs',
        message: expect.stringContaining('The join d can never run: no routing leads to all of its parents b, c.'),
        nodes: ['d', 'b', 'c'],
      },
    ]);
    expect(faults({ a: plain('b', 'c'), b: plain(), c: plain(), d: joined('b', 'c') }, 'd')).toEqual([]);
  });

  it('refuses a routing without an exit, naming where it ends', () => {
    const nodes = { a: plain('r'), r: router('b', 'c'), b: plain(), c: plain() };
    expect(faults(nodes, 'b')).toEqual([
      {
        code: 'no_exit_reached',
        message:
          'A round can come to no exit, when r picks c. It ends at c: make an exit of it, or lead on from there.',
        nodes: ['c'],
      },
    ]);
    expect(faults(nodes, 'b', 'c')).toEqual([]);
  });

  it('refuses two exits that can both run, and takes nodes at the side that lead nowhere', () => {
    const nodes = { a: plain('b', 'c'), b: plain(), c: plain() };
    expect(faults(nodes, 'b', 'c')).toMatchObject([
      { code: 'exits_meet', message: expect.stringContaining('The exits b and c can both run in one round.') },
    ]);
    expect(faults(nodes, 'b')).toEqual([]);
  });

  it('knows an optional side branch that a join waits for', () => {
    const nodes = { a: plain('r', 'c'), r: router('b', 'e'), b: plain(), c: plain(), d: joined('b', 'c'), e: plain() };
    expect(faults(nodes, 'd', 'e')).toEqual([]);
    expect(codes(faults(nodes, 'd'))).toEqual(['no_exit_reached']);
  });
});

describe('rounds', () => {
  const looping = (nodes: Drawing['nodes'], ...exits: string[]): readonly FlowFault[] =>
    faultsOf(() => drawn({ nodes, exits, allowCycle: true, hops: 99 }));

  it('take a way back to an alternative that was not picked before', () => {
    const nodes = {
      start: plain('first'),
      first: router('quick', 'deep'),
      quick: plain('verify'),
      deep: plain('verify'),
      verify: plain('good'),
      good: router('done', 'deep'),
      done: plain(),
    };
    expect(looping(nodes, 'done')).toEqual([]);
  });

  it('take loops that run side by side and are joined', () => {
    const nodes = {
      start: plain('a', 'b'),
      a: plain('ra'),
      ra: router('oka', 'a'),
      oka: plain(),
      b: plain('rb'),
      rb: router('okb', 'b'),
      okb: plain(),
      end: joined('oka', 'okb'),
    };
    expect(looping(nodes, 'end')).toEqual([]);
  });

  it('refuse two edges back to the entry, of which one can be taken only once a join has a value of an earlier round', () => {
    const nodes = {
      a: plain('b'),
      b: router('a', 'c'),
      c: plain('h'),
      e: { kind: 'join', of: ['a', 'c'], to: ['f'] },
      f: router('a'),
      h: plain(),
    } as const;
    expect(codes(looping(nodes, 'h'))).toContain('back_edges_meet');
  });

  it('refuse two edges back that can be taken together and meet', () => {
    const nodes = {
      start: plain('a', 'b'),
      a: plain('ra'),
      ra: router('oka', 'start'),
      oka: plain(),
      b: plain('rb'),
      rb: router('okb', 'start'),
      okb: plain(),
      end: joined('oka', 'okb'),
    };
    expect(looping(nodes, 'end')).toMatchObject([
      {
        code: 'back_edges_meet',
        message: expect.stringContaining('The edges ra -> start and rb -> start, which lead back, can both be taken'),
      },
    ]);
    const inner = { ...nodes, rb: router('okb', 'b') };
    expect(codes(looping(inner, 'end'))).toEqual(['back_edges_meet']);
  });

  it('refuse a later round that cannot come to an exit', () => {
    const nodes = { start: plain('out', 'a'), out: plain(), a: plain('r'), r: router('b', 'a'), b: plain() };
    expect(looping(nodes, 'out')).toMatchObject([
      { code: 'no_exit_reached', message: expect.stringContaining('A round that begins at a') },
    ]);
  });
});

describe('graphs of two thousand nodes', () => {
  const chain = (length: number, link: (index: number, next: string) => Record<string, Drawn>): Drawing['nodes'] => {
    const nodes: Record<string, Drawn> = { start: plain('s0') };
    for (let index = 0; index < length; index += 1) Object.assign(nodes, link(index, `s${index + 1}`));
    nodes[`s${length}`] = plain();
    return nodes;
  };

  it('are taken as diamonds one behind the other', () => {
    const nodes = chain(500, (at, next) => ({
      [`s${at}`]: plain(`r${at}`),
      [`r${at}`]: router(`a${at}`, `b${at}`),
      [`a${at}`]: plain(next),
      [`b${at}`]: plain(next),
    }));
    expect(faults(nodes, 's500')).toEqual([]);
  });

  it('are taken with an exit at each diamond', () => {
    const nodes = chain(400, (at, next) => ({
      [`s${at}`]: plain(`r${at}`),
      [`r${at}`]: router(`a${at}`, `x${at}`, `b${at}`),
      [`a${at}`]: plain(next),
      [`b${at}`]: plain(next),
      [`x${at}`]: plain(),
    }));
    const exits = Array.from({ length: 400 }, (_, at) => `x${at}`);
    expect(faults(nodes, 's400', ...exits)).toEqual([]);
    expect(codes(faults(nodes, 's400', ...exits.slice(0, -1)))).toEqual(['no_exit_reached']);
  });

  it('are taken with one router for all, and with routers side by side', () => {
    const names = Array.from({ length: 990 }, (_, at) => `t${at}`);
    const leaves = Object.fromEntries(names.map((name) => [name, plain('end')]));
    expect(faults({ start: plain('r'), r: router(...names), ...leaves, end: plain() }, 'end')).toEqual([]);
    const many = names.slice(0, 490);
    const beside = Object.fromEntries(
      many.flatMap((name) => [
        [name, router(`${name}.a`, `${name}.b`)],
        [`${name}.a`, plain(`${name}.end`)],
        [`${name}.b`, plain(`${name}.end`)],
        [`${name}.end`, plain()],
      ]),
    );
    const nodes = { start: plain(...many), ...beside, end: joined(...many.map((name) => `${name}.end`)) };
    expect(faults(nodes, 'end')).toEqual([]);
  });

  it('are taken with a loop at each node', () => {
    const nodes = chain(600, (at, next) => ({
      [`s${at}`]: plain(`r${at}`),
      [`r${at}`]: router(next, `s${at}`),
    }));
    expect(faultsOf(() => drawn({ nodes, exits: ['s600'], allowCycle: true, hops: 9 }))).toEqual([]);
  });

  it('are refused when their alternatives are too many to look at', () => {
    // What leads to the end hangs on pairs of routers, of which the second all come after the first.
    const pairs = Array.from({ length: 20 }, (_, at) => at);
    const nodes: Record<string, Drawn> = {
      start: plain(...pairs.flatMap((at) => [`p${at}`]), ...pairs.map((at) => `q${at}`)),
    };
    for (const at of pairs) nodes[`p${at}`] = router(`a${at}`, `b${at}`);
    for (const at of pairs) nodes[`q${at}`] = router(`c${at}`, `d${at}`);
    for (const at of pairs) for (const letter of 'abcd') nodes[`${letter}${at}`] = plain();
    for (const at of pairs) nodes[`j${at}`] = { kind: 'join', of: [`a${at}`, `c${at}`], to: ['end'] };
    nodes['end'] = plain();
    expect(codes(faults(nodes, 'end'))).toEqual(['too_many_routings']);
  });
});

// Random graphs, and what trying every routing says of them.

interface Random extends Drawing {
  readonly names: readonly string[];
}

const NAMES = [...'abcdefgh'];
const PARTED = [
  [0, 1],
  [0, 2],
  [1, 3],
  [2, 3],
] as const;

/** Nodes lead to later ones only; with `backwards`, routers may lead to earlier ones too. */
function randomDrawing(backwards: boolean): fc.Arbitrary<Random> {
  return fc.integer({ min: 2, max: NAMES.length }).chain((size) => {
    const names = NAMES.slice(0, size);
    const kind = fc.constantFrom('node' as const, 'router' as const, 'join' as const);
    return fc
      .record({
        kinds: fc.array(kind, { minLength: size, maxLength: size }),
        links: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: size * size, maxLength: size * size }),
        exits: fc.array(fc.boolean(), { minLength: size, maxLength: size }),
        parted: fc.boolean(),
      })
      .map(({ kinds, links, exits, parted }) => {
        // Half of them begin with a router, two alternatives, and something behind both: chance alone seldom draws that.
        if (parted && size > 3) {
          kinds.splice(0, 3, 'router', 'node', 'node');
          for (const [from, to] of PARTED) links[from * size + to] = 0;
        }
        const kindOf = (at: number) => (at === 0 && kinds[0] === 'join' ? 'node' : kinds[at]);
        // Each node is led to: by the links, or else by the one before it.
        const linked = (from: number, to: number): boolean =>
          links[from * size + to] === 0 ||
          (from === to - 1 && !names.some((_, at) => at < to && links[at * size + to] === 0));
        const drawing: Record<string, Drawn> = {};
        for (const [at, name] of names.entries()) {
          const own = kindOf(at);
          const to = names.filter((_, other) => {
            const ahead = other > at || (backwards && own === 'router' && other < at);
            return ahead && kindOf(other) !== 'join' && linked(at, other);
          });
          const before = names.filter((_, other) => other < at && kindOf(other) !== 'router' && linked(other, at));
          drawing[name] = own === 'join' ? { kind: own, of: before, to } : { kind: own ?? 'node', to };
        }
        return { names, nodes: drawing, exits: names.filter((_, at) => exits[at] && kindOf(at) !== 'router') };
      });
  });
}

/** What a routing makes run, of a graph without cycles. */
function tryRouting({ names, nodes, exits }: Random, picks: ReadonlyMap<string, string>) {
  const runs = new Set<string>();
  let meets = false;
  for (const [at, name] of names.entries()) {
    const own = nodes[name];
    if (own?.kind === 'join') {
      if (own.of.every((parent) => runs.has(parent))) runs.add(name);
      continue;
    }
    const open = names.filter((source) => {
      const from = nodes[source];
      if (!runs.has(source) || from?.to?.includes(name) !== true) return false;
      return from.kind !== 'router' || picks.get(source) === name;
    });
    if (at === 0 || open.length > 0) runs.add(name);
    if (open.length > 1) meets = true;
  }
  return { runs, meets, exits: exits.filter((exit) => runs.has(exit)).length };
}

function* routings({ names, nodes }: Random): Generator<ReadonlyMap<string, string>> {
  const routers = names.flatMap((name) =>
    nodes[name]?.kind === 'router' ? [[name, nodes[name].to ?? []] as const] : [],
  );
  const count = routers.reduce((product, [, to]) => product * Math.max(1, to.length), 1);
  for (let index = 0; index < count; index += 1) {
    let rest = index;
    const picks = new Map<string, string>();
    for (const [name, to] of routers) {
      if (to.length === 0) continue;
      picks.set(name, to[rest % to.length] as string);
      rest = Math.floor(rest / to.length);
    }
    yield picks;
  }
}

function expectedCodes(random: Random): Set<string> {
  const found = new Set<string>();
  const idle = joinsOf(random);
  for (const picks of routings(random)) {
    const { runs, meets, exits } = tryRouting(random, picks);
    if (meets) found.add('ways_in_meet');
    if (exits > 1) found.add('exits_meet');
    if (exits === 0) found.add('no_exit_reached');
    for (const name of runs) idle.delete(name);
  }
  if (idle.size === 0) return found;
  // Then a missing exit is not told: it would be for the same reason.
  found.delete('no_exit_reached');
  return found.add('join_never_runs');
}

/** Those that are part of the flow: something leads on from them, or they are exits. */
function joinsOf({ names, nodes, exits }: Random): Set<string> {
  const joins = new Set<string>();
  for (const name of names.toReversed()) {
    const own = nodes[name];
    const isParent = [...joins].some((join) => nodes[join]?.kind === 'join' && nodes[join].of.includes(name));
    if (own?.kind === 'join' && (exits.includes(name) || (own.to?.length ?? 0) > 0 || isParent)) joins.add(name);
  }
  return joins;
}

const SHAPE = /^(unreachable|exit_unreachable|no_)(?!exit_reached)/;

/** The structure itself is in order: what is left to say is what runs when. */
function isShaped(found: readonly FlowFault[]): boolean {
  return found.every(({ code }) => !SHAPE.test(code));
}

describe('every routing of random graphs', () => {
  it('refuses exactly those in which ways meet, exits meet, no exit is reached, or a join never runs', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(randomDrawing(false), (random) => {
        const found = faultsOf(() => drawn(random));
        if (!isShaped(found)) return;
        const expected = [...expectedCodes(random)].sort();
        expect([...new Set(codes(found))].sort()).toEqual(expected);
        for (const code of expected.length === 0 ? ['none'] : expected) seen.set(code, (seen.get(code) ?? 0) + 1);
      }),
      { numRuns: 1_000 },
    );
    for (const each of ['none', 'ways_in_meet', 'exits_meet', 'no_exit_reached', 'join_never_runs']) {
      expect({ [each]: seen.get(each) ?? 0 }).not.toEqual({ [each]: 0 });
    }
  });

  it('never lets ways or exits meet in a later round of a flow that was taken', () => {
    let rounds = 0;
    fc.assert(
      fc.property(randomDrawing(true), fc.infiniteStream(fc.nat(100)), (random, dice) => {
        const build = () => drawn({ ...random, allowCycle: true, hops: 50 });
        if (faultsOf(build).length > 0) return;
        rounds += walkRounds(build().topology(), random, () => dice.next().value as number);
      }),
      { numRuns: 1_500 },
    );
    expect(rounds).toBeGreaterThan(10);
  });
});

/** Goes through rounds with random picks, as a flow's planner does; the number of those after the first. */
function walkRounds({ entry, exits, edges }: Topology, { nodes }: Random, dice: () => number): number {
  const forward = edges.filter(({ back }) => !back);
  const sourcesOf = (name: string) => forward.filter(({ to }) => to === name).map(({ from }) => from);
  const hasValue = new Set<string>();
  let heads = new Set([entry]);
  for (let round = 0; round < 6; round += 1) {
    const members = new Set(heads);
    for (const name of members) for (const { from, to } of forward) if (from === name) members.add(to);
    const picks = new Map<string, string>();
    const runs = new Set<string>();
    const waiting = new Set(members);
    while (waiting.size > 0) {
      for (const name of waiting) {
        const sources = sourcesOf(name).filter((source) => members.has(source));
        if (!heads.has(name) && sources.some((source) => waiting.has(source))) continue;
        waiting.delete(name);
        hasValue.delete(name);
        const own = nodes[name];
        const open = sources.filter((source) => runs.has(source) && (picks.get(source) ?? name) === name);
        if (own?.kind !== 'join' && !heads.has(name)) expect(open.length).toBeLessThan(2);
        const isOpen = own?.kind === 'join' ? own.of.every((parent) => hasValue.has(parent)) : open.length > 0;
        if (!heads.has(name) && !isOpen) continue;
        runs.add(name);
        hasValue.add(name);
        const to = own?.to ?? [];
        if (own?.kind === 'router') picks.set(name, to[dice() % to.length] as string);
      }
    }
    const ended = exits.filter((exit) => runs.has(exit));
    expect(ended.length).toBeLessThan(2);
    const taken = edges.filter(({ from, to, back }) => back && runs.has(from) && picks.get(from) === to);
    heads = new Set(taken.map(({ to }) => to));
    expect(heads.size).toBe(taken.length);
    if (heads.size > 0) continue;
    // A join may lack a parent that has not run yet.
    const hasJoin = Object.values(nodes).some(({ kind }) => kind === 'join');
    if (!hasJoin) expect(ended.length).toBe(1);
    return round;
  }
  return 6;
}
