/** How a run ends. */
import { describe, expect, it } from 'vitest';
import { answerEnvelope, type Decision, type FinishReason, type Planner, type RunView } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { VirtualClock } from '#testing';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, kindsOf, outcomes } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { advanceUntil, gate } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const forever = (): Decision => call('echo');

describe('how a run ends', () => {
  it.each([
    ['goal', 'finished'],
    ['no_path', 'finished'],
    ['cancelled', 'cancelled'],
    ['deadline_exceeded', 'finished'],
    ['constraints_conflict', 'finished'],
  ] satisfies [FinishReason, string][])('RL-17 records a finish with the reason %s as %s', async (reason, status) => {
    const { journal, ...rest } = world({ planner: () => ({ kind: 'finish', reason, payload: { answer: 'A' } }) });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ status: 'finished', reason, answer: 'A' });
    expect((await journal.get(run.id))?.status).toBe(status);
  });

  it('RL-17 gives the answer envelope with steps and calls counted', async () => {
    const run = await start(
      world({
        planner: script(
          forever(),
          {
            kind: 'call_parallel',
            branches: [
              { tool: 'echo', args: {} },
              { tool: 'echo', args: {} },
            ],
          },
          finish({ answer: 'A' }),
        ),
        tools: [echo],
      }),
    );
    await run.result();
    const { steps } = await run.state();
    expect(answerEnvelope('goal', { answer: 'A' }, steps)).toBe(
      '{"answer":"A","finish_reason":"goal","tool_calls_seen":2,"tool_calls":3}',
    );
  });

  it('RL-05, RL-25, RA-12 ends at the step limit as max_steps, never as an exception', async () => {
    const planner = watched(forever);
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 5 } });
    const events = await collect(run);
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'max_steps',
      metadata: { max_steps_exceeded: true, max_steps: 5, steps_observed: 5 },
    });
    expect(planner.views).toHaveLength(5);
    expect(only(events, 'planner.max_steps_exceeded')).toMatchObject([
      { maxSteps: 5, stepsObserved: 5, lastTool: 'echo' },
    ]);
    expect(events.at(-1)?.type).toBe('planner.finish');
  });

  it('RL-05 has the limit 64 when nothing is said', async () => {
    const planner = watched(forever);
    const run = await start(world({ planner, tools: [echo] }));
    expect(await run.result()).toMatchObject({ metadata: { max_steps: 64 } });
    expect(planner.views).toHaveLength(64);
  });

  it('RL-08 fails the run with the planner’s error and the step it was at', async () => {
    const { journal, ...rest } = world({
      planner: (run) => {
        if (run.trajectory.count === 2) throw new RangeError('no idea');
        return forever();
      },
      tools: [echo],
    });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: {
        code: 'planner_failed',
        message: 'The planner failed at step 2: no idea',
        data: { step: 2, cause: { code: 'RangeError', message: 'no idea' } },
      },
    });
    expect((await journal.get(run.id))?.status).toBe('failed');
  });

  it.each([undefined, null, 'finish', 7])('PC-03 fails the run when the planner returns %s', async (nothing) => {
    const run = await start(world({ planner: () => nothing as never }));
    const result = await run.result();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'planner_failed', data: { step: 0 } } });
  });

  it.each(['x', null, undefined, 0])('ER-05 words a thrown %s', async (thrown) => {
    const run = await start(
      world({
        planner: () => {
          throw thrown;
        },
      }),
    );
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { message: `The planner failed at step 0: ${thrown}` },
    });
  });

  const branches = Array.from({ length: 51 }, () => ({ tool: 'echo', args: {} }));
  it.each<[string, Decision, string]>([
    ['DV-02 a call without a tool', { kind: 'call_tool', tool: '', args: {} }, 'invalid_decision'],
    ['DV-03 no branches', { kind: 'call_parallel', branches: [] }, 'invalid_decision'],
    ['DV-04 51 branches', { kind: 'call_parallel', branches }, 'parallel_cap_exceeded'],
    ['DV-05 an unknown reason to finish', { kind: 'finish', reason: 'nope' as 'goal' }, 'invalid_decision'],
    ['DV-06 an unknown reason to pause', { kind: 'request_pause', reason: '' as 'await_input' }, 'invalid_decision'],
  ])('RL-28 %s: nothing of it is carried out; a program’s run fails, a model is told and does better', async (_, bad, code) => {
    let ran = 0;
    const tools = [make('echo', () => (ran += 1))];
    const { journal, ...made } = world({ planner: () => bad, tools });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code } });
    expect(await kindsOf(journal, run)).toEqual(['started', 'failed']);
    const next = watched((view) => (view.rejections === 0 ? bad : finish('better')));
    const told = await start(world({ planner: { name: 'model', modelDriven: true, next }, tools }));
    expect(await told.result()).toMatchObject({ status: 'finished', answer: 'better' });
    expect(next.views[1]?.trajectory.step(0)).toMatchObject({ calls: [], error: { code } });
    expect(ran).toBe(0);
  });

  it('RL-28 fails a program’s invalid decision at once', async () => {
    const planner = watched(() => ({ kind: 'call_tool', tool: '', args: {} }));
    const run = await start(world({ planner }));
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_decision', data: { step: 0 } },
    });
    expect(planner.views).toHaveLength(1);
  });

  it('RL-28 tells a model what was wrong, and goes on when it does better', async () => {
    const views: RunView[] = [];
    const planner: Planner = {
      name: 'model',
      modelDriven: true,
      next: (run) => {
        views.push(run);
        const decision = run.rejections < 2 ? ({ kind: 'no_such_kind', x: 1 } as never) : finish('better');
        return { decision, text: 'hm', usage: { inputTokens: 10, costMicroUsd: 3 } };
      },
    };
    const { journal, ...rest } = world({ planner });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({
      status: 'finished',
      answer: 'better',
      usage: { steps: 2, inputTokens: 30, costMicroUsd: 9 },
    });
    expect(views.map((view) => view.rejections)).toEqual([0, 1, 2]);
    expect(views[1]?.trajectory.step(0)).toMatchObject({ text: 'hm', calls: [], error: { code: 'invalid_decision' } });
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'moved', 'moved', 'finished']);
  });

  it('RL-28 fails a model’s run after three decisions in a row that did not pass', async () => {
    const planner: Planner & { asked: number } = {
      name: 'model',
      modelDriven: true,
      asked: 0,
      next: () => {
        planner.asked += 1;
        return { kind: 'call_parallel', branches: [] };
      },
    };
    const run = await start(world({ planner }));
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
    expect(planner.asked).toBe(3);
  });

  it('RL-29 fails, and does not finish with {}, when the payload is no JSON', async () => {
    const run = await start(world({ planner: () => finish({ when: (() => 1) as never }) }));
    const result = await run.result();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
    expect(JSON.stringify(result)).toContain('payload.when');
  });

  it('PC-28 ends a run whose deadline has passed before the planner is asked', async () => {
    const planner = watched(script());
    const made = world({ planner });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() - 3_600_000 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(planner.views).toEqual([]);
  });

  it('RL-30 goes on when the fault hook throws, and warns of both', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): number => warnings.push(warning);
    process.on('warning', note);
    const opened = gate();
    const clock = new VirtualClock();
    const journal = changed(memoryJournal({ clock }), { renew: () => Promise.reject(new Error('renewal is broken')) });
    const runtime = createRuntime({
      planner: script(call('wait')),
      tools: [make('wait', () => opened.opened)],
      journal,
      clock,
      onFault: () => {
        throw new Error('the hook is broken');
      },
    });
    const run = await start({ runtime });
    await advanceUntil(clock, () => warnings.length >= 2);
    opened.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    process.off('warning', note);
    expect(warnings.map((warning) => warning.message).slice(0, 2)).toEqual(['renewal is broken', 'the hook is broken']);
    await runtime.close();
  });

  it('RL-26, PC-09 ends as cancelled whatever the planner wants', async () => {
    const planner = watched(forever);
    const entered = gate();
    const { journal, ...rest } = world({
      planner,
      tools: [
        make('echo', async (_, { signal }) => {
          entered.open();
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
          return 'late but there';
        }),
      ],
    });
    const run = await start(rest);
    await entered.opened;
    await run.cancel({ reason: 'enough' });
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'cancelled',
      metadata: { steering: 'cancelled', run_id: run.id, reason: 'enough' },
    });
    expect(planner.views).toHaveLength(1);
    expect((await journal.get(run.id))?.status).toBe('cancelled');
    expect(outcomes(await run.state())).toEqual(['value']);
  });

  it('PC-10 says cancelled, not no_path, when the step limit is reached too', async () => {
    const entered = gate();
    const opened = gate();
    const run = await start(
      world({
        planner: forever,
        tools: [
          make('echo', async () => {
            entered.open();
            await opened.opened;
          }),
        ],
      }),
      { limits: { steps: 1 } },
    );
    await entered.opened;
    await run.cancel({ hard: false });
    opened.open();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
  });

  it('RL-06, ER-06 aborts the planner on a hard cancel, and drops what it says afterwards', async () => {
    const entered = gate();
    let reason: unknown;
    const { journal, ...rest } = world({
      planner: async (_, signal) => {
        entered.open();
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        reason = signal.reason;
        return finish('too late');
      },
    });
    const run = await start(rest);
    await entered.opened;
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(reason).toMatchObject({ code: 'cancelled' });
    expect(await entriesOf(journal, run, 'moved')).toEqual([]);
  });
});
