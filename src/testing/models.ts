/** Models for tests and benchmarks: one with scripted replies, and one that records another as such a script. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4Warning,
} from '@ai-sdk/provider';
import {
  assertKnownKeys,
  assertOptions,
  captureObject,
  defined,
  describeThrown,
  type GivenJson,
  type JsonObject,
  type OptionShape,
  PilotageError,
  type Usage,
} from '#core';
import { asLanguageModel, type LanguageModel, type StopReason, StreamedContent, usageOf } from '#model';

export interface ScriptedCall {
  /** The id of the call. Default: an id made from the place of the reply and of the call. */
  readonly id?: string;
  readonly tool: string;
  readonly args?: GivenJson;
  /** The arguments as text, which need not be JSON. Used in place of `args`. */
  readonly input?: string;
}

export interface ScriptedReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly ScriptedCall[];
  /** The exact parts of the reply with their provider metadata, in place of text, reasoning and calls. */
  readonly content?: readonly LanguageModelV4Content[];
  /** The finish reason. Default `tool-calls` with calls, otherwise `stop`. */
  readonly finish?: StopReason;
  readonly usage?: Usage;
  /** An error that a plain call throws. For a stream, `errorAt` says where it occurs. */
  readonly error?: unknown;
  /**
   * `part`: an error part in the stream. `read`: reading the stream throws. `call`: there is no stream, the call throws.
   * Default `part`.
   */
  readonly errorAt?: 'part' | 'read' | 'call';
  /** True: the stream stays open without more parts, and a plain call does not return, until the request is aborted. */
  readonly stall?: boolean;
  /** True: the stream ends without a finish part. */
  readonly cutOff?: boolean;
  /** After how many deltas the stream fails, stalls or is cut off. Default: after all of them. */
  readonly afterDeltas?: number;
  readonly warnings?: readonly SharedV4Warning[];
}

export type ScriptedRequest = LanguageModelV4CallOptions;
export type ReplyFunction = (request: ScriptedRequest, index: number) => ScriptedReply;

export interface ScriptedModelOptions {
  /** Whether requests are kept in `calls`. Default true. */
  readonly record?: boolean;
  /** The model's id. Default `scripted`. */
  readonly modelId?: string;
}

const OPTIONS: OptionShape<ScriptedModelOptions> = { record: 'flag?', modelId: 'text?' };
const REPLY: OptionShape<ScriptedReply> = {
  ...({ text: 'any?', reasoning: 'any?', calls: 'any?', content: 'any?', finish: 'any?', usage: 'any?' } as const),
  ...({
    error: 'any?',
    errorAt: 'any?',
    stall: 'any?',
    cutOff: 'any?',
    afterDeltas: 'any?',
    warnings: 'any?',
  } as const),
};
const CALL: OptionShape<ScriptedCall> = { id: 'any?', tool: 'any', args: 'any?', input: 'any?' };
const REPLY_KEYS = Object.keys(REPLY);
export const CALL_KEYS: readonly string[] = Object.keys(CALL);

export interface ScriptedModel extends LanguageModelV4 {
  /** The requests so far, as they came. */
  readonly calls: readonly ScriptedRequest[];
  /** @throws PilotageError `invalid_config` when replies are left over. */
  assertConsumed(): void;
}

/**
 * Replies in the order of the list; a call beyond its end fails with `invalid_config`. A function in place of the
 * list answers every call.
 */
export function scriptedModel(
  script: readonly (ScriptedReply | ReplyFunction)[] | ReplyFunction,
  options: ScriptedModelOptions = {},
): ScriptedModel {
  assertOptions('scriptedModel', options, OPTIONS);
  const { record = true, modelId = 'scripted' } = options;
  const calls: ScriptedRequest[] = [];
  let count = 0;
  // Ready-made, so that a call costs next to nothing in a benchmark.
  const ready =
    typeof script === 'function'
      ? []
      : script.map((reply, index) => (typeof reply === 'function' ? reply : scripted(reply, index)));

  function take(request: ScriptedRequest): Scripted {
    request.abortSignal?.throwIfAborted();
    const index = count;
    count += 1;
    if (record) calls.push(request);
    if (typeof script === 'function') return scripted(script(request, index), index);
    const reply = ready[index];
    if (reply === undefined) {
      throw new PilotageError(
        'invalid_config',
        `The script has ${ready.length} replies, and call ${index + 1} was made. Add a reply, or find out who calls.`,
      );
    }
    return typeof reply === 'function' ? scripted(reply(request, index), index) : reply;
  }

  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId,
    supportedUrls: {},
    calls,
    assertConsumed() {
      if (typeof script === 'function' || count >= script.length) return;
      throw new PilotageError(
        'invalid_config',
        `${script.length - count} of ${script.length} replies were not asked for.`,
      );
    },
    async doGenerate(request) {
      const reply = take(request);
      if (reply.failed) throw reply.script.error;
      if (reply.script.stall === true) return await untilAborted(request.abortSignal);
      return reply.result;
    },
    async doStream(request) {
      const reply = take(request);
      if (reply.failed && reply.script.errorAt === 'call') throw reply.script.error;
      return { stream: streamOf(reply, request.abortSignal) };
    },
  };
}

interface Scripted {
  readonly script: ScriptedReply;
  readonly result: LanguageModelV4GenerateResult;
  readonly failed: boolean;
}

function scripted(reply: ScriptedReply, index: number): Scripted {
  assertKnownKeys(`The reply ${index} of the script`, reply, REPLY_KEYS);
  for (const call of reply.calls ?? []) assertKnownKeys(`A call of the reply ${index} of the script`, call, CALL_KEYS);
  const content = contentOf(reply, index);
  const finish = reply.finish ?? (content.some((part) => part.type === 'tool-call') ? 'tool-calls' : 'stop');
  const result = {
    content,
    finishReason: finishReasonOf(finish),
    usage: modelUsage(reply.usage),
    warnings: [...(reply.warnings ?? [])],
  };
  return { script: reply, result, failed: 'error' in reply };
}

/** As a package tells it: of a pause only the provider's own word says that it is one. */
function finishReasonOf(finish: StopReason): LanguageModelV4FinishReason {
  return finish === 'pause' ? { unified: 'stop', raw: PAUSE } : { unified: finish, raw: undefined };
}

const PAUSE = 'pause_turn';

function contentOf({ text, reasoning, calls = [], content }: ScriptedReply, index: number): LanguageModelV4Content[] {
  if (content !== undefined) return [...content];
  const parts: LanguageModelV4Content[] = [];
  if (reasoning !== undefined) parts.push({ type: 'reasoning', text: reasoning });
  if (text !== undefined) parts.push({ type: 'text', text });
  for (const [place, { id, tool, args = {}, input }] of calls.entries()) {
    parts.push({
      type: 'tool-call',
      toolCallId: id ?? `call_${index}_${place}`,
      toolName: tool,
      input: input ?? JSON.stringify(args),
    });
  }
  return parts;
}

function modelUsage(usage: Usage = {}): LanguageModelV4Usage {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens } = usage;
  return {
    inputTokens: {
      total: inputTokens,
      noCache: undefined,
      cacheRead: cachedInputTokens,
      cacheWrite: cacheWriteInputTokens,
    },
    outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
  };
}

/** Without the ending that a stall, a cut or a thrown error makes. */
function partsOf({ script, result, failed }: Scripted): LanguageModelV4StreamPart[] {
  const { errorAt, stall = false, cutOff = false, afterDeltas, error } = script;
  const whole = result.content.flatMap((part, index) => piecesOf(part, String(index)));
  const parts: LanguageModelV4StreamPart[] = [
    { type: 'stream-start', warnings: result.warnings },
    ...(afterDeltas === undefined ? whole : upToDelta(whole, afterDeltas)),
  ];
  if (failed && errorAt !== 'read') parts.push({ type: 'error', error });
  else if (!failed && !stall && !cutOff) {
    parts.push({ type: 'finish', finishReason: result.finishReason, usage: result.usage });
  }
  return parts;
}

function upToDelta(parts: readonly LanguageModelV4StreamPart[], count: number): LanguageModelV4StreamPart[] {
  let deltas = 0;
  const end = parts.findIndex((part) => {
    if (part.type.endsWith('-delta')) deltas += 1;
    return deltas > count;
  });
  return parts.slice(0, end === -1 ? parts.length : end);
}

/** Metadata comes at the end of a block, as providers send signatures. */
function piecesOf(part: LanguageModelV4Content, id: string): LanguageModelV4StreamPart[] {
  if (part.type === 'text' || part.type === 'reasoning') {
    const { type, text, providerMetadata } = part;
    return [
      { type: `${type}-start`, id },
      ...split(text).map((delta) => ({ type: `${type}-delta` as const, id, delta })),
      { type: `${type}-end`, id, ...defined({ providerMetadata }) },
    ];
  }
  if (part.type !== 'tool-call') return [part];
  const { toolCallId, toolName, input } = part;
  return [
    { type: 'tool-input-start', id: toolCallId, toolName },
    ...split(input).map((delta) => ({ type: 'tool-input-delta' as const, id: toolCallId, delta })),
    { type: 'tool-input-end', id: toolCallId },
    part,
  ];
}

/** Pieces of at most 12 code points. */
export function split(text: string): string[] {
  return text.match(/[\s\S]{1,12}/gu) ?? [];
}

function streamOf(reply: Scripted, signal: AbortSignal | undefined): LanguageModelV4StreamResult['stream'] {
  const { failed, script } = reply;
  const parts = partsOf(reply);
  let next = 0;
  return new ReadableStream({
    async pull(controller) {
      const part = parts[next];
      next += 1;
      if (part !== undefined) controller.enqueue(part);
      else if (failed && script.errorAt === 'read') throw script.error;
      else if (script.stall === true) await untilAborted(signal);
      else controller.close();
    },
  });
}

/** @throws the signal's reason; without a signal it never ends. */
function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

export interface RecordedCall {
  /** The request without its headers, which may hold secrets, and without the abort signal. */
  readonly request: JsonObject;
  readonly reply: ScriptedReply;
}

export interface RecordingModel extends LanguageModelV4 {
  /** The calls in the order in which they ended. A stream that its consumer left is not recorded. */
  readonly calls: readonly RecordedCall[];
}

/**
 * Wraps a model and records its requests and replies as JSON, as a script for `scriptedModel`.
 * @throws PilotageError `invalid_config` for a value that is not a model.
 */
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
  return { content, finish: finishReason.raw === PAUSE ? 'pause' : finishReason.unified, ...defined({ usage: used }) };
}
