/** Times in seconds where milliseconds are wanted: a run with such a deadline was over before it began, and a sleep ended at once. */
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type Limits, local, type Planner, tool } from '#pilotage';
import { VirtualClock } from '#testing';

const IN_SECONDS = 1_800_000_000;
const REFUSED = {
  code: 'invalid_config',
  message: expect.stringContaining(
    'is 1800000000, which as milliseconds since the epoch is 1970-01-21. Give 1800000000000, if these are seconds.',
  ),
};
const ends: Planner = { name: 'ends', next: () => ({ kind: 'finish', reason: 'goal' }) };
const open = (clock: VirtualClock, planner = ends, limits: Limits = {}) =>
  createRuntime({ planner, tools: [nap], journal: memoryJournal({ clock }), clock, limits });
const nap = tool({
  ...{ name: 'nap', description: 'Sleeps.', effect: 'read', inputSchema: { type: 'object' } },
  execute: (_, context) => context.sleep({ until: IN_SECONDS }),
});

describe('a time in seconds', () => {
  const limits = { deadlineAt: IN_SECONDS };
  const identity = local('ana', { run: 'r' });

  it('is refused as a deadline, of a runtime, a run, a fork, and of what resumes one', async () => {
    const clock = new VirtualClock();
    expect(() => open(clock, ends, limits)).toThrow(expect.objectContaining(REFUSED));
    const runtime = open(clock);
    await expect(runtime.start('x', { identity, limits })).rejects.toMatchObject(REFUSED);
    const run = await runtime.start('x', { identity });
    await run.result();
    await expect(run.fork({ step: 0, limits })).rejects.toMatchObject(REFUSED);
    await runtime.close();
  });

  it('is refused as the time at which a run begins, and to which a call sleeps', async () => {
    const planner: Planner = {
      name: 'naps',
      next: ({ trajectory: { steps } }) => {
        const outcome = steps[0]?.calls[0]?.outcome;
        if (outcome === undefined) return { kind: 'call_tool', tool: 'nap', args: {} };
        return { kind: 'finish', reason: 'goal', payload: outcome.kind === 'error' ? outcome.error.message : null };
      },
    };
    const runtime = open(new VirtualClock(), planner);
    await expect(runtime.start('x', { identity, at: IN_SECONDS })).rejects.toMatchObject(REFUSED);
    const run = await runtime.start('x', { identity });
    expect(await run.payload()).toEqual(REFUSED.message);
    await runtime.close();
  });

  it.each([
    [999_999_999, false],
    [1_000_000_000, true],
    [9_999_999_999, true],
    [10_000_000_000, false],
  ])('may be %d: %s', async (at, isOne) => {
    const runtime = open(new VirtualClock());
    const started = runtime.start('x', { identity, at });
    await (isOne ? expect(started).rejects.toMatchObject({ code: 'invalid_config' }) : started);
    await runtime.close();
  });

  it('is what it says for a clock that begins at 0', async () => {
    const runtime = open(new VirtualClock(0));
    const run = await runtime.start('x', { identity, limits });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    await runtime.close();
  });
});
