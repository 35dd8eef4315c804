/** Live handles: opened once a run by the first call that needs them, shared, closed with the run, loud when they are gone. */
import { describe, expect, it } from 'vitest';

import type { Json } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { scriptedModel, VirtualClock } from '#testing';
import { type Handle, type HandleReason, type HandleSet, LoginRequired, type Tool } from '#tools';
import { call, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, observations, outcomes } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

interface Page {
  readonly run: string;
  readonly number: number;
  isOpen: boolean;
  /** What calls have done in it. */
  readonly visited: string[];
}

type Pages = Handle<Page> & {
  readonly opened: Page[];
  readonly closed: (readonly [page: Page, reason: HandleReason])[];
};

/** A page that notes who has it open. */
function pages(more: Partial<Handle<Page>> = {}): Pages {
  const opened: Page[] = [];
  const closed: (readonly [Page, HandleReason])[] = [];
  const page: Handle<Page> = {
    name: 'page',
    open: ({ identity, opening }) => {
      const page = { run: identity.run, number: opening, isOpen: true, visited: [] };
      opened.push(page);
      return page;
    },
    close: (page, { reason }) => {
      page.isOpen = false;
      closed.push([page, reason]);
    },
    ...more,
  };
  // Not among the options of the handle.
  return Object.defineProperties(page, { opened: { value: opened }, closed: { value: closed } }) as Pages;
}

const reasons = ({ closed }: Pages): HandleReason[] => closed.map(([, reason]) => reason);

/** Goes to a place in the page, and says which page it was and where it had been. */
function visiting(page: Handle<Page>, name = 'visit', more: Partial<Tool> = {}): Tool {
  const run = ({ to }: Record<string, Json>, { handles }: { handles: Readonly<Record<string, unknown>> }): Json => {
    const live = handles['page'] as Page;
    live.visited.push(String(to));
    return { page: live.number, visited: [...live.visited] };
  };
  return { ...make(name, run as never), handles: { page } satisfies HandleSet, ...more };
}

const visit = (to: string, tool = 'visit') => call(tool, { to });
const visits = (to: readonly string[], more = {}) =>
  ({
    kind: 'call_parallel',
    branches: to.map((place) => ({ id: place, tool: 'visit', args: { to: place } })),
    ...more,
  }) as const;

describe('a live handle', () => {
  it('TJ-10 is opened by the first call that needs it, shared by all calls and tools of the run, and closed before the result', async () => {
    const page = pages();
    const made = world({
      planner: script(call('echo'), visit('a'), visits(['b', 'c']), visit('d', 'look')),
      tools: [make('echo', () => page.opened.length), visiting(page), visiting(page, 'look')],
    });
    const run = await start(made);
    const events = await collect(run);
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
    expect(reasons(page)).toEqual(['finished']);
    const state = await run.state();
    expect(observations(state)[0]).toBe(0);
    expect(observations(state).at(-1)).toEqual({ page: 1, visited: ['a', 'b', 'c', 'd'] });
    expect(page.opened.map((each) => each.run)).toEqual([run.id]);
    expect(only(events, 'handle.opened')).toMatchObject([{ step: 1, call: 0, handle: 'page', opening: 1 }]);
    expect(only(events, 'handle.lost')).toEqual([]);
    // What is recorded of it is one note, with the first call that used it.
    expect((await entriesOf(made.journal, run, 'call_ended')).map(({ handles }) => handles)).toEqual([
      undefined,
      [{ name: 'page', opening: 1 }],
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('is never opened in a run that does not need it', async () => {
    const page = pages();
    const made = world({ planner: script(), tools: [visiting(page)] });
    await (await start(made)).result();
    expect(page.opened).toEqual([]);
  });

  it('is opened once for calls side by side, which wait for it', async () => {
    const opening = gate();
    const page = pages();
    const slow = {
      ...page,
      open: (context: Parameters<Pages['open']>[0]) => opening.opened.then(() => page.open(context)),
    };
    const made = world({ planner: script(visits(['a', 'b', 'c'])), tools: [visiting(slow)] });
    const run = await start(made);
    await quiet();
    opening.open();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'value', 'value']);
    expect(page.opened).toHaveLength(1);
    expect(reasons(page)).toEqual(['finished']);
  });

  it('is each run’s own, also a task’s', async () => {
    const page = pages();
    const spawn = { kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'child' } } as const;
    const made = world({
      planner: (run) =>
        script(...(run.query === 'child' ? [visit('c')] : [visit('a'), spawn, visit('b')]))(run, NEVER) as never,
      tools: [visiting({ ...page, keepMs: 60_000 })],
    });
    const run = await start(made);
    await run.result();
    expect(observations(await run.state())[2]).toEqual({ page: 1, visited: ['a', 'b'] });
    expect(page.opened.map((each) => each.visited)).toEqual([['a', 'b'], ['c']]);
    expect(new Set(page.opened.map((each) => each.run)).size).toBe(2);
    expect(reasons(page)).toEqual(['finished', 'finished']);
  });

  it('is not opened by a replay or a fork, and the fork is told that what its steps had is not its own', async () => {
    const page = pages();
    const made = world({ planner: script(visit('a'), visit('b')), tools: [visiting(page)] });
    const run = await start(made);
    await run.result();
    expect(await run.replay()).not.toHaveProperty('divergence');
    expect(page.opened).toHaveLength(1);
    const fork = await run.fork({ step: 1 });
    const events = await collect(fork);
    expect(observations(await fork.state())[1]).toEqual({ page: 2, visited: ['b'] });
    expect(only(events, 'handle.lost')).toMatchObject([{ step: 1, handle: 'page', opening: 1 }]);
    expect(page.opened.map((each) => each.run)).toEqual([run.id, fork.id]);
    expect(reasons(page)).toEqual(['finished', 'finished']);
  });

  it('is nothing that a call can give: it is not serialised', async () => {
    const page = pages();
    const leaking: Tool = {
      ...make('leak', (_, context) => ({ ...context.handles })),
      handles: { page: { ...page, open: () => new Map() as never } },
    };
    const made = world({ planner: script(call('leak')), tools: [leaking] });
    const run = await start(made);
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'unserializable' } }]);
  });
});

const NEVER = new AbortController().signal;

describe('the closing of a handle', () => {
  it.each<[HandleReason, Partial<Parameters<typeof world>[0]>]>([
    ['failed', { planner: (run) => (run.trajectory.count === 0 ? visit('a') : (null as never)) }],
    ['let_go', { planner: script(visit('a'), pause) }],
    ['finished', { planner: script(visit('a')) }],
  ])('tells it why: %s', async (reason, options) => {
    const page = pages();
    const made = world({ planner: script(), tools: [visiting(page)], ...options });
    await (await start(made)).result();
    expect(reasons(page)).toEqual([reason]);
    expect(made.faults).toEqual([]);
  });

  it('comes with a cancel, and when the runtime is closed, in the middle of a call', async () => {
    for (const [reason, end] of [
      ['cancelled', (made: ReturnType<typeof world>, id: string) => made.runtime.run(id).cancel()],
      ['closing', (made: ReturnType<typeof world>) => made.runtime.close()],
    ] as const) {
      const page = pages({ keepMs: 3_600_000 });
      const entered = gate();
      const hold: Tool = {
        ...make('hold', async (_, { signal }) => {
          entered.open();
          await aborted(signal);
        }),
        handles: { page },
      };
      const made = world({ planner: script(call('hold')), tools: [hold] });
      const run = await start(made);
      await entered.opened;
      await end(made, run.id);
      await until(() => page.closed.length > 0);
      expect(reasons(page)).toEqual([reason]);
      await made.runtime.close();
    }
  });

  it('comes when another process has taken the run over', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const [first, second] = [pages(), pages()];
    const held = gate();
    const entered = gate();
    const holdOnce = (page: Pages, waits: boolean): Tool => ({
      ...make('hold', async (_, { handles }) => {
        entered.open();
        if (waits) await held.opened;
        return ((handles as Readonly<Record<string, unknown>>)['page'] as Page).number;
      }),
      handles: { page },
      timeoutMs: 3_600_000,
    });
    const one = world({
      planner: script(visit('a'), call('hold')),
      tools: [visiting(first), holdOnce(first, true)],
      journal,
      clock,
    });
    const run = await start(one);
    await entered.opened;
    // Its lease runs out, as nothing renews it while this process stands still.
    await journal.claim({
      run: run.id,
      owner: 'other',
      leaseMs: 1,
      from: (await journal.get(run.id))?.lease?.owner ?? '',
    });
    clock.advance(2);
    const two = world({
      planner: script(visit('a'), call('hold')),
      tools: [visiting(second), holdOnce(second, false)],
      journal,
      clock,
    });
    await two.runtime.run(run.id).resume();
    expect(await two.runtime.run(run.id).result()).toMatchObject({ status: 'finished' });
    expect(observations(await two.runtime.run(run.id).state())[1]).toBe(2);
    held.open();
    await advanceUntil(clock, () => first.closed.length > 0);
    expect(reasons(first)).toEqual(['lost']);
    expect(reasons(second)).toEqual(['finished']);
    await Promise.all([one.runtime.close(), two.runtime.close()]);
  });

  it('is told when it goes wrong, and holds up the run for no more than 5,000 ms', async () => {
    const clock = new VirtualClock();
    const bad = pages({ close: () => Promise.reject(new Error('still loading')) });
    const hanging = { ...pages({ close: () => new Promise<void>(() => {}) }), name: 'tab' };
    const both: Tool = { ...make('both', () => null), handles: { bad, hanging } };
    const made = world({ planner: script(call('both')), tools: [both], clock });
    const run = await start(made);
    let result: unknown;
    run.result().then((how) => (result = how));
    await quiet();
    expect(result).toBeUndefined();
    clock.advance(5_000);
    await until(() => result !== undefined);
    expect(result).toMatchObject({ status: 'finished' });
    expect(made.faults).toMatchObject([
      {
        code: 'handle_failed',
        message: `The handle tab of the run ${run.id} could not be closed: close() did not end within 5000 ms`,
      },
      { code: 'handle_failed', message: `The handle page of the run ${run.id} could not be closed: still loading` },
    ]);
  });

  it('goes in the other order of the opening', async () => {
    const closed: string[] = [];
    const named = (name: string): Handle<string> => ({
      name,
      open: () => name,
      close: (value) => void closed.push(value),
    });
    const tools = ['browser', 'page', 'form'].map(
      (name): Tool => ({ ...make(name, () => null), handles: { [name]: named(name) } }),
    );
    const made = world({ planner: script(call('browser'), call('page'), call('form')), tools });
    await (await start(made)).result();
    expect(closed).toEqual(['form', 'page', 'browser']);
  });
});

describe('a handle that cannot be opened', () => {
  it('is the outcome of the calls that wait for it, and the next one tries again', async () => {
    let tries = 0;
    const page = pages();
    const flaky = {
      ...page,
      open: (context: Parameters<Pages['open']>[0]) => {
        tries += 1;
        if (tries === 1) throw Object.assign(new Error('no browser'), { code: 'browser_missing' });
        return page.open(context);
      },
    };
    const made = world({
      planner: script(visits(['a', 'b']), visit('c')),
      tools: [visiting(flaky, 'visit', { effect: 'once' })],
    });
    const run = await start(made);
    await run.result();
    const [first, second] = (await run.state()).steps;
    const error = { kind: 'error', error: { code: 'browser_missing', message: 'no browser' } };
    expect(first?.calls).toMatchObject([
      { outcome: error, attempts: 0 },
      { outcome: error, attempts: 0 },
    ]);
    expect(second?.calls).toMatchObject([{ outcome: { kind: 'value', value: { page: 1, visited: ['c'] } } }]);
    // A `once` call that had no page was not begun, so that nobody has to doubt whether it happened.
    expect(await entriesOf(made.journal, run, 'call_began')).toMatchObject([{ step: 1 }]);
    expect((await run.state()).totals.calls).toBe(1);
    expect(reasons(page)).toEqual(['finished']);
  });

  it('has a time limit; what comes after it is closed', async () => {
    const clock = new VirtualClock();
    const late = gate();
    const page = pages();
    const signals: AbortSignal[] = [];
    const slow = {
      ...page,
      timeoutMs: 50,
      open: async (context: Parameters<Pages['open']>[0]) => {
        signals.push(context.signal);
        await late.opened;
        return page.open(context);
      },
    };
    const made = world({ planner: script(visit('a')), tools: [visiting(slow)], clock });
    const run = await start(made);
    await until(() => signals.length > 0);
    clock.advance(50);
    await run.result();
    expect(observations(await run.state())).toMatchObject([
      {
        error: {
          code: 'handle_failed',
          message: 'The handle page was not opened within 50 ms. The next call tries again.',
        },
      },
    ]);
    expect(signals.map((signal) => signal.aborted)).toEqual([true]);
    late.open();
    await until(() => page.closed.length > 0);
    expect(reasons(page)).toEqual(['lost']);
  });

  it('is given up when the run is cancelled, and closed if it comes after all', async () => {
    const clock = new VirtualClock();
    const entered = gate();
    const late = gate();
    const page = pages();
    const slow = {
      ...page,
      open: async (context: Parameters<Pages['open']>[0]) => {
        entered.open();
        await late.opened;
        return page.open(context);
      },
    };
    const made = world({ planner: script(visit('a')), tools: [visiting(slow)], clock });
    const run = await start(made);
    await entered.opened;
    const cancelled = run.cancel();
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    await cancelled;
    await advanceUntil(clock, () => made.journal.get(run.id).then((record) => record?.lease === undefined));
    late.open();
    await until(() => page.closed.length > 0);
    expect(page.opened).toHaveLength(1);
  });

  it('pauses the run when somebody has to log in for it', async () => {
    let isLoggedIn = false;
    const page = pages();
    const closed = {
      ...page,
      open: (context: Parameters<Pages['open']>[0]) => {
        if (!isLoggedIn) throw new LoginRequired('https://bank.example/login');
        return page.open(context);
      },
    };
    const made = world({ planner: script(visit('a')), tools: [visiting(closed, 'visit', { effect: 'once' })] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ payload: { url: 'https://bank.example/login' } }],
    });
    isLoggedIn = true;
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(observations(await run.state())).toEqual([{ page: 1, visited: ['a'] }]);
  });
});

describe('a handle that is gone', () => {
  it('TJ-11 is opened anew when the run was let go of, and everybody is told', async () => {
    const page = pages();
    const made = world({ planner: script(visit('a'), pause, visit('b'), visit('c')), tools: [visiting(page)] });
    const run = await start(made);
    await run.result();
    expect(reasons(page)).toEqual(['let_go']);
    await run.resume();
    await run.result();
    const state = await run.state();
    expect(observations(state).slice(2)).toEqual([
      { page: 2, visited: ['b'] },
      { page: 2, visited: ['b', 'c'] },
    ]);
    expect(state.steps[2]?.calls[0]?.handles).toEqual([{ name: 'page', opening: 2 }]);
    const told = (await collect(run)).filter(({ type }) => type.startsWith('handle.'));
    expect(told).toMatchObject([
      { type: 'handle.opened', step: 0, opening: 1 },
      { type: 'handle.lost', step: 2, opening: 1 },
      { type: 'handle.opened', step: 2, opening: 2 },
    ]);
    expect(reasons(page)).toEqual(['let_go', 'finished']);
  });

  it('is told to a model, beside the result', async () => {
    const page = pages();
    const to = (place: string) => ({ calls: [{ id: place, tool: 'visit', args: { to: place } }] });
    const model = scriptedModel([to('a'), to('b'), to('c'), { text: 'Done.' }]);
    const gated = visiting(page, 'visit', { needsApproval: (args) => (args as { to?: string }).to === 'b' });
    const made = world({ planner: react({ model }), tools: [gated] });
    const run = await start(made);
    await run.result();
    await run.approve();
    await run.result();
    const [, second, third, fourth] = model.calls.map(({ prompt }) => JSON.stringify(prompt));
    expect(second).not.toContain('new one');
    expect(third).toContain('From these results on, page is a new one.');
    expect(fourth?.split('page is a new one')).toHaveLength(2);
  });

  it('is kept for as long as it says, for a run that goes on here', async () => {
    const clock = new VirtualClock();
    const page = pages({ keepMs: 60_000 });
    const made = world({
      planner: script(visit('a'), pause, visit('b'), pause, visit('c')),
      tools: [visiting(page)],
      clock,
    });
    const run = await start(made);
    await run.result();
    clock.advance(59_999);
    await run.resume();
    await run.result();
    expect(observations(await run.state())[2]).toEqual({ page: 1, visited: ['a', 'b'] });
    expect(page.closed).toEqual([]);
    clock.advance(60_000);
    await until(() => page.closed.length > 0);
    expect(reasons(page)).toEqual(['let_go']);
    await run.resume();
    await run.result();
    expect(observations(await run.state())[4]).toEqual({ page: 2, visited: ['c'] });
    await made.runtime.close();
    expect(clock.pending).toBe(0);
  });

  it('is closed with the runtime, however long it was to be kept', async () => {
    const page = pages({ keepMs: 3_600_000 });
    const made = world({ planner: script(visit('a'), pause), tools: [visiting(page)] });
    await (await start(made)).result();
    await made.runtime.close();
    expect(reasons(page)).toEqual(['closing']);
    expect(made.clock.pending).toBe(0);
  });

  it('is not taken for the last one when another process has opened it meanwhile', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const decisions = [visit('a'), pause, visit('b'), pause, visit('c')];
    const [first, second] = [pages({ keepMs: 3_600_000 }), pages()];
    const one = world({ planner: script(...decisions), tools: [visiting(first)], journal, clock });
    const two = world({ planner: script(...decisions), tools: [visiting(second)], journal, clock });
    const run = await start(one);
    await run.result();
    await two.runtime.run(run.id).resume();
    await two.runtime.run(run.id).result();
    await run.resume();
    await run.result();
    expect(observations(await run.state()).filter((_, step) => step % 2 === 0)).toEqual([
      { page: 1, visited: ['a'] },
      { page: 2, visited: ['b'] },
      { page: 3, visited: ['c'] },
    ]);
    expect(reasons(first)).toEqual(['lost', 'finished']);
    expect(reasons(second)).toEqual(['let_go']);
  });

  it('is lost when it is not open any more, also in the middle of a run', async () => {
    const page = pages({ isOpen: (live) => live.isOpen });
    const breaks: Tool = {
      ...make('break', () => {
        for (const live of page.opened) live.isOpen = false;
      }),
    };
    const made = world({ planner: script(visit('a'), call('break'), visit('b')), tools: [visiting(page), breaks] });
    const run = await start(made);
    const events = await collect(run);
    expect(observations(await run.state())[2]).toEqual({ page: 2, visited: ['b'] });
    expect(only(events, 'handle.lost')).toMatchObject([{ step: 2, opening: 1 }]);
    expect(reasons(page)).toEqual(['lost', 'finished']);
  });
});

describe('a handle that cannot be opened in silence (onLost: fail)', () => {
  const lost = { code: 'handle_lost', data: { handle: 'page', opening: 1 } };

  it('SP-32 refuses the calls of the step that finds it gone, each of them, and is opened anew from the next step on', async () => {
    const page = pages({ onLost: 'fail' });
    const step = visits(['b', 'c', 'd', 'e'], { concurrency: 2 });
    const made = world({
      planner: script(visit('a'), pause, step, visits(['f', 'g']), visit('h')),
      tools: [visiting(page, 'visit', { effect: 'once' })],
    });
    const run = await start(made);
    await run.result();
    await run.resume();
    const events = await collect(run);
    const { steps } = await run.state();
    expect(steps[2]?.calls).toMatchObject(Array(4).fill({ outcome: { kind: 'error', error: lost }, attempts: 0 }));
    expect(outcomes({ steps }, 3)).toEqual(['value', 'value']);
    expect(observations({ steps })[4]).toEqual({ page: 2, visited: ['f', 'g', 'h'] });
    expect(only(events, 'handle.lost')).toMatchObject([{ step: 2, opening: 1 }]);
    expect(only(events, 'handle.opened')).toMatchObject([
      { step: 0, opening: 1 },
      { step: 3, opening: 2 },
    ]);
    // What was refused has not begun.
    expect((await entriesOf(made.journal, run, 'call_began')).map((entry) => entry.step)).toEqual([0, 3, 3, 4]);
  });

  it('refuses an approved call whose page was closed while it waited, and not one whose page was kept', async () => {
    for (const [keepMs, outcome] of [
      [0, 'error'],
      [60_000, 'value'],
    ] as const) {
      const page = pages({ onLost: 'fail', keepMs });
      const submit = visiting(page, 'submit', { effect: 'once', needsApproval: true });
      const made = world({
        planner: script(visit('form'), visit('submit', 'submit')),
        tools: [visiting(page), submit],
      });
      const run = await start(made);
      await run.result();
      await run.approve();
      await run.result();
      expect(outcomes(await run.state(), 1)).toEqual([outcome]);
      expect(page.opened).toHaveLength(1);
    }
  });

  it.each([
    ['refuses', 'fail', 0, { error: { code: 'handle_lost' } }, ['handle.lost', 'handle.opened']],
    ['goes on with', 'fail', 60_000, { value: ['lamp'] }, ['handle.opened']],
    ['opens anew for', 'reopen', 0, { value: [] }, ['handle.lost', 'handle.opened']],
  ] as const)('%s a call that has asked in the middle of its work (%s, kept %i ms)', async (_, onLost, keepMs, outcome, told) => {
    const page = pages({ onLost, keepMs });
    const order = make(
      'order',
      async (_args, context) => {
        const { visited } = (context.handles as { page: Page }).page;
        await context.once('fill', () => visited.push('lamp'));
        await context.ask({ question: 'Really?' });
        return [...visited];
      },
      { effect: 'once', handles: { page } as never },
    );
    const planner = script(call('order'), visit('next'));
    const made = world({ planner, tools: [order, visiting(page)] });
    const run = await start(made);
    await run.result();
    await run.answer(undefined, { kind: 'answer', value: 'yes' });
    await run.result();
    const { steps } = await run.state();
    expect(steps[0]?.calls[0]?.outcome).toMatchObject(outcome);
    expect(steps[1]?.calls[0]?.outcome).toMatchObject({ kind: 'value' });
    const events = await collect(run);
    expect(events.map(({ type }) => type).filter((type) => type.startsWith('handle.'))).toEqual(told);
    expect(made.faults).toEqual([]);
  });

  it('refuses beside a call that used it, when it breaks before anything of it is recorded', async () => {
    const page = pages({ onLost: 'fail', isOpen: (live) => live.isOpen });
    const entered = gate();
    const end = gate();
    const first: Tool = {
      ...make('first', async () => {
        entered.open();
        await end.opened;
      }),
      handles: { page },
    };
    const branches = [
      { tool: 'first', args: {} },
      { tool: 'break', args: {} },
      ...['b', 'c'].map((to) => ({ tool: 'visit', args: { to } })),
    ];
    const breaks = make('break', async () => {
      await entered.opened;
      for (const live of page.opened) live.isOpen = false;
    });
    const made = world({
      planner: script({ kind: 'call_parallel', branches, concurrency: 2 }, visit('d')),
      tools: [first, breaks, visiting(page)],
    });
    const run = await start(made);
    await until(async () => (await entriesOf(made.journal, run, 'call_ended')).length === 3);
    end.open();
    await run.result();
    const { steps } = await run.state();
    expect(outcomes({ steps })).toEqual(['value', 'value', 'error', 'error']);
    expect(observations({ steps })[1]).toEqual({ page: 2, visited: ['d'] });
  });
});

describe('the handles of a runtime', () => {
  const tool = (handles: unknown, name = 'use'): Tool => ({ ...make(name, () => null), handles: handles as HandleSet });
  const open = { open: () => 1, close: () => {} };

  it.each<[string, readonly Tool[], RegExp]>([
    ['no name', [tool({ page: { ...open } })], /needs a name/],
    ['a name with a blank', [tool({ page: { ...open, name: 'a page' } })], /letters, digits/],
    ['no close', [tool({ page: { name: 'page', open: () => 1 } })], /needs the functions open and close/],
    ['a value in its place', [tool({ page: 1 })], /give handle\(\{ name, open, close \}\)/],
    ['a list', [tool([{ ...open, name: 'page' }])], /must be an object such as \{ page: handle/],
    ['another onLost', [tool({ page: { ...open, name: 'page', onLost: 'ask' } })], /use reopen or fail/],
    ['a keepMs that is none', [tool({ page: { ...open, name: 'page', keepMs: -1 } })], /keepMs -1/],
    ['a timeoutMs that is none', [tool({ page: { ...open, name: 'page', timeoutMs: 0 } })], /timeoutMs 0/],
    [
      'two of one name',
      [tool({ page: { ...open, name: 'page' } }), tool({ tab: { ...open, name: 'page' } }, 'other')],
      /Two handles are named "page"/,
    ],
  ])('are refused with %s', (_, tools, why) => {
    expect(() => world({ planner: script(), tools })).toThrow(why);
  });
});
