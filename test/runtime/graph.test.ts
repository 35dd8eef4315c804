/** Branches that depend on each other: `after`, `when`, references, and what is skipped. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Branch, Decision, Json } from '#core';
import { seededRandom } from '#testing';
import { call, finish, script } from '../kit/decisions.ts';
import { entriesOf, observations, outcomes } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const graph = (...branches: Branch[]): Decision => ({ kind: 'call_parallel', branches });

const fails = make('fails', () => {
  throw new Error('no');
});

async function carriedOut(decision: Decision, tools = [echo, fails]) {
  const made = world({ planner: script(decision), tools });
  const run = await start(made);
  const result = await run.result();
  return { result, state: await run.state(), run, ...made };
}

describe('after', () => {
  it('runs a diamond in order, each branch once', async () => {
    const order: string[] = [];
    const named = (name: string) =>
      make(name, async () => {
        order.push(name);
        return name;
      });
    const { state } = await carriedOut(
      graph(
        { id: 'd', tool: 'd', args: {}, after: ['b', 'c'] },
        { id: 'b', tool: 'b', args: {}, after: ['a'] },
        { id: 'c', tool: 'c', args: {}, after: ['a'] },
        { id: 'a', tool: 'a', args: {} },
      ),
      [named('a'), named('b'), named('c'), named('d')],
    );
    expect(order).toEqual(['a', 'b', 'c', 'd']);
    expect(outcomes(state)).toEqual(Array(4).fill('value'));
  });

  it('skips what needs a branch that failed, and what needs that, but nothing else', async () => {
    const { state } = await carriedOut(
      graph(
        { id: 'a', tool: 'fails', args: {} },
        { id: 'b', tool: 'echo', args: {}, after: ['a'] },
        { id: 'c', tool: 'echo', args: {}, after: ['b'] },
        { id: 'd', tool: 'echo', args: { n: 1 } },
      ),
    );
    expect(outcomes(state)).toEqual(['error', 'skipped', 'skipped', 'value']);
    expect(observations(state)[0]).toMatchObject([
      { error: { code: 'tool_failed' } },
      { error: { code: 'branch_not_started', message: 'The branch needs branch 0, which did not end with a value.' } },
      { error: { code: 'branch_not_started', message: 'The branch needs branch 1, which did not end with a value.' } },
      { value: { n: 1 } },
    ]);
  });

  it.each([
    [
      'a cycle',
      [
        { tool: 'echo', args: {}, after: ['1'] },
        { tool: 'echo', args: {}, after: ['0'] },
      ],
    ],
    ['itself', [{ tool: 'echo', args: {}, after: ['0'] }]],
    [
      'a cycle of references',
      [
        { tool: 'echo', args: { x: { $from: '1' } } },
        { tool: 'echo', args: { x: { $from: '0' } } },
      ],
    ],
    ['nobody', [{ tool: 'echo', args: {}, after: ['ghost'] }]],
    ['a route from nobody', [{ tool: 'echo', args: {}, when: { branch: 'ghost', equals: 1 } }]],
    [
      'the same id twice',
      [
        { id: 'a', tool: 'echo', args: {} },
        { id: 'a', tool: 'echo', args: {} },
      ],
    ],
  ] as [string, Branch[]][])('refuses a graph with %s', async (_, branches) => {
    const { result } = await carriedOut(graph(...branches));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
  });
});

describe('when', () => {
  it('is a router: the branch whose condition holds runs, the others are skipped', async () => {
    const route = (to: string): Branch => ({
      id: to,
      tool: 'echo',
      args: { to },
      when: { branch: 'r', equals: { kind: to } },
    });
    const { state } = await carriedOut(
      graph({ id: 'r', tool: 'echo', args: { kind: 'mail' } }, route('mail'), route('call'), {
        tool: 'echo',
        args: { last: true },
        after: ['mail'],
      }),
    );
    expect(outcomes(state)).toEqual(['value', 'value', 'skipped', 'value']);
    expect(state.steps[0]?.calls[2]?.outcome).toMatchObject({
      error: { code: 'branch_not_started', message: 'The condition on branch 0 does not hold.' },
    });
  });

  it('skips the branches of a router that failed', async () => {
    const { state } = await carriedOut(
      graph({ id: 'r', tool: 'fails', args: {} }, { tool: 'echo', args: {}, when: { branch: 'r', equals: null } }),
    );
    expect(outcomes(state)).toEqual(['error', 'skipped']);
  });
});

describe('$from', () => {
  const source: Branch = { id: 's', tool: 'echo', args: { items: [{ id: 7 }], 'a/b': { '~': 1 } } };

  it('puts the value of an earlier branch, or a part of it, into the arguments', async () => {
    const { state } = await carriedOut(
      graph(
        {
          tool: 'echo',
          args: {
            whole: { $from: 's' },
            part: [{ $from: 's', path: '/items/0/id' }],
            odd: { $from: 's', path: '/a~1b/~0' },
            not: { $literal: { $from: 's', more: 1 } },
          },
        },
        source,
      ),
    );
    expect(observations(state)[0]).toMatchObject([
      { value: { whole: source.args, part: [7], odd: 1, not: { $from: 's', more: 1 } } },
      {},
    ]);
  });

  it('gives an error when nothing is at the path, and does not run the tool', async () => {
    const ran: unknown[] = [];
    const { state } = await carriedOut(
      graph(source, { tool: 'note', args: { x: { $from: 's', path: '/items/1/id' } } }),
      [echo, make('note', (args) => ran.push(args))],
    );
    expect(state.steps[0]?.calls[1]).toMatchObject({
      outcome: {
        kind: 'error',
        error: { code: 'reference_unresolved', message: expect.stringContaining('"/items/1/id"') },
      },
      attempts: 0,
    });
    expect(ran).toEqual([]);
  });

  it('checks the arguments against the schema when they are known', async () => {
    const strict = make('strict', () => 1, {
      inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    });
    const { state } = await carriedOut(
      graph(
        source,
        { tool: 'strict', args: { n: { $from: 's', path: '/items/0/id' } } },
        { tool: 'strict', args: { n: { $from: 's', path: '/items' } } },
      ),
      [echo, strict],
    );
    expect(outcomes(state)).toEqual(['value', 'value', 'error']);
    expect(state.steps[0]?.calls[2]?.outcome).toMatchObject({ error: { code: 'tool_invalid_args' } });
    expect(state.steps[0]?.error).toBeUndefined();
  });

  it('looks into the whole of a heavy result, not into its preview', async () => {
    const list = Array.from({ length: 4_000 }, (_, index) => ({ id: index, text: 'xxxxxxxxxx' }));
    const { state } = await carriedOut(
      graph({ id: 'big', tool: 'big', args: {} }, { tool: 'echo', args: { last: { $from: 'big', path: '/3999/id' } } }),
      [echo, make('big', () => list)],
    );
    expect(observations(state)[0]).toMatchObject([{ value: { truncated: true } }, { value: { last: 3_999 } }]);
  });

  it('leaves a single call’s arguments as they are: there is no other branch', async () => {
    const { state } = await carriedOut(call('echo', { x: { $from: 's' } }));
    expect(observations(state)).toEqual([{ x: { $from: 's' } }]);
  });
});

describe('a slow journal', () => {
  it('starts every branch once, however its end and the writing of others’ ends fall together', async () => {
    const ran = new Map<string, number>();
    const gates = new Map(['a', 'b', 'c'].map((id) => [id, gate()] as const));
    const made = world({
      planner: script(graph(...['a', 'b', 'c'].map((id) => ({ id, tool: 'note', args: { id } })))),
      tools: [
        make('note', async ({ id }) => {
          ran.set(String(id), (ran.get(String(id)) ?? 0) + 1);
          await gates.get(String(id))?.opened;
        }),
      ],
    });
    const append = made.journal.append.bind(made.journal);
    // While the end of one call is being written, the others end.
    made.journal.append = async (request) => {
      if (request.entries[0]?.kind === 'call_ended') for (const { open } of gates.values()) open();
      await new Promise((resolve) => setImmediate(resolve));
      await append(request);
    };
    const run = await start(made);
    gates.get('b')?.open();
    await run.result();
    expect(Object.fromEntries(ran)).toEqual({ a: 1, b: 1, c: 1 });
    expect((await entriesOf(made.journal, run, 'call_ended')).map((entry) => entry.call).sort()).toEqual([0, 1, 2]);
  });
});

/** A branch of a random graph: what it needs, how it ends, and how many turns it takes. */
interface Node {
  readonly after: readonly number[];
  readonly when?: { readonly branch: number; readonly equals: number };
  readonly ends: 'value' | 'error';
  readonly value: number;
  readonly delay: number;
}

const nodes: fc.Arbitrary<Node[]> = fc
  .array(
    fc.record({
      picks: fc.array(fc.nat(), { maxLength: 3 }),
      routed: fc.option(fc.record({ pick: fc.nat(), equals: fc.nat(1) })),
      ends: fc.constantFrom('value' as const, 'value' as const, 'value' as const, 'error' as const),
      value: fc.nat(1),
      delay: fc.nat(4),
    }),
    { minLength: 1, maxLength: 16 },
  )
  .map((raw) =>
    raw.map(({ picks, routed, ...rest }, index) => {
      const after = index === 0 ? [] : [...new Set(picks.map((pick) => pick % index))];
      const when =
        routed === null || index === 0 ? {} : { when: { branch: routed.pick % index, equals: routed.equals } };
      return { ...rest, after, ...when };
    }),
  );

/** What must become of each branch under the join `all`. */
function oracle(all: readonly Node[]): string[] {
  const ends: string[] = [];
  for (const [index, node] of all.entries()) {
    const needs = node.when === undefined ? node.after : [...node.after, node.when.branch];
    const ready = needs.every((need) => ends[need] === 'value');
    const routed = node.when === undefined || all[node.when.branch]?.value === node.when.equals;
    ends[index] = ready && routed ? node.ends : 'skipped';
  }
  return ends;
}

function branchesFor(all: readonly Node[], seed: number): { branches: Branch[]; placed: number[] } {
  const random = seededRandom(seed);
  const placed = all.map((_, index) => index);
  for (let last = placed.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [placed[last], placed[other]] = [placed[other] as number, placed[last] as number];
  }
  const branches = placed.map((index): Branch => {
    const { after, when } = all[index] as Node;
    const route = when === undefined ? {} : { when: { branch: `n${when.branch}`, equals: when.equals } };
    return { id: `n${index}`, tool: 'node', args: { index }, after: after.map((need) => `n${need}`), ...route };
  });
  return { branches, placed };
}

describe('random graphs', () => {
  it('agree with an oracle: what runs, what is skipped, each branch exactly one outcome, nothing before its needs', async () => {
    await fc.assert(
      fc.asyncProperty(nodes, fc.nat(), async (all, seed) => {
        const { branches, placed } = branchesFor(all, seed);
        const done = new Set<number>();
        const ran: number[] = [];
        const node = make('node', async (args) => {
          const index = Number(args['index']);
          const { after, delay, ends, value } = all[index] as Node;
          expect(after.every((need) => done.has(need))).toBe(true);
          ran.push(index);
          for (let turns = 0; turns < delay; turns += 1) await null;
          done.add(index);
          if (ends === 'error') throw new Error('planned');
          return value;
        });
        const { state, journal, run } = await carriedOut(graph(...branches), [node]);
        const expected = oracle(all);
        expect(outcomes(state)).toEqual(placed.map((index) => expected[index]));
        expect(ran.sort((a, b) => a - b)).toEqual(expected.flatMap((end, index) => (end === 'skipped' ? [] : [index])));
        expect((await entriesOf(journal, run, 'call_ended')).length).toBe(all.length);
      }),
      { numRuns: 100 },
    );
  });

  it('under first_success and n: no more is started when it is met, everything has one outcome, nothing runs on', async () => {
    await fc.assert(
      fc.asyncProperty(nodes, fc.nat(), fc.integer({ min: 1, max: 3 }), async (all, seed, want) => {
        const { branches } = branchesFor(all, seed);
        const n = Math.min(want, all.length);
        let running = 0;
        let atClose = -1;
        const node = make('node', async (args, { signal }): Promise<Json> => {
          const { delay, ends, value } = all[Number(args['index'])] as Node;
          running += 1;
          try {
            for (let turns = 0; turns < delay * 3; turns += 1) {
              if (signal.aborted) throw signal.reason;
              await null;
            }
            if (ends === 'error') throw new Error('planned');
            return value;
          } finally {
            running -= 1;
          }
        });
        const made = world({
          planner: (run) => {
            if (run.trajectory.count === 0) return { kind: 'call_parallel', branches, join: { kind: 'n', n } };
            atClose = running;
            return finish();
          },
          tools: [node],
        });
        const run = await start(made);
        await run.result();
        const state = await run.state();
        const possible = oracle(all).filter((end) => end === 'value').length;
        const got = outcomes(state).filter((kind) => kind === 'value').length;
        // A join that cannot be met any more ends at once.
        expect(got).toBeGreaterThanOrEqual(possible >= n ? n : 0);
        expect(got).toBeLessThanOrEqual(possible);
        expect(state.steps[0]?.error === undefined).toBe(possible >= n);
        expect(outcomes(state)).toHaveLength(all.length);
        expect(outcomes(state)).not.toContain(undefined);
        expect(atClose).toBe(0);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a graph that is cut off', () => {
  it('cancels what ran and what waited when the run is cancelled', async () => {
    const entered = gate();
    const made = world({
      planner: script(
        graph(
          { id: 'a', tool: 'echo', args: {} },
          { id: 'b', tool: 'wait', args: {}, after: ['a'] },
          { id: 'c', tool: 'echo', args: {}, after: ['b'] },
        ),
      ),
      tools: [
        echo,
        make('wait', (_, { signal }) => {
          entered.open();
          return aborted(signal);
        }),
      ],
    });
    const run = await start(made);
    await entered.opened;
    await run.cancel();
    await until(async () => (await run.state()).ending !== null);
    // What needed the cancelled branch had its answer before the run did.
    expect(outcomes(await run.state())).toEqual(['value', 'cancelled', 'cancelled']);
  });
});
