/** Calls that find out that somebody has to log in first. */
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { LoginRequired, type Tool } from '#tools';
import { call, named, parallel, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const URL = 'https://login.example/authorise?state=1';

interface Door {
  readonly tool: Tool;
  /** The idempotency key, attempt and arguments of each time it was called. */
  readonly calls: { readonly key: string; readonly attempt: number; readonly args: unknown }[];
  /** From now on nobody has to log in. */
  open(): void;
}

function door(more: Partial<Tool> = {}, login = new LoginRequired(URL, { message: 'Calendar access' })): Door {
  const calls: Door['calls'] = [];
  let locked = true;
  const tool = make(
    'calendar',
    (args, { idempotencyKey: key, attempt }) => {
      calls.push({ key, attempt, args });
      if (locked) throw login;
      return 'three meetings';
    },
    { effect: 'keyed', ...more },
  );
  return {
    tool,
    calls,
    open: () => {
      locked = false;
    },
  };
}

describe('a call that needs a login', () => {
  it.each([
    'pure',
    'keyed',
    'once',
  ] as const)('SP-46, W07 pauses the run with the URL; then the same call is made again, with no planner in between (%s)', async (effect) => {
    const { tool, calls, open } = door({ effect });
    const planner = watched(script(call('calendar', { day: 'Monday' })));
    const { runtime, journal, clock } = world({ planner, tools: [tool] });
    const run = await start({ runtime });
    expect(await pausesOf(run)).toMatchObject([
      {
        reason: 'external_event',
        step: 0,
        call: 0,
        payload: { tool: 'calendar', url: URL, message: 'Calendar access' },
      },
    ]);
    await until(async () => (await journal.get(run.id))?.lease === undefined);
    expect(await journal.get(run.id)).toMatchObject({ status: 'paused', wakeAt: null });
    expect(clock.pending).toBe(0);
    open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 1 } });
    expect(observations(await run.state())).toEqual(['three meetings']);
    expect(planner.views).toHaveLength(2);
    // The same call in every way: its key, its arguments, and its first attempt.
    expect(calls).toHaveLength(2);
    expect(calls[1]).toEqual(calls[0]);
    expect(calls[0]).toMatchObject({ attempt: 1, args: { day: 'Monday' } });
  });

  it('SP-46 is made again in another process that has only the store and the code', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const before = door({ effect: 'once' });
    const first = world({ planner: script(call('calendar')), tools: [before.tool], journal, clock });
    const { id } = await start(first);
    await first.runtime.run(id).result();
    await first.runtime.close();
    const after = door({ effect: 'once' });
    after.open();
    const second = world({ planner: script(call('calendar')), tools: [after.tool], journal, clock });
    await second.runtime.run(id).approve();
    expect(await second.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(after.calls.map(({ key }) => key)).toEqual(before.calls.map(({ key }) => key));
    expect(observations(await second.runtime.run(id).state())).toEqual(['three meetings']);
  });

  it('SP-46 pauses again, under a new token, when the login did not help', async () => {
    const { tool, calls, open } = door();
    const run = await start(world({ planner: script(call('calendar')), tools: [tool] }));
    const [first] = await pausesOf(run);
    await run.resume();
    const [second] = await pausesOf(run);
    expect(second?.token).not.toBe(first?.token);
    await expect(run.resume({ token: first?.token ?? '' })).rejects.toMatchObject({ code: 'pause_not_found' });
    open();
    await run.resume({ token: second?.token ?? '' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(calls).toHaveLength(3);
  });

  it('SP-46 is not retried as a failure, and costs no steps and no attempts', async () => {
    const { tool, calls, open } = door({ retries: 3 });
    const made = world({ planner: script(call('calendar')), tools: [tool] });
    const run = await start(made);
    await run.result();
    expect(calls).toHaveLength(1);
    open();
    await run.resume();
    await run.result();
    expect(await entriesOf(made.journal, run, 'call_ended')).toMatchObject([{ attempts: 1 }]);
    expect((await run.state()).totals).toMatchObject({ steps: 1, calls: 1 });
  });

  it('REJECT tells the planner that nobody logged in; the run goes on', async () => {
    const { tool, calls } = door();
    const run = await start(world({ planner: script(call('calendar')), tools: [tool] }));
    await run.result();
    await run.reject(undefined, { reason: 'not my calendar' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      error: { code: 'tool_rejected', message: expect.stringContaining('not my calendar') },
    });
    expect(calls).toHaveLength(1);
  });

  it('W13 expires when the tool says so', async () => {
    const { tool } = door({}, new LoginRequired(URL, { expiresInMs: 60_000 }));
    const made = world({ planner: script(call('calendar')), tools: [tool] });
    const run = await start(made);
    expect(await pausesOf(run)).toMatchObject([{ expiresAt: made.clock.now() + 60_000 }]);
    made.runtime.work();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'approval_timeout' } });
    await made.runtime.close();
  });

  it('PX-20, W11 beside others waits alone, and is made again alone', async () => {
    const { tool, calls, open } = door();
    let others = 0;
    const other = make('other', () => {
      others += 1;
      return others;
    });
    const run = await start(
      world({ planner: script(parallel(named('other', 'calendar', 'other'))), tools: [other, tool] }),
    );
    expect(await pausesOf(run)).toMatchObject([{ call: 1, reason: 'external_event' }]);
    open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())).toEqual(['value', 'value', 'value']);
    expect([others, calls.length]).toEqual([2, 2]);
  });

  it('TL-12 comes after the approval: who has approved is not asked again after the login', async () => {
    let rules = 0;
    const { tool, calls, open } = door({
      effect: 'once',
      needsApproval: () => {
        rules += 1;
        return true;
      },
    });
    const run = await start(world({ planner: script(call('calendar', { day: 'Monday' })), tools: [tool] }));
    expect(await pausesOf(run)).toMatchObject([{ reason: 'approval_required' }]);
    await run.approve(undefined, { args: { day: 'Tuesday' } });
    expect(await pausesOf(run)).toMatchObject([{ reason: 'external_event' }]);
    open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(rules).toBe(1);
    expect(calls.map(({ args }) => args)).toEqual([{ day: 'Tuesday' }, { day: 'Tuesday' }]);
  });

  it('TL-12 a rule that asked nobody is not asked again after the login', async () => {
    let rules = 0;
    const { tool, calls, open } = door({
      needsApproval: () => {
        rules += 1;
        return false;
      },
    });
    const run = await start(world({ planner: script(call('calendar')), tools: [tool] }));
    await run.result();
    open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect([rules, calls.length]).toEqual([1, 2]);
  });

  it('takes no other arguments: it is the same call', async () => {
    const { tool, calls, open } = door();
    const run = await start(world({ planner: script(call('calendar', { day: 'Monday' })), tools: [tool] }));
    const [pause] = await pausesOf(run);
    await expect(run.approve(pause?.token, { args: { day: 'Friday' } })).rejects.toMatchObject({
      code: 'payload_invalid',
    });
    expect(await pausesOf(run)).toMatchObject([{ token: pause?.token }]);
    open();
    await run.approve(pause?.token);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(calls.map(({ args }) => args)).toEqual([{ day: 'Monday' }, { day: 'Monday' }]);
  });

  it('is recognised by what it says, not by its class: also from another copy of the package', async () => {
    const { tool, open } = door({}, Object.assign(new Error('Log in'), { code: 'auth_required', url: URL }) as never);
    const run = await start(world({ planner: script(call('calendar')), tools: [tool] }));
    expect(await pausesOf(run)).toMatchObject([{ reason: 'external_event', payload: { url: URL } }]);
    open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('without a URL is an error that the planner sees: nobody could log in', async () => {
    const { tool } = door({}, Object.assign(new Error('Log in'), { code: 'auth_required' }) as never);
    const run = await start(world({ planner: script(call('calendar')), tools: [tool] }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'auth_required' } });
  });

  it.each([
    [
      'a message of 5,000 characters',
      new LoginRequired(URL, { message: 'x'.repeat(5_000) }),
      { tool: 'calendar', url: URL },
    ],
    ['a time limit that is no number', new LoginRequired(URL, { expiresInMs: Number.NaN }), { url: URL }],
  ])('W14 keeps %s out of the pause', async (_, login, payload) => {
    const { tool, open } = door({}, login);
    const made = world({ planner: script(call('calendar')), tools: [tool] });
    const run = await start(made);
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ reason: 'external_event', payload });
    expect(pause?.expiresAt).toBeUndefined();
    expect(JSON.stringify(pause?.payload).length).toBeLessThan(4_096);
    open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('SP-29 readers are told of the pause; it is no approval', async () => {
    const { tool, open } = door();
    const run = await start(world({ planner: script(call('calendar')), tools: [tool, echo] }));
    expect((await collect(run)).slice(-2)).toMatchObject([
      { type: 'pause.requested', reason: 'external_event', payload: { url: URL } },
      { type: 'run.paused', pauses: [{ reason: 'external_event' }] },
    ]);
    open();
    await run.resume();
    await run.result();
    const events = await collect(run);
    expect(only(events, 'pause.resumed')).toMatchObject([{ reason: 'external_event', verdict: 'resume' }]);
    expect([only(events, 'tool.approval_requested'), only(events, 'tool.approved')]).toEqual([[], []]);
  });
});
