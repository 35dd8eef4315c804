/** How long it is waited before a call is tried again. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '#testing';
import { type Backoff, createCatalogue } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const passes = () => Object.assign(new Error('busy'), { retryable: true });

/** The waits before each retry of a tool that always fails: counted out on the clock, so that each is exact to the step. */
async function waitsOf(retries: number, backoff: Backoff | undefined, random: () => number, stepMs = 1) {
  let attempts = 0;
  const busy = make(
    'busy',
    () => {
      attempts += 1;
      throw passes();
    },
    { effect: 'read', retries, ...(backoff === undefined ? {} : { backoff }) },
  );
  const made = world({ planner: script(call('busy')), tools: [busy], random });
  const run = await start(made);
  const waits: number[] = [];
  await until(() => attempts === 1);
  for (let seen = 1; seen <= retries; seen += 1) {
    let waitedMs = 0;
    await quiet();
    while (attempts === seen) {
      made.clock.advance(stepMs);
      waitedMs += stepMs;
      await quiet();
    }
    waits.push(waitedMs);
  }
  await run.result();
  return { waits, attempts };
}

describe('the wait before a retry', () => {
  it('RT-16 W66 is random from 0 up to 100, 200, 400, 800, 1,600, 3,200 ms', async () => {
    const { waits, attempts } = await waitsOf(6, undefined, () => 0.5, 10);
    expect(waits).toEqual([50, 100, 200, 400, 800, 1_600]);
    expect(attempts).toBe(7);
  });

  it('RT-16 is spread over the whole of the bound: the first draw of the source says where', async () => {
    const draws = [0.1, 0.75, 0.2];
    const { waits } = await waitsOf(3, { baseMs: 20 }, () => draws.shift() ?? 0);
    expect(waits).toEqual([2, 30, 16]);
  });

  it('RT-16 is capped', async () => {
    const { waits } = await waitsOf(5, { baseMs: 8, maxMs: 30 }, () => 0.5);
    expect(waits).toEqual([4, 8, 15, 15, 15]);
  });

  it('RT-16 is capped at 30 s unless the tool says otherwise', async () => {
    const { waits } = await waitsOf(2, { baseMs: 40_000 }, () => 0.5, 1_000);
    expect(waits).toEqual([15_000, 15_000]);
  });

  it('RT-16 has a constant bound with the multiplier 1', async () => {
    const { waits } = await waitsOf(4, { baseMs: 10, multiplier: 1 }, () => 0.5);
    expect(waits).toEqual([5, 5, 5, 5]);
  });

  it('takes another multiplier', async () => {
    const { waits } = await waitsOf(3, { baseMs: 4, multiplier: 3 }, () => 0.5);
    expect(waits).toEqual([2, 6, 18]);
  });

  it('RT-16 is the same for the same seed, and another for another', async () => {
    const backoff = { baseMs: 50, maxMs: 200 };
    const first = await waitsOf(4, backoff, seededRandom(7));
    const again = await waitsOf(4, backoff, seededRandom(7));
    const other = await waitsOf(4, backoff, seededRandom(8));
    expect(again.waits).toEqual(first.waits);
    expect(other.waits).not.toEqual(first.waits);
    const bounds = [50, 100, 200, 200];
    for (const [index, wait] of first.waits.entries()) expect(wait).toBeLessThanOrEqual(bounds[index] ?? 0);
  });

  it('is none with a base of 0, however high the power', async () => {
    const backoff = { baseMs: 0, multiplier: 1e300 };
    const ready = world({
      planner: script(call('busy')),
      tools: [make('busy', () => Promise.reject(passes()), { effect: 'read', retries: 5, backoff })],
      random: () => 0.5,
    });
    const run = await start(ready);
    await until(() => ready.clock.pending > 0);
    let isOver = false;
    const result = run.result().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      ready.clock.advance(0);
      await quiet();
    }
    expect(await result).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ attempts: 6 });
  });
});

describe('what is no backoff', () => {
  const tried = (backoff: unknown) => () => createCatalogue([make('t', () => 1, { backoff: backoff as Backoff })]);

  it.each([
    { baseMs: -1 },
    { baseMs: Number.NaN },
    { baseMs: '5' },
    { multiplier: 0.9 },
    { multiplier: Number.POSITIVE_INFINITY },
    { maxMs: -1 },
    { jitter: 0.1 },
    null,
    7,
  ])('is refused when the tool is registered: %o', (backoff) => {
    expect(tried(backoff)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
  });

  it('takes each part alone, and the lowest values', () => {
    for (const backoff of [{}, { baseMs: 0 }, { multiplier: 1 }, { maxMs: 0 }, { baseMs: 0.5 }]) {
      expect(tried(backoff)).not.toThrow();
    }
  });
});
