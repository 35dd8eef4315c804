/** The models that are supported: every AI SDK language model. Types only, so that no vendor's code is loaded. */
import type {
  LanguageModelV3,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
} from '@ai-sdk/provider';
import { PilotageError } from '#core';

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

// Wraps a model of version 3 as one of version 4. Of what is used here, only the data of files has another shape.

function asVersion4(model: LanguageModelV3): LanguageModelV4 {
  // The rest is the same, so that its results are taken as they are.
  const same = model as unknown as LanguageModelV4;
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    get supportedUrls() {
      return model.supportedUrls;
    },
    doGenerate: (options) => same.doGenerate(withPlainFiles(options)),
    doStream: (options) => same.doStream(withPlainFiles(options)),
  };
}

function withPlainFiles(options: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  if (!options.prompt.some(hasFile)) return options;
  return { ...options, prompt: options.prompt.map((message) => (hasFile(message) ? plainFiles(message) : message)) };
}

function hasFile({ content }: LanguageModelV4Message): boolean {
  return typeof content !== 'string' && content.some((part) => part.type === 'file');
}

function plainFiles(message: LanguageModelV4Message): LanguageModelV4Message {
  if (typeof message.content === 'string') return message;
  const content = message.content.map((part) => (part.type === 'file' ? { ...part, data: plainData(part) } : part));
  return { ...message, content } as unknown as LanguageModelV4Message;
}

/** Version 3 takes bytes, base64 text or a URL. A reference is a provider's own, and none of version 3 has made one. */
function plainData({ data }: LanguageModelV4FilePart): unknown {
  switch (data.type) {
    case 'data':
      return data.data;
    case 'url':
      return data.url;
    case 'text':
      return new TextEncoder().encode(data.text);
    case 'reference':
      return data.reference;
    default:
      return data satisfies never;
  }
}
