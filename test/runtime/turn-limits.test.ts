/** Limits of steps and repetitions count from the user's last message, so that a conversation may go on for as long as it is wanted. */
import { describe, expect, it } from 'vitest';
import { type Limits, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { agent } from '#pilotage';
import type { Run } from '#runtime';
import { asks, call, finish, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { ANY, echo } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

/** Each turn looks something up, and then waits for the user. */
const chatting = (calls = 1) =>
  watched(({ trajectory: { count } }) => (count % (calls + 1) < calls ? call('echo', { count }) : asks));

async function say(run: Run, message: string): Promise<unknown> {
  await run.resume({ payload: { message } });
  return run.result();
}

function chat(
  limits: Limits | undefined,
  planner = chatting(),
): World & { readonly planner: ReturnType<typeof chatting> } {
  return { ...world({ planner, tools: [echo], ...(limits === undefined ? {} : { limits }) }), planner };
}

describe('a limit of steps', () => {
  it('is for one message of the user: a conversation outlives the default of 64 steps', async () => {
    const made = chat(undefined);
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    for (let turn = 1; turn <= 100; turn += 1) expect(await say(run, `${turn}`)).toMatchObject({ status: 'paused' });
    const left = made.planner.views.map(({ budget }) => budget.stepsLeft);
    expect(new Set(left)).toEqual(new Set([64, 63]));
    expect((await run.state()).steps).toHaveLength(201);
  });

  it('ends a turn that goes beyond it, also a later one, and says how many steps the turn had', async () => {
    const made = chat(
      { steps: 3 },
      watched(({ trajectory: { count } }) => (count === 1 ? asks : call('echo', { count }))),
    );
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(await say(run, 'on')).toMatchObject({
      status: 'finished',
      reason: 'max_steps',
      metadata: { budget: 'steps', max_steps: 3, steps_observed: 3 },
    });
    expect((await run.state()).steps).toHaveLength(5);
  });

  it('counts from a message that comes while the run is at work, and from a new goal', async () => {
    const made: World & { run?: Run } = chat(
      { steps: 4 },
      watched(async ({ trajectory: { count } }) => {
        if (count === 2) await made.run?.steer('USER_MESSAGE', { message: 'And this?' });
        if (count === 5) await made.run?.steer('REDIRECT', { goal: 'Something else.' });
        return count === 8 ? finish('done') : call('echo', { count });
      }),
    );
    made.run = await start(made);
    expect(await made.run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });

  it('does not count from added context, nor from an answer that did not come in time', async () => {
    const made: World & { run?: Run } = chat(
      { steps: 3 },
      watched(async ({ trajectory: { count } }) => {
        if (count === 1) await made.run?.steer('INJECT_CONTEXT', { note: 'noon' });
        return call('echo', { count });
      }),
    );
    made.run = await start(made);
    expect(await made.run.result()).toMatchObject({ status: 'finished', reason: 'max_steps' });
    const slow = chat(
      { steps: 3 },
      watched(({ trajectory: { count } }) =>
        count === 1 ? { kind: 'request_pause', reason: 'await_input', expiresInMs: 1_000 } : call('echo', { count }),
      ),
    );
    const run = await start(slow);
    await run.result();
    slow.runtime.work();
    slow.clock.advance(1_001);
    await until(async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'max_steps' });
    expect((await run.state()).steps).toHaveLength(3);
  });

  it('is for the whole life of the run with stepsPer: run', async () => {
    const made = chat({ steps: 4, stepsPer: 'run' });
    const run = await start(made);
    await run.result();
    expect(await say(run, 'one')).toMatchObject({ status: 'paused' });
    expect(await say(run, 'two')).toMatchObject({ status: 'finished', reason: 'max_steps' });
    await expect(start(made, { limits: { stepsPer: 'life' } as never })).rejects.toMatchObject({
      code: 'invalid_config',
      message: 'limits.stepsPer is life; give turn or run.',
    });
  });

  it('a limit on calls stays one for the whole life', async () => {
    const made = chat({ calls: 1 });
    const run = await start(made);
    await run.result();
    await say(run, 'one');
    const ended = await entriesOf(made.journal, run, 'call_ended');
    expect(ended.map(({ outcome }) => outcome.kind)).toEqual(['value', 'error']);
  });

  it('is the same after a restart, in a replay and in a fork', async () => {
    const path = temporaryFile();
    const planner = chatting(2);
    let id = '';
    for (let life = 0; life < 4; life += 1) {
      const journal = sqliteJournal({ path });
      const made = world({ planner, tools: [echo], limits: { steps: 3 }, journal });
      if (life === 0) {
        const run = await start(made, { identity: local('ana', { session: 's' }) });
        id = run.id;
        expect(await run.result()).toMatchObject({ status: 'paused' });
      } else expect(await say(made.runtime.run(id), `${life}`)).toMatchObject({ status: 'paused' });
      if (life === 3) {
        expect(await made.runtime.run(id).replay()).toEqual({ run: id, from: 0, compared: 12 });
        const fork = await made.runtime.run(id).fork({ step: 11 });
        expect(await fork.result()).toMatchObject({ status: 'paused' });
      }
      await made.runtime.close();
      await journal.close();
    }
    expect(planner.views.map(({ budget }) => budget.stepsLeft).slice(0, 12)).toEqual([
      3, 2, 1, 3, 2, 1, 3, 2, 1, 3, 2, 1,
    ]);
  });

  it('of a task that talks with its user leaves the limit of the run above it alone', async () => {
    const helper = {
      ...{ name: 'helper', description: 'Asks.', inputSchema: ANY },
      agent: agent({ name: 'helping', planner: chatting(), tools: [echo], limits: { steps: 2 } }),
    };
    const boss = script(call('helper', {}), finish('done'));
    const made = world({ planner: boss, tools: [helper], limits: { steps: 6 } });
    const run = await start(made);
    await run.result();
    for (let turn = 1; turn <= 5; turn += 1) expect(await say(run, `${turn}`)).toMatchObject({ status: 'paused' });
    expect(await pausesOf(run)).toHaveLength(1);
  });
});

describe('a repetition', () => {
  it('does not go on over a message of the user', async () => {
    const made: World & { run?: Run; planner: ReturnType<typeof chatting> } = chat(
      undefined,
      watched(async ({ trajectory: { count } }) => {
        if (count > 0 && count % 2 === 0 && count < 10) await made.run?.steer('USER_MESSAGE', { message: 'Again.' });
        return count === 10 ? finish() : call('echo', { same: true });
      }),
    );
    made.run = await start(made);
    await made.run.result();
    expect(made.planner.views.filter(({ noProgress }) => noProgress !== undefined)).toEqual([]);
  });

  it('within one turn is noticed as before', async () => {
    const made = chat(undefined, watched(script(...Array.from({ length: 6 }, () => call('echo', { same: true })))));
    await (await start(made)).result();
    expect(made.planner.views.some(({ noProgress }) => noProgress !== undefined)).toBe(true);
  });
});
