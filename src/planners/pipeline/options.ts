/** The options of a pipeline planner, and what it has ready by them for all of its moves. */
import {
  asPlanner,
  assertKnownKeys,
  type Clock,
  defined,
  describeThrown,
  type GivenPlanner,
  hasMethods,
  isOptionsRecord,
  MAX_AT_ONCE,
  type OnFailedPlan,
  type OptionShape,
  PilotageError,
  type Planner,
  type PlanTry,
  type RedactRule,
  type RunView,
  readOptions,
  redactor,
  systemClock,
} from '#core';
import {
  type AskOptions,
  createModelRegistry,
  type LanguageModel,
  type ModelCallResult,
  type ModelEntry,
  type Prices,
  type ReadyModel,
  readyModel,
} from '#model';
import { type GivenModels, isRegistry, listedModels, type ModelPool, modelPool } from '#planners';
import type { ReadyPlan } from '#plans';
import { type KeptMeasures, keepMeasures, type MeasuresStore } from './measures.ts';
import { type PromptStore, promptStore } from './prompt-store.ts';
import type { Retriever } from './retrieve.ts';

/** The verdict on a plan: its score, or why it must not be carried out. */
export type PlanVerdict = number | { readonly reject: string };

/**
 * Gives a verdict for each plan, in their order. Among the plans that are not rejected the highest score wins, the first of equal ones; when
 * all are rejected, the models are told why and asked again.
 */
export type ScorePlans = (
  plans: readonly ReadyPlan[],
  run: RunView,
  signal: AbortSignal,
) => readonly PlanVerdict[] | Promise<readonly PlanVerdict[]>;

/** A verifier: a function, or a model that is asked for the verdicts. */
export type Verifier = ScorePlans | { readonly model: LanguageModel | ModelEntry };

export interface PipelineOptions {
  /** The models. A model without native tool calls is given as `{ model, toolCalls: 'text' }`. */
  readonly model: GivenModels;
  /** Prices of models that do not state their own. Without prices the cost of model calls is not known. */
  readonly prices?: Prices;
  /** The planner's name. Default `pipeline`. */
  readonly name?: string;
  /** The version, recorded with each run. Default: the version of the built-in planner. */
  readonly version?: string;
  /** The store of prompt templates. Default: a store with the built-in templates. */
  readonly prompts?: PromptStore;
  /** The template: its newest version, or a certain one. Default `plan`, and `plan-ndjson` with `stream`. */
  readonly template?: string | { readonly id: string; readonly version: number };
  /** Looks up documents for the prompt. */
  readonly retriever?: Retriever;
  /** How many estimated tokens the documents may take. Default 2,000. */
  readonly retrieverTokens?: number;
  /** The time limit of the retriever, in milliseconds; after it the plan is made without documents. Default 5,000. */
  readonly retrieverTimeoutMs?: number;
  /** True: an outline is made first, which the prompt of the plan then holds. */
  readonly outlineModel?: LanguageModel | ModelEntry;
  /** How many plans are made to choose from; 2 and more need a `verifier`. Default 1. */
  readonly candidates?: number;
  /**
   * Chooses among the plans, and may reject them. When it fails, or is too slow, the first valid plan is taken unverified, and the `plan.verified` event
   * says so: what must never run is for the `policy`.
   */
  readonly verifier?: Verifier;
  /** The time limit of the verifier, in milliseconds; after it the plans count as unverified. Default 60,000. */
  readonly verifierTimeoutMs?: number;
  /** How many further calls one model gets after its first plan or candidates, each with the faults of the last reply. Default 1. */
  readonly repairRetries?: number;
  /** How many further models are asked after the first. Default 2. */
  readonly modelRetries?: number;
  /** The planner that takes over when the models gave no plan. Its plans are checked too. Without it the run ends with `no_path`. */
  readonly fallback?: GivenPlanner;
  /** The tool that carries out steps of the type `internal`. Without it such steps are refused. */
  readonly internal?: string;
  /** The most steps of a plan. Default 1,000. */
  readonly maxSteps?: number;
  /** How many steps may run at once, up to 50. Default 50. */
  readonly concurrency?: number;
  /** True: steps run as their lines arrive, each checked by itself. Default: no step runs before the whole plan is valid. */
  readonly stream?: boolean;
  /** How often the unfinished rest of a plan is planned again after a failure. Default 1. */
  readonly replans?: number;
  /** `pause`: when nodes have failed and nothing is planned again any more, the run is paused, and asks to retry them. Default `fail`. */
  readonly onFailedPlan?: OnFailedPlan;
  /** Redaction rules in addition to the default ones. Stored parts of prompts and replies pass through them. */
  readonly redact?: readonly RedactRule[];
  /** The sampling temperature. Default 0. */
  readonly temperature?: number;
  /** The seed of the model, recorded with each try. The second candidate is asked with the seed plus one, and so on. */
  readonly seed?: number;
  readonly maxOutputTokens?: number;
  /** How many further tries one call gets after a failure that may pass, such as a 503. Default 2. */
  readonly retries?: number;
  /**
   * Milliseconds of silence after which a model counts as failed, in a way that may pass. Default 120,000 for streams, otherwise
   * no limit.
   */
  readonly stallMs?: number;
  /** Where the measures of the models are kept. A list of models is then ranked by them. */
  readonly measures?: MeasuresStore;
  /** Called when the measures could not be read or written; the plan is made all the same. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
  readonly clock?: Clock;
}

type WithDefault = 'candidates' | 'repairRetries' | 'modelRetries' | 'replans' | 'maxSteps' | 'temperature';

/** The options, with the defaults of these filled in. */
type ReadyOptions = PipelineOptions & Required<Pick<PipelineOptions, WithDefault>>;

const OPTIONS: OptionShape<PipelineOptions> = {
  model: 'any',
  prices: 'object?',
  name: 'name?',
  version: 'text?',
  prompts: 'object?',
  template: 'any?',
  retriever: 'any?',
  retrieverTokens: 'any?',
  retrieverTimeoutMs: 'any?',
  outlineModel: 'any?',
  candidates: 'any?',
  verifier: 'any?',
  verifierTimeoutMs: 'any?',
  repairRetries: 'any?',
  modelRetries: 'any?',
  fallback: 'planner?',
  internal: 'text?',
  maxSteps: 'any?',
  concurrency: 'any?',
  stream: 'flag?',
  onFailedPlan: 'text?',
  replans: 'any?',
  redact: 'list?',
  temperature: 'number?',
  seed: 'any?',
  maxOutputTokens: 'any?',
  retries: 'any?',
  stallMs: 'any?',
  measures: 'object?',
  onFault: 'function?',
  clock: 'clock?',
};

/** @throws PilotageError `invalid_config` naming the option. */
function readyOptions(given: PipelineOptions): ReadyOptions {
  const options = readOptions('pipeline', given, OPTIONS);
  const { candidates = 1, repairRetries = 1, modelRetries = 2, replans = 1, maxSteps = 1_000 } = options;
  checkParts(options);
  whole('candidates', candidates, 1);
  whole('repairRetries', repairRetries, 0);
  whole('modelRetries', modelRetries, 0);
  whole('replans', replans, 0);
  whole('maxSteps', maxSteps, 1);
  whole('retrieverTokens', options.retrieverTokens, 1);
  whole('retrieverTimeoutMs', options.retrieverTimeoutMs, 1);
  whole('verifierTimeoutMs', options.verifierTimeoutMs, 1);
  whole('retries', options.retries, 0);
  whole('stallMs', options.stallMs, 1);
  whole('maxOutputTokens', options.maxOutputTokens, 1);
  whole('seed', options.seed, 0);
  const { concurrency, temperature = 0, stream = false, verifier } = options;
  whole('concurrency', concurrency, 1);
  if (concurrency !== undefined && concurrency > MAX_AT_ONCE) {
    throw badPipelineOption('concurrency', String(concurrency), `a whole number from 1 to ${MAX_AT_ONCE}`);
  }
  if (!(temperature >= 0)) throw badPipelineOption('temperature', String(temperature), 'a number from 0 up');
  if (candidates > 1 && verifier === undefined) {
    throw badPipelineOption('candidates', String(candidates), '1, or a verifier that chooses');
  }
  if (stream && verifier !== undefined) {
    throw badPipelineOption(
      'stream',
      'true',
      'no verifier: what runs as it arrives cannot be chosen from, nor rejected',
    );
  }
  return { ...options, candidates, repairRetries, modelRetries, replans, maxSteps, temperature };
}

/** What has functions that are called only when a plan is made, and what is looked up only then. */
function checkParts({ verifier, template, prompts, retriever, measures }: PipelineOptions): void {
  if (isOptionsRecord(verifier)) assertKnownKeys('verifier of pipeline', verifier, ['model']);
  else if (verifier !== undefined && typeof verifier !== 'function') {
    throw badPipelineOption('verifier', String(verifier), 'a function that scores plans, or { model }');
  }
  methods('prompts', prompts, ['get', 'render']);
  methods('retriever', retriever, ['retrieve']);
  methods('measures', measures, ['load', 'save']);
  if (template === undefined) return;
  if (isOptionsRecord(template)) assertKnownKeys('template of pipeline', template, ['id', 'version']);
  const { id, version } = isOptionsRecord(template) ? template : { id: template, version: undefined };
  if (typeof id !== 'string' || id === '') {
    throw badPipelineOption('template', shown(template), 'the id of a template, or { id, version }');
  }
  whole('template.version', version, 1);
  // Into a store of the program's own it may still be put.
  if (prompts !== undefined || promptStore().get(id, version) !== null) return;
  const given = `the template ${JSON.stringify(id)}`;
  throw badPipelineOption('template', given, 'plan, plan-ndjson, or prompts that have it');
}

function methods(name: string, value: unknown, wanted: readonly string[]): void {
  if (value === undefined || hasMethods(value, wanted)) return;
  throw badPipelineOption(name, shown(value), `an object with ${wanted.join(' and ')}`);
}

const shown = (value: unknown): string => (isOptionsRecord(value) ? 'another object' : String(value));

function whole(name: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  throw badPipelineOption(name, String(value), `a whole number from ${least} up`);
}

function badPipelineOption(name: string, given: string, wanted: string): PilotageError {
  return new PilotageError('invalid_config', `The option ${name} of pipeline is ${given}; give ${wanted}.`);
}

/** What a pipeline planner has for all of its moves. */
export interface Setup {
  readonly options: ReadyOptions;
  readonly pool: ModelPool;
  readonly prompts: PromptStore;
  readonly redact: (text: string) => string;
  readonly clock: Clock;
  readonly patience: Pick<AskOptions, 'clock' | 'retries' | 'stallMs'>;
  readonly outline?: ReadyModel;
  /** The model that gives scores. */
  readonly judge?: ReadyModel;
  readonly fallback?: Planner;
  /** To be awaited before models are ranked. */
  ready(): Promise<void>;
  /** To be awaited when a plan was made, or not: what was noted is stored. */
  saved(): Promise<void>;
  /** Notes for the measures how a call went. */
  note(record: PlanTry): void;
}

/** @throws PilotageError `invalid_config` for a value that is not a model, and for wrong options. */
export function setUpPipeline(given: PipelineOptions): Setup {
  const options = readyOptions(given);
  const { clock = systemClock, prices, prompts = promptStore({ clock }), verifier, retries, stallMs } = options;
  const ready = (model: Parameters<typeof readyModel>[0]): ReadyModel =>
    readyModel(model, prices === undefined ? {} : { prices });
  const { pool, kept } = poolOf(options, clock);
  return {
    options,
    pool,
    prompts,
    redact: redactor(options.redact),
    clock,
    patience: {
      clock,
      ...defined({ retries, stallMs }),
    },
    ...(options.outlineModel === undefined ? {} : { outline: ready(options.outlineModel) }),
    ...(typeof verifier === 'object' ? { judge: ready(verifier.model) } : {}),
    ...(options.fallback === undefined ? {} : { fallback: asPlanner(options.fallback) }),
    ready: () => kept?.ready() ?? Promise.resolve(),
    saved: () => kept?.saved() ?? Promise.resolve(),
    note(record) {
      const { purpose, model } = record;
      if (purpose === 'outline' || purpose === 'verify') return;
      (kept ?? pool).record(model, resultOf(record));
    },
  };
}

/** With a store for measures there is a registry to measure by. */
function poolOf(
  { model, prices, measures, onFault = warn }: PipelineOptions,
  clock: Clock,
): { readonly pool: ModelPool; readonly kept?: KeptMeasures } {
  if (measures === undefined) return { pool: modelPool(model, prices) };
  const registry = isRegistry(model) ? model : createModelRegistry(listedModels(model, prices), { clock });
  return { pool: modelPool(registry, prices), kept: keepMeasures(registry, measures, ({ error }) => onFault(error)) };
}

function warn(error: unknown): void {
  process.emitWarning(`The measures of the models could not be kept: ${describeThrown(error)}`);
}

function resultOf({ result, latencyMs }: PlanTry): ModelCallResult {
  switch (result) {
    case 'valid':
      return { parsed: true, valid: true, succeeded: true, latencyMs };
    case 'invalid':
    case 'forbidden':
      return { parsed: true, valid: false, succeeded: false, latencyMs };
    case 'unreadable':
      return { parsed: false, succeeded: false, latencyMs };
    case 'failed':
      return { succeeded: false };
    default:
      return result satisfies never;
  }
}
