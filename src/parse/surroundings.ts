/** The words around the calls of a text, gathered as one goes from call to call: each character is looked at once. */
import { answerStart, withoutThoughts } from './turns.ts';

/** More of what stands before a call is not looked at. */
const KEPT_CHARS = 4000;

const TICKS = '```';

export class Surroundings {
  readonly #text: string;
  #at: number;
  /** The language of the open fence, if one is open. */
  #fence: string | undefined;
  /** What was said so far: without code, thinking and calls. */
  #before = '';
  #since = '';

  constructor(text: string) {
    this.#text = text;
    this.#at = answerStart(text);
  }

  /** Where the last call ended, or the answer begins. */
  get at(): number {
    return this.#at;
  }

  /** The words before the call, at most the last 4,000 characters. */
  get before(): string {
    return this.#before;
  }

  /** Those of them that follow the call before this one. */
  get since(): string {
    return this.#since;
  }

  /** The language of the fence around the call; empty when it has none. */
  get fence(): string | undefined {
    return this.#fence;
  }

  /** Goes on to a call. */
  reach(start: number): void {
    this.#since = '';
    const parts = (withoutThoughts(this.#text.slice(this.#at, start)) ?? '').split(TICKS);
    for (const [index, part] of parts.entries()) {
      if (index > 0)
        this.#fence = this.#fence === undefined ? (/^\s?([\w+#-]{0,20})/.exec(part)?.[1] ?? '') : undefined;
      if (this.#fence === undefined) this.#since += `${index > 0 ? '\n' : ''}${part}`;
    }
    this.#before = `${this.#before}\n${this.#since}`.slice(-KEPT_CHARS);
  }

  /** Goes past it. */
  pass(end: number): void {
    this.#at = end;
  }
}

/** The text without what stands in fences. */
export function withoutCode(text: string): string {
  return text
    .split(TICKS)
    .filter((_, index) => index % 2 === 0)
    .join('\n');
}
