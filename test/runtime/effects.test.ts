/** What a call may do to the world, and what happens to it after a crash, a failure or a time limit. */
import { describe, expect, it } from 'vitest';
import type { Effect } from '../../src/core/tool-schema.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { type Reconciled, type Tool, ToolFailure } from '../../src/tools/tool.ts';
import {
  aborted,
  advanceUntil,
  call,
  collect,
  cutJournal,
  entriesOf,
  gate,
  kindsOf,
  make,
  observations,
  only,
  outcomes,
  quiet,
  script,
  start,
  turn,
  until,
  watched,
  world,
} from './support.ts';

/** Starts a call, lets the process die in the middle of it, and carries the run on in a second one. */
async function crashInCall(effect: Effect, more: Partial<Tool> = {}) {
  const clock = new VirtualClock();
  const shared = memoryJournal({ clock });
  const dying = cutJournal(shared);
  const keys: string[] = [];
  const attempts: number[] = [];
  const entered = gate();
  const hang = gate();
  const act = make(
    'act',
    async (_, context) => {
      keys.push(context.idempotencyKey);
      attempts.push(context.attempt);
      if (keys.length > 1) return 'done again';
      entered.open();
      await hang.opened;
      return 'never recorded';
    },
    { effect, ...more },
  );
  const first = world({ planner: script(call('act', { n: 1 })), tools: [act], journal: dying.journal, clock });
  const { id } = await start(first);
  await entered.opened;
  dying.cut();
  clock.advance(5_001);
  const planner = watched(script(call('act', { n: 1 })));
  const second = world({ planner, tools: [act], journal: shared, clock });
  const run = second.runtime.run(id);
  await run.resume();
  const result = await run.result();
  return { run, result, state: await run.state(), keys, attempts, planner, journal: shared };
}

describe('RL-33 a process that dies in the middle of a call', () => {
  it.each(['pure', 'read', 'keyed'] as const)('runs a %s tool again, with the same idempotency key', async (effect) => {
    const { result, keys, state, journal, run } = await crashInCall(effect);
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(state)).toEqual(['done again']);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
  });

  it('never runs a once tool again: without reconcile its outcome is unknown, and the planner is told', async () => {
    const { result, keys, state, planner, journal, run } = await crashInCall('once');
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(keys).toHaveLength(1);
    expect(outcomes(state)).toEqual(['unknown']);
    expect(planner.views[0]?.trajectory.step(0)?.calls[0]?.outcome).toMatchObject({
      kind: 'unknown',
      error: { code: 'outcome_unknown' },
    });
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_began', 'call_ended', 'moved', 'finished']);
  });

  it('takes once for the effect of a tool that states none', async () => {
    const { keys, state } = await crashInCall('once', { effect: undefined as never });
    expect(keys).toHaveLength(1);
    expect(outcomes(state)).toEqual(['unknown']);
  });

  it.each([
    ['done', { status: 'done', value: { sent: true } }, { kind: 'value', value: { sent: true } }, 1],
    ['not_done', { status: 'not_done' }, { kind: 'value', value: 'done again' }, 2],
    ['unknown', { status: 'unknown' }, { kind: 'unknown' }, 1],
    ['nonsense', undefined as never, { kind: 'unknown' }, 1],
  ] as [string, Reconciled, object, number][])('asks a once tool’s reconcile: %s', async (_, says, outcome, runs) => {
    const asked: unknown[] = [];
    const { state, keys } = await crashInCall('once', {
      reconcile: (args, { idempotencyKey }) => {
        asked.push([args, idempotencyKey]);
        return says;
      },
    });
    expect(asked).toEqual([[{ n: 1 }, keys[0]]]);
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(runs);
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject(outcome);
  });

  it('takes a reconcile that throws for unknown', async () => {
    const { state, keys } = await crashInCall('once', {
      reconcile: () => {
        throw new Error('cannot ask');
      },
    });
    expect(keys).toHaveLength(1);
    expect(outcomes(state)).toEqual(['unknown']);
  });

  it('does not know either when the tool is gone', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    const act = make('act', () => {
      entered.open();
      return new Promise(() => {});
    }, { effect: 'once' });
    const { id } = await start(world({ planner: script(call('act')), tools: [act], journal: dying.journal, clock }));
    await entered.opened;
    dying.cut();
    clock.advance(5_001);
    const run = world({ planner: script(call('act')), journal: shared, clock }).runtime.run(id);
    await run.resume();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['unknown']);
  });

  it('tells siblings apart: those that ended stay ended, those that never began run once', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const ran: string[] = [];
    const entered = gate();
    const tools = (hang: boolean): Tool[] => [
      make('note', ({ id }) => {
        ran.push(String(id));
        return id;
      }),
      make('hang', ({ id }) => {
        ran.push(String(id));
        entered.open();
        return hang ? new Promise(() => {}) : id;
      }, { effect: 'once', concurrency: 1 }),
    ];
    const planner = script({
      kind: 'call_parallel',
      branches: [
        { tool: 'note', args: { id: 'a' } },
        { tool: 'hang', args: { id: 'b' } },
        { tool: 'hang', args: { id: 'c' } },
      ],
    });
    const { id } = await start(world({ planner, tools: tools(true), journal: dying.journal, clock }));
    await entered.opened;
    await until(async () => (await shared.read(id)).some((entry) => entry.kind === 'call_ended'));
    dying.cut();
    clock.advance(5_001);
    const run = world({ planner, tools: tools(false), journal: shared, clock }).runtime.run(id);
    await run.resume();
    await run.result();
    expect(ran).toEqual(['a', 'b', 'c']);
    expect(outcomes(await run.state())).toEqual(['value', 'unknown', 'value']);
  });

  it('RL-23 goes on at the next step, and asks nothing again, when it dies between two steps', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const ran: unknown[] = [];
    const note = make('note', ({ n }) => ran.push(n));
    const asked = gate();
    const steps = script(call('note', { n: 0 }), call('note', { n: 1 }), call('note', { n: 2 }));
    const first = world({
      planner: (run, signal) => {
        if (run.trajectory.count < 2) return steps(run, signal);
        asked.open();
        return new Promise(() => {});
      },
      tools: [note],
      journal: dying.journal,
      clock,
    });
    const { id } = await start(first);
    await asked.opened;
    dying.cut();
    clock.advance(5_001);
    const planner = watched(steps);
    const run = world({ planner, tools: [note], journal: shared, clock }).runtime.run(id);
    await run.resume();
    await run.result();
    expect(ran).toEqual([0, 1, 2]);
    expect(planner.views.map((view) => view.trajectory.count)).toEqual([2, 3]);
  });

  it('does not start a once call when its beginning cannot be written', async () => {
    const ran: unknown[] = [];
    const made = world({ planner: script(call('act')), tools: [make('act', () => ran.push(1), { effect: 'once' })] });
    const append = made.journal.append.bind(made.journal);
    made.journal.append = (request) =>
      request.entries[0]?.kind === 'call_began' ? Promise.reject(new Error('disk is gone')) : append(request);
    const run = await start(made);
    await expect(run.result()).rejects.toThrow('disk is gone');
    expect(ran).toEqual([]);
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved']);
  });

  it('writes that a once call begins before it starts, and nothing of the kind for other tools', async () => {
    const seen: string[][] = [];
    const made = world({
      planner: script(call('once'), call('keyed')),
      tools: (['once', 'keyed'] as const).map((effect) =>
        make(effect, async () => seen.push((await made.journal.read('r')).map((entry) => entry.kind)), { effect }),
      ),
    });
    const run = await start(made, { identity: { tenant: 't', user: 'u', session: 's', run: 'r' } });
    await run.result();
    expect(seen).toEqual([
      ['started', 'moved', 'call_began'],
      ['started', 'moved', 'call_began', 'call_ended', 'moved'],
    ]);
  });
});

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
        branches: [{ tool: 'note', args: {} }, { tool: 'note', args: {} }],
      }),
      tools: [tool],
    });
    // ID-04: the same letters, split otherwise.
    for (const [tenant, user] of [['a', 'bc'], ['ab', 'c']] as const) {
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
        message: 'deaf did not end within 1000 ms. It may have happened all the same.',
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
    const tool = make('tool', () => ({ n: `${(runs += 1)}` }), { output });
    expect((await valued(tool)).record).toMatchObject({
      attempts: 1,
      outcome: { kind: 'error', error: { code: 'tool_invalid_output' } },
    });
    expect(runs).toBe(1);
  });

  it('TL-04 checks the arguments once, before the first attempt', async () => {
    let runs = 0;
    const input = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { record, made, run } = await valued(make('tool', () => (runs += 1), { input, effect: 'once' }));
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
