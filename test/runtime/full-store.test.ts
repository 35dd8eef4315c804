/** A store that cannot be written for a while, such as one whose disk is full. */
import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, local, type Planner, tool } from '#pilotage';
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

describe('what a once call has come to', () => {
  /** Refuses to store it while `isAway` says so. */
  function paying(isAway: (tries: number) => boolean) {
    const clock = new ImpatientClock();
    const stored = memoryJournal({ clock });
    const faults: unknown[] = [];
    let [made, tries] = [0, 0];
    const held = Promise.withResolvers<void>();
    const journal = changed(stored, {
      append: (request) => {
        if (!request.entries.some(({ kind }) => kind === 'call_ended')) return stored.append(request);
        tries += 1;
        return isAway(tries) ? isFull() : stored.append(request);
      },
    });
    const execute = (): void => {
      made += 1;
    };
    const pay = tool({ name: 'pay', description: 'Pays.', effect: 'once', inputSchema, timeoutMs, execute });
    const onFault = (error: unknown): void => {
      faults.push(PilotageError.is(error) ? [error.code, error.data] : error);
      held.resolve();
    };
    const runtime = createRuntime({ planner: once, tools: [pay], journal, clock, onFault });
    const counts = () => ({ made, tries });
    return { stored, clock, runtime, pay, faults, held: held.promise, counts };
  }

  it('is held for as long as the store cannot take it, and somebody is told of it once', async () => {
    const { runtime, faults, counts } = paying((tries) => tries <= 50);
    const run = await runtime.start('Pay', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(counts()).toEqual({ made: 1, tries: 51 });
    expect(faults).toEqual([['journal_full', { run: run.id, step: 0, call: 0 }]]);
    await runtime.close();
  });

  it('keeps no process from closing: the next one finds the call in doubt', async () => {
    const { runtime, stored, clock, pay, held, counts } = paying(() => true);
    const { id } = await runtime.start('Pay', { identity: local('ana') });
    await held;
    await runtime.close();
    const next = createRuntime({ planner: once, tools: [pay], journal: stored, clock });
    await next.run(id).resume();
    const result = await next.run(id).result();
    expect(result.status === 'paused' ? result.pauses.map(({ reason }) => reason) : result).toEqual(['in_doubt']);
    expect(counts().made).toBe(1);
    await next.close();
  });
});
