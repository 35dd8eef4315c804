/** The fold of what a run waits for: approvals, logins, tasks and groups. */
import { describe, expect, it } from 'vitest';
import type {
  Awaiting,
  Branch,
  Decision,
  Entry,
  EntryBody,
  Paused,
  Spawned,
  Started,
  TaskEnded,
  TaskPause,
  TaskUsage,
} from '#core';
import {
  answerable,
  applyEntry,
  copyState,
  foldEntries,
  groupView,
  isBlocked,
  isPaused,
  leftOf,
  nextTimeout,
  type RunState,
  reachedLimit,
  shareFor,
} from '#state';

const STARTED: Started = {
  kind: 'started',
  identity: { tenant: 't', user: 'u', session: 's', run: 'r' },
  query: 'q',
  agent: 'p',
  limits: {},
  scopes: [],
};
const foldFrom = (started: Started, ...bodies: readonly EntryBody[]): RunState =>
  foldEntries([started, ...bodies].map((body, index): Entry => ({ ...body, seq: index + 1, at: 100 + index })));
const fold = (...bodies: readonly EntryBody[]): RunState => foldFrom(STARTED, ...bodies);

const move = (step: number, decision: Decision): EntryBody => ({ kind: 'moved', step, decision, startedAt: 0 });
const calls = (step: number, ...branches: readonly Partial<Branch>[]): EntryBody =>
  move(step, { kind: 'call_parallel', branches: branches.map((branch) => ({ tool: 't', args: {}, ...branch })) });
const ended = (step: number, call: number): EntryBody => ({
  kind: 'call_ended',
  step,
  call,
  outcome: { kind: 'value', value: 1 },
  attempts: 1,
});
const asks = (call: number, more: Partial<Paused> = {}): EntryBody => ({
  kind: 'paused',
  token: `p${call}`,
  reason: 'approval_required',
  step: 0,
  call,
  ...more,
});
const answers = (call: number, verdict: 'approve' | 'reject' | 'timeout' | 'resume', more: object = {}): EntryBody => ({
  kind: 'resumed',
  token: `p${call}`,
  verdict,
  ...more,
});

describe('a call that waits for an answer', () => {
  const two = calls(0, {}, {});

  it('SP-47 waits alone: the run is paused only when nothing else can move it', () => {
    expect(isPaused(fold(two, asks(0)))).toBe(false);
    expect(isPaused(fold(two, asks(0), asks(1)))).toBe(true);
    expect(isPaused(fold(two, asks(0), ended(0, 1)))).toBe(true);
    const needs = calls(0, { id: 'a' }, { after: ['a'] });
    expect(isPaused(fold(needs, asks(0)))).toBe(true);
    const race = move(0, { kind: 'call_parallel', branches: branchesOf(two), join: { kind: 'first_success' } });
    expect(isBlocked(fold(race, asks(0), ended(0, 1)))).toBe(false);
  });

  it('SP-47 an approval opens it again, with the arguments that came with it; it is asked for no second time', () => {
    const state = fold(two, asks(0), asks(1), answers(0, 'approve', { args: { n: 2 } }), answers(1, 'approve'));
    expect(state.open).toMatchObject({ approvals: [{ call: 0, args: { n: 2 } }, { call: 1 }], calls: [null, null] });
    expect([state.pauses, isBlocked(state)]).toEqual([[], false]);
  });

  it.each([
    ['reject', { payload: { reason: 'too dear' } }, 'tool_rejected', 'too dear'],
    ['timeout', {}, 'approval_timeout', 'Nobody approved'],
  ] as const)('%s is its outcome, and nothing was made', (verdict, more, code, words) => {
    const state = fold(two, asks(0), answers(0, verdict, more));
    expect(state.open?.calls).toMatchObject([
      { outcome: { kind: 'error', error: { code, message: expect.stringContaining(words) } }, attempts: 0 },
      null,
    ]);
    expect(state).toMatchObject({ totals: { calls: 0 }, rejectedCall: null });
  });

  it('a rejection that is to end the run is kept for the loop', () => {
    const end = asks(0, { onReject: 'end' });
    expect(fold(two, end, answers(0, 'reject')).rejectedCall).toBe('p0');
    expect(fold(two, end, answers(0, 'timeout')).rejectedCall).toBeNull();
    expect(fold(two, end, answers(0, 'approve')).rejectedCall).toBeNull();
  });

  it('SP-46 a login makes the call anew: it had not begun, and nobody is asked about it again', () => {
    const begins: EntryBody = { kind: 'call_began', step: 0, call: 0 };
    const login = asks(0, { reason: 'external_event' });
    expect(fold(two, begins, login).open?.began).toEqual([]);
    const again = fold(two, begins, login, answers(0, 'resume'), begins);
    expect(again.open).toMatchObject({
      began: [{ call: 0, once: true }],
      approvals: [{ call: 0 }],
      calls: [null, null],
    });
    const edited = asks(0, { token: 'p1' });
    const both = fold(two, edited, answers(1, 'approve', { args: { n: 2 } }), begins, login, answers(0, 'resume'));
    expect(both.open?.approvals).toEqual([{ call: 0, args: { n: 2 }, by: [null] }]);
  });

  it('a pause is gone with its call, and the run is due when the first of several is over', () => {
    const state = fold(two, asks(0, { expiresAt: 900 }), asks(1, { expiresAt: 700 }));
    expect(nextTimeout(state)).toBe(700);
    expect(fold(two, asks(0, { expiresAt: 900 }), ended(0, 0)).pauses).toEqual([]);
    expect(nextTimeout(fold(two))).toBeNull();
  });

  it('an answer to a call that has ended cannot be', () => {
    expect(() => fold(two, asks(0), answers(0, 'reject'), answers(0, 'reject'))).toThrow(
      expect.objectContaining({ code: 'journal_corrupt' }),
    );
  });
});

const spawned = (task: string, more: Partial<Spawned> = {}): Spawned => ({
  kind: 'spawned',
  step: 0,
  call: 0,
  task,
  group: 'g',
  taskKind: 'background',
  description: `the ${task}`,
  onCancel: 'cascade',
  retained: false,
  reserved: {},
  seal: false,
  ...more,
});
const NOTHING: TaskUsage = { steps: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
const taskEnded = (task: string, more: Partial<TaskEnded> = {}): TaskEnded => ({
  kind: 'task_ended',
  task,
  status: 'complete',
  usage: NOTHING,
  ...more,
});
const awaits = (step: number, more: Partial<Awaiting> = {}): Awaiting => ({
  kind: 'awaiting',
  step,
  call: 0,
  task: 'a',
  ...more,
});
const spawnBoth = calls(0, {}, {});
const both = [spawnBoth, spawned('a'), ended(0, 0), spawned('b', { call: 1, seal: true }), ended(0, 1)];
const awaitMove = (step: number): EntryBody => move(step, { kind: 'await_task', taskId: 'a' });
const groupEnded: EntryBody = { kind: 'group_ended', group: 'g', status: 'completed' };
const taskPause: TaskPause = { run: 'a', token: 'x', reason: 'await_input' };

describe('two states that go on from one', () => {
  it('have each its own tasks and groups, and the one in between stays as it was', () => {
    const before = [...both, awaitMove(1)];
    const first = fold(...before);
    const seen = structuredClone(first);
    const second = copyState(first);
    const goOn = (state: RunState, ...bodies: readonly EntryBody[]): void => {
      for (const body of bodies) applyEntry(state, { ...body, seq: state.head + 1, at: 99 + state.head + 1 });
    };
    const left = [taskEnded('a'), spawned('c', { step: 1, group: 'h', seal: true }), taskEnded('b'), groupEnded];
    const right = [taskEnded('b', { status: 'failed' }), spawned('d', { step: 1, group: 'i' })];
    const third = copyState(first);
    goOn(second, ...left);
    goOn(third, ...right);
    expect([second, third]).toEqual([fold(...before, ...left), fold(...before, ...right)]);
    expect(first).toEqual(seen);
    expect([first, second, third].map((state) => groupView(state, 'g')?.members.map(({ end }) => end?.status))).toEqual(
      [
        [undefined, undefined],
        ['complete', 'complete'],
        [undefined, 'failed'],
      ],
    );
    expect([second, third].map((state) => groupView(state, 'h')?.members.map(({ id }) => id))).toEqual([
      ['c'],
      undefined,
    ]);
  });
});

describe('a task', () => {
  it('is known from its spawning on, with its group, and ends once its end has come', () => {
    const state = fold(...both, taskEnded('a', { result: 7, usage: { ...NOTHING, steps: 2, costMicroUsd: 5 } }));
    expect(state.tasks).toMatchObject([
      {
        id: 'a',
        group: 'g',
        kind: 'background',
        description: 'the a',
        step: 0,
        end: { status: 'complete', result: 7 },
      },
      { id: 'b', group: 'g', step: 0, call: 1 },
    ]);
    expect(state.tasks[1]?.end).toBeUndefined();
    expect(state.groups).toMatchObject([{ id: 'g', sealed: true, failFast: false }]);
    expect(state.totals).toMatchObject({ steps: 1, taskSteps: 2, costMicroUsd: 5 });
    expect(state.messagesTaken).toBe(1);
  });

  it('of which the run is not the owner is kept apart, and costs it nothing', () => {
    const state = fold(taskEnded('other', { usage: { ...NOTHING, steps: 9 } }));
    expect(state).toMatchObject({ tasks: [], otherEnds: [{ task: 'other' }], totals: { taskSteps: 0 } });
  });

  it('that carries out a call parks it until it has ended, whatever is said to the run, and is in no group', () => {
    const message = { id: 'm', type: 'USER_MESSAGE', payload: { message: 'hurry' } } as const;
    const said: EntryBody = { kind: 'control', control: message, applied: true };
    const called = spawned('a', { retained: true, agentCall: true });
    const open = fold(calls(0, {}), called, said);
    expect(open.open?.waits).toEqual([{ call: 0, task: 'a', agentCall: { startedAt: 102 } }]);
    expect([
      open.groups,
      isBlocked(open),
      isBlocked(fold(calls(0, {}), spawned('a', { retained: true }), said)),
    ]).toEqual([...[[], true, false]]);
    const over = [calls(0, {}), called, taskEnded('a', { result: 1, stored: true })] as const;
    expect(isBlocked(fold(...over))).toBe(false);
    expect(fold(...over, ended(0, 0))).toMatchObject({
      ...{ open: null, background: [], totals: { calls: 1 }, tasks: [{ consumed: true, end: { stored: true } }] },
    });
  });

  it('that carries out a call keeps its place among those that run at once, and among those of its tool', () => {
    const one = spawned('a', { retained: true, agentCall: true });
    const two = (decision: Partial<Decision>): EntryBody =>
      move(0, {
        kind: 'call_parallel',
        branches: [
          { tool: 't', args: {} },
          { tool: 't', args: {} },
        ],
        ...decision,
      } as Decision);
    expect(isBlocked(fold(two({}), one))).toBe(false);
    expect(isBlocked(fold(two({ concurrency: 1 } as Partial<Decision>), one))).toBe(true);
    expect(isBlocked(fold(two({ concurrency: 1 } as Partial<Decision>), one, taskEnded('a')))).toBe(false);
    expect(isBlocked(fold(two({}), { ...one, atOnce: 1 }))).toBe(true);
    expect(isBlocked(fold(two({}), { ...one, atOnce: 2 }))).toBe(false);
    expect(isBlocked(fold(calls(0, {}, { tool: 'u' }), { ...one, atOnce: 1 }))).toBe(false);
  });

  it('that is retained parks its call until it has ended', () => {
    const open = fold(calls(0, {}), spawned('a', { retained: true }));
    expect(open.open?.waits).toEqual([{ call: 0, task: 'a' }]);
    expect([isBlocked(open), isPaused(open)]).toEqual([true, false]);
    const over = fold(calls(0, {}), spawned('a', { retained: true }), taskEnded('a'));
    expect(isBlocked(over)).toBe(false);
    const given = fold(calls(0, {}), spawned('a', { retained: true }), taskEnded('a'), ended(0, 0));
    expect(given).toMatchObject({ open: null, tasks: [{ consumed: true }] });
  });

  it("TK-39 TK-40 an await ends at its time, and on a message that is for the planner; it gives a group's results only at its end", () => {
    const waiting = [...both, awaitMove(1), awaits(1, { until: 500 })];
    const state = fold(...waiting);
    expect([isBlocked(state, 499), isBlocked(state, 500), nextTimeout(state)]).toEqual([true, false, 500]);
    const hold: EntryBody = { kind: 'paused', token: 'hold', reason: 'external_event' };
    expect(nextTimeout(fold(...waiting, hold))).toBeNull();
    expect(nextTimeout(fold(...waiting, { ...hold, expiresAt: 900 }))).toBe(900);
    for (const type of ['USER_MESSAGE', 'INJECT_CONTEXT', 'REDIRECT', 'PRIORITIZE'] as const) {
      const spoken: EntryBody = { kind: 'control', control: { id: 'c', type, payload: { goal: 'x' } }, applied: true };
      expect([type, isBlocked(fold(...waiting, spoken))]).toEqual([type, type === 'PRIORITIZE']);
    }
    const group = [...both, awaitMove(1), awaits(1, { group: 'g' })];
    expect(isBlocked(fold(...group, taskEnded('a'), taskEnded('b')))).toBe(true);
    expect(isBlocked(fold(...group, taskEnded('a'), taskEnded('b'), groupEnded))).toBe(false);
  });

  it('of which somebody must answer pauses a run that waits for it, and no other', () => {
    const paused: EntryBody = { kind: 'task_paused', task: 'a', pauses: [taskPause], asOf: 3 };
    const apart = fold(...both, paused);
    expect([isPaused(apart), apart.tasks[0]?.pauses, answerable(apart)]).toEqual([false, [taskPause], []]);
    const waiting = fold(...both, awaitMove(1), awaits(1), paused);
    expect([isPaused(waiting), answerable(waiting)]).toEqual([true, [taskPause]]);
    const goesOn = fold(...both, awaitMove(1), awaits(1), paused, {
      kind: 'task_paused',
      task: 'a',
      pauses: [],
      asOf: 5,
    });
    expect([isPaused(goesOn), isBlocked(goesOn)]).toEqual([false, true]);
    expect(fold(...both, paused, taskEnded('a')).tasks[0]?.pauses).toEqual([]);
  });

  it('of a group that needs it no more pauses nobody: the end of the group is recorded next, and the run goes on', () => {
    const paused: EntryBody = { kind: 'task_paused', task: 'b', pauses: [{ ...taskPause, run: 'b' }], asOf: 3 };
    const failed: EntryBody = { ...taskEnded('a'), status: 'failed' };
    for (const [first, end] of [
      [{ quorum: 1 }, taskEnded('a')],
      [{ failFast: true }, failed],
    ] as const) {
      const group = [spawnBoth, spawned('a', first), ended(0, 0), spawned('b', { call: 1, seal: true }), ended(0, 1)];
      const waiting = [...group, awaitMove(1), awaits(1, { group: 'g' })];
      const over = fold(...waiting, end, paused);
      expect([isPaused(over), answerable(over)]).toEqual([false, []]);
      expect(isPaused(fold(...both, awaitMove(1), awaits(1, { group: 'g' }), end, paused))).toBe(true);
    }
  });

  it('of a call that a met join needs no more pauses nobody with what it has asked by then, but with a doubt and with what it asks after', () => {
    const race = move(0, {
      kind: 'call_parallel',
      join: { kind: 'first_success' },
      branches: [
        { tool: 't', args: {} },
        { tool: 't', args: {} },
      ],
    });
    const both = [race, spawned('a', { agentCall: true }), spawned('b', { call: 1, agentCall: true })];
    const asksOf = (reason: TaskPause['reason'], asOf = 3): EntryBody => ({
      kind: 'task_paused',
      task: 'a',
      pauses: [{ ...taskPause, reason }],
      asOf,
    });
    const won = [taskEnded('b'), ended(0, 1)];
    for (const [entries, is] of [
      [[asksOf('await_input'), ...won], false],
      [[asksOf('in_doubt'), ...won], true],
      [[asksOf('await_input'), ...won, asksOf('approval_required', 9)], true],
      [[asksOf('await_input')], true],
    ] as const) {
      const state = fold(...both, ...entries);
      expect([isPaused(state), answerable(state).length]).toEqual([is, is ? 1 : 0]);
    }
  });

  it('whoever waits for the run is told once', () => {
    const watched: EntryBody = { kind: 'watched', by: 'w' };
    expect(fold(watched, watched)).toMatchObject({ watchers: ['w'], messagesTaken: 2 });
  });
});

describe('a group', () => {
  it('TK-19 is open, sealed by its last task or by an await, and over with its entry', () => {
    const status = (...bodies: readonly EntryBody[]): unknown => groupView(fold(...bodies), 'g')?.status;
    expect(status(spawnBoth, spawned('a'))).toBe('open');
    expect(status(...both)).toBe('sealed');
    expect(status(spawnBoth, spawned('a'), ended(0, 0), ended(0, 1), awaitMove(1), awaits(1, { group: 'g' }))).toBe(
      'sealed',
    );
    expect(status(...both, groupEnded)).toBe('completed');
    expect(groupView(fold(...both), 'none')).toBeUndefined();
    const cut: EntryBody = { kind: 'group_ended', group: 'g', status: 'cancelled', reason: 'fail-fast:x' };
    expect(groupView(fold(...both, cut), 'g')).toMatchObject({
      status: 'cancelled',
      reason: 'fail-fast:x',
      endedAt: 106,
    });
  });

  it('what kind it is its first task says', () => {
    const state = fold(spawnBoth, spawned('a', { failFast: true, quorum: 2 }), spawned('b', { call: 1, quorum: 9 }));
    expect(state.groups).toEqual([{ id: 'g', sealed: false, failFast: true, quorum: 2 }]);
  });

  it('TK-34 TK-37 comes by itself once, at the step that is next, unless all of it was asked for', () => {
    const ends = [taskEnded('a'), taskEnded('b')];
    const alone = fold(...both, ...ends, groupEnded);
    expect(alone.background).toMatchObject([{ atStep: 1, group: { id: 'g', members: [{ id: 'a' }, { id: 'b' }] } }]);
    expect(fold(...both, awaitMove(1), awaits(1, { group: 'g' }), ...ends, groupEnded).background).toEqual([]);
    const one = fold(...both, awaitMove(1), awaits(1), ...ends, ended(1, 0), groupEnded);
    expect(one.background).toMatchObject([{ atStep: 2, group: { id: 'g' } }]);
    const eachTaken = fold(
      calls(0, {}, {}),
      spawned('a', { retained: true }),
      spawned('b', { call: 1, retained: true, seal: true }),
      ...ends,
      ended(0, 0),
      ended(0, 1),
      groupEnded,
    );
    expect(eachTaken.background).toEqual([]);
  });
});

describe('the budget of a run with tasks', () => {
  const limited: Started = { ...STARTED, limits: { steps: 10, costMicroUsd: 100, tokens: 1_000 } };
  const share = { steps: 4, costMicroUsd: 40, tokens: 400 };
  const lent = [spawnBoth, spawned('a', { reserved: share }), ended(0, 0), ended(0, 1)];

  it('what is set aside for a task is gone, and what it did not use comes back with its end', () => {
    expect(leftOf(foldFrom(limited, ...lent))).toEqual({ steps: 5, costMicroUsd: 60, tokens: 600 });
    const used = { steps: 1, inputTokens: 30, outputTokens: 20, costMicroUsd: 7 };
    expect(leftOf(foldFrom(limited, ...lent, taskEnded('a', { usage: used })))).toEqual({
      steps: 8,
      costMicroUsd: 93,
      tokens: 950,
    });
  });

  it('a task gets what it asks for as far as it is there, and half of what is left otherwise', () => {
    const state = foldFrom({ ...limited, limits: { ...limited.limits, deadlineAt: 900 } }, ...lent);
    expect(shareFor(state)).toHaveProperty('limits', { steps: 3, costMicroUsd: 30, tokens: 300, deadlineAt: 900 });
    expect(shareFor(state, { steps: 99, costMicroUsd: 1, deadlineAt: 800 })).toEqual({
      limits: { steps: 5, costMicroUsd: 1, tokens: 300, deadlineAt: 800 },
      reserved: { steps: 5, costMicroUsd: 1, tokens: 300 },
    });
    expect(shareFor(fold(), { steps: 7 })).toEqual({ limits: { steps: 7 }, reserved: {} });
    expect(shareFor(state, { steps: 0 })).toEqual({ lacks: 'steps' });
  });

  it('a limit that only tasks under way stand at is lent: they may give some of it back', () => {
    const all = spawned('a', { reserved: { steps: 9 } });
    const state = foldFrom(limited, spawnBoth, all, ended(0, 0), ended(0, 1));
    expect(reachedLimit(state)).toEqual({ axis: 'steps', lent: true });
    const used = { ...NOTHING, steps: 9 };
    expect(
      reachedLimit(foldFrom(limited, spawnBoth, all, ended(0, 0), ended(0, 1), taskEnded('a', { usage: used }))),
    ).toEqual({
      axis: 'steps',
      lent: false,
    });
  });
});

describe('what is found out on the way', () => {
  it('a run that was accepted with other code goes on with it, and renamings add up', () => {
    const pin = { version: '2', tools: { t: 'x' } };
    const first: EntryBody = { kind: 'repinned', agent: 'p2', pin, renamedTools: { a: 'b' } };
    const second: EntryBody = { kind: 'repinned', agent: 'p2', pin, renamedTools: { c: 'd' } };
    expect(fold(first, second)).toMatchObject({ agent: 'p2', pin, renamedTools: { a: 'b', c: 'd' } });
  });

  it('a round that brings nothing new is kept, and the watch over it begins anew when somebody lets the run go on', () => {
    const round: EntryBody = { kind: 'no_progress', step: 1, period: 1, times: 3 };
    const held: EntryBody = { kind: 'paused', token: 'p', reason: 'constraints_conflict' };
    const state = fold(calls(0, {}), ended(0, 0), round, held);
    expect(state).toMatchObject({ noProgress: { step: 1, period: 1, times: 3 }, watchedFrom: 0 });
    const resumed: EntryBody = { kind: 'resumed', token: 'p', verdict: 'resume' };
    expect(fold(calls(0, {}), ended(0, 0), round, held, resumed).watchedFrom).toBe(1);
  });
});

function branchesOf(moved: EntryBody): readonly Branch[] {
  return moved.kind === 'moved' && moved.decision.kind === 'call_parallel' ? moved.decision.branches : [];
}
