/** Brings about the errors of planners that plan, for the table of consequences. */

import { memoryJournal } from '#journal';
import { createRuntime, local, type Planner, type Run, type Runtime, type RuntimeOptions, type Tool } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Branch, Decision, Delta, RunView } from '#pilotage/planner';
import { graph } from '#planners/graph';
import { type HtnDomain, type HtnTask, htn, htnDomain } from '#planners/htn';
import { readHddl } from '#planners/htn/hddl';
import { pipeline, promptStore } from '#planners/pipeline';
import { rules } from '#planners/rules';
import { scriptedModel } from '#testing';

const WORKS: Tool = {
  name: 'works',
  description: 'd',
  inputSchema: { type: 'object' },
  effect: 'read',
  execute: () => 1,
};

const node = (id: string, more: Partial<Branch> = {}): Branch => ({ id, tool: 'works', args: {}, ...more });

const goes = (task: string, methods: () => readonly HtnTask[]): HtnDomain =>
  htnDomain({ operators: { act: () => true }, tasks: { [task]: methods } });

/** A planner of a domain in which `todo` is the one task. */
const planning = (domain: HtnDomain, limits: { readonly depth?: number; readonly nodes?: number } = {}): Planner =>
  htn({ domain, state: () => ({}), todo: () => [['todo']], step: () => undefined, ...limits });

let level = 0;
const deeper = htnDomain({
  operators: {},
  tasks: {
    todo: () => [['down', 0]],
    down: (_, n: number) => {
      level = n + 1;
      return [['down', level]];
    },
  },
});

type FailingCode =
  | 'plan_invalid'
  | 'plan_failed'
  | 'rule_failed'
  | 'template_variable_missing'
  | 'htn_depth'
  | 'htn_nodes'
  | 'htn_cycle'
  | 'htn_invalid_decomposition';

/** Planners of which the run fails with the error. */
export const FAILING: Readonly<Record<FailingCode, () => Planner>> = {
  plan_invalid: () => graph({ plan: { steps: [{ id: 'a', type: 'tool', toolId: 'nobody' }] } }),
  plan_failed: () => graph({ plan: { steps: [{ id: 'a', type: 'tool', toolId: 'fails' }] } }),
  rule_failed: () =>
    rules({
      rules: [
        {
          id: 'r',
          match: () => {
            throw new Error('no');
          },
          toPlanStep: () => null,
        },
      ],
    }),
  template_variable_missing: () => {
    const prompts = promptStore({ templates: [{ id: 'mine', text: 'Plan {{what}}.', requiredVars: ['what'] }] });
    return pipeline({ model: scriptedModel([]), prompts, template: 'mine' });
  },
  htn_depth: () => planning(deeper, { depth: 4 }),
  htn_nodes: () => planning(deeper, { nodes: 3, depth: 1_000 }),
  htn_cycle: () => planning(goes('todo', () => [['todo']])),
  htn_invalid_decomposition: () => planning(goes('todo', () => 'act' as never)),
};

/** What a caller does that is thrown back at it. */
export const THROWING: Readonly<Record<'template_invalid' | 'hddl_invalid', () => unknown>> = {
  template_invalid: () => promptStore().put({ id: 'mine', text: 'Plan {{what.' }),
  hddl_invalid: () => readHddl('(define', ''),
};

/** The codes of the steps' errors and of their calls, as whoever is asked next sees them. */
const codesIn = ({ trajectory }: RunView): readonly string[] =>
  trajectory.steps.flatMap(({ calls, error }) => [
    ...(error === undefined ? [] : [error.code]),
    ...calls.flatMap(({ outcome }) => ('error' in outcome ? [outcome.error.code] : [])),
  ]);

interface Scene {
  readonly runtime: Runtime;
  readonly run: Run;
  /** The planner of the plan is in its middle. */
  readonly middle: Promise<void>;
  goOn(): void;
  /** What the planner was told when it was asked again. */
  readonly told: string[];
}

async function growing(journal: Journal, more: Partial<RuntimeOptions> = {}): Promise<Scene> {
  const middle = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const told: string[] = [];
  const planner: Planner = {
    name: 'growing',
    async *next(run): AsyncGenerator<Delta, Decision> {
      told.push(...codesIn(run));
      if (run.trajectory.count > 0) return { kind: 'finish', reason: 'goal', payload: 'done' };
      const branches = [node('a'), node('b', { after: ['a'] })];
      yield { type: 'branches', plan: 'p', branches: branches.slice(0, 1) };
      middle.resolve();
      await gate.promise;
      return { kind: 'call_parallel', plan: 'p', branches, onInvalid: 'per_branch' };
    },
  };
  const runtime = createRuntime({ planner, journal, tools: [WORKS], ...more });
  const run = await runtime.start('q', { identity: local('ana') });
  return { runtime, run, middle: middle.promise, goOn: gate.resolve, told };
}

/** A process ends in the middle of a plan; another goes on. Gives what the planner is told then. */
export async function interrupted(): Promise<readonly string[]> {
  const journal = memoryJournal();
  const first = await growing(journal);
  await first.middle;
  const closing = first.runtime.close();
  first.goOn();
  await closing;
  const told: string[] = [];
  const planner: Planner = {
    name: 'growing',
    next: (run) => {
      told.push(...codesIn(run));
      return { kind: 'finish', reason: 'goal' };
    },
  };
  const runtime = createRuntime({ planner, journal, tools: [WORKS] });
  const run = runtime.run(first.run.id);
  await run.resume();
  await run.result();
  await runtime.close();
  return told;
}

/** Somebody changes the goal in the middle of a plan. */
export async function redirected(): Promise<readonly string[]> {
  const { run, middle, goOn, told, runtime } = await growing(memoryJournal());
  await middle;
  await run.steer('REDIRECT', { goal: 'another' });
  goOn();
  await run.result();
  await runtime.close();
  return told;
}

/** Somebody takes the last node out of a plan. */
export async function removed(): Promise<readonly string[]> {
  const { run, middle, goOn, told, runtime } = await growing(memoryJournal());
  await middle;
  await run.pause();
  goOn();
  await run.result();
  await run.resume({ nodes: { b: { skip: true } } });
  await run.result();
  await runtime.close();
  return told;
}
