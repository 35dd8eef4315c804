/** The run loop: who is asked, how often, with what, and how a run ends. */
import { describe, expect, it } from 'vitest';
import { answerEnvelope } from '../../src/core/answer.ts';
import type { Decision, FinishReason } from '../../src/core/decision.ts';
import { local } from '../../src/core/identity.ts';
import type { Planner, RunView } from '../../src/core/planner.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import {
  advanceUntil,
  call,
  changed,
  collect,
  echo,
  entriesOf,
  finish,
  gate,
  kindsOf,
  make,
  observations,
  only,
  outcomes,
  script,
  start,
  watched,
  world,
} from './support.ts';

const forever = (): Decision => call('echo');

describe('what a run needs to begin', () => {
  it('RL-01 refuses a runtime without a planner', () => {
    expect(() => createRuntime({ planner: undefined as never })).toThrow(expect.objectContaining({ code: 'no_planner' }));
    expect(() => createRuntime({ planner: {} as never })).toThrow(expect.objectContaining({ code: 'no_planner' }));
  });

  it.each(['tenant', 'user', 'session', 'run'] as const)('RL-01, PX-06 fails closed without %s', async (part) => {
    const planner = watched(script());
    const { runtime } = world({ planner });
    for (const value of [undefined, '', ' \t']) {
      const identity = { ...local('ana'), [part]: value } as never;
      const refused = runtime.start('q', { identity });
      await expect(refused).rejects.toMatchObject({ code: 'identity_required', data: { missing: [part] } });
    }
    await expect(runtime.start('q', undefined as never)).rejects.toMatchObject({ code: 'identity_required' });
    expect(await runtime.list()).toEqual([]);
    expect(planner.views).toEqual([]);
  });

  it('PC-30 takes a plain async function for a planner', async () => {
    const run = await start(world({ planner: async () => finish('hello') }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', answer: 'hello' });
  });

  it('RL-16 has written that the run started before the planner is asked', async () => {
    const heads: (number | undefined)[] = [];
    const { journal, ...rest } = world({
      planner: async (run) => {
        heads.push((await journal.get(run.identity.run))?.head);
        return finish();
      },
    });
    await (await start(rest)).result();
    expect(heads).toEqual([1]);
  });

  it('RL-16 never asks the planner when the start cannot be written', async () => {
    const planner = watched(script());
    const { runtime, journal } = world({ planner });
    await journal.close();
    await expect(start({ runtime })).rejects.toMatchObject({ code: 'journal_closed' });
    expect(planner.views).toEqual([]);
  });
});

describe('one step after the other', () => {
  it('RL-03 asks a planner that finishes at once just once', async () => {
    const planner = watched(script());
    const { journal, ...rest } = world({ planner });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done', usage: { steps: 0 } });
    expect(planner.views).toHaveLength(1);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'finished']);
  });

  it('RL-09, RL-27 appends a step with its outcome, times and the model’s words', async () => {
    const { clock, ...rest } = world({
      planner: (run) =>
        run.trajectory.count > 0
          ? finish()
          : {
              decision: call('slow', { a: 1 }),
              text: 'I look',
              reasoning: 'why',
              usage: { inputTokens: 7, outputTokens: 2, costMicroUsd: 5 },
              providerState: { id: 'x' },
              provenance: { model: 'm' },
            },
      tools: [
        make('slow', (args) => {
          clock.advance(40);
          return { got: args };
        }),
      ],
    });
    const began = clock.now();
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ usage: { steps: 1, calls: 1, inputTokens: 7, outputTokens: 2 } });
    const [step] = (await run.state()).steps;
    expect(step).toMatchObject({
      index: 0,
      text: 'I look',
      reasoning: 'why',
      usage: { inputTokens: 7, outputTokens: 2, costMicroUsd: 5 },
      providerState: { id: 'x' },
      provenance: { model: 'm' },
      startedAt: began,
      endedAt: began + 40,
      calls: [{ outcome: { kind: 'value', value: { got: { a: 1 } } }, startedAt: began, endedAt: began + 40, attempts: 1 }],
    });
  });

  it('RL-10 goes on after a tool that failed, and shows the planner the error', async () => {
    const planner = watched(script(call('bad')));
    const run = await start(
      world({
        planner,
        tools: [
          make('bad', () => {
            throw Object.assign(new Error('no such city'), { code: 'not_there' });
          }),
        ],
      }),
    );
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const step = planner.views[1]?.trajectory.step(0);
    expect(step?.calls[0]?.outcome).toEqual({ kind: 'error', error: { code: 'not_there', message: 'no such city' } });
    expect(observations(await run.state())).toEqual([{ error: { code: 'not_there', message: 'no such city' } }]);
  });

  it('RL-13 carries no reasoning over to the next step', async () => {
    const run = await start(
      world({
        planner: ({ trajectory }) =>
          trajectory.count === 0 ? { decision: forever(), reasoning: 'why' } : trajectory.count === 1 ? forever() : finish(),
        tools: [echo],
      }),
    );
    const decisions = only(await collect(run), 'planner.decision');
    expect(decisions.map((event) => event.reasoningTrace)).toEqual(['why', undefined, undefined]);
    expect(decisions.map((event) => event.reasoningChars)).toEqual([3, 0, 0]);
  });

  it('RL-14 keeps everything of a step that made several calls for the next one', async () => {
    const planner = watched((run) =>
      run.trajectory.count > 0
        ? finish()
        : {
            decision: {
              kind: 'call_parallel',
              branches: [
                { tool: 'echo', args: { n: 1 }, callId: 'a' },
                { tool: 'echo', args: { n: 2 }, callId: 'b' },
              ],
            },
            providerState: { thread: 1 },
          },
    );
    const run = await start(world({ planner, tools: [echo] }));
    await run.result();
    const step = planner.views[1]?.trajectory.step(0);
    expect(step).toMatchObject({ providerState: { thread: 1 }, calls: [{ outcome: { value: { n: 1 } } }, { outcome: { value: { n: 2 } } }] });
    expect(step?.decision).toMatchObject({ branches: [{ callId: 'a' }, { callId: 'b' }] });
  });

  it('PC-06 gives each step a fresh frozen view that later steps do not change', async () => {
    const planner = watched(script(forever(), forever()));
    const run = await start(world({ planner, tools: [echo] }));
    await run.result();
    const [first, second] = planner.views as [RunView, RunView];
    expect(first).not.toBe(second);
    expect([first.trajectory.count, second.trajectory.count]).toEqual([0, 1]);
    expect(first.trajectory.steps).toEqual([]);
    expect(first.trajectory.step(0)).toBeUndefined();
    expect(() => Object.assign(first, { goal: 'mine' })).toThrow(TypeError);
    expect(() => Object.assign(first.trajectory, { count: 9 })).toThrow(TypeError);
    expect(() => Object.assign(second.trajectory.step(0) ?? {}, { index: 9 })).toThrow(TypeError);
    expect(() => Object.assign(first.identity, { tenant: 'other' })).toThrow(TypeError);
  });

  it('PC-12 tells the planner the recorded time, and stamps every entry and event by the clock', async () => {
    const planner = watched(script(call('tick')));
    const { clock, journal, ...rest } = world({ planner, tools: [make('tick', () => clock.advance(1_000))] });
    const began = clock.now();
    const run = await start(rest);
    const events = await collect(run);
    expect(planner.views.map((view) => view.startedAt)).toEqual([began, began]);
    expect(events.map((event) => event.occurredAt - began)).toEqual([0, 0, 0, 1_000, 1_000, 1_000]);
    expect((await journal.read(run.id)).map((entry) => entry.at - began)).toEqual([0, 0, 1_000, 1_000, 1_000]);
  });

  it('PC-17 shows and runs only the tools whose scopes the run holds', async () => {
    const seen: string[][] = [];
    const ran: string[] = [];
    const named = (name: string, scopes: readonly string[]) => make(name, () => ran.push(name), { scopes });
    const { runtime } = world({
      planner: (run) => {
        seen.push(run.tools.list().map((tool) => tool.name));
        if (run.trajectory.count === 0) expect(run.tools.get('admin')).toBeUndefined();
        return run.trajectory.count === 0 ? call('admin') : run.trajectory.count === 1 ? call('mail') : finish();
      },
      tools: [named('admin', ['root']), named('mail', ['mail']), named('both', ['mail', 'root']), named('free', [])],
    });
    const run = await start({ runtime }, { scopes: ['mail'] });
    await run.result();
    expect(seen[0]).toEqual(['free', 'mail']);
    expect(ran).toEqual(['mail']);
    const [refused] = (await run.state()).steps;
    expect(refused?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'tool_not_found' } });
    // The same words as for a name that nobody knows.
    expect(JSON.stringify(refused?.calls[0]?.outcome)).not.toContain('scope');
  });
});

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
          { kind: 'call_parallel', branches: [{ tool: 'echo', args: {} }, { tool: 'echo', args: {} }] },
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

  it('RL-05, RL-25 ends at the step limit as no_path, never as an exception', async () => {
    const planner = watched(forever);
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 5 } });
    const events = await collect(run);
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'no_path',
      metadata: { max_steps_exceeded: true, max_steps: 5, steps_observed: 5 },
    });
    expect(planner.views).toHaveLength(5);
    expect(only(events, 'planner.max_steps_exceeded')).toMatchObject([{ maxSteps: 5, stepsObserved: 5, lastTool: 'echo' }]);
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

  it('RL-28 fails a program’s invalid decision at once', async () => {
    const planner = watched(() => ({ kind: 'call_tool', tool: '', args: {} }));
    const run = await start(world({ planner }));
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision', data: { step: 0 } } });
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
    const cancelled = run.cancel({ hard: false });
    opened.open();
    await cancelled;
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
