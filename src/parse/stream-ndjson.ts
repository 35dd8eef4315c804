/**
 * Rows of JSON, one a line, from text that comes by pieces. A row is an object or an array, and may run over several lines.
 * Each character is read once; a bad row costs only itself.
 */
import type { Json } from '#core';
import { JsonStream } from './stream-json.ts';

export interface NdjsonIssue {
  /** `lost`: something that was meant as a row is not there. `between`: words that are no row. `tolerated`: the row is there. */
  readonly kind: 'lost' | 'between' | 'tolerated';
  /** Counted from 1: where the row, or what was left out, begins. */
  readonly line: number;
  readonly message: string;
}

/** A row that has begun. It stays until its last line has ended, for what may follow the value there. */
interface Row {
  readonly json: JsonStream;
  readonly line: number;
  readonly indent: number;
}

/**
 * A row begins with `{` or `[`, the first character of its line that is not white space. Inside an open row only a line that
 * is indented more may begin so: at the same depth it is the next row, and the open one is given up. So rows in an array that
 * is not indented come out one by one. Other lines, such as fences and prose, are left out with an issue. It never throws.
 */
export class NdjsonStream {
  /** What was tolerated, left out or given up so far, in the order of the text. */
  readonly issues: NdjsonIssue[] = [];
  #row: Row | undefined;
  /** What the lines that are left out belong to: nothing of the kind, the rest of a bad row, or a run that was reported. */
  #skipping: 'no' | 'bad row' | 'run' = 'no';
  /** After a bad row: how deep the next row may be indented, so that no inner part of the bad one is taken for a row. */
  #maxIndent = Number.POSITIVE_INFINITY;
  #line = 1;
  #atStart = true;
  #indent = 0;

  /** @returns the rows that were completed by this piece. */
  push(chunk: string): Json[] {
    const rows: Json[] = [];
    let from = 0;
    while (from < chunk.length) {
      const newline = chunk.indexOf('\n', from);
      const to = newline < 0 ? chunk.length : newline;
      this.#readPart(chunk.slice(from, to), rows);
      if (newline >= 0) this.#endLine();
      from = to + 1;
    }
    return rows;
  }

  /**
   * Says that no more text comes. A row that is still open is given up with an issue: what is missing may change what it
   * means.
   */
  end(): void {
    if (this.#row?.json.state === 'open') this.#giveUp(this.#row, 'the text ends inside this row');
    else this.#endLine();
  }

  /** A part of one line, without its line break. */
  #readPart(part: string, rows: Json[]): void {
    const from = this.#atStart ? part.search(/\S/) : 0;
    if (this.#atStart) this.#indent += from < 0 ? part.length : from;
    if (this.#atStart && from >= 0) {
      this.#atStart = false;
      this.#beginLine(part.charAt(from));
    }
    const row = this.#row;
    if (row === undefined) return;
    const wasOpen = row.json.state === 'open';
    row.json.push(row.line === this.#line ? part.slice(from) : part);
    if (wasOpen) takeValue(row.json, rows);
  }

  /** Decides what a line is by its first character. */
  #beginLine(first: string): void {
    const depth = Math.min(this.#row?.indent ?? Number.POSITIVE_INFINITY, this.#maxIndent);
    if ((first === '{' || first === '[') && this.#indent <= depth) {
      if (this.#row !== undefined) this.#giveUp(this.#row, 'the next row begins before this one is closed');
      this.#row = { json: new JsonStream(), line: this.#line, indent: this.#indent };
      this.#skipping = 'no';
      this.#maxIndent = Number.POSITIVE_INFINITY;
    } else if (this.#row === undefined && this.#skipping === 'no') {
      this.#note('between', this.#line, 'no row begins here; the text up to the next row was left out');
      this.#skipping = 'run';
    }
  }

  #endLine(): void {
    const row = this.#row;
    if (row?.json.state === 'broken') {
      this.#giveUp(row, row.json.fault?.message ?? '');
    } else if (row?.json.state === 'complete') {
      for (const issue of row.json.issues) this.#note('tolerated', row.line, issue.message);
      this.#row = undefined;
    } else {
      row?.json.push('\n');
    }
    this.#line += 1;
    this.#atStart = true;
    this.#indent = 0;
  }

  #giveUp(row: Row, why: string): void {
    this.#note('lost', row.line, `this row was left out: ${why}`);
    this.#row = undefined;
    this.#skipping = 'bad row';
    this.#maxIndent = row.indent;
  }

  #note(kind: NdjsonIssue['kind'], line: number, message: string): void {
    this.issues.push({ kind, line, message });
  }
}

function takeValue(json: JsonStream, rows: Json[]): void {
  const value = json.value();
  if (json.state === 'complete' && value !== undefined) rows.push(value);
}
