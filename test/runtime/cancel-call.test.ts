/** One call is cancelled, and its run goes on. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Branch, local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Run } from '#runtime';
import { crashEverywhere, VirtualClock } from '#testing';
import { agent, agentTool, OutcomeUnknown, type Tool, ToolFailure } from '#tools';
import { call, finish, parallel, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { entriesOf, kindsOf, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { plays, spawns } from '../kit/tasks.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const branches = (...given: readonly (string | (Partial<Branch> & { tool: string }))[]): Branch[] =>
  given.map((one) => ({ args: {}, ...(typeof one === 'string' ? { tool: one } : one) }));

interface Held {
  readonly tool: Tool;
  readonly entered: Promise<void>;
  readonly calls: () => number;
}

/** A tool whose call goes on until it is aborted. */
function endless(name: string, more: Partial<Tool> = {}): Held {
  const entered = gate();
  let calls = 0;
  const tool = make(
    name,
    async (_, { signal }) => {
      calls += 1;
      entered.open();
      await aborted(signal);
    },
    more,
  );
  return { tool, entered: entered.opened, calls: () => calls };
}

function made(planner: PlannerFunction, tools: readonly Tool[], more: Parameters<typeof world>[0] = {}): World {
  const there = world({ planner, tools, ...more });
  onTestFinished(() => there.runtime.close());
  return there;
}

const errorOf = async (run: Run, step = 0, index = 0): Promise<{ code: string; message: string }> => {
  const outcome = (await run.state()).steps[step]?.calls[index]?.outcome;
  if (outcome === undefined || !('error' in outcome)) throw new Error(`There is no error: ${JSON.stringify(outcome)}`);
  return outcome.error;
};

describe('a call under way', () => {
  it('alone in its step is aborted at once, and the planner is told why', async () => {
    const held = endless('held');
    const planner = watched(script(call('held'), call('echo', { n: 1 })));
    const { journal, ...there } = made(planner, [held.tool, echo]);
    const run = await start(there);
    await held.entered;
    await run.cancelCall({ step: 0, call: 0 }, { reason: 'it takes too long' });
    await expect(run.result()).resolves.toMatchObject({ status: 'finished', payload: 'done' });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
    expect(await errorOf(run)).toEqual({
      code: 'cancelled',
      message: 'Somebody cancelled the call: it takes too long. The call was stopped before it ended.',
    });
    expect(observations(await run.state())[1]).toEqual({ n: 1 });
    // Why it ended stands before its end.
    expect((await kindsOf(journal, run)).slice(0, 4)).toEqual(['started', 'moved', 'control', 'call_ended']);
    expect(planner.views[1]?.trajectory.step(0)?.calls[0]?.outcome.kind).toBe('cancelled');
  });

  it('beside others leaves them alone, and what needs it is skipped', async () => {
    const held = endless('held');
    const go = gate();
    const waits = make('waits', () => go.opened.then(() => 'value'));
    const steps = parallel(
      branches({ tool: 'held', id: 'a' }, { tool: 'waits', id: 'b' }, { tool: 'echo', after: ['a'] }),
    );
    const run = await start(made(script(steps), [held.tool, waits, echo]));
    await held.entered;
    await run.cancelCall('a');
    await until(async () => (await run.state()).open?.calls[0] !== null);
    expect((await run.state()).open?.calls.map((record) => record?.outcome.kind)).toEqual([
      'cancelled',
      undefined,
      'skipped',
    ]);
    go.open();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value', 'skipped']);
  });

  it('is named by the id that its model gave it', async () => {
    const held = endless('held');
    const run = await start(made(script(call('held', {}, 'call_7')), [held.tool]));
    await held.entered;
    await run.cancelCall('call_7');
    await run.result();
    expect(outcomes(await run.state())).toEqual(['cancelled']);
  });

  it('is not tried again', async () => {
    const clock = new VirtualClock();
    let tries = 0;
    const failing = make('failing', () => {
      tries += 1;
      throw new ToolFailure('later', { retryAfterMs: 500 });
    });
    const there = made(script(call('failing')), [failing], { clock });
    const run = await start(there);
    await until(() => tries === 1);
    await run.cancelCall({ step: 0, call: 0 });
    await run.result();
    expect([tries, outcomes(await run.state())]).toEqual([1, ['cancelled']]);
  });

  it('is cancelled by another process too', async () => {
    const path = temporaryFile();
    const [first, second] = [0, 1].map(() => sqliteJournal({ path, watchIntervalMs: 5 }));
    if (first === undefined || second === undefined) throw new Error('Two journals.');
    const held = endless('held');
    const there = made(script(call('held')), [held.tool], { journal: first });
    const other = made(script(), [], { journal: second });
    onTestFinished(async () => {
      await there.runtime.close();
      await other.runtime.close();
      await first.close();
      await second.close();
    });
    const run = await start(there);
    await held.entered;
    const cancelling = other.runtime.run(run.id).cancelCall({ step: 0, call: 0 }, { until: 'stored' });
    await cancelling;
    let isOver = false;
    void run.result().then(() => (isOver = true));
    await advanceUntil(there.clock, () => isOver);
    expect(outcomes(await run.state())).toEqual(['cancelled']);
  });
});

describe('a `once` call under way', () => {
  const once = (more: Partial<Tool> = {}): Held => endless('pays', { effect: 'once', ...more });

  it('is in doubt, and holds only its own step', async () => {
    const held = once();
    const run = await start(made(script(call('pays')), [held.tool]));
    await held.entered;
    await run.cancelCall({ step: 0, call: 0 });
    const [pause] = await pausesOf(run);
    expect(pause?.reason).toBe('in_doubt');
    await expect(run.cancelCall({ step: 0, call: 0 })).rejects.toMatchObject({ code: 'call_in_doubt' });
    // It did not happen, and nobody wants it any more.
    await run.settle(pause?.token, { happened: false });
    await run.result();
    expect([held.calls(), outcomes(await run.state())]).toEqual([1, ['cancelled']]);
  });

  it('is looked up', async () => {
    for (const [status, kind] of [
      ['done', 'value'],
      ['not_done', 'cancelled'],
    ] as const) {
      const held = once({ reconcile: () => (status === 'done' ? { status, value: 'paid' } : { status }) });
      const run = await start(made(script(call('pays')), [held.tool]));
      await held.entered;
      await run.cancelCall({ step: 0, call: 0 });
      await run.result();
      expect([held.calls(), outcomes(await run.state())]).toEqual([1, [kind]]);
    }
  });
});

describe('a call that waits', () => {
  it.each([
    ['for an approval', make('waits', () => 'made', { needsApproval: true })],
    [
      'for a login',
      make('waits', () =>
        Promise.reject(Object.assign(new Error('log in'), { code: 'auth_required', url: 'https://a.b' })),
      ),
    ],
  ])('%s is not made', async (_, waits) => {
    const run = await start(made(script(parallel(branches('waits', 'echo'))), [waits, echo]));
    expect(await pausesOf(run)).toHaveLength(1);
    await run.cancelCall({ step: 0, call: 0 }, { reason: 'not now' });
    await run.result();
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
    expect((await errorOf(run)).message).toBe('Somebody cancelled the call: not now. It had not begun.');
  });

  it.each([
    ['a time', make('waits', (_, { sleep }) => sleep({ forMs: 60_000 }), { effect: 'once' })],
    ['an answer', make('waits', (_, { ask }) => ask({ question: 'Which?' }))],
    ['an event', make('waits', (_, { event }) => event({ key: 'order-17' }))],
  ])('in the middle of its work for %s waits no more', async (_, waits) => {
    const { journal, ...there } = made(script(parallel(branches('waits', 'echo'))), [waits, echo]);
    const run = await start(there);
    await until(async () => ['waiting', 'paused'].includes((await journal.get(run.id))?.status ?? ''));
    await run.cancelCall({ step: 0, call: 0 });
    await run.result();
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
    expect(await journal.waits.list({})).toMatchObject([]);
  });

  it('for its next attempt makes none', async () => {
    let tries = 0;
    const failing = make('failing', () => {
      tries += 1;
      throw new ToolFailure('later', { retryAfterMs: 60_000 });
    });
    const { journal, ...there } = made(script(call('failing')), [failing]);
    const run = await start(there);
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await run.cancelCall({ step: 0, call: 0 });
    await run.result();
    expect([tries, outcomes(await run.state())]).toEqual([1, ['cancelled']]);
    const [ended] = await entriesOf(journal, run, 'call_ended');
    expect(ended?.attempts).toBe(1);
  });

  it('for its turn never begins', async () => {
    const held = endless('held', { concurrency: 1 });
    const run = await start(made(script(parallel(branches('held', 'held'))), [held.tool]));
    await held.entered;
    await run.cancelCall({ step: 0, call: 1 });
    await run.cancelCall({ step: 0, call: 0 });
    await run.result();
    expect([held.calls(), outcomes(await run.state())]).toEqual([1, ['cancelled', 'cancelled']]);
  });

  it('while the run is paused is cancelled as well', async () => {
    const waits = make('waits', () => 'made', { needsApproval: true });
    const run = await start(made(script(parallel(branches('waits', 'echo'))), [waits, echo]));
    await run.result();
    await run.pause({ until: 'applied' });
    await run.cancelCall({ step: 0, call: 0 });
    await until(async () => (await run.state()).open === null);
    await run.resume();
    await expect(run.result()).resolves.toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
  });

  it('for a task that carries it out is cancelled with the task', async () => {
    const held = endless('held');
    const does = { name: 'child', planner: { name: 'child', next: script(call('held')) }, tools: [held.tool] };
    const child = agentTool(agent(does), { description: 'does it' });
    const planner = script(parallel(branches({ tool: 'child', args: { input: 'q' } }, 'echo')));
    const there = made(planner, [child, echo] as never);
    const run = await start(there);
    await held.entered;
    await run.cancelCall({ step: 0, call: 0 }, { reason: 'enough' });
    await run.result();
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
    expect((await errorOf(run)).message).toMatch(/^Somebody cancelled the call: enough\. /);
    const [task] = await there.runtime.list({ parent: run.id });
    expect(task?.status).toBe('cancelled');
  });

  it('for a task that it has spawned is cancelled with the task, and one that only awaits it is not', async () => {
    const held = endless('held');
    const planner = plays({ q: script(spawns('child', { task: 'foreground' })), child: script(call('held')) });
    const there = made(planner, [held.tool]);
    const run = await start(there);
    await held.entered;
    await run.cancelCall({ step: 0, call: 0 });
    await run.result();
    expect(outcomes(await run.state())).toEqual(['cancelled']);
    const statusOf = async (): Promise<string | undefined> => (await there.runtime.list({ parent: run.id }))[0]?.status;
    await until(async () => (await statusOf()) === 'cancelled');
  });
});

describe('who cancels what cannot be cancelled', () => {
  it('is refused', async () => {
    const waits = make('waits', () => 'made', { needsApproval: true });
    const run = await start(
      made(script(call('echo', {}, 'first'), parallel(branches('waits', 'echo'))), [waits, echo]),
    );
    await run.result();
    const code = (which: Parameters<Run['cancelCall']>[0]) =>
      run.cancelCall(which).catch((error: { code: string }) => error.code);
    expect(await code({ step: 0, call: 0 })).toBe('call_ended');
    expect(await code('first')).toBe('call_ended');
    expect(await code({ step: 1, call: 1 })).toBe('call_ended');
    expect(await code({ step: 1, call: 2 })).toBe('call_not_found');
    expect(await code({ step: 5, call: 0 })).toBe('call_not_found');
    expect(await code('nobody')).toBe('call_not_found');
    expect(await code({ step: -1, call: 0 })).toBe('invalid_config');
    await run.cancelCall({ step: 1, call: 0 });
    await run.result();
    expect(await code({ step: 1, call: 0 })).toBe('run_ended');
  });

  it('when the call has ended meanwhile, by the run itself', async () => {
    const waits = make('waits', () => 'made', { needsApproval: true });
    const { runtime, journal } = made(script(parallel(branches('waits', 'waits'))), [waits]);
    const run = await start({ runtime });
    const [first] = await pausesOf(run);
    await run.reject(first?.token);
    await until(async () => (await run.state()).open?.calls[0] !== null);
    await run.steer('CANCEL_CALL', { step: 0, call: 0 }, { until: 'applied' }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'call_ended' });
    });
    const controls = await entriesOf(journal, run, 'control');
    expect(controls.at(-1)).toMatchObject({ applied: false, error: { code: 'call_ended' } });
  });

  it('by whoever has too few rights', async () => {
    const waits = make('waits', () => 'made', { needsApproval: true });
    const { runtime } = made(script(call('waits')), [waits]);
    const run = await start({ runtime });
    await run.result();
    const { tenant, user, session } = local('ana');
    const guest = runtime.run(run.id, { as: { tenant, user, session, scope: 'session_user' } });
    await expect(guest.cancelCall({ step: 0, call: 0 })).rejects.toMatchObject({ code: 'scope_mismatch' });
  });
});

describe('wherever the process dies', () => {
  it('a call that somebody cancels while it waits is cancelled, once', async () => {
    const report = await crashEverywhere({
      name: 'cancel of a call that waits',
      query: 'q',
      planner: (run) => {
        if (run.trajectory.count > 0) return finish('done');
        return parallel([
          { tool: 'asks', args: {} },
          { tool: 'works', args: {} },
        ]);
      },
      tools: (around) => [
        make('asks', async (_, context) => void (await around.effect(context)), {
          needsApproval: true,
          effect: 'once',
        }),
        make('works', async (_, context) => void (await around.effect(context)), {
          effect: 'once',
          reconcile: async (_, context) =>
            around.count(context) > 0 ? { status: 'done', value: null } : { status: 'not_done' },
        }),
      ],
      answer: () => undefined,
      controls: (entry) =>
        entry.kind === 'paused' ? { id: 'cancel', type: 'CANCEL_CALL', payload: { step: 0, call: 0 } } : undefined,
      check: (state) => {
        const kinds = state.steps[0]?.calls.map(({ outcome }) => outcome.kind);
        return kinds?.[0] === 'cancelled' && kinds[1] === 'value' ? [] : [`The outcomes are ${String(kinds)}.`];
      },
    });
    expect(report.violations).toEqual([]);
  });

  it('a `once` call that somebody cancels under way happens at most once, and has one outcome', async () => {
    const report = await crashEverywhere({
      name: 'cancel of a once call',
      query: 'q',
      planner: (run) => (run.trajectory.count > 0 ? finish('done') : call('pays')),
      tools: (around) => [
        make('pays', async (_, context) => void (await around.effect(context)), {
          effect: 'once',
          reconcile: async (_, context) =>
            around.count(context) > 0 ? { status: 'done', value: null } : { status: 'not_done' },
        }),
      ],
      controls: (entry) =>
        entry.kind === 'call_began'
          ? { id: 'cancel', type: 'CANCEL_CALL', payload: { step: 0, call: 0, reason: 'enough' } }
          : undefined,
      check: (state) => {
        const kind = state.steps[0]?.calls[0]?.outcome.kind;
        return kind === 'cancelled' || kind === 'value' ? [] : [`The outcome is ${kind}.`];
      },
    });
    expect(report.violations).toEqual([]);
  });
});

it('a call in doubt that was lost is told to be settled', async () => {
  const lost = make('lost', () => Promise.reject(new OutcomeUnknown()), { effect: 'once' });
  const run = await start(made(script(call('lost')), [lost], { journal: memoryJournal() }));
  await run.result();
  await expect(run.cancelCall({ step: 0, call: 0 })).rejects.toMatchObject({ code: 'call_in_doubt' });
});
