/** One call: trying again, its time limit, and what it gives back. */
import { describe, expect, it } from 'vitest';
import { type Tool, ToolFailure } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, observations } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, turn } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

describe('TL-06, TL-08 trying again', () => {
  const flaky = (error: () => unknown, more: Partial<Tool> = {}) => {
    const keys: string[] = [];
    const tool = make(
      'flaky',
      (_, { idempotencyKey, attempt }) => {
        keys.push(`${attempt} ${idempotencyKey}`);
        throw error();
      },
      more,
    );
    return { tool, keys };
  };

  async function ends(tool: Tool) {
    const made = world({ planner: script(call('flaky')), tools: [tool] });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    return (await run.state()).steps[0]?.calls[0];
  }

  it.each([
    ['its retryable flag', () => new ToolFailure('later', { retryable: true })],
    ['a status of 503', () => Object.assign(new Error('later'), { status: 503 })],
    ['a status of 429', () => Object.assign(new Error('later'), { statusCode: 429 })],
  ])('tries 4 times when the error says by %s that it may pass', async (_, error) => {
    const { tool, keys } = flaky(error);
    expect(await ends(tool)).toMatchObject({
      attempts: 4,
      outcome: {
        kind: 'error',
        error: { code: 'tool_retries_exhausted', data: { attempts: 4, cause: { message: 'later' } } },
      },
    });
    expect(keys.map((key) => key.split(' ')[0])).toEqual(['1', '2', '3', '4']);
    expect(new Set(keys.map((key) => key.split(' ')[1])).size).toBe(1);
  });

  it.each([
    ['a permanent failure', () => new ToolFailure('never', { code: 'gone' }), 'gone'],
    ['a status of 404', () => Object.assign(new Error('503 timeout transient'), { status: 404 }), 'tool_failed'],
    ['only its text', () => new Error('503 timeout, try again'), 'tool_failed'],
  ])('TL-11 tries once for %s', async (_, error, code) => {
    const { tool, keys } = flaky(error);
    expect(await ends(tool)).toMatchObject({ attempts: 1, outcome: { kind: 'error', error: { code } } });
    expect(keys).toHaveLength(1);
  });

  it('TL-09 keeps to the retries that a tool states', async () => {
    const error = () => new ToolFailure('later', { retryable: true });
    expect(await ends(flaky(error, { retries: 0 }).tool)).toMatchObject({ attempts: 1 });
    expect(await ends(flaky(error, { retries: 2 }).tool)).toMatchObject({ attempts: 3 });
  });

  it('TL-08, W62 never tries a once tool again, and a keyed one with the same key', async () => {
    const error = () => new ToolFailure('later', { retryable: true });
    expect(await ends(flaky(error, { effect: 'once', retries: 3 }).tool)).toMatchObject({ attempts: 1 });
    const { tool, keys } = flaky(error, { effect: 'keyed' });
    expect(await ends(tool)).toMatchObject({ attempts: 4 });
    expect(new Set(keys.map((key) => key.split(' ')[1])).size).toBe(1);
  });

  it('gives every call another key', async () => {
    const keys: string[] = [];
    const tool = make('note', (_, { idempotencyKey }) => keys.push(idempotencyKey));
    const made = world({
      planner: script(call('note'), call('note'), {
        kind: 'call_parallel',
        branches: [
          { tool: 'note', args: {} },
          { tool: 'note', args: {} },
        ],
      }),
      tools: [tool],
    });
    // ID-04: the same letters, split otherwise.
    for (const [tenant, user] of [
      ['a', 'bc'],
      ['ab', 'c'],
    ] as const) {
      const run = await start(made, { identity: { tenant, user, session: 's', run: `run ${tenant}` } });
      await run.result();
    }
    expect(keys).toHaveLength(8);
    expect(new Set(keys).size).toBe(8);
  });
});

describe('TL-10 a time limit', () => {
  it('ends the step although the tool ignores its signal; what comes later is dropped and told', async () => {
    const late = gate<string>();
    const made = world({
      planner: script(call('deaf'), call('next')),
      tools: [
        make('deaf', () => late.opened, { timeoutMs: 1_000, retries: 0, effect: 'keyed' }),
        make('next', async () => {
          late.open('too late');
          await turn();
        }),
      ],
    });
    const run = await start(made);
    const events = collect(run);
    await quiet();
    made.clock.advance(1_000);
    await run.result();
    const state = await run.state();
    expect(state.steps[0]?.calls[0]?.outcome).toEqual({
      kind: 'error',
      error: {
        code: 'tool_timeout',
        message: 'deaf did not end within 1000 ms. The call may have happened all the same.',
      },
    });
    expect(only(await events, 'tool.late')).toMatchObject([{ step: 0, call: 0, tool: 'deaf' }]);
    expect(JSON.stringify(state)).not.toContain('too late');
  });

  it('aborts the attempt’s own signal, and tries again with a fresh one', async () => {
    const signals: AbortSignal[] = [];
    const made = world({
      planner: script(call('slow')),
      tools: [
        make(
          'slow',
          (_, { signal }) => {
            signals.push(signal);
            return signals.length === 1 ? aborted(signal) : 'second';
          },
          { timeoutMs: 1_000, retries: 1 },
        ),
      ],
    });
    const run = await start(made);
    const events = collect(run);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(observations(await run.state())).toEqual(['second']);
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
    expect(signals[0]?.reason).toMatchObject({ code: 'tool_timeout' });
    // Its rejection is the abort that it was asked for, not a result that was lost.
    expect(only(await events, 'tool.late')).toEqual([]);
  });
});

describe('what a call gives back', () => {
  const valued = async (tool: Tool) => {
    const made = world({ planner: script(call('tool')), tools: [tool] });
    const run = await start(made);
    await run.result();
    return { record: (await run.state()).steps[0]?.calls[0], made, run };
  };

  it.each([
    ['nothing', () => undefined, { kind: 'value', value: null }],
    ['a date', () => ({ at: new Date(0) }), { kind: 'value', value: { at: '1970-01-01T00:00:00.000Z' } }],
    ['a map', () => new Map(), { kind: 'error', error: { code: 'unserializable' } }],
    ['a lost number', () => ({ id: 2 ** 53 }), { kind: 'error', error: { code: 'unserializable' } }],
  ])('records %s', async (_, give, outcome) => {
    expect((await valued(make('tool', give))).record?.outcome).toMatchObject(outcome);
  });

  it('TL-05 checks the value against the output schema, and does not try again', async () => {
    let runs = 0;
    const output = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const tool = make(
      'tool',
      () => {
        runs += 1;
        return { n: String(runs) };
      },
      { outputSchema: output },
    );
    expect((await valued(tool)).record).toMatchObject({
      attempts: 1,
      outcome: { kind: 'error', error: { code: 'tool_invalid_output' } },
    });
    expect(runs).toBe(1);
  });

  it('TL-04 checks the arguments once, before the first attempt', async () => {
    let runs = 0;
    const input = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { record, made, run } = await valued(make('tool', () => (runs += 1), { inputSchema: input, effect: 'once' }));
    expect(record).toMatchObject({ attempts: 0, outcome: { kind: 'error', error: { code: 'tool_invalid_args' } } });
    expect(runs).toBe(0);
    expect(await entriesOf(made.journal, run, 'call_began')).toEqual([]);
  });

  it('lets a tool change its own arguments without changing the record', async () => {
    const { run } = await valued(
      make('tool', (args) => {
        Object.assign(args, { mine: true });
        return args;
      }),
    );
    const [step] = (await run.state()).steps;
    expect(step?.decision).toMatchObject({ args: {} });
    expect(step?.calls[0]?.outcome).toEqual({ kind: 'value', value: { mine: true } });
  });
});
