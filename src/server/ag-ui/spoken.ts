/** The text of one channel in one step of a run. It is told as it is streamed, completed when the decision is known, and never told twice. */
import type { RunEvent } from '#core';
import type { AgUiEvent } from './protocol.ts';

export type Channel = RunEvent<'token'>['channel'];

interface Tag {
  readonly subagentRunId?: string;
}

export class Spoken {
  readonly id: string;
  readonly #channel: Channel;
  readonly #tag: Tag;
  #shown = '';
  #isOpen = false;

  constructor(id: string, channel: Channel, tag: Tag) {
    this.id = id;
    this.#channel = channel;
    this.#tag = tag;
  }

  get shown(): string {
    return this.#shown;
  }

  /** A part of the text that begins at this offset. What follows a gap is told with the whole text. */
  piece(text: string, offset: number): AgUiEvent[] {
    if (offset > this.#shown.length) return [];
    return this.#say(text.slice(this.#shown.length - offset));
  }

  /** Tells the rest, once the whole text is known. @returns `undefined` when another text was told, so that all messages have to be told anew. */
  whole(text: string): AgUiEvent[] | undefined {
    if (!text.startsWith(this.#shown)) {
      this.#shown = text;
      return undefined;
    }
    return [...this.#say(text.slice(this.#shown.length)), ...this.close()];
  }

  close(): AgUiEvent[] {
    if (!this.#isOpen) return [];
    this.#isOpen = false;
    const of = { messageId: this.id, ...this.#tag };
    if (this.#channel === 'text') return [{ type: 'TEXT_MESSAGE_END', ...of }];
    return [
      { type: 'REASONING_MESSAGE_END', ...of },
      { type: 'REASONING_END', ...of },
    ];
  }

  #say(delta: string): AgUiEvent[] {
    if (delta === '') return [];
    this.#shown += delta;
    const of = { messageId: this.id, ...this.#tag };
    const opening = this.#isOpen ? [] : this.#open(of);
    this.#isOpen = true;
    const type = this.#channel === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
    return [...opening, { type, ...of, delta }];
  }

  #open(of: { readonly messageId: string } & Tag): AgUiEvent[] {
    if (this.#channel === 'text') return [{ type: 'TEXT_MESSAGE_START', ...of, role: 'assistant' }];
    return [
      { type: 'REASONING_START', ...of },
      { type: 'REASONING_MESSAGE_START', ...of, role: 'reasoning' },
    ];
  }
}
