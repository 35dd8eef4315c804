/** Programs of steps, choices, loops and branches side by side: each as a graph, and as what it does when it is simply run. */
import fc from 'fast-check';
import type { Json } from '#core';
import type { FlowGraph } from '#flow';
import { drawn } from './by-hand.ts';

/** Without names: they are given when it is drawn. */
export type Block =
  | { readonly kind: 'node' }
  | { readonly kind: 'sequence'; readonly blocks: readonly Block[] }
  /** A router; a null goes on at once to what comes behind the choice. */
  | { readonly kind: 'choice'; readonly ways: readonly (Block | null)[] }
  /** A node, the blocks side by side, and a join. */
  | { readonly kind: 'together'; readonly blocks: readonly Block[] }
  /** A router behind it leads back to its beginning, or on. */
  | { readonly kind: 'loop'; readonly body: Block }
  /** A router behind it leads to a block from which it begins anew, or on. */
  | { readonly kind: 'again'; readonly body: Block; readonly between: Block };

export const block: fc.Arbitrary<Block> = fc.letrec<{ block: Block; node: Block }>((tie) => ({
  node: fc.constant({ kind: 'node' as const }),
  block: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('node'),
    fc.record({
      kind: fc.constant('sequence' as const),
      blocks: fc.array(tie('block'), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant('choice' as const),
      ways: fc.array(fc.option(tie('block')), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant('together' as const),
      blocks: fc.array(tie('block'), { minLength: 2, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('loop' as const), body: tie('block') }),
    fc.record({ kind: fc.constant('again' as const), body: tie('block'), between: tie('block') }),
  ),
})).block;

/** A block with names. */
type Named =
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'sequence'; readonly blocks: readonly Named[] }
  | { readonly kind: 'choice'; readonly name: string; readonly ways: readonly (Named | null)[] }
  | {
      readonly kind: 'together';
      readonly name: string;
      readonly sides: readonly { readonly block: Named; readonly end: string }[];
      readonly join: string;
    }
  | { readonly kind: 'again'; readonly name: string; readonly body: Named; readonly between: Named | null };

export interface Program {
  readonly graph: FlowGraph;
  /** Of each router, what it may pick; the ways back first. */
  readonly targets: ReadonlyMap<string, readonly string[]>;
  readonly backs: ReadonlyMap<string, number>;
  readonly body: Named;
}

export function programOf(given: Block): Program {
  let count = 0;
  const fresh = (letter: string): string => `${letter}${count++}`;
  const body = named({ kind: 'sequence', blocks: [given, { kind: 'node' }] }, fresh);
  const drawing = new Drawing();
  const end = drawing.draw(body);
  const [exit = ''] = end;
  const { edges, routers, joins, targets, backs } = drawing;
  const graph = drawn({ entry: entryOf(body), exits: [exit], edges: [...edges], routers: [...routers], joins });
  return { graph, targets, backs, body };
}

function named(given: Block, fresh: (letter: string) => string): Named {
  switch (given.kind) {
    case 'node':
      return { kind: 'node', name: fresh('n') };
    case 'sequence':
      return { kind: 'sequence', blocks: given.blocks.map((each) => named(each, fresh)) };
    case 'choice': {
      const ways = given.ways.map((way) => (way === null ? null : named(way, fresh)));
      return { kind: 'choice', name: fresh('r'), ways };
    }
    case 'together': {
      const sides = given.blocks.map((each) => ({ block: named(each, fresh), end: fresh('m') }));
      return { kind: 'together', name: fresh('f'), sides, join: fresh('j') };
    }
    case 'loop':
      return { kind: 'again', name: fresh('r'), body: named(given.body, fresh), between: null };
    case 'again':
      return {
        kind: 'again',
        name: fresh('r'),
        body: named(given.body, fresh),
        // A node first: what is between is no more than one way back.
        between: named({ kind: 'sequence', blocks: [{ kind: 'node' }, given.between] }, fresh),
      };
    default:
      return given satisfies never;
  }
}

function entryOf(block: Named): string {
  switch (block.kind) {
    case 'sequence':
      return entryOf(block.blocks[0] as Named);
    case 'again':
      return entryOf(block.body);
    default:
      return block.name;
  }
}

class Drawing {
  readonly edges = new Set<string>();
  readonly routers = new Set<string>();
  readonly joins: Record<string, string[]> = {};
  readonly targets = new Map<string, string[]>();
  readonly backs = new Map<string, number>();

  /** The names of the nodes from which it goes on behind the block; of these one leads on. */
  draw(block: Named): readonly string[] {
    switch (block.kind) {
      case 'node':
        return [block.name];
      case 'sequence':
        return this.#sequence(block.blocks);
      case 'choice': {
        this.#router(block.name);
        return block.ways.flatMap((way) => {
          if (way === null) return [block.name];
          this.#lead(block.name, entryOf(way));
          return this.draw(way);
        });
      }
      case 'together':
        for (const { block: side, end } of block.sides) {
          this.#lead(block.name, entryOf(side));
          for (const from of this.draw(side)) this.#lead(from, end);
        }
        this.joins[block.join] = block.sides.map(({ end }) => end);
        return [block.join];
      case 'again': {
        const { name, body, between } = block;
        this.#router(name);
        for (const from of this.draw(body)) this.#lead(from, name);
        const head = entryOf(between ?? body);
        this.edges.add(`${name} < ${head}`);
        this.#target(name, head);
        this.backs.set(name, 1);
        if (between !== null) for (const from of this.draw(between)) this.#lead(from, entryOf(body));
        return [name];
      }
      default:
        return block satisfies never;
    }
  }

  #sequence(blocks: readonly Named[]): readonly string[] {
    let ends: readonly string[] = [];
    for (const block of blocks) {
      for (const from of ends) this.#lead(from, entryOf(block));
      ends = this.draw(block);
    }
    return ends;
  }

  #router(name: string): void {
    this.routers.add(name);
  }

  #lead(from: string, to: string): void {
    this.edges.add(`${from} > ${to}`);
    this.#target(from, to);
  }

  #target(from: string, to: string): void {
    const known = this.targets.get(from) ?? [];
    if (!known.includes(to)) this.targets.set(from, [...known, to]);
  }
}

/** What a node comes to: of a router the name of the next one. */
export type Runs = (node: string, args: Json) => Json;

/** Runs the program as it is written, without a graph. @returns what the exit has come to. */
export function runPlainly({ body, targets }: Program, input: Json, run: Runs): Json {
  const runBlock = (block: Named, payload: Json, behind: string | undefined): Json => {
    switch (block.kind) {
      case 'node':
        return run(block.name, payload);
      case 'sequence':
        return block.blocks.reduce<Json>((value, each, index) => {
          const next = block.blocks[index + 1];
          return runBlock(each, value, next === undefined ? behind : entryOf(next));
        }, payload);
      case 'choice': {
        const picked = run(block.name, payload);
        const way = block.ways.find((each) => each !== null && entryOf(each) === picked);
        if (way !== undefined && way !== null) return runBlock(way, payload, behind);
        if (picked !== behind) throw new Error(`${block.name} picked ${String(picked)}, and not ${String(behind)}`);
        return payload;
      }
      case 'together': {
        const value = run(block.name, payload);
        const ends = block.sides.map(({ block: side, end }) => [end, run(end, runBlock(side, value, end))] as const);
        return run(block.join, Object.fromEntries(ends));
      }
      case 'again': {
        let value = runBlock(block.body, payload, block.name);
        const head = entryOf(block.between ?? block.body);
        while (run(block.name, value) === head) {
          if (block.between !== null) value = runBlock(block.between, value, entryOf(block.body));
          value = runBlock(block.body, value, block.name);
        }
        return value;
      }
      default:
        return block satisfies never;
    }
  };
  if (targets.size === 0) throw new Error('Nothing is drawn.');
  return runBlock(body, input, undefined);
}
