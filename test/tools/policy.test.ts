/** How a call is carried out: time limits, retries, effects. Time stands still, and moves when nothing else happens. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { CallEnded } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, local, type RunEvent, type Tool, type ToolContext, ToolFailure } from '#pilotage';
import type { Decision } from '#pilotage/planner';
import type { InputSchema } from '#pilotage/tools';
import { VirtualClock } from '#testing';
import { call } from '../kit/decisions.ts';
import { record, scripted } from '../kit/recorded.ts';

afterEach(() => vi.restoreAllMocks());

interface Played {
  readonly ended: readonly CallEnded[];
  readonly events: readonly RunEvent[];
  /** What each attempt got. */
  readonly attempts: readonly ToolContext[];
  readonly elapsedMs: number;
}

type Run = (attempt: number, context: ToolContext) => unknown;

/** Calls one tool once, and moves time on by 50 ms whenever the run waits. */
async function play(run: Run, more: Partial<Tool> = {}, script: readonly Decision[] = [call('t')]): Promise<Played> {
  const clock = new VirtualClock();
  const start = clock.now();
  const attempts: ToolContext[] = [];
  const tool: Tool = {
    name: 't',
    description: 'd',
    inputSchema: { type: 'object' },
    effect: 'read',
    execute: (_, context) => {
      attempts.push(context);
      return run(attempts.length, context);
    },
    ...more,
  };
  let over = false;
  const recorded = record(script, { tools: [tool], clock, journal: memoryJournal({ clock }) }).finally(() => {
    over = true;
  });
  while (!over) {
    await turn();
    clock.advance(50);
  }
  const { entries, events } = await recorded;
  const ended = entries.flatMap((entry) => (entry.kind === 'call_ended' ? [entry] : []));
  return { ended, events, attempts, elapsedMs: clock.now() - start };
}

const passing = (): never => {
  throw new ToolFailure('not now', { retryable: true, code: 'rate_limited' });
};
const outcomeOf = ({ ended }: Played): unknown => ended[0]?.outcome;

describe('retries', () => {
  it('TL-03 after 4 calls they are used up, and the last cause and the number are told', async () => {
    const played = await play(passing);
    expect(played.attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    expect(played.ended).toMatchObject([{ attempts: 4 }]);
    expect(outcomeOf(played)).toEqual({
      kind: 'error',
      error: {
        code: 'tool_retries_exhausted',
        message: 't failed 4 times; the last time: not now',
        data: { attempts: 4, cause: { code: 'rate_limited', message: 'not now' } },
      },
    });
  });

  it('TL-03 the waits are drawn from 0 to 100, 200, 400 ms', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    expect((await play(passing)).attempts).toHaveLength(4);
    vi.spyOn(Math, 'random').mockReturnValue(1 - Number.EPSILON);
    const clock = new VirtualClock();
    const waits: number[] = [];
    const watched = {
      now: () => clock.now(),
      after: (delayMs: number, wake: () => void) => {
        if (delayMs < 1_000) waits.push(Math.round(delayMs));
        return clock.after(delayMs, wake);
      },
    };
    let over = false;
    const tool: Tool = { name: 't', description: 'd', inputSchema: {}, effect: 'read', retries: 10, execute: passing };
    const recorded = record([call('t')], { tools: [tool], clock: watched, journal: memoryJournal({ clock }) }).finally(
      () => {
        over = true;
      },
    );
    while (!over) {
      await turn();
      clock.advance(50);
    }
    await recorded;
    // A process that has just begun waits up to 250 ms to hear who reads from elsewhere.
    const own = waits.filter((wait) => wait >= 100 && wait !== 250);
    expect(own.slice(0, 4)).toEqual([100, 200, 400, 800]);
  });

  it('TL-06 one retry that works ends it: 2 attempts and a value', async () => {
    const played = await play((attempt) => (attempt === 1 ? passing() : 'ok'));
    expect(played.ended).toMatchObject([{ attempts: 2, outcome: { kind: 'value', value: 'ok' } }]);
  });

  it('TL-06 2 retries are 3 attempts, each with a signal of its own', async () => {
    const played = await play(passing, { retries: 2 });
    expect(played.attempts).toHaveLength(3);
    for (const { signal } of played.attempts) expect(signal.aborted).toBe(false);
  });

  it.each<[string, () => unknown]>([
    ['an error that says nothing of itself', () => new Error('no')],
    [
      'TL-11 texts that sound like passing faults',
      () => new Error('503 Service Unavailable: EOF, ECONNRESET, timeout, rate limit'),
    ],
    ['TL-11 a failure that says that it is for good', () => new ToolFailure('503')],
    ['TL-11 its word against its status', () => Object.assign(new Error('x'), { retryable: false, status: 503 })],
    ['a client error', () => Object.assign(new Error('x'), { status: 404 })],
    ['text', () => 'retry me'],
    ['null', () => null],
  ])('TL-06 stop at once for %s', async (_, thrown) => {
    const played = await play(() => {
      throw thrown();
    });
    expect(played.attempts).toHaveLength(1);
    expect(played.ended).toMatchObject([{ attempts: 1, outcome: { kind: 'error' } }]);
  });

  it.each<[string, object]>([
    ['a ToolFailure that says so', { retryable: true }],
    ['a status of 500', { status: 500 }],
    ['a status of 503', { statusCode: 503 }],
    ['a status of 429', { status: 429 }],
  ])('TL-03 TL-11 are made for %s', async (_, mark) => {
    expect((await play(() => Promise.reject(Object.assign(new Error('x'), mark)))).attempts).toHaveLength(4);
  });

  it("TL-06 a failure's own code and data are kept", async () => {
    const played = await play(() => {
      throw new ToolFailure('gone', { code: 'not_in_stock', data: { sku: 'A1' } });
    });
    expect(outcomeOf(played)).toEqual({
      kind: 'error',
      error: { code: 'not_in_stock', message: 'gone', data: { sku: 'A1' } },
    });
  });

  it('TL-09 retries: 0 is no retry', async () => {
    expect((await play(passing, { retries: 0 })).attempts).toHaveLength(1);
  });

  it('TL-09 a tool that states no shape is checked for none: any object goes in, and any value comes out', async () => {
    const given = { deep: [{ odd: null }], 'a key': 'x' };
    const played = await play(() => ['anything', given], { inputSchema: {} }, [call('t', given)]);
    expect(outcomeOf(played)).toEqual({ kind: 'value', value: ['anything', given] });
  });

  it('TL-04 arguments are checked once, before the first attempt', async () => {
    let checks = 0;
    const input = z.object({ n: z.number() }).refine(() => {
      checks += 1;
      return true;
    });
    const played = await play(passing, { inputSchema: input }, [call('t', { n: 1 })]);
    expect([played.attempts.length, checks]).toEqual([4, 1]);
  });

  it('TL-04 arguments that do not fit: no call, no retry', async () => {
    const input = { type: 'object', properties: { n: { type: 'number' } } };
    const played = await play(() => 1, { inputSchema: input }, [call('t', { n: 'x' })]);
    expect(played.attempts).toHaveLength(0);
    expect(played.ended).toMatchObject([
      { attempts: 0, outcome: { kind: 'error', error: { code: 'tool_invalid_args' } } },
    ]);
    expect(played.ended[0]).not.toHaveProperty('startedAt');
  });

  it.each<[string, InputSchema, unknown]>([
    ['JSON Schema', { type: 'object', required: ['n'] }, {}],
    ['zod', z.object({ n: z.number() }), { n: 'x' }],
  ])('TL-05 a value that does not fit its output schema (%s) has its own code and is not asked for again', async (_, output, value) => {
    const played = await play(() => value, { outputSchema: output });
    expect(played.attempts).toHaveLength(1);
    expect(outcomeOf(played)).toMatchObject({ kind: 'error', error: { code: 'tool_invalid_output' } });
  });

  it('a value that fits is kept as the tool gave it', async () => {
    const output = z.object({ n: z.number().transform((n) => n * 2) });
    expect(outcomeOf(await play(() => ({ n: 1, extra: true }), { outputSchema: output }))).toEqual({
      kind: 'value',
      value: { n: 1, extra: true },
    });
  });

  it('no value is null', async () => {
    expect(outcomeOf(await play(() => undefined))).toEqual({ kind: 'value', value: null });
  });
});

describe('effects', () => {
  it('TL-08 a once tool is not called again, whatever it says and whatever is configured', async () => {
    expect((await play(passing, { effect: 'once', retries: 5 })).attempts).toHaveLength(1);
  });

  it.each([
    'pure',
    'read',
    'keyed',
  ] as const)('TL-08 a %s tool is, with the same key on every attempt', async (effect) => {
    const keys = (await play(passing, { effect })).attempts.map(({ idempotencyKey }) => idempotencyKey);
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(1);
  });

  it('TL-08 each call has its own key, and a call has the same one after a restart', async () => {
    const journal = memoryJournal();
    const keys: string[] = [];
    let hang = true;
    const tool: Tool = {
      name: 't',
      description: 'd',
      inputSchema: {},
      effect: 'keyed',
      execute: (_, { idempotencyKey, signal }) => {
        keys.push(idempotencyKey);
        if (!hang) return 1;
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    };
    const first = createRuntime({ planner: scripted([call('t'), call('t')]), tools: [tool], journal });
    const { id } = await first.start('q', { identity: local('ana') });
    while (keys.length === 0) await turn();
    await first.close();
    hang = false;
    const second = createRuntime({ planner: scripted([call('t'), call('t')]), tools: [tool], journal });
    await second.run(id).resume();
    expect(await second.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    await second.close();
    expect(keys).toHaveLength(3);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });
});

describe('time limits', () => {
  it('TL-10 a tool that ignores its signal ends as a timeout; what it says later is dropped, and told', async () => {
    let land = (_: string): void => {};
    const stubborn: Run = () =>
      new Promise<string>((resolve) => {
        land = resolve;
      });
    const after: Decision = { kind: 'call_tool', tool: 'lands', args: {} };
    const clock = new VirtualClock();
    const options = { description: 'd', inputSchema: {}, effect: 'read', retries: 0 } as const;
    const tools: Tool[] = [
      { ...options, name: 't', timeoutMs: 200, execute: () => stubborn(1, undefined as never) },
      {
        ...options,
        name: 'lands',
        execute: async () => {
          land('too late');
          await turn();
        },
      },
    ];
    let over = false;
    const recorded = record([call('t'), after], { tools, clock, journal: memoryJournal({ clock }) }).finally(() => {
      over = true;
    });
    while (!over) {
      await turn();
      clock.advance(50);
    }
    const { entries, events } = await recorded;
    const [ended] = entries.flatMap((entry) => (entry.kind === 'call_ended' ? [entry] : []));
    expect(ended).toMatchObject({
      attempts: 1,
      outcome: { kind: 'error', error: { code: 'tool_timeout', message: 't did not end within 200 ms.' } },
    });
    expect(JSON.stringify(entries)).not.toContain('too late');
    expect(events.filter(({ type }) => type === 'tool.late')).toMatchObject([{ step: 0, call: 0, tool: 't' }]);
  });

  it('TL-03 is 30 s for each attempt, and a timeout is tried again', async () => {
    const times: number[] = [];
    const played = await play((_, { signal }) => {
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          times.push(1);
          reject(signal.reason);
        });
      });
    });
    expect(played.attempts).toHaveLength(4);
    expect(times).toHaveLength(4);
    expect(played.elapsedMs).toBeGreaterThanOrEqual(4 * 30_000);
    expect(outcomeOf(played)).toMatchObject({
      error: { code: 'tool_retries_exhausted', data: { cause: { code: 'tool_timeout' } } },
    });
  });

  it.each([
    ['once', 'unknown', 'outcome_unknown'],
    ['keyed', 'error', 'tool_timeout'],
  ] as const)('a timed-out call of a %s tool that tells says that it may have happened', async (effect, kind, code) => {
    const how = { effect, timeoutMs: 100, retries: 0, inDoubt: 'tell' } as const;
    const played = await play(() => new Promise(() => {}), how);
    expect(outcomeOf(played)).toMatchObject({
      kind,
      error: { code, message: expect.stringMatching(/may (or may not )?have happened/) },
    });
  });

  it('ER-06 an abort is no failure of the tool: it is not tried again, and the signal has the reason', async () => {
    const reasons: unknown[] = [];
    const clock = new VirtualClock();
    const options = { description: 'd', inputSchema: {}, effect: 'read' } as const;
    const tools: Tool[] = [
      {
        ...options,
        name: 'slow',
        execute: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason);
              reject(new ToolFailure('aborted', { retryable: true }));
            });
          }),
      },
      { ...options, name: 'fast', execute: () => 1 },
    ];
    const race: Decision = {
      kind: 'call_parallel',
      branches: [
        { tool: 'slow', args: {} },
        { tool: 'fast', args: {} },
      ],
      join: { kind: 'first_success' },
    };
    const { entries } = await record([race], { tools, clock, journal: memoryJournal({ clock }) });
    const ended = entries.flatMap((entry) => (entry.kind === 'call_ended' ? [entry] : []));
    expect(ended.find((entry) => entry.call === 0)).toMatchObject({
      attempts: 1,
      outcome: { kind: 'cancelled', error: { code: 'cancelled' } },
    });
    expect(reasons).toMatchObject([
      {
        code: 'cancelled',
        message: 'The join has what it needed, the plan has ended, another branch has failed, or the run is to end.',
      },
    ]);
  });
});
