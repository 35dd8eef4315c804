/** A `once` call of which nobody knows whether it has happened holds its run until somebody, or `reconcile`, settles it. */
import { describe, expect, it } from 'vitest';
import type { Branch, Control, Decision, Json } from '#core';
import { memoryJournal } from '#journal';
import { type Run, sendControl } from '#runtime';
import { VirtualClock } from '#testing';
import type { Reconciled, Tool, ToolContext } from '#tools';
import { call, script, watched } from '../kit/decisions.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, observations, outcomes } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const ARGS = { to: 'Ana', euros: 5 };

/** What was done in the world, by key. */
function ledger() {
  const done: string[] = [];
  return { done, note: ({ idempotencyKey }: ToolContext) => void done.push(idempotencyKey) };
}

/** A process dies inside of its call of `pay`, and another one goes on. */
async function cutOff(more: Partial<Tool> = {}, decision: Decision = call('pay', ARGS)) {
  const clock = new VirtualClock();
  const shared = memoryJournal({ clock });
  const dying = cutJournal(shared);
  const { done, note } = ledger();
  const entered = gate();
  const dies = make(
    'pay',
    (_, context) => {
      note(context);
      entered.open();
      return new Promise(() => {});
    },
    { effect: 'once' },
  );
  const { id } = await start(world({ planner: script(decision), tools: [dies], journal: dying.journal, clock }));
  await entered.opened;
  dying.cut();
  clock.advance(5_001);
  const pays = make(
    'pay',
    (_, context) => {
      note(context);
      return 'paid';
    },
    { effect: 'once', ...more },
  );
  const planner = watched(script(decision));
  const second = world({ planner, tools: [pays], journal: shared, clock });
  const run = second.runtime.run(id);
  await run.resume();
  return { run, done, planner, clock, shared, second, id };
}

async function doubtOf(run: Run) {
  const result = await run.result();
  if (result.status !== 'paused') throw new Error(`The run is not paused: ${JSON.stringify(result)}`);
  const doubt = result.pauses.find(({ reason }) => reason === 'in_doubt');
  if (doubt === undefined) throw new Error('Nothing is in doubt.');
  return doubt;
}

async function refusalOf(answer: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await answer;
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error('It was not refused.');
}

describe('RL-33 a call that was under way when its process died', () => {
  it('holds the run: the pause has the call, its arguments whole, its key, since when and why', async () => {
    const { run, done, planner, shared } = await cutOff();
    const { payload, step, call } = await doubtOf(run);
    const [began] = await entriesOf(shared, run, 'call_began');
    expect(payload).toEqual({
      tool: 'pay',
      args: ARGS,
      key: done[0],
      since: began?.at,
      why: 'The call was under way when its process died, or stopped.',
      can_look_up: false,
    });
    expect([step, call, planner.views.length]).toEqual([0, 0, 0]);
  });

  it('happened: its value is the one that is given, and nothing is made', async () => {
    const { run, done, planner } = await cutOff();
    const { token } = await doubtOf(run);
    await run.settle(token, { happened: true, value: { receipt: 7 }, reason: 'the bank says so' });
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { calls: 1 } });
    expect(observations(await run.state())).toEqual([{ receipt: 7 }]);
    expect(done).toHaveLength(1);
    expect(planner.views[0]?.trajectory.step(0)?.calls[0]?.outcome).toEqual({ kind: 'value', value: { receipt: 7 } });
  });

  it('did not happen: it is made, once, under the same key', async () => {
    const { run, done } = await cutOff();
    await run.settle((await doubtOf(run)).token, { happened: false });
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { calls: 1 } });
    expect(observations(await run.state())).toEqual(['paid']);
    expect(done).toHaveLength(2);
    expect(new Set(done).size).toBe(1);
  });

  it('is looked up again when somebody resumes the run', async () => {
    const answers: Reconciled[] = [{ status: 'unknown' }, { status: 'unknown' }, { status: 'done', value: 'found' }];
    const { run, done } = await cutOff({ reconcile: () => answers.shift() as Reconciled });
    const first = await doubtOf(run);
    expect(first.payload).toMatchObject({ can_look_up: true });
    await run.resume();
    const second = await doubtOf(run);
    expect(second.token).not.toBe(first.token);
    await run.resume({ token: second.token });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect([observations(await run.state()), done.length, answers]).toEqual([['found'], 1, []]);
  });

  it('a look-up that fails in a way that may pass is tried again', async () => {
    let asked = 0;
    const { run, done, clock } = await cutOff({
      reconcile: () => {
        asked += 1;
        if (asked < 3) throw Object.assign(new Error('busy'), { retryable: true });
        return { status: 'done', value: 'found' };
      },
    });
    await until(async () => {
      clock.advance(1_000);
      return (await run.state()).ending !== null;
    });
    expect([observations(await run.state()), done.length, asked]).toEqual([['found'], 1, 3]);
  });

  it('with nothing to look it up by, resume says what to do', async () => {
    const { run } = await cutOff();
    await doubtOf(run);
    const { code, message } = await refusalOf(run.resume());
    expect(code).toBe('payload_invalid');
    expect(message).toContain('Settle the call');
    await doubtOf(run);
  });

  it.each([
    ['approve', (run: Run) => run.approve()],
    ['reject', (run: Run) => run.reject()],
    ['a value of a call that did not happen', (run: Run) => run.steer('SETTLE', { happened: false, value: 1 })],
    ['nothing about whether it happened', (run: Run) => run.steer('SETTLE', { value: 1 })],
    ['nothing at all', (run: Run) => run.settle(undefined, undefined as never)],
    ['a value that does not fit', (run: Run) => run.settle(undefined, { happened: true, value: 'seven' })],
  ])('%s is refused, and loses nothing', async (_, answer) => {
    const output = { type: 'object', properties: { receipt: { type: 'number' } }, required: ['receipt'] } as const;
    const { run, done } = await cutOff({ outputSchema: output });
    const { token } = await doubtOf(run);
    expect((await refusalOf(answer(run))).code).toBe('payload_invalid');
    expect((await doubtOf(run)).token).toBe(token);
    await run.settle(token, { happened: true, value: { receipt: 1 } });
    expect([observations(await run.state()), done.length]).toEqual([[{ receipt: 1 }], 1]);
  });

  it('a pause that is none of a call in doubt is not settled', async () => {
    const made = world({ planner: script({ kind: 'request_pause', reason: 'await_input' }) });
    const run = await start(made);
    await run.result();
    expect((await refusalOf(run.settle(undefined, { happened: true }))).code).toBe('payload_invalid');
  });

  it('the planner is told where the tool says so', async () => {
    const { run, done } = await cutOff({ inDoubt: 'tell' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect([outcomes(await run.state()), done.length]).toEqual([['unknown'], 1]);
  });

  it('a tool that says neither hold nor tell is refused', () => {
    const wrong = make('pay', () => 1, { effect: 'once', inDoubt: 'guess' as never });
    expect(() => world({ planner: script(), tools: [wrong] })).toThrow(/'hold' or 'tell'/);
  });

  it('a cancel with the words of a dismissal is a cancel: only a run above dismisses', async () => {
    const { run } = await cutOff();
    await doubtOf(run);
    await run.steer('CANCEL', { dismissed: true, dismisses: true });
    await until(async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
  });

  it('a sender cannot dismiss beside the payload either', async () => {
    const { run, shared } = await cutOff();
    await doubtOf(run);
    const forged: Control = { id: 'forged', type: 'CANCEL', dismisses: true };
    await sendControl(shared, run.id, forged);
    expect((await shared.inbox(run.id)).map(({ message }) => message)).toEqual([{ id: 'forged', type: 'CANCEL' }]);
  });

  it('a cancel ends the run all the same: what became of the call stays unknown', async () => {
    const { run, done } = await cutOff();
    await doubtOf(run);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect([outcomes(await run.state()), done.length]).toEqual([['unknown'], 1]);
  });

  it('no time limit of the run ends it: it ends when the call is settled', async () => {
    const { run, clock, shared } = await cutOff();
    const { token } = await doubtOf(run);
    expect((await shared.get(run.id))?.wakeAt).toBeNull();
    clock.advance(1_000_000);
    await quiet();
    await run.settle(token, { happened: true });
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('can be settled beside siblings that go on', async () => {
    const branches: Branch[] = [
      { id: 'a', tool: 'pay', args: ARGS },
      { id: 'b', tool: 'pay', args: { to: 'Bo' }, after: ['a'] },
    ];
    const { run, done } = await cutOff({}, { kind: 'call_parallel', branches });
    const { token } = await doubtOf(run);
    expect(done).toHaveLength(1);
    await run.settle(token, { happened: true });
    await run.result();
    expect([outcomes(await run.state()), done.length]).toEqual([['value', 'value'], 2]);
  });
});

/** A tool that has done what it does and is then stopped, or is too slow. */
function slow(how: (context: ToolContext) => Promise<unknown>, more: Partial<Tool> = {}) {
  const { done, note } = ledger();
  const tries = [how];
  const tool = make(
    'pay',
    (_, context) => {
      note(context);
      return tries.shift()?.(context) ?? 'paid';
    },
    { effect: 'once', timeoutMs: 100, ...more },
  );
  return { done, tool };
}

const honours = ({ signal }: ToolContext) => aborted(signal);
const ignores = () => new Promise(() => {});

async function timedOut({ tool }: { tool: Tool }) {
  const made = world({ planner: script(call('pay', ARGS)), tools: [tool] });
  const run = await start(made);
  await quiet();
  made.clock.advance(100);
  await quiet();
  made.clock.advance(1_000);
  return { run, ...made };
}

describe('a call that its time limit met under way', () => {
  it.each([
    ['honours', honours],
    ['ignores', ignores],
  ])('is in doubt when its tool %s the abort', async (_, how) => {
    const made = slow(how);
    const { run } = await timedOut(made);
    const { payload } = await doubtOf(run);
    expect(payload).toMatchObject({
      tool: 'pay',
      args: ARGS,
      key: made.done[0],
      why: 'pay did not end within 100 ms.',
    });
  });

  it('has its value when that comes in the grace of the abort', async () => {
    const { run } = await timedOut(slow(({ signal }) => aborted(signal).catch(() => 'just in time')));
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(observations(await run.state())).toEqual(['just in time']);
  });

  it('is looked up at once where that is possible', async () => {
    const { run } = await timedOut(slow(honours, { reconcile: () => ({ status: 'done', value: 'found' }) }));
    await run.result();
    expect(observations(await run.state())).toEqual(['found']);
  });

  it('that did not happen is an error, which the planner may try again', async () => {
    const { run } = await timedOut(slow(honours, { reconcile: () => ({ status: 'not_done' }) }));
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      kind: 'error',
      error: { code: 'tool_timeout', message: 'pay did not end within 100 ms. The call did not happen.' },
    });
  });

  it('that has not happened yet, with its tool at work still, stays in doubt, and is not made beside it', async () => {
    const late = gate<Json>();
    const made = slow(() => late.opened, { reconcile: () => ({ status: 'not_done' }) });
    const { run } = await timedOut(made);
    await run.settle((await doubtOf(run)).token, { happened: false });
    const { token, payload } = await doubtOf(run);
    expect([payload?.['why'], made.done.length]).toEqual(['An attempt that was given up is still running.', 1]);
    late.open('late');
    await quiet();
    await run.settle(token, { happened: false });
    await run.result();
    expect([observations(await run.state()), made.done.length]).toEqual([['paid'], 2]);
  });

  it.each(['pure', 'read', 'keyed'] as const)('of a %s tool is no doubt', async (effect) => {
    const { run } = await timedOut(slow(honours, { effect, retries: 0 }));
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_timeout' } });
  });
});

describe('a call that an abort met under way', () => {
  const beside = (join: Decision): Decision => join;
  const branches: Branch[] = [
    { id: 'pay', tool: 'pay', args: ARGS },
    { id: 'quick', tool: 'quick', args: {} },
  ];
  const wins: Decision = beside({ kind: 'call_parallel', branches, join: { kind: 'first_success' } });
  const fails: Decision = beside({ kind: 'call_parallel', branches, failFast: true });
  const finishes: Decision = beside({
    kind: 'call_parallel',
    plan: 'p',
    branches: [
      branches[0] as Branch,
      { id: 'end', tool: '_finish', args: 'done', after: ['quick'] },
      branches[1] as Branch,
    ],
  });

  async function stopped(decision: Decision, { tool }: { tool: Tool }) {
    const go = gate();
    const quick = make('quick', async () => {
      await go.opened;
      if (decision === fails) throw new Error('no');
      return 'first';
    });
    const made = world({ planner: script(decision), tools: [tool, quick] });
    const run = await start(made);
    await quiet();
    go.open();
    await quiet();
    made.clock.advance(1_000);
    return { run, ...made };
  }

  it.each([
    ['a join that has what it needs', wins, honours],
    ['a join that has what it needs, ignored', wins, ignores],
    ['a branch that failed fast', fails, honours],
    ['the end of a plan', finishes, honours],
    ['the end of a plan, ignored', finishes, ignores],
  ])('is in doubt: %s', async (_, decision, how) => {
    const made = slow(how, { timeoutMs: 60_000 });
    const { run } = await stopped(decision, made);
    const { token } = await doubtOf(run);
    await run.settle(token, { happened: true, value: 'it was paid' });
    await run.result();
    const state = await run.state();
    expect(state.steps[0]?.calls[0]?.outcome).toEqual({ kind: 'value', value: 'it was paid' });
    expect(made.done).toHaveLength(1);
  });

  it.each([wins, fails, finishes])('and did not happen, is not wanted any more', async (decision) => {
    const made = slow(honours, { timeoutMs: 60_000 });
    const { run } = await stopped(decision, made);
    await run.settle((await doubtOf(run)).token, { happened: false });
    await run.result();
    expect([(await run.state()).steps[0]?.calls[0]?.outcome.kind, made.done.length]).toEqual(['cancelled', 1]);
  });

  it('is looked up, although nothing else of it is wanted', async () => {
    const made = slow(honours, { timeoutMs: 60_000, reconcile: () => ({ status: 'done', value: 'found' }) });
    const { run } = await stopped(wins, made);
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toEqual({ kind: 'value', value: 'found' });
  });

  it.each([
    wins,
    fails,
    finishes,
  ])('is looked up again also when it was resumed before it was in doubt', async (decision) => {
    const first = gate<Reconciled>();
    const answers = [first.opened, { status: 'done', value: 'found' } as const];
    const made = slow(honours, { timeoutMs: 60_000, reconcile: () => answers.shift() as Reconciled });
    const { run } = await stopped(decision, made);
    await run.steer('RESUME', {}, { until: 'stored' });
    await quiet();
    first.open({ status: 'unknown' });
    await until(async () => (await run.result()).status === 'finished');
    const state = await run.state();
    expect([state.steps[0]?.calls[0]?.outcome, answers]).toEqual([{ kind: 'value', value: 'found' }, []]);
  });

  it('is in doubt when the run’s own time is over, and the run ends once it is settled', async () => {
    const made = slow(honours, { timeoutMs: 60_000 });
    const around = world({ planner: script(call('pay', ARGS)), tools: [made.tool] });
    const run = await start(around, { limits: { deadlineAt: around.clock.now() + 500 } });
    await quiet();
    around.clock.advance(500);
    const { token } = await doubtOf(run);
    await run.settle(token, { happened: false });
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    expect([outcomes(await run.state()), made.done.length]).toEqual([['cancelled'], 1]);
  });

  it('is unknown when somebody cancels the run', async () => {
    const made = slow(honours, { timeoutMs: 60_000 });
    const run = await start(world({ planner: script(call('pay', ARGS)), tools: [made.tool] }));
    await quiet();
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(outcomes(await run.state())).toEqual(['unknown']);
  });

  it('is found out by the next owner when its process is closed', async () => {
    const made = slow(honours, { timeoutMs: 60_000 });
    const around = world({ planner: script(call('pay', ARGS)), tools: [made.tool] });
    const { id } = await start(around);
    await quiet();
    await around.runtime.close();
    const next = world({ planner: script(call('pay', ARGS)), tools: [made.tool], journal: around.journal });
    const run = next.runtime.run(id);
    await run.resume();
    await doubtOf(run);
    expect(made.done).toHaveLength(1);
  });
});

describe('a task with a call in doubt', () => {
  it('is settled from the top', async () => {
    const spawn: Decision = {
      kind: 'spawn_task',
      task: 'foreground',
      spec: { description: 'pays', query: 'pay' },
    };
    const made = slow(honours);
    const planner = (run: { query: string; trajectory: { count: number } }): Decision =>
      run.trajectory.count > 0
        ? { kind: 'finish', reason: 'goal', payload: 'done' }
        : run.query === 'pay'
          ? call('pay', ARGS)
          : spawn;
    const around = world({ planner, tools: [made.tool] });
    const run = await start(around);
    await quiet();
    around.clock.advance(100);
    await quiet();
    around.clock.advance(1_000);
    const doubt = await doubtOf(run);
    expect(doubt.run).not.toBe(run.id);
    expect(doubt.payload).toMatchObject({ tool: 'pay', args: ARGS });
    await run.settle(doubt.token, { happened: true, value: 'settled' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made.done).toHaveLength(1);
  });
});
