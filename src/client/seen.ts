/** What a reader has had already and gets again after its connection was cut: what is not recorded has no place from which it could be read on. */
import type { RunEvent } from '#core';

export class Seen {
  /** Of each text that is under way: how many characters have come. */
  readonly #texts = new Map<string, number>();
  /** Of each call, and of the run of each task: the last one that has come. */
  readonly #last = new Map<string, number>();
  readonly #parts = new Map<string, { readonly seq: number; readonly parts: number }>();
  #counting = new Map<string, { seq: number; parts: number }>();

  /** The connection begins once more: events of tasks are counted anew. */
  again(): void {
    for (const [run, { seq, parts }] of this.#counting) {
      const before = this.#parts.get(run);
      if (before === undefined || seq > before.seq || (seq === before.seq && parts > before.parts))
        this.#parts.set(run, { seq, parts });
    }
    this.#counting = new Map();
  }

  /** The event, without what the reader has of it; `undefined` for one that it has whole. */
  fresh(event: RunEvent): RunEvent | undefined {
    switch (event.type) {
      case 'token':
        return this.#freshText(event);
      case 'token.reset':
        for (const key of this.#texts.keys()) if (key.startsWith(`${event.identity.run} `)) this.#texts.delete(key);
        return event;
      case 'tool.chunk': {
        const { run, step, call, attempt, index } = event;
        return this.#isNew(`${run} ${step} ${call} ${attempt}`, index) ? event : undefined;
      }
      default:
        return event.path === undefined || this.#isNewOfTask(event) ? event : undefined;
    }
  }

  #freshText(event: RunEvent<'token'>): RunEvent | undefined {
    const { identity, step, channel, text, offset } = event;
    const key = `${identity.run} ${step} ${channel}`;
    const had = this.#texts.get(key) ?? 0;
    const end = offset + text.length;
    if (end <= had) return undefined;
    this.#texts.set(key, end);
    return offset >= had ? event : { ...event, text: text.slice(had - offset), offset: had };
  }

  #isNew(key: string, index: number): boolean {
    if (index <= (this.#last.get(key) ?? 0)) return false;
    this.#last.set(key, index);
    return true;
  }

  #isNewOfTask({ identity: { run }, seq }: RunEvent): boolean {
    const now = this.#counting.get(run);
    const parts = now?.seq === seq ? now.parts + 1 : 1;
    this.#counting.set(run, { seq, parts });
    const had = this.#parts.get(run);
    return had === undefined || seq > had.seq || (seq === had.seq && parts > had.parts);
  }
}
