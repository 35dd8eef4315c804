/** Makes the planners of the package from their descriptions in a configuration. */
import { asPlanner, defined, FINISH_REASONS, type Planner, type ReasoningReplay } from '#core';
import { type DriverOptions, type PlannerRegistry, plannerRegistry } from '#planners';
import { type DeterministicOptions, deterministic } from '#planners/deterministic';
import { type FinishOptions, finish } from '#planners/finish';
import type { GraphOptions } from '#planners/graph';
import type { PipelineOptions, ScorePlans } from '#planners/pipeline';
import { type CompactionOptions, type ReactMemory, type ReactOptions, react } from '#planners/react';
import { isStandard } from '#schema';
import { type Environment, type ModelPart, type ModelsPart, prices, readModel, readModels } from './models.ts';
import {
  aFunction,
  amount,
  anObject,
  anything,
  at,
  type ConfigShape,
  check,
  filledText,
  flag,
  invalidConfig,
  isRecord,
  json,
  jsonObject,
  oneOf,
  shape,
  text,
  whole,
} from './shape.ts';

/** The keys that every planner description may have; the other keys belong to its driver. */
export interface DriverPart {
  /** The name of a driver. Default `react`. */
  readonly driver?: string;
  /** The step limit of the planner's runs: `limits.steps` by another name. 0 or absent: the default, 64. */
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

/** The options of `pipeline` for a configuration. */
export interface PipelinePart
  extends DriverPart,
    Omit<PipelineOptions, 'model' | 'outlineModel' | 'verifier' | 'maxSteps' | 'clock'> {
  readonly driver: 'pipeline';
  /** May be absent when the program brings a model of its own. */
  readonly model?: ModelsPart;
  readonly outlineModel?: ModelPart;
  readonly verifier?: ScorePlans | { readonly model: ModelPart };
  /** Steps of one plan. 0 or absent: the default, 1,000. */
  readonly maxPlanSteps?: number;
}

/** The options of `graph` for a configuration. */
export interface GraphPart extends DriverPart, Omit<GraphOptions, 'maxSteps'> {
  readonly driver: 'graph';
  /** See the same option of `pipeline`. */
  readonly maxPlanSteps?: number;
}

export interface DriverDependencies {
  /** The model for a `react` or a `pipeline` planner that names none. */
  readonly model?: ReactOptions['model'];
  /** The environment in which `apiKeyEnv` is looked up. Default: the environment of the process. */
  readonly env?: Environment;
}

type DriverKey = keyof DriverPart;
const DRIVER_KEYS: readonly DriverKey[] = ['driver', 'maxSteps'];

function aPlanner(value: unknown, path: string): void {
  at(path, () => asPlanner(value as Planner));
}

/** A library's schema is looked at by `react`. */
function aSchema(value: unknown, path: string): void {
  const isLibrarys = typeof value === 'function' || (isRecord(value) && isStandard(value));
  if (!isLibrarys) jsonObject(value, path);
}

const REACT: ConfigShape<Omit<ReactPart, DriverKey>> = {
  model: anything,
  prices,
  systemPrompt: text,
  guidance: text,
  buildPrompt: aFunction,
  parallelToolCalls: flag,
  converse: flag,
  tasks: flag,
  answerSchema: aSchema,
  reasks: whole(0),
  continuations: whole(0),
  fallback: aPlanner,
  retries: whole(0),
  stallMs: whole(1),
  reasoningReplay: oneOf(['', 'never', 'text']),
  maxToolExamplesPerTool: whole(0),
  compaction: shape<CompactionOptions>({ budgetTokens: whole(1), summariser: anything }),
  memory: shape<ReactMemory>({ profile: anything, recall: whole(0), extract: anything }),
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

const PLANNING: ConfigShape<
  Pick<PipelinePart & GraphPart, 'name' | 'version' | 'internal' | 'concurrency' | 'maxPlanSteps' | 'onFailedPlan'>
> = {
  name: filledText,
  version: text,
  internal: filledText,
  concurrency: whole(1),
  maxPlanSteps: whole(0),
  onFailedPlan: oneOf(['fail', 'pause']),
};
const PIPELINE: ConfigShape<Omit<PipelinePart, DriverKey>> = {
  ...PLANNING,
  model: anything,
  prices,
  prompts: anObject,
  template: anything,
  retriever: anObject,
  retrieverTokens: whole(1),
  retrieverTimeoutMs: whole(1),
  outlineModel: anything,
  candidates: whole(1),
  verifier: anything,
  verifierTimeoutMs: whole(1),
  repairRetries: whole(0),
  modelRetries: whole(0),
  fallback: aPlanner,
  stream: flag,
  replans: whole(0),
  redact: check('a list of rules', Array.isArray),
  temperature: amount,
  seed: whole(0),
  maxOutputTokens: whole(1),
  retries: whole(0),
  stallMs: whole(1),
  measures: anObject,
  onFault: aFunction,
};
const checkPipeline = shape(PIPELINE, DRIVER_KEYS);
const checkVerifier = shape<{ readonly model: ModelPart }>({ model: anything });
const checkGraph = shape<Omit<GraphPart, DriverKey>>({ ...PLANNING, plan: anything }, DRIVER_KEYS);

/** A new registry with `deterministic`, `finish`, `graph`, `pipeline` and `react`; add your own to it. */
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
  registry.register('graph', graphPlanner);
  registry.register('pipeline', (options) => pipelinePlanner(options, dependencies));
  registry.register('react', (options) => reactPlanner(options, dependencies));
  return registry;
}

async function reactPlanner(options: DriverOptions, dependencies: DriverDependencies): Promise<Planner> {
  checkReact(options, 'planner');
  const given = options as Omit<ReactPart, DriverKey>;
  const { model, maxToolExamplesPerTool = 0, reasoningReplay = '', compaction, ...same } = given;
  const { env = process.env } = dependencies;
  const models = await modelsOf(model, dependencies);
  const compacting = compaction && (await compactionOf(compaction, env));
  return at('planner', () =>
    react({
      ...same,
      model: models,
      ...(maxToolExamplesPerTool === 0 ? {} : { maxToolExamples: maxToolExamplesPerTool }),
      ...(reasoningReplay === '' ? {} : { reasoningReplay }),
      ...defined({ compaction: compacting }),
    }),
  );
}

/** @throws PilotageError `invalid_config` when neither the configuration nor the program has a model. */
function modelsOf(part: ModelsPart | undefined, dependencies: DriverDependencies): ReturnType<typeof readModels> {
  const model = part ?? dependencies.model;
  if (model === undefined) {
    throw invalidConfig('planner.model', 'is missing; give an AI SDK model, or { baseUrl, model } of a server.');
  }
  return readModels(model, 'planner.model', dependencies.env ?? process.env);
}

async function compactionOf(
  { budgetTokens, summariser }: NonNullable<ReactPart['compaction']>,
  env: Environment,
): Promise<CompactionOptions> {
  if (budgetTokens === undefined)
    throw invalidConfig('planner.compaction.budgetTokens', 'is missing; give a number of tokens.');
  if (summariser === undefined) return { budgetTokens };
  return { budgetTokens, summariser: await readModel(summariser, 'planner.compaction.summariser', env) };
}

async function graphPlanner(options: DriverOptions): Promise<Planner> {
  checkGraph(options, 'planner');
  const { maxPlanSteps = 0, ...same } = options as Omit<GraphPart, DriverKey>;
  if (same.plan === undefined)
    throw invalidConfig('planner.plan', 'is missing; give a plan, or a function that makes one.');
  // A program that uses another planner does not load this one.
  const { graph } = await import('#planners/graph');
  return at('planner', () => graph({ ...same, ...(maxPlanSteps === 0 ? {} : { maxSteps: maxPlanSteps }) }));
}

async function pipelinePlanner(options: DriverOptions, dependencies: DriverDependencies): Promise<Planner> {
  checkPipeline(options, 'planner');
  const { model, outlineModel, verifier, maxPlanSteps = 0, ...same } = options as Omit<PipelinePart, DriverKey>;
  const { env = process.env } = dependencies;
  const models = await modelsOf(model, dependencies);
  const outline = outlineModel && (await readModel(outlineModel, 'planner.outlineModel', env));
  const judge = verifier && (await verifierOf(verifier, env));
  const { pipeline } = await import('#planners/pipeline');
  return at('planner', () =>
    pipeline({
      ...same,
      model: models,
      ...defined({ outlineModel: outline, verifier: judge }),
      ...(maxPlanSteps === 0 ? {} : { maxSteps: maxPlanSteps }),
    }),
  );
}

async function verifierOf(
  verifier: NonNullable<PipelinePart['verifier']>,
  env: Environment,
): Promise<NonNullable<PipelineOptions['verifier']>> {
  if (typeof verifier === 'function') return verifier;
  checkVerifier(verifier, 'planner.verifier');
  return { model: await readModel(verifier.model, 'planner.verifier.model', env) };
}
