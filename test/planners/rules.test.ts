import { describe, expect, it } from 'vitest';
import type { Control } from '#core';
import { type Rule, type RulesOptions, rules } from '#planners/rules';
import type { PlanStep } from '#plans';
import { runView, toolView } from '#testing';
import { ask } from '../kit/ask.ts';
import { stepOfMove, value } from '../kit/steps.ts';
import { echo } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const view = (options: Parameters<typeof runView>[0] = {}) =>
  runView({ tools: toolView(['any', 'handler']), ...options });
const any = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'tool', toolId: 'any', ...more });
const rule = (id: string, match: boolean, step: PlanStep | null): Rule => ({
  id,
  match: () => match,
  toPlanStep: () => step,
});

describe('the first rule that matches and has a step', () => {
  it('AG-38 decides; one that has none passes on, and without any the run has no path', async () => {
    const asked: string[] = [];
    const noted = (one: Rule): Rule => ({
      id: one.id,
      match: (state, run) => {
        asked.push(`${one.id} ${state.goal} ${run.goal}`);
        return one.match(state, run);
      },
      toPlanStep: one.toPlanStep,
    });
    const no = noted(rule('no', false, any('x')));
    const empty = noted(rule('empty', true, null));
    const yes = noted({
      id: 'yes',
      match: async () => true,
      toPlanStep: async ({ goal }) => any('a', { input: { goal: goal ?? '' } }),
    });
    const never = noted(rule('never', true, any('b')));
    expect(await ask(rules({ rules: [no, empty, yes, never] }), view({ query: 'why' }))).toEqual({
      decision: { kind: 'call_tool', tool: 'any', args: { goal: 'why' } },
      provenance: { planner: 'rules', step: 'a', rule: 'yes' },
    });
    expect(asked).toEqual(['no why why', 'empty why why', 'yes why why']);
    expect(await ask(rules({ rules: [no, empty] }), view())).toEqual({
      decision: { kind: 'finish', reason: 'no_path', metadata: { rules: 'no_rule_matched' } },
    });
  });

  it('AG-38 getRules lists them, in order, and nobody changes them', () => {
    const given = [rule('a', true, null), rule('b', true, null)];
    const planner = rules({ rules: given });
    given.pop();
    expect(planner.getRules().map(({ id }) => id)).toEqual(['a', 'b']);
    expect(Object.isFrozen(planner.getRules())).toBe(true);
  });

  it('each kind of step becomes its decision', async () => {
    const decide = async (step: PlanStep) =>
      (await ask(rules({ rules: [rule('r', true, step)], internal: 'handler' }), view())).decision;
    expect(await decide({ id: 'f', type: 'finish', input: 'done' })).toEqual({
      kind: 'finish',
      reason: 'goal',
      payload: 'done',
    });
    expect(await decide({ id: 'i', type: 'internal', input: 1, meta: { why: 'so' } })).toEqual({
      kind: 'call_tool',
      tool: 'handler',
      args: { id: 'i', input: 1, meta: { why: 'so' } },
    });
    expect(await decide({ id: 'm', type: 'message', input: 'Hello' })).toEqual({
      kind: 'call_parallel',
      plan: 'step-0',
      onInvalid: 'per_branch',
      branches: [{ id: 'm', tool: '_message', args: 'Hello' }],
    });
  });

  it('a step may refer to what an earlier one gave', async () => {
    const planner = rules({
      rules: [
        { id: 'first', match: ({ stepCount }) => stepCount === 0, toPlanStep: () => any('a') },
        rule('then', true, { id: 'f', type: 'finish', input: { got: { $from: 'a', path: '/n' } } }),
      ],
    });
    const first = stepOfMove(0, await ask(planner, view()), [value({ n: 7 })]);
    expect((await ask(planner, view({ steps: [first] }))).decision).toMatchObject({ payload: { got: 7 } });
  });
});

describe('rules that go wrong', () => {
  it('AG-39 one that throws is named, whether it matches or makes its step', async () => {
    const cause = new Error('out of luck');
    const thrower = (): never => {
      throw cause;
    };
    for (const bad of [
      { ...rule('bad', true, null), match: thrower },
      { ...rule('bad', true, null), toPlanStep: () => Promise.reject(cause) },
    ]) {
      await expect(ask(rules({ rules: [rule('fine', false, null), bad] }), view())).rejects.toMatchObject({
        code: 'rule_failed',
        message: 'The rule "bad" failed: out of luck',
        data: { rule: 'bad' },
        cause,
      });
    }
  });

  it('AG-39 AG-21 one whose step cannot be carried out is named, with what is wrong', async () => {
    await expect(
      ask(rules({ rules: [rule('bad', true, any('a', { toolId: 'nobody' }))] }), view()),
    ).rejects.toMatchObject({
      code: 'rule_failed',
      data: { rule: 'bad', cause: 'plan_invalid', faults: [{ code: 'tool_unknown', step: 'a' }] },
    });
  });

  it('AG-22 one whose step the policy forbids is named, with why', async () => {
    const run = view({
      tools: toolView(['any'], [], ({ tool }) => (tool === 'any' ? { deny: 'not today.' } : 'allow')),
    });
    await expect(ask(rules({ rules: [rule('bad', true, any('a'))] }), run)).rejects.toMatchObject({
      code: 'rule_failed',
      message: expect.stringContaining('not today.'),
      data: { rule: 'bad', cause: 'plan_invalid', faults: [{ code: 'plan_forbidden', step: 'a' }] },
    });
  });

  it('AG-39 two of one id are refused at construction, and so is what is no rule', () => {
    const make = (options: object): unknown => rules(options as RulesOptions);
    const a = rule('a', true, null);
    expect(() => make({ rules: [a, rule('b', true, null), a] })).toThrow('rules[0] and rules[2] have the same id, a.');
    for (const bad of [
      undefined,
      [],
      {},
      [undefined],
      [null],
      new Array(1),
      [{ ...a, id: '' }],
      [{ ...a, match: true }],
    ]) {
      expect(() => make({ rules: bad })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
    expect(() => make({ rules: [{ id: 'a', match: () => true }] })).toThrow('rules[0].toPlanStep must be a function.');
    expect(() => make({ rules: [a], policy: true })).toThrow('rules has no option "policy"');
    for (const bad of [{ name: ' ' }, { version: 2 }, { internal: '' }]) {
      expect(() => make({ rules: [a], ...bad })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
    expect(rules({ rules: [a], name: 'mine', version: '3' })).toMatchObject({
      name: 'mine',
      version: '3',
      wakeMode: 'poll',
    });
  });

  it('asks no rule once the run has been called off', async () => {
    const reason = new Error('called off');
    const planner = rules({ rules: [rule('a', true, any('x'))] });
    await expect(ask(planner, view(), AbortSignal.abort(reason))).rejects.toBe(reason);
    const controls: Control[] = [{ id: 'c', type: 'CANCEL' }];
    expect((await ask(planner, view({ controls }))).decision).toEqual({ kind: 'finish', reason: 'cancelled' });
  });
});

describe('in a runtime', () => {
  it('AG-38 AG-06 the rules decide one step after the other', async () => {
    const planner = rules({
      rules: [
        {
          id: 'look',
          match: ({ stepCount }) => stepCount === 0,
          toPlanStep: () => any('a', { toolId: 'echo', input: { n: 1 } }),
        },
        {
          id: 'tell',
          match: ({ stepCount }) => stepCount === 1,
          toPlanStep: () => ({ id: 'm', type: 'message', input: 'Seen.' }),
        },
        rule('end', true, { id: 'f', type: 'finish', input: { $from: 'a' } }),
      ],
    });
    const here = world({ planner, tools: [echo] });
    const run = await start(here);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: { n: 1 } });
    const said: unknown[] = [];
    for await (const event of run.events()) if (event.type === 'message') said.push(event);
    expect(said).toHaveLength(1);
    await here.runtime.close();
  });

  it('AG-39 a rule that throws fails the run, by its name', async () => {
    const bad = { ...rule('bad', true, null), match: (): boolean => JSON.parse('{') };
    const here = world({ planner: rules({ rules: [bad] }), tools: [echo] });
    const result = await (await start(here)).result();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'rule_failed', data: { rule: 'bad' } } });
    await here.runtime.close();
  });
});
