import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONTROL_SCOPES,
  CONTROL_TYPES,
  type Control,
  type ControlType,
  type Decision,
  type DecisionKind,
  decodeEntry,
  ENTRY_VERSION,
  type Entry,
  type EntryKind,
  type ErrorData,
  encodeEntry,
  FINISH_REASONS,
  type Json,
  type JsonObject,
  type Outcome,
  type Overflow,
  PAUSE_REASONS,
  PilotageError,
  type Remark,
} from '#core';

// What JSON can hold: no -0, and keys such as __proto__ are data.
const json: fc.Arbitrary<Json> = fc.jsonValue().map((value) => asStored(value as Json));
const object: fc.Arbitrary<JsonObject> = fc.dictionary(fc.string(), json).map(asStored);
/** As it is when it comes out of JSON: ordinary objects. */
function asStored<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
const text = fc.string({ unit: 'grapheme' });
const count = fc.nat();
const error: fc.Arbitrary<ErrorData> = fc.record(
  { code: text, message: text, data: object },
  { requiredKeys: ['code', 'message'] },
);

const branch = fc.record(
  {
    id: text,
    tool: text,
    args: json,
    callId: text,
    refusal: error,
    after: fc.array(text),
    when: fc.record({ branch: text, equals: json }),
  },
  { requiredKeys: ['tool', 'args'] },
);
const join = fc.oneof(
  fc.constantFrom({ kind: 'all' } as const, { kind: 'first_success' } as const),
  fc.record({ kind: fc.constant('n' as const), n: count }),
  fc.record({ kind: fc.constant('keyed' as const), keys: fc.array(text) }),
);
const onCancel = fc.constantFrom('cascade' as const, 'isolate' as const);
const taskLimits = fc.record(
  { steps: count, deadlineAt: count, costMicroUsd: count, tokens: count },
  { requiredKeys: [] },
);
const spec = fc.record(
  {
    description: text,
    query: text,
    priority: fc.integer(),
    retainTurn: fc.boolean(),
    onCancel,
    limits: taskLimits,
    seal: fc.boolean(),
    failFast: fc.boolean(),
    quorum: count,
  },
  { requiredKeys: ['description', 'query'] },
);
const decisions: { readonly [K in DecisionKind]: fc.Arbitrary<Decision> } = {
  call_tool: fc.record(
    { kind: fc.constant('call_tool' as const), tool: text, args: json, callId: text, refusal: error },
    { requiredKeys: ['kind', 'tool', 'args'] },
  ),
  call_parallel: fc.record(
    {
      kind: fc.constant('call_parallel' as const),
      branches: fc.array(branch),
      join,
      onInvalid: fc.constantFrom('fail_all' as const, 'per_branch' as const),
      concurrency: count,
      plan: text,
    },
    { requiredKeys: ['kind', 'branches'] },
  ),
  spawn_task: fc.record(
    {
      kind: fc.constant('spawn_task' as const),
      task: fc.constantFrom('foreground' as const, 'background' as const),
      spec,
      groupId: text,
      callId: text,
    },
    { requiredKeys: ['kind', 'task', 'spec'] },
  ),
  await_task: fc.record(
    { kind: fc.constant('await_task' as const), taskId: text, groupId: text, timeoutMs: count, callId: text },
    { requiredKeys: ['kind', 'taskId'] },
  ),
  request_pause: fc.record(
    {
      kind: fc.constant('request_pause' as const),
      reason: fc.constantFrom(...PAUSE_REASONS),
      payload: object,
      expiresInMs: count,
    },
    { requiredKeys: ['kind', 'reason'] },
  ),
  finish: fc.record(
    {
      kind: fc.constant('finish' as const),
      reason: fc.constantFrom(...FINISH_REASONS),
      payload: json,
      metadata: object,
    },
    { requiredKeys: ['kind', 'reason'] },
  ),
};
const verdict = fc.constantFrom('approve' as const, 'reject' as const, 'resume' as const, 'timeout' as const);
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record(
    {
      kind: fc.constant('value' as const),
      value: json,
      artifact: fc.record({ artifactRef: text, mime: text, sizeBytes: count }),
    },
    { requiredKeys: ['kind', 'value'] },
  ),
  fc.record({
    kind: fc.constantFrom('error' as const, 'unknown' as const, 'cancelled' as const, 'skipped' as const),
    error,
  }),
  fc.record({ kind: fc.constant('verdict' as const), verdict, payload: object }, { requiredKeys: ['kind', 'verdict'] }),
);
const caller = fc.record({ tenant: text, user: text, session: text, scope: fc.constantFrom(...CONTROL_SCOPES) });
const control: fc.Arbitrary<Control> = fc.record(
  { id: text, type: fc.constantFrom<ControlType>(...CONTROL_TYPES), payload: object, from: caller },
  { requiredKeys: ['id', 'type'] },
);
const taskKind = fc.constantFrom('foreground' as const, 'background' as const);
const taskUsage = fc.record({ steps: count, inputTokens: count, outputTokens: count, costMicroUsd: count });
const taskPause = fc.record(
  { run: text, token: text, reason: fc.constantFrom(...PAUSE_REASONS), payload: object, expiresAt: count },
  { requiredKeys: ['run', 'token', 'reason'] },
);
const pin = fc.record({ version: text, tools: fc.dictionary(text, text) }, { requiredKeys: ['tools'] }).map(asStored);
const task = fc.record({
  parent: text,
  root: text,
  depth: count,
  kind: taskKind,
  description: text,
  group: text,
  onCancel,
});

const artifact = { artifactRef: text, mime: text, sizeBytes: count };
const row = fc.record(
  { ...artifact, fileName: text, source: text, createdAt: count },
  { requiredKeys: ['artifactRef', 'mime', 'sizeBytes', 'source', 'createdAt'] },
);
const context = fc.record(
  {
    hints: fc.record(
      { constraints: text, preferredOrder: fc.array(text), budget: fc.record({ steps: count }) },
      { requiredKeys: [] },
    ),
    externalMemory: json,
    conversationMemory: json,
    retrieved: json,
    skills: fc.array(fc.record({ name: text, title: text })),
    inputs: fc.array(fc.record({ ...artifact, fileName: text })),
    artifacts: fc.record({ rows: fc.array(row), more: count }),
    reasoningReplay: fc.constantFrom('never' as const, 'text' as const),
  },
  { requiredKeys: [] },
);
const remark: fc.Arbitrary<Remark> = fc.oneof(
  fc.record({ type: fc.constant('planner.action_extra_field_dropped' as const), field: text }),
  fc.record({ type: fc.constant('model.fallback' as const), from: text, to: text, error }),
  fc.record({ type: fc.constant('acme/plan.scored' as const), data: json }),
  fc.record({
    type: fc.constant('planner.repair_exhausted' as const),
    attempts: count,
    consecutiveArgFailures: count,
    reasons: fc.array(text),
  }),
);
const usage = fc.record({ inputTokens: count, outputTokens: count });
const summary = fc.record({
  goals: fc.array(text),
  facts: fc.array(text),
  pending: fc.array(text),
  lastOutputDigest: text,
  note: text,
});

const overflow: fc.Arbitrary<Overflow> = fc.record(
  {
    kind: fc.constantFrom('input' as const, 'output' as const),
    limitTokens: count,
    sentTokens: count,
    mostTokens: count,
  },
  { requiredKeys: ['kind'] },
);

const approver = fc.constantFrom('anyone' as const, 'another' as const);
const ruleScope = fc.constantFrom('run' as const, 'session' as const, 'user' as const);
const remember = fc.record(
  {
    scope: ruleScope,
    tool: text,
    match: fc.oneof(fc.constant('tool' as const), fc.record({ digest: text }), fc.record({ schema: object })),
    expiresInMs: count,
  },
  { requiredKeys: ['scope', 'tool', 'match'] },
);

const position = { seq: fc.integer({ min: 1, max: 1_000_000 }), at: count };
const entries: { readonly [K in EntryKind]: fc.Arbitrary<Entry> } = {
  started: fc.record(
    {
      kind: fc.constant('started' as const),
      identity: fc.record({ tenant: text, user: text, session: text, run: text }),
      query: text,
      history: fc.array(fc.record({ role: fc.constantFrom('user' as const, 'assistant' as const), text })),
      context,
      conversation: fc.boolean(),
      agent: text,
      limits: taskLimits,
      scopes: fc.array(text),
      pin,
      task,
      fork: fc.record({
        run: text,
        step: count,
        entries: count,
        effects: fc.constantFrom('held' as const, 'allowed' as const),
      }),
      ...position,
    },
    { requiredKeys: ['kind', 'identity', 'query', 'agent', 'limits', 'scopes', 'seq', 'at'] },
  ),
  answering: fc.record({
    kind: fc.constant('answering' as const),
    step: count,
    budget: fc.constantFrom('steps' as const, 'cost' as const, 'tokens' as const, 'deadline' as const),
    ...position,
  }),
  unwinding: fc.record({
    kind: fc.constant('unwinding' as const),
    ending: fc.oneof(
      fc.record({
        kind: fc.constant('finished' as const),
        reason: fc.constant('cancelled' as const),
        metadata: object,
      }),
      fc.record({ kind: fc.constant('failed' as const), error }),
    ),
    until: count,
    ...position,
  }),
  moved: fc.record(
    {
      kind: fc.constant('moved' as const),
      step: count,
      decision: fc.oneof(...Object.values(decisions)),
      startedAt: count,
      rejected: error,
      fault: error,
      text,
      reasoning: text,
      usage,
      providerState: json,
      provenance: object,
      remarks: fc.array(remark),
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'decision', 'startedAt', 'seq', 'at'] },
  ),
  plan_grown: fc.record(
    {
      kind: fc.constant('plan_grown' as const),
      step: count,
      branches: fc.array(branch),
      text,
      usage,
      remarks: fc.array(remark),
      provenance: object,
      done: fc.constant(true as const),
      fault: error,
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'branches', 'seq', 'at'] },
  ),
  call_began: fc.record({ kind: fc.constant('call_began' as const), step: count, call: count, ...position }),
  call_spent: fc.record({ kind: fc.constant('call_spent' as const), step: count, call: count, usage, ...position }),
  call_away: fc.record({
    kind: fc.constant('call_away' as const),
    step: count,
    call: count,
    attempts: count,
    error,
    startedAt: count,
    failedAt: count,
    retryAt: count,
    ...position,
  }),
  call_ended: fc.record(
    {
      kind: fc.constant('call_ended' as const),
      step: count,
      call: count,
      outcome,
      startedAt: count,
      attempts: count,
      costMicroUsd: count,
      discovered: fc.array(text),
      artifacts: fc.array(row),
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'call', 'outcome', 'attempts', 'seq', 'at'] },
  ),
  call_waits: fc.record({
    kind: fc.constant('call_waits' as const),
    step: count,
    call: count,
    startedAt: count,
    waits: fc.array(
      fc.record(
        {
          wait: count,
          for: fc.constantFrom('answer' as const, 'time' as const, 'event' as const),
          until: count,
          key: text,
          schema: object,
          token: text,
        },
        { requiredKeys: ['wait', 'for'] },
      ),
    ),
    ...position,
  }),
  wait_ended: fc.oneof(
    fc.record({
      kind: fc.constant('wait_ended' as const),
      step: count,
      call: count,
      wait: count,
      ended: fc.constantFrom('time' as const, 'timeout' as const, 'superseded' as const),
      ...position,
    }),
    fc.record({
      kind: fc.constant('wait_ended' as const),
      step: count,
      call: count,
      wait: count,
      ended: fc.constant('event' as const),
      payload: json,
      signal: text,
      ...position,
    }),
  ),
  event_passed: fc.record({
    kind: fc.constant('event_passed' as const),
    step: count,
    call: count,
    wait: count,
    key: text,
    signal: text,
    payload: json,
    error,
    ...position,
  }),
  call_kept: fc.record(
    {
      kind: fc.constant('call_kept' as const),
      step: count,
      call: count,
      name: text,
      value: json,
      stored: fc.constant(true as const),
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'call', 'name', 'value', 'seq', 'at'] },
  ),
  paused: fc.record(
    {
      kind: fc.constant('paused' as const),
      token: text,
      reason: fc.constantFrom(...PAUSE_REASONS),
      payload: object,
      expiresAt: count,
      step: count,
      call: count,
      approver: fc.constantFrom('anyone' as const, 'another' as const),
      onReject: fc.constantFrom('tell' as const, 'end' as const),
      ...position,
    },
    { requiredKeys: ['kind', 'token', 'reason', 'seq', 'at'] },
  ),
  resumed: fc.record(
    {
      kind: fc.constant('resumed' as const),
      token: text,
      verdict,
      payload: object,
      args: json,
      by: caller,
      remember,
      ...position,
    },
    { requiredKeys: ['kind', 'token', 'verdict', 'seq', 'at'] },
  ),
  approved: fc.record(
    {
      kind: fc.constant('approved' as const),
      token: text,
      by: caller,
      payload: object,
      args: json,
      digest: text,
      remember,
      ...position,
    },
    { requiredKeys: ['kind', 'token', 'seq', 'at'] },
  ),
  reminded: fc.record({ kind: fc.constant('reminded' as const), token: text, times: count, ...position }),
  escalated: fc.record(
    { kind: fc.constant('escalated' as const), token: text, to: text, approver, ...position },
    { requiredKeys: ['kind', 'token', 'to', 'seq', 'at'] },
  ),
  ruled: fc.record(
    {
      kind: fc.constant('ruled' as const),
      step: count,
      call: count,
      verdict: fc.constantFrom('approve' as const, 'reject' as const),
      rules: fc.array(
        fc.record({ id: text, scope: ruleScope, setAt: count, by: caller }, { requiredKeys: ['id', 'scope', 'setAt'] }),
      ),
      ends: fc.constant(true as const),
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'call', 'verdict', 'rules', 'seq', 'at'] },
  ),
  control: fc.record(
    {
      kind: fc.constant('control' as const),
      control,
      applied: fc.boolean(),
      error,
      undelivered: fc.constant(true as const),
      ...position,
    },
    { requiredKeys: ['kind', 'control', 'applied', 'seq', 'at'] },
  ),
  spawned: fc.record(
    {
      kind: fc.constant('spawned' as const),
      step: count,
      call: count,
      task: text,
      group: text,
      taskKind,
      description: text,
      onCancel,
      retained: fc.boolean(),
      reserved: taskLimits,
      seal: fc.boolean(),
      failFast: fc.boolean(),
      quorum: count,
      ...position,
    },
    {
      requiredKeys: [
        'kind',
        'step',
        'call',
        'task',
        'group',
        'taskKind',
        'description',
        'onCancel',
        'retained',
        'reserved',
        'seal',
        'seq',
        'at',
      ],
    },
  ),
  awaiting: fc.record(
    {
      kind: fc.constant('awaiting' as const),
      step: count,
      call: count,
      task: text,
      group: text,
      until: count,
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'call', 'task', 'seq', 'at'] },
  ),
  task_ended: fc.record(
    {
      kind: fc.constant('task_ended' as const),
      task: text,
      status: fc.constantFrom('complete' as const, 'failed' as const, 'cancelled' as const),
      result: json,
      error,
      usage: taskUsage,
      ...position,
    },
    { requiredKeys: ['kind', 'task', 'status', 'usage', 'seq', 'at'] },
  ),
  task_paused: fc.record({
    kind: fc.constant('task_paused' as const),
    asOf: count,
    task: text,
    pauses: fc.array(taskPause),
    ...position,
  }),
  watched: fc.record({ kind: fc.constant('watched' as const), by: text, ...position }),
  group_ended: fc.record(
    {
      kind: fc.constant('group_ended' as const),
      group: text,
      status: fc.constantFrom('completed' as const, 'cancelled' as const),
      reason: text,
      ...position,
    },
    { requiredKeys: ['kind', 'group', 'status', 'seq', 'at'] },
  ),
  no_progress: fc.record({
    kind: fc.constant('no_progress' as const),
    step: count,
    period: count,
    times: count,
    ...position,
  }),
  turn_started: fc.record(
    {
      kind: fc.constant('turn_started' as const),
      continues: fc.record({ runs: fc.array(fc.record({ run: text, head: fc.nat() })), turns: fc.nat() }),
      query: text,
      ...position,
    },
    { requiredKeys: ['kind', 'continues', 'seq', 'at'] },
  ),
  repinned: fc.record(
    {
      kind: fc.constant('repinned' as const),
      agent: text,
      pin,
      renamedTools: fc.dictionary(text, text).map(asStored),
      ...position,
    },
    { requiredKeys: ['kind', 'agent', 'pin', 'seq', 'at'] },
  ),
  recalled: fc.record(
    {
      kind: fc.constant('recalled' as const),
      profile: object,
      items: fc.array(fc.record({ namespace: fc.array(text), key: text, value: json, score: fc.integer() })),
      ...position,
    },
    { requiredKeys: ['kind', 'items', 'seq', 'at'] },
  ),
  compacted: fc.record(
    {
      kind: fc.constant('compacted' as const),
      step: count,
      summary,
      before: count,
      tokenEstimate: count,
      usage,
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'summary', 'before', 'tokenEstimate', 'seq', 'at'] },
  ),
  compaction_failed: fc.record(
    {
      kind: fc.constant('compaction_failed' as const),
      step: count,
      error: fc.record({
        code: fc.constantFrom(
          'summariser_error' as const,
          'empty_summary' as const,
          'invalid_summary' as const,
          'long_summary' as const,
          'estimator_error' as const,
        ),
        message: text,
      }),
      tokenEstimate: count,
      usage,
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'error', 'tokenEstimate', 'seq', 'at'] },
  ),
  overflowed: fc.record(
    {
      kind: fc.constant('overflowed' as const),
      step: count,
      model: text,
      tokens: count,
      overflow,
      error,
      usage,
      remarks: fc.array(remark),
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'model', 'tokens', 'overflow', 'error', 'seq', 'at'] },
  ),
  shortened: fc.record({
    kind: fc.constant('shortened' as const),
    step: count,
    results: fc.array(fc.record({ call: count, value: json, artifact: fc.record(artifact) })),
    tokenEstimate: count,
    ...position,
  }),
  model_away: fc.record(
    {
      kind: fc.constant('model_away' as const),
      step: count,
      error,
      retryAt: count,
      usage,
      remarks: fc.array(remark),
      ...position,
    },
    { requiredKeys: ['kind', 'step', 'error', 'seq', 'at'] },
  ),
  repaired: fc.record(
    {
      kind: fc.constant('repaired' as const),
      by: text,
      reason: text,
      problem: error,
      kept: fc.record(artifact),
      taken: count,
      begun: fc.array(count),
      ...position,
    },
    { requiredKeys: ['kind', 'by', 'problem', 'kept', 'seq', 'at'] },
  ),
  reopened: fc.record(
    {
      kind: fc.constant('reopened' as const),
      by: fc.record({ tenant: text, user: text, session: text, scope: fc.constant('owner_user' as const) }),
      ...position,
    },
    { requiredKeys: ['kind', 'seq', 'at'] },
  ),
  finished: fc.record({
    kind: fc.constant('finished' as const),
    reason: fc.constantFrom(...FINISH_REASONS),
    payload: json,
    metadata: object,
    ...position,
  }),
  failed: fc.record({ kind: fc.constant('failed' as const), error, ...position }),
};

function isDeepFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isDeepFrozen);
}

function decodingError(stored: string): PilotageError {
  try {
    decodeEntry(stored, 3);
  } catch (thrown) {
    if (PilotageError.is(thrown)) return thrown;
    throw thrown;
  }
  throw new Error('the entry was read');
}

describe('the stored form of an entry', () => {
  it.each(
    Object.entries(entries),
  )('%s: reading gives what was written, frozen, and the same text again', (_kind, arbitrary) => {
    fc.assert(
      fc.property(arbitrary, (entry) => {
        const stored = encodeEntry(entry);
        const read = decodeEntry(stored, entry.seq);
        expect(read).toEqual(entry);
        expect(isDeepFrozen(read)).toBe(true);
        expect(encodeEntry(read)).toBe(stored);
      }),
      { numRuns: 50 },
    );
  });

  it.each(Object.entries(decisions))('DV-20 a decision %s is read back as the same variant', (kind, arbitrary) => {
    fc.assert(
      fc.property(arbitrary, (decision) => {
        const entry: Entry = { kind: 'moved', step: 0, decision, startedAt: 1, seq: 2, at: 3 };
        const read = decodeEntry(encodeEntry(entry), 2);
        expect(read.kind === 'moved' && read.decision).toEqual(decision);
        expect(read.kind === 'moved' && read.decision.kind).toBe(kind);
      }),
      { numRuns: 50 },
    );
  });

  it('has its version, and leaves the seq to the store', () => {
    const stored: unknown = JSON.parse(encodeEntry({ kind: 'call_began', step: 4, call: 1, seq: 9, at: 7 }));
    expect(stored).toEqual({ v: 2, kind: 'call_began', step: 4, call: 1, at: 7 });
  });

  it('DV-21 a decision of an unknown kind is a typed error that names the kind', () => {
    for (const kind of ['teleport', 'toString', '__proto__']) {
      const error = decodingError(JSON.stringify({ v: ENTRY_VERSION, kind: 'moved', decision: { kind } }));
      expect(error.code).toBe('unknown_decision_kind');
      expect(error.message).toContain(JSON.stringify(kind));
    }
    for (const decision of [{ kind: 7 }, {}, null, 'finish', undefined]) {
      const stored = JSON.stringify({ v: ENTRY_VERSION, kind: 'moved', decision });
      expect(decodingError(stored).code).toBe('unknown_decision_kind');
    }
  });

  it('of an unknown kind or of another version is a typed error that names it', () => {
    const unknown = decodingError(JSON.stringify({ v: ENTRY_VERSION, kind: 'constructor' }));
    expect([unknown.code, unknown.data]).toEqual(['journal_entry_unknown', { seq: 3, kind: 'constructor' }]);
    const newer = decodingError(JSON.stringify({ v: ENTRY_VERSION + 1, kind: 'failed' }));
    expect(newer.code).toBe('journal_newer');
    expect(newer.message).toContain(`format ${ENTRY_VERSION + 1}`);
  });

  it.each(['', '{"v":1,', 'null', '[]', '7', '"text"'])('is corrupt when it is %j', (stored) => {
    const error = decodingError(stored);
    expect(error.code).toBe('journal_corrupt');
    expect(error.message).toContain('Entry 3');
  });
});
