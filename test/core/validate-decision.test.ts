import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type Decision,
  dependenciesOf,
  linkBranches,
  MAX_BRANCHES,
  MAX_PLAN_BRANCHES,
  orderOf,
  PilotageError,
  readDecision,
  validateDecision,
} from '#core';

/** What validation says of something that a planner without types may give. */
function refusal(decision: unknown): PilotageError {
  try {
    validateDecision(decision as Decision);
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw error;
  }
  throw new Error('it passed');
}

const branches = (count: number): Branch[] => Array.from({ length: count }, () => ({ tool: 't', args: {} }));
const parallel = (...list: Record<string, unknown>[]): unknown => ({
  kind: 'call_parallel',
  branches: list.map((branch) => ({ tool: 't', args: {}, ...branch })),
});
const isFrozen = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
const self: Record<string, unknown> = {};
self['self'] = self;

const REF = { artifactRef: 'art_0', mime: 'application/json', sizeBytes: 40_000 };

const VALID: Decision[] = [
  { kind: 'call_tool', tool: 't', args: { a: [1] }, callId: 'c1' },
  {
    kind: 'call_parallel',
    branches: [
      { id: 'a', tool: 't', args: {}, callId: 'c1' },
      { tool: 't', args: { x: { $from: 'a', path: '/y' } }, after: ['a'], when: { branch: 'a', equals: null } },
    ],
    join: { kind: 'keyed', keys: ['one', 'two'] },
    onInvalid: 'per_branch',
  },
  {
    kind: 'call_parallel',
    plan: 'p',
    failFast: true,
    branches: [
      { id: 'a', tool: 't', args: { of: { $from: 'gone', step: 7 } } },
      {
        tool: 't',
        args: null,
        routes: [
          { args: { x: { $from: 'a' } }, when: { branch: 'a', equals: 1 } },
          { args: {}, after: ['a'] },
        ],
      },
    ],
  },
  { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', priority: -1000 }, groupId: 'g' },
  { kind: 'await_task', taskId: 't1', timeoutMs: 0 },
  { kind: 'request_pause', reason: 'await_input', payload: { question: '?' }, expiresInMs: 5 },
  { kind: 'finish', reason: 'goal', payload: { answer: 'a' }, metadata: { k: 1 } },
  { kind: 'finish', reason: 'goal', payload: REF, stored: true },
];

const NO_JSON = { code: 'tool_invalid_args', message: 'The arguments are no JSON.', data: { at: 7 } };

describe('validateDecision', () => {
  it.each(
    VALID,
  )('DV-20 takes $kind, gives back equal frozen JSON, and reads it back as the same variant', (decision) => {
    const validated = validateDecision(decision);
    expect(validated).toEqual(decision);
    expect(Object.isFrozen(validated)).toBe(true);
    expect(readDecision(JSON.parse(JSON.stringify(validated)))).toEqual(decision);
  });

  it('DV-01 a call carries tool, args and callId, and nothing that was thought', () => {
    const thoughtful = { kind: 'call_tool', tool: 't', args: {}, reasoning: 'because' } as Decision;
    expect(() => validateDecision(thoughtful)).toThrow(/no field "reasoning"\. Thoughts travel beside the decision/);
  });

  it.each<Decision>([
    { kind: 'call_tool', tool: 'nobody', args: {}, callId: 'c1', refusal: NO_JSON },
    {
      kind: 'call_parallel',
      branches: [
        { tool: 't', args: {} },
        { tool: '_finish', args: {}, callId: 'c2', refusal: { code: 'tool_not_found', message: 'm' } },
      ],
    },
  ])('RA-17 takes a $kind that its planner refuses, and keeps why', (decision) => {
    const validated = validateDecision(decision);
    expect(validated).toEqual(decision);
    expect(isFrozen(validated)).toBe(true);
    expect(readDecision(JSON.parse(JSON.stringify(validated)))).toEqual(decision);
  });

  it('DV-01 a refused call carries no thoughts either', () => {
    const thoughtful = { kind: 'call_tool', tool: 't', args: {}, refusal: NO_JSON, reasoning: 'because' } as Decision;
    expect(() => validateDecision(thoughtful)).toThrow(/no field "reasoning"/);
  });

  it.each<[unknown, RegExp]>([
    [
      { kind: 'finish', reason: 'goal', answer: 'x' },
      /finish has no field "answer"\. Write payload: .* Its fields are kind, reason, payload/,
    ],
    [
      { kind: 'request_pause', reason: 'await_input', message: 'Which?' },
      /request_pause has no field "message"\. Write payload/,
    ],
    [{ kind: 'call_tool', tool: 't', args: {}, timeoutMs: 5 }, /call_tool has no field "timeoutMs"/],
    [{ kind: 'call_tool', name: 't', args: {} }, /call_tool has no field "name"/],
    [{ kind: 'call_tool', tool: 't', arguments: {} }, /no field "arguments"\. Write args/],
    [
      { kind: 'call_parallel', branches: [{ tool: 't', args: {} }], joinn: 'all' },
      /no field "joinn"\. Did you mean join\?/,
    ],
    [parallel({}, { needs: ['0'] }), /branches\[1\] has no field "needs"/],
    [
      parallel({}, { args: null, routes: [{ args: {}, before: [] }] }),
      /branches\[1\]\.routes\[0\] has no field "before"/,
    ],
    [
      { kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'q', limit: { steps: 1 } } },
      /spec has no field "limit"\. Did you mean limits\?/,
    ],
    [{ kind: 'await_task', taskId: 't', timeout: 5 }, /no field "timeout"/],
  ])('refuses a field that nobody reads: %j', (decision, message) => {
    expect(() => validateDecision(decision as Decision)).toThrow(message);
  });

  it.each<[string, unknown, string]>([
    ['a refusal that is text', { kind: 'call_tool', tool: 't', args: {}, refusal: 'no' }, 'refusal must be'],
    ['a refusal that is null', { kind: 'call_tool', tool: 't', args: {}, refusal: null }, 'refusal must be'],
    ['a refusal without a code', { kind: 'call_tool', tool: 't', args: {}, refusal: { message: 'm' } }, 'refusal must'],
    ['a refusal without a message', parallel({}, { refusal: { code: 'c' } }), 'branches[1].refusal'],
    [
      'a refusal that is not JSON',
      { kind: 'call_tool', tool: 't', args: {}, refusal: { ...NO_JSON, data: { f: () => 1 } } },
      'refusal.data.f',
    ],
    ['DV-02 a refused call of the empty tool', { kind: 'call_tool', tool: '', args: {}, refusal: NO_JSON }, 'tool'],
    ['DV-22 a refused call without arguments', { kind: 'call_tool', tool: 't', refusal: NO_JSON }, 'args'],
    ['DV-22 a refused branch without arguments', parallel({ args: undefined, refusal: NO_JSON }), 'branches[0].args'],
    ['DV-02 a call of the empty tool', { kind: 'call_tool', tool: '', args: {} }, 'tool must be a non-empty string'],
    ['DV-02 a call without a tool', { kind: 'call_tool', args: {} }, 'tool must be'],
    ['DV-02 a branch of the empty tool', parallel({}, { tool: '' }), 'branches[1].tool'],
    ['DV-03 no branches', { kind: 'call_parallel', branches: [] }, 'no branches'],
    ['DV-03 branches that are no list', { kind: 'call_parallel', branches: { 0: 1 } }, 'no branches'],
    ['DV-03 a missing list', { kind: 'call_parallel' }, 'no branches'],
    ['DV-05 an unknown finish reason', { kind: 'finish', reason: 'nope' }, '"nope"'],
    ['DV-05 an empty finish reason', { kind: 'finish', reason: '' }, 'reason is ""'],
    [
      'DV-05 a finish reason that is no text',
      { kind: 'finish', reason: 5n },
      'decision.reason: a value of the type bigint',
    ],
    ['DV-06 an unknown pause reason', { kind: 'request_pause', reason: 'goal' }, '"goal"'],
    ['DV-06 an empty pause reason', { kind: 'request_pause', reason: '' }, 'reason is ""'],
    [
      'DV-08 a priority of 1001',
      { kind: 'spawn_task', task: 'background', spec: { query: 'q', priority: 1001 } },
      '1001',
    ],
    ['DV-08 one of -1001', { kind: 'spawn_task', task: 'background', spec: { query: 'q', priority: -1001 } }, '-1001'],
    ['DV-08 one of 0.5', { kind: 'spawn_task', task: 'background', spec: { query: 'q', priority: 0.5 } }, '0.5'],
    [
      'DV-08 one that is no number',
      { kind: 'spawn_task', task: 'background', spec: { query: 'q', priority: '1' } },
      'priority',
    ],
    ['a spawn without a query', { kind: 'spawn_task', task: 'background', spec: { query: '' } }, 'spec.query'],
    ['a spawn without a spec', { kind: 'spawn_task', task: 'background' }, 'no spec'],
    ['a spawn of an unknown sort', { kind: 'spawn_task', task: 'daemon', spec: { query: 'q' } }, '"daemon"'],
    ['a spawn without a description', { kind: 'spawn_task', task: 'background', spec: { query: 'q' } }, 'description'],
    [
      'a flag of a spawn that is text',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', retainTurn: 'yes' } },
      'spec.retainTurn',
    ],
    [
      'a seal that is a number',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', seal: 0 } },
      'spec.seal',
    ],
    [
      'a fail-fast that is text',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', failFast: 'no' } },
      'spec.failFast',
    ],
    [
      'a cancel policy of its own',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', onCancel: 'never' } },
      'spec.onCancel',
    ],
    [
      'a quorum of one and a half',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', quorum: 1.5 }, groupId: 'g' },
      'spec.quorum',
    ],
    [
      'a quorum without a group',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', quorum: 1 } },
      'groupId',
    ],
    [
      'limits of a task below nothing',
      { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q', limits: { tokens: -1 } } },
      'limits.tokens',
    ],
    ['DV-11 an empty task id', { kind: 'await_task', taskId: '' }, 'taskId'],
    ['a negative time limit', { kind: 'await_task', taskId: 't', timeoutMs: -1 }, 'timeoutMs'],
    ['an expiry that is text', { kind: 'request_pause', reason: 'await_input', expiresInMs: '5' }, 'expiresInMs'],
    [
      'an expiry that is no time',
      { kind: 'request_pause', reason: 'await_input', expiresInMs: Number.NaN },
      'expiresInMs',
    ],
    [
      'a stored payload that is no reference',
      { kind: 'finish', reason: 'goal', payload: { a: 1 }, stored: true },
      'stored',
    ],
    ['a stored nothing', { kind: 'finish', reason: 'goal', stored: true }, 'stored'],
    ['a stored that is not true', { kind: 'finish', reason: 'goal', payload: REF, stored: false }, 'stored'],
    ['metadata that is a list', { kind: 'finish', reason: 'goal', metadata: [] }, 'metadata'],
    ['a call id that is a number', { kind: 'call_tool', tool: 't', args: {}, callId: 1 }, 'callId'],
    ['DV-21 a seventh kind', { kind: 'no_op' }, '"no_op"'],
    ['DV-21 no kind', {}, 'must be one of call_tool, call_parallel, spawn_task, await_task, request_pause, finish'],
    ['nothing', null, 'null'],
    ['nothing at all', undefined, 'undefined'],
    ['text', 'finish', 'string'],
    ['DV-22 arguments that are a function', { kind: 'call_tool', tool: 't', args: () => 1 }, 'args'],
    ['DV-22 no arguments', { kind: 'call_tool', tool: 't', args: undefined }, 'args'],
    ['DV-22 a function inside', { kind: 'call_tool', tool: 't', args: { a: { b: () => 1 } } }, 'args.a.b'],
    ['DV-22 a function inside a branch', parallel({}, { args: { cb: () => 1 } }), 'branches[1].args.cb'],
    ['DV-22 a branch without arguments', parallel({}, { args: undefined }), 'branches[1].args'],
    ['DV-22 arguments that contain themselves', parallel({ args: self }), 'branches[0].args.self <cycle>'],
    ['DV-22 a payload that is not JSON', { kind: 'finish', reason: 'goal', payload: new Map() }, 'payload'],
    ['a branch that is null', { kind: 'call_parallel', branches: [null] }, 'branches[0]'],
    ['a branch that is text', { kind: 'call_parallel', branches: ['t'] }, 'branches[0]'],
    ['an id that is a number', parallel({ id: 1 }), 'branches[0].id'],
    ['two branches of one id', parallel({ id: 'a' }, { id: 'a' }), '"a"'],
    ['an id that is the index of another branch', parallel({}, { id: '0' }), '"0"'],
    ['after that is text', parallel({ id: 'a' }, { after: 'a' }), 'branches[1].after'],
    ['after that is a number', parallel({ after: 0 }), 'branches[0].after'],
    ['after an unknown branch', parallel({ after: ['ghost'] }), '"ghost"'],
    ['when on an unknown branch', parallel({ when: { branch: 'ghost', equals: 1 } }), '"ghost"'],
    ['when that is null', parallel({ when: null }), 'branches[0].when'],
    ['when without a value', parallel({}, { when: { branch: '0' } }), 'branches[1].when'],
    ['a reference to an unknown branch', parallel({ args: { a: { $from: 'ghost' } } }), '"ghost"'],
    [
      'one that stands before an absent argument',
      parallel({ args: { a: { $from: 'ghost' }, b: undefined } }),
      '"ghost"',
    ],
    [
      'a path that is no pointer',
      parallel({ id: 'a' }, { args: { a: { $from: 'a', path: 'hits.0' } } }),
      'write "/hits/0"',
    ],
    [
      'a path that is no pointer in an earlier step',
      parallel({ args: [{ $from: 'a', path: 'x', step: 0 }] }),
      'branches[0].args',
    ],
    ['what only looks like a reference', parallel({ args: { a: { $from: 1 } } }), '{"$from":1} is not a reference'],
    [
      'a path of a route that is no pointer',
      parallel({ id: 'a' }, { args: null, routes: [{ args: { $from: 'a', path: 'x' } }] }),
      'branches[1].routes[0].args',
    ],
    ['routes that are no list', parallel({ args: null, routes: {} }), 'branches[0].routes must be'],
    ['no routes', parallel({ args: null, routes: [] }), 'branches[0].routes must be'],
    ['a route that is null', parallel({ args: null, routes: [null] }), 'branches[0].routes[0] is not a route'],
    ['a route without arguments', parallel({ args: null, routes: [{}] }), 'branches[0].routes[0].args is missing'],
    ['routes beside arguments', parallel({ routes: [{ args: {} }] }), 'branches[0].args must be null'],
    [
      'routes beside after',
      parallel({}, { args: null, after: ['0'], routes: [{ args: {} }] }),
      'branches[1].after must stand in its routes',
    ],
    [
      'routes beside when',
      parallel({}, { args: null, when: { branch: '0', equals: 1 }, routes: [{ args: {} }] }),
      'branches[1].when must stand in its routes',
    ],
    ['a route after text', parallel({ args: null, routes: [{ args: {}, after: 'a' }] }), 'routes[0].after'],
    [
      'the condition of a route without a value',
      parallel({}, { args: null, routes: [{ args: {} }, { args: {}, when: { branch: '0' } }] }),
      'branches[1].routes[1].when',
    ],
    ['a route after an unknown branch', parallel({ args: null, routes: [{ args: {}, after: ['ghost'] }] }), '"ghost"'],
    ['a route from an unknown branch', parallel({ args: null, routes: [{ args: { $from: 'ghost' } }] }), '"ghost"'],
    [
      'branches that wait for each other by one of their routes',
      parallel(
        { id: 'a', args: null, routes: [{ args: {} }, { args: { $from: 'b' } }] },
        { id: 'b', args: null, routes: [{ args: {} }, { args: {}, when: { branch: 'a', equals: 1 } }] },
      ),
      'branches 0, 1 wait for each other',
    ],
    [
      'routes to a task',
      parallel({ tool: '_await_task', args: null, routes: [{ args: { task_id: 't' } }] }),
      'branches[0] is a call of _await_task, which cannot have routes',
    ],
    ['a failFast that is false', { ...(parallel({}) as object), failFast: false }, 'failFast must be true'],
    ['a failFast that is text', { ...(parallel({}) as object), failFast: 'yes' }, 'failFast must be true'],
    ['a branch after itself', parallel({ id: 'a', after: ['a'] }), 'branches 0 wait'],
    ['a reference to itself', parallel({ args: { $from: '0' } }), 'cycle'],
    ['AG-45 a message without a plan', parallel({}, { tool: '_message' }), 'branches[1].tool is _message'],
    ['AG-45 a finish without a plan', parallel({ tool: '_finish' }), 'branches[0].tool is _finish'],
    ['an empty plan id', { ...(parallel({}) as object), plan: '' }, 'plan must be a non-empty string'],
    ['a plan id that is a number', { ...(parallel({}) as object), plan: 1 }, 'plan must be'],
    ['a plan id that is null', { ...(parallel({}) as object), plan: null }, 'plan must be'],
    ['a word that is no onInvalid', { ...(parallel({}) as object), onInvalid: 'ignore' }, '"ignore"'],
  ])('invalid_decision: %s', (_, decision, said) => {
    const { code, message } = refusal(decision);
    expect({ code, message }).toEqual({ code: 'invalid_decision', message: expect.stringContaining(said) });
  });

  it('ER-07 a refused argument is named by its path; its value is not told', () => {
    expect(refusal({ kind: 'call_tool', tool: 't', args: { key: ['hunter2', Number.NaN] } }).message).not.toContain(
      'hunter2',
    );
  });

  it('ER-03 keeps the cause of arguments that are not JSON', () => {
    const { cause } = refusal({ kind: 'call_tool', tool: 't', args: { a: 1n } });
    expect(PilotageError.is(cause, 'unserializable')).toBe(true);
  });

  it('DV-04 takes 50 branches and refuses 51 whole, with both numbers', () => {
    expect(MAX_BRANCHES).toBe(50);
    expect(validateDecision({ kind: 'call_parallel', branches: branches(50) })).toMatchObject({
      kind: 'call_parallel',
    });
    const { code, message, data } = refusal({ kind: 'call_parallel', branches: branches(51) });
    expect(code).toBe('parallel_cap_exceeded');
    expect(message).toMatch(/51.*50/);
    expect(data).toEqual({ branches: 51, cap: 50 });
  });

  it('AG-44 takes a plan of 10,000 branches, messages and finishes among them, and refuses one more whole', () => {
    expect(MAX_PLAN_BRANCHES).toBe(10_000);
    const plan = { kind: 'call_parallel' as const, plan: 'p', concurrency: 50, onInvalid: 'per_branch' as const };
    const ends: Branch[] = ['_message', '_finish'].map((tool) => ({ tool, args: { text: { $from: '0' } } }));
    const whole = { ...plan, branches: [...branches(9_998), ...ends] };
    expect(validateDecision(whole)).toEqual(whole);
    const { code, data } = refusal({ ...plan, branches: branches(10_001) });
    expect({ code, data }).toEqual({ code: 'parallel_cap_exceeded', data: { branches: 10_001, cap: 10_000 } });
  });

  it('takes a refused branch of any name: nothing of it is carried out', () => {
    const decision = parallel({ tool: '_finish', refusal: NO_JSON }) as Decision;
    expect(validateDecision(decision)).toEqual(decision);
  });

  it('what a branch waits for is what any of its routes needs, each once; an earlier step is no need', () => {
    const routes = [
      { args: [{ $from: 'c' }, { $from: 'far', step: 0 }], after: ['b', 'a'] },
      { args: { $from: 'd' }, after: ['a'], when: { branch: 'c', equals: 1 } },
    ];
    const list: Branch[] = ['a', 'b', 'c', 'd'].map((id) => ({ id, tool: 't', args: {} }));
    const last: Branch = { id: 'e', tool: 't', args: null, routes };
    expect(dependenciesOf(last)).toEqual(['b', 'a', 'c', 'd']);
    expect(linkBranches([...list, last]).needs[4]).toEqual([1, 0, 2, 3]);
  });

  it('a task may have an argument of an earlier step: it is checked when that is known', () => {
    const args = { task_id: { $from: 'spawned', path: '/task_id', step: 0 } };
    const decision = parallel({ tool: '_await_task', args }) as Decision;
    expect(validateDecision(decision)).toEqual(decision);
  });

  it.each([
    ['no join', undefined],
    ['an empty kind', { kind: '' }],
    ['all', { kind: 'all' }],
    ['first_success', { kind: 'first_success' }],
    ['n of 1', { kind: 'n', n: 1 }],
    ['n of all', { kind: 'n', n: 3 }],
    ['keyed', { kind: 'keyed', keys: ['a', 'b', 'c'] }],
  ])('DV-18 takes %s', (_, join) => {
    const decision = { kind: 'call_parallel', branches: branches(3), ...(join === undefined ? {} : { join }) };
    expect(validateDecision(decision as Decision)).toEqual(decision);
  });

  it.each<[string, unknown]>([
    ['DV-19 n of 0', { kind: 'n', n: 0 }],
    ['DV-19 n of -1', { kind: 'n', n: -1 }],
    ['DV-19 n above the number of branches', { kind: 'n', n: 4 }],
    ['DV-19 n of 1.5', { kind: 'n', n: 1.5 }],
    ['DV-19 no n', { kind: 'n' }],
    ['DV-18 an unknown kind', { kind: 'most' }],
    ['DV-18 no object', 'all'],
    ['DV-18 null', null],
    ['too few keys', { kind: 'keyed', keys: ['a'] }],
    ['no keys', { kind: 'keyed' }],
    ['a key twice', { kind: 'keyed', keys: ['a', 'b', 'a'] }],
    ['an empty key', { kind: 'keyed', keys: ['a', '', 'c'] }],
    ['a key that is a number', { kind: 'keyed', keys: ['a', 1, 'c'] }],
  ])('parallel_invalid_join: %s', (_, join) => {
    expect(refusal({ kind: 'call_parallel', branches: branches(3), join }).code).toBe('parallel_invalid_join');
  });

  it('what was checked is what runs: later changes of the decision do not reach it', () => {
    const args = { n: 1 };
    const decision = { kind: 'call_parallel' as const, branches: [{ tool: 't', args }] };
    const validated = validateDecision(decision);
    args.n = 2;
    decision.branches.push({ tool: 'evil', args });
    expect(validated).toEqual({ kind: 'call_parallel', branches: [{ tool: 't', args: { n: 1 } }] });
  });

  it('gives a typed refusal or frozen JSON for anything at all', () => {
    const words = ['call_tool', 'call_parallel', 'spawn_task', 'await_task', 'request_pause', 'finish', 'goal', 't'];
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSparseArray: true,
      withNullPrototype: true,
    });
    const field = fc.oneof(
      anything,
      fc.constantFrom<unknown>(...words),
      fc.array(
        fc.record(
          { tool: anything, args: anything, after: anything, when: anything, id: anything },
          { requiredKeys: [] },
        ),
      ),
    );
    const decision = fc.record(
      {
        kind: fc.constantFrom<unknown>(...words),
        tool: field,
        args: field,
        branches: field,
        join: field,
        spec: field,
        task: field,
        taskId: field,
        reason: field,
        payload: field,
        metadata: field,
      },
      { requiredKeys: ['kind'] },
    );
    fc.assert(
      fc.property(fc.oneof(anything, decision), (made) => {
        let validated: Decision;
        try {
          validated = validateDecision(made as Decision);
        } catch (error) {
          expect(PilotageError.is(error)).toBe(true);
          return;
        }
        expect(JSON.parse(JSON.stringify(validated))).toEqual(validated);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the graph of branches', () => {
  /** Whether a graph has a cycle: depth-first, with a colour for each node. */
  function hasCycle(needs: readonly number[][]): boolean {
    const colour = needs.map(() => 'white' as 'white' | 'grey' | 'black');
    const visit = (node: number): boolean => {
      if (colour[node] !== 'white') return colour[node] === 'grey';
      colour[node] = 'grey';
      const found = (needs[node] ?? []).some(visit);
      colour[node] = 'black';
      return found;
    };
    return needs.some((_, node) => visit(node));
  }

  /** Every need is said in one of three ways: after, when, or a reference. */
  const graph = fc.integer({ min: 1, max: 12 }).chain((size) =>
    fc.array(fc.array(fc.record({ to: fc.nat({ max: size - 1 }), way: fc.nat({ max: 2 }) }), { maxLength: 2 }), {
      minLength: size,
      maxLength: size,
    }),
  );

  it('is refused exactly when it has a cycle', () => {
    let cyclic = 0;
    fc.assert(
      fc.property(graph, fc.boolean(), (edges, named) => {
        const id = (index: number): string => (named ? `b${index}` : String(index));
        const list = edges.map((needs, index): Branch => {
          const when = needs.find(({ way }) => way === 1);
          const rest = needs.filter((need) => need !== when);
          return {
            tool: 't',
            args: { refs: rest.filter(({ way }) => way === 2).map(({ to }) => ({ $from: id(to) })) },
            after: rest.filter(({ way }) => way !== 2).map(({ to }) => id(to)),
            ...(named ? { id: id(index) } : {}),
            ...(when === undefined ? {} : { when: { branch: id(when.to), equals: 1 } }),
          };
        });
        const decision: Decision = { kind: 'call_parallel', branches: list };
        if (hasCycle(edges.map((needs) => needs.map(({ to }) => to)))) {
          cyclic += 1;
          expect(refusal(decision)).toMatchObject({
            code: 'invalid_decision',
            message: expect.stringContaining('cycle'),
          });
        } else expect(validateDecision(decision)).toEqual(decision);
      }),
      { numRuns: 200 },
    );
    expect(cyclic).toBeGreaterThan(0);
  });

  it('a chain of 50 passes in any order, and its closing to a ring is refused', () => {
    const chain = (first: string[]): unknown =>
      parallel(
        ...Array.from({ length: 50 }, (_, index) => ({
          id: `b${index}`,
          after: index === 0 ? first : [`b${index - 1}`],
        })).reverse(),
      );
    expect(() => validateDecision(chain([]) as Decision)).not.toThrow();
    expect(refusal(chain(['b49'])).message).toContain('cycle');
  });

  it('AG-40 names the first 50 of a long ring, and how many more there are', () => {
    const ring = Array.from({ length: 10_000 }, (_, index) => ({
      id: `b${index}`,
      tool: 't',
      args: {},
      after: [`b${(index + 1) % 10_000}`],
    }));
    const { message } = refusal({ kind: 'call_parallel', plan: 'p', branches: ring });
    expect(message).toMatch(/branches 0, 1, 2, .*, 49 and 9950 more wait for each other in a cycle/);
  });

  it('AG-43 grows at its end: what is added may refer to what is there, and to nothing else', () => {
    const links = linkBranches([{ id: 'a', tool: 't', args: {} }]);
    linkBranches(
      [
        { id: 'c', tool: 't', args: { of: { $from: 'b' } }, after: ['a'] },
        { id: 'b', tool: 't', args: {}, when: { branch: 'a', equals: 1 } },
      ],
      links,
    );
    expect(links.needs).toEqual([[], [0, 2], [0]]);
    expect(orderOf(links.needs)).toEqual([0, 2, 1]);
    expect(orderOf(links.needs, 1)).toEqual([2, 1]);
    expect(() => linkBranches([{ id: 'd', tool: 't', args: {}, after: ['e'] }], links)).toThrow(/"e", which does not/);
    expect(() => linkBranches([{ id: 'a', tool: 't', args: {} }], links)).toThrow(/two branches have the id "a"/);
  });
});

describe('readDecision', () => {
  it.each([
    { kind: 'no_op' },
    { kind: 'toString' },
    {},
    null,
    'finish',
    [],
  ])('DV-21 refuses %j by the name of its kind', (stored) => {
    expect(() => readDecision(stored)).toThrow(
      expect.objectContaining({
        code: 'unknown_decision_kind',
        message: expect.stringContaining(String(JSON.stringify((stored as { kind?: string } | null)?.kind))),
      }),
    );
  });
});
