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
