/** A call of a model, plain or streamed: both give the same reply. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Usage,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { type Json, type SpokenDelta, systemClock, type Usage } from '#core';
import { type Pace, paceOf } from './pace.ts';
import { providerStateOf } from './provider-state.ts';
import { assertReplySize, type Prose, StreamedContent } from './streamed-content.ts';
import { usageOf } from './usage.ts';
import type { Watch } from './watch.ts';

/** Why the model stopped: `content-filter` is also a refusal; `interrupted` is a stream that just ended. */
export type StopReason = LanguageModelV4FinishReason['unified'];

export interface ModelCall {
  /** The id as the provider gave it, which may be empty, and may not be unique. */
  readonly callId: string;
  readonly tool: string;
  /** The arguments as text. It should be JSON, but is not checked. */
  readonly input: string;
}

export interface Reply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ModelCall[];
  readonly finish: StopReason;
  readonly modelId: string;
  /** The usage that the provider reported, as far as it can be true. */
  readonly usage?: Usage;
  /** The part of the reported usage that cannot be true. */
  readonly refusedUsage?: string;
  /** Warnings of the provider about what it could not do as asked; absent when there are none. */
  readonly warnings?: readonly SharedV4Warning[];
  /** Provider data that must be sent back with the reply; absent when nothing is opaque. */
  readonly providerState?: Json;
}

/** What a model gave in one piece. @throws BrokenReply for a reply that is too large. */
export function generatedReply(model: LanguageModelV4, generated: LanguageModelV4GenerateResult): Reply {
  const { content, finishReason, usage, response, warnings } = generated;
  return replyOf(content, finishReason, usage, warnings, response?.modelId ?? model.modelId);
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

async function* inPieces({ type, text }: Prose, pace: Pace): AsyncGenerator<Prose, void> {
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE_CHARS, text.length);
    // The two halves of a letter stay together.
    const last = text.charCodeAt(to - 1);
    if (last >= 0xd800 && last < 0xdc00) to = Math.min(to + 1, text.length);
    await pace.take(to - from);
    yield { type, text: text.slice(from, to) };
    from = to;
  }
}

/** The reply as far as it came. */
export function streamedReply(model: LanguageModelV4, streamed: StreamedContent): Reply {
  const { content, finishReason, usage, warnings, modelId = model.modelId } = streamed;
  return replyOf(content, finishReason, usage, warnings, modelId);
}

/** Does nothing to a stream that is at its end. */
function abandon(stream: Pick<ReadableStream, 'cancel'>): void {
  // A stream that cannot even be cancelled is nothing that anybody still waits for.
  stream.cancel().catch(() => undefined);
}

function replyOf(
  content: readonly LanguageModelV4Content[],
  finishReason: LanguageModelV4FinishReason,
  modelUsage: LanguageModelV4Usage | undefined,
  warnings: readonly SharedV4Warning[] | undefined,
  modelId: string,
): Reply {
  let text = '';
  let reasoning = '';
  const calls: ModelCall[] = [];
  assertReplySize(content.reduce((chars, part) => chars + charsOf(part), 0));
  for (const part of content) {
    if (part.type === 'text') text += part.text;
    else if (part.type === 'reasoning') reasoning += part.text;
    else if (part.type === 'tool-call' && part.providerExecuted !== true) {
      calls.push({ callId: part.toolCallId, tool: part.toolName, input: part.input });
    }
  }
  const finish = stopReasonOf(finishReason);
  const reply: { -readonly [K in keyof Reply]: Reply[K] } = { text, reasoning, calls, finish, modelId };
  const { usage, refused } = usageOf(modelUsage);
  if (usage !== undefined) reply.usage = usage;
  if (refused !== undefined) reply.refusedUsage = refused;
  if (warnings !== undefined && warnings.length > 0) reply.warnings = warnings;
  const providerState = providerStateOf(content);
  if (providerState !== undefined) reply.providerState = providerState;
  return reply;
}

function charsOf(part: LanguageModelV4Content): number {
  if (part.type === 'text' || part.type === 'reasoning') return part.text.length;
  return part.type === 'tool-call' ? part.input.length : 0;
}

/** Gateways that pass a provider's word through leave it without a meaning of its own. */
function stopReasonOf({ unified, raw }: LanguageModelV4FinishReason): StopReason {
  return raw === 'refusal' ? 'content-filter' : unified;
}
