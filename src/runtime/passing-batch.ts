/**
 * What a run's readers in other processes are told of what is not recorded: how it is gathered where the run is driven, and how it is joined
 * where it is read. Each row says how far its texts are, so that rows may be read twice, from any row on, or say everything once more: a
 * reader has each character once.
 */
import { isJsonObject, type Json } from '#core';
import type { Notice } from '../loop/notices.ts';
import { channelOf, type Said, type SaidDelta } from '../loop/said.ts';

/** A piece of what was said; `offset` counts the characters of its channel before it. */
type Piece = SaidDelta & { readonly offset: number };
type Passed = Extract<Notice, { readonly type: 'chunk' | 'late' }>;

interface Batch {
  readonly step: number;
  /** What was said under another number of the same step is void. */
  readonly take: number;
  readonly said: readonly Piece[];
  readonly passed: readonly Passed[];
}

/** Stands for a step that is not shown to other processes before it is recorded. */
const WITHHELD = -1;
/** After so many rows everything that was said is one row again. */
const MOST_ROWS = 100;
/** How much is kept between two rows of what else passes: the last so many. */
const MOST_PASSED = 256;
/** A secret that came in pieces is looked for in so many characters before what is to be written. */
const LOOK_BACK_CHARS = 4_096;

/** A row to be put. */
export interface OutgoingPassingRow {
  readonly clears: boolean;
  readonly value?: Json;
}

/** What passes in one run, while it is driven here and read elsewhere. */
export class OutgoingPassing {
  readonly #mayBeWritten: (text: string) => boolean;
  #step = 0;
  #take = 0;
  #pieces = new Map<string, Piece>();
  #passed: Passed[] = [];
  /** Something changed that has no pieces: what was said is void. */
  #tells = false;
  #repeats = false;
  /** How many rows are there; one at first, which somebody who is gone may have left. */
  #rows = 1;
  #clears = true;

  /** @param mayBeWritten whether nothing in a text is to be kept out of the store. */
  constructor(mayBeWritten: (text: string) => boolean) {
    this.#mayBeWritten = mayBeWritten;
  }

  /** There is something to put. */
  get isDue(): boolean {
    return this.#says || (this.#clears && this.#rows > 0);
  }

  get #says(): boolean {
    return this.#tells || this.#repeats || this.#pieces.size > 0 || this.#passed.length > 0;
  }

  hear(notice: Notice): void {
    if (notice.type === 'delta') this.#hearDelta(notice);
    else if (notice.type === 'entry' && notice.entry.kind === 'moved') this.#begin(notice.entry.step + 1);
    else if (notice.type === 'chunk' || notice.type === 'late') {
      this.#passed.push(notice);
      if (this.#passed.length > MOST_PASSED) this.#passed.shift();
    }
  }

  #hearDelta({ step, delta, offset }: Extract<Notice, { type: 'delta' }>): void {
    if (step !== this.#step) this.#begin(step);
    if (delta.type === 'reset') {
      this.#void(Math.max(this.#take, 0) + 1);
      return;
    }
    if (this.#take === WITHHELD) return;
    const channel = channelOf(delta);
    const before = this.#pieces.get(channel);
    const piece = before === undefined ? { ...delta, offset } : { ...before, text: before.text + delta.text };
    this.#pieces.set(channel, piece);
  }

  #begin(step: number): void {
    this.#step = step;
    this.#take = 0;
    this.#pieces.clear();
    this.#tells = false;
    this.#clears = true;
  }

  #void(take: number): void {
    this.#take = take;
    this.#pieces.clear();
    this.#tells = true;
    this.#clears = true;
  }

  /** @param said what the planner has said of the step that it is at. */
  next(said: Said | undefined): OutgoingPassingRow {
    if (this.#rows >= MOST_ROWS || this.#repeats) this.#sayAll(said);
    for (const piece of this.#pieces.values()) {
      if (this.#mayBeWritten(textBefore(piece, said) + piece.text)) continue;
      this.#void(WITHHELD);
      break;
    }
    const row = { clears: this.#clears, ...(this.#says ? { value: this.#batch() } : {}) };
    this.#rows = (row.clears ? 0 : this.#rows) + (this.#says ? 1 : 0);
    this.#pieces = new Map();
    this.#passed = [];
    this.#tells = false;
    this.#repeats = false;
    this.#clears = false;
    return row;
  }

  /** Nobody reads it any more. */
  end(): void {
    this.#pieces.clear();
    this.#passed = [];
    this.#tells = false;
    this.#repeats = false;
    this.#clears = true;
  }

  /** What was put last may not be there: the next row says everything. */
  failed(): void {
    this.#repeats = true;
    this.#clears = true;
    this.#rows = Math.max(this.#rows, 1);
  }

  #sayAll(said: Said | undefined): void {
    this.#clears = true;
    if (said?.step !== this.#step || this.#take === WITHHELD) return;
    this.#pieces = new Map(said.whole().map((delta) => [channelOf(delta), { ...delta, offset: 0 }]));
  }

  #batch(): Json {
    const batch: Batch = {
      ...{ step: this.#step, take: this.#take },
      said: [...this.#pieces.values()],
      passed: this.#passed,
    };
    return batch as unknown as Json;
  }
}

function textBefore(piece: Piece, said: Said | undefined): string {
  return said?.textOf(piece).slice(Math.max(0, piece.offset - LOOK_BACK_CHARS), piece.offset) ?? '';
}

/** What passes in one run that is read here and driven elsewhere. */
export class Incoming {
  #fence = 0;
  #step = -1;
  #take = 0;
  #told = new Map<string, number>();

  /** What is new in a row. `fence`: under which it was put. */
  *accept(fence: number, value: Json): Generator<Notice, void> {
    const batch = batchIn(value);
    // A process that has lost the run may not know it yet.
    if (fence < this.#fence || batch === undefined) return;
    const { step, take, said, passed } = batch;
    if (fence > this.#fence || step !== this.#step || take !== this.#take) {
      if (step === this.#step && this.#told.size > 0) yield RESET(step);
      this.#fence = fence;
      this.#step = step;
      this.#take = take;
      this.#told = new Map();
    }
    for (const piece of said) yield* this.#added(piece);
    yield* passed;
  }

  *#added({ offset, ...delta }: Piece): Generator<Notice, void> {
    const channel = channelOf(delta);
    const told = this.#told.get(channel);
    const end = offset + delta.text.length;
    if (told !== undefined && end <= told) return;
    const from = Math.max(offset, told ?? 0);
    this.#told.set(channel, end);
    yield { type: 'delta', step: this.#step, delta: { ...delta, text: delta.text.slice(from - offset) }, offset: from };
  }
}

const RESET = (step: number): Notice => ({ type: 'delta', step, delta: { type: 'reset' }, offset: 0 });

/** `undefined`: another version may have put it. */
function batchIn(value: Json): Batch | undefined {
  if (!isJsonObject(value)) return undefined;
  const { step, take, said, passed } = value;
  const isWhole = Number.isInteger(step) && Number.isInteger(take) && Array.isArray(said) && Array.isArray(passed);
  return isWhole && said.every(isPiece) && passed.every(isPassed) ? (value as unknown as Batch) : undefined;
}

function isPiece(piece: Json): boolean {
  if (!isJsonObject(piece)) return false;
  const { type, text, offset } = piece;
  return CHANNELS.has(type) && typeof text === 'string' && Number.isInteger(offset);
}

const CHANNELS: ReadonlySet<unknown> = new Set(['text', 'reasoning', 'input']);

function isPassed(notice: Json): boolean {
  return isJsonObject(notice) && (notice['type'] === 'chunk' || notice['type'] === 'late');
}
