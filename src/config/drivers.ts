/** The planners of the package, made from what a configuration says of them. */
import type { ReasoningReplay } from '../core/context.ts';
import { FINISH_REASONS } from '../core/decision.ts';
import { asPlanner, type Planner } from '../core/planner.ts';
import { type DeterministicOptions, deterministic } from '../planners/deterministic/index.ts';
import { type FinishOptions, finish } from '../planners/finish/index.ts';
import { type CompactionOptions, type ReactOptions, react } from '../planners/react/index.ts';
import { type DriverOptions, type PlannerRegistry, plannerRegistry } from '../planners/registry.ts';
import { type Environment, type ModelPart, type ModelsPart, prices, readModel, readModels } from './models.ts';
import {
  aFunction,
  amount,
  anObject,
  anything,
  at,
  filledText,
  flag,
  invalid,
  json,
  jsonObject,
  oneOf,
  type Shape,
  shape,
  text,
  whole,
} from './shape.ts';

/** What every planner that is named by its driver may say; the rest is its driver's. */
export interface DriverPart {
  /** The name of a driver. Default `react`. */
  readonly driver?: string;
  /** The step limit of its runs: `limits.steps` by another name. 0 or absent: the default, 64. */
  readonly maxSteps?: number;
}

/** The options of `react` for a configuration. */
export interface ReactPart
  extends DriverPart,
    Omit<ReactOptions, 'model' | 'maxToolExamples' | 'reasoningReplay' | 'compaction' | 'clock'> {
  readonly driver?: 'react';
  /** May be absent when the program brings a model of its own. */
  readonly model?: ModelsPart;
  /** Examples shown for each tool. 0 or absent: the default, 3. */
  readonly maxToolExamplesPerTool?: number;
  /** Empty or absent: `never`. */
  readonly reasoningReplay?: ReasoningReplay | '';
  readonly compaction?: Omit<CompactionOptions, 'summariser'> & { readonly summariser?: ModelPart };
}

export interface DeterministicPart extends DriverPart, DeterministicOptions {
  readonly driver: 'deterministic';
}

export interface FinishPart extends DriverPart, FinishOptions {
  readonly driver: 'finish';
}

export interface DriverDependencies {
  /** For a `react` that names no model. */
  readonly model?: ReactOptions['model'];
  /** Where `apiKeyEnv` is looked up. Default: the process's own. */
  readonly env?: Environment;
}

type DriverKey = keyof DriverPart;
const DRIVER_KEYS: readonly DriverKey[] = ['driver', 'maxSteps'];

const REACT: Shape<Omit<ReactPart, DriverKey>> = {
  model: anything,
  prices,
  systemPrompt: text,
  guidance: text,
  buildPrompt: aFunction,
  parallelToolCalls: flag,
  converse: flag,
  tasks: flag,
  answerSchema: jsonObject,
  reasks: whole(0),
  fallback: (value, path) => at(path, () => asPlanner(value as Planner)),
  retries: whole(0),
  stallMs: whole(1),
  reasoningReplay: oneOf(['', 'never', 'text']),
  maxToolExamplesPerTool: whole(0),
  compaction: shape<CompactionOptions>({ budgetTokens: whole(1), summariser: anything }),
  maxOutputTokens: whole(1),
  temperature: amount,
  providerOptions: anObject,
};
const checkReact = shape(REACT, DRIVER_KEYS);
const checkDeterministic = shape<Omit<DeterministicPart, DriverKey>>(
  { name: filledText, version: text, steps: anything },
  DRIVER_KEYS,
);
const checkFinish = shape<Omit<FinishPart, DriverKey>>(
  { payload: json, metadata: jsonObject, reason: oneOf(FINISH_REASONS) },
  DRIVER_KEYS,
);

/** A new registry with `deterministic`, `finish` and `react`; add your own to it. */
export function shippedPlanners(dependencies: DriverDependencies = {}): PlannerRegistry {
  const registry = plannerRegistry();
  registry.register('deterministic', (options) => {
    checkDeterministic(options, 'planner');
    return at('planner', () => deterministic(options as unknown as DeterministicOptions));
  });
  registry.register('finish', (options) => {
    checkFinish(options, 'planner');
    return finish(options);
  });
  registry.register('react', (options) => reactPlanner(options, dependencies));
  return registry;
}

async function reactPlanner(options: DriverOptions, dependencies: DriverDependencies): Promise<Planner> {
  checkReact(options, 'planner');
  const given = options as Omit<ReactPart, DriverKey>;
  const { model = dependencies.model, maxToolExamplesPerTool = 0, reasoningReplay = '', compaction, ...same } = given;
  if (model === undefined) {
    throw invalid('planner.model', 'is missing; give an AI SDK model, or { baseUrl, model } of a server.');
  }
  const { env = process.env } = dependencies;
  const models = await readModels(model, 'planner.model', env);
  const compacting = compaction && (await compactionOf(compaction, env));
  return at('planner', () =>
    react({
      ...same,
      model: models,
      ...(maxToolExamplesPerTool === 0 ? {} : { maxToolExamples: maxToolExamplesPerTool }),
      ...(reasoningReplay === '' ? {} : { reasoningReplay }),
      ...(compacting === undefined ? {} : { compaction: compacting }),
    }),
  );
}

async function compactionOf(
  { budgetTokens, summariser }: NonNullable<ReactPart['compaction']>,
  env: Environment,
): Promise<CompactionOptions> {
  if (budgetTokens === undefined)
    throw invalid('planner.compaction.budgetTokens', 'is missing; give a number of tokens.');
  if (summariser === undefined) return { budgetTokens };
  return { budgetTokens, summariser: await readModel(summariser, 'planner.compaction.summariser', env) };
}
