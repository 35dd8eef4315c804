/** The models of a planner: a list in a fixed order, or a registry that ranks them by what it has measured. */
import type { AsksModels } from '#core';
import {
  type LanguageModel,
  type ModelCallResult,
  type ModelEntry,
  type ModelRegistry,
  type Needs,
  type Prices,
  type ReadyModel,
  rankModels,
  readyModels,
} from '#model';

/** A model, several models in the order in which they are tried, or a registry that ranks them by its measurements. */
export type GivenModels = LanguageModel | ModelEntry | readonly (LanguageModel | ModelEntry)[] | ModelRegistry;

export interface ModelPool {
  /** In the order given. */
  readonly models: readonly ReadyModel[];
  /** The best first. */
  ranked(): readonly ReadyModel[];
  /** Notes how a call of the model with this name went. */
  record(name: string, call: ModelCallResult): void;
}

/**
 * @param prices for models of a list that state none.
 * @throws PilotageError `invalid_config` for a value that is not a model.
 */
export function modelPool(model: GivenModels, prices: Prices | undefined, needs: Needs = {}): ModelPool {
  if (isRegistry(model)) {
    return {
      models: model.models,
      ranked: () => rankModels(model, needs),
      record: (name, call) => model.record(name, call),
    };
  }
  const models = listedModels(model, prices);
  return { models, ranked: () => models, record: () => {} };
}

/** @throws PilotageError `invalid_config` for a value that is not a model. */
export function listedModels(
  model: Exclude<GivenModels, ModelRegistry>,
  prices: Prices | undefined,
): readonly ReadyModel[] {
  const list = Array.isArray(model) ? model : [model as Exclude<typeof model, readonly unknown[]>];
  return readyModels(list, prices === undefined ? {} : { prices });
}

/** For whoever asks these models, and these helpers. Nothing to say of none. */
export function asksModels(
  models: readonly (ReadyModel | undefined)[],
  helpers: readonly (AsksModels | undefined)[] = [],
): AsksModels {
  const names = models.flatMap((model) => (model === undefined || model.prices !== undefined ? [] : [model.name]));
  const unpriced = new Set([...names, ...helpers.flatMap((helper) => helper?.unpriced ?? [])]);
  return unpriced.size === 0 ? {} : { unpriced: Object.freeze([...unpriced]) };
}

export function isRegistry(model: GivenModels): model is ModelRegistry {
  return typeof model === 'object' && model !== null && 'measures' in model && 'models' in model;
}
