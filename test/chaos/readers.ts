/** Readers of streams, each in one of the processes, whichever has the run. Where that dies, the reader goes on in another one. */
import type { Member } from './crew.ts';
import type { NumberedRow, StreamTestimony } from './judge-streams.ts';

/** Of each stream. */
const READERS = 2;

interface Reader {
  readonly run: string;
  readonly name: string;
  by: Member | undefined;
}

export class Readers {
  readonly #heard: (run: string) => StreamTestimony;
  readonly #able: () => Member | undefined;
  readonly #open = new Map<string, Reader>();
  /** How many readings were begun. */
  readings = 0;

  /** @param heard what was heard of the stream of a run. @param able somebody who can read now. */
  constructor(heard: (run: string) => StreamTestimony, able: () => Member | undefined) {
    this.#heard = heard;
    this.#able = able;
  }

  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  begin(run: string): void {
    for (let number = 1; number <= READERS; number += 1) {
      const name = `${run} ${number}`;
      this.#open.set(name, { run, name, by: undefined });
      this.#heard(run).read.set(name, []);
    }
  }

  /** Those whose process has died read on in another one. */
  look(): void {
    for (const reader of this.#open.values()) {
      if (reader.by !== undefined && !reader.by.isDead) continue;
      const { run, name } = reader;
      reader.by = this.#able();
      if (reader.by === undefined) return;
      this.readings += 1;
      reader.by.tell({ do: 'read', run, reader: name, from: this.#rows(reader).length + 1 });
    }
  }

  hear(name: string, row: NumberedRow, from: Member | undefined): void {
    const reader = this.#open.get(name);
    if (reader !== undefined && reader.by === from) this.#rows(reader).push(row);
  }

  /** @param isWhole false: it was cut off, and is to be tried again. */
  ended(name: string, isWhole: boolean, from: Member | undefined): void {
    const reader = this.#open.get(name);
    if (reader === undefined || reader.by !== from) return;
    reader.by = undefined;
    if (!isWhole) return;
    this.#open.delete(name);
    this.#heard(reader.run).ended.add(name);
  }

  #rows({ run, name }: Reader): NumberedRow[] {
    return this.#heard(run).read.get(name) ?? [];
  }
}
