/** Counts brackets in text that comes by characters. */

/** Tells where all brackets that were opened are closed. Brackets inside strings do not count. */
export class Brackets {
  depth = 0;
  #quote = '';
  #isEscaped = false;
  /** The last character that is not white space: an apostrophe after a letter opens no string. */
  #last = '';

  /** @returns whether this character closes the outermost bracket. */
  read(char: string): boolean {
    if (this.#quote !== '') {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (char === '\\') this.#isEscaped = true;
      else if (char === this.#quote) this.#quote = '';
      return false;
    }
    if (isSpace(char)) return false;
    const last = this.#last;
    this.#last = char;
    switch (char) {
      case '{':
      case '[':
      case '(':
        this.depth += 1;
        return false;
      case '}':
      case ']':
      case ')':
        if (this.depth > 0) this.depth -= 1;
        return this.depth === 0;
      case '"':
        if (this.depth > 0) this.#quote = char;
        return false;
      case "'":
        if (this.depth > 0 && '[{(,:='.includes(last)) this.#quote = char;
        return false;
      default:
        return false;
    }
  }
}

export function isSpace(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r';
}

/** A character of a tool's name as models write it: letters, digits and `_ - .` */
export function isWordChar(char: string): boolean {
  const unit = char.charCodeAt(0);
  const isLetter = (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a);
  return isLetter || (unit >= 0x30 && unit <= 0x39) || char === '_' || char === '-' || char === '.';
}
