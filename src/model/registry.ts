/**
 * Measures how well each model of a pool does, and ranks the models by it: rates over the last calls, each call
 * weighing half as much a half-life later. The registry is a value that its owner passes around; nothing is
 * global. Its contents go out and come in as JSON.
 */
import { assertOptions, type Clock, type OptionShape, PilotageError, systemClock } from '#core';
import { type LanguageModel, type ModelEntry, type ReadyModel, readyModels } from './entry.ts';

/** The result of one call. A stage that was not reached is left out, and does not count in its rate. */
export interface ModelCallResult {
  /** Whether the model's output could be read. */
  readonly parsed?: boolean;
  /** Whether the output passed validation. */
  readonly valid?: boolean;
  /** Whether the call ended with something usable. */
  readonly succeeded: boolean;
  readonly latencyMs?: number;
}

/** Rates from 0 to 1. */
export interface ModelMeasures {
  readonly parseFailRate: number;
  readonly validationFailRate: number;
  readonly successRate: number;
  /** Absent before the first call with a latency. */
  readonly avgLatencyMs?: number;
  /** How many calls the rates are made of. */
  readonly calls: number;
}

export interface RecordedModelCall extends ModelCallResult {
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The contents of a registry as JSON: by the model's name, the oldest call first. */
export type MeasuresData = { readonly [name: string]: readonly RecordedModelCall[] };

export interface RegistryOptions {
  readonly clock?: Clock;
  /** How many of the last calls of each model count. Default 50. */
  readonly windowCalls?: number;
  /** Milliseconds after which a call weighs half. Default 900,000: a quarter of an hour. */
  readonly halfLifeMs?: number;
}

export interface ModelRegistry {
  /** The models, in the order listed. */
  readonly models: readonly ReadyModel[];
  /** Adds a call of the model with this name. @throws PilotageError `invalid_config` for a name that is not in the pool. */
  record(name: string, result: ModelCallResult): void;
  /** @throws PilotageError `invalid_config` for a name that is not in the pool. */
  measures(name: string): ModelMeasures;
  export(): MeasuresData;
  /** Replaces the contents. Names that are not in the pool are left out. */
  import(data: MeasuresData): void;
}

/** The prior of a model that nobody has asked yet: it mostly works. */
const PRIOR_FAIL_RATE = 0.05;
/** How many calls make a full rate. Missing calls, also those lost to decay, are replaced by the prior. */
const ENOUGH_CALLS = 5;

const OPTIONS: OptionShape<RegistryOptions> = { clock: 'clock?', windowCalls: 'any?', halfLifeMs: 'any?' };

/** @throws PilotageError `invalid_config` for a pool that is empty or names a model twice, and for bad options. */
export function createModelRegistry(
  entries: readonly (LanguageModel | ModelEntry)[],
  options: RegistryOptions = {},
): ModelRegistry {
  assertOptions('createModelRegistry', options, OPTIONS);
  const { clock = systemClock, windowCalls = 50, halfLifeMs = 900_000 } = options;
  if (!(Number.isSafeInteger(windowCalls) && windowCalls > 0)) throw badOption('windowCalls', windowCalls);
  if (!(halfLifeMs > 0)) throw badOption('halfLifeMs', halfLifeMs);
  const models = readyModels(entries);
  const held = new Map<string, RecordedModelCall[]>(models.map(({ name }) => [name, []]));

  function callsOf(name: string): RecordedModelCall[] {
    const calls = held.get(name);
    if (calls !== undefined) return calls;
    throw new PilotageError('invalid_config', `No model of the pool is called ${JSON.stringify(name)}.`);
  }

  return Object.freeze({
    models,
    record(name: string, result: ModelCallResult): void {
      const calls = callsOf(name);
      calls.push({ ...result, at: clock.now() });
      if (calls.length > windowCalls) calls.shift();
    },
    measures: (name: string) => measure(callsOf(name), clock.now(), halfLifeMs),
    export: () => Object.fromEntries([...held].map(([name, calls]) => [name, [...calls]])),
    import(data: MeasuresData): void {
      for (const { name } of models) {
        const calls = Object.hasOwn(data, name) ? data[name] : undefined;
        held.set(name, (calls ?? []).slice(-windowCalls));
      }
    },
  });
}

function measure(calls: readonly RecordedModelCall[], now: number, halfLifeMs: number): ModelMeasures {
  // A clock may be set back: a call in the future weighs as one of now.
  const weights = calls.map(({ at }) => 2 ** -(Math.max(now - at, 0) / halfLifeMs));
  const rates = {
    parseFailRate: failRate(calls, weights, ({ parsed }) => parsed),
    validationFailRate: failRate(calls, weights, ({ valid }) => valid),
    successRate: 1 - failRate(calls, weights, ({ succeeded }) => succeeded),
    calls: calls.length,
  };
  const avgLatencyMs = averageLatencyMs(calls, weights);
  return avgLatencyMs === undefined ? rates : { ...rates, avgLatencyMs };
}

function failRate(
  calls: readonly RecordedModelCall[],
  weights: readonly number[],
  passed: (call: RecordedModelCall) => boolean | undefined,
): number {
  let weight = 0;
  let failed = 0;
  for (const [index, call] of calls.entries()) {
    const well = passed(call);
    if (well === undefined) continue;
    weight += weights[index] as number;
    if (!well) failed += weights[index] as number;
  }
  const missing = Math.max(ENOUGH_CALLS - weight, 0);
  return (failed + PRIOR_FAIL_RATE * missing) / (weight + missing);
}

function averageLatencyMs(calls: readonly RecordedModelCall[], weights: readonly number[]): number | undefined {
  let weight = 0;
  let sum = 0;
  for (const [index, { latencyMs }] of calls.entries()) {
    if (latencyMs === undefined) continue;
    weight += weights[index] as number;
    sum += latencyMs * (weights[index] as number);
  }
  return weight === 0 ? undefined : sum / weight;
}

function badOption(name: string, value: unknown): PilotageError {
  return new PilotageError('invalid_config', `${name} of a model registry is ${String(value)}; give a number above 0.`);
}

export interface Needs {
  /** `calls`: the request declares tools. `structured`: the answer has a schema. Default: whatever of both a model has. */
  readonly needs?: 'calls' | 'structured';
}

/**
 * A model that lacks what is needed counts as one that fails in a quarter of its calls more: it can do by its text, and
 * beats a model that can but is down.
 */
const WITHOUT = 0.75;

/** The models of the registry by what they can do and how they have done, best first; equal models in the order listed. */
export function rankModels(registry: ModelRegistry, { needs }: Needs = {}): readonly ReadyModel[] {
  const scored = registry.models.map((model) => ({
    model,
    score: fitness(model, needs) * reliability(registry.measures(model.name)),
  }));
  return scored.sort((left, right) => right.score - left.score).map(({ model }) => model);
}

function fitness({ toolCalls, structuredOutput }: ReadyModel, needs: Needs['needs']): number {
  const calls = toolCalls === 'native' ? 1 : WITHOUT;
  const structured = structuredOutput === 'text' ? WITHOUT : 1;
  if (needs === 'calls') return calls;
  if (needs === 'structured') return structured;
  return calls * structured;
}

/** The estimated chance that one call gives output that can be read and is valid. */
function reliability({ successRate, parseFailRate, validationFailRate }: ModelMeasures): number {
  return successRate * (1 - parseFailRate) * (1 - validationFailRate);
}
