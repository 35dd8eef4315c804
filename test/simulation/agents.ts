/** The planners that Pilotage comes with, each with the tools of a simulated process. */
import type { Decision, Planner, RunView } from '#core';
import { deterministic } from '#planners/deterministic';
import { finish } from '#planners/finish';
import { graph } from '#planners/graph';
import { htn, htnDomain } from '#planners/htn';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { type Rule, rules } from '#planners/rules';
import type { PlanStep } from '#plans';
import { scriptedModel } from '#testing';
import type { Agent, Tool } from '#tools';
import { Dice } from './dice.ts';
import type { SimulatedProcess } from './process.ts';
import type { AgentName, Errand, SimulationScript } from './script.ts';
import { replyTo, type Voice } from './scripted-replies.ts';

/** In dollars for a million tokens: a reply costs about as much as a tool. */
const PRICES = { input: 1, output: 1 };

export interface AgentWorld {
  readonly script: SimulationScript;
  readonly process: SimulatedProcess;
  /** Of the process. */
  readonly tools: readonly Tool[];
  /** Tells processes apart, so that their models do not slip at the same words. */
  readonly life: number;
}

export function agentIn(name: AgentName, world: AgentWorld): Agent {
  return { name, planner: plannerOf(name, world), tools: world.tools };
}

function plannerOf(name: AgentName, world: AgentWorld): Planner {
  const { script } = world;
  const { clock } = world.process;
  const errandsOf = (run: RunView): readonly (readonly Errand[])[] => errandsIn(run, script);
  switch (name) {
    case 'react':
      return react({ model: { model: model('native', world), prices: PRICES }, clock });
    case 'react-text':
      return named(name, react({ model: { model: model('text', world), toolCalls: 'text', prices: PRICES }, clock }));
    case 'pipeline':
      return pipeline({ model: { model: model('plan', world), prices: PRICES }, clock, replans: 2 });
    case 'pipeline-lines':
      return pipeline({
        name,
        model: { model: model('lines', world), prices: PRICES },
        clock,
        replans: 2,
        stream: true,
      });
    case 'graph':
      return graph({ name, plan: (run) => ({ steps: stepsOf(errandsOf(run)) }) });
    case 'graph-stream':
      return graph({
        name,
        plan: async function* (run) {
          yield* stepsOf(errandsOf(run));
        },
      });
    case 'rules':
      return rules({ name, rules: rulesFor(errandsOf) });
    case 'htn':
      return byTasks(name, errandsOf);
    case 'deterministic':
      return deterministic({ name, steps: [(run) => nextErrand(run, errandsOf(run))] });
    case 'finish':
      return finish({ payload: 'done' });
    default:
      return name satisfies never;
  }
}

/** Two of a kind in one runtime have names of their own. */
function named(name: string, planner: Planner): Planner {
  return { ...planner, name };
}

function model(voice: Voice, { script, life }: AgentWorld) {
  const dice = new Dice(script.seed * 43 + life);
  return scriptedModel((request) => replyTo(request, voice, script, dice), { record: false });
}

function errandsIn({ query }: RunView, { plans }: SimulationScript): readonly (readonly Errand[])[] {
  const plan = /(p\d+)\.$/.exec(query)?.[1] ?? '';
  return plans[plan]?.errands ?? [];
}

function stepsOf(errands: readonly (readonly Errand[])[]): PlanStep[] {
  let before: readonly string[] = [];
  const steps = errands.flatMap((calls) => {
    const after = before;
    before = calls.map(({ args }) => String(args['id']));
    return calls.map(
      ({ tool, args }): PlanStep => ({
        id: String(args['id']),
        type: 'tool',
        toolId: tool,
        input: args,
        behind: after,
        after: [],
      }),
    );
  });
  // Without an end a plan comes to the results of all its steps.
  if (errands.length % 2 === 0) return steps;
  return [...steps, { id: 'end', type: 'finish', input: 'All of it is done.', after: [], behind: before }];
}

function rulesFor(errandsOf: (run: RunView) => readonly (readonly Errand[])[]): readonly Rule[] {
  const next = (run: RunView): Errand | undefined => errandsOf(run).flat()[run.trajectory.count];
  return [
    {
      id: 'errand',
      match: (_, run) => next(run) !== undefined,
      toPlanStep: (_, run) => {
        const errand = next(run);
        if (errand === undefined) return null;
        return { id: String(errand.args['id']), type: 'tool', toolId: errand.tool, input: errand.args };
      },
    },
    { id: 'end', match: () => true, toPlanStep: () => ({ id: 'end', type: 'finish', input: 'All of it is done.' }) },
  ];
}

/** Each errand is a task; what cannot be done is passed over. */
function byTasks(name: string, errandsOf: (run: RunView) => readonly (readonly Errand[])[]): Planner {
  const domain = htnDomain({
    operators: { call: () => true, pass: () => true },
    tasks: {
      errands: (_, count: number) => Array.from({ length: count }, (__, index) => ['errand', index]),
      errand: { called: (_, index: number) => [['call', index]], passed: () => [] },
    },
  });
  return htn({
    name,
    domain,
    state: () => ({}),
    todo: (run) => [['errands', errandsOf(run).flat().length]],
    step: ([, index], run) => {
      const { tool, args } = errandsOf(run).flat()[Number(index)] ?? { tool: 'look', args: { id: 'c0' } };
      return { type: 'tool', toolId: tool, input: args };
    },
  });
}

function nextErrand({ trajectory: { count } }: RunView, errands: readonly (readonly Errand[])[]): Decision {
  const calls = errands[count];
  if (calls === undefined) return { kind: 'finish', reason: 'goal', payload: 'All of it is done.' };
  const [first] = calls;
  if (calls.length === 1 && first !== undefined) return { kind: 'call_tool', ...first };
  return { kind: 'call_parallel', branches: calls.map(({ tool, args }) => ({ id: String(args['id']), tool, args })) };
}
