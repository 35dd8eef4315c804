/** What the body of a reply may be: what would keep the thread for long is refused before a value is made of it. */
import { isTooLarge, LARGE_CHARS } from '#core';
import { BrokenReply } from './failure.ts';

/** Bounds of one JSON text: an event of a stream, or a whole reply. Parsing more takes over 50 ms without a break. */
const MAX_JSON_BYTES = 8 * 1024 * 1024;
const LF = 10;
const CR = 13;

/** Watches one body as it comes. */
export class BodyLimits {
  readonly #maxBytes: number;
  readonly #isStream: boolean;
  #bytes = 0;
  /** Counters of the JSON text that is being read. */
  #text: Uint8Array[] = [];
  #textBytes = 0;
  /** Nothing but its end came of the line so far. */
  #isBlank = true;

  /** @param isStream an empty line ends an event, and with it a JSON text; otherwise the body is one. */
  constructor(maxBytes: number, isStream: boolean) {
    this.#maxBytes = maxBytes;
    this.#isStream = isStream;
  }

  /** @throws BrokenReply before the end of a text that is too large is given on. */
  add(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes)
      throw tooLarge(`The reply of the model server went on after ${this.#maxBytes} bytes, and was broken off.`);
    this.#grow(chunk.subarray(this.#isStream ? this.#endTexts(chunk) : 0));
  }

  /** The body is whole. @throws BrokenReply */
  end(): void {
    this.#endText();
  }

  /** Returns where the text begins that the chunk does not end. */
  #endTexts(chunk: Uint8Array): number {
    let text = 0;
    let line = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, line)) {
      if (this.#isBlank && isBlank(chunk, line, end)) {
        this.#grow(chunk.subarray(text, end));
        this.#endText();
        text = end + 1;
      }
      this.#isBlank = true;
      line = end + 1;
    }
    this.#isBlank &&= isBlank(chunk, line, chunk.length);
    return text;
  }

  #grow(part: Uint8Array): void {
    this.#textBytes += part.length;
    if (this.#textBytes > MAX_JSON_BYTES) {
      const what = this.#isStream ? 'An event' : 'The reply';
      throw tooLarge(`${what} of the model server has more than ${MAX_JSON_BYTES} bytes of JSON, and was not read.`);
    }
    this.#text.push(part);
  }

  #endText(): void {
    // As Latin-1 each byte is a character: what is counted are signs of ASCII, and keys that differ.
    if (this.#textBytes >= LARGE_CHARS && isTooLarge(Buffer.concat(this.#text).toString('latin1')))
      throw tooLarge('The model server sent JSON with more values, or more different keys, than are read.');
    this.#text = [];
    this.#textBytes = 0;
  }
}

function isBlank(chunk: Uint8Array, from: number, to: number): boolean {
  return to === from || (to - from === 1 && chunk[from] === CR);
}

function tooLarge(message: string): BrokenReply {
  return new BrokenReply('model_reply_too_large', message);
}
