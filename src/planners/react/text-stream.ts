/**
 * What a listener may see of the models: of one that writes its calls as text the words, never the calls; of one that does so
 * by mistake neither; and of a reply that failed for good nothing, whatever comes in its place. In the end it is what the reading
 * of the whole reply says.
 */
import type { SpokenDelta } from '#core';
import type { ModelAnswer, Reply } from '#model';
import { ToolCallStream } from '#parse';
import { beginsAsTemplate, TemplateStart } from './chat-template.ts';
import { ownName, parseTools, type ReadOptions, readReply } from './read-reply.ts';

/**
 * @param reading how a reply of the model that is speaking now is read.
 * @throws as `deltas`; a `reset` goes ahead of it when something was shown.
 */
export async function* proseOnly(
  deltas: AsyncGenerator<SpokenDelta, ModelAnswer>,
  reading: () => ReadOptions,
  isFree: (callId: string) => boolean,
): AsyncGenerator<SpokenDelta, ModelAnswer> {
  let words: Words | undefined;
  let isShown = false;
  let reasoning = '';
  let inputs = new Inputs();
  try {
    for (;;) {
      let next: IteratorResult<SpokenDelta, ModelAnswer>;
      try {
        next = await deltas.next();
      } catch (error) {
        if (isShown) yield { type: 'reset' };
        throw error;
      }
      const { value, done } = next;
      if (done === true) {
        const end = words?.end(value.reply);
        if (end?.isNew === true) {
          yield { type: 'reset' };
          if (reasoning !== '') yield { type: 'reasoning', text: reasoning };
          yield* inputs.shown();
        }
        if (end !== undefined && end.text !== '') yield { type: 'text', text: end.text };
        return value;
      }
      if (value.type === 'input') {
        const input = inputs.take(value, reading, isFree);
        if (input === undefined) continue;
        isShown = true;
        yield input;
        continue;
      }
      isShown = value.type !== 'reset';
      if (value.type === 'text') {
        words ??= wordsOf(reading());
        const text = words.push(value.text);
        if (text !== '') yield { type: 'text', text };
        continue;
      }
      if (value.type === 'reset') {
        words = undefined;
        inputs = new Inputs();
      }
      reasoning = value.type === 'reset' ? '' : reasoning + value.text;
      yield value;
    }
  } finally {
    await deltas.return(undefined as never);
  }
}

type InputDelta = Extract<SpokenDelta, { type: 'input' }>;

/**
 * The arguments of a reply's calls on their way to a listener: those of calls that will have the id which the provider gave them, of tools of the
 * run. A decision of its own, such as the end of the run, does not count as a call.
 */
class Inputs {
  /** By the provider's ids; `undefined`: not shown. */
  readonly #calls = new Map<string, InputDelta | undefined>();

  /** @param isFree no call before has the id. */
  take(piece: InputDelta, reading: () => ReadOptions, isFree: (callId: string) => boolean): InputDelta | undefined {
    const { callId, text } = piece;
    const begun = this.#calls.get(callId);
    // A second call of the same id will have another one.
    const isAnew = text === '' && this.#calls.has(callId);
    if (begun === undefined && this.#calls.has(callId)) return undefined;
    const tool = begun?.tool ?? this.#toolOf(piece, reading());
    if (isAnew || tool === undefined || (begun === undefined && !isFree(callId))) {
      this.#calls.set(callId, undefined);
      return undefined;
    }
    this.#calls.set(callId, { ...piece, tool, text: (begun?.text ?? '') + text });
    return { ...piece, tool };
  }

  *shown(): Generator<InputDelta, void> {
    for (const call of this.#calls.values()) if (call !== undefined) yield call;
  }

  #toolOf({ tool: name }: InputDelta, reading: ReadOptions): string | undefined {
    const tool = ownName(name, reading);
    return reading.tools.get(tool) === undefined ? undefined : tool;
  }
}

/** The text of one reply, on its way to a listener. */
interface Words {
  /** What may be shown now. */
  push(chunk: string): string;
  /** What was held back, and may be shown after all. `isNew`: it takes the place of what was shown. */
  end(reply: Reply): { readonly text: string; readonly isNew?: true };
}

function wordsOf(reading: ReadOptions): Words {
  if (reading.mode === 'text') return new CallsInText(reading);
  return reading.readAnswer === undefined ? new NativeWords() : { push: (chunk) => chunk, end: () => ({ text: '' }) };
}

class CallsInText implements Words {
  readonly #reading: ReadOptions;
  readonly #stream: ToolCallStream;
  #shown = '';

  constructor(reading: ReadOptions) {
    this.#reading = reading;
    this.#stream = new ToolCallStream(parseTools(reading));
  }

  push(chunk: string): string {
    const { text } = this.#stream.push(chunk);
    this.#shown += text;
    return text;
  }

  end(reply: Reply): { readonly text: string; readonly isNew?: true } {
    const rest = this.#stream.end().text;
    const { text, unreadable } = readReply(reply, this.#reading);
    const shown = this.#shown.trimStart();
    if (unreadable !== undefined || (shown + rest).trim() === text.trim()) return { text: rest };
    // What looked like a call is part of an answer.
    const whole = text.trimStart();
    return whole.startsWith(shown) ? { text: whole.slice(shown.length) } : { text: whole, isNew: true };
  }
}

/** Holds a text back for as long as it may be the template of a call. */
class NativeWords implements Words {
  readonly #start = new TemplateStart();
  #held = '';
  #isProse = false;

  push(chunk: string): string {
    if (this.#isProse) return chunk;
    this.#held += chunk;
    this.#start.push(chunk);
    if (this.#start.mayBeTemplate()) return '';
    this.#isProse = true;
    return this.#held;
  }

  end({ calls, text }: Reply): { readonly text: string; readonly isNew?: true } {
    const isTemplate = calls.length === 0 && beginsAsTemplate(text);
    if (this.#isProse) return isTemplate ? { text: '', isNew: true } : { text: '' };
    return { text: isTemplate ? '' : this.#held };
  }
}
