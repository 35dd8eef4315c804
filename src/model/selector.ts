/** Which model to ask first, by what it can do and how it has done. */
import type { ReadyModel } from './entry.ts';
import type { ModelMeasures, ModelRegistry } from './registry.ts';

export interface Needs {
  /** `calls`: the request declares tools. `structured`: the answer has a schema. Default: whatever of both a model has. */
  readonly needs?: 'calls' | 'structured';
}

/**
 * A model that lacks what is needed counts as one that fails in a quarter of its calls more: it can do by its text, and
 * beats a model that can but is down.
 */
const WITHOUT = 0.75;

/** The models of the registry, best first; equal models in the order listed. */
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
