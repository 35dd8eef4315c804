/** Wraps a model and records its requests and replies as JSON, as a script for `scriptedModel`. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { captureObject, defined, describeThrown, type JsonObject } from '#core';
import { asLanguageModel, type LanguageModel, StreamedContent, usageOf } from '#model';
import type { ScriptedReply } from './scripted-model.ts';

export interface RecordedCall {
  /** The request without its headers, which may hold secrets, and without the abort signal. */
  readonly request: JsonObject;
  readonly reply: ScriptedReply;
}

export interface RecordingModel extends LanguageModelV4 {
  /** The calls in the order in which they ended. A stream that its consumer left is not recorded. */
  readonly calls: readonly RecordedCall[];
}

/** @throws PilotageError `invalid_config` for a value that is not a model. */
export function recordingModel(given: LanguageModel): RecordingModel {
  const model = asLanguageModel(given);
  const calls: RecordedCall[] = [];
  const record = (request: JsonObject, reply: unknown): void => {
    calls.push({ request, reply: captureObject(reply, 'reply').json as ScriptedReply });
  };

  async function attempt<T>(request: JsonObject, call: () => PromiseLike<T>): Promise<T> {
    try {
      return await call();
    } catch (thrown) {
      record(request, { error: describeThrown(thrown) });
      throw thrown;
    }
  }

  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    calls,
    async doGenerate(options) {
      const request = requestOf(options);
      const result = await attempt(request, () => model.doGenerate(options));
      record(request, replyOf(result.content, result.finishReason, result.usage));
      return result;
    },
    async doStream(options) {
      const request = requestOf(options);
      const result = await attempt(request, () => model.doStream(options));
      const tap = tapOf((reply) => record(request, reply));
      return { ...result, stream: result.stream.pipeThrough(tap) };
    },
  };
}

function tapOf(done: (reply: unknown) => void): TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart> {
  const streamed = new StreamedContent();
  let error: { error: string } | undefined;
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'error') error ??= { error: describeThrown(part.error) };
      else streamed.add(part);
      controller.enqueue(part);
    },
    flush() {
      done({ ...replyOf(streamed.content, streamed.finishReason, streamed.usage), ...error });
    },
  });
}

function requestOf({ abortSignal: _, headers: __, ...rest }: LanguageModelV4CallOptions): JsonObject {
  return captureObject(rest, 'request').json;
}

function replyOf(
  content: readonly LanguageModelV4Content[],
  finishReason: LanguageModelV4FinishReason,
  usage: LanguageModelV4Usage | undefined,
): ScriptedReply {
  const { usage: used } = usageOf(usage);
  return { content, finish: finishReason.unified, ...defined({ usage: used }) };
}
