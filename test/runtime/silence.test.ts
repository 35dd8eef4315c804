/** Time limits of a tool beside the total: how long it may be silent. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Tool } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { observations, pausesOf } from '../kit/run-record.ts';
import { make, type Runs } from '../kit/tools.ts';
import { advanceUntil, gate, quiet } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** What the call comes to, and how long that took by its clock. */
async function made(run: Runs, more: Partial<Tool>): Promise<{ outcome: unknown; data: unknown; tookMs: number }> {
  const tool = make('works', run, { retries: 0, timeoutMs: 60_000, ...more });
  const there = world({ planner: script(call('works')), tools: [tool] });
  onTestFinished(() => there.runtime.close());
  const begun = there.clock.now();
  const started = await start(there);
  let isOver = false;
  void started.result().then(() => (isOver = true));
  await advanceUntil(there.clock, () => isOver);
  const state = await started.state();
  const ended = state.steps[0]?.calls[0]?.outcome;
  const data = ended?.kind === 'error' ? ended.error.data : undefined;
  return { outcome: observations(state)[0], data, tookMs: there.clock.now() - begun };
}

const never = (): Promise<never> => new Promise(() => {});

describe('the silence of a tool', () => {
  it.each([
    ['total', { timeoutMs: 5_000 }, 'works did not end within 5000 ms.', undefined, 5_000],
    [
      'first byte',
      { firstByteMs: 2_000, idleMs: 9_000 },
      'works said nothing in its first 2000 ms.',
      'firstByteMs',
      2_000,
    ],
    ['idle, from the beginning on', { idleMs: 3_000 }, 'works said nothing for 3000 ms.', 'idleMs', 3_000],
  ])('that says nothing ends at the limit: %s', async (_, limits, message, limit, ms) => {
    const { outcome, data, tookMs } = await made(never, limits);
    expect(outcome).toMatchObject({ error: { code: 'tool_timeout', message } });
    expect(data).toEqual(limit === undefined ? undefined : { limit, ms });
    expect(tookMs).toBe(ms);
  });

  it.each([
    ['emit', ({ emit }) => emit(1)],
    ['a row of a stream', ({ stream }) => stream('log').write(1)],
  ] as [string, (context: Parameters<Runs>[1]) => unknown][])('is broken by %s', async (_, speak) => {
    const { outcome, tookMs } = await made(
      async (_args, context) => {
        await speak(context);
        return never();
      },
      { firstByteMs: 1_000, idleMs: 4_000 },
    );
    expect(outcome).toMatchObject({ error: { message: 'works said nothing for 4000 ms.' } });
    expect(tookMs).toBe(4_000);
  });

  it('is broken again and again, also by what a generator yields', async () => {
    const ticks = [gate(), gate(), gate()];
    const tool = make(
      'works',
      async function* () {
        for (const tick of ticks) {
          await tick.opened;
          yield 'piece';
        }
      },
      { idleMs: 1_000, timeoutMs: 60_000, retries: 0 },
    );
    const there = world({ planner: script(call('works')), tools: [tool] });
    onTestFinished(() => there.runtime.close());
    const run = await start(there);
    for (const tick of ticks) {
      await quiet();
      there.clock.advance(900);
      tick.open();
      await quiet();
    }
    await run.result();
    expect(observations(await run.state())).toEqual(['piece']);
  });

  it('of a `once` tool leaves the call in doubt', async () => {
    const tool = make('pays', never, { effect: 'once', idleMs: 1_000, timeoutMs: 60_000 });
    const there = world({ planner: script(call('pays')), tools: [tool] });
    onTestFinished(() => there.runtime.close());
    const run = await start(there);
    let isOver = false;
    void run.result().then(() => (isOver = true));
    await advanceUntil(there.clock, () => isOver);
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ reason: 'in_doubt' });
    expect(JSON.stringify(pause?.payload)).toContain('pays said nothing for 1000 ms.');
  });

  it('is tried again as any time limit is, and a limit that is none is refused', async () => {
    let tries = 0;
    const { outcome } = await made(() => (++tries < 3 ? never() : 'value'), { idleMs: 500, retries: 3 });
    expect([tries, outcome]).toEqual([3, 'value']);
    for (const more of [{ idleMs: 0 }, { firstByteMs: 1.5 }, { idleMs: '5' as never }]) {
      expect(() => world({ planner: script(), tools: [make('x', never, more)] })).toThrow(
        expect.objectContaining({ code: 'invalid_config' }),
      );
    }
  });
});
