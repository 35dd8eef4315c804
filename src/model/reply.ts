/** A reply of a model, given in one piece or put together from the parts of a stream: both give the same. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Reasoning,
  LanguageModelV4StreamPart,
  LanguageModelV4Text,
  LanguageModelV4ToolApprovalRequest,
  LanguageModelV4ToolCall,
  LanguageModelV4ToolResult,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { fieldOf, type InputFile, type Json, type Source, type SpokenDelta, systemClock, type Usage } from '#core';
import { BrokenReply } from './failure.ts';
import { providerStateOf, urlOf } from './provider-state.ts';
import { type ModelRefusal, meansRefusal, refusalIn } from './refusal.ts';
import { sourcesIn } from './sources.ts';
import { usageOf } from './usage.ts';
import { type Pace, paceOf, type Watch } from './watch.ts';

/**
 * Why the model stopped: `content-filter` is also a refusal; `interrupted` is a stream that just ended; `pause` is a reply that its provider
 * goes on with when it gets it back.
 */
export type StopReason = LanguageModelV4FinishReason['unified'] | 'pause';

export interface ModelCall {
  /** The id as the provider gave it, which may be empty, and may not be unique. */
  readonly callId: string;
  readonly tool: string;
  /** The arguments as text. It should be JSON, but is not checked. */
  readonly input: string;
  /** True: the provider would carry out this call itself, and asks whether it may. `callId` is the id of its question. */
  readonly asksLeave?: true;
}

export interface Reply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ModelCall[];
  readonly finish: StopReason;
  /** Why it stopped, in the provider's own word; absent when that is the word of `finish`. */
  readonly providerFinish?: string;
  readonly modelId: string;
  /** What was said of why the model, or its provider, did not answer; set for a `content-filter`. */
  readonly refusal?: ModelRefusal;
  /** What the reply was written from, as the provider says; absent when it says nothing. */
  readonly sources?: readonly Source[];
  /** True: the reply was cut off since the model's window was full. */
  readonly windowFull?: true;
  /** The usage that the provider reported, as far as it can be true. */
  readonly usage?: Usage;
  /** The part of the reported usage that cannot be true. */
  readonly refusedUsage?: string;
  /** Warnings of the provider about what it could not do as asked; absent when there are none. */
  readonly warnings?: readonly SharedV4Warning[];
  /** Files that the model has made, in their order; absent when there are none. */
  readonly files?: readonly InputFile[];
  /** The parts of the reply (a `ProviderState`), when its text and calls alone do not make the same message. */
  readonly providerState?: Json;
}

/** What a model gave in one piece. @throws BrokenReply for a reply that is too large. */
export function generatedReply(model: LanguageModelV4, generated: LanguageModelV4GenerateResult): Reply {
  const { response, finishReason } = generated;
  const why = finishReason.raw === 'incomplete' ? whyIncomplete(response?.body) : undefined;
  const given = why === undefined ? generated : { ...generated, finishReason: { unified: 'other' as const, raw: why } };
  return replyOf(given, response?.modelId ?? model.modelId, model.provider);
}

/** Why a response of that status is not whole: xAI's package tells it of streams alone, and has another word when there are calls. */
function whyIncomplete(body: unknown): string | undefined {
  const reason = fieldOf(fieldOf(body, 'incomplete_details'), 'reason');
  return typeof reason === 'string' ? reason : undefined;
}

export interface StreamOptions {
  /** A limit on each wait for the provider. */
  readonly watch?: Watch;
  /** Shared with the other streams of the process. Default: that of the system's clock. */
  readonly pace?: Pace;
  /** What came so far, to be looked at after a failure. */
  readonly streamed?: StreamedContent;
}

/**
 * Yields what the model says while it says it. The stream is cancelled when the consumer stops.
 * @throws the error of the stream, or of its first error part, as it is.
 */
export async function* streamReply(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  { watch, pace = paceOf(systemClock), streamed = new StreamedContent() }: StreamOptions = {},
): AsyncGenerator<SpokenDelta, Reply> {
  const asked = model.doStream(options);
  const { stream } = await (watch === undefined ? asked : watch.until(asked, (late) => abandon(late.stream)));
  streamed.began = true;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await (watch === undefined ? reader.read() : watch.until(reader.read()));
      if (done) break;
      const said = streamed.add(value);
      if (said !== undefined && said.text.length > PIECE_CHARS) {
        yield* inPieces(said, pace);
        continue;
      }
      const turn = pace.take(said?.text.length ?? 0);
      if (turn !== undefined) await turn;
      if (said !== undefined) yield said;
    }
  } finally {
    abandon(reader);
  }
  return streamedReply(model, streamed);
}

/** More than that at once is given on in parts, between which others have their turn. */
const PIECE_CHARS = 65_536;

async function* inPieces(said: Prose, pace: Pace): AsyncGenerator<Prose, void> {
  const { text } = said;
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE_CHARS, text.length);
    // The two halves of a letter stay together.
    const last = text.charCodeAt(to - 1);
    if (last >= 0xd800 && last < 0xdc00) to = Math.min(to + 1, text.length);
    await pace.take(to - from);
    yield { ...said, text: text.slice(from, to) };
    from = to;
  }
}

/** The reply as far as it came. */
export function streamedReply(model: LanguageModelV4, streamed: StreamedContent): Reply {
  return replyOf(streamed, streamed.modelId ?? model.modelId, model.provider);
}

/** Does nothing to a stream that is at its end. */
function abandon(stream: Pick<ReadableStream, 'cancel'>): void {
  // A stream that cannot even be cancelled is nothing that anybody still waits for.
  stream.cancel().catch(() => undefined);
}

interface Given {
  readonly content: readonly LanguageModelV4Content[];
  readonly finishReason: LanguageModelV4FinishReason;
  readonly usage: LanguageModelV4Usage | undefined;
  readonly warnings?: readonly SharedV4Warning[] | undefined;
  readonly providerMetadata?: SharedV4ProviderMetadata | undefined;
}

function replyOf(given: Given, modelId: string, provider: string): Reply {
  const { content, finishReason, usage: modelUsage, warnings } = given;
  let text = '';
  let reasoning = '';
  const calls: ModelCall[] = [];
  assertReplySize(content.reduce((chars, part) => chars + charsOf(part), 0));
  assertReplySize(
    content.reduce((chars, part) => chars + resultChars(part), 0),
    MAX_RESULT_CHARS,
  );
  for (const part of content) {
    // A package that has no place for the words of a refusal gives a text without any.
    if (part.type === 'text') text += part.text ?? '';
    else if (part.type === 'reasoning') reasoning += part.text;
    else if (part.type === 'tool-call' && part.providerExecuted !== true) {
      calls.push({ callId: part.toolCallId, tool: part.toolName, input: part.input });
    } else if (part.type === 'tool-approval-request') calls.push(askedCall(part, content));
  }
  // The session does not keep what stands at a URL: whoever reads the reply gets the URL.
  if (text.trim() === '' && calls.length === 0) text = urlsIn(content) || text;
  const finish = stopReasonOf(finishReason);
  const reply: { -readonly [K in keyof Reply]: Reply[K] } = { text, reasoning, calls, finish, modelId };
  if (finishReason.raw === 'model_context_window_exceeded') reply.windowFull = true;
  if (finishReason.raw !== undefined && finishReason.raw !== finish) reply.providerFinish = finishReason.raw;
  if (finish === 'content-filter') reply.refusal = refusalIn(finishReason.raw, given.providerMetadata);
  const sources = sourcesIn(content);
  if (sources.length > 0) reply.sources = sources;
  const { usage, refused } = usageOf(modelUsage);
  if (usage !== undefined) reply.usage = usage;
  if (refused !== undefined) reply.refusedUsage = refused;
  if (Array.isArray(warnings) && warnings.length > 0) reply.warnings = warnings;
  const files: InputFile[] = [];
  const providerState = providerStateOf(content, provider, finish === 'pause', files);
  if (files.length > 0) reply.files = files;
  if (providerState !== undefined) reply.providerState = providerState;
  return reply;
}

/** The call for which the provider asks leave stands before its question. */
function askedCall(
  { approvalId: callId, toolCallId }: LanguageModelV4ToolApprovalRequest,
  content: readonly LanguageModelV4Content[],
): ModelCall {
  const call = content.find((part) => part.type === 'tool-call' && part.toolCallId === toolCallId);
  const { toolName: tool, input } = call?.type === 'tool-call' ? call : { toolName: '', input: '' };
  return { callId, tool, input, asksLeave: true };
}

function urlsIn(content: readonly LanguageModelV4Content[]): string {
  const urls = content.flatMap((part) => (part.type === 'file' ? (urlOf(part) ?? []) : []));
  return urls.join('\n');
}

function charsOf(part: LanguageModelV4Content): number {
  if (part.type === 'text' || part.type === 'reasoning') return part.text?.length ?? 0;
  return part.type === 'tool-call' ? part.input.length : 0;
}

function resultChars(part: LanguageModelV4Content): number {
  return part.type === 'tool-result' ? JSON.stringify(part.result ?? null).length : 0;
}

/** Words for the limit of the output, as far as packages leave them without a meaning: xAI's of a reply in one piece, and those that a gateway passes through. */
const CUTTING: ReadonlySet<string | undefined> = new Set([
  'incomplete',
  'max_tokens',
  'max_output_tokens',
  'MAX_TOKENS',
  'model_length',
  'ERROR_LIMIT',
]);

/** Words for a reply that its server has not brought to its end, as far as packages leave them without a meaning. */
const BROKEN: ReadonlySet<string | undefined> = new Set([
  'error', // OpenRouter
  'abort', // vLLM, SGLang
  'network_error', // Zhipu
  'insufficient_system_resource', // DeepSeek
  'TIMEOUT', // Cohere
  'malformed_model_output', // Bedrock
  'malformed_tool_use',
  'MALFORMED_FUNCTION_CALL', // Google
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
]);

/** Gateways that pass a provider's word through leave it without a meaning of its own. */
function stopReasonOf({ unified, raw }: LanguageModelV4FinishReason): StopReason {
  // Packages say `stop` of a pause, for nothing is wrong with it.
  if (raw === 'pause_turn') return 'pause';
  if (unified !== 'other') return raw === 'refusal' ? 'content-filter' : unified;
  if (CUTTING.has(raw)) return 'length';
  if (BROKEN.has(raw)) return 'error';
  return meansRefusal(raw) ? 'content-filter' : unified;
}

/** The most characters of one reply: more than any model gives at once, and few enough to be read without keeping others waiting. */
const MAX_REPLY_CHARS = 2_000_000;

/** The same of what the provider's own tools gave, such as pages and documents, which the model did not write. */
const MAX_RESULT_CHARS = 32_000_000;

/** @throws BrokenReply when a reply has more characters than are read. */
function assertReplySize(chars: number, most: number = MAX_REPLY_CHARS): void {
  if (chars <= most) return;
  const message = `The model went on after ${most} characters, and was broken off.`;
  throw new BrokenReply('model_reply_too_large', message);
}

/** What of a part may be shown. */
type Prose = Exclude<SpokenDelta, { type: 'reset' }>;

type ProseContent = LanguageModelV4Text | LanguageModelV4Reasoning;

/** Puts the parts of a stream together to the content that a plain call would have given. */
export class StreamedContent {
  /** The parts of the content, in the order in which they began. */
  readonly content: LanguageModelV4Content[] = [];
  /** A stream that ends without a finish part was interrupted. */
  finishReason: LanguageModelV4FinishReason = { unified: 'interrupted', raw: undefined };
  providerMetadata: SharedV4ProviderMetadata | undefined;
  usage: LanguageModelV4Usage | undefined;
  modelId: string | undefined;
  warnings: readonly SharedV4Warning[] = [];
  /** The provider took the request: what fails from now on fails inside the stream. */
  began = false;
  /** The finish part came: the reply is whole. */
  finished = false;
  readonly #prose = new Map<string, ProseContent>();
  #chars = 0;
  readonly #inputs = new Map<string, LanguageModelV4ToolCall>();

  /**
   * Returns what a listener may be shown of the part.
   * @throws the error of an error part, or a BrokenReply when the reply is too long.
   */
  add(part: LanguageModelV4StreamPart): Prose | undefined {
    if ('delta' in part) this.#count(part.delta);
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        return this.#addProse('text', part);
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#addProse('reasoning', part);
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-call':
        return this.#addCall(part);
      case 'custom':
      case 'tool-approval-request':
      case 'source':
      case 'file':
      case 'reasoning-file':
        this.content.push(part);
        return undefined;
      case 'tool-result':
        this.#addResult(part);
        return undefined;
      case 'response-metadata':
        this.modelId = part.modelId ?? this.modelId;
        return undefined;
      case 'stream-start':
        this.warnings = part.warnings;
        return undefined;
      case 'finish':
        this.finished = true;
        this.finishReason = part.finishReason;
        this.providerMetadata = part.providerMetadata;
        this.usage = part.usage;
        return undefined;
      case 'error':
        throw part.error;
      default:
        return undefined; // raw chunks and what providers add later
    }
  }

  #count(delta: string | undefined): void {
    this.#chars += delta?.length ?? 0;
    assertReplySize(this.#chars);
  }

  #addProse(
    type: ProseContent['type'],
    part: Pick<LanguageModelV4Text, 'providerMetadata' | 'citations'> & { type: string; id: string; delta?: string },
  ): Prose | undefined {
    const key = `${type}:${part.id}`;
    // The same id may begin a second block.
    const begun = part.type === `${type}-start` ? undefined : this.#prose.get(key);
    const prose = begun ?? this.#begin(key, { type, text: '' });
    // The last metadata counts: a signature comes at the end of the block that it signs.
    if (part.providerMetadata !== undefined) prose.providerMetadata = part.providerMetadata;
    if (part.citations !== undefined && prose.type === 'text') prose.citations = part.citations;
    if (part.delta === undefined || part.delta === '') return undefined;
    prose.text += part.delta;
    return { type, text: part.delta };
  }

  #begin(key: string, prose: ProseContent): ProseContent {
    this.#prose.set(key, prose);
    this.content.push(prose);
    return prose;
  }

  /** What a provider's own tool gave. Each preview takes the place of the one before it. */
  #addResult(part: LanguageModelV4ToolResult): void {
    const before = this.content.findIndex(
      (each) => each.type === 'tool-result' && each.toolCallId === part.toolCallId && each.preliminary === true,
    );
    if (before === -1) this.content.push(part);
    else this.content[before] = part;
  }

  #addCall(
    part: LanguageModelV4StreamPart & { type: 'tool-input-start' | 'tool-input-delta' | 'tool-call' },
  ): Prose | undefined {
    if (part.type === 'tool-input-start') {
      const { id, toolName, providerExecuted = false } = part;
      const call: LanguageModelV4ToolCall = {
        type: 'tool-call',
        toolCallId: id,
        toolName,
        input: '',
        providerExecuted,
      };
      this.#inputs.set(id, call);
      this.content.push(call);
      return shownInput(call, '');
    }
    if (part.type === 'tool-input-delta') {
      const call = this.#inputs.get(part.id);
      if (call === undefined) return undefined;
      call.input += part.delta;
      return part.delta === '' ? undefined : shownInput(call, part.delta);
    }
    // The whole call takes the place of its pieces; pieces that never became a whole stay, cut off.
    const begun = this.#inputs.get(part.toolCallId);
    if (begun === undefined) this.content.push(part);
    else this.content[this.content.indexOf(begun)] = part;
    this.#inputs.delete(part.toolCallId);
    return undefined;
  }
}

/** What a provider does itself does not count as a call of the run. */
function shownInput({ toolCallId: callId, toolName: tool, providerExecuted }: LanguageModelV4ToolCall, text: string) {
  return providerExecuted === true ? undefined : { type: 'input' as const, callId, tool, text };
}
