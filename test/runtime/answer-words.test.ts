/** What a person says beside an answer is words: whatever its parts are called, nothing of the run changes by it. */
import { describe, expect, it } from 'vitest';
import type { Run } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

/** Parts that have a meaning in an answer, outside of a person's words. */
const WORDS = {
  args: { sum: 1_000_000 },
  limits: { steps: 9_999 },
  nodes: { pay: { skip: true } },
  token: 'pause_of_somebody_else',
  happened: true,
  value: 'done',
};

const made: unknown[] = [];
const pay = make('pay', (args) => void made.push(args), { effect: 'once', needsApproval: true });

async function tokenOf(run: Run): Promise<string> {
  return (await pausesOf(run))[0]?.token ?? '';
}

describe('the words of an answer', () => {
  it('are no part of an approval: it would drop them, and says so', async () => {
    made.length = 0;
    const base = world({ planner: script(call('pay', { sum: 5 })), tools: [pay] });
    const run = await start(base);
    const token = await tokenOf(run);
    const unfit = { code: 'payload_invalid', data: { token, kind: 'payload', fits: ['approve', 'reject', 'answer'] } };
    await expect(run.approve(token, { payload: WORDS })).rejects.toMatchObject(unfit);
    await expect(run.approve(token, { args: { sum: 7 }, payload: WORDS })).rejects.toMatchObject(unfit);
    await expect(run.reject(token, { payload: WORDS })).rejects.toMatchObject(unfit);
    expect(await base.journal.inbox(run.id)).toEqual([]);
    await run.approve(token, { args: { sum: 7 }, reason: 'fine' });
    await run.result();
    expect(made).toEqual([{ sum: 7 }]);
  });

  it('raise no limit, and change no node', async () => {
    const planner = script(call('echo'), call('echo'));
    const base = world({ planner, tools: [make('echo', () => 'said')], limits: { steps: 1, onCeiling: 'pause' } });
    const run = await start(base);
    await pausesOf(run);
    await run.resume({ payload: WORDS });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect((await run.state()).limits.steps).toBe(1);
    await run.resume({ payload: WORDS, limits: { steps: 5 } });
    expect((await run.state()).limits.steps).toBe(5);
  });

  it('reach the planner as they are when it has asked for them', async () => {
    const ask = { kind: 'request_pause', reason: 'await_input' } as const;
    const run = await start(world({ planner: script(ask) }));
    await pausesOf(run);
    await run.resume({ payload: WORDS });
    await run.result();
    const { steps } = await run.state();
    expect(steps[0]?.calls[0]?.outcome).toEqual({ kind: 'verdict', verdict: 'resume', payload: WORDS });
  });
});
