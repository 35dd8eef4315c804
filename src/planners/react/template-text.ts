/** Reads one text from left to right, and strictly: what is not there as it should be is not there. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import { DEFAULT_PARSE_LIMITS, readStrictJson } from '#parse';

export class TemplateText {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  get isAtEnd(): boolean {
    this.space();
    return this.at >= this.text.length;
  }

  /** Passes over blanks. */
  space(): void {
    while (/\s/.test(this.text.charAt(this.at))) this.at += 1;
  }

  /** @param pattern sticky. */
  match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) return undefined;
    this.at = pattern.lastIndex;
    return match;
  }

  /** Everything up to `end`, which is passed over too. */
  upTo(end: string): string | undefined {
    const found = this.text.indexOf(end, this.at);
    if (found === -1) return undefined;
    const between = this.text.slice(this.at, found);
    this.at = found + end.length;
    return between;
  }

  /** The JSON object or list that begins here. */
  json(): Json | undefined {
    const end = this.#containerEnd();
    if (end === undefined) return undefined;
    const value = readStrictJson(this.text.slice(this.at, end), DEFAULT_PARSE_LIMITS.maxDepth);
    if (value !== undefined) this.at = end;
    return value;
  }

  object(): JsonObject | undefined {
    const value = this.json();
    return isJsonObject(value) ? value : undefined;
  }

  #containerEnd(): number | undefined {
    const first = this.text[this.at];
    if (first !== '{' && first !== '[') return undefined;
    let depth = 0;
    for (let at = this.at; at < this.text.length; at += 1) {
      const char = this.text[at];
      if (char === '"') {
        for (at += 1; at < this.text.length && this.text[at] !== '"'; at += 1) if (this.text[at] === '\\') at += 1;
      } else if (char === '{' || char === '[') depth += 1;
      else if (char === '}' || char === ']') depth -= 1;
      if (depth === 0) return at + 1;
    }
    return undefined;
  }
}
