/** The index of what waits is changed in the commits of entries, and must say what all of them say together. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deepFreeze, type Entry, type EntryBody, type WaitRow } from '#core';
import { applyEntry, foldEntries, misfitAmong, openState, openWaitsOf, type RunState, waitChanges } from '#state';

const CALLS = 3;
const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
const started: Entry = {
  ...({ kind: 'started', identity, query: 'q', agent: 'a', limits: {}, scopes: [], seq: 1, at: 1 } as const),
};
const branches = ['pay', 'ask', 'wait'].map((tool) => ({ tool, args: {} }));
const value = { kind: 'value', value: 1 } as const;
const provenance = { model: 'm', provider: 'p' } as never;

/** What may come next, in this state: each of these bodies or lists of them is tried, and what does not fit is passed over. */
function next(state: RunState, kind: number, call: number, wait: number): readonly EntryBody[] {
  const step = state.open?.move.step ?? state.steps.length;
  const at = { step, call: call % CALLS, wait };
  const token = `p${state.head}`;
  const pause = state.pauses[wait % Math.max(1, state.pauses.length)]?.token ?? 'none';
  const of = { step, call: at.call };
  const until = 1_000 + wait;
  const passed = { kind: 'event_passed', ...at, key: `k${at.call}`, signal: `s${wait}`, payload: wait } as const;
  const kinds: readonly (readonly EntryBody[])[] = [
    [{ kind: 'moved', step, decision: { kind: 'call_parallel', branches }, startedAt: 1, provenance }],
    [{ kind: 'call_waits', ...of, startedAt: 1, waits: [{ wait, for: 'time', until }] }],
    [
      {
        ...{ kind: 'call_waits', ...of, startedAt: 1 },
        waits: [
          { wait, for: 'event', key: `k${at.call}`, schema: { type: 'number' } },
          { wait: wait + 1, for: 'time', until },
        ],
      },
    ],
    [
      { kind: 'call_waits', ...of, startedAt: 1, waits: [{ wait, for: 'answer', token }] },
      { kind: 'paused', token, reason: 'await_input', ...at, payload: { question: 'x'.repeat(wait * 5_000) } },
    ],
    [{ kind: 'wait_ended', ...at, ended: 'time' }],
    [{ kind: 'wait_ended', ...at, ended: 'event', payload: 1, signal: 's' }],
    [{ ...passed, error: { code: 'wait_over', message: 'over' } }],
    [{ ...passed, error: { code: 'payload_invalid', message: 'not a number' } }],
    [{ kind: 'paused', token, reason: 'approval_required', ...of, approver: 'another' }],
    [{ kind: 'paused', token, reason: 'budget_exceeded' as never, expiresAt: until }],
    [{ kind: 'resumed', token: pause, verdict: 'resume' }],
    [{ kind: 'resumed', token: pause, verdict: 'approve' }],
    [{ kind: 'resumed', token: pause, verdict: 'reject' }],
    [{ kind: 'resumed', token: pause, verdict: 'answer', value: 1 }],
    [{ kind: 'resumed', token: pause, verdict: 'timeout' }],
    [{ kind: 'call_ended', ...of, outcome: value, attempts: 1 }],
    [{ kind: 'failed', error: { code: 'x', message: 'x' } }],
    [{ kind: 'finished', reason: 'no_path' as never }],
    [{ kind: 'reopened' }],
  ];
  return kinds[kind % kinds.length] ?? [];
}

const KINDS = 19;
const histories = fc.array(
  fc.array(fc.tuple(fc.nat(KINDS - 1), fc.nat(CALLS - 1), fc.integer({ min: 1, max: 3 })), {
    minLength: 1,
    maxLength: 3,
  }),
  { maxLength: 40 },
);

/** The waits of three calls begin and end in every way, and the run goes on behind its ending. */
const everyKind: readonly (readonly (readonly [number, number, number])[])[] = [
  [[0, 0, 1]],
  [
    [3, 0, 1],
    [2, 1, 1],
    [1, 2, 1],
  ],
  [[7, 1, 1]],
  [[5, 1, 1]],
  [[6, 1, 1]],
  [[4, 2, 1]],
  [[13, 0, 1]],
  [
    [15, 0, 1],
    [15, 1, 1],
  ],
  [[16, 0, 1]],
  [[18, 0, 1]],
];

/** Plays what fits, an append at a time, and says after each what the index has. */
function play(history: readonly (readonly (readonly [number, number, number])[])[]): {
  readonly entries: readonly Entry[];
  readonly looks: readonly { readonly index: readonly WaitRow[]; readonly said: readonly WaitRow[] }[];
} {
  const state = openState(deepFreeze(started));
  const entries: Entry[] = [started];
  const index = new Map<string, WaitRow>();
  const looks: { index: WaitRow[]; said: readonly WaitRow[] }[] = [];
  for (const commit of history) {
    const ahead = foldEntries(entries);
    const added: Entry[] = [];
    for (const [kind, call, wait] of commit) {
      const bodies = next(ahead, kind, call, wait);
      if (misfitAmong(ahead, bodies) !== undefined) continue;
      for (const body of bodies) {
        const entry = deepFreeze({ ...body, seq: ahead.head + 1, at: ahead.head * 10 } as Entry);
        added.push(entry);
        applyEntry(ahead, entry);
      }
    }
    if (added.length === 0) continue;
    const { ends, removes = [], adds = [] } = waitChanges(state, added) ?? {};
    if (ends === true) index.clear();
    for (const id of removes) index.delete(id);
    for (const row of adds) index.set(row.id, row);
    for (const entry of added) applyEntry(state, entry);
    entries.push(...added);
    looks.push({ index: [...index.values()].toSorted(byId), said: [...openWaitsOf(state)].toSorted(byId) });
  }
  return { entries, looks };
}

function byId(one: WaitRow, other: WaitRow): number {
  return one.id < other.id ? -1 : 1;
}

describe('the index of what waits', () => {
  it('J7 is what the entries say, after every append of any history', () => {
    let most = 0;
    const seen = new Set<string>();
    fc.assert(
      fc.property(histories, (history) => {
        const { entries, looks } = play(history);
        for (const { index, said } of looks) {
          expect(index).toEqual(said);
          most = Math.max(most, index.length);
          for (const row of index) seen.add(row.for);
        }
        for (const { kind } of entries) seen.add(kind);
        expect(looks.at(-1)?.said ?? []).toEqual([...openWaitsOf(foldEntries(entries))].toSorted(byId));
      }),
      { numRuns: 400, examples: [[everyKind.map((commit) => [...commit])]] },
    );
    // It has played what it is about.
    expect(most).toBeGreaterThan(2);
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'answer',
        'time',
        'event',
        'reopened',
        'resumed',
        'wait_ended',
        'event_passed',
        'call_ended',
      ]),
    );
  });

  const moved = next(openState(started), 0, 0, 1);
  const written = (...bodies: readonly EntryBody[]): Entry[] =>
    [started, ...bodies.map((body, index): Entry => ({ ...body, seq: index + 2, at: 5 }) as Entry)].map(deepFreeze);

  it('is not changed by the entries of a plain step', () => {
    const entries = written(...moved, { kind: 'call_ended', step: 0, call: 0, outcome: value, attempts: 1 });
    for (let head = 1; head < entries.length; head += 1) {
      expect(waitChanges(foldEntries(entries.slice(0, head)), entries.slice(head, head + 1))).toBeUndefined();
    }
  });

  it('has a question with what is shown to whoever answers, and leaves out what is too large', () => {
    const asked: EntryBody = {
      ...{ kind: 'paused', token: 'p1', reason: 'await_input', step: 0, call: 1, wait: 1, expiresAt: 99 },
      ...{ payload: { question: 'Which?' }, schema: { type: 'object', description: 'x'.repeat(9_000) } },
    };
    const waits: EntryBody = {
      kind: 'call_waits',
      step: 0,
      call: 1,
      startedAt: 1,
      waits: [{ wait: 1, for: 'answer', token: 'p1' }],
    };
    expect(openWaitsOf(foldEntries(written(...moved, waits, asked)))).toEqual([
      {
        ...{ id: 'p1', for: 'answer', reason: 'await_input', requestedAt: 5, until: 99, step: 0, call: 1, wait: 1 },
        ...{ tool: 'ask', payload: { question: 'Which?' }, omits: ['schema'] },
      },
    ]);
  });

  it('gives back a signal whose wait was over, and takes up again a wait that could not use one', () => {
    const waits: EntryBody = {
      ...{ kind: 'call_waits', step: 0, call: 2, startedAt: 1 },
      waits: [{ wait: 1, for: 'event', key: 'k', schema: { type: 'number' } }],
    };
    const state = foldEntries(written(...moved, waits));
    const at = { step: 0, call: 2, wait: 1 };
    const passed = (code: string): Entry =>
      deepFreeze({
        kind: 'event_passed',
        ...at,
        key: 'k',
        signal: 's',
        payload: 'x',
        error: { code, message: code },
        seq: 4,
        at: 6,
      });
    expect(waitChanges(state, [passed('payload_invalid')])).toEqual({ adds: openWaitsOf(state) });
    expect(waitChanges(state, [passed('wait_over')])).toEqual({ returns: [{ key: 'k', signal: 's', payload: 'x' }] });
  });

  it('is told what an answer changes without a look at the other questions that are open', () => {
    let looks = 0;
    const questions = Array.from({ length: 200 }, (_, wait): EntryBody[] => {
      const payload = {
        get question() {
          looks += 1;
          return `question ${wait}`;
        },
      };
      const at = { step: 0, call: 1 };
      return [
        { kind: 'call_waits', ...at, startedAt: 1, waits: [{ wait, for: 'answer', token: `p${wait}` }] },
        { kind: 'paused', token: `p${wait}`, reason: 'await_input', ...at, wait, payload },
      ];
    });
    const entries = written(...moved, ...questions.flat());
    const state = foldEntries(entries);
    looks = 0;
    const answered = deepFreeze({ kind: 'resumed', token: 'p7', verdict: 'answer', value: 1, at: 9 } as const);
    expect(waitChanges(state, [{ ...answered, seq: state.head + 1 }])).toEqual({ removes: ['p7'] });
    expect(looks).toBeLessThan(5);
  });
});
