/** What a pipeline planner has ready for all of its moves. */
import {
  asPlanner,
  type Clock,
  defined,
  describeThrown,
  type Planner,
  type PlanTry,
  redactor,
  systemClock,
} from '#core';
import { type AskOptions, createModelRegistry, type ModelCallResult, type ReadyModel, readyModel } from '#model';
import { isRegistry, listedModels, type ModelPool, modelPool } from '#planners';
import { type KeptMeasures, keepMeasures } from './measures.ts';
import { assertPipelineOptions, type Numbers, type PipelineOptions } from './options.ts';
import { type PromptStore, promptStore } from './prompt-store.ts';

export interface Setup {
  readonly options: PipelineOptions;
  readonly numbers: Numbers;
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
export function setUpPipeline(options: PipelineOptions): Setup {
  const numbers = assertPipelineOptions(options);
  const { clock = systemClock, prices, prompts = promptStore({ clock }), verifier, retries, stallMs } = options;
  const ready = (model: Parameters<typeof readyModel>[0]): ReadyModel =>
    readyModel(model, prices === undefined ? {} : { prices });
  const { pool, kept } = poolOf(options, clock);
  return {
    options,
    numbers,
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
