import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Branch, Decision, Json, Outcome, Step } from '#core';
import { MAX_PERIOD, MAX_TIMES, repetitionIn } from '#state';

const value = (json: Json): Outcome => ({ kind: 'value', value: json });
const failure = (message: string, code = 'tool_failed'): Outcome => ({ kind: 'error', error: { code, message } });

/** What a step is but for its place: the same for each time it is taken. */
interface Taken {
  readonly decision: Decision;
  readonly outcomes: readonly Outcome[];
  readonly error?: { readonly code: string; readonly message: string };
}

const call = (tool: string, args: Json = {}, outcome: Outcome = value('ok')): Taken => ({
  decision: { kind: 'call_tool', tool, args },
  outcomes: [outcome],
});

/** Steps with what differs from step to step in every run: ids, times, words, usage. */
function stepsOf(taken: readonly Taken[]): Step[] {
  return taken.map(({ decision, outcomes, error }, index) => ({
    index,
    decision: error === undefined ? withCallIds(decision, index) : decision,
    calls: outcomes.map((outcome, place) => ({
      outcome,
      startedAt: index,
      endedAt: index + 1,
      attempts: 1,
      seq: index * 10 + place,
    })),
    text: `text ${index}`,
    reasoning: `reasoning ${index}`,
    usage: { inputTokens: index },
    startedAt: index,
    endedAt: index + 1,
    ...(error === undefined ? {} : { error }),
  }));
}

function withCallIds(decision: Decision, step: number): Decision {
  if (decision.kind === 'request_pause' || decision.kind === 'finish') return decision;
  if (decision.kind !== 'call_parallel') return { ...decision, callId: `call_${step}` };
  const branches = decision.branches.map((branch, index): Branch => ({ ...branch, callId: `call_${step}_${index}` }));
  return { ...decision, branches };
}

const found = (...taken: readonly Taken[]): unknown => repetitionIn(stepsOf(taken), 0);

const A = call('read', { path: 'a' });
const B = call('read', { path: 'b' });
const C = call('list');
const D = call('write');

describe('repetitionIn', () => {
  it('finds A, A, A and A, B, A, B, and rounds of three and four', () => {
    expect(found(A, A, A)).toEqual({ period: 1, times: 3 });
    expect(found(A, B, A, B)).toEqual({ period: 2, times: 2 });
    expect(found(C, A, B, C, A, B, C)).toEqual({ period: 3, times: 2 });
    expect(found(A, B, C, D, A, B, C, D, A, B, C, D)).toEqual({ period: 4, times: 3 });
  });

  it('counts from the end, in whole rounds', () => {
    expect(found(C, D, A, A)).toEqual({ period: 1, times: 2 });
    expect(found(B, A, B, A, B)).toEqual({ period: 2, times: 2 });
    expect(found(A, A, A, B)).toBeUndefined();
    expect(found(A, B, C, A, B)).toBeUndefined();
    expect(found()).toBeUndefined();
    expect(found(A)).toBeUndefined();
  });

  it('takes the shortest round of those that were taken often enough', () => {
    const steps = stepsOf([A, B, B, A, B, B, A, B, B]);
    expect(repetitionIn(steps, 0)).toEqual({ period: 1, times: 2 });
    expect(repetitionIn(steps, 0, { least: 3 })).toEqual({ period: 3, times: 3 });
    expect(repetitionIn(steps, 0, { least: 4 })).toBeUndefined();
  });

  it('leaves out the steps before `from`', () => {
    const steps = stepsOf([A, A, A, A]);
    expect(repetitionIn(steps, 1)).toEqual({ period: 1, times: 3 });
    expect(repetitionIn(steps, 2)).toEqual({ period: 1, times: 2 });
    expect(repetitionIn(steps, 3)).toBeUndefined();
    expect(repetitionIn(steps, 9)).toBeUndefined();
  });

  it('is not misled by near misses', () => {
    const large = (artifactRef: string): Outcome => ({
      kind: 'value',
      value: 'begins the same',
      artifact: { artifactRef, mime: 'text/plain', sizeBytes: 99_999 },
    });
    const parallel = (args: Json, last: Outcome): Taken => ({
      decision: {
        kind: 'call_parallel',
        branches: [
          { tool: 'read', args: {} },
          { tool: 'list', args },
        ],
      },
      outcomes: [value(1), last],
    });
    const misses: [Taken, Taken][] = [
      [call('poll', {}, value({ done: 1 })), call('poll', {}, value({ done: 2 }))],
      [call('poll', {}, failure('no')), call('poll', {}, failure('not yet'))],
      [call('poll', {}, failure('no', 'a')), call('poll', {}, failure('no', 'b'))],
      [call('poll', {}, value('no')), call('poll', {}, failure('no'))],
      [call('poll', {}, large('art_1')), call('poll', {}, large('art_2'))],
      [call('read', { page: 1 }), call('read', { page: 2 })],
      [call('read'), call('list')],
      [parallel({}, value(2)), parallel({}, value(3))],
      [parallel({ page: 1 }, value(2)), parallel({ page: 2 }, value(2))],
      [
        parallel({}, value(2)),
        { ...parallel({}, value(2)), decision: { ...parallel({}, value(2)).decision, concurrency: 1 } as Decision },
      ],
    ];
    for (const [one, other] of misses) {
      expect(found(one, one)).toEqual({ period: 1, times: 2 });
      expect(found(one, other)).toBeUndefined();
    }
  });

  it('does not look at the order of keys, and looks into arguments called callId', () => {
    expect(found(call('read', { a: 1, b: 2 }), call('read', { b: 2, a: 1 }))).toEqual({ period: 1, times: 2 });
    expect(found(call('read', { callId: 1 }), call('read', { callId: 2 }))).toBeUndefined();
  });

  it('counts no answered pause: somebody outside has moved the run', () => {
    const answer: Outcome = { kind: 'verdict', verdict: 'resume', payload: { message: 'yes' } };
    const pause: Taken = { decision: { kind: 'request_pause', reason: 'await_input' }, outcomes: [answer] };
    expect(found(pause, pause, pause)).toBeUndefined();
    expect(found(A, pause, A, pause)).toBeUndefined();
  });

  it('counts replies that came to nothing only between calls, whatever shape they have', () => {
    const faulty = (decision: unknown, message: string): Taken => ({
      decision: decision as Decision,
      outcomes: [],
      error: { code: 'invalid_decision', message },
    });
    const fault = faulty({ kind: 'call_parallel', branches: 'none' }, 'no branches');
    expect(found(fault, fault, fault)).toBeUndefined();
    expect(found(A, fault, A, fault)).toEqual({ period: 2, times: 2 });
    expect(found(A, fault, fault, A, fault, fault)).toEqual({ period: 3, times: 2 });
    expect(found(A, fault, A, faulty({ kind: 'call_parallel', branches: 'none' }, 'another'))).toBeUndefined();
    expect(found(A, fault, A, faulty({ kind: 'call_parallel' }, 'no branches'))).toBeUndefined();
  });

  it('looks back a bounded way, however long the run is', () => {
    const look = (taken: readonly Taken[]): { looked: number; result: unknown } => {
      const steps = stepsOf(taken);
      const looked = new Set<number>();
      const watched = new Proxy(steps, {
        get(target, key, receiver) {
          if (typeof key === 'string' && /^\d+$/.test(key)) looked.add(Number(key));
          return Reflect.get(target, key, receiver) as unknown;
        },
      });
      const result = repetitionIn(watched, 0);
      return { looked: looked.size, result };
    };
    expect(look(new Array<Taken>(2_000).fill(A))).toEqual({
      looked: MAX_TIMES,
      result: { period: 1, times: MAX_TIMES },
    });
    const round = Array.from({ length: 2_000 }, (_, index) => [A, B, C, D][index % 4] as Taken);
    expect(look(round)).toEqual({
      looked: MAX_PERIOD * MAX_TIMES,
      result: { period: 4, times: MAX_TIMES },
    });
    const fresh = Array.from({ length: 2_000 }, (_, page) => call('read', { page }));
    expect(look(fresh)).toEqual({ looked: MAX_PERIOD + 1, result: undefined });
  });

  it('reads no arguments and no values when the tools differ', () => {
    const trapped = (tool: string): Taken => {
      const refuse = (): never => {
        throw new Error('it was read');
      };
      const decision = Object.defineProperty({ kind: 'call_tool', tool }, 'args', { get: refuse, enumerable: true });
      const outcome = Object.defineProperty({ kind: 'value' }, 'value', { get: refuse, enumerable: true });
      return { decision: decision as unknown as Decision, outcomes: [outcome as unknown as Outcome] };
    };
    const bare = (taken: Taken, index: number): Step => ({
      index,
      decision: taken.decision,
      calls: taken.outcomes.map((outcome) => ({ outcome, endedAt: 0, attempts: 1, seq: 1 })),
      startedAt: 0,
      endedAt: 0,
    });
    expect(repetitionIn(['a', 'b', 'c', 'd', 'e'].map(trapped).map(bare), 0)).toBeUndefined();
    expect(() => repetitionIn(['a', 'a'].map(trapped).map(bare), 0)).toThrow('it was read');
  });

  it('agrees with the plain definition', () => {
    const few = fc.constantFrom(
      A,
      B,
      call('read', { path: 'a' }, value('other')),
      call('read', { path: 'a' }, failure('no')),
    );
    const rounds = fc
      .tuple(fc.array(few, { maxLength: 5 }), fc.array(few, { minLength: 1, maxLength: 5 }), fc.nat(16))
      .map(([before, round, times]) => [...before, ...new Array<readonly Taken[]>(times).fill(round).flat()]);
    fc.assert(
      fc.property(rounds, fc.nat(20), fc.integer({ min: 2, max: 5 }), (taken, from, least) => {
        expect(repetitionIn(stepsOf(taken), from, { least })).toEqual(naive(taken.slice(from), least));
      }),
      { numRuns: 500 },
    );
  });
});

/** The definition, written out: for each period the most times that the end of the list is one round repeated. */
function naive(taken: readonly Taken[], least: number): unknown {
  const words = taken.map((one) => JSON.stringify(one));
  for (let period = 1; period <= MAX_PERIOD; period += 1) {
    for (let times = MAX_TIMES; times >= least; times -= 1) {
      const end = words.slice(-period * times);
      if (end.length < period * times) continue;
      const round = end.slice(0, period).join();
      const isRepeated = Array.from({ length: times }, (_, at) => end.slice(at * period, (at + 1) * period).join());
      if (isRepeated.every((one) => one === round)) return { period, times };
    }
  }
  return undefined;
}
