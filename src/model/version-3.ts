/** Wraps a model of version 3 as one of version 4. Of what is used here, only the data of files has another shape. */
import type {
  LanguageModelV3,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
} from '@ai-sdk/provider';

export function asVersion4(model: LanguageModelV3): LanguageModelV4 {
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
