/** A tool says how long it is to be left alone: a short wait stays in the call, for a longer one the call is put off and the run let go of. */
import { describe, expect, it, vi } from 'vitest';
import type { Decision } from '#core';
import { node } from '#flow';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { agent, agentTool, NotSent, type Tool, ToolFailure } from '#tools';
import { call, finish, named, parallel, pause, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, innerState, isWaiting, kindsOf, pausesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const MINUTE = 60_000;
const PATIENT = { timeoutMs: 60 * MINUTE };
const busyFor = (retryAfterMs: number) => new ToolFailure('busy', { retryAfterMs });

interface Limited {
  readonly tool: Tool;
  /** When each attempt was made, and its number. */
  readonly tries: { readonly at: number; readonly attempt: number; readonly key: string }[];
}

/** Fails with the errors of the list, one an attempt, and works from then on. */
function limited(clock: VirtualClock, errors: readonly unknown[], more: Partial<Tool> = {}): Limited {
  const tries: { at: number; attempt: number; key: string }[] = [];
  const execute = (_: unknown, { attempt, idempotencyKey: key }: { attempt: number; idempotencyKey: string }) => {
    tries.push({ at: clock.now(), attempt, key });
    if (tries.length <= errors.length) throw errors[tries.length - 1];
    return 'served';
  };
  return { tool: make('limited', execute, { effect: 'read', backoff: { baseMs: 0 }, ...more }), tries };
}

function scene(errors: readonly unknown[], decision: Decision = call('limited'), more: Partial<Tool> = {}) {
  const clock = new VirtualClock();
  const { tool, tries } = limited(clock, errors, more);
  return { made: world({ planner: script(decision), tools: [tool], clock }), tries };
}

const gone = async (made: World, run: string) => until(() => isWaiting(made, run));

describe('a tool that asks to be left alone', () => {
  it('is left alone for so long: the run is let go of, and goes on by itself', async () => {
    const { made, tries } = scene([busyFor(MINUTE)]);
    const run = await start(made);
    await gone(made, run.id);
    expect((await made.journal.get(run.id))?.lease).toBeUndefined();
    made.clock.advance(MINUTE - 1);
    await quiet();
    expect(tries).toHaveLength(1);
    made.clock.advance(1);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
    expect(tries.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(new Set(tries.map(({ key }) => key)).size).toBe(1);
    expect((tries[1]?.at ?? 0) - (tries[0]?.at ?? 0)).toBe(MINUTE);
    expect(await kindsOf(made.journal, run)).toEqual([
      'started',
      'moved',
      'call_away',
      'call_ended',
      'moved',
      'finished',
    ]);
    const record = (await run.state()).steps[0]?.calls[0];
    expect(record).toMatchObject({ outcome: { kind: 'value', value: 'served' }, attempts: 2, startedAt: tries[0]?.at });
    expect(made.clock.pending).toBe(0);
  });

  it('tells readers why, and when it is tried again', async () => {
    const { made } = scene([busyFor(MINUTE)]);
    const run = await start(made);
    await gone(made, run.id);
    made.clock.advance(MINUTE);
    await run.result();
    const [away] = (await collect(run)).filter(({ type }) => type === 'tool.away');
    expect(away).toMatchObject({ step: 0, call: 0, tool: 'limited', attempts: 1, error: { message: 'busy' } });
    expect(away?.type === 'tool.away' && away.retryAt - away.occurredAt).toBe(MINUTE);
  });

  it('keeps its place for a wait of at most a second', async () => {
    const { made, tries } = scene([busyFor(1_000)]);
    const run = await start(made);
    await until(() => tries.length === 1);
    await quiet();
    made.clock.advance(999);
    await quiet();
    expect(tries).toHaveLength(1);
    made.clock.advance(1);
    await run.result();
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
  });

  it('is put off also for a long wait of its own backoff', async () => {
    // A wait by chance may be one that stays in the call.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const passing = new ToolFailure('again', { retryable: true });
    const { made } = scene([passing], call('limited'), { backoff: { baseMs: 40_000 } });
    const run = await start(made);
    await gone(made, run.id);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await entriesOf(made.journal, run, 'call_away')).toHaveLength(1);
  });

  it('gives its slot to another run', async () => {
    const clock = new VirtualClock();
    const { tool } = limited(clock, [busyFor(MINUTE)]);
    const made = world({
      planner: ({ query, trajectory }) =>
        trajectory.count === 0 && query === 'slow' ? call('limited') : finish(query),
      tools: [tool],
      clock,
      maxLiveRuns: 1,
    });
    const slow = await start(made, { query: 'slow' });
    const quick = await start(made, { query: 'quick' });
    expect(await quick.result()).toMatchObject({ payload: 'quick' });
    expect((await slow.state()).ending).toBeNull();
    clock.advance(MINUTE);
    expect(await slow.result()).toMatchObject({ payload: 'slow' });
  });

  it.each([
    ['an AI SDK error', { name: 'AI_APICallError', statusCode: 429, responseHeaders: { 'Retry-After': '90' } }],
    ['milliseconds in a header', { statusCode: 503, responseHeaders: { 'retry-after-ms': '90000' } }],
    ['a list of headers', { statusCode: 503, responseHeaders: { 'retry-after': ['5', '90'] } }],
    ['a tries error', { name: 'AI_RetryError', lastError: { responseHeaders: { 'retry-after': '90' } } }],
    ['a field, with a status that is not tried again by itself', { status: 403, retryAfterMs: 90_000 }],
  ])('says so in %s', async (_, fields) => {
    const { made, tries } = scene([Object.assign(new Error('slow down'), fields)]);
    const run = await start(made);
    await gone(made, run.id);
    made.clock.advance(90_000);
    await run.result();
    expect((tries[1]?.at ?? 0) - (tries[0]?.at ?? 0)).toBe(90_000);
  });

  it('says so with a date', async () => {
    const clock = new VirtualClock();
    const date = new Date(clock.now() + 120_000).toUTCString();
    const { tool } = limited(clock, [{ statusCode: 429, responseHeaders: { 'retry-after': date } }]);
    const made = world({ planner: script(call('limited')), tools: [tool], clock });
    const run = await start(made);
    await gone(made, run.id);
    const [away] = await entriesOf(made.journal, run, 'call_away');
    expect((away?.retryAt ?? 0) - (away?.failedAt ?? 0)).toBeGreaterThan(118_000);
  });

  it.each([
    ['is less than nothing', { retryAfterMs: -5 }],
    ['is no number', { retryAfterMs: Number.NaN }],
    ['is a text', { retryAfterMs: '60000' }],
    [
      'is in headers that cannot be read',
      {
        responseHeaders: new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error('no');
            },
          },
        ),
      },
    ],
    ['belongs to an error that does not pass', { retryable: false, retryAfterMs: MINUTE }],
  ])('is not tried again for a wait that %s', async (_, fields) => {
    const { made, tries } = scene([Object.assign(new Error('no'), fields)]);
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries).toHaveLength(1);
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { message: 'no' } });
  });

  it('tells the planner how long, when no attempt is left', async () => {
    const { made } = scene([busyFor(5_000)], call('limited'), { retries: 0 });
    const run = await start(made);
    await run.result();
    const data = { retryAfterMs: 5_000 };
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_failed', data } });
    const tried = scene([busyFor(5_000), busyFor(7_000)], call('limited'), { retries: 1 });
    const other = await start(tried.made);
    await advanceUntil(tried.made.clock, async () => (await other.state()).ending !== null);
    expect((await other.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      error: { code: 'tool_retries_exhausted', data: { attempts: 2, cause: { data: { retryAfterMs: 7_000 } } } },
    });
  });

  it.each([
    ['a year', 365 * 24 * 60 * MINUTE],
    ['for ever', Number.POSITIVE_INFINITY],
  ])('is not waited for when it asks for %s: the planner is told', async (_, retryAfterMs) => {
    const { made, tries } = scene([busyFor(retryAfterMs)]);
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries).toHaveLength(1);
    const [record] = (await run.state()).steps[0]?.calls ?? [];
    expect(record?.outcome).toMatchObject({
      kind: 'error',
      error: {
        code: 'tool_wait_too_long',
        message: expect.stringContaining('86400 s'),
        data: { cause: { code: 'tool_failed' } },
      },
    });
  });

  it('is not called again when the time of the run is over before', async () => {
    const { made, tries } = scene([busyFor(60 * MINUTE)]);
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + MINUTE } });
    await gone(made, run.id);
    made.clock.advance(MINUTE);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(tries).toHaveLength(1);
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { kind: 'cancelled' }, attempts: 1 });
  });
});

describe('a call that is put off', () => {
  it('is made by another process, after its time and not before', async () => {
    const clock = new VirtualClock();
    const { tool, tries } = limited(clock, [busyFor(MINUTE)]);
    const planner = script(call('limited'));
    const path = temporaryFile();
    const first = world({ planner, tools: [tool], clock, journal: openJournal(path, { clock }) });
    const { id } = await start(first);
    await gone(first, id);
    await first.runtime.close();
    clock.advance(MINUTE / 2);
    const second = world({ planner, tools: [tool], clock, journal: openJournal(path, { clock }) });
    const run = second.runtime.run(id);
    await run.resume().catch(() => {});
    await quiet();
    expect(tries).toHaveLength(1);
    clock.advance(MINUTE / 2);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries.map(({ attempt }) => attempt)).toEqual([1, 2]);
    await second.runtime.close();
  });

  it('takes no place: its siblings go on, and it goes on while they are under way', async () => {
    const clock = new VirtualClock();
    const { tool, tries } = limited(clock, [busyFor(MINUTE)]);
    const held = gate();
    const order: string[] = [];
    const hold = make(
      'hold',
      async () => {
        order.push('hold');
        await held.opened;
      },
      PATIENT,
    );
    const quick = make('quick', () => order.push('quick'));
    const decision = { ...parallel(named('limited', 'quick', 'hold')), concurrency: 1 } as Decision;
    const made = world({ planner: script(decision), tools: [tool, hold, quick], clock });
    const run = await start(made);
    await until(() => order.length === 2);
    expect(order).toEqual(['quick', 'hold']);
    clock.advance(MINUTE);
    await quiet();
    expect(tries).toHaveLength(1);
    held.open();
    await run.result();
    expect(tries).toHaveLength(2);
    const wide = parallel(named('limited', 'hold'));
    const again = limited(clock, [busyFor(MINUTE)]);
    const other = gate();
    const waits = make('hold', () => other.opened, PATIENT);
    const beside = world({ planner: script(wide), tools: [again.tool, waits], clock });
    const second = await start(beside);
    await until(async () => (await innerState(beside.journal, second)).open?.away.length === 1);
    clock.advance(MINUTE);
    await until(() => again.tries.length === 2);
    other.open();
    expect(await second.result()).toMatchObject({ status: 'finished' });
  });

  it('waits for its place when a task has the only one, and wakes nobody meanwhile', async () => {
    const clock = new VirtualClock();
    const { tool, tries } = limited(clock, [busyFor(MINUTE)]);
    const asker = agentTool(agent({ name: 'asker', planner: script(pause) }), { description: 'asks', effect: 'read' });
    const branches = [...named('limited'), { tool: 'asker', args: { input: 'well?' } }];
    const decision = { ...parallel(branches), concurrency: 1 } as Decision;
    const made = world({ planner: script(decision), tools: [tool, asker], clock });
    const run = await start(made);
    const [asked] = await pausesOf(run);
    clock.advance(2 * MINUTE);
    await quiet();
    expect((await made.journal.get(run.id))?.wakeAt).toBeNull();
    expect(tries).toHaveLength(1);
    await run.resume({ token: asked?.token ?? '' });
    await until(async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries).toHaveLength(2);
  });

  it('is given up with the run that is cancelled', async () => {
    const { made, tries } = scene([busyFor(MINUTE)]);
    const run = await start(made);
    await gone(made, run.id);
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { kind: 'cancelled' }, attempts: 1 });
    made.clock.advance(2 * MINUTE);
    await quiet();
    expect(tries).toHaveLength(1);
  });

  it('is given up for a new goal: the planner gets its failure and the goal', async () => {
    for (const decision of [call('limited'), { ...parallel(named('limited')), plan: 'p' } as Decision]) {
      const { made, tries } = scene([busyFor(MINUTE)], decision);
      const run = await start(made);
      await gone(made, run.id);
      await run.steer('REDIRECT', { goal: 'another' });
      expect(await run.result()).toMatchObject({ status: 'finished' });
      const { steps, goal } = await run.state();
      expect(goal).toBe('another');
      expect(steps[0]?.calls[0]).toMatchObject({ outcome: { kind: 'error', error: { message: 'busy' } }, attempts: 1 });
      expect(tries).toHaveLength(1);
    }
  });

  it('waits on when the user says something else, which the planner hears after it', async () => {
    const { made, tries } = scene([busyFor(MINUTE)]);
    const run = await start(made);
    await gone(made, run.id);
    await run.steer('USER_MESSAGE', { message: 'hurry' });
    await quiet();
    expect(tries).toHaveLength(1);
    await gone(made, run.id);
    made.clock.advance(MINUTE);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries).toHaveLength(2);
  });

  it('is not made while an operator holds the run', async () => {
    const { made, tries } = scene([busyFor(MINUTE)]);
    const run = await start(made);
    await gone(made, run.id);
    await run.steer('PAUSE', {});
    expect(await run.result()).toMatchObject({ status: 'paused' });
    made.clock.advance(5 * MINUTE);
    await quiet();
    expect(tries).toHaveLength(1);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries).toHaveLength(2);
  });

  it('is given up when its join has what it needs', async () => {
    const clock = new VirtualClock();
    const { tool } = limited(clock, [busyFor(MINUTE)], { effect: 'keyed' });
    const held = gate();
    const hold = make('hold', () => held.opened, PATIENT);
    const decision = parallel(named('limited', 'hold'), { join: { kind: 'first_success' } });
    const made = world({ planner: script(decision), tools: [tool, hold], clock });
    const run = await start(made);
    await until(async () => (await innerState(made.journal, run)).open?.away.length === 1);
    held.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const [record] = (await run.state()).steps[0]?.calls ?? [];
    expect(record).toMatchObject({ outcome: { kind: 'cancelled' }, attempts: 1 });
  });

  it('is approved once, and paid once', async () => {
    const { made, tries } = scene([busyFor(MINUTE)], call('limited'), {
      needsApproval: true,
      costUsd: 0.5,
      effect: 'keyed',
    });
    const run = await start(made, { limits: { calls: 1, costUsd: 0.6 } });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.approve();
    await gone(made, run.id);
    made.clock.advance(MINUTE);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(tries).toHaveLength(2);
    expect((await run.state()).totals).toMatchObject({ calls: 1, costMicroUsd: 500_000 });
    expect(await entriesOf(made.journal, run, 'paused')).toHaveLength(1);
  });

  it('of a once tool is repeated when nothing was sent, and is an error otherwise', async () => {
    const sent = scene([busyFor(MINUTE)], call('limited'), { effect: 'once' });
    const run = await start(sent.made);
    await run.result();
    expect(sent.tries).toHaveLength(1);
    const outcome = { kind: 'error', error: { code: 'tool_failed', data: { retryAfterMs: MINUTE } } };
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject(outcome);
    const unsent = scene([new NotSent('no line', { retryAfterMs: MINUTE })], call('limited'), { effect: 'once' });
    const other = await start(unsent.made);
    await gone(unsent.made, other.id);
    unsent.made.clock.advance(MINUTE);
    expect(await other.result()).toMatchObject({ status: 'finished' });
    expect(unsent.tries).toHaveLength(2);
    const kinds = ['started', 'moved', 'call_began', 'call_away', 'call_began', 'call_ended', 'moved', 'finished'];
    expect(await kindsOf(unsent.made.journal, other)).toEqual(kinds);
  });

  it('of a once tool is in doubt when its process dies in the next attempt', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    let tries = 0;
    const act = make(
      'act',
      () => {
        tries += 1;
        if (tries === 1) throw new NotSent('no line', { retryAfterMs: MINUTE });
        entered.open();
        return new Promise(() => {});
      },
      { effect: 'once' },
    );
    const planner = script(call('act'));
    const first = world({ planner, tools: [act], journal: dying.journal, clock });
    const { id } = await start(first);
    await gone(first, id);
    clock.advance(MINUTE);
    await entered.opened;
    dying.cut();
    clock.advance(5_001);
    const second = world({ planner, tools: [act], journal: shared, clock });
    const run = second.runtime.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect(tries).toBe(2);
  });
});

describe('a node of a flow', () => {
  it('with retries keeps the time that its error asks for', () => {
    const thrown = Object.assign(new Error('busy'), { retryAfterMs: MINUTE });
    const policy = { retries: 1 };
    const { tool } = node('n', {
      effect: 'read',
      policy,
      execute: (): number => {
        throw thrown;
      },
    });
    expect(() => (tool as Tool).execute({}, {} as never)).toThrow(
      expect.toSatisfy((error: unknown) => error === thrown),
    );
  });
});
