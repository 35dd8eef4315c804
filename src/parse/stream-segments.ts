/**
 * Cuts a model's text, as it comes, into prose and into segments that may hold calls. It decides by the characters alone, so
 * the cuts are the same for all pieces, and it reads each character once. What may still become a segment is held back.
 * Whether a segment is a call is for the parser of whole texts to say.
 */
import { plainName, type ToolNames } from './names.ts';

/** Tells where all brackets that were opened are closed. Brackets inside strings do not count. */
class Brackets {
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

function isSpace(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r';
}

/** A character of a tool's name as models write it: letters, digits and `_ - .` */
function isWordChar(char: string): boolean {
  const unit = char.charCodeAt(0);
  const isLetter = (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a);
  return isLetter || (unit >= 0x30 && unit <= 0x39) || char === '_' || char === '-' || char === '.';
}

export type Segment =
  | { readonly kind: 'prose'; readonly text: string }
  /** `isHidden`: it is in a tag for calls, or cut off inside its brackets, and so nothing for a reader in any case. */
  | { readonly kind: 'calls'; readonly text: string; readonly isHidden: boolean };

/**
 * Where the last character stands. Not decided: `word`; `named`, after the name of a tool; `opener`, after `{` or `[`;
 * `ticks`; `fence`, after three of them; `tag`. Inside a segment: `group`, which ends with its last bracket; `fenced`;
 * `action`; `tagged`, after a tag for calls; `tag text`, where no value came first. Left out: `thought`.
 */
type Mode =
  | 'prose'
  | 'word'
  | 'named'
  | 'opener'
  | 'ticks'
  | 'fence'
  | 'tag'
  | 'group'
  | 'fenced'
  | 'action'
  | 'tagged'
  | 'tag text'
  | 'thought';

const TICKS = '```';
/** What is not decided by then is prose. */
const MAX_UNDECIDED_CHARS = 200;
const TAG_START = /[\w/|]/;
const TAG_CHAR = /[\w.:=|/"' -]/;
const THOUGHT_TAGS: ReadonlySet<string> = new Set(['think', 'thinking', 'reasoning', 'reflection', 'scratchpad']);
/** `tool_call`, `function-calls`, `toolUse` and their like, as plain names. */
const CALL_TAG = /^(?:tool|function)(?:s|calls?|use|code)?$|^(?:invoke|call|action)$/;
/** What `CALL_TAG` fits, for tags that were cut off. */
const CALL_TAGS = ['toolcalls', 'tooluse', 'toolcode', 'functioncalls', 'invoke', 'action'];
const ACTION_WORDS: ReadonlySet<string> = new Set(['Action', 'Tool', 'Function']);
/** How a line can go on with an action: a value, a fence, a tag, or `Action Input`, `Arguments`, `Input`, `Parameters`. */
const GOES_ON = '{[`<*AaIiPp';

export class Segmenter {
  readonly #names: ToolNames;
  #out: Segment[] = [];
  /** Prose that is decided and not yet in `#out`. */
  #prose = '';
  #mode: Mode = 'prose';
  /** What is not decided, or the segment so far. */
  #held = '';
  /** The word, the ticks or the tag at the end of `#held`. */
  #last = '';
  /** Words between a fence and `#last`. */
  #words = 0;
  #brackets = new Brackets();
  /** The name of the tag around a segment or a thought. */
  #tag = '';
  /** Whether three ticks would close a fence: one that was shown, or one that was left out. */
  #fence: 'none' | 'shown' | 'left out' = 'none';
  /** Whether only white space and marks stand before this on the line. */
  #isLineStart = true;

  constructor(names: ToolNames) {
    this.#names = names;
  }

  push(chunk: string): Segment[] {
    for (let at = 0; at < chunk.length; at += 1) {
      const char = chunk.charAt(at);
      while (!this.#step(char));
    }
    return this.#take();
  }

  /** What was held back: no more text comes. */
  end(): Segment[] {
    switch (this.#mode) {
      case 'group':
      case 'fenced':
      case 'action':
      case 'tagged':
      case 'tag text':
        this.#finish();
        break;
      case 'thought':
        break;
      case 'tag':
        if (!this.#mayBeKnown(this.#last)) this.#show();
        break;
      default:
        this.#show();
    }
    this.#drop();
    return this.#take();
  }

  #take(): Segment[] {
    this.#flush();
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #flush(): void {
    if (this.#prose !== '') this.#out.push({ kind: 'prose', text: this.#prose });
    this.#prose = '';
  }

  /** @returns false when the mode has changed and the same character is to be read again. */
  #step(char: string): boolean {
    switch (this.#mode) {
      case 'prose':
        return this.#inProse(char);
      case 'word':
        return this.#inWord(char);
      case 'named':
        return this.#afterName(char);
      case 'opener':
        return this.#afterOpener(char);
      case 'ticks':
        return this.#inTicks(char);
      case 'fence':
        return this.#afterFence(char);
      case 'tag':
        return this.#inTag(char);
      case 'group':
        return this.#inGroup(char);
      case 'fenced':
        return this.#inFence(char);
      case 'action':
        return this.#inAction(char);
      case 'tagged':
        return this.#afterCallTag(char);
      case 'tag text':
      case 'thought':
        return this.#untilClosingTag(char);
      default:
        return this.#mode satisfies never;
    }
  }

  #inProse(char: string): boolean {
    const mode = undecidedAt(char);
    if (mode === undefined) {
      this.#prose += char;
      this.#passLine(char, '*#>');
      return true;
    }
    this.#mode = mode;
    this.#held = char;
    this.#last = mode === 'opener' ? '' : char;
    return true;
  }

  #inWord(char: string): boolean {
    if (isWordChar(char)) return this.#wait(char);
    if (char === ':' && this.#isLineStart && ACTION_WORDS.has(this.#held)) return this.#open('action');
    if (char !== '(' && char !== '{' && char !== ':' && !isSpace(char)) return this.#show();
    if (!this.#isTool(this.#held)) return this.#show();
    return char === '(' || char === '{' ? this.#open('group') : this.#enter('named');
  }

  #afterName(char: string): boolean {
    if (char === ':' || isSpace(char)) return this.#wait(char);
    return char === '{' ? this.#open('group') : this.#show();
  }

  /** A value begins like JSON, like a Python list of calls, or like an object whose keys have no quotes. */
  #afterOpener(char: string): boolean {
    const word = this.#last;
    const isObject = this.#held.startsWith('{');
    if (isWordChar(char)) {
      this.#last += char;
      return this.#wait(char);
    }
    if (isSpace(char) && word === '') return this.#wait(char);
    if (word === '') return (isObject ? '"\'' : '{[("\'').includes(char) ? this.#open('group') : this.#show();
    if (isObject ? char === ':' : (char === '(' || char === '{') && this.#isTool(word)) return this.#open('group');
    if (char === ']' && word === 'TOOL_CALLS') return this.#drop();
    this.#prose += this.#held.slice(0, -word.length);
    this.#isLineStart = false;
    this.#held = word;
    return this.#enter('word');
  }

  #inTicks(char: string): boolean {
    if (char === '`') {
      this.#held += char;
      if (this.#held === TICKS) this.#meetFence();
      return true;
    }
    if (char !== '<') return this.#show();
    this.#held += char; // A tag that is quoted is spoken of.
    this.#show();
    return true;
  }

  #meetFence(): void {
    const fence = this.#fence;
    this.#fence = 'none';
    this.#last = '';
    this.#words = 0;
    if (fence === 'none') this.#mode = 'fence';
    else if (fence === 'shown') this.#show();
    else this.#drop();
  }

  /** A fence may hold calls if a value, a tag or the name of a tool comes first in it, after its own tag. */
  #afterFence(char: string): boolean {
    if (isWordChar(char)) {
      this.#last += char;
      return this.#wait(char);
    }
    if (char === '{' || char === '[' || this.#isTool(this.#last)) return this.#open('fenced');
    if (this.#last !== '') this.#words += 1;
    this.#last = '';
    if (isSpace(char) && this.#words < 2) return this.#wait(char);
    if (char !== '<') return this.#show();
    this.#held += char;
    this.#last = char;
    this.#mode = 'tag';
    return true;
  }

  #inTag(char: string): boolean {
    const tag = this.#last;
    if (char !== '>') {
      if ((tag === '<' ? TAG_START : TAG_CHAR).test(char)) {
        this.#last += char;
        return this.#wait(char);
      }
      // A tag for calls that was not closed before its value.
      return (char === '{' || char === '[') && this.#isCallTag(tag) ? this.#enterTag('tagged') : this.#show();
    }
    this.#held += char;
    if (tag.startsWith('<|') || (tag.startsWith('</') && this.#isKnown(tag))) return this.#drop();
    if (!tag.startsWith('</') && THOUGHT_TAGS.has(tagName(tag))) {
      this.#enterTag('thought');
      this.#held = '';
    } else if (!tag.startsWith('</') && this.#isCallTag(tag)) {
      this.#enterTag('tagged');
    } else {
      this.#show();
    }
    return true;
  }

  #enterTag(mode: 'tagged' | 'thought'): false {
    this.#tag = tagName(this.#last);
    this.#last = '';
    this.#brackets = new Brackets();
    return this.#enter(mode);
  }

  #afterCallTag(char: string): boolean {
    if (!isSpace(char)) return this.#enter(char === '{' || char === '[' ? 'group' : 'tag text');
    this.#held += char;
    return true;
  }

  #untilClosingTag(char: string): boolean {
    const isThought = this.#mode === 'thought';
    if (!isThought) this.#held += char;
    if (char === '<') this.#last = char;
    else if (this.#last !== '' && this.#last.length < MAX_UNDECIDED_CHARS) this.#last += char;
    if (char !== '>') return true;
    const isClosed = this.#last.startsWith('</') && tagName(this.#last) === this.#tag;
    this.#last = '';
    if (!isClosed) return true;
    if (!isThought) this.#finish();
    this.#tag = '';
    return this.#drop();
  }

  #inGroup(char: string): boolean {
    this.#held += char;
    if (this.#brackets.read(char)) this.#finish();
    return true;
  }

  #inFence(char: string): boolean {
    this.#held += char;
    this.#brackets.read(char);
    this.#last = char === '`' ? this.#last + char : '';
    if (this.#last === TICKS && (this.#brackets.depth === 0 || this.#isLineStart)) this.#finish();
    else this.#passLine(char, '`');
    return true;
  }

  /** Ends with its first group of brackets, or before a line that does not go on with it. */
  #inAction(char: string): boolean {
    if (this.#brackets.depth === 0) {
      if (this.#isLineStart && !isSpace(char) && !GOES_ON.includes(char)) {
        this.#finish();
        return false;
      }
      this.#passLine(char, '');
      this.#last = char === '`' ? this.#last + char : '';
      if (this.#last === TICKS) this.#fence = this.#fence === 'none' ? 'left out' : 'none';
    }
    return this.#inGroup(char);
  }

  /** Keeps a character in what is not decided. */
  #wait(char: string): boolean {
    if (this.#held.length >= MAX_UNDECIDED_CHARS) return this.#show();
    this.#held += char;
    return true;
  }

  /** Goes on in another mode with the same character. */
  #enter(mode: Mode): false {
    this.#mode = mode;
    return false;
  }

  /** What is held is the beginning of a segment. */
  #open(mode: 'group' | 'fenced' | 'action'): false {
    this.#brackets = new Brackets();
    if (mode === 'group') for (const char of this.#held) this.#brackets.read(char);
    this.#last = '';
    this.#isLineStart = mode === 'fenced';
    return this.#enter(mode);
  }

  /** What is held is prose. */
  #show(): false {
    if (this.#held.length > TICKS.length && this.#held.startsWith(TICKS)) this.#fence = 'shown';
    this.#prose += this.#held;
    this.#isLineStart = this.#held.endsWith('\n');
    this.#drop();
    return false;
  }

  /** What is held is nothing that anybody reads. */
  #drop(): true {
    this.#held = '';
    this.#mode = 'prose';
    return true;
  }

  #finish(): void {
    this.#flush();
    this.#out.push({ kind: 'calls', text: this.#held, isHidden: this.#tag !== '' || this.#brackets.depth > 0 });
    if (this.#mode !== 'fenced' && this.#held.startsWith(TICKS)) this.#fence = 'left out';
    this.#tag = '';
    this.#isLineStart = false;
    this.#drop();
  }

  #passLine(char: string, marks: string): void {
    if (char === '\n') this.#isLineStart = true;
    else if (!isSpace(char) && !marks.includes(char)) this.#isLineStart = false;
  }

  #isTool(word: string): boolean {
    return this.#names.resolve(word) !== undefined;
  }

  #isCallTag(tag: string): boolean {
    return CALL_TAG.test(tagName(tag)) || this.#isTool(tagName(tag));
  }

  #isKnown(tag: string): boolean {
    return THOUGHT_TAGS.has(tagName(tag)) || this.#isCallTag(tag);
  }

  /** Whether a tag that was cut off can have been one that is left out. */
  #mayBeKnown(tag: string): boolean {
    const name = tagName(tag);
    const known = [...THOUGHT_TAGS, ...CALL_TAGS, ...this.#names.tools.map((tool) => plainName(tool.name))];
    return known.some((other) => other.startsWith(name));
  }
}

/** What a character may be the beginning of. */
function undecidedAt(char: string): Mode | undefined {
  if (char === '`') return 'ticks';
  if (char === '<') return 'tag';
  if (char === '{' || char === '[') return 'opener';
  return isWordChar(char) ? 'word' : undefined;
}

/** The name in a tag, or in the beginning of one. */
function tagName(tag: string): string {
  return plainName(/^<[/|]*([\w.-]*)/.exec(tag)?.[1] ?? '');
}
