/** Puts the parts of a stream together to the content that a plain call would have given. */
import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Reasoning,
  LanguageModelV4StreamPart,
  LanguageModelV4Text,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4Warning,
} from '@ai-sdk/provider';
import type { SpokenDelta } from '#core';
import { BrokenReply } from './failure.ts';

/** The most characters of one reply: more than any model gives at once, and few enough to be read without keeping others waiting. */
const MAX_REPLY_CHARS = 2_000_000;

/** @throws BrokenReply when a reply has more characters than are read. */
export function assertReplySize(chars: number): void {
  if (chars <= MAX_REPLY_CHARS) return;
  const message = `The model went on after ${MAX_REPLY_CHARS} characters, and was broken off.`;
  throw new BrokenReply('model_reply_too_large', message);
}

/** What of a part may be shown. */
export type Prose = Exclude<SpokenDelta, { type: 'reset' }>;

type ProseContent = LanguageModelV4Text | LanguageModelV4Reasoning;

export class StreamedContent {
  /** The parts of the content, in the order in which they began. */
  readonly content: LanguageModelV4Content[] = [];
  /** A stream that ends without a finish part was interrupted. */
  finishReason: LanguageModelV4FinishReason = { unified: 'interrupted', raw: undefined };
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
        this.#addCall(part);
        return undefined;
      case 'custom':
        this.content.push(part);
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
        this.usage = part.usage;
        return undefined;
      case 'error':
        throw part.error;
      default:
        return undefined; // sources, files, raw chunks and what providers add later
    }
  }

  #count(delta: string | undefined): void {
    this.#chars += delta?.length ?? 0;
    assertReplySize(this.#chars);
  }

  #addProse(
    type: ProseContent['type'],
    part: { type: string; id: string; delta?: string; providerMetadata?: ProseContent['providerMetadata'] },
  ): Prose | undefined {
    const key = `${type}:${part.id}`;
    // The same id may begin a second block.
    const begun = part.type === `${type}-start` ? undefined : this.#prose.get(key);
    const prose = begun ?? this.#begin(key, { type, text: '' });
    // The last metadata counts: a signature comes at the end of the block that it signs.
    if (part.providerMetadata !== undefined) prose.providerMetadata = part.providerMetadata;
    if (part.delta === undefined || part.delta === '') return undefined;
    prose.text += part.delta;
    return { type, text: part.delta };
  }

  #begin(key: string, prose: ProseContent): ProseContent {
    this.#prose.set(key, prose);
    this.content.push(prose);
    return prose;
  }

  #addCall(part: LanguageModelV4StreamPart & { type: 'tool-input-start' | 'tool-input-delta' | 'tool-call' }): void {
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
      return;
    }
    if (part.type === 'tool-input-delta') {
      const call = this.#inputs.get(part.id);
      if (call !== undefined) call.input += part.delta;
      return;
    }
    // The whole call takes the place of its pieces; pieces that never became a whole stay, cut off.
    const begun = this.#inputs.get(part.toolCallId);
    if (begun === undefined) this.content.push(part);
    else this.content[this.content.indexOf(begun)] = part;
    this.#inputs.delete(part.toolCallId);
  }
}
