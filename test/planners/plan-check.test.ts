import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type CallParallel,
  type Json,
  type JsonObject,
  needsOf,
  type ToolPolicy,
  type ToolSchema,
  validateDecision,
} from '#core';
import { graph } from '#planners/graph';
import { PlanDraft } from '#planners/pipeline';
import {
  checkPlan,
  type Plan,
  type PlanRules,
  type PlanStep,
  planDecision,
  policyFaults,
  type ReadyPlan,
} from '#plans';
import { runView, toolView } from '#testing';
import { ask } from '../kit/ask.ts';

function schema(name: string, inputSchema: JsonObject): ToolSchema {
  return { name, description: name, inputSchema, effect: 'read', tags: [], loading: 'always', examples: [] };
}

const TOOLS = toolView([
  schema('fetch', { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] }),
  schema('any', { type: 'object' }),
  schema('handler', { type: 'object' }),
]);

const any = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'tool', toolId: 'any', ...more });
const from = ($from: string): { $from: string } => ({ $from });

function check(given: unknown, more: Partial<PlanRules> = {}): ReturnType<typeof checkPlan> {
  return checkPlan(given, { tools: TOOLS, ...more });
}

/** What stands before each step of a plan that is fine, in its order. */
function orderOf(given: Plan, more: Partial<PlanRules> = {}): Record<string, readonly string[]> {
  const checked = check(given, more);
  if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
  return Object.fromEntries(checked.plan.steps.map(({ id, after }) => [id, after]));
}

/** The codes of the faults, each with the step that it is about. */
function codes(given: unknown, more: Partial<PlanRules> = {}): string[] {
  const checked = check(given, more);
  const faults = 'faults' in checked ? checked.faults : [];
  return faults.map(({ code, step }) => (step === undefined ? code : `${code} ${step}`));
}

describe('the forms of a plan', () => {
  it('AG-20 W101 takes steps, and nodes with edges; steps without edges are a chain', () => {
    expect(orderOf({ planId: 'p', steps: [any('a'), any('b'), any('c')] })).toEqual({ a: [], b: ['a'], c: ['b'] });
    const nodes = { a: any('a'), b: any('b'), c: any('c') };
    expect(orderOf({ nodes, edges: { a: ['b', 'c'] } })).toEqual({ a: [], b: ['a'], c: ['a'] });
    expect(orderOf({ nodes })).toEqual({ a: [], b: [], c: [] });
    expect(orderOf({ steps: [any('a'), any('b'), any('c')], edges: { c: ['a'] } })).toEqual({ c: [], a: ['c'], b: [] });
    expect(orderOf({ steps: [any('a'), any('b'), any('c')], edges: {} })).toEqual({ a: [], b: [], c: [] });
  });

  it('AG-20 has either steps or nodes, with an id and one of four types each', () => {
    expect(codes({})).toEqual(['plan_shape']);
    expect(codes({ steps: [any('a')], nodes: { a: any('a') } })).toEqual(['plan_shape']);
    expect(codes({ steps: [] })).toEqual(['plan_empty']);
    expect(codes({ nodes: {} })).toEqual(['plan_empty']);
    expect(codes({ steps: [{ type: 'tool', toolId: 'any' }] })).toEqual(['step_id_missing']);
    expect(codes({ steps: [{ ...any('a'), type: 'think' }] })).toEqual(['step_type a']);
    expect(codes({ steps: [{ id: 'a' }] })).toEqual(['step_type a']);
    expect(codes({ steps: [{ ...any('a'), after: 'b' }] })).toEqual(['plan_shape a']);
    expect(codes({ steps: [{ ...any('a'), when: { step: 'b' } }] })).toEqual(['plan_shape a']);
    expect(codes({ nodes: { a: any('b') } })).toEqual(['plan_shape a']);
    expect(codes({ nodes: { a: { type: 'tool', toolId: 'any' } } })).toEqual([]);
    for (const nothing of [undefined, null, 3, 'plan', [], () => 1, { steps: 4n }, { steps: [1] }]) {
      expect(codes(nothing)).toContain('plan_shape');
    }
  });

  it('other keys of a step are its own notes, but not those that look like an order', () => {
    expect(codes({ steps: [{ ...any('a'), description: 'why' }] })).toEqual([]);
    expect(codes({ steps: [any('a'), { ...any('b'), dependsOn: ['a'] }] })).toEqual(['plan_shape b']);
    expect(codes({ steps: [any('a'), { ...any('b'), depends_on: ['a'] }] })).toEqual(['plan_shape b']);
  });

  it('has the id that it gives itself, else the one it is to have', () => {
    const idOf = (given: Plan, more: Partial<PlanRules> = {}): string =>
      (check(given, more) as { plan: ReadyPlan }).plan.planId;
    expect(idOf({ planId: 'mine', steps: [any('a')] }, { planId: 'other' })).toBe('mine');
    expect(idOf({ steps: [any('a')] }, { planId: 'other' })).toBe('other');
    expect(idOf({ steps: [any('a')] })).toBe('plan');
  });

  it('AG-02 W106 an internal step needs somebody who carries it out', () => {
    const plan = { steps: [{ id: 'a', type: 'internal', input: { x: 1 }, meta: { why: 'so' } }] } as const;
    expect(codes(plan)).toEqual(['internal_unhandled a']);
    expect(codes(plan, { internal: 'nobody' })).toEqual(['internal_unhandled a']);
    const checked = check(plan, { internal: 'handler' }) as { plan: ReadyPlan };
    expect(planDecision(checked.plan, { internal: 'handler', concurrency: 3 })).toEqual({
      kind: 'call_parallel',
      plan: 'plan',
      onInvalid: 'per_branch',
      concurrency: 3,
      branches: [{ id: 'a', tool: 'handler', args: { id: 'a', input: { x: 1 }, meta: { why: 'so' } } }],
    });
  });

  it('becomes one parallel call, with what stands for messages and the end', () => {
    const { plan } = check({
      planId: 'p',
      steps: [
        any('a', { input: { x: 1 } }),
        any('b', { when: { step: 'a', equals: 2 } }),
        { id: 'm', type: 'message', input: from('a') },
        { id: 'f', type: 'finish', after: ['m'] },
      ],
    }) as { plan: ReadyPlan };
    const decision = planDecision(plan);
    expect(decision.branches).toEqual([
      { id: 'a', tool: 'any', args: { x: 1 } },
      { id: 'b', tool: 'any', args: {}, after: ['a'], when: { branch: 'a', equals: 2 } },
      { id: 'm', tool: '_message', args: from('a'), after: ['a'], behind: ['b'] },
      { id: 'f', tool: '_finish', args: null, after: ['m'] },
    ]);
    expect(validateDecision(decision)).toEqual(decision);
  });
});

describe('the order of a plan', () => {
  it('AG-43 a reference makes an edge, and the step that it names comes first', () => {
    const refers = any('b', { input: { v: [from('a')] } });
    expect(orderOf({ nodes: { b: refers, a: any('a'), c: any('c') } })).toEqual({ a: [], b: ['a'], c: [] });
    // In a list it adds a need and takes none away.
    expect(orderOf({ steps: [any('a'), any('x'), refers, any('c')] })).toEqual({
      a: [],
      x: ['a'],
      b: ['a', 'x'],
      c: ['b'],
    });
    expect(orderOf({ steps: [refers, any('a', { after: [] }), any('c')] })).toEqual({ a: [], b: ['a'], c: ['a'] });
    expect(codes({ steps: [refers, any('a')] })).toEqual(['plan_cycle b']);
    expect(orderOf({ steps: [any('a'), any('b', { after: [] }), any('c', { after: ['b', 'b'] })] })).toEqual({
      a: [],
      b: [],
      c: ['b'],
    });
  });

  it('AG-43 where edges are given, a reference to a step that does not come before is refused', () => {
    const nodes = {
      a: any('a'),
      b: any('b'),
      c: any('c', { input: { v: from('a') } }),
      d: any('d', { input: { v: from('b') } }),
    };
    expect(codes({ nodes, edges: { a: ['b'], b: ['c'] } })).toEqual(['reference_not_before d']);
    expect(codes({ nodes, edges: { a: ['b'], b: ['c', 'd'] } })).toEqual([]);
    // Found on a longer way, however many there are.
    const steps = Array.from({ length: 200 }, (_, n) => any(`s${n}`, n < 2 ? {} : { input: { v: from(`s${n - 2}`) } }));
    const edges = Object.fromEntries(steps.slice(1).map(({ id }, n) => [`s${n}`, [id]]));
    expect(codes({ steps, edges })).toEqual([]);
    const { s100: _, ...cut } = edges;
    expect(codes({ steps, edges: cut })).toEqual(['reference_not_before s101', 'reference_not_before s102']);
  });

  it('what people see has its place when it names none', () => {
    const plan: PlanStep[] = [
      any('a'),
      any('b', { input: { v: from('a') } }),
      { id: 'm', type: 'message', input: 'halfway' },
      any('c', { input: { v: from('a') } }),
      { id: 'f', type: 'finish', input: from('a') },
      any('d'),
    ];
    expect(orderOf({ steps: plan })).toEqual({ a: [], b: ['a'], m: ['b'], c: ['a', 'm'], d: ['c'], f: ['a', 'd'] });
    const early: PlanStep = { id: 'f', type: 'finish', input: from('a'), after: ['a'] };
    expect(orderOf({ steps: [...plan.slice(0, 4), early] })).toMatchObject({ f: ['a'] });
    const greeting: PlanStep = { id: 'm', type: 'message', input: 'hello' };
    expect(orderOf({ nodes: { a: any('a'), b: any('b'), m: greeting }, edges: { a: ['b'] } })).toMatchObject({ m: [] });
    const ends: PlanStep[] = [any('a', { after: [] }), { id: 'f', type: 'finish' }, { id: 'g', type: 'finish' }];
    expect(codes({ steps: ends })).toEqual(['after_finish g']);
  });

  it('steps of earlier plans need not be waited for', () => {
    const earlier = new Set(['old']);
    const steps = [any('a', { input: { v: from('old') } }), any('b', { after: ['old'] })];
    expect(orderOf({ steps }, { earlier })).toEqual({ a: [], b: [] });
    expect(codes({ steps })).toEqual(['edge_unknown b', 'reference_unknown a']);
    expect(orderOf({ steps: [any('a', { input: { v: from('old') } }), any('b')] }, { earlier })).toEqual({
      a: [],
      b: ['a'],
    });
    expect(orderOf({ nodes: { a: any('a') }, edges: { old: ['a'] } }, { earlier })).toEqual({ a: [] });
    expect(codes({ steps: [any('a', { when: { step: 'old', equals: 1 } })] }, { earlier })).toEqual(['edge_unknown a']);
  });
});

describe('what is wrong with a plan', () => {
  it('AG-21 tells everything at once', () => {
    const steps = [
      any('a'),
      any('a'),
      { id: 'unknown', type: 'tool', toolId: 'nobody', after: ['a'] },
      { id: 'none', type: 'tool', after: ['a'] },
      { id: 'bad', type: 'tool', toolId: 'fetch', input: { url: 3 }, after: ['a'] },
      any('lost', { after: ['nowhere'] }),
      any('refers', { input: { v: from('nothing') } }),
      any('x', { after: ['z'] }),
      any('y', { after: ['x'] }),
      any('z', { after: ['y'] }),
      any('behind', { after: ['z'] }),
      { id: 'f', type: 'finish', after: ['a'] },
      any('late', { after: ['f'] }),
      any('later', { after: ['late'] }),
      { id: 'm', type: 'message', after: ['a'] },
    ];
    expect(codes({ steps, edges: { a: ['gone'] } }, { maxSteps: 10 })).toEqual([
      'plan_too_long',
      'tool_unknown unknown',
      'tool_missing none',
      'input_invalid bad',
      'input_invalid m',
      'step_id_duplicate a',
      'edge_unknown',
      'edge_unknown lost',
      'reference_unknown refers',
      'plan_cycle x',
      'step_unreachable behind',
      'after_finish late',
      'step_unreachable later',
    ]);
  });

  it('AG-21 names the path of each cycle, in the order of time', () => {
    const pathsOf = (given: Plan): unknown[] => {
      const checked = check(given);
      return 'faults' in checked ? checked.faults.flatMap(({ path }) => (path === undefined ? [] : [path])) : [];
    };
    expect(pathsOf({ steps: [any('a', { after: ['a'] })] })).toEqual([['a', 'a']]);
    const circle = { nodes: { a: any('a'), b: any('b'), c: any('c') }, edges: { a: ['b'], b: ['c'], c: ['a'] } };
    expect(pathsOf(circle)).toEqual([['a', 'b', 'c', 'a']]);
    const two = [
      any('a', { after: ['b'] }),
      any('b', { after: ['a'] }),
      any('c', { after: ['d'] }),
      any('d', { after: ['c'] }),
    ];
    expect(pathsOf({ steps: two })).toHaveLength(2);
    expect(
      pathsOf({ steps: [any('a', { input: { v: from('b') } }), any('b', { input: { v: from('a') } })] }),
    ).toHaveLength(1);
  });

  it('AG-21 a plan may have maxSteps steps, and no more', () => {
    const steps = Array.from({ length: 1_001 }, (_, n) => any(`s${n}`));
    expect(codes({ steps })).toEqual(['plan_too_long']);
    expect(codes({ steps: steps.slice(1) })).toEqual([]);
    expect(codes({ steps: steps.slice(1) }, { maxSteps: 999 })).toEqual(['plan_too_long']);
  });

  it('AG-22 the policy is asked about every call; one that throws, or says nothing, forbids it', async () => {
    const { plan } = check(
      {
        steps: [
          ...['a', 'b', 'c', 'd'].map((id) => any(id, { input: { id } })),
          { id: 'i', type: 'internal', input: from('a') },
          { id: 'm', type: 'message', input: 'hi' },
          { id: 'end', type: 'finish' },
        ],
      },
      { internal: 'handler' },
    ) as { plan: ReadyPlan };
    const seen: unknown[] = [];
    const { signal } = new AbortController();
    const policy: ToolPolicy = async ({ tool, args }, { identity }, heard) => {
      seen.push([tool, args, identity.user, heard === signal]);
      const { id } = args as { id?: string };
      if (id === 'b') return { deny: 'not on a Sunday.' };
      if (id === 'c') throw new Error('no answer');
      return id === 'd' ? (undefined as never) : 'allow';
    };
    const run = runView({ tools: toolView(['any'], [], policy) });
    const faults = await policyFaults(plan, run, signal, 'handler');
    expect(seen).toEqual([
      ['any', { id: 'a' }, 'test', true],
      ['any', { id: 'b' }, 'test', true],
      ['any', { id: 'c' }, 'test', true],
      ['any', { id: 'd' }, 'test', true],
      // What the step runs, not what it is.
      ['handler', { id: 'i', input: { $from: 'a' } }, 'test', true],
    ]);
    expect(faults.map(({ code, step }) => [code, step])).toEqual([
      ['plan_forbidden', 'b'],
      ['plan_forbidden', 'c'],
      ['plan_forbidden', 'd'],
    ]);
    expect(faults[0]?.message).toBe('The step "b" (any) is forbidden: not on a Sunday.');
    expect(faults[1]?.message).toContain('the policy failed: no answer');
    expect(await policyFaults(plan, runView(), signal)).toEqual([]);
  });
});

describe('inputs that hold references', () => {
  /** Whether a step with this input, behind a step `a`, fits a tool with this schema. */
  function fits(inputSchema: JsonObject, input: JsonObject): boolean {
    const tools = toolView([schema('any', { type: 'object' }), schema('t', { type: 'object', ...inputSchema })]);
    const steps = [any('a'), { id: 'b', type: 'tool', toolId: 't', input }];
    const checked = checkPlan({ steps }, { tools });
    if ('plan' in checked) return true;
    expect(checked.faults.map(({ code }) => code)).toEqual(['input_invalid']);
    return false;
  }
  const text = { type: 'string' };
  const ref = { $from: 'a', path: '/x' };

  it('AG-21 AG-43 what a reference will stand for is not judged; what stands beside it is', () => {
    const properties = { url: text, count: { type: 'integer', minimum: 1 } };
    expect(fits({ properties }, { url: ref, count: 1 })).toBe(true);
    expect(fits({ properties }, { url: ref, count: 0 })).toBe(false);
    expect(fits({ properties, required: ['url'] }, { count: ref })).toBe(false);
    expect(fits({ properties, additionalProperties: false }, { url: ref, other: 1 })).toBe(false);
    expect(fits({ properties: { list: { type: 'array', items: text } } }, { list: [ref, 'x'] })).toBe(true);
    expect(fits({ properties: { list: { type: 'array', items: text } } }, { list: [ref, 3] })).toBe(false);
    expect(fits({ properties: { list: { type: 'array', items: text } } }, { list: ref })).toBe(true);
    expect(fits({ properties }, { url: { $literal: 'x' } })).toBe(true);
    expect(fits({ properties }, { url: { $literal: ref } })).toBe(false);
  });

  it('a choice around a reference is left open', () => {
    const choice = { anyOf: [{ properties: { v: text } }, { properties: { v: { type: 'number' } } }] };
    expect(fits(choice, { v: ref })).toBe(true);
    expect(fits(choice, { v: true })).toBe(false);
    const one = { properties: { v: { oneOf: [text, { type: 'number' }] } } };
    expect(fits(one, { v: ref })).toBe(true);
    expect(fits({ properties: { v: { not: { type: 'object' } } } }, { v: ref })).toBe(true);
    expect(fits({ properties: { v: { enum: ['x'] } } }, { v: ref })).toBe(true);
    expect(fits({ properties: { v: { enum: ['x'] } } }, { v: 'y' })).toBe(false);
    expect(fits({ properties: { v: { const: { inner: 1 } } } }, { v: { inner: ref } })).toBe(true);
    const condition = {
      if: { properties: { v: { const: 'x' } } },
      // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
      then: { required: ['w'] },
      else: { required: ['u'] },
    };
    expect(fits(condition, { v: ref })).toBe(true);
    expect(fits(condition, { v: 'x' })).toBe(false);
    const behind = {
      properties: { v: { anyOf: [{ $ref: '#/definitions/deep' }] } },
      definitions: { deep: { required: ['k'], properties: { l: text } } },
    };
    expect(fits(behind, { v: { l: ref } })).toBe(true);
    expect(fits(behind, { v: { l: 'x' } })).toBe(false);
    expect(fits({ properties: { v: { contains: { const: 1 } } } }, { v: [ref] })).toBe(true);
    expect(fits({ properties: { v: { contains: { const: 1 } } } }, { v: [2] })).toBe(false);
    // What is certain stays so, also beside a choice.
    expect(fits({ required: ['w'], ...choice }, { v: ref })).toBe(false);
  });

  it('a schema that cannot be compiled judges nothing, and one that goes too deep is a fault', () => {
    expect(fits({ properties: { v: { type: 'nonsense' } } }, { v: 1 })).toBe(true);
    const nested = Array.from({ length: 400 }).reduce<JsonObject>((inner) => ({ v: inner }), {});
    expect(fits({ properties: { v: { $ref: '#' } } }, nested)).toBe(true);
  });
});

describe('whatever it is given', () => {
  const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const step = fc.record(
    {
      id: ids,
      type: fc.constantFrom('tool', 'message', 'finish', 'internal', 'odd'),
      toolId: fc.constantFrom('any', 'fetch', 'nobody'),
      input: fc.oneof(fc.jsonValue(), ids.map(from), fc.record({ url: ids.map(from) })),
      after: fc.array(ids),
      when: fc.record({ step: ids, equals: fc.jsonValue() }),
    },
    { requiredKeys: ['id', 'type'] },
  );
  const plan = fc.oneof(
    fc.record({ steps: fc.array(step) }),
    fc.record({ nodes: fc.dictionary(ids, step), edges: fc.dictionary(ids, fc.array(ids)) }),
  );

  it('AG-21 never throws on JSON, and tells the same twice', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), plan), (given) => {
        const checked = check(given);
        expect(check(structuredClone(given))).toEqual(checked);
        if ('faults' in checked) expect(checked.faults.length).toBeGreaterThan(0);
      }),
      { numRuns: 150 },
    );
  });

  it('AG-05 AG-21 a plan that is fine is one that can be carried out', () => {
    const wellFormed = fc.uniqueArray(ids, { minLength: 1 }).chain((names) =>
      fc.record({
        steps: fc.tuple(
          ...names.map((id, index) =>
            fc.record(
              {
                id: fc.constant(id),
                type: fc.constantFrom('tool' as const, 'message' as const),
                toolId: fc.constant('any'),
                input: fc.constant({}),
                after: fc.subarray(names.filter((_, other) => other !== index)),
              },
              { requiredKeys: ['id', 'type', 'toolId', 'input'] },
            ),
          ),
        ),
      }),
    );
    let fine = 0;
    fc.assert(
      fc.property(fc.oneof(plan, wellFormed), (given) => {
        const checked = check(given, { internal: 'handler' });
        if (!('plan' in checked)) return;
        fine += 1;
        const { steps } = checked.plan;
        for (const [index, { after }] of steps.entries()) {
          const before = steps.slice(0, index).map(({ id }) => id);
          expect(before).toEqual(expect.arrayContaining([...after]));
        }
        const decision = planDecision(checked.plan, { internal: 'handler' });
        expect(validateDecision(decision)).toEqual(decision);
      }),
      { numRuns: 150 },
    );
    expect(fine).toBeGreaterThan(10);
  });

  it('AG-21 long chains, wide plans and long cycles need no deep stack', () => {
    const count = 10_000;
    const chain = Array.from({ length: count }, (_, n) => any(`s${n}`));
    expect(codes({ steps: chain }, { maxSteps: count })).toEqual([]);
    const backwards = chain.map((one, n) => ({ ...one, after: n === count - 1 ? [] : [`s${n + 1}`] }));
    const checked = check({ steps: backwards }, { maxSteps: count }) as { plan: ReadyPlan };
    expect(checked.plan.steps[0]?.id).toBe('s9999');
    const circle = [...backwards.slice(0, -1), { ...any('s9999'), after: ['s0'] }];
    const faulty = check({ steps: circle }, { maxSteps: count });
    expect('faults' in faulty && faulty.faults.map(({ path }) => path?.length)).toEqual([count + 1]);
    const wide = { steps: chain.map((one) => ({ ...one, after: [] })) };
    expect(codes({ steps: [...wide.steps, { id: 'f', type: 'finish' }] }, { maxSteps: count + 1 })).toEqual([]);
  });
});

describe('a list is a chain, however it comes', () => {
  it('each step comes after the one before it; one that says `after` stands where it says, and the chain goes on from it', () => {
    const pay = any('pay');
    expect(orderOf({ steps: [pay, any('compute'), { id: 'f', type: 'finish', input: from('compute') }] })).toEqual({
      pay: [],
      compute: ['pay'],
      f: ['compute'],
    });
    const steps = [any('a'), any('b', { after: [] }), any('c'), any('d', { after: ['a'] }), any('e')];
    expect(orderOf({ steps })).toEqual({ a: [], b: [], c: ['b'], d: ['a'], e: ['d'] });
  });

  it('behind a step with a condition it goes on also when that was passed over', () => {
    const checked = check({
      steps: [
        any('a'),
        any('b', { when: { step: 'a', equals: 1 } }),
        any('c', { after: ['b'] }),
        any('d'),
        { id: 'stop', type: 'finish', when: { step: 'a', equals: 2 } },
        any('e'),
        { id: 'f', type: 'finish' },
      ],
    });
    if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
    expect(checked.plan.steps.map(({ id, after, behind = [] }) => [id, after, behind])).toEqual([
      ['a', [], []],
      ['b', ['a'], []],
      ['c', ['b'], []],
      ['d', [], ['c']],
      ['stop', ['a', 'd'], []],
      ['e', [], ['stop']],
      ['f', ['e'], []],
    ]);
    expect(
      codes({
        steps: [
          any('a'),
          { id: 'stop', type: 'finish', when: { step: 'a', equals: 2 } },
          any('e', { after: ['stop'] }),
        ],
      }),
    ).toEqual(['after_finish e']);
  });

  const drawn = fc.array(
    fc.record({
      kind: fc.constantFrom('tool', 'tool', 'tool', 'message'),
      after: fc.option(fc.array(fc.nat(20), { maxLength: 2 }), { nil: undefined, freq: 3 }),
      refers: fc.option(fc.nat(20), { nil: undefined, freq: 3 }),
      when: fc.option(fc.nat(20), { nil: undefined, freq: 5 }),
    }),
    { minLength: 1, maxLength: 9 },
  );

  it('any cut of a stream gives the same links as the whole, with the graph planner and with the pipeline', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, fc.boolean(), async (given, isEnded) => {
        const earlier = (index: number, to: number): string => `s${to % index}`;
        const steps = given.map(({ kind, after, refers, when }, index): PlanStep => {
          const input = refers === undefined || index === 0 ? 'x' : { v: from(earlier(index, refers)) };
          return {
            id: `s${index}`,
            ...(kind === 'tool'
              ? { type: 'tool' as const, toolId: 'any', input: { input } }
              : { type: 'message' as const, input }),
            ...(after === undefined ? {} : { after: index === 0 ? [] : after.map((to) => earlier(index, to)) }),
            ...(when === undefined || index === 0 ? {} : { when: { step: earlier(index, when), equals: 1 } }),
          };
        });
        if (isEnded) steps.push({ id: 'end', type: 'finish' });
        const linksOf = (branches: readonly Branch[]) =>
          Object.fromEntries(
            branches.map((branch) => [
              branch.id,
              { needs: [...needsOf(branch)].toSorted(), behind: [...(branch.behind ?? [])].toSorted() },
            ]),
          );
        const checked = check({ steps });
        if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
        const whole = linksOf(planDecision(checked.plan).branches);
        const view = runView({ tools: TOOLS });
        const stream = graph({
          async *plan() {
            yield* steps;
          },
        });
        expect(linksOf(((await ask(stream, view)).decision as CallParallel).branches)).toEqual(whole);
        const draft = new PlanDraft('p', {
          run: view,
          signal: new AbortController().signal,
          work: { plans: 0, done: new Map(), unfinished: [], from: 0 },
          maxSteps: 100,
        });
        for (const step of steps) expect((await draft.take(step as unknown as Json)).faults).toEqual([]);
        expect(draft.end(true).faults).toEqual([]);
        expect(linksOf(draft.decision.branches)).toEqual(whole);
      }),
      { numRuns: 100 },
    );
  });
});
