import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  asPlanner,
  type Identity,
  type Json,
  local,
  type Planner,
  type RunView,
  resolveWakeMode,
  type Step,
} from '#core';
import {
  type DeterministicStep,
  deterministic,
  lastResult,
  lastStep,
  type WatchGroupStep,
} from '#planners/deterministic';
import { runView } from '#testing';
import { ask } from '../kit/ask.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';

const identity = local('ana', { run: 'r1' });
const DONE: DeterministicStep = { do: 'finish', reason: 'goal' };

function planner(...steps: DeterministicStep[]): Planner {
  return deterministic({ steps });
}

/** Asks again and again, each move carried out as `stepOfMove` does, until the planner finishes. */
async function play(asked: Planner, outcomes: Record<string, Json> = {}): Promise<Step[]> {
  const steps: Step[] = [];
  for (;;) {
    const move = await ask(asked, runView({ identity, steps: [...steps] }));
    const given = move.decision.kind === 'call_tool' ? outcomes[move.decision.tool] : undefined;
    steps.push(stepOfMove(steps.length, move, given === undefined ? undefined : [value(given)]));
    if (move.decision.kind === 'finish' || steps.length === 20) return steps;
  }
}

const kinds = (steps: readonly Step[]): string[] => steps.map(({ decision }) => decision.kind);

/** What JavaScript lets through. */
const wrong = (step: unknown): DeterministicStep => step as DeterministicStep;

describe('deterministic, in order', () => {
  it('DS-01, DS-06 the first step that claims decides, and later ones are not asked', async () => {
    const asked: number[] = [];
    const guarded = (index: number, holds: boolean): DeterministicStep => ({
      do: 'call',
      id: `step ${index}`,
      tool: `tool_${index}`,
      args: { index },
      when: () => {
        asked.push(index);
        return holds;
      },
    });
    const { decision } = await ask(planner(guarded(0, false), guarded(1, true), guarded(2, true)), runView());
    expect(decision).toEqual({ kind: 'call_tool', tool: 'tool_1', args: { index: 1 } });
    expect(asked).toEqual([0, 1]);
  });

  it('DS-06 a call without a guard claims each time; with `once` it is made once, whatever it came to', async () => {
    const always = await play(planner({ do: 'call', tool: 'poll', args: {} }, DONE));
    expect(kinds(always)).toEqual(Array(20).fill('call_tool'));

    const search: DeterministicStep = { do: 'call', tool: 'search', args: { q: 'x' }, once: true };
    const render: DeterministicStep = {
      do: 'call',
      tool: 'render',
      once: true,
      args: (run) => ({ pages: lastResult(run, 'search') ?? null }),
    };
    const steps = await play(planner(search, render, DONE), { search: [1, 2] });
    expect(kinds(steps)).toEqual(['call_tool', 'call_tool', 'finish']);
    expect(steps[1]?.decision).toMatchObject({ tool: 'render', args: { pages: [1, 2] } });

    const failed = stepOfMove(0, await ask(planner(search), runView()), [failure('tool_failed', 'no')]);
    const view = runView({ steps: [failed] });
    expect((await ask(planner(search, DONE), view)).decision).toMatchObject({ kind: 'finish', reason: 'goal' });
    expect(lastResult(view, 'search')).toEqual({ error: { code: 'tool_failed', message: 'no' } });
    expect(lastStep(view, 'render')).toBeUndefined();
  });

  it('DS-01 a function decides, or passes on; it may be asynchronous', async () => {
    const seen: string[] = [];
    const asked = planner(
      ({ goal }) => {
        seen.push(goal);
        return undefined;
      },
      async ({ identity: { run } }, { aborted }) => ({ kind: 'call_tool', tool: 'a', args: { run, aborted } }),
      DONE,
    );
    const { decision, provenance } = await ask(asked, runView({ identity, query: 'why' }));
    expect(decision).toEqual({ kind: 'call_tool', tool: 'a', args: { run: 'r1', aborted: false } });
    expect(provenance).toBeUndefined();
    expect(seen).toEqual(['why']);
  });

  it('a parallel call has its branches, given or made of the run, and its join', async () => {
    const branches = [
      { tool: 'a', args: {} },
      { tool: 'b', args: 1 },
    ];
    const given = planner(
      { do: 'parallel', branches, join: { kind: 'first_success' }, concurrency: 1, once: true },
      DONE,
    );
    const decision = { kind: 'call_parallel', branches, join: { kind: 'first_success' }, concurrency: 1 };
    const [first, second] = await play(given);
    expect(first).toMatchObject({ decision, provenance: { step: '<parallel>' } });
    expect(second?.decision.kind).toBe('finish');
    const made = planner({ do: 'parallel', id: 'both', branches: async () => branches, onInvalid: 'per_branch' });
    expect(await ask(made, runView())).toEqual({
      decision: { kind: 'call_parallel', branches, onInvalid: 'per_branch' },
      provenance: { step: 'both' },
    });
  });

  it('DS-04 ends with no_path when no step claims', async () => {
    const { decision } = await ask(
      planner({ ...DONE, when: () => false }, () => undefined),
      runView({ identity }),
    );
    expect(decision).toEqual({
      kind: 'finish',
      reason: 'no_path',
      metadata: { deterministic: 'no_step_matched', run_id: 'r1' },
    });
  });

  it('DS-07 a finish has its payload and metadata; the run id is added unless it is there', async () => {
    const plain = planner({ do: 'finish', id: 'end', reason: 'goal', payload: { n: 1 }, metadata: { source: 'test' } });
    expect(await ask(plain, runView({ identity }))).toEqual({
      decision: { kind: 'finish', reason: 'goal', payload: { n: 1 }, metadata: { source: 'test', run_id: 'r1' } },
      provenance: { step: 'end' },
    });
    const built = planner({
      do: 'finish',
      reason: 'constraints_conflict',
      payload: ({ query }) => query,
      metadata: async () => ({ run_id: 'mine' }),
    });
    expect(await ask(built, runView({ identity, query: 'q' }))).toEqual({
      decision: { kind: 'finish', reason: 'constraints_conflict', payload: 'q', metadata: { run_id: 'mine' } },
    });
    expect(await ask(planner(DONE), runView({ identity }))).toEqual({
      decision: { kind: 'finish', reason: 'goal', metadata: { run_id: 'r1' } },
    });
  });

  it('DS-08, SP-40 a pause asks once without any guard, and the answer is there to be read', async () => {
    const pause: DeterministicStep = { do: 'pause', id: 'ok?', reason: 'approval_required', payload: { cost: 3 } };
    const answer: DeterministicStep = {
      do: 'finish',
      reason: 'goal',
      payload: (run) => lastResult(run, 'ok?') ?? null,
    };
    const asked = planner(pause, answer);
    const move = await ask(asked, runView());
    expect(move.decision).toEqual({ kind: 'request_pause', reason: 'approval_required', payload: { cost: 3 } });
    const approved = stepOfMove(0, move, [{ kind: 'verdict', verdict: 'approve', payload: { by: 'bo' } }]);
    expect((await ask(asked, runView({ steps: [approved] }))).decision).toMatchObject({
      kind: 'finish',
      payload: { decision: 'approve', payload: { by: 'bo' } },
    });
  });

  it('DS-08 a pause that holds `once: false` asks as often as its guard says', async () => {
    const asked = planner(
      {
        do: 'pause',
        reason: 'await_input',
        payload: ({ trajectory }) => ({ count: trajectory.count }),
        expiresInMs: 1000,
        once: false,
        when: ({ trajectory }) => trajectory.count < 3,
      },
      DONE,
    );
    const steps = await play(asked);
    expect(kinds(steps)).toEqual(['request_pause', 'request_pause', 'request_pause', 'finish']);
    expect(steps[2]).toMatchObject({ decision: { payload: { count: 2 }, expiresInMs: 1000 } });
  });
});

describe('deterministic, when something is wrong', () => {
  it.each<[string, DeterministicStep, string]>([
    ['DS-02 a guard throws', { ...DONE, when: () => boom() }, 'boom'],
    ['DS-02, DS-06 the arguments throw', { do: 'call', tool: 'a', args: () => boom() }, 'boom'],
    ['DS-02 a function rejects', async () => boom(), 'boom'],
    ['DS-03 a function gives null', wrong(() => null), 'null in place of a decision'],
    ['DS-03 a function gives an unknown kind', wrong(() => ({ kind: 'wait' })), 'must be one of call_tool'],
    ['DS-06 arguments that are not JSON', { do: 'call', tool: 'a', args: () => Number.NaN }, 'args'],
    ['DS-07 metadata that is no object', { ...DONE, metadata: wrong(() => 'text') as never }, 'metadata'],
    ['DS-08 the payload of a pause throws', { do: 'pause', reason: 'await_input', payload: () => boom() }, 'boom'],
    [
      'DS-08 a pause payload beyond the limits of any value',
      { do: 'pause', reason: 'await_input', payload: () => ({ text: 'x'.repeat(4_000_001) }) },
      '4000000',
    ],
    ['DS-02 branches that cannot be called', { do: 'parallel', branches: () => [] }, 'no branches'],
  ])('%s: a step error that names the step', async (_what, step, why) => {
    const asked = ask(
      planner(() => undefined, step, DONE),
      runView(),
    );
    const error: unknown = await asked.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'deterministic_step', data: { index: 1 } });
    expect(error).toMatchObject({ message: expect.stringMatching(/^steps\[1\]/), cause: expect.any(Error) });
    expect(error).toMatchObject({ message: expect.stringContaining(why) });
  });

  it('DS-02 the error has the id of the step, and what it was caused by', async () => {
    const cause = new Error('boom');
    const step: DeterministicStep = {
      do: 'call',
      id: 'fetch',
      tool: 'http_get',
      args: () => {
        throw cause;
      },
    };
    const error: unknown = await ask(planner(step), runView()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: 'steps[0] (fetch) failed: boom', data: { index: 0, id: 'fetch' }, cause });
  });

  const valid = { do: 'call', tool: 'a', args: {} } as const;
  const group: WatchGroupStep = {
    do: 'watch_group',
    groupId: 'g',
    onResolved: () => ({ kind: 'finish', reason: 'goal' }),
  };

  it.each<[string, DeterministicStep[], RegExp]>([
    ['DS-05 no steps', [], /at least one/],
    ['DS-05 no list', wrong({ 0: DONE }) as never, /list of steps/],
    ['DS-05 an empty slot', [DONE, wrong(undefined)], /steps\[1\] is empty/],
    // biome-ignore lint/suspicious/noSparseArray: the hole is the case.
    ['DS-05 a hole', [DONE, , DONE] as DeterministicStep[], /steps\[1\] is empty/],
    ['DS-05 a text', [wrong('call')], /steps\[0\] .*neither/],
    ['DS-05 an unknown kind of step', [wrong({ do: 'wait' })], /`do` must be one of call,/],
    ['DS-05 a misspelt guard', [wrong({ ...valid, guard: () => false })], /has no option "guard".*when/],
    ['DS-05 a guard that is no function', [wrong({ ...valid, when: true })], /when must be a function/],
    ['DS-05 a once that is no yes or no', [wrong({ ...valid, once: 'yes' })], /once/],
    ['DS-05 a blank id', [{ ...valid, id: ' ' }], /id must be/],
    ['DS-06 a call without a tool', [wrong({ do: 'call', args: {} })], /tool must be/],
    ['DS-06 a call with no name as its tool', [{ do: 'call', tool: '', args: () => null }], /tool must be/],
    ['DS-06 a call without arguments', [wrong({ do: 'call', tool: 'a' })], /args/],
    ['DS-06 arguments that are not JSON', [{ ...valid, args: { at: Number.NaN } }], /args\.at/],
    ['a join that no branch can meet', [{ do: 'parallel', branches: [], join: { kind: 'n', n: 1 } }], /no branches/],
    ['DS-07 an unknown reason to finish', [wrong({ do: 'finish', reason: 'done' })], /reason is "done"/],
    ['DS-07 a payload that is not JSON', [{ ...DONE, payload: wrong(new Map()) as never }], /payload/],
    ['DS-08 an unknown reason to pause', [wrong({ do: 'pause', reason: 'tea' })], /reason is "tea"/],
    [
      'DS-08 a pause payload beyond the limits of any value',
      [{ do: 'pause', reason: 'await_input', payload: { text: 'x'.repeat(4_000_001) } }],
      /4000000/,
    ],
    ['DS-09 no spec', [wrong({ do: 'spawn_and_await', onResolved: group.onResolved })], /spec\.query/],
    [
      'DS-09 a spec without a query',
      [wrong({ do: 'spawn_and_await', spec: { description: 'd' }, onResolved: group.onResolved })],
      /spec\.query/,
    ],
    [
      'DS-09 an unknown kind of task',
      [wrong({ do: 'spawn_and_await', spec: () => null, task: 'hidden', onResolved: group.onResolved })],
      /task is "hidden"/,
    ],
    ['DS-09 no onResolved', [wrong({ do: 'spawn_and_await', spec: () => null })], /onResolved must be a function/],
    ['DS-15 no group', [wrong({ do: 'watch_group', onResolved: group.onResolved })], /groupId must be/],
    ['DS-15 no onResolved', [wrong({ do: 'watch_group', groupId: 'g' })], /onResolved must be a function/],
    [
      'DS-09 two steps with one id',
      [{ ...valid, id: 'x' }, DONE, { ...group, id: 'x' }],
      /steps\[0\] and steps\[2\].* x\./,
    ],
    ['DS-09 two steps with one id by default', [group, group], /the same id, <watch-group>\. Give each/],
    ['DS-09 two calls of one tool', [valid, { ...valid, args: 1 }], /the same id, a\./],
  ])('%s: refused at construction', (_what, steps, message) => {
    const make = () => deterministic({ steps });
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    expect(make).toThrow(message);
  });

  it('DS-05 refuses an unknown option by its name, an empty name, and a version that is no text', () => {
    expect(() => deterministic(wrong({ steps: [DONE], registry: {} }) as never)).toThrow(/no option "registry"/);
    expect(() => deterministic({ steps: [DONE], name: '' })).toThrow(/name/);
    expect(() => deterministic(wrong({ steps: [DONE], version: 2 }) as never)).toThrow(/version/);
  });
});

describe('deterministic as a planner', () => {
  it('DS-05 has a name, wakes by poll and is driven by no model', () => {
    const made = planner(DONE);
    expect(made).toEqual({ name: 'deterministic', wakeMode: 'poll', whileAsked: 'keep', next: expect.any(Function) });
    expect(resolveWakeMode(made)).toBe('poll');
    expect(deterministic({ steps: [DONE], name: 'nightly', version: '2' })).toMatchObject({
      name: 'nightly',
      version: '2',
    });
  });

  it('DS-18 imports nothing but the core', () => {
    const folder = new URL('../../src/planners/deterministic/', import.meta.url);
    const from = readdirSync(folder).flatMap((file) =>
      [...readFileSync(new URL(file, folder), 'utf8').matchAll(/\b(?:from|import) ?\(?'([^']+)'/g)].map(
        ([, path]) => path,
      ),
    );
    expect(from).toContain('#core');
    expect(from.filter((path) => !/^(?:\.\/[\w-]+\.ts|#core)$/.test(path ?? ''))).toEqual([]);
  });

  it('DS-01, PC-07 throws the reason of an aborted signal, and asks no step', async () => {
    const reason = new Error('stop');
    const asked = ask(
      planner(() => boom()),
      runView(),
      AbortSignal.abort(reason),
    );
    await expect(asked).rejects.toBe(reason);
  });

  it('PC-07 a step that fails because of the abort is no step error', async () => {
    const stop = new AbortController();
    const reason = new Error('stop');
    const asked = ask(
      planner(async (_, signal) => {
        stop.abort(reason);
        signal.throwIfAborted();
        return undefined;
      }),
      runView(),
      stop.signal,
    );
    await expect(asked).rejects.toBe(reason);
  });

  it.each(['tenant', 'user', 'session', 'run', 'all'])('DS-01, PC-08 fails closed without %s', async (part) => {
    const partial = part === 'all' ? {} : { ...identity, [part]: ' ' };
    const view: RunView = { ...runView(), identity: partial as Identity };
    await expect(
      ask(
        planner(() => boom()),
        view,
      ),
    ).rejects.toMatchObject({ code: 'identity_required' });
  });

  it('DS-01, PC-09, PC-10 a cancelled run finishes as cancelled, also at the limit of its steps', async () => {
    const view = runView({ identity, controls: [{ id: '1', type: 'CANCEL' }] });
    const cancelled = {
      decision: { kind: 'finish', reason: 'cancelled', metadata: { steering: 'cancelled', run_id: 'r1' } },
    };
    expect(
      await ask(
        planner(() => boom()),
        view,
      ),
    ).toEqual(cancelled);
    const spent = { ...view, budget: { stepsLeft: 0, costMicroUsdSpent: 0 } };
    expect(
      await ask(
        planner(() => boom()),
        spent,
      ),
    ).toEqual(cancelled);
  });

  it('CR-01, CR-03 128 runs at once on one planner stay apart, and one abort stops one', async () => {
    const asked = planner(async ({ identity: { run } }) => ({ kind: 'call_tool', tool: 'echo', args: { run } }));
    const stop = new AbortController();
    stop.abort(new Error('only me'));
    const answers = await Promise.allSettled(
      Array.from({ length: 128 }, (_, run) =>
        ask(
          asked,
          runView({ identity: local('ana', { run: `r${run}` }) }),
          run === 64 ? stop.signal : new AbortController().signal,
        ),
      ),
    );
    for (const [run, answer] of answers.entries()) {
      if (run === 64) expect(answer).toMatchObject({ status: 'rejected', reason: stop.signal.reason });
      else expect(answer).toMatchObject({ value: { decision: { args: { run: `r${run}` } } } });
    }
  });

  it('CR-07 works deep-frozen, and what it was made of may change afterwards', async () => {
    const args = { list: [1] };
    const payload = { n: 1 };
    const steps: DeterministicStep[] = [
      { do: 'call', tool: 'a', args, once: true },
      { do: 'finish', reason: 'goal', payload },
    ];
    const made = deterministic({ steps });
    args.list.push(2);
    payload.n = 2;
    steps.length = 0;
    expect(Object.isFrozen(made)).toBe(true);
    for (const part of Object.values(made)) Object.freeze(part);
    expect(asPlanner(made)).toBe(made);
    const [call, end] = await play(made);
    expect(call?.decision).toMatchObject({ args: { list: [1] } });
    expect(end?.decision).toMatchObject({ payload: { n: 1 } });
  });

  it('DS-19 the same trajectory gives the same decision, and time is read from the view', async () => {
    const asked = planner({
      do: 'call',
      tool: 'a',
      args: ({ startedAt, trajectory }) => ({
        day: new Date(startedAt).toISOString().slice(0, 10),
        at: trajectory.count,
      }),
    });
    const steps = [stepOfMove(0, await ask(asked, runView()))];
    const view = () => runView({ identity, steps, startedAt: Date.UTC(2025, 0, 1) });
    const first = await ask(asked, view());
    expect(first.decision).toMatchObject({ args: { day: '2025-01-01', at: 1 } });
    expect(await ask(asked, view())).toEqual(first);
    expect(await ask(deterministic({ steps: [() => first.decision] }), view())).toMatchObject({
      decision: first.decision,
    });
  });
});

function boom(): never {
  throw new Error('boom');
}
