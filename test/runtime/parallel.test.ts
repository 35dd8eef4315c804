/** Parallel calls: set-up and joins. */
import { describe, expect, it } from 'vitest';
import type { Join } from '#core';
import { named, parallel, script } from '../kit/decisions.ts';
import { answersOf, entriesOf, kindsOf, observations, outcomes } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, type Gate, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Tools that end when the test says so: with their name, or with an error. */
function gated(...names: string[]) {
  const gates = new Map(names.map((name) => [name, gate<'ok' | 'bad'>()] as const));
  const stopped: string[] = [];
  const tools = names.map((name) =>
    make(name, async (_, { signal }) => {
      const how = await Promise.race([
        gates.get(name)?.opened,
        aborted(signal).catch((reason) => {
          stopped.push(name);
          throw reason;
        }),
      ]);
      if (how === 'bad') throw new Error(`${name} failed`);
      return name;
    }),
  );
  return {
    tools,
    stopped,
    end: (name: string, how: 'ok' | 'bad' = 'ok') => (gates.get(name) as Gate<'ok' | 'bad'>).open(how),
  };
}

describe('the set-up', () => {
  const strict = make('strict', () => 'ran', {
    inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  });

  it('PX-03, W15 starts nothing when a branch has bad arguments, and names the branch and the validator’s words', async () => {
    const ran: string[] = [];
    const good = make('good', () => ran.push('good'));
    const { journal, ...rest } = world({
      planner: script(
        parallel([
          { tool: 'good', args: {} },
          { tool: 'strict', args: { n: 'one' } },
        ]),
      ),
      tools: [good, strict],
    });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const [step] = (await run.state()).steps;
    expect(step?.error).toMatchObject({ code: 'parallel_branch_invalid_args', data: { branch: 1 } });
    expect(step?.error?.message).toMatch(/^Branch 1: .*\/n: must be number/);
    expect(outcomes(await run.state())).toEqual(['skipped', 'error']);
    expect(ran).toEqual([]);
    expect(await kindsOf(journal, run)).not.toContain('call_began');
  });

  it('PX-04 starts nothing when a branch names an unknown tool', async () => {
    const ran: string[] = [];
    const run = await start(
      world({ planner: script(parallel(named('good', 'nobody'))), tools: [make('good', () => ran.push('good'))] }),
    );
    await run.result();
    const [step] = (await run.state()).steps;
    expect(step?.error).toMatchObject({ code: 'tool_not_found', data: { branch: 1 } });
    expect(step?.error?.message).toMatch(/^Branch 1: There is no tool named "nobody"\. The tools are: good\./);
    expect(ran).toEqual([]);
  });

  it.each([
    ['no branches', parallel([]), 'invalid_decision'],
    [
      'PX-05 the cap before the join',
      parallel(named(...Array(51).fill('x')), { join: { kind: 'bogus' } as never }),
      'parallel_cap_exceeded',
    ],
    [
      'PX-16 an unknown join before unknown tools',
      parallel(named('nobody'), { join: { kind: 'bogus' } as never }),
      'parallel_invalid_join',
    ],
    ['PX-14 n of 0', parallel(named('echo', 'echo'), { join: { kind: 'n', n: 0 } }), 'parallel_invalid_join'],
    ['PX-14 n of -1', parallel(named('echo', 'echo'), { join: { kind: 'n', n: -1 } }), 'parallel_invalid_join'],
    [
      'PX-14 n beyond the branches',
      parallel(named('echo', 'echo'), { join: { kind: 'n', n: 3 } }),
      'parallel_invalid_join',
    ],
    [
      'PX-15 too few keys',
      parallel(named('echo', 'echo'), { join: { kind: 'keyed', keys: ['x'] } }),
      'parallel_invalid_join',
    ],
    [
      'PX-15 an empty key',
      parallel(named('echo', 'echo'), { join: { kind: 'keyed', keys: ['x', ''] } }),
      'parallel_invalid_join',
    ],
    [
      'PX-15 the same key twice',
      parallel(named('echo', 'echo'), { join: { kind: 'keyed', keys: ['x', 'x'] } }),
      'parallel_invalid_join',
    ],
  ])('refuses %s', async (_, decision, code) => {
    const { journal, ...rest } = world({ planner: script(decision), tools: [echo] });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code } });
    expect(await kindsOf(journal, run)).toEqual(['started', 'failed']);
  });

  it('PC-19 carries out 6 branches and 50, and refuses 51', async () => {
    for (const [count, status] of [
      [6, 'finished'],
      [50, 'finished'],
      [51, 'failed'],
    ] as const) {
      const run = await start(world({ planner: script(parallel(named(...Array(count).fill('echo')))), tools: [echo] }));
      expect(await run.result()).toMatchObject({ status });
    }
  });

  it('PX-07 with per_branch gives each branch its own outcome: a value, then three errors', async () => {
    const ran: string[] = [];
    const run = await start(
      world({
        planner: script(
          parallel(
            [
              { tool: 'good', args: {}, callId: 'c0' },
              { tool: 'throws', args: {}, callId: 'c1' },
              { tool: 'nobody', args: {}, callId: 'c2' },
              { tool: 'strict', args: {}, callId: 'c3' },
            ],
            { onInvalid: 'per_branch' },
          ),
        ),
        tools: [
          make('good', () => {
            ran.push('good');
            return 1;
          }),
          make('throws', () => {
            throw new Error('oh');
          }),
          { ...strict, execute: () => ran.push('strict') },
        ],
      }),
    );
    await run.result();
    const state = await run.state();
    expect(state.steps[0]?.error).toBeUndefined();
    expect(observations(state)[0]).toMatchObject([
      { call_id: 'c0', tool: 'good', index: 0, value: 1 },
      { call_id: 'c1', tool: 'throws', index: 1, error: { code: 'tool_failed', message: 'oh' } },
      { call_id: 'c2', tool: 'nobody', index: 2, error: { code: 'tool_not_found' } },
      { call_id: 'c3', tool: 'strict', index: 3, error: { code: 'tool_invalid_args' } },
    ]);
    expect(ran).toEqual(['good']);
  });
});

describe('joins', () => {
  it.each([undefined, { kind: 'all' }, { kind: '' }] as (
    | Join
    | undefined
  )[])('PX-01, PX-02, PX-18 gives all results in branch order for the join %o', async (join) => {
    const { tools, end } = gated('alpha', 'beta', 'gamma');
    const { journal, ...rest } = world({
      planner: script(parallel(named('alpha', 'beta', 'gamma'), join === undefined ? {} : { join })),
      tools,
    });
    const run = await start(rest);
    for (const [count, name] of ['gamma', 'alpha', 'beta'].entries()) {
      end(name);
      await until(async () => (await entriesOf(journal, run, 'call_ended')).length === count + 1);
    }
    await run.result();
    expect((await entriesOf(journal, run, 'call_ended')).map((entry) => entry.call)).toEqual([2, 0, 1]);
    expect(observations(await run.state())[0]).toEqual([
      { tool: 'alpha', index: 0, value: 'alpha' },
      { tool: 'beta', index: 1, value: 'beta' },
      { tool: 'gamma', index: 2, value: 'gamma' },
    ]);
  });

  it('PX-09 all: a branch that throws is a result, and no error of the call', async () => {
    const { tools, end } = gated('a', 'b', 'c');
    const run = await start(world({ planner: script(parallel(named('a', 'b', 'c'))), tools }));
    end('b', 'bad');
    end('a');
    end('c');
    await run.result();
    const state = await run.state();
    expect(outcomes(state)).toEqual(['value', 'error', 'value']);
    expect(state.steps[0]?.error).toBeUndefined();
  });

  it('PX-10, PX-23 first_success: gives the winner, aborts the others, and answers every call id', async () => {
    const { tools, end, stopped } = gated('slow', 'fast', 'lazy');
    const run = await start(
      world({
        planner: script(
          parallel(
            ['slow', 'fast', 'lazy'].map((tool, index) => ({ tool, args: {}, callId: `c${index}` })),
            { join: { kind: 'first_success' } },
          ),
        ),
        tools,
      }),
    );
    end('fast');
    await run.result();
    const state = await run.state();
    expect(observations(state)[0]).toEqual([{ call_id: 'c1', tool: 'fast', index: 1, value: 'fast' }]);
    expect(stopped.sort()).toEqual(['lazy', 'slow']);
    expect(outcomes(state)).toEqual(['cancelled', 'value', 'cancelled']);
    expect(answersOf(state.steps[0])).toEqual({ c0: 'cancelled', c1: 'value', c2: 'cancelled' });
  });

  it('PX-11 first_success: a failure stops nobody; when all fail, the error has every cause', async () => {
    const { tools, end, stopped } = gated('a', 'b', 'c');
    const { journal, ...rest } = world({
      planner: script(parallel(named('a', 'b', 'c'), { join: { kind: 'first_success' } })),
      tools,
    });
    const run = await start(rest);
    end('b', 'bad');
    await until(async () => (await entriesOf(journal, run, 'call_ended')).length === 1);
    await quiet();
    expect(stopped).toEqual([]);
    end('a', 'bad');
    end('c', 'bad');
    await run.result();
    const state = await run.state();
    expect(observations(state)[0]).toEqual([]);
    expect(state.steps[0]?.error).toMatchObject({
      code: 'parallel_all_failed',
      data: {
        failures: [
          { index: 0, tool: 'a', code: 'tool_failed', message: 'a failed' },
          { index: 1, tool: 'b', code: 'tool_failed', message: 'b failed' },
          { index: 2, tool: 'c', code: 'tool_failed', message: 'c failed' },
        ],
      },
    });
  });

  it('PX-12 n: gives 3 of 5 in the order in which they came, with their own index, and aborts the rest', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const { tools, end, stopped } = gated(...names);
    const { journal, ...rest } = world({
      planner: script(parallel(named(...names), { join: { kind: 'n', n: 3 } })),
      tools,
    });
    const run = await start(rest);
    for (const [count, name] of ['e', 'b', 'd'].entries()) {
      end(name);
      await until(async () => (await entriesOf(journal, run, 'call_ended')).length >= count + 1);
    }
    await run.result();
    expect(observations(await run.state())[0]).toEqual([
      { tool: 'e', index: 4, value: 'e' },
      { tool: 'b', index: 1, value: 'b' },
      { tool: 'd', index: 3, value: 'd' },
    ]);
    expect(stopped.sort()).toEqual(['a', 'c']);
  });

  it('PX-13 n: says how many were reached, with the successes that there are and all failures', async () => {
    const { tools, end } = gated('a', 'b', 'c');
    const run = await start(
      world({ planner: script(parallel(named('a', 'b', 'c'), { join: { kind: 'n', n: 3 } })), tools }),
    );
    end('a', 'bad');
    end('b');
    end('c', 'bad');
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const state = await run.state();
    expect(state.steps[0]?.error).toMatchObject({
      code: 'parallel_threshold_unmet',
      data: { wanted: 3, reached: 1, failures: [{ index: 0 }, { index: 2 }] },
    });
    expect(observations(state)[0]).toEqual([{ tool: 'b', index: 1, value: 'b' }]);
  });

  it('n: stops what is left when too few are left for it, such as a wait that nothing ends', async () => {
    const wait = make('wait', (_, context) => context.event({ key: 'never' }));
    const { tools, end } = gated('a', 'b');
    const made = world({
      planner: script(parallel(named('a', 'b', 'wait'), { join: { kind: 'n', n: 2 } })),
      tools: [...tools, wait],
    });
    const run = await start(made);
    await until(async () => (await made.runtime.waiting()).length === 1);
    end('a', 'bad');
    end('b', 'bad');
    await run.result();
    expect((await run.state()).steps[0]).toMatchObject({
      error: { code: 'parallel_threshold_unmet', data: { wanted: 2, reached: 0 } },
      calls: [
        {},
        {},
        { outcome: { kind: 'cancelled', error: { message: 'Too few branches were left for the join.' } } },
      ],
    });
  });

  it('PX-15 keyed: gives an object in the order of the keys', async () => {
    const { tools, end } = gated('a', 'b');
    const run = await start(
      world({ planner: script(parallel(named('a', 'b'), { join: { kind: 'keyed', keys: ['x', 'y'] } })), tools }),
    );
    end('b', 'bad');
    end('a');
    await run.result();
    const [observed] = observations(await run.state());
    expect(JSON.stringify(observed)).toBe('{"x":"a","y":{"error":{"code":"tool_failed","message":"b failed"}}}');
  });

  it('PX-19 stores heavy values branch by branch', async () => {
    const run = await start(
      world({
        planner: script(
          parallel([
            { tool: 'echo', args: { small: 1 } },
            { tool: 'echo', args: { big: 'x'.repeat(40_000) } },
          ]),
        ),
        tools: [echo],
      }),
    );
    await run.result();
    expect(observations(await run.state())[0]).toMatchObject([
      { value: { small: 1 } },
      { value: { truncated: true, artifact_ref: expect.stringMatching(/^art_/) } },
    ]);
  });
});
