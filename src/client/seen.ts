/**
 * What a reader has had already and gets again after its connection was cut: what is not recorded has no place from which it could be read on. A text that is
 * another one now, since the model was asked once more meanwhile, is taken back.
 */
import type { RunEvent } from '#core';

interface Place {
  readonly seq: number;
  readonly parts: number;
}

export class Seen {
  /** What has come of each text that is under way. */
  readonly #texts = new Map<string, string>();
  /** The last piece of each call that has come. */
  readonly #pieces = new Map<string, number>();
  /** The last event of the run of each task that has come. */
  readonly #tasks = new Map<string, Place>();
  #counting = new Map<string, Place>();

  /** The connection begins once more: events of tasks are counted anew. */
  again(): void {
    for (const [run, place] of this.#counting) if (isBehind(place, this.#tasks.get(run))) this.#tasks.set(run, place);
    this.#counting = new Map();
  }

  /** What is new in the event. */
  fresh<E extends RunEvent>(event: E): readonly E[] {
    switch (event.type) {
      case 'token':
        return this.#freshText(event as E & RunEvent<'token'>, event.channel);
      case 'tool.input':
        return this.#freshText(event as E & RunEvent<'tool.input'>, `input ${event.callId}`);
      case 'token.reset':
      case 'planner.decision':
        this.#forget(`${event.identity.run} ${event.step} `);
        break;
      case 'tool.chunk': {
        const { run, step, call, attempt, index } = event;
        const key = `${run} ${step} ${call} ${attempt}`;
        if (index <= (this.#pieces.get(key) ?? 0)) return [];
        this.#pieces.set(key, index);
        return [event];
      }
      default:
    }
    return event.path === undefined || this.#isNewOfTask(event) ? [event] : [];
  }

  /** @param of which of the texts of its step it is. */
  #freshText<E extends RunEvent>(event: E & RunEvent<'token' | 'tool.input'>, of: string): readonly E[] {
    const { identity, step, text, offset } = event;
    const key = `${identity.run} ${step} ${of}`;
    const had = this.#texts.get(key) ?? '';
    const again = had.slice(offset, offset + text.length);
    if (!text.startsWith(again)) {
      this.#forget(`${identity.run} ${step} `);
      const whole = had.slice(0, offset) + text;
      this.#texts.set(key, whole);
      const reset = { ...event, type: 'token.reset' } as unknown as E;
      for (const key of ['channel', 'callId', 'tool', 'text', 'offset']) Reflect.deleteProperty(reset, key);
      return [reset, { ...event, text: whole, offset: 0 }];
    }
    const rest = text.slice(again.length);
    // The first piece of arguments may be empty: it says that they begin.
    const isBegun = this.#texts.has(key);
    if (rest === '' && (isBegun || event.type === 'token')) return [];
    // What a slow reader has lost stays open.
    this.#texts.set(key, had.padEnd(offset) + rest);
    return again === '' ? [event] : [{ ...event, text: rest, offset: had.length }];
  }

  #forget(begin: string): void {
    for (const key of this.#texts.keys()) if (key.startsWith(begin)) this.#texts.delete(key);
  }

  #isNewOfTask({ identity: { run }, seq }: RunEvent): boolean {
    const now = this.#counting.get(run);
    const place = { seq, parts: now?.seq === seq ? now.parts + 1 : 1 };
    this.#counting.set(run, place);
    return isBehind(place, this.#tasks.get(run));
  }
}

function isBehind({ seq, parts }: Place, other: Place | undefined): boolean {
  return other === undefined || seq > other.seq || (seq === other.seq && parts > other.parts);
}
