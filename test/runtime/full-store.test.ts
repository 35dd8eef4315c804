/** A store that cannot be written for a while, such as one whose disk is full. */
import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, local, type Planner, type ToolOptions, tool } from '#pilotage';
import { VirtualClock } from '#testing';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { changed } from '../kit/journals.ts';

const once: Planner = {
  name: 'once',
  next: ({ trajectory: { count } }) =>
    count === 0 ? { kind: 'call_tool', tool: 'pay', args: {} } : { kind: 'finish', reason: 'goal' },
};
const inputSchema = { type: 'object' } as const;
const timeoutMs = 600_000;
const isFull = (): Promise<never> => Promise.reject(new PilotageError('journal_full', 'The disk is full.'));

describe.each([
  { effect: 'once', made: 1, reason: 'in_doubt' },
  { effect: 'keyed', made: 2, reason: undefined },
] as const)('a $effect call whose receipt cannot be stored', ({ effect, made: expected, reason }) => {
  it.each(['saveArtifact', 'once'])('by %s, may have happened', async (how) => {
    const clock = new ImpatientClock();
    const stored = memoryJournal({ clock });
    let room = false;
    let made = 0;
    const artifacts: Journal['artifacts'] = {
      ...stored.artifacts,
      put: (...given) => (room ? stored.artifacts.put(...given) : isFull()),
      get: (...given) => stored.artifacts.get(...given),
      list: (...given) => stored.artifacts.list(...given),
      erase: (...given) => stored.artifacts.erase(...given),
    };
    const pay = tool({
      ...{ name: 'pay', description: 'Pays.', effect, inputSchema, timeoutMs },
      execute: async (_, context) => {
        made += 1;
        try {
          if (how === 'saveArtifact') await context.saveArtifact('paid', { mime: 'text/plain' });
          else await context.once('receipt', () => 'paid'.repeat(20_000));
        } finally {
          room = true;
        }
      },
    });
    const runtime = createRuntime({ planner: once, tools: [pay], journal: changed(stored, { artifacts }), clock });
    const run = await runtime.start('Pay', { identity: local('ana') });
    const result = await run.result();
    expect(result.status === 'paused' ? result.pauses[0]?.reason : undefined).toBe(reason);
    expect(made).toBe(expected);
    await runtime.close();
  });
});

it('a process that could not renew a lease goes on with its run when it can again: it takes it over from nobody', async () => {
  const clock = new VirtualClock();
  const stored = memoryJournal({ clock });
  let room = true;
  let made = 0;
  const faults: unknown[] = [];
  const paid = Promise.withResolvers<void>();
  const journal = changed(stored, { renew: (...given) => (room ? stored.renew(...given) : isFull()) });
  const pay = tool({
    ...{ name: 'pay', description: 'Pays.', effect: 'read', inputSchema, timeoutMs },
    execute: () => {
      made += 1;
      return paid.promise;
    },
  });
  const onFault = (error: unknown): void => void faults.push(PilotageError.is(error) ? error.code : error);
  const runtime = createRuntime({ planner: once, tools: [pay], journal, clock, leaseMs: 60_000, onFault });
  const run = await runtime.start('Pay', { identity: local('ana') });
  const passing = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 250) {
      clock.advance(250);
      for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await passing(250);
  room = false;
  await passing(65_000);
  room = true;
  runtime.work();
  await passing(1_000);
  paid.resolve();
  await passing(1_000);
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect(made).toBe(1);
  expect(new Set(faults)).toEqual(new Set(['journal_full']));
  await runtime.close();
});

describe('a call whose end cannot be stored', () => {
  const refusing = (stored: Journal, kind: string, isAway: () => boolean): Journal =>
    changed(stored, {
      append: (request) =>
        request.entries.some((entry) => entry.kind === kind) && isAway() ? isFull() : stored.append(request),
    });

  /** Refuses to store it as often as that. */
  function paying(times: number, options: Partial<ToolOptions> = {}) {
    const clock = new ImpatientClock();
    const stored = memoryJournal({ clock });
    const faults: unknown[] = [];
    const held = Promise.withResolvers<void>();
    const count = { made: 0, tries: 0 };
    const journal = refusing(stored, 'call_ended', () => {
      count.tries += 1;
      return count.tries <= times;
    });
    const execute = (): void => {
      count.made += 1;
    };
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      effect: 'once',
      inputSchema,
      timeoutMs,
      execute,
      ...options,
    });
    const onFault = (error: unknown): void => {
      faults.push(PilotageError.is(error) ? [error.code, error.data] : error);
      held.resolve();
    };
    const runtime = createRuntime({ planner: once, tools: [pay], journal, clock, onFault });
    return { stored, clock, runtime, pay, faults, held: held.promise, count };
  }

  it('of a once tool is held for as long as the store cannot take it, and somebody is told of it once', async () => {
    const { runtime, faults, count } = paying(50);
    const run = await runtime.start('Pay', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(count).toEqual({ made: 1, tries: 51 });
    expect(faults).toEqual([['journal_full', { run: run.id, step: 0, call: 0 }]]);
    await runtime.close();
  });

  it('of a once tool is held while a process that closes has time for what is under way', async () => {
    const { runtime, stored, held, count } = paying(50);
    const { id } = await runtime.start('Pay', { identity: local('ana') });
    await held;
    await runtime.close({ graceMs: 600_000 });
    expect((await stored.read(id)).map(({ kind }) => kind)).toContain('call_ended');
    expect(count).toEqual({ made: 1, tries: 51 });
  });

  it('of a once tool keeps no process from closing: the next one finds the call in doubt, and holds nothing for it', async () => {
    const { runtime, stored, clock, pay, held, count } = paying(Number.POSITIVE_INFINITY);
    const { id } = await runtime.start('Pay', { identity: local('ana') });
    await held;
    await runtime.close();
    let isAway = true;
    const journal = refusing(stored, 'paused', () => isAway);
    const next = createRuntime({ planner: once, tools: [pay], journal, clock, onFault: () => {} });
    const run = next.run(id);
    await run.resume();
    await expect(run.result()).rejects.toMatchObject({ code: 'journal_full' });
    isAway = false;
    await run.resume();
    const result = await run.result();
    expect(result.status === 'paused' ? result.pauses.map(({ reason }) => reason) : result).toEqual(['in_doubt']);
    expect(count.made).toBe(1);
    await next.close();
  });

  it('of another tool is not held, also where money was set aside for it: it can be made again', async () => {
    const { runtime, count } = paying(50, { effect: 'keyed', costUsd: 0.01 });
    const run = await runtime.start('Pay', { identity: local('ana') });
    await expect(run.result()).rejects.toMatchObject({ code: 'journal_full' });
    expect(count).toEqual({ made: 1, tries: 6 });
    await runtime.close();
  });

  it('of which a tool says the same word as our store is an error of the tool', async () => {
    const execute = (): never => {
      throw Object.assign(new Error('The disk of the bank is full.'), { code: 'journal_full' });
    };
    const { runtime, stored } = paying(0, { execute });
    const run = await runtime.start('Pay', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const ended = (await stored.read(run.id)).find(({ kind }) => kind === 'call_ended');
    expect(ended).toMatchObject({ outcome: { kind: 'error' } });
    await runtime.close();
  });
});
