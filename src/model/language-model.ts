/** The models that are supported: every AI SDK language model. Types only, so that no vendor's code is loaded. */
import type { LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider';
import { PilotageError } from '#core';
import { asVersion4 } from './version-3.ts';

export type LanguageModel = LanguageModelV4 | LanguageModelV3;

/**
 * The model in version 4: the model itself, or a wrapper of a model of version 3.
 * @throws PilotageError `invalid_config` for anything else, saying what to pass.
 */
export function asLanguageModel(model: LanguageModel): LanguageModelV4 {
  const given: unknown = model;
  if (typeof given === 'string') {
    throw refusal(`${JSON.stringify(given)} is the id of a model, not a model`);
  }
  if (typeof given !== 'object' || given === null) {
    throw refusal(
      given === undefined ? 'No model was given' : `A model cannot be ${given === null ? 'null' : typeof given}`,
    );
  }
  const { specificationVersion, doGenerate, doStream } = given as Partial<Record<keyof LanguageModelV4, unknown>>;
  if (specificationVersion !== 'v4' && specificationVersion !== 'v3') {
    throw refusal(
      specificationVersion === undefined
        ? 'The object given as model has no specificationVersion'
        : `The model has specification ${JSON.stringify(specificationVersion)}; v3 and v4 are understood, so use a newer version of its provider package`,
    );
  }
  if (typeof doGenerate !== 'function' || typeof doStream !== 'function') {
    throw refusal('The object given as model lacks doGenerate or doStream');
  }
  return specificationVersion === 'v3' ? asVersion4(given as LanguageModelV3) : (given as LanguageModelV4);
}

function refusal(what: string): PilotageError {
  return new PilotageError(
    'invalid_config',
    `${what}. Pass an AI SDK language model, such as openai('gpt-5.2') of @ai-sdk/openai, or openaiCompatible({ baseUrl, model }).`,
  );
}
