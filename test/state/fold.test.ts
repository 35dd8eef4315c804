/** The fold over any journal: taken all at once, entry by entry, or from a snapshot, it is the same state. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type CompactionAttempt,
  type Decision,
  decodeEntry,
  type Entry,
  type EntryBody,
  type ErrorData,
  encodeEntry,
  type Json,
  type Move,
  type Outcome,
  type Remark,
  type Spawned,
  type TaskUsage,
} from '#core';
import { ToolFailure, tool } from '#pilotage';
import type { RunView } from '#pilotage/planner';
import { applyEntry, eventsOf, foldEntries, type OpenStep, openState, type RunState, viewOf } from '#state';
import { record } from '../kit/recorded.ts';

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
const object = fc.dictionary(fc.string(), json, { maxKeys: 3 });
const error: fc.Arbitrary<ErrorData> = fc.record(
  { code: fc.string(), message: fc.string(), data: object },
  { requiredKeys: ['code', 'message'] },
);
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({ kind: fc.constant('value' as const), value: json }),
  fc.record({
    kind: fc.constant('value' as const),
    value: json,
    artifact: fc.constant({ artifactRef: 'art_1', mime: 'm', sizeBytes: 1 }),
  }),
  fc.record({
    kind: fc.constantFrom('error' as const, 'unknown' as const, 'cancelled' as const, 'skipped' as const),
    error,
  }),
);
const branch: fc.Arbitrary<Branch> = fc.record(
  { tool: fc.string(), args: json, callId: fc.string() },
  { requiredKeys: ['tool', 'args'] },
);
const decision: fc.Arbitrary<Decision> = fc.oneof(
  fc.record({ kind: fc.constant('call_tool' as const), tool: fc.string(), args: json }),
  fc.record(
    {
      kind: fc.constant('call_parallel' as const),
      branches: fc.array(branch, { minLength: 1, maxLength: 4 }),
      join: fc.constantFrom({ kind: 'all' as const }, { kind: 'first_success' as const }, { kind: 'n' as const, n: 1 }),
    },
    { requiredKeys: ['kind', 'branches'] },
  ),
  fc.record({ kind: fc.constant('request_pause' as const), reason: fc.constant('await_input' as const) }),
  fc.record({ kind: fc.constant('await_task' as const), taskId: fc.string() }),
);
const row = fc.record({
  artifactRef: fc.string(),
  mime: fc.string(),
  sizeBytes: fc.nat(),
  source: fc.string(),
  createdAt: fc.nat(),
});
const remark: fc.Arbitrary<Remark> = fc.oneof(
  fc.record({ type: fc.constant('planner.action_extra_field_dropped' as const), field: fc.string() }),
  fc.record({ type: fc.constant('model.fallback' as const), from: fc.string(), to: fc.string(), error }),
);
const summary = fc.record({
  goals: fc.array(fc.string()),
  facts: fc.array(fc.string()),
  pending: fc.array(fc.string()),
  lastOutputDigest: fc.string(),
  note: fc.string({ maxLength: 600 }),
});
const failure = fc.record({
  code: fc.constantFrom(
    'summariser_error' as const,
    'empty_summary' as const,
    'invalid_summary' as const,
    'long_summary' as const,
    'estimator_error' as const,
  ),
  message: fc.string({ maxLength: 600 }),
});
const usage = fc.record(
  { inputTokens: fc.nat(), outputTokens: fc.nat(), costMicroUsd: fc.nat() },
  { requiredKeys: [] },
);

const made = fc.record(
  { discovered: fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 }), artifacts: fc.array(row) },
  { requiredKeys: [] },
);

const usageOf = (draw: fc.GeneratorValue): TaskUsage => ({
  steps: draw(() => fc.nat({ max: 9 })),
  inputTokens: draw(fc.nat),
  outputTokens: draw(fc.nat),
  costMicroUsd: draw(fc.nat),
});

/** What comes from other runs, and is found out about this one, at any moment. */
function newsOf(state: RunState, draw: fc.GeneratorValue): EntryBody[] {
  const alive = state.tasks.filter(({ end }) => end === undefined).map(({ id }) => id);
  const task = draw(() => fc.constantFrom('other', ...alive));
  const pauses = draw(() =>
    fc.array(fc.record({ run: fc.string(), token: fc.string(), reason: fc.constant('await_input' as const) }), {
      maxLength: 2,
    }),
  );
  const end = draw(() =>
    fc.record(
      { status: fc.constantFrom('complete' as const, 'failed' as const, 'cancelled' as const), result: json, error },
      { requiredKeys: ['status'] },
    ),
  );
  const options: EntryBody[] = [
    { kind: 'task_ended', task, ...end, usage: usageOf(draw) },
    { kind: 'task_paused', task, pauses, asOf: 3 },
    { kind: 'watched', by: draw(() => fc.constantFrom('w', 'x')) },
    { kind: 'no_progress', step: state.steps.length, period: 1, times: 3 },
    {
      kind: 'repinned',
      agent: draw(() => fc.string()),
      pin: { tools: { a: 'd' } },
      renamedTools: { a: draw(() => fc.string()) },
    },
  ];
  return [draw(() => fc.constantFrom(...options))];
}

/** What becomes of a call of the open step that has not ended. */
function callBodies(open: OpenStep, state: RunState, draw: fc.GeneratorValue): (() => EntryBody[])[] {
  const { step } = open.move;
  const waiting = open.calls.flatMap((call, index) => (call === null ? [index] : []));
  const call = draw(() => fc.constantFrom(...waiting));
  const ended = (): EntryBody => ({
    kind: 'call_ended',
    step,
    call,
    outcome: draw(() => outcome),
    attempts: draw(() => fc.nat({ max: 3 })),
    startedAt: 5,
    costMicroUsd: 2,
    ...draw(() => made),
  });
  const options = [() => [ended()]];
  if (!open.began.some((begun) => begun.call === call)) {
    const cost = draw(() => fc.constantFrom({}, { costMicroUsd: 3 }));
    options.push(() => [{ kind: 'call_began', step, call, ...cost }]);
  }
  if (open.waits.some((wait) => wait.call === call)) return options;
  const reason = draw(() => fc.constantFrom('approval_required' as const, 'external_event' as const));
  const onReject = draw(() => fc.constantFrom({}, { onReject: 'end' as const }));
  options.push(() => [{ kind: 'paused', token: `p${state.head}`, reason, step, call, ...onReject }]);
  const until = draw(() => fc.constantFrom({}, { until: 9 }));
  const group = draw(() => fc.constantFrom('g', 'h'));
  const task = draw(() => fc.constantFrom('other', ...state.tasks.map(({ id }) => id)));
  options.push(() => [
    { kind: 'awaiting', step, call, task, ...(draw(() => fc.boolean()) ? { group } : {}), ...until },
  ]);
  const spawned: Spawned = {
    kind: 'spawned',
    step,
    call,
    task: `t${state.head}`,
    group,
    taskKind: 'background',
    description: 'd',
    onCancel: 'cascade',
    retained: draw(() => fc.boolean()),
    reserved: { steps: 2 },
    seal: draw(() => fc.boolean()),
    ...draw(() => fc.constantFrom({}, { failFast: true }, { quorum: 1 }, CALLED, { ...CALLED, atOnce: 2 })),
  };
  options.push(() => (spawned.retained ? [spawned] : [spawned, ended()]));
  return options;
}

/** The task carries out the call. */
const CALLED = { agentCall: true, retained: true } as const;

/** What a writer may do next, picked by `choose` among what the state allows. */
function nextBodies(state: RunState, draw: fc.GeneratorValue): EntryBody[] {
  const options: (() => EntryBody[])[] = [];
  const { open, pauses } = state;
  if (open === null && pauses.length === 0) {
    options.push(
      () => moveOf(state, draw),
      () => moveOf(state, draw),
      () => [endingOf(draw)],
    );
    options.push(() => [{ kind: 'paused', token: `p${state.head}`, reason: 'external_event' }]);
    if (state.compactedAt < state.steps.length) options.push(() => [shorteningOf(state, draw)]);
  }
  for (const { token } of pauses) {
    const payload = draw(() => fc.option(object, { nil: undefined }));
    const verdict = draw(() => fc.constantFrom('approve' as const, 'reject' as const, 'timeout' as const));
    const more = draw(() => fc.constantFrom({}, { args: { n: 1 } }, { limits: { steps: 9 } }));
    options.push(() => [{ kind: 'resumed', token, verdict, ...more, ...(payload === undefined ? {} : { payload }) }]);
  }
  if (open !== null && pauses.length === 0) options.push(...callBodies(open, state, draw));
  options.push(() => newsOf(state, draw));
  for (const { id, end } of state.groups) {
    if (end !== undefined) continue;
    const how = fc.constantFrom(
      { status: 'completed' as const },
      { status: 'cancelled' as const, reason: 'fail-fast:x' },
    );
    const over = (): EntryBody[] => [{ kind: 'group_ended', group: id, ...draw(() => how) }];
    options.push(over, over);
  }
  options.push(() => {
    const type = draw(() =>
      fc.constantFrom('REDIRECT' as const, 'USER_MESSAGE' as const, 'CANCEL' as const, 'PAUSE' as const),
    );
    const payload = draw(() => fc.oneof(object, fc.constant({ goal: 'g' })));
    return [{ kind: 'control', control: { id: `c${state.head}`, type, payload }, applied: draw(() => fc.boolean()) }];
  });
  return draw(() => fc.constantFrom(...options))();
}

function moveOf(state: RunState, draw: fc.GeneratorValue): EntryBody[] {
  const step = state.steps.length;
  const moved = {
    kind: 'moved' as const,
    step,
    decision: draw(() => decision),
    startedAt: draw(fc.nat),
    ...draw(() =>
      fc.record(
        { usage, text: fc.string(), reasoning: fc.string(), provenance: object, remarks: fc.array(remark) },
        { requiredKeys: [] },
      ),
    ),
  };
  const luck = draw(() => fc.nat({ max: 8 }));
  if (luck === 0) return [{ ...moved, rejected: draw(() => error) }];
  if (luck === 1) return [{ ...moved, fault: draw(() => error) }];
  if (luck === 2) return [{ ...moved, fault: draw(() => error), rejected: draw(() => error) }];
  if (moved.decision.kind !== 'request_pause') return [moved];
  return [moved, { kind: 'paused', token: `p${state.head}`, reason: moved.decision.reason, step }];
}

function shorteningOf(state: RunState, draw: fc.GeneratorValue): EntryBody {
  const step = state.steps.length;
  const about = { step, tokenEstimate: draw(fc.nat), ...draw(() => fc.record({ usage }, { requiredKeys: [] })) };
  if (draw(() => fc.boolean())) return { kind: 'compaction_failed', ...about, error: draw(() => failure) };
  return { kind: 'compacted', ...about, summary: draw(() => summary), before: draw(() => fc.nat({ max: step })) };
}

function endingOf(draw: fc.GeneratorValue): EntryBody {
  if (draw(() => fc.boolean())) return { kind: 'failed', error: draw(() => error) };
  return { kind: 'finished', reason: 'goal', payload: draw(() => json), metadata: draw(() => object) };
}

/** A random valid journal: each entry is one that the state before it allows. */
const journal: fc.Arbitrary<Entry[]> = fc
  .tuple(fc.gen(), fc.integer({ min: 0, max: 30 }), object)
  .map(([draw, length, history]) => {
    const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
    const first = {
      kind: 'started',
      identity,
      query: 'q',
      agent: 'p',
      limits: {},
      scopes: Object.keys(history),
      context: { externalMemory: copyOf(history) },
      conversation: length % 2 === 0,
      seq: 1,
      at: 0,
    } as const;
    const entries: Entry[] = [first];
    const state = openState(first);
    while (entries.length <= length && state.ending === null) {
      for (const body of nextBodies(state, draw)) {
        const entry = JSON.parse(JSON.stringify({ ...body, seq: state.head + 1, at: entries.length * 7 })) as Entry;
        applyEntry(state, entry);
        entries.push(entry);
      }
    }
    return entries;
  });

/** Checks the three ways to one state, at every position of the journal. */
function expectOneState(entries: readonly Entry[]): void {
  const incremental = openState(entries[0] as Entry);
  for (let at = 1; at <= entries.length; at += 1) {
    if (at > 1) applyEntry(incremental, entries[at - 1] as Entry);
    expect(foldEntries(entries.slice(0, at))).toStrictEqual(incremental);
    const fromSnapshot = copyOf(incremental);
    for (const entry of entries.slice(at)) applyEntry(fromSnapshot, entry);
    expect(fromSnapshot).toStrictEqual(foldEntries(entries));
  }
}

const eventsOfAll = (entries: readonly Entry[]): unknown[] =>
  entries.flatMap((entry, index) => eventsOf(entry, index === 0 ? undefined : foldEntries(entries.slice(0, index))));

describe('the fold, for any valid journal', () => {
  it('any prefix folds to the incremental state, and any snapshot with the rest to the whole', () => {
    const kinds = new Map<string, number>();
    fc.assert(
      fc.property(journal, (entries) => {
        for (const { kind } of entries) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        expectOneState(entries);
      }),
      { numRuns: 250 },
    );
    // The generator would prove little if it made no entry of some kind.
    for (const kind of [
      'spawned',
      'awaiting',
      'task_ended',
      'task_paused',
      'watched',
      'group_ended',
      'no_progress',
      'repinned',
      'started',
      'moved',
      'call_began',
      'call_ended',
      'paused',
      'resumed',
      'control',
      'compacted',
      'compaction_failed',
      'finished',
      'failed',
    ]) {
      expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(0);
    }
  });

  it('TJ-01 stored and read back, a journal folds to the same state and the same events', () => {
    fc.assert(
      fc.property(journal, (entries) => {
        const back = entries.map((entry) => decodeEntry(encodeEntry(entry), entry.seq));
        expect(foldEntries(back)).toStrictEqual(foldEntries(entries));
        expect(eventsOfAll(back)).toStrictEqual(eventsOfAll(entries));
      }),
      { numRuns: 50 },
    );
  });

  it('EV-14 the events of a journal are in order, with the positions of their entries', () => {
    fc.assert(
      fc.property(journal, (entries) => {
        const events = eventsOfAll(entries) as { seq: number; occurredAt: number; type: string }[];
        const positions = events.map(({ seq }) => seq);
        expect(positions).toEqual([...positions].sort((a, b) => a - b));
        for (const { seq, occurredAt } of events) expect(occurredAt).toBe(entries[seq - 1]?.at);
        // What only a restart, or another run, has to know is told to nobody; a task may also go on that nobody knew to wait.
        const silent = entries.filter(({ kind }) => kind === 'call_began' || kind === 'awaiting' || kind === 'watched');
        const told = entries.filter((entry) => !silent.includes(entry) && entry.kind !== 'task_paused');
        for (const { seq } of told) expect(positions).toContain(seq);
        for (const { seq } of silent) expect(positions).not.toContain(seq);
      }),
      { numRuns: 50 },
    );
  });

  it('a state that was folded does not change when the journal is folded on elsewhere', () => {
    fc.assert(
      fc.property(journal, fc.nat(), (entries, choice) => {
        const at = 1 + (choice % entries.length);
        const half = foldEntries(entries.slice(0, at));
        const before = JSON.stringify(half);
        foldEntries(entries);
        expect(JSON.stringify(half)).toBe(before);
      }),
      { numRuns: 50 },
    );
  });
});

const DONE: Decision = { kind: 'finish', reason: 'goal', payload: 'done' };

describe('the fold, for journals that the runtime wrote', () => {
  const effects = ['pure', 'read', 'once'] as const;
  const tools = effects.map((effect) =>
    tool({
      name: effect,
      description: 'd',
      inputSchema: { type: 'object' },
      effect,
      retries: 0,
      execute: ({ fail, value }) => {
        if (fail === true) throw new ToolFailure('it failed', { code: 'own_word', data: { at: 1 } });
        return value;
      },
    }),
  );
  const later = tool({
    name: 'later',
    description: 'd',
    inputSchema: { type: 'object' },
    loading: 'deferred',
    execute: async (_, { saveArtifact, discover }) => {
      discover(['later', 'nobody']);
      await saveArtifact('a,b', { mime: 'text/csv', fileName: 'a.csv' });
      return 1;
    },
  });
  const args = fc.record({ fail: fc.boolean(), value: json }, { requiredKeys: [] }) as fc.Arbitrary<Json>;
  const name = fc.constantFrom(...effects, 'nobody', 'later', 'tool_search');
  const called = fc.record({ tool: name, args, refusal: error }, { requiredKeys: ['tool', 'args'] });
  const decided: fc.Arbitrary<Decision> = fc.oneof(
    called.map((one) => ({ kind: 'call_tool' as const, ...one })),
    fc.record({
      kind: fc.constant('call_parallel' as const),
      branches: fc.array(called, { minLength: 1, maxLength: 5 }),
      join: fc.constantFrom({ kind: 'all' as const }, { kind: 'first_success' as const }, { kind: 'n' as const, n: 1 }),
      onInvalid: fc.constantFrom('fail_all' as const, 'per_branch' as const),
    }),
    fc.constant<Decision>({ kind: 'request_pause', reason: 'await_input', payload: { q: '?' }, expiresInMs: 0 }),
    fc.constant<Decision>({ kind: 'await_task', taskId: 't' }),
    fc.record({
      kind: fc.constant('spawn_task' as const),
      task: fc.constantFrom('foreground' as const, 'background' as const),
      spec: fc.record({
        description: fc.constant('d'),
        query: fc.constant('task'),
        seal: fc.boolean(),
        failFast: fc.boolean(),
      }),
      groupId: fc.constantFrom('g', 'h'),
    }),
    fc.constant<Decision>({ kind: 'call_tool', tool: '', args: {} }),
  );
  const spawning: Decision = {
    ...{ kind: 'spawn_task', task: 'background', groupId: 'g' },
    spec: { description: 'd', query: 'task', seal: true, failFast: false },
  };
  const move: fc.Arbitrary<Move> = fc.record(
    { decision: decided, fault: error, remarks: fc.array(remark, { maxLength: 2 }), usage, text: fc.string() },
    { requiredKeys: ['decision'] },
  );
  const attempt: fc.Arbitrary<CompactionAttempt | undefined> = fc.oneof(
    fc.constant(undefined),
    fc
      .record({ compaction: fc.record({ summary, before: fc.constant(0), tokenEstimate: fc.nat() }), usage })
      .map(copyOf),
    fc.record({ failure, tokenEstimate: fc.nat() }).map(copyOf),
  );

  it('gives one state at every position, live as from the store, for random planners', async () => {
    const kinds = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(move, { maxLength: 6 }),
        fc.array(attempt, { maxLength: 6 }),
        async (moves, attempts) => {
          // Its tasks have the query that says so, and finish at once.
          const isTask = (run: RunView): boolean => run.query === 'task';
          const compact = async (run: RunView) => (isTask(run) ? undefined : attempts[run.trajectory.count]);
          const script = moves.map((one) => (run: RunView) => (isTask(run) ? DONE : one));
          const {
            entries,
            events,
            views: all,
          } = await record(script, {
            tools: [...tools, later],
            modelDriven: true,
            compact,
          });
          const views = all.filter((view) => !isTask(view));
          for (const { kind } of entries) kinds.add(kind);
          expectOneState(entries);
          expect(eventsOfAll(entries.map((entry) => decodeEntry(encodeEntry(entry), entry.seq)))).toEqual(events);
          // What the planner saw before each move is what the entries before it come to.
          const asked = entries.flatMap((entry, index) => (entry.kind === 'moved' ? [entries.slice(0, index)] : []));
          // A last view more led to a decision that cannot be stored, and to nothing else.
          expect(views.length - asked.length).toBeOneOf([0, 1]);
          for (const [index, before] of asked.entries()) {
            const view = views[index] as RunView;
            expect(seen(view)).toStrictEqual(seen(viewOf(foldEntries(before), view.tools, view.streaming)));
          }
        },
      ),
      // Seldom drawn.
      { numRuns: 50, examples: [[[{ decision: spawning }], []]] },
    );
    for (const kind of ['compacted', 'compaction_failed', 'moved', 'call_ended', 'spawned'])
      expect(kinds).toContain(kind);
  });
});

/** A view as data: its trajectory's steps are behind a getter. */
function seen({ trajectory, tools: _, ...rest }: RunView): unknown {
  const { steps, steering, tasks, groups, background, compaction } = trajectory;
  return { ...rest, steps, steering, tasks, groups: [...groups], background, compaction };
}
