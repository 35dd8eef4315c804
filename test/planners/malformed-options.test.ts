/** RG-17: what is wrong with the options of a planner is told when it is made, and never at a step. */
import { describe, expect, it } from 'vitest';
import { isMove, PilotageError, type Planner, validateDecision } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { deterministic } from '#planners/deterministic';
import { finish } from '#planners/finish';
import { graph } from '#planners/graph';
import { fromHtnPlanner, htn, htnDomain } from '#planners/htn';
import { chooseWith, fillWith } from '#planners/htn-model';
import { pipeline, promptStore } from '#planners/pipeline';
import { react } from '#planners/react';
import { rules } from '#planners/rules';
import { runView, scriptedModel, toolView } from '#testing';
import { ask } from '../kit/ask.ts';
import { end, plan } from './pipeline-play.ts';

/** A planner of these options; what it needs is there beside them. */
const MAKE: Readonly<Record<string, (options: object) => Planner>> = {
  react: (options) => react({ model: scriptedModel(() => ({ text: 'x' })), ...options }),
  deterministic: (options) => deterministic({ steps: [{ do: 'finish', reason: 'goal' }], ...options }),
  finish: (options) => finish(options),
  graph: (options) => graph({ plan: { steps: [{ id: 'end', type: 'finish' }] }, ...options }),
  rules: (options) =>
    rules({
      rules: [{ id: 'end', match: () => true, toPlanStep: () => ({ id: 'end', type: 'finish' }) }],
      ...options,
    }),
  htn: (options) =>
    htn({
      domain: htnDomain({ operators: { look: () => true }, tasks: {} }),
      state: () => ({}),
      todo: () => [['look']],
      step: () => ({ type: 'tool', toolId: 'look', input: {} }),
      ...options,
    }),
  fromHtnPlanner: (options) =>
    fromHtnPlanner(
      {
        initialTask: () => ({ id: 'a', kind: 'primitive', primitive: { type: 'tool', toolId: 'look', input: {} } }),
        decompose: () => [],
      },
      options,
    ),
  pipeline: (options) => pipeline({ model: scriptedModel(() => plan(end('x'))), ...options }),
};

/** What somebody may have written for anything. */
const ODD: readonly unknown[] = [
  ...[null, 5, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1n, Symbol('s')],
  ...['x', '', ' ', true, false, [], [null], {}, { a: 1 }, new Map(), new Date(0)],
];

/** The options that there are, as a misspelt one is told. */
function optionsOf(make: (options: object) => unknown): readonly string[] {
  try {
    make({ qqqqqqqqqq: 1 });
  } catch (error) {
    const [, list = ''] = /Its options are ([^.]*)\./.exec(String(error)) ?? [];
    return list.split(', ').filter((name) => name !== '');
  }
  return [];
}

const view = () => runView({ query: 'q', tools: toolView(['look']) });

describe.each(Object.entries(MAKE))('the options of %s', (_, make) => {
  const names = optionsOf(make);

  it('are known by name', () => {
    expect(names.length).toBeGreaterThan(2);
  });

  it.each(names)('RG-17 %s is refused when the planner is made, or serves each step', async (name) => {
    const wrong: unknown[] = [];
    for (const odd of ODD) {
      let planner: Planner;
      try {
        planner = make({ [name]: odd });
      } catch (error) {
        // All that is wrong with a plan is told at once, under a code of its own.
        const isTold = PilotageError.is(error, 'invalid_config') || PilotageError.is(error, 'plan_invalid');
        if (!isTold) wrong.push([odd, error]);
        continue;
      }
      const moved = await ask(planner, view()).then(
        (move) => validateDecision(isMove(move) ? move.decision : move),
        (error: unknown) => error,
      );
      const shortened = await (async () => planner.compact?.(view(), new AbortController().signal))().catch(
        (error: unknown) => error,
      );
      for (const came of [moved, shortened]) if (came instanceof Error) wrong.push([odd, came]);
    }
    expect(wrong).toEqual([]);
  });
});

describe('what is told', () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      'the clock of a runtime',
      () => createRuntime({ planner: finish(), clock: {} as never }),
      /option clock of createRuntime/,
    ],
    ['the clock of a journal', () => memoryJournal({ clock: {} as never }), /option clock of memoryJournal .*a clock/],
    ['a clock', () => react({ model: scriptedModel([]), clock: {} as never }), /option clock of react .*a clock/],
    [
      'a fallback',
      () => react({ model: scriptedModel([]), fallback: 5 as never }),
      /option fallback of react .*planner/,
    ],
    ['a store', () => MAKE['pipeline']?.({ prompts: {} }), /option prompts of pipeline .*get and render/],
    ['a retriever', () => MAKE['pipeline']?.({ retriever: {} }), /option retriever of pipeline .*retrieve/],
    ['a verifier', () => MAKE['pipeline']?.({ verifier: null }), /option verifier of pipeline/],
    ['measures', () => MAKE['pipeline']?.({ measures: {} }), /option measures of pipeline .*load and save/],
    ['a template', () => MAKE['pipeline']?.({ template: 'plam' }), /template "plam".*plan, plan-ndjson/],
    ['a payload', () => MAKE['finish']?.({ payload: { at: Number.NaN } }), /finish.*payload\.at/],
    ['a reason', () => MAKE['finish']?.({ reason: 'done' }), /finish.*"done".*goal/],
    ['a plan', () => MAKE['graph']?.({ plan: { steps: new Map() } }), /plan\.steps/],
    ['a name', () => MAKE['htn']?.({ name: ' ' }), /option name of htn/],
    ['a model to choose', () => chooseWith(5 as never), /model/],
    ['a model to fill', () => fillWith({ clock: {} } as never), /./],
  ])('of %s names the option, and what to give', (_, made, said) => {
    expect(made).toThrow(expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(said) }));
  });

  it('a template that the program puts into its own store later is looked up when it is needed', async () => {
    const prompts = promptStore();
    const planner = MAKE['pipeline']?.({ prompts, template: 'mine' }) as Planner;
    prompts.put({ id: 'mine', text: 'Plan {{goal}} with {{toolList}} by {{schema}}.' });
    expect((await ask(planner, view())).decision).toMatchObject({ kind: 'call_parallel' });
  });

  it.each<[string, object, RegExp]>([
    ['todo', { todo: () => 1 }, /todo of htn gave 1/],
    ['state', { state: () => 1 }, /object of tables/],
  ])('what the function %s of htn gives, when it is no such thing', async (_, options, said) => {
    const planner = MAKE['htn']?.(options) as Planner;
    await expect(ask(planner, view())).rejects.toThrow(said);
  });

  it('what buildPrompt gives, when it is no list of messages', async () => {
    const planner = MAKE['react']?.({ buildPrompt: () => 1 }) as Planner;
    await expect(ask(planner, view())).rejects.toThrow(/buildPrompt of react gave 1.*list/);
  });
});
