/** The models of a planner: a list in a fixed order, or a registry that ranks them by what it has measured. */
import { type ReadyModel, readyModels } from '../../model/entry.ts';
import type { ModelCallResult, ModelRegistry } from '../../model/registry.ts';
import { rankModels } from '../../model/selector.ts';
import type { ReactOptions } from './options.ts';

export interface ModelPool {
  /** The best first. */
  ranked(): readonly ReadyModel[];
  /** Notes how a call of the model with this name went. */
  record(name: string, call: ModelCallResult): void;
}

/** @throws PilotageError `invalid_config` for what is no model. */
export function modelPool({ model, prices }: ReactOptions): ModelPool {
  if (isRegistry(model)) {
    return {
      ranked: () => rankModels(model, { needs: 'calls' }),
      record: (name, call) => model.record(name, call),
    };
  }
  const models = readyModels(
    Array.isArray(model) ? model : [model as Exclude<typeof model, readonly unknown[]>],
    prices === undefined ? {} : { prices },
  );
  return { ranked: () => models, record: () => {} };
}

function isRegistry(model: ReactOptions['model']): model is ModelRegistry {
  return typeof model === 'object' && model !== null && 'measures' in model && 'models' in model;
}
