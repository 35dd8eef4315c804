/** A model's text as it comes: what a reader may see at once, and the calls in it as soon as each is complete. */
import { jsonEquals } from '#core';
import { type CallForm, isSureEnough } from './find-calls.ts';
import { type ParseTool, type ToolNames, toolNames } from './names.ts';
import { DEFAULT_PARSE_LIMITS } from './reader.ts';
import { type Segment, Segmenter } from './stream-segments.ts';
import { DEFAULT_STRICTNESS, type ParsedCall, type ParsedCalls, readToolCalls } from './tool-calls.ts';

export interface ToolCallPart {
  /** Prose that follows what was given before: no call, no tag for calls, no thought, nor half of one. */
  readonly text: string;
  /**
   * Calls of the given tools that were completed, each once. They are early news, and none is `exact`, since that depends on
   * what follows: the calls that count are those of `end`.
   */
  readonly calls: readonly ParsedCall[];
}

export interface ToolCallEnd extends ParsedCalls {
  /** The last prose, which was held back. */
  readonly text: string;
}

/** What every call has besides a name, and the mention of a tool has not. */
const ARGUMENTS = /["'{=]/;

/** Words before a call that are read with it. */
const CONTEXT_CHARS = 600;

/**
 * Prose passes through, late by a word, and by the content of a bracket or a fence that may be a call. A value, a fence or an
 * `Action:` line that turns out to be no call, and names no tool, is prose after all; so is a call that the words before it only
 * speak of. Tags of a name that is not known to stand
 * around calls are prose. The work is linear in the text. Never throws.
 */
export class ToolCallStream {
  readonly #tools: readonly ParseTool[];
  readonly #names: ToolNames;
  readonly #segmenter: Segmenter;
  readonly #strictness: CallForm;
  /** The last words that were shown. */
  #before = '';
  #whole = '';
  /** The calls that were given early. */
  readonly #given: ParsedCall[] = [];

  constructor(
    tools: readonly ParseTool[],
    { strictness = DEFAULT_STRICTNESS }: { readonly strictness?: CallForm } = {},
  ) {
    this.#tools = tools;
    this.#strictness = strictness;
    this.#names = toolNames(tools);
    this.#segmenter = new Segmenter(this.#names);
  }

  push(chunk: string): ToolCallPart {
    if (this.#whole.length <= DEFAULT_PARSE_LIMITS.maxChars) this.#whole += chunk;
    return this.#present(this.#segmenter.push(chunk));
  }

  /** Says that no more text comes. The calls and issues are those of `parseToolCalls` for the whole text. */
  end(): ToolCallEnd {
    const { text } = this.#present(this.#segmenter.end());
    return { ...readToolCalls(this.#whole, this.#names, DEFAULT_PARSE_LIMITS, this.#strictness), text };
  }

  #present(segments: readonly Segment[]): ToolCallPart {
    let text = '';
    const calls: ParsedCall[] = [];
    for (const segment of segments) {
      if (segment.kind === 'prose') {
        text += segment.text;
        this.#before = (this.#before + segment.text).slice(-CONTEXT_CHARS);
        continue;
      }
      const alone = this.#read(segment.text);
      const found = this.#made(segment.text, alone);
      const isSpokenOf = alone.length > found.length && found.length === 0;
      const isCall = found.length > 0 || (!isSpokenOf && this.#isMeantAsCall(segment.text));
      if (isCall) calls.push(...this.#news(found));
      else if (!segment.isHidden) text += segment.text;
    }
    return { text, calls };
  }

  #read(text: string): readonly ParsedCall[] {
    return readToolCalls(text, this.#names, DEFAULT_PARSE_LIMITS, DEFAULT_STRICTNESS).calls;
  }

  /** Those of the calls of a segment that the words before it do not merely speak of. */
  #made(text: string, alone: readonly ParsedCall[]): readonly ParsedCall[] {
    if (alone.length === 0 || this.#before.trim() === '') return alone;
    const calls = this.#read(this.#before + text);
    return calls.filter((call) => alone.some(({ tool, args }) => tool === call.tool && jsonEquals(args, call.args)));
  }

  /** A call that was given before is the same call written again; in one segment it is meant twice. */
  #news(found: readonly ParsedCall[]): ParsedCall[] {
    const room = DEFAULT_PARSE_LIMITS.maxCalls - this.#given.length;
    const early = found.map((call): ParsedCall => (call.form === 'exact' ? { ...call, form: 'clear' } : call));
    const news = early.filter(
      (call) =>
        isSureEnough(call.form, this.#strictness) &&
        !this.#given.some((given) => given.tool === call.tool && jsonEquals(given.args, call.args)),
    );
    const calls = news.slice(0, room);
    this.#given.push(...calls);
    return calls;
  }

  #isMeantAsCall(text: string): boolean {
    return ARGUMENTS.test(text) && this.#tools.some(({ name }) => text.includes(name));
  }
}
