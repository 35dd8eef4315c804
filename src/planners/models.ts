/** The models of a planner: a list in a fixed order, or a registry that ranks them by what it has measured; and who decides when they cannot. */
import {
  type AsksModels,
  addUsage,
  type Decision,
  type Delta,
  defined,
  isMove,
  type Move,
  PilotageError,
  type Planner,
  type RunView,
  readUsage,
  type Usage,
} from '#core';
import {
  type BudgetLeft,
  type LanguageModel,
  leftAfter,
  type ModelCallResult,
  type ModelEntry,
  type ModelRegistry,
  type Needs,
  type Prices,
  type ReadyModel,
  rankModels,
  readyModels,
  usageOfError,
} from '#model';

/** What the run has left for the next request and its reply; `undefined`: nothing limits them. @param used what the move has used before. */
export function leftFor({ budget }: Pick<RunView, 'budget'>, used?: Usage): BudgetLeft | undefined {
  const { tokensLeft: tokens, costMicroUsdLeft: costMicroUsd } = budget;
  return tokens === undefined && costMicroUsd === undefined ? undefined : leftAfter({ tokens, costMicroUsd }, used);
}

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

/** For whoever asks these models, and these helpers. */
export function asksModels(
  models: readonly (ReadyModel | undefined)[],
  helpers: readonly (AsksModels | undefined)[] = [],
): AsksModels {
  const names = models.flatMap((model) => (model === undefined || model.prices !== undefined ? [] : [model.name]));
  const unpriced = new Set([...names, ...helpers.flatMap((helper) => helper?.unpriced ?? [])]);
  const modelNamed: AsksModels['modelNamed'] = (name) =>
    models.find((model) => model?.name === name) ??
    helpers.map((helper) => helper?.modelNamed?.(name)).find((model) => model !== undefined);
  return unpriced.size === 0 ? { modelNamed } : { unpriced: Object.freeze([...unpriced]), modelNamed };
}

export function isRegistry(model: GivenModels): model is ModelRegistry {
  return typeof model === 'object' && model !== null && 'measures' in model && 'models' in model;
}

// The fallback: the caller's own planner, once every model has had its tries.

/**
 * The fallback planner's move, marked as its own; the remarks tell why it was asked. What the models have used before counts
 * with what it uses, also when its own models are away.
 */
export async function* askFallback(
  fallback: Planner,
  { remarks = [], usage, decision }: Move,
  view: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  const move = yield* moveOf(fallback, decision, view, signal);
  const used = usedWith(usage, move.usage);
  return {
    ...move,
    ...defined({ usage: used }),
    provenance: { ...move.provenance, fallback: fallback.name },
    remarks: [...remarks, ...(move.remarks ?? [])],
  };
}

/** In a sum, a number that cannot be would be hidden from the runtime, which refuses it. */
function usedWith(before: Usage | undefined, own: Usage | undefined): Usage | undefined {
  if (own === undefined) return before;
  return readUsage(own).wrong === undefined ? addUsage(before, own) : own;
}

async function* moveOf(
  fallback: Planner,
  otherwise: Decision,
  view: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  try {
    const source = fallback.next(view, signal);
    const made = Symbol.asyncIterator in source ? yield* source : await source;
    return isMove(made) ? made : { decision: made };
  } catch (error) {
    signal.throwIfAborted();
    if (!PilotageError.is(error, 'model_unavailable')) throw error;
    const used = usageOfError(error);
    return { decision: otherwise, fault: error.toJSON(), ...defined({ usage: used }) };
  }
}
