/**
 * What a listener may see of the models: of one that writes its calls as text the words, never the calls; of one that does so
 * by mistake neither; and of a reply that failed for good nothing, whatever comes in its place.
 */
import type { SpokenDelta } from '../../core/planner.ts';
import type { Asked } from '../../model/attempts.ts';
import type { ReadyModel } from '../../model/entry.ts';
import { ToolCallStream } from '../../parse/index.ts';
import { beginsAsTemplate, TemplateStart } from './chat-template.ts';
import { type Callable, parseTools } from './read-reply.ts';

export interface ProseOptions {
  readonly callable: Callable;
  /** Says which model is speaking now. */
  readonly model: () => ReadyModel;
  /** The answer has to fit a schema: a model with native calls writes nothing but that answer. */
  readonly hasAnswerSchema: boolean;
}

/** @throws as `deltas`; a `reset` goes ahead of it when something was shown. */
export async function* proseOnly(
  deltas: AsyncGenerator<SpokenDelta, Asked>,
  { callable, model, hasAnswerSchema }: ProseOptions,
): AsyncGenerator<SpokenDelta, Asked> {
  let words: Words | undefined;
  let isShown = false;
  try {
    for (;;) {
      let next: IteratorResult<SpokenDelta, Asked>;
      try {
        next = await deltas.next();
      } catch (error) {
        if (isShown) yield { type: 'reset' };
        throw error;
      }
      const { value, done } = next;
      if (done === true) {
        const rest = words === undefined ? '' : words.end(value);
        if (rest === undefined) yield { type: 'reset' };
        else if (rest !== '') yield { type: 'text', text: rest };
        return value;
      }
      isShown = value.type !== 'reset';
      if (value.type !== 'text') {
        if (value.type === 'reset') words = undefined;
        yield value;
        continue;
      }
      words ??= wordsOf(model(), callable, hasAnswerSchema);
      const text = words.push(value.text);
      if (text !== '') yield { type: 'text', text };
    }
  } finally {
    await deltas.return(undefined as never);
  }
}

/** The text of one reply, on its way to a listener. */
interface Words {
  /** What may be shown now. */
  push(chunk: string): string;
  /** What was held back, and may be shown after all. `undefined`: nothing may, and what was shown is to be taken back. */
  end(asked: Asked): string | undefined;
}

function wordsOf({ toolCalls }: ReadyModel, callable: Callable, hasAnswerSchema: boolean): Words {
  if (toolCalls === 'text') return callsInText(callable);
  return hasAnswerSchema ? { push: (chunk) => chunk, end: () => '' } : new NativeWords();
}

function callsInText(callable: Callable): Words {
  const stream = new ToolCallStream(parseTools(callable));
  return { push: (chunk) => stream.push(chunk).text, end: () => stream.end().text };
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

  end({ reply: { calls, text } }: Asked): string | undefined {
    const isTemplate = calls.length === 0 && beginsAsTemplate(text);
    if (this.#isProse) return isTemplate ? undefined : '';
    return isTemplate ? '' : this.#held;
  }
}
