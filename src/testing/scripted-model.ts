/** A model that says what it was told to say: the tests' and benchmarks' stand-in for a real one. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { PilotageError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import type { Usage } from '../core/step.ts';
import type { StopReason } from '../model/reply.ts';

export interface ScriptedCall {
  /** Default: made from the place of the reply and of the call. */
  readonly id?: string;
  readonly tool: string;
  readonly args?: Json;
  /** The arguments as text, which need not be JSON. Used in place of `args`. */
  readonly input?: string;
}

export interface ScriptedReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly ScriptedCall[];
  /** The exact parts, with their provider metadata; in place of text, reasoning and calls. */
  readonly content?: readonly LanguageModelV4Content[];
  /** Default `tool-calls` with calls, else `stop`. */
  readonly finish?: StopReason;
  readonly usage?: Usage;
  /** Thrown; in a stream an error part after the content. */
  readonly error?: unknown;
}

export type ScriptedRequest = LanguageModelV4CallOptions;
export type ReplyFunction = (request: ScriptedRequest, index: number) => ScriptedReply;

export interface ScriptedModelOptions {
  /** Keep the requests in `calls`. Default true. */
  readonly record?: boolean;
  /** Default `scripted`. */
  readonly modelId?: string;
}

export interface ScriptedModel extends LanguageModelV4 {
  /** The requests so far, as they came. */
  readonly calls: readonly ScriptedRequest[];
  /** @throws PilotageError `invalid_config` when replies are left over. */
  assertConsumed(): void;
}

/**
 * Replies in the order of the list; a call beyond its end fails with `invalid_config`. One function in place of the
 * list answers every call.
 */
export function scriptedModel(
  script: readonly (ScriptedReply | ReplyFunction)[] | ReplyFunction,
  { record = true, modelId = 'scripted' }: ScriptedModelOptions = {},
): ScriptedModel {
  const calls: ScriptedRequest[] = [];
  let count = 0;
  // Ready-made, so that a call costs next to nothing in a benchmark.
  const ready = typeof script === 'function' ? [] : script.map((reply, index) => readyReply(reply, index));

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
      if (reply.failed) throw reply.error;
      return reply.result;
    },
    async doStream(request) {
      return { stream: streamOf(partsOf(take(request))) };
    },
  };
}

interface Scripted {
  readonly result: LanguageModelV4GenerateResult;
  readonly failed: boolean;
  readonly error?: unknown;
}

function readyReply(reply: ScriptedReply | ReplyFunction, index: number): Scripted | ReplyFunction {
  return typeof reply === 'function' ? reply : scripted(reply, index);
}

function scripted(reply: ScriptedReply, index: number): Scripted {
  const content = contentOf(reply, index);
  const unified = reply.finish ?? (content.some((part) => part.type === 'tool-call') ? 'tool-calls' : 'stop');
  const result = {
    content,
    finishReason: { unified, raw: undefined },
    usage: modelUsage(reply.usage),
    warnings: [],
  };
  return 'error' in reply ? { result, failed: true, error: reply.error } : { result, failed: false };
}

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

function modelUsage({ inputTokens, outputTokens, cachedInputTokens }: Usage = {}): LanguageModelV4Usage {
  return {
    inputTokens: { total: inputTokens, noCache: undefined, cacheRead: cachedInputTokens, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
  };
}

function partsOf({ result, failed, error }: Scripted): LanguageModelV4StreamPart[] {
  const parts: LanguageModelV4StreamPart[] = [{ type: 'stream-start', warnings: [] }];
  for (const [index, part] of result.content.entries()) parts.push(...piecesOf(part, String(index)));
  if (failed) parts.push({ type: 'error', error });
  else parts.push({ type: 'finish', finishReason: result.finishReason, usage: result.usage });
  return parts;
}

/** Metadata comes at the end of a block, as providers send signatures. */
function piecesOf(part: LanguageModelV4Content, id: string): LanguageModelV4StreamPart[] {
  if (part.type === 'text' || part.type === 'reasoning') {
    const { type, text, providerMetadata } = part;
    return [
      { type: `${type}-start`, id },
      ...split(text).map((delta) => ({ type: `${type}-delta` as const, id, delta })),
      { type: `${type}-end`, id, ...(providerMetadata === undefined ? {} : { providerMetadata }) },
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

function streamOf(parts: readonly LanguageModelV4StreamPart[]): LanguageModelV4StreamResult['stream'] {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const part = parts[next];
      next += 1;
      if (part === undefined) controller.close();
      else controller.enqueue(part);
    },
  });
}
