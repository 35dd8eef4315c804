import { describe, expect, it } from 'vitest';
import { asPlanner, DECISION_NAMES, type Decision, type Planner, resolveWakeMode } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, local, tool } from '#pilotage';
import { finish } from '#planners/finish';
import { runView } from '#testing';
import { call } from '../kit/decisions.ts';
import { record, scripted } from '../kit/recorded.ts';

const quiet = new AbortController().signal;
const works = tool({
  name: 'works',
  description: 'd',
  inputSchema: { type: 'object' },
  effect: 'pure',
  execute: () => 'w',
});

describe('a planner', () => {
  it('PC-01 is asked once a step, after the step before was carried out', async () => {
    const { views, result } = await record([call('works'), call('works')], { tools: [works] });
    expect(result.status).toBe('finished');
    expect(views.map((view) => view.trajectory.count)).toEqual([0, 1, 2]);
    expect(views[2]?.trajectory.steps.map(({ calls }) => calls[0]?.outcome)).toEqual([
      { kind: 'value', value: 'w' },
      { kind: 'value', value: 'w' },
    ]);
  });

  it('PC-02 has six decisions, and no other', () => {
    expect(Object.keys(DECISION_NAMES).sort()).toEqual([
      'await_task',
      'call_parallel',
      'call_tool',
      'finish',
      'request_pause',
      'spawn_task',
    ]);
  });

  it.each([
    undefined,
    null,
    'finish',
    5,
  ])('PC-03 that gives %j fails its run, and the error names the step', async (nothing) => {
    const { result } = await record([call('works'), () => nothing as never], { tools: [works] });
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', message: expect.stringContaining('step 1'), data: { step: 1 } },
    });
  });

  it('PC-13 the finish stub ends with its payload, and metadata to which the run is added', () => {
    const metadata = { by: 'stub' };
    const planner = finish({ payload: { a: 1 }, metadata });
    for (const run of ['r1', 'r2']) {
      expect(planner.next(runView({ identity: local('ana', { run }) }), quiet)).toEqual({
        kind: 'finish',
        reason: 'goal',
        payload: { a: 1 },
        metadata: { by: 'stub', run_id: run },
      });
    }
    expect(metadata).toEqual({ by: 'stub' });
    expect(resolveWakeMode(planner)).toBe('push');
  });

  it('PC-14 without a wake mode is push; with one, that', () => {
    const next = (): Decision => ({ kind: 'finish', reason: 'goal' });
    expect(resolveWakeMode({ name: 'p', next })).toBe('push');
    for (const wakeMode of ['push', 'poll', 'hybrid'] as const)
      expect(resolveWakeMode({ name: 'p', next, wakeMode })).toBe(wakeMode);
  });

  it.each(['', 'eager', 'PUSH', 5])('PC-14 with the wake mode %j makes no runtime', (wakeMode) => {
    const planner = { name: 'p', wakeMode, next: () => ({ kind: 'finish', reason: 'goal' }) } as unknown as Planner;
    expect(() => createRuntime({ planner, journal: memoryJournal() })).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    );
  });

  it('PC-15 has the same wake mode before and after 100 runs', async () => {
    const planner = scripted([]);
    const before = resolveWakeMode(planner);
    const runtime = createRuntime({ planner, journal: memoryJournal() });
    const runs = await Promise.all(Array.from({ length: 100 }, () => runtime.start('q', { identity: local('ana') })));
    await Promise.all(runs.map((run) => run.result()));
    await runtime.close();
    expect(resolveWakeMode(planner)).toBe(before);
  });

  it('PC-30 may be a plain async function', async () => {
    const runtime = createRuntime({
      planner: async (run, signal) => {
        signal.throwIfAborted();
        return { kind: 'finish', reason: 'goal', payload: `seen: ${run.query}` };
      },
      journal: memoryJournal(),
    });
    const result = await (await runtime.start('hi', { identity: local('ana') })).result();
    await runtime.close();
    expect(result).toMatchObject({ status: 'finished', answer: 'seen: hi' });
  });

  it('PC-30 a function has its own name in the journal, and an arrow without one is called function', () => {
    expect(
      asPlanner(function careful() {
        return { kind: 'finish', reason: 'goal' };
      }).name,
    ).toBe('careful');
    expect(
      asPlanner(
        (
          () => () =>
            ({ kind: 'finish', reason: 'goal' }) as const
        )(),
      ).name,
    ).toBe('function');
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'no_planner'],
    ['an object without next', { name: 'p' }, 'no_planner'],
    ['text', 'react', 'no_planner'],
    ['one without a name', { next: () => undefined }, 'invalid_config'],
  ])('%s is none', (_, planner, code) => {
    expect(() => asPlanner(planner as Planner)).toThrow(expect.objectContaining({ code }));
  });
});
