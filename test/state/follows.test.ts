/** The fold's rules, asked of several entries at once, say what the fold itself says of them one after another. */
import { describe, expect, it } from 'vitest';
import { type Decision, deepFreeze, type Entry, type EntryBody, local } from '#core';
import { applyEntry, misfitAmong, openState, type RunState } from '#state';
import { seededRandom } from '#testing';

const started: Entry = {
  kind: 'started',
  seq: 1,
  at: 1,
  identity: local('ana', { run: 'r' }),
  query: 'q',
  agent: 'p',
  limits: {},
  scopes: [],
};
const value = { kind: 'value', value: 1 } as const;

/** Entries of a small world, so that most of them meet others: half of them make no sense where they stand. */
function anyBody(random: () => number, state: RunState): EntryBody {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const call = pick([0, 0, 1, 1, 2, 3, -1]);
  const step = random() < 0.1 ? pick([0, 1, 2]) : Math.max(0, state.steps.length + pick([0, 0, 0, 1]));
  const token = pick(['a', 'b', 'c']);
  const branch = (id: number) => ({ id: `n${id}`, tool: 't', args: {} });
  const size = state.open?.calls.length ?? 0;
  const decisions: Decision[] = [
    { kind: 'call_tool', tool: 't', args: {} },
    { kind: 'call_parallel', plan: 'p', branches: [branch(0), branch(1)] },
    { kind: 'call_parallel', plan: 'p', branches: [branch(0)] },
    { kind: 'request_pause', reason: 'await_input' },
    { kind: 'finish', reason: 'goal' },
  ];
  const reason = pick(['external_event', 'in_doubt', 'approval_required'] as const);
  const nodes = { [`n${Math.max(0, call)}`]: pick([{ skip: true }, { args: {} }]) };
  const bodies: (() => EntryBody)[] = [
    () => ({ kind: 'moved', step, decision: pick(decisions), startedAt: 1 }),
    () => ({ kind: 'moved', step, decision: decisions[pick([1, 2])] as Decision, startedAt: 1, growing: true }),
    () => ({ kind: 'moved', step, decision: pick(decisions), startedAt: 1, fault: { code: 'x', message: 'y' } }),
    () => ({
      kind: 'plan_grown',
      step,
      branches: pick([[], [branch(size)]]),
      ...(random() < 0.5 ? { done: true } : {}),
    }),
    () => ({ kind: 'call_began', step, call }),
    () => ({ kind: 'call_ended', step, call, outcome: value, attempts: 1 }),
    () => ({ kind: 'call_ended', step, call, outcome: value, attempts: 1 }),
    () => ({ kind: 'paused', token, reason, step, call }),
    () => ({ kind: 'paused', token, reason, ...(random() < 0.5 ? { step } : {}) }),
    () => ({ kind: 'resumed', token, verdict: pick(['approve', 'reject', 'resume', 'timeout'] as const) }),
    () => ({ kind: 'resumed', token, verdict: 'resume', nodes }),
    () => ({ kind: 'resumed', token, verdict: 'settle', ...(random() < 0.5 ? { outcome: value } : {}) }),
    () => ({ kind: 'awaiting', step, call, task: 'x' }),
    () => ({ kind: 'compacted', step, before: 0, summary: {}, tokenEstimate: 1 }) as unknown as EntryBody,
    () => (random() < 0.1 ? { kind: 'finished', reason: 'goal' } : { kind: 'watched', by: 'x' }),
    () => (random() < 0.1 ? { ...started } : { kind: 'no_progress', step, period: 1, times: 3 }),
  ];
  return pick(bodies)();
}

/** The first of the bodies that the fold refuses, applied one after another to a copy. */
function refusedByFold(state: RunState, bodies: readonly EntryBody[]): EntryBody | undefined {
  const copy = structuredClone(state);
  for (const body of bodies) {
    try {
      applyEntry(copy, entryAt(copy, body));
    } catch (error) {
      expect(error).toMatchObject({ code: 'journal_corrupt' });
      return body;
    }
  }
  return undefined;
}

function entryAt({ head }: RunState, body: EntryBody): Entry {
  return deepFreeze({ ...structuredClone(body), seq: head + 1, at: head + 1 });
}

describe('entries that are to be appended', () => {
  it('are judged together as the fold judges them one by one, and change nothing', () => {
    let accepted = 0;
    let refused = 0;
    for (let seed = 1; seed <= 400; seed += 1) {
      const random = seededRandom(seed);
      const state = openState(deepFreeze(structuredClone(started)));
      for (let turn = 0; turn < 25; turn += 1) {
        const bodies = Array.from({ length: 1 + Math.floor(random() * 4) }, () => anyBody(random, state));
        const before = JSON.stringify(state);
        const misfit = misfitAmong(state, bodies);
        expect(JSON.stringify(state)).toBe(before);
        const byFold = refusedByFold(state, bodies);
        if (misfit?.body !== byFold)
          throw new Error(`seed ${seed}, turn ${turn}: ${JSON.stringify({ bodies, misfit, byFold })}`);
        const good = byFold === undefined ? bodies : bodies.slice(0, bodies.indexOf(byFold));
        for (const body of good) applyEntry(state, entryAt(state, body));
        if (byFold === undefined && bodies.length > 1) accepted += 1;
        if (byFold !== undefined) refused += 1;
      }
    }
    expect(accepted).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  });

  it('cost the same however long the run is', () => {
    const state = openState(deepFreeze(structuredClone(started)));
    const touched: PropertyKey[] = [];
    const long = {
      ...state,
      head: 100_000,
      steps: watchedList(100_000, touched),
      tasks: watchedList(100_000, touched),
    };
    const body: EntryBody = {
      kind: 'moved',
      step: 100_000,
      decision: { kind: 'finish', reason: 'goal' },
      startedAt: 1,
    };
    expect(misfitAmong(long, [body, { kind: 'finished', reason: 'goal' }])).toBeUndefined();
    expect(new Set(touched)).toEqual(new Set(['length']));
  });
});

/** A list that notes what is read of it. */
function watchedList(length: number, touched: PropertyKey[]): never[] {
  return new Proxy(new Array<never>(length), {
    get(target, key) {
      touched.push(key);
      return Reflect.get(target, key);
    },
  });
}
