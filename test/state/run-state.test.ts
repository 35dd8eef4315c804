import { describe, expect, it } from 'vitest';
import type { Branch, Control, Entry, EntryBody, Outcome } from '#core';
import { foldEntries, isPaused, nextStep, openState } from '#state';

const STARTED: EntryBody = {
  kind: 'started',
  identity: { tenant: 't', user: 'u', session: 's', run: 'r' },
  query: 'q',
  agent: 'p',
  limits: { steps: 5 },
  scopes: [],
};
const value: Outcome = { kind: 'value', value: 1 };

function moveCall(step: number, more: object = {}): EntryBody {
  return { kind: 'moved', step, decision: { kind: 'call_tool', tool: 't', args: {} }, startedAt: 0, ...more };
}
function moveParallel(step: number, count: number): EntryBody {
  const branches: Branch[] = Array(count).fill({ tool: 't', args: {} });
  return { kind: 'moved', step, decision: { kind: 'call_parallel', branches }, startedAt: 0 };
}
function movePause(step: number): EntryBody {
  return { kind: 'moved', step, decision: { kind: 'request_pause', reason: 'await_input' }, startedAt: 0 };
}
function ended(step: number, call: number, more: object = {}): EntryBody {
  return { kind: 'call_ended', step, call, outcome: value, attempts: 1, ...more };
}
function control(type: Control['type'], payload?: Control['payload'], applied = true): EntryBody {
  const sent: Control = payload === undefined ? { id: 'c', type } : { id: 'c', type, payload };
  return { kind: 'control', control: sent, applied };
}
const paused = (token: string, step?: number): EntryBody => ({
  kind: 'paused',
  token,
  reason: 'await_input',
  ...(step === undefined ? {} : { step }),
});
const resumed = (token: string, payload?: object): EntryBody =>
  ({ kind: 'resumed', token, verdict: 'resume', ...(payload === undefined ? {} : { payload }) }) as EntryBody;
const finished: EntryBody = { kind: 'finished', reason: 'goal' };
const failed: EntryBody = { kind: 'failed', error: { code: 'c', message: 'm' } };

/** A journal of these entries, after `started`. */
function journal(...bodies: EntryBody[]): Entry[] {
  return [STARTED, ...bodies].map((body, index) => ({ ...body, seq: index + 1, at: 100 + index }) as Entry);
}
const fold = (...bodies: EntryBody[]): ReturnType<typeof foldEntries> => foldEntries(journal(...bodies));

describe('the fold refuses a journal that cannot be', () => {
  it.each<[string, () => unknown]>([
    ['an empty one', () => foldEntries([])],
    ['one that does not begin with started', () => openState({ ...finished, seq: 1, at: 0 } as Entry)],
    ['one that begins at 2', () => openState({ ...STARTED, seq: 2, at: 0 } as Entry)],
    ['a gap', () => foldEntries(journal(moveCall(0), ended(0, 0)).filter(({ seq }) => seq !== 2))],
    ['an entry twice', () => foldEntries([...journal(moveCall(0)), journal(moveCall(0))[1] as Entry])],
    [
      'entries in the wrong order',
      () => foldEntries([...journal(moveCall(0), ended(0, 0))].sort((a, b) => (a.seq === 1 ? -1 : b.seq - a.seq))),
    ],
    ['a second start', () => fold(STARTED)],
    ['a second ending', () => fold(finished, finished)],
    ['anything after a failure', () => fold(failed, control('PAUSE'))],
    ['anything after an ending', () => fold(finished, moveCall(0))],
    ['a move while a step is open', () => fold(moveCall(0), moveCall(1))],
    ['a move of the step that is open', () => fold(moveCall(0), moveCall(0))],
    [
      'a finish while a step is open',
      () => fold(moveCall(0), { kind: 'moved', step: 1, decision: { kind: 'finish', reason: 'goal' }, startedAt: 0 }),
    ],
    ['a move of a step that is not next', () => fold(moveCall(1))],
    ['a move of a step that has been', () => fold(moveCall(0), ended(0, 0), moveCall(0))],
    ['a call that begins without a step', () => fold({ kind: 'call_began', step: 0, call: 0 })],
    ['a call that begins in another step', () => fold(moveCall(0), { kind: 'call_began', step: 1, call: 0 })],
    ['a call that begins beyond the branches', () => fold(moveCall(0), { kind: 'call_began', step: 0, call: 1 })],
    [
      'a call that begins twice',
      () => fold(moveCall(0), { kind: 'call_began', step: 0, call: 0 }, { kind: 'call_began', step: 0, call: 0 }),
    ],
    [
      'a call that begins after its end',
      () => fold(moveParallel(0, 2), ended(0, 0), { kind: 'call_began', step: 0, call: 0 }),
    ],
    ['a call that ends without a step', () => fold(ended(0, 0))],
    ['a call that ends in a closed step', () => fold(moveCall(0), ended(0, 0), ended(0, 0))],
    ['a call that ends in another step', () => fold(moveCall(0), ended(1, 0))],
    ['a call that ends twice', () => fold(moveParallel(0, 2), ended(0, 1), ended(0, 1))],
    ['a call that ends beyond the branches', () => fold(moveCall(0), ended(0, 1))],
    ['a call of a negative index', () => fold(moveCall(0), ended(0, -1))],
    ['a pause of a step that is not open', () => fold(paused('a', 0))],
    ['an answer to no pause', () => fold(resumed('a'))],
    ['an answer to another pause', () => fold(paused('a'), resumed('b'))],
    ['a second answer', () => fold(paused('a'), resumed('a'), resumed('a'))],
    [
      'an entry of a kind that nobody knows is applied by nobody',
      () => foldEntries([...journal(), { kind: 'dreamt', seq: 3, at: 0 } as unknown as Entry]),
    ],
  ])('%s', (_, read) => {
    expect(read).toThrow(expect.objectContaining({ code: 'journal_corrupt' }));
  });

  it('and says which entry, and why', () => {
    expect(() => fold(finished, failed)).toThrow(
      expect.objectContaining({
        message: 'Entry 3 (failed) cannot stand in the journal: the run had ended.',
        data: { seq: 3, kind: 'failed' },
      }),
    );
  });
});

describe('the fold', () => {
  it('opens with what the run started with', () => {
    expect(fold()).toEqual({
      head: 1,
      author: null,
      breakpoints: [],
      clientTools: null,
      trace: null,
      erased: null,
      recalled: null,
      beforeTurn: { steps: 0, taskSteps: 0 },
      continues: null,
      handsOver: null,
      rules: [],
      heard: [],
      turn: null,
      identity: { tenant: 't', user: 'u', session: 's', run: 'r' },
      query: 'q',
      goal: 'q',
      history: [],
      context: {},
      conversation: true,
      agent: 'p',
      limits: { steps: 5 },
      scopes: [],
      sources: [],
      startedAt: 100,
      updatedAt: 100,
      steps: [],
      filesFrom: null,
      open: null,
      pauses: [],
      steering: [],
      fresh: [],
      cancel: null,
      messagesTaken: 0,
      reopenings: 0,
      pin: null,
      task: null,
      fork: null,
      renamedTools: {},
      tasks: [],
      groups: [],
      background: [],
      otherEnds: [],
      otherPauses: [],
      withdrawn: [],
      watchers: [],
      whileAsked: 'withdraw',
      labels: null,
      undo: null,
      unwinding: null,
      undoStopped: false,
      answering: null,
      rejectedCall: null,
      reply: null,
      notice: false,
      noProgress: null,
      modelAway: null,
      watchedFrom: 0,
      rejections: 0,
      found: [],
      handles: [],
      compaction: null,
      compactedAt: -1,
      compactionFailures: null,
      contextLimits: [],
      overflows: null,
      totals: { steps: 0, taskSteps: 0, calls: 0, taskCalls: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
      ending: null,
    });
  });

  it('TJ-13 a step has its decision, what was said and thought, the outcomes, and its times', () => {
    const usage = { inputTokens: 3, outputTokens: 2, costMicroUsd: 9 };
    const move = moveCall(0, {
      text: 'said',
      reasoning: 'thought',
      usage,
      providerState: [1],
      provenance: { model: 'm' },
      startedAt: 90,
    });
    const state = fold(move, ended(0, 0, { startedAt: 95, costMicroUsd: 4 }));
    expect(state.steps).toEqual([
      {
        index: 0,
        decision: { kind: 'call_tool', tool: 't', args: {} },
        text: 'said',
        reasoning: 'thought',
        usage,
        providerState: [1],
        provenance: { model: 'm' },
        calls: [{ outcome: value, startedAt: 95, endedAt: 102, attempts: 1, seq: 3 }],
        startedAt: 90,
        endedAt: 102,
      },
    ]);
    expect(state.totals).toEqual({
      steps: 1,
      taskSteps: 0,
      calls: 1,
      taskCalls: 0,
      inputTokens: 3,
      outputTokens: 2,
      costMicroUsd: 13,
    });
  });

  it('a step is open until its last call has ended, in any order', () => {
    const open = fold(moveParallel(0, 3), { kind: 'call_began', step: 0, call: 2 }, ended(0, 1), ended(0, 2));
    expect(open.steps).toEqual([]);
    expect(open.open).toMatchObject({
      calls: [null, { seq: 4 }, { seq: 5 }],
      began: [{ call: 2, once: true }],
      pending: 1,
    });
    expect(nextStep(open)).toBe(1);
    const closed = fold(moveParallel(0, 3), ended(0, 1), ended(0, 2), ended(0, 0));
    expect(closed.open).toBeNull();
    expect(closed.steps[0]?.calls.map(({ seq }) => seq)).toEqual([5, 3, 4]);
    expect(nextStep(closed)).toBe(1);
  });

  it('a call that never started is no call in the totals', () => {
    expect(fold(moveCall(0), ended(0, 0, { attempts: 0 })).totals).toMatchObject({ steps: 1, calls: 0 });
  });

  it('a decision that did not pass is a closed step without calls, and counts until one passes', () => {
    const rejected = { code: 'invalid_decision', message: 'm' };
    const odd = { rejected, decision: { kind: 'dance' } };
    const state = fold(moveCall(0, odd), moveCall(1, { rejected }));
    expect(state).toMatchObject({ open: null, rejections: 2, totals: { steps: 2, calls: 0 } });
    expect(state.steps).toMatchObject([
      { index: 0, calls: [], error: rejected },
      { index: 1, calls: [], error: rejected },
    ]);
    expect(fold(moveCall(0, odd), moveCall(1)).rejections).toBe(0);
  });

  it('the verdict on a pause is the outcome of its step', () => {
    const open = fold(movePause(0), paused('a', 0));
    expect(open.pauses).toEqual([{ token: 'a', reason: 'await_input', step: 0, requestedAt: 102 }]);
    expect(isPaused(open)).toBe(true);
    const state = fold(movePause(0), paused('a', 0), resumed('a', { x: 1 }));
    expect(state).toMatchObject({ open: null, pauses: [] });
    expect(state.steps[0]?.calls).toEqual([
      { outcome: { kind: 'verdict', verdict: 'resume', payload: { x: 1 } }, endedAt: 103, attempts: 0, seq: 4 },
    ]);
  });

  it('limits in the answer to a pause between steps replace the old ones; in somebody’s words they are data', () => {
    expect(
      fold(paused('a'), { kind: 'resumed', token: 'a', verdict: 'resume', limits: { steps: 50, tokens: 9 } }).limits,
    ).toEqual({
      steps: 50,
      tokens: 9,
    });
    expect(fold(paused('a'), resumed('a', { limits: { steps: 50 } })).limits).toEqual({ steps: 5 });
  });

  it("an operator's pause, and one at a limit, hold the run as a whole; an ended one is not paused", () => {
    expect(isPaused(fold(paused('a')))).toBe(true);
    expect(isPaused(fold(moveCall(0), paused('a')))).toBe(true);
    expect(isPaused(fold(moveCall(0), paused('a'), ended(0, 0)))).toBe(true);
    expect(isPaused(fold(moveCall(0), paused('a'), resumed('a')))).toBe(false);
    expect(isPaused(fold(paused('a'), finished))).toBe(false);
  });

  it('controls count, are fresh until the next move, and steer at the step that is next', () => {
    const state = fold(
      control('REDIRECT', { goal: 'g' }),
      control('INJECT_CONTEXT', { a: 1 }),
      control('PAUSE', undefined, false),
    );
    expect(state).toMatchObject({ goal: 'g', query: 'q', messagesTaken: 3 });
    expect(state.fresh.map(({ type }) => type)).toEqual(['REDIRECT', 'INJECT_CONTEXT']);
    expect(state.steering.map(({ atStep }) => atStep)).toEqual([0, 0]);
    const later = fold(
      control('USER_MESSAGE', { message: 'm' }),
      moveCall(0),
      control('USER_MESSAGE', { message: 'n' }),
    );
    expect(later.steering.map(({ atStep }) => atStep)).toEqual([0, 1]);
    expect(later.fresh).toHaveLength(1);
  });

  it('a CANCEL is kept', () => {
    expect(fold(control('CANCEL', { reason: 'enough' })).cancel).toMatchObject({
      type: 'CANCEL',
      payload: { reason: 'enough' },
    });
  });

  it('endings', () => {
    expect(fold({ ...finished, payload: 1 } as EntryBody).ending).toEqual({
      kind: 'finished',
      reason: 'goal',
      payload: 1,
    });
    expect(fold(failed).ending).toEqual({ kind: 'failed', error: { code: 'c', message: 'm' } });
  });

  it('takes what the run was given, and that it is no turn of a conversation', () => {
    const context = { hints: { constraints: 'be brief' }, externalMemory: { likes: ['tea'] } };
    const [started] = journal() as [Entry];
    const state = foldEntries([{ ...started, context, conversation: false } as Entry]);
    expect(state).toMatchObject({ context, conversation: false });
  });

  it('DT-07 tools that calls made known are in order of first sight, each once, and in the record of the call', () => {
    const state = fold(
      moveParallel(0, 2),
      ended(0, 1, { discovered: ['b', 'a'] }),
      ended(0, 0, { discovered: ['a', 'c'] }),
      moveCall(1),
    );
    expect(state.found).toEqual(['b', 'a', 'c']);
    expect(state.steps[0]?.calls.map(({ discovered }) => discovered)).toEqual([
      ['a', 'c'],
      ['b', 'a'],
    ]);
    expect(fold(moveCall(0), ended(0, 0, { discovered: ['b'] }), moveCall(1), ended(1, 0)).found).toEqual(['b']);
  });

  it('what a tool stored on the way is in the record of its call', () => {
    const row = { artifactRef: 'art_1', mime: 'text/csv', sizeBytes: 3, source: 'tool: t', createdAt: 7 };
    expect(fold(moveCall(0), ended(0, 0, { artifacts: [row] })).steps[0]?.calls[0]?.artifacts).toEqual([row]);
  });

  it('RL-28 a move at fault is a closed step without calls, whatever its decision, and no rejection', () => {
    const fault = { code: 'empty_reply', message: 'The model said nothing.' };
    const remarks = [{ type: 'planner.action_extra_field_dropped', field: 'thought' }];
    const usage = { inputTokens: 3, outputTokens: 2 };
    for (const decision of [
      { kind: 'finish', reason: 'no_path' },
      { kind: 'call_parallel', branches: [{ tool: 't', args: {} }] },
      { kind: 'request_pause', reason: 'await_input' },
    ]) {
      const state = fold(moveCall(0, { decision, fault, remarks, usage }));
      expect(state).toMatchObject({ open: null, pauses: [], ending: null, rejections: 0 });
      expect(state.totals).toMatchObject({ steps: 1, calls: 0, inputTokens: 3, outputTokens: 2 });
      expect(state.steps).toMatchObject([{ index: 0, decision, calls: [], error: fault, remarks }]);
    }
    const rejected = { code: 'invalid_decision', message: 'm' };
    expect(fold(moveCall(0, { rejected }), moveCall(1, { fault })).rejections).toBe(0);
    expect(fold(moveCall(0, { fault }), moveCall(1, { rejected })).rejections).toBe(1);
  });

  it('a decision that did not pass counts as rejected, although its planner found a fault too', () => {
    const fault = { code: 'f', message: 'f' };
    const rejected = { code: 'invalid_decision', message: 'm' };
    expect(fold(moveCall(0, { fault, rejected }))).toMatchObject({ rejections: 1, steps: [{ error: rejected }] });
  });

  const summary = { goals: ['g'], facts: ['f'], pending: [], lastOutputDigest: 'd', note: '' };
  const compacted = (step: number, before: number, more: object = {}): EntryBody => ({
    kind: 'compacted',
    step,
    summary,
    before,
    tokenEstimate: 900,
    ...more,
  });

  it('CP-19 a compaction changes no step: the last one counts, and so does what it used', () => {
    const usage = { inputTokens: 70, outputTokens: 9, costMicroUsd: 4 };
    const steps = [moveCall(0), ended(0, 0), moveCall(1), ended(1, 0)];
    const plain = fold(...steps);
    const state = fold(...steps, compacted(2, 1, { usage }));
    expect(state.steps).toEqual(plain.steps);
    expect(state.compaction).toEqual({ summary, before: 1, tokenEstimate: 900 });
    expect(state.compactedAt).toBe(2);
    expect(state.totals).toEqual({ ...plain.totals, inputTokens: 70, outputTokens: 9, costMicroUsd: 4 });
    const later = fold(...steps, compacted(2, 1), moveCall(2), ended(2, 0), compacted(3, 3, { tokenEstimate: 800 }));
    expect(later).toMatchObject({ compaction: { before: 3, tokenEstimate: 800 }, compactedAt: 3 });
    expect(later.steps).toHaveLength(3);
  });

  const overflowed = (step: number, tokens: number, overflow: object, model = 'm'): EntryBody =>
    ({ kind: 'overflowed', step, model, tokens, overflow, error: { code: 'c', message: 'm' } }) as EntryBody;
  const limits = (...bodies: EntryBody[]) => fold(...bodies).contextLimits;

  it('a limit of a model is learnt from what did not fit, and only gets lower', () => {
    const said = { kind: 'input', limitTokens: 8_000, sentTokens: 10_000 };
    expect(limits(overflowed(0, 5_000, said))).toEqual([{ model: 'm', scale: 2, windowTokens: 8_000, tokens: 3_600 }]);
    expect(limits(overflowed(0, 10_000, { kind: 'input', limitTokens: 8_000 }))).toMatchObject([{ tokens: 7_200 }]);
    expect(limits(overflowed(0, 8_000, { kind: 'input', limitTokens: 8_000 }))).toMatchObject([{ tokens: 6_000 }]);
    expect(limits(overflowed(0, 1_000, { kind: 'input' }))).toEqual([{ model: 'm', tokens: 750 }]);
    // The reply that was asked for is part of the window, at most a quarter of it.
    const mixed = { kind: 'input', limitTokens: 8_000, sentTokens: 7_900, wishTokens: 4_000 };
    expect(limits(overflowed(0, 7_900, mixed))).toMatchObject([{ tokens: 5_400, wishTokens: 4_000 }]);
    const twice = limits(overflowed(0, 1_000, { kind: 'input' }), overflowed(0, 900, { kind: 'input' }, 'other'));
    expect(twice).toEqual([
      { model: 'm', tokens: 750 },
      { model: 'other', tokens: 675 },
    ]);
    expect(limits(overflowed(0, 600, { kind: 'input' }), overflowed(0, 1_000, { kind: 'input' }))).toMatchObject([
      { tokens: 450 },
    ]);
  });

  it('a limit of replies says nothing of requests', () => {
    expect(limits(overflowed(0, 100, { kind: 'output', mostTokens: 4_096 }))).toEqual([
      { model: 'm', replyTokens: 4_096 },
    ]);
    const shared = { kind: 'output', limitTokens: 8_192, sentTokens: 64, wishTokens: 8_192, mostTokens: 4_064 };
    expect(limits(overflowed(0, 64, shared))).toEqual([
      { model: 'm', scale: 1, windowTokens: 8_192, wishTokens: 8_192 },
    ]);
  });

  it('what did not fit counts with what it has used, and is forgotten when its pause is answered', () => {
    const pause = { kind: 'paused', token: 'k', reason: 'context_exhausted' } as const;
    const used = { ...overflowed(0, 1_000, { kind: 'input' }), usage: { inputTokens: 7 } } as EntryBody;
    expect(fold(used, pause)).toMatchObject({ overflows: { step: 0, times: 1 }, totals: { inputTokens: 7, steps: 0 } });
    expect(fold(used, used).overflows).toEqual({ step: 0, times: 2 });
    expect(fold(used, pause, resumed('k'))).toMatchObject({ contextLimits: [], overflows: null, pauses: [] });
    expect(fold(used, { ...pause, reason: 'model_unavailable' }, resumed('k')).contextLimits).toHaveLength(1);
  });

  it('a result that is shortened is its preview, the whole is in the artifact, and the rest of the step is as it was', () => {
    const artifact = { artifactRef: 'art_1', mime: 'application/json', sizeBytes: 9 };
    const shortened: EntryBody = {
      kind: 'shortened',
      step: 1,
      results: [{ call: 1, value: 'p', artifact }],
      tokenEstimate: 5,
    };
    const steps = [moveParallel(0, 2), ended(0, 0), ended(0, 1)];
    const before = fold(...steps);
    const state = fold(...steps, shortened);
    expect(state.steps[0]?.calls.map(({ outcome }) => outcome)).toEqual([
      value,
      { kind: 'value', value: 'p', artifact },
    ]);
    expect({ ...state.steps[0], calls: [] }).toEqual({ ...before.steps[0], calls: [] });
    expect(state.found).toEqual(['artifact_fetch']);
    const failedCall = ended(0, 0, { outcome: { kind: 'error', error: { code: 'c', message: 'm' } } });
    const first: EntryBody = { ...shortened, results: [{ call: 0, value: 'p', artifact }] };
    for (const wrong of [
      () => fold(...steps, { ...shortened, step: 2 }),
      () => fold(...steps, { ...shortened, results: [{ call: 2, value: 'p', artifact }] }),
      () => fold(moveCall(0), failedCall, first),
      () => fold(moveCall(0), first),
    ]) {
      expect(wrong).toThrow('cannot stand in the journal');
    }
  });

  it('CP-17 one that failed leaves the last summary as it is, and is not tried again before the same step', () => {
    const failure: EntryBody = {
      kind: 'compaction_failed',
      step: 1,
      error: { code: 'summariser_error', message: 'm' },
      tokenEstimate: 0,
      usage: { inputTokens: 5 },
    };
    const state = fold(compacted(0, 0), moveCall(0), ended(0, 0), failure);
    expect(state).toMatchObject({ compaction: { before: 0 }, compactedAt: 1, totals: { steps: 1, inputTokens: 5 } });
  });

  it.each([
    ['of steps that have not been', () => fold(moveCall(0), ended(0, 0), compacted(1, 2))],
    ['before a step that is not next', () => fold(moveCall(0), ended(0, 0), compacted(0, 0))],
  ])('a compaction %s cannot be', (_, read) => {
    expect(read).toThrow(expect.objectContaining({ code: 'journal_corrupt' }));
  });

  it('PC-06 what is in the state cannot be changed through a step', () => {
    const state = fold(
      moveParallel(0, 1),
      ended(0, 0, { outcome: { kind: 'error', error: { code: 'c', message: 'm', data: { a: [1] } } } }),
    );
    const isFrozen = (part: unknown): boolean =>
      typeof part !== 'object' || part === null || (Object.isFrozen(part) && Object.values(part).every(isFrozen));
    expect(isFrozen(state.steps[0])).toBe(true);
  });
});
