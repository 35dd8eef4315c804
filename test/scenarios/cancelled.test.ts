/** A run that is cancelled stays cancelled: nothing that comes later changes what it came to. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { react } from '#planners/react';
import { scriptedModel, VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { call, finish, named, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, outcomes } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

interface Deaf {
  readonly tool: Tool;
  readonly entered: Promise<void>;
  /** Lets it come back, long after it was given up. */
  comeBack(): void;
  /** Calls that have come back. */
  back(): number;
}

/** A tool that does not listen to its signal. */
function deaf(effect: 'pure' | 'once'): Deaf {
  const [entered, opened] = [gate(), gate()];
  let back = 0;
  const tool = make(
    'deaf',
    async () => {
      entered.open();
      await opened.opened;
      back += 1;
      return 'too late';
    },
    { effect, timeoutMs: 3_600_000 },
  );
  return { tool, entered: entered.opened, comeBack: () => opened.open(), back: () => back };
}

async function text(journal: Journal, run: string): Promise<string> {
  return JSON.stringify([await journal.read(run), await journal.get(run)]);
}

describe('cancel while a tool ignores the signal and returns late', () => {
  it.each([
    ['pure', 'cancelled', 'tool_abandoned'],
    ['once', 'unknown', 'outcome_unknown'],
  ] as const)('the run is cancelled, and stays so; the late result (%s) changes nothing', async (effect, kind, code) => {
    const late = deaf(effect);
    const planner = watched(script(call('deaf'), call('echo')));
    const made = world({ planner, tools: [late.tool, echo] });
    const run = await start(made);
    const watching = collect(run);
    await late.entered;
    const cancelled = run.cancel({ reason: 'enough' });
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    await cancelled;
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'cancelled',
      metadata: { reason: 'enough' },
    });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ kind, error: { code } });
    await until(() => made.clock.pending === 0);
    const before = await text(made.journal, run.id);

    late.comeBack();
    await until(() => late.back() === 1);
    await quiet();
    expect(await text(made.journal, run.id)).toBe(before);
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'cancelled', wakeAt: null });
    expect(planner.views).toHaveLength(1);
    expect(only(await watching, 'planner.finish')).toHaveLength(1);
    expect(made.clock.pending).toBe(0);
    expect(made.faults).toEqual([]);
  });

  it('a late result of a run that goes on is told as late, and dropped', async () => {
    const late = deaf('pure');
    const held = gate();
    const wait = make('wait', () => held.opened);
    const join = { kind: 'first_success' } as const;
    const made = world({
      planner: script(parallel(named('deaf', 'echo'), { join }), call('wait')),
      tools: [late.tool, echo, wait],
    });
    const run = await start(made);
    const watching = collect(run);
    await late.entered;
    await advanceUntil(made.clock, async () => (await run.state()).steps.length === 1);
    late.comeBack();
    await until(() => late.back() === 1);
    held.open();
    await run.result();
    expect(only(await watching, 'tool.late')).toMatchObject([{ step: 0, call: 0, tool: 'deaf' }]);
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
  });

  it('a second worker that took the run over, and the first one that still works on it, change nothing either', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const late = deaf('once');
    // It cannot renew: as if its timers stood still.
    const stalled = changed(journal, { renew: () => new Promise(() => {}) });
    const planner = watched(script(call('deaf'), call('echo')));
    const first = world({ planner, tools: [late.tool, echo], journal: stalled, clock });
    const run = await start(first, { identity: local('ana', { run: 'r' }) });
    await late.entered;
    clock.advance(6_000);
    const second = world({ planner, tools: [late.tool, echo], journal, clock });
    const cancelled = second.runtime.run('r').cancel();
    await advanceUntil(clock, async () => (await second.runtime.run('r').state()).ending !== null);
    await cancelled;
    const before = await text(journal, 'r');
    late.comeBack();
    await until(() => first.faults.length > 0);
    await quiet();
    expect(await text(journal, 'r')).toBe(before);
    expect(await second.runtime.run('r').result()).toMatchObject({ reason: 'cancelled' });
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect([late.back(), planner.views.length]).toEqual([1, 1]);
    expect(first.faults).toMatchObject([{ code: 'lease_lost' }]);
  });

  it('RL-26, W08 a planner that ignores its signal, and then decides, does not bring the run back', async () => {
    const opened = gate();
    const entered = gate();
    let effects = 0;
    const planner = watched(async () => {
      entered.open();
      await opened.opened;
      return call('act');
    });
    const made = world({ planner, tools: [make('act', () => (effects += 1), { effect: 'once' })] });
    const run = await start(made);
    await entered.opened;
    const cancelled = run.cancel();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    await cancelled;
    opened.open();
    await quiet();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect([effects, planner.views.length]).toEqual([0, 1]);
    expect(await entriesOf(made.journal, run, 'finished')).toHaveLength(1);
  });
});

describe('a cancel of another process that comes while an answer is being written down', () => {
  it.each([
    ['softly', { hard: false }],
    ['at once', {}],
  ])('%s: nothing begins, and the planner is not asked again', async (_, payload) => {
    const journal = memoryJournal();
    let isDue = true;
    const crossed = changed(journal, {
      append: async (request) => {
        if (isDue && request.entries.some(({ kind }) => kind === 'resumed')) {
          isDue = false;
          await journal.signal(request.run, { id: 'cancel', type: 'CANCEL', payload });
        }
        await journal.append(request);
      },
    });
    let effects = 0;
    const act = make('act', () => (effects += 1), { effect: 'once' });
    const planner = watched(script(pause, call('act')));
    const run = await start(world({ planner, tools: [act], journal: crossed }));
    await run.result();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect([effects, planner.views.length]).toEqual([0, 1]);
    expect(await entriesOf(journal, run, 'call_began')).toEqual([]);
  });
});

describe('abort in step 2 after step 1 completed: one ending with partial text and usage', () => {
  const usage = { inputTokens: 100, outputTokens: 10 };
  const first = { text: 'Let me look.', calls: [{ tool: 'echo', args: { n: 1 } }], usage };

  it('of a run that nobody streams: the ending once, with the first step and its usage', async () => {
    const model = scriptedModel([first, { text: 'It is', stall: true }]);
    const made = world({ planner: react({ model }), tools: [echo] });
    const run = await start(made);
    await until(() => model.calls.length === 2);
    await run.cancel();
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'cancelled',
      usage: { steps: 1, ...usage },
    });
    const events = await collect(run);
    expect(events.filter(({ type }) => type === 'planner.finish' || type === 'planner.error')).toHaveLength(1);
    expect((await run.state()).steps).toMatchObject([{ text: 'Let me look.', usage }]);
  });

  it('of a streamed reply: what was said until then is in the run, not only on the screen of who watched', async () => {
    const model = scriptedModel([first, { text: 'It is the third of May.', stall: true, usage }]);
    const made = world({ planner: react({ model }), tools: [echo] });
    const run = await start(made);
    let said = '';
    let finishes = 0;
    const watching = (async () => {
      for await (const event of run.events()) {
        if (event.type === 'token' && event.step === 1) said += event.text;
        if (event.type === 'planner.finish' || event.type === 'planner.error') finishes += 1;
      }
    })();
    await until(() => said === 'It is the third of May.');
    await run.cancel();
    await watching;
    const result = await run.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'cancelled', usage: { estimated: true } });
    // The reply that was stopped counts, by an estimate.
    expect(result.usage.inputTokens).toBeGreaterThan(usage.inputTokens);
    expect(finishes).toBe(1);
    // Whoever reads the run tomorrow sees it, too.
    const events = await collect(run);
    expect(only(events, 'planner.decision').map(({ text: shown }) => shown)).toEqual([
      'Let me look.',
      'It is the third of May.',
    ]);
  });

  it('in a tool of step 2: its outcome says so, and step 1 is whole', async () => {
    const entered = gate();
    const act = make('act', (_, { signal }) => {
      entered.open();
      return aborted(signal);
    });
    const made = world({ planner: script(call('echo', { n: 1 }), call('act'), finish()), tools: [echo, act] });
    const run = await start(made);
    const watching = collect(run);
    await entered.opened;
    await run.cancel();
    await run.result();
    const state = await run.state();
    expect([outcomes(state, 0), outcomes(state, 1)]).toEqual([['value'], ['cancelled']]);
    expect((await watching).filter(({ type }) => type === 'planner.finish')).toHaveLength(1);
    expect(await run.result()).toMatchObject({ usage: { steps: 2, calls: 2 } });
  });
});

describe('100 runs on one object, half cancelled', () => {
  it('no run sees another’s identity, message, budget or signal, and nothing is left behind', async () => {
    const seen = new Map<string, unknown[]>();
    let inside = 0;
    const opened = gate();
    const hold = make('hold', async (args, { identity, signal, idempotencyKey }) => {
      inside += 1;
      const { run } = identity;
      seen.set(run, [args['run'], identity.tenant, idempotencyKey]);
      await Promise.race([opened.opened, aborted(signal)]);
      return `${identity.tenant}/${identity.user}`;
    });
    const made = world({
      planner: ({ identity, trajectory, controls, budget }) => {
        if (trajectory.count === 0) return call('hold', { run: identity.run });
        const [answer] = trajectory.step(0)?.calls ?? [];
        return finish({
          answer: answer?.outcome.kind === 'value' ? answer.outcome.value : null,
          told: controls.map(({ payload }) => payload?.['message'] ?? null),
          stepsLeft: budget.stepsLeft,
          callsLeft: budget.callsLeft ?? null,
        });
      },
      tools: [hold],
    });
    const runs = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        start(made, {
          identity: { tenant: `t${index % 7}`, user: `u${index}`, session: 's', run: `r${index}` },
          limits: { steps: 10 + index, calls: 20 + index },
        }),
      ),
    );
    await until(() => inside === 100);
    const told = runs.map((run, index) =>
      index % 2 === 0 ? run.cancel() : run.steer('USER_MESSAGE', { message: `for ${index}` }),
    );
    await Promise.all(told.filter((_, index) => index % 2 === 0));
    opened.open();
    await Promise.all(told);
    const results = await Promise.all(runs.map((run) => run.result()));
    for (const [index, result] of results.entries()) {
      const tenant = `t${index % 7}`;
      expect(seen.get(`r${index}`)).toEqual([`r${index}`, tenant, `${tenant}/u${index}/s/r${index}/0.0`]);
      if (index % 2 === 0) {
        expect(result).toMatchObject({ status: 'finished', reason: 'cancelled', metadata: { run_id: `r${index}` } });
        continue;
      }
      expect(result).toMatchObject({
        reason: 'goal',
        // The message begins a turn, which has all its steps; the calls are the whole run's.
        payload: {
          answer: `${tenant}/u${index}`,
          told: [`for ${index}`],
          stepsLeft: 10 + index,
          callsLeft: 19 + index,
        },
      });
    }
    await until(() => made.clock.pending === 0);
    expect(made.faults).toEqual([]);
    await made.runtime.close();
  });
});
