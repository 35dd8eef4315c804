/**
 * The words of a step, as parts of the AI SDK's stream. Words may be taken back, and a stream of the AI SDK cannot: the part is ended then, and what counts comes
 * in a part of its own, with an id of its own. Words that come again as the reader has them are not told twice.
 */
import type { TextStreamPart, ToolSet } from 'ai';

type Tell = (part: TextStreamPart<ToolSet>) => void;

/** A part of the step's content. */
interface Spoken extends Record<string, unknown> {
  readonly type: 'text' | 'reasoning';
  text: string;
}

/** A part under way. */
interface Saying {
  readonly part: Spoken;
  /** Its id in the stream. Absent: the reader has these words so far, from what was taken back. */
  id: string | undefined;
}

export class StepWords {
  readonly #tell: Tell;
  readonly #spoken = new Map<string, Saying>();
  /** The words that the reader was told last, in parts that have ended, by the ids that the run gives its parts. */
  readonly #ended = new Map<string, string>();
  #again = 0;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  /** @returns the part, which grows. */
  start(type: Spoken['type'], id: string): Spoken {
    const part: Spoken = { type, text: '' };
    const said: Saying = { part, id: undefined };
    this.#spoken.set(id, said);
    if (!this.#ended.has(id)) this.#begin(said, id);
    return part;
  }

  say(id: string, delta: string): void {
    const said = this.#spoken.get(id);
    if (said === undefined) return;
    const at = said.part.text.length;
    said.part.text += delta;
    if (said.id !== undefined) this.#tell({ type: `${said.part.type}-delta`, id: said.id, text: delta });
    // The words before are the same: the rest alone is looked at.
    else if (this.#ended.get(id)?.startsWith(delta, at) !== true) this.#tellAnew(id);
  }

  end(id: string): void {
    const said = this.#spoken.get(id);
    if (said === undefined) return;
    if (said.id === undefined && this.#ended.get(id)?.trimEnd() !== said.part.text.trimEnd()) this.#tellAnew(id);
    if (said.id !== undefined) this.#tell({ type: `${said.part.type}-end`, id: said.id });
    this.#spoken.delete(id);
    this.#ended.set(id, said.part.text);
  }

  /** Nothing of what was said in the step counts any more. */
  takeBack(): void {
    for (const [id, { part, id: told }] of this.#spoken) {
      if (told === undefined) continue;
      this.#tell({ type: `${part.type}-end`, id: told });
      this.#ended.set(id, part.text);
    }
    this.#spoken.clear();
  }

  /** The step has ended. */
  close(): void {
    for (const id of [...this.#spoken.keys()]) this.end(id);
    this.#ended.clear();
  }

  #tellAnew(id: string): void {
    const said = this.#spoken.get(id);
    if (said === undefined) return;
    this.#again += 1;
    this.#begin(said, `${id}.again-${this.#again}`);
    if (said.id !== undefined) this.#tell({ type: `${said.part.type}-delta`, id: said.id, text: said.part.text });
  }

  #begin(said: Saying, id: string): void {
    said.id = id;
    this.#tell({ type: `${said.part.type}-start`, id });
  }
}
