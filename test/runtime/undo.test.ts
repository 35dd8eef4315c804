/** A run that ends other than by its goal undoes its calls first, if it was told to. */
import { describe, expect, it } from 'vitest';
import { type Decision, type JsonObject, PilotageError, type PlannerFunction } from '#core';
import type { Run } from '#runtime';
import { OutcomeUnknown, type Tool } from '#tools';
import { call, parallel, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { holding, make } from '../kit/tools.ts';
import { bookings } from '../kit/undo.ts';
import { aborted, gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const book = (what: string): Decision => call('book', { what });
const noPath: Decision = { kind: 'finish', reason: 'no_path', metadata: { why: 'full' } };

/** Decides what the script says, and then fails. */
function failing(...decisions: readonly Decision[]): PlannerFunction {
  return ({ trajectory: { count } }) => {
    const decision = decisions[count];
    if (decision === undefined) throw new Error('broken');
    return decision;
  };
}

/** What came of undoing, as the run tells it. */
async function undoneIn(run: Run): Promise<JsonObject> {
  const result = await run.result();
  const told = result.status === 'failed' ? result.error.data : (result as { metadata?: JsonObject }).metadata;
  return (told?.['undo'] ?? {}) as JsonObject;
}

const kinds = async ({ journal }: World, { id }: Run): Promise<string[]> =>
  (await journal.read(id)).map(({ kind }) => kind);

describe('a run that fails', () => {
  it('undoes its calls, the last one first, and then ends as it was to', async () => {
    const { booked, done, tools } = bookings();
    const made = world({ planner: failing(book('hotel'), call('look'), book('flight'), call('fail')), tools });
    const run = await start(made, { onFail: 'undo' });
    const result = await run.result();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
    expect(done).toEqual(['book hotel', 'book flight', 'cancel flight', 'cancel hotel']);
    expect(booked).toEqual([]);
    expect(await undoneIn(run)).toEqual({
      undone: [
        { tool: 'book', step: 2, call: 0, by: { tool: 'cancel', step: 4, call: 0 } },
        { tool: 'book', step: 0, call: 0, by: { tool: 'cancel', step: 5, call: 0 } },
      ],
    });
    expect((await kinds(made, run)).filter((kind) => !kind.startsWith('call_'))).toEqual([
      ...['started', 'moved', 'moved', 'moved', 'moved', 'unwinding', 'moved', 'moved', 'failed'],
    ]);
  });

  it('keeps them unless it was told to undo them', async () => {
    const { booked, tools } = bookings();
    const made = world({ planner: failing(book('hotel')), tools });
    const run = await start(made);
    await run.result();
    expect(booked).toEqual(['hotel']);
    expect(await kinds(made, run)).toEqual(['started', 'moved', 'call_ended', 'failed']);
  });

  it('ends at once when it has nothing to undo', async () => {
    const made = world({ planner: failing(call('look')), tools: bookings().tools, onFail: 'undo' });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed' });
    expect(await kinds(made, run)).toEqual(['started', 'moved', 'call_ended', 'failed']);
  });

  it('undoes nothing when it reaches its goal', async () => {
    const { booked, tools } = bookings();
    const run = await start(world({ planner: script(book('hotel')), tools, onFail: 'undo' }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(booked).toEqual(['hotel']);
  });

  it('says with what it was to end that no way was seen', async () => {
    const { booked, tools } = bookings();
    const run = await start(world({ planner: script(book('hotel'), noPath), tools, onFail: 'undo' }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'no_path', metadata: { why: 'full' } });
    expect((await undoneIn(run))['undone']).toHaveLength(1);
    expect(booked).toEqual([]);
  });

  it('takes the setting of the run before that of its agent, and that before the one of the runtime', async () => {
    const { booked, tools } = bookings();
    const made = world({ planner: failing(book('hotel')), tools, onFail: 'undo' });
    await (await start(made, { onFail: 'keep' })).result();
    expect(booked).toEqual(['hotel']);
    await (await start(made)).result();
    expect(booked).toEqual(['hotel']);
  });

  it('tells of it in events', async () => {
    const { tools } = bookings();
    const run = await start(world({ planner: failing(book('hotel')), tools, onFail: 'undo' }));
    const told = (await collect(run)).filter(({ type }) => type.startsWith('undo.') || type === 'planner.error');
    expect(told).toMatchObject([
      { type: 'undo.started', reason: 'failed', code: 'planner_failed' },
      { type: 'undo.call', step: 1, tool: 'cancel', undoes: { step: 0, call: 0 } },
      { type: 'undo.ended', undone: 1, failed: 0, left: 0 },
      { type: 'planner.error' },
    ]);
  });

  it('cannot be resumed afterwards, and says why', async () => {
    const run = await start(world({ planner: failing(book('hotel')), tools: bookings().tools, onFail: 'undo' }));
    await run.result();
    const refused: unknown = await run.resume().catch((error: unknown) => error);
    expect(PilotageError.is(refused, 'run_unwound')).toBe(true);
    const again: unknown = await run.retry().catch((error: unknown) => error);
    expect(PilotageError.is(again, 'run_unwound')).toBe(true);
  });
});

describe('what is undone', () => {
  it('is every call of a parallel step that has a value, in the reverse order of their ends', async () => {
    const { done, tools } = bookings();
    const branches = [
      { tool: 'book', args: { what: 'a' } },
      { tool: 'fail', args: {} },
      { id: 'c', tool: 'book', args: { what: 'c' }, after: ['0'] },
    ];
    const run = await start(world({ planner: failing(parallel(branches)), tools, onFail: 'undo' }));
    await run.result();
    expect(done.slice(2)).toEqual(['cancel c', 'cancel a']);
    expect((await undoneIn(run))['undone']).toMatchObject([{ call: 2 }, { call: 0 }]);
  });

  it('is nothing for a value of which the tool says so', async () => {
    const undo: Tool['undo'] = (_, value) => {
      const { booking } = value as { booking: string };
      return booking === 'free' ? undefined : { tool: 'cancel', args: { booking } };
    };
    const { booked, tools } = bookings({ book: { undo } });
    const run = await start(world({ planner: failing(book('free'), book('hotel')), tools, onFail: 'undo' }));
    expect((await undoneIn(run))['undone']).toHaveLength(1);
    expect(booked).toEqual(['free']);
  });

  it('goes on when one cannot be undone, and says which', async () => {
    const { booked, tools } = bookings({
      cancel: {
        execute: ({ booking }: Record<string, unknown>) => {
          if (booking === 'flight') throw new Error('not any more');
          return booked.splice(booked.indexOf(String(booking)), 1).length;
        },
      },
    });
    const run = await start(world({ planner: failing(book('hotel'), book('flight')), tools, onFail: 'undo' }));
    const undo = await undoneIn(run);
    expect(undo).toMatchObject({ undone: [{ step: 0 }], undo_failed: [{ step: 1, error: { code: 'tool_failed' } }] });
    expect(booked).toEqual(['flight']);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no idea');
      },
      /no idea/,
    ],
    ['gives no call', () => ({ name: 'cancel' }), /tool, args/],
    ['gives a promise', async () => ({ tool: 'cancel', args: {} }), /at once/],
    ['gives what is not JSON', () => ({ tool: 'cancel', args: { at: 1n } }), /args/],
  ])('tells of an undo that %s', async (_, undo, words) => {
    const { booked, tools } = bookings({ book: { undo: undo as never } });
    const run = await start(world({ planner: failing(book('hotel')), tools, onFail: 'undo' }));
    const { undo_failed: failed } = await undoneIn(run);
    expect(failed).toMatchObject([{ tool: 'book', error: { code: 'undo_failed' } }]);
    expect(JSON.stringify(failed)).toMatch(words);
    expect(booked).toEqual(['hotel']);
  });

  it('sees large values whole', async () => {
    const big = 'x'.repeat(100_000);
    const seen: number[] = [];
    const store = make('store', () => ({ big }), {
      effect: 'keyed',
      undo: (_, value) => ({ tool: 'drop', args: { length: (value as { big: string }).big.length } }),
    });
    const drop = make('drop', ({ length }) => seen.push(Number(length)), { effect: 'keyed' });
    const run = await start(world({ planner: failing(call('store')), tools: [store, drop], onFail: 'undo' }));
    await run.result();
    expect(seen).toEqual([100_000]);
  });
});

describe('a tool', () => {
  it.each([
    ['that is no function', { undo: 'cancel' as never }],
    ['of a call in the background', { background: true, undo: () => ({ tool: 'x', args: {} }) }],
  ])('cannot have an undo %s', (_, more) => {
    expect(() => world({ planner: script(), tools: [make('book', () => 1, more)] })).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    );
  });

  it('needs known words and limits', async () => {
    const made = world({ planner: script() });
    await expect(start(made, { onFail: 'never' as never })).rejects.toMatchObject({ code: 'invalid_config' });
    await expect(start(made, { undo: { calls: -1 } })).rejects.toMatchObject({ code: 'invalid_config' });
    await expect(start(made, { undo: { costUsd: -1 } })).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe('a cancel', () => {
  it('is recorded, and the run ends when its calls are undone', async () => {
    const { booked, tools } = bookings();
    const { tool, entered } = holding();
    const made = world({ planner: script(book('hotel'), call('hold')), tools: [...tools, tool], onFail: 'undo' });
    const run = await start(made);
    await entered;
    await run.cancel();
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'cancelled',
      metadata: { steering: 'cancelled' },
    });
    expect((await undoneIn(run))['undone']).toHaveLength(1);
    expect(booked).toEqual([]);
  });

  it('hears out what is under way, and undoes that too', async () => {
    const entered = gate();
    const { done, tools } = bookings();
    const slow = make(
      'slow',
      async (_, { signal }) => {
        entered.open();
        await aborted(signal).catch(() => {});
        return { booking: 'car' };
      },
      { effect: 'keyed', undo: (_, value) => ({ tool: 'cancel', args: value }) },
    );
    const run = await start(
      world({ planner: script(book('hotel'), call('slow')), tools: [...tools, slow], onFail: 'undo' }),
    );
    await entered.opened;
    await run.cancel();
    await run.result();
    expect(done.slice(1)).toEqual(['cancel car', 'cancel hotel']);
  });

  it('says which calls may have happened that nobody could undo', async () => {
    const entered = gate();
    const { tools } = bookings();
    const slow = make(
      'slow',
      async (_, { signal }) => {
        entered.open();
        await aborted(signal);
      },
      { effect: 'keyed', undo: () => ({ tool: 'cancel', args: {} }) },
    );
    const run = await start(world({ planner: script(call('slow')), tools: [...tools, slow], onFail: 'undo' }));
    await entered.opened;
    await run.cancel();
    expect(await undoneIn(run)).toEqual({ undone: [], unsure: [{ tool: 'slow', step: 0, call: 0 }] });
  });

  it('waits for a call of which nobody knows whether it has happened', async () => {
    const entered = gate();
    const pay: Partial<Tool> = {
      effect: 'once',
      execute: async (_: unknown, { signal }: { signal: AbortSignal }) => {
        entered.open();
        await aborted(signal).catch(() => {});
        throw new OutcomeUnknown();
      },
    } as Partial<Tool>;
    const { done, tools } = bookings({ book: pay });
    const run = await start(world({ planner: script(book('hotel')), tools, onFail: 'undo' }));
    await entered.opened;
    await run.cancel();
    const held = await run.result();
    if (held.status !== 'paused') throw new Error(`It is ${held.status}.`);
    expect(held.pauses).toMatchObject([{ reason: 'in_doubt' }]);
    await run.settle(held.pauses[0]?.token ?? '', { happened: true, value: { booking: 'hotel' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(done).toEqual(['cancel hotel']);
  });

  it('stops the undoing when it comes a second time, and says what is left', async () => {
    const entered = gate();
    const { booked, tools } = bookings({
      cancel: {
        execute: async (_: unknown, { signal }: { signal: AbortSignal }) => {
          entered.open();
          await aborted(signal);
        },
      } as Partial<Tool>,
    });
    const { tool, entered: inside } = holding();
    const planner = script(book('hotel'), book('flight'), call('hold'));
    const run = await start(world({ planner, tools: [...tools, tool], onFail: 'undo' }));
    await inside;
    await run.cancel();
    await entered.opened;
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(await undoneIn(run)).toMatchObject({
      undone: [],
      undo_failed: [{ tool: 'book', step: 1 }],
      left: [{ tool: 'book', step: 0, call: 0 }],
      stopped: 'cancelled',
    });
    expect(booked).toEqual(['hotel', 'flight']);
  });

  it('ends a run over a doubt when it comes a second time', async () => {
    const entered = gate();
    const { tools } = bookings({
      book: {
        effect: 'once',
        execute: async ({ what }: Record<string, unknown>, { signal }: { signal: AbortSignal }) => {
          if (what === 'hotel') return { booking: what };
          entered.open();
          await aborted(signal).catch(() => {});
          throw new OutcomeUnknown();
        },
      } as Partial<Tool>,
    });
    const run = await start(world({ planner: script(book('hotel'), book('flight')), tools, onFail: 'undo' }));
    await entered.opened;
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.cancel();
    const result = await run.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(result).toMatchObject({
      metadata: { in_doubt: [{ tool: 'book' }], undo: { left: [{ step: 0 }], stopped: 'cancelled' } },
    });
  });

  it('leaves a run that unwinds already as it ends', async () => {
    const inside = gate();
    const go = gate();
    const { booked, tools } = bookings({ cancel: {} });
    const slow = make(
      'slow',
      async () => {
        inside.open();
        await go.opened;
        return 'x';
      },
      { effect: 'keyed' },
    );
    const book2 = make('stay', () => 'stays', { effect: 'keyed', undo: () => ({ tool: 'slow', args: {} }) });
    const run = await start(
      world({ planner: failing(book('hotel'), call('stay')), tools: [...tools, slow, book2], onFail: 'undo' }),
    );
    await inside.opened;
    await run.cancel({ hard: false });
    go.open();
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
    expect(await undoneIn(run)).toMatchObject({
      undone: [{ tool: 'stay' }],
      left: [{ tool: 'book' }],
      stopped: 'cancelled',
    });
    expect(booked).toEqual(['hotel']);
  });
});

describe('a limit', () => {
  it('of time does not stop the undoing', async () => {
    const { booked, tools } = bookings();
    const { tool, entered } = holding();
    const made = world({ planner: script(book('hotel'), call('hold')), tools: [...tools, tool], onFail: 'undo' });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 1_000 } });
    await entered;
    made.clock.advance(1_000);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(booked).toEqual([]);
  });

  it('of calls and steps that is used up does not stop it either', async () => {
    const { booked, tools } = bookings();
    const run = await start(world({ planner: script(book('hotel'), book('flight')), tools, onFail: 'undo' }), {
      limits: { calls: 2, steps: 2 },
    });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'max_steps', metadata: { max_steps: 2 } });
    expect(booked).toEqual([]);
    expect((await run.state()).limits).toEqual({ calls: 2, steps: 2 });
  });

  it('of its own ends the undoing, and says what is left', async () => {
    const { booked, tools } = bookings();
    const run = await start(world({ planner: failing(book('hotel'), book('flight')), tools }), {
      onFail: 'undo',
      undo: { calls: 1 },
    });
    expect(await undoneIn(run)).toMatchObject({ undone: [{ step: 1 }], left: [{ step: 0 }], stopped: 'calls' });
    expect(booked).toEqual(['hotel']);
  });

  it('of its own time ends it', async () => {
    const { tool, entered } = holding();
    const stay = make('stay', () => 'x', { effect: 'keyed', undo: () => ({ tool: 'hold', args: {} }) });
    const made = world({ planner: failing(call('stay')), tools: [tool, stay] });
    const run = await start(made, { onFail: 'undo', undo: { timeoutMs: 1_000 } });
    await entered;
    made.clock.advance(1_000);
    expect(await undoneIn(run)).toMatchObject({ undone: [], undo_failed: [{ tool: 'stay' }] });
  });
});

it('an undo by a tool in the background is waited for', async () => {
  const { booked, tools } = bookings({ cancel: { background: true } });
  const made = world({ planner: failing(book('hotel'), book('flight')), tools, onFail: 'undo' });
  expect(await undoneIn(await start(made))).toEqual({
    undone: [
      { tool: 'book', step: 1, call: 0, by: { tool: 'cancel', step: 2, call: 0 } },
      { tool: 'book', step: 0, call: 0, by: { tool: 'cancel', step: 3, call: 0 } },
    ],
  });
  expect(booked).toEqual([]);
});

describe('an undo that needs an approval', () => {
  it('asks as any call does, and the time in which nobody answers does not count', async () => {
    const { booked, tools } = bookings({ cancel: { needsApproval: true } });
    const made = world({ planner: failing(book('hotel')), tools });
    const run = await start(made, { onFail: 'undo', undo: { timeoutMs: 1_000 } });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    made.clock.advance(60_000);
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'failed' });
    expect(booked).toEqual([]);
  });

  it('leaves what nobody approves in time, and goes on', async () => {
    const needsApproval: Tool['needsApproval'] = {
      when: (args) => (args as { booking: string }).booking === 'flight',
      expiresInMs: 5_000,
    };
    const { booked, tools } = bookings({ cancel: { needsApproval } });
    const made = world({ planner: failing(book('hotel'), book('flight')), tools, onFail: 'undo' });
    made.runtime.work();
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    made.clock.advance(5_000);
    await until(async () => (await run.state()).open === null && booked.length === 1);
    expect(await undoneIn(run)).toMatchObject({
      undone: [{ step: 0 }],
      undo_failed: [{ step: 1, error: { code: 'approval_timeout' } }],
    });
    expect(booked).toEqual(['flight']);
  });
});
