/** The first entries of a fork: for any journal and any step, they fold to what the run was before that step. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Control, Decision, Entry, EntryBody, Json, Outcome, RunView } from '#core';
import { type ForkPlan, forkEntries } from '#runtime';
import { applyEntry, foldEntries, openState, type RunState, viewOf } from '#state';

const OLD = { tenant: 't', user: 'u', session: 's', run: 'old' };
const NEW = { ...OLD, run: 'new' };
const PIN = { version: '2', tools: { a: 'digest' } };
const plan: ForkPlan = { identity: NEW, agent: 'other', pin: PIN, at: 1_000, effects: 'held' };
const NO_TOOLS = { list: () => [], all: () => [], get: () => undefined };

const STARTED = {
  kind: 'started',
  identity: OLD,
  query: 'q',
  agent: 'p',
  limits: {},
  scopes: ['mail'],
} as const satisfies EntryBody;

/** A journal of these entries, one a second. */
function journalOf(...bodies: readonly EntryBody[]): Entry[] {
  return bodies.map((body, index) => ({ ...body, seq: index + 1, at: index * 1_000 }));
}

const call = (tool: string): Decision => ({ kind: 'call_tool', tool, args: {} });
const moved = (step: number, decision: Decision = call('a')): EntryBody => ({
  kind: 'moved',
  step,
  decision,
  startedAt: 0,
});
const ended = (step: number, value: Json = null, at: number = 0): EntryBody => ({
  kind: 'call_ended',
  step,
  call: at,
  outcome: { kind: 'value', value },
  attempts: 1,
  costMicroUsd: 5,
});
const control = (type: Control['type'], payload: Control['payload'] = {}): EntryBody => ({
  kind: 'control',
  control: { id: `c-${type}`, type, payload },
  applied: true,
});
const pair: Decision = {
  kind: 'call_parallel',
  branches: [
    { tool: 'a', args: {} },
    { tool: 'b', args: {} },
  ],
};

const forked = (entries: readonly Entry[], more: Partial<ForkPlan> = {}): Entry[] =>
  forkEntries(entries, { ...plan, ...more });
const kinds = (entries: readonly Entry[]): string[] => entries.map(({ kind }) => kind);
const code = (entries: readonly Entry[], more: Partial<ForkPlan>): string | undefined => {
  try {
    forked(entries, more);
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
};

describe('forkEntries', () => {
  const two = journalOf(STARTED, moved(0), ended(0, 'x'), moved(1), ended(1, 'y'), moved(2), {
    kind: 'finished',
    reason: 'goal',
  });

  it('has the entries before its first own step, under a start of its own', () => {
    const entries = forked(two, { step: 1, effects: 'allowed' });
    expect(kinds(entries)).toEqual(['started', 'moved', 'call_ended']);
    expect(entries.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(entries[0]).toEqual({
      ...STARTED,
      identity: NEW,
      agent: 'other',
      pin: PIN,
      conversation: false,
      fork: { run: 'old', step: 1, effects: 'allowed', entries: 3 },
      seq: 1,
      at: 0,
    });
    expect(entries.slice(1)).toEqual(two.slice(1, 3));
  });

  it('leaves out only what is open or ended when no step is named', () => {
    expect(foldEntries(forked(two)).steps).toHaveLength(2);
    const open = journalOf(STARTED, moved(0), ended(0), moved(1), { kind: 'call_began', step: 1, call: 0 });
    expect(kinds(forked(open))).toEqual(['started', 'moved', 'call_ended']);
    expect(kinds(forked(journalOf(STARTED)))).toEqual(['started']);
    const failed = journalOf(STARTED, moved(0), ended(0), { kind: 'failed', error: { code: 'c', message: 'm' } });
    expect(kinds(forked(failed))).toEqual(['started', 'moved', 'call_ended']);
  });

  it('leaves replies at the end that came to nothing to the fork, which would else give up at once', () => {
    const error = { code: 'invalid_decision', message: 'm' };
    const entries = journalOf(
      STARTED,
      moved(0),
      ended(0),
      { ...moved(1), rejected: error } as EntryBody,
      {
        ...moved(2),
        fault: error,
      } as EntryBody,
    );
    const state = foldEntries(forked(entries));
    expect([state.steps.length, state.rejections]).toEqual([1, 0]);
    expect(foldEntries(forked(entries, { step: 3 })).steps).toHaveLength(3);
  });

  it('is the root of its own tree: a task that is forked tells nobody', () => {
    const task = {
      parent: 'p',
      root: 'p',
      depth: 1,
      kind: 'background',
      description: 'd',
      group: 'g',
      onCancel: 'cascade',
    } as const;
    const entries = journalOf({ ...STARTED, task }, { kind: 'watched', by: 'somebody' }, moved(0), ended(0));
    const state = foldEntries(forked(entries));
    expect([state.task, state.watchers]).toEqual([null, []]);
  });

  it('refuses a step that the run has not taken', () => {
    for (const step of [3, -1, 0.5, Number.NaN]) expect(code(two, { step })).toBe('invalid_config');
    expect(code(two, { step: 2 })).toBeUndefined();
  });
});

describe('what would move the fork besides its planner', () => {
  it('a cancel, and refused or undelivered controls, are not taken over; messages are', () => {
    const refused = { ...control('RESUME'), applied: false, error: { code: 'c', message: 'm' } } as EntryBody;
    const late = { ...control('USER_MESSAGE', { message: 'late' }), applied: false, undelivered: true } as EntryBody;
    const entries = journalOf(
      STARTED,
      moved(0),
      ended(0),
      control('USER_MESSAGE', { message: 'hi' }),
      control('REDIRECT', { goal: 'g' }),
      refused,
      control('CANCEL'),
      late,
      { kind: 'finished', reason: 'cancelled' },
    );
    expect(kinds(forked(entries))).toEqual(['started', 'moved', 'call_ended', 'control', 'control']);
    const state = foldEntries(forked(entries));
    expect(state.fresh.map(({ type }) => type)).toEqual(['USER_MESSAGE', 'REDIRECT']);
    expect([state.goal, state.cancel]).toEqual(['g', null]);
    expect(state.steering).toHaveLength(2);
  });

  it('a pause of the whole run that nobody has answered is dropped with its control; an answered one is kept', () => {
    const pause = (token: string): EntryBody => ({ kind: 'paused', token, reason: 'external_event' });
    const entries = journalOf(
      STARTED,
      control('PAUSE'),
      pause('1'),
      control('RESUME'),
      { kind: 'resumed', token: '1', verdict: 'resume' },
      control('PAUSE'),
      pause('2'),
    );
    const fork = forked(entries);
    expect(kinds(fork)).toEqual(['started', 'control', 'paused', 'control', 'resumed']);
    expect(foldEntries(fork).pauses).toEqual([]);
  });

  it('limits are the ones of that moment, raised or not, and the caller has the last word', () => {
    const raise = (steps: number): EntryBody[] => [
      { kind: 'paused', token: `p${steps}`, reason: 'constraints_conflict' },
      { kind: 'resumed', token: `p${steps}`, verdict: 'resume', limits: { steps, deadlineAt: 9 } },
    ];
    const entries = journalOf(
      { ...STARTED, limits: { steps: 1, costMicroUsd: 50, deadlineAt: 5, onCeiling: 'pause' } },
      moved(0),
      ended(0),
      ...raise(2),
      moved(1),
      ended(1),
      ...raise(7),
    );
    const kept = { costMicroUsd: 50, onCeiling: 'pause' } as const;
    expect(foldEntries(forked(entries, { step: 0 })).limits).toEqual({ ...kept, steps: 1 });
    expect(foldEntries(forked(entries, { step: 1 })).limits).toEqual({ ...kept, steps: 2 });
    expect(foldEntries(forked(entries)).limits).toEqual({ ...kept, steps: 7 });
    const own = forked(entries, { limits: { steps: 4, deadlineAt: 99 } });
    expect(foldEntries(own).limits).toEqual({ ...kept, steps: 4, deadlineAt: 99 });
    expect(foldEntries(own).totals).toMatchObject({ steps: 2, costMicroUsd: 10 });
    expect(code(entries, { limits: { steps: -1 } })).toBe('invalid_config');
  });

  it('a rejection that ended the run is, in the fork, the outcome of its call', () => {
    const entries = journalOf(
      STARTED,
      moved(0),
      { kind: 'paused', token: 'p', reason: 'approval_required', step: 0, call: 0, onReject: 'end' },
      { kind: 'resumed', token: 'p', verdict: 'reject' },
      { kind: 'finished', reason: 'constraints_conflict' },
    );
    const state = foldEntries(forked(entries));
    expect(foldEntries(entries).rejectedCall).not.toBeNull();
    expect(state.rejectedCall).toBeNull();
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'tool_rejected' } });
  });

  it('a task that was under way is left behind: it has ended for the fork, and its share is given back', () => {
    const spawned = (step: number): EntryBody => ({
      kind: 'spawned',
      step,
      call: 0,
      task: `old.${step}.0`,
      group: 'g',
      taskKind: 'background',
      description: 'd',
      onCancel: 'cascade',
      retained: false,
      reserved: { steps: 10 },
      seal: false,
    });
    const spawn: Decision = { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q' } };
    const usage = { steps: 3, inputTokens: 1, outputTokens: 1, costMicroUsd: 7 };
    const entries = journalOf(
      { ...STARTED, limits: { steps: 40 } },
      moved(0, spawn),
      spawned(0),
      ended(0),
      moved(1, spawn),
      spawned(1),
      ended(1),
      { kind: 'task_ended', task: 'old.0.0', status: 'complete', result: 1, usage },
      {
        kind: 'task_paused',
        task: 'old.1.0',
        pauses: [{ run: 'old.1.0', token: 't', reason: 'await_input' }],
        asOf: 3,
      },
      moved(2),
      ended(2),
      { kind: 'task_ended', task: 'old.1.0', status: 'complete', result: 2, usage },
    );
    const state = foldEntries(forked(entries, { step: 2 }));
    expect(state.tasks.map(({ end }) => [end?.status, end?.result, end?.error?.code])).toEqual([
      ['complete', 1, undefined],
      ['cancelled', undefined, 'cancelled'],
    ]);
    expect(state.tasks.flatMap(({ pauses }) => pauses)).toEqual([]);
    expect(state.totals).toMatchObject({ steps: 2, taskSteps: 3, costMicroUsd: 17 });
    expect(viewOf(state, NO_TOOLS, false).budget.stepsLeft).toBe(35);
    expect(forked(entries, { step: 2 }).at(-1)).toMatchObject({ kind: 'task_ended', task: 'old.1.0', at: plan.at });
    // When it had ended in time it is as it was.
    expect(foldEntries(forked(entries)).tasks[1]?.end?.result).toBe(2);
  });
});

describe('what the caller changes', () => {
  const entries = journalOf(
    STARTED,
    moved(0),
    ended(0, 'old'),
    moved(1, pair),
    ended(1, 'b', 1),
    ended(1, 'a', 0),
    moved(2, {
      kind: 'request_pause',
      reason: 'await_input',
    }),
    { kind: 'paused', token: 'p', reason: 'await_input', step: 2 },
    { kind: 'resumed', token: 'p', verdict: 'resume' },
  );
  const values = (state: RunState): (Json | undefined)[][] =>
    state.steps.map(({ calls }) => calls.map(({ outcome }) => (outcome.kind === 'value' ? outcome.value : undefined)));

  it('the result of the last step that is kept', () => {
    expect(values(foldEntries(forked(entries, { step: 1, result: { value: { is: 'new' } } })))).toEqual([
      [{ is: 'new' }],
    ]);
    const changed = foldEntries(forked(entries, { step: 2, result: { value: 'new', call: 1 } }));
    expect(values(changed)).toEqual([['old'], ['a', 'new']]);
    // What the call cost was spent.
    expect(changed.totals.costMicroUsd).toBe(15);
  });

  it('the result of a call that was not made, because somebody refused it', () => {
    const refused = journalOf(
      STARTED,
      moved(0, pair),
      { kind: 'paused', token: 'p', reason: 'approval_required', step: 0, call: 1 },
      ended(0, 'a', 0),
      { kind: 'resumed', token: 'p', verdict: 'reject' },
    );
    const state = foldEntries(forked(refused, { result: { value: 'yes', call: 1 } }));
    expect(values(state)).toEqual([['a', 'yes']]);
    expect([state.pauses, state.open]).toEqual([[], null]);
  });

  it('refuses a result that nothing has, that is not JSON, or that is large', () => {
    expect(code(entries, { step: 0, result: { value: 1 } })).toBe('invalid_config');
    expect(code(entries, { step: 1, result: { value: 1, call: 1 } })).toBe('invalid_config');
    // Two calls, and not said which.
    expect(code(entries, { step: 2, result: { value: 1 } })).toBe('invalid_config');
    // A pause of the planner's has a verdict, and no call.
    expect(code(entries, { step: 3, result: { value: 1 } })).toBe('invalid_config');
    expect(code(entries, { step: 1, result: { value: Number.NaN } })).toBe('unserializable');
    expect(code(entries, { step: 1, result: { value: 'x'.repeat(4_000_001) } })).toBe('unserializable');
  });

  it('the goal, as a redirect at the step that is next', () => {
    const state = foldEntries(forked(entries, { step: 1, goal: 'another' }));
    expect([state.query, state.goal]).toEqual(['q', 'another']);
    expect(state.steering).toMatchObject([{ atStep: 1, control: { type: 'REDIRECT' } }]);
    expect(code(entries, { goal: 'g'.repeat(4_000_000) })).toBe('unserializable');
  });
});

const error = { code: 'c', message: 'm' };
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({ kind: fc.constant('value' as const), value: fc.nat() }),
  fc.constant({ kind: 'error' as const, error }),
);
const usage = { inputTokens: 3, outputTokens: 1, costMicroUsd: 2 };
const spawnOne: Decision = { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q' } };

type Draw = fc.GeneratorValue;
type Choice = (state: RunState, draw: Draw) => EntryBody[];

/** What may come next when no step is open, and nobody is waited for. */
const BETWEEN: readonly Choice[] = [
  ...Array.from(
    { length: 4 },
    (): Choice => (state, draw) => {
      const decision = draw(() => fc.constantFrom(call('a'), pair, spawnOne));
      return [{ kind: 'moved', step: state.steps.length, decision, startedAt: 1, usage }];
    },
  ),
  (state) => [
    {
      kind: 'moved',
      step: state.steps.length,
      decision: { kind: 'request_pause', reason: 'await_input' },
      startedAt: 1,
    },
    { kind: 'paused', token: `p${state.head}`, reason: 'await_input', step: state.steps.length },
  ],
  (state, draw) => {
    const nothing = draw(() => fc.constantFrom({ rejected: error }, { fault: error }));
    return [{ kind: 'moved', step: state.steps.length, decision: call(''), startedAt: 1, usage, ...nothing }];
  },
  (state) => [
    { kind: 'control', control: { id: `c${state.head}`, type: 'PAUSE' }, applied: true },
    { kind: 'paused', token: `p${state.head}`, reason: 'external_event' },
  ],
  (state) => [
    {
      kind: 'compaction_failed',
      step: state.steps.length,
      tokenEstimate: 1,
      usage,
      error: { code: 'empty_summary', message: 'm' },
    },
  ],
  (state) => [{ kind: 'no_progress', step: state.steps.length, period: 1, times: 3 }],
  () => [{ kind: 'repinned', agent: 'q', pin: { tools: {} } }],
  () => [{ kind: 'watched', by: 'w' }],
  (state) => endsOf(state),
];

/** Ends the groups whose tasks have all ended, or else a task. */
function endsOf({ tasks, groups }: RunState): EntryBody[] {
  const done = groups.find(
    ({ id, end }) => end === undefined && tasks.every((task) => task.group !== id || task.end !== undefined),
  );
  if (done !== undefined) return [{ kind: 'group_ended', group: done.id, status: 'completed' }];
  const live = tasks.find(({ end }) => end === undefined);
  if (live === undefined) return [];
  return [{ kind: 'task_ended', task: live.id, status: 'complete', result: 1, usage: { ...usage, steps: 2 } }];
}

const answered: Choice = (state, draw) =>
  state.pauses.slice(0, 1).flatMap(({ token }): EntryBody[] => {
    const verdict = draw(() => fc.constantFrom('approve' as const, 'reject' as const, 'timeout' as const));
    const limits = draw(() => fc.constantFrom({}, { limits: { steps: 50 + state.head } }));
    return [{ kind: 'resumed', token, verdict, ...limits }];
  });

const goesOn: Choice = (state, draw) => {
  const { open } = state;
  if (open === null || open.move.decision.kind === 'request_pause') return answered(state, draw);
  const { step, decision } = open.move;
  const call = open.calls.findIndex((record, index) => {
    return record === null && !state.pauses.some((pause) => pause.call === index);
  });
  if (call === -1) return answered(state, draw);
  if (decision.kind === 'spawn_task') return spawnedOf(state, step);
  const begun = open.began.some((begun) => begun.call === call);
  const how = begun ? 'end' : draw(() => fc.constantFrom('end', 'begin', 'gate'));
  if (how === 'begin') return [{ kind: 'call_began', step, call }];
  if (how === 'gate' && !open.approvals.some((approval) => approval.call === call)) {
    const onReject = draw(() => fc.constantFrom('tell' as const, 'end' as const));
    return [{ kind: 'paused', token: `p${state.head}`, reason: 'approval_required', step, call, onReject }];
  }
  return [{ kind: 'call_ended', step, call, outcome: draw(() => outcome), attempts: 1, costMicroUsd: 2, startedAt: 1 }];
};

function spawnedOf({ identity, limits }: RunState, step: number): EntryBody[] {
  const task = `${identity.run}.${step}.0`;
  const about = {
    task,
    group: `group:${task}`,
    taskKind: 'background',
    description: 'd',
    onCancel: 'cascade',
  } as const;
  const reserved = limits.steps === undefined ? {} : { steps: 2 };
  const value = { task_id: task, kind: 'background', status: 'spawned' };
  return [
    { kind: 'spawned', step, call: 0, ...about, retained: false, reserved, seal: true },
    { kind: 'call_ended', step, call: 0, outcome: { kind: 'value', value }, attempts: 0 },
  ];
}

const said: Choice = (state, draw) => {
  const type = draw(() => fc.constantFrom('REDIRECT' as const, 'USER_MESSAGE' as const, 'INJECT_CONTEXT' as const));
  const applied = draw(() => fc.boolean());
  return [{ kind: 'control', control: { id: `c${state.head}`, type, payload: { goal: `g${state.head}` } }, applied }];
};

/** A random valid journal: each entry is one that the state before it allows. */
const journal: fc.Arbitrary<Entry[]> = fc
  .tuple(fc.gen(), fc.nat({ max: 40 }), fc.constantFrom({}, { steps: 90, deadlineAt: 3, costMicroUsd: 999 }))
  .map(([draw, length, limits]) => {
    const entries = journalOf({ ...STARTED, limits });
    const state = openState(entries[0] as Entry);
    while (entries.length <= length) {
      const free = state.open === null && state.pauses.length === 0;
      const choice = draw(() =>
        free ? fc.constantFrom(...BETWEEN, said) : fc.constantFrom(goesOn, goesOn, answered, said),
      );
      for (const body of choice(state, draw)) {
        const entry = JSON.parse(JSON.stringify({ ...body, seq: state.head + 1, at: state.head })) as Entry;
        applyEntry(state, entry);
        entries.push(entry);
      }
    }
    const how = draw(() => fc.nat({ max: 3 }));
    if (how > 1 || state.open !== null) return entries;
    const last: EntryBody[] =
      how === 0 ? [control('CANCEL'), { kind: 'finished', reason: 'cancelled' }] : [{ kind: 'failed', error }];
    return [...entries, ...last.map((body, at) => ({ ...body, seq: state.head + 1 + at, at: 0 }))];
  });

/** A view as data, without what is the fork's own: its name, its hint, its deadline, and what no planner is to look at. */
function seen(state: RunState): unknown {
  const {
    trajectory,
    tools: _,
    identity: __,
    noProgress: ___,
    budget,
    ...rest
  }: RunView = viewOf(state, NO_TOOLS, false);
  const { deadlineAt: ____, ...left } = budget;
  const { steps, steering, tasks, groups, background, compaction } = trajectory;
  const view = { ...rest, budget: left, steering, steps, tasks, groups: [...groups], background, compaction };
  const hidden = new Set(['seq', 'onCancel']);
  return JSON.parse(JSON.stringify(view, (key, value: unknown) => (hidden.has(key) ? undefined : value)));
}

describe('a fork of any journal, at any step', () => {
  it('folds, and shows its planner what the run was before that step, with the same budget used', () => {
    const met = { forks: 0, asked: 0, withTasks: 0, kinds: new Set<string>() };
    fc.assert(
      fc.property(journal, (entries) => {
        const { steps } = foldEntries(entries);
        for (const { kind } of entries) met.kinds.add(kind);
        for (let step = 0; step <= steps.length; step += 1) {
          const state = foldEntries(forkEntries(entries, { ...plan, step }));
          met.forks += 1;
          expect(state).toMatchObject({ open: null, pauses: [], cancel: null, rejectedCall: null, ending: null });
          expect(state.steps).toHaveLength(step);
          expect(state.tasks.filter(({ end }) => end === undefined)).toEqual([]);
          const cut = entries.findIndex((entry) => entry.kind === 'moved' && entry.step === step);
          if (cut === -1) continue;
          met.asked += 1;
          const original = foldEntries(entries.slice(0, cut));
          expect(state.totals).toEqual(original.totals);
          if (original.tasks.every(({ end }) => end !== undefined)) {
            // The agent is the fork's own.
            expect(seen(state)).toEqual({ ...(seen(original) as object), agent: state.agent });
          } else {
            met.withTasks += 1;
            const { steps: own, steering, goal } = seen(state) as Record<string, unknown>;
            expect({ steps: own, steering, goal }).toEqual(pick(seen(original)));
          }
        }
      }),
      { numRuns: 200, endOnFailure: true },
    );
    // The generator would prove little if it seldom got so far.
    expect(met.asked).toBeGreaterThan(80);
    expect(met.withTasks).toBeGreaterThan(10);
    for (const kind of ['paused', 'resumed', 'control', 'task_ended', 'group_ended', 'repinned', 'no_progress']) {
      expect(met.kinds).toContain(kind);
    }
  });

  it('shares nothing with the run, and is the same each time', () => {
    fc.assert(
      fc.property(journal, (entries) => {
        const before = JSON.stringify(entries);
        expect(forkEntries(entries, plan)).toEqual(forkEntries(entries, plan));
        expect(JSON.stringify(entries)).toBe(before);
      }),
      { numRuns: 50, endOnFailure: true },
    );
  });

  it('can be forked again', () => {
    fc.assert(
      fc.property(journal, fc.nat(), (entries, choice) => {
        const once = forkEntries(entries, plan);
        const step = choice % (foldEntries(once).steps.length + 1);
        const twice = forkEntries(once, { ...plan, step, identity: { ...NEW, run: 'newer' } });
        expect(foldEntries(twice).fork).toMatchObject({ run: 'new', step, effects: 'held' });
      }),
      { numRuns: 50, endOnFailure: true },
    );
  });
});

function pick(view: unknown): unknown {
  const { steps, steering, goal } = view as Record<string, unknown>;
  return { steps, steering, goal };
}
