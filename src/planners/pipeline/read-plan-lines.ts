/** A plan that comes as lines of JSON, read while they come. A bad line costs itself alone. */
import { isJsonObject, type Json, oneLine, type PlanFault } from '#core';
import { DEFAULT_PARSE_LIMITS, type NdjsonIssue, NdjsonStream, type ParseIssue } from '#parse';
import { STEP_TYPES } from '#plans';

export type PlanLine =
  /** Nobody has looked into the step. */
  | { readonly kind: 'step'; readonly step: Json }
  | { readonly kind: 'reasoning'; readonly text: string }
  /** The plan is whole. */
  | { readonly kind: 'finish'; readonly result?: Json };

const MAX_LINE_CHARS = 1_000_000;
const MAX_LOST = 1_000;

/** A line that begins so is a thought, up to the closing tag: what is written there is no plan yet. */
const THOUGHT = /^\s*<(think|thinking|reasoning|reflection|scratchpad)>/;

/** Reads a plan line by line. The reader never throws, and reads nothing more after a fault. */
export class PlanLines {
  /** What was tolerated. */
  readonly repaired: ParseIssue[] = [];
  /** Rows that were to be steps, or may have been, and are not to be had. */
  readonly lost: PlanFault[] = [];
  readonly #rows = new NdjsonStream();
  readonly #maxSteps: number;
  #fault: PlanFault | undefined;
  #steps = 0;
  #isWhole = false;
  #chars = 0;
  /** The line that has no end yet. */
  #line = '';
  /** The tag that closes the open thought. */
  #thought: string | undefined;
  #issuesRead = 0;

  constructor(maxSteps = 1_000) {
    this.#maxSteps = maxSteps;
  }

  /** What ended the reading: a line that is too long, too many steps or bad rows, or too much text. */
  get fault(): PlanFault | undefined {
    return this.#fault;
  }

  /** The line that ends a plan was there. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** @returns what the lines that were completed by this piece say. */
  push(chunk: string): PlanLine[] {
    const lines: PlanLine[] = [];
    let from = 0;
    while (this.#fault === undefined && from < chunk.length) {
      const newline = chunk.indexOf('\n', from);
      const to = newline < 0 ? chunk.length : newline;
      this.#grow(chunk.slice(from, to));
      if (newline >= 0 && this.#fault === undefined) lines.push(...this.#endLine('\n'));
      from = to + 1;
    }
    return lines;
  }

  /** Says that no more text comes. @returns what the last line says, if it has no end of its own. */
  end(): PlanLine[] {
    if (this.#fault !== undefined) return [];
    const lines = this.#endLine('');
    this.#rows.end();
    this.#noteIssues();
    return lines;
  }

  #grow(part: string): void {
    this.#chars += part.length;
    if (this.#line.length + part.length > MAX_LINE_CHARS) {
      this.#fault = { code: 'plan_line_too_long', message: `A line has over ${MAX_LINE_CHARS} characters.` };
    } else if (this.#chars > DEFAULT_PARSE_LIMITS.maxChars) {
      this.#fault = {
        code: 'plan_too_long',
        message: `The plan has over ${DEFAULT_PARSE_LIMITS.maxChars} characters.`,
      };
    } else {
      this.#line += part;
    }
  }

  #endLine(lineBreak: string): PlanLine[] {
    const line = this.#withoutThought(this.#line);
    this.#line = '';
    return this.#linesOf(this.#rows.push(line + lineBreak));
  }

  #withoutThought(line: string): string {
    let rest = line;
    for (;;) {
      if (this.#thought === undefined) {
        const opened = THOUGHT.exec(rest);
        if (opened === null) return rest;
        this.#thought = `</${opened[1]}>`;
      }
      const end = rest.indexOf(this.#thought);
      if (end < 0) return '';
      rest = rest.slice(end + this.#thought.length);
      this.#thought = undefined;
    }
  }

  #linesOf(rows: readonly Json[]): PlanLine[] {
    const lines: PlanLine[] = [];
    for (const row of rows) {
      for (const line of this.#readRow(row)) {
        if (line.kind === 'step') this.#steps += 1;
        if (this.#steps > this.#maxSteps) {
          this.#fault = { code: 'plan_too_long', message: `The plan has more than ${this.#maxSteps} steps.` };
          return lines;
        }
        lines.push(line);
      }
    }
    this.#noteIssues();
    return lines;
  }

  #readRow(row: Json): readonly PlanLine[] {
    if (Array.isArray(row)) return row.flatMap((inner: Json) => this.#readRow(inner));
    const read = isJsonObject(row) ? linesIn(row) : undefined;
    if (read === undefined) {
      this.#lose(
        'plan_line',
        `A row is neither a step nor the end of the plan${isJsonObject(row) ? typeShown(row) : ''}.`,
      );
      return [];
    }
    if (this.#isWhole && read.some(({ kind }) => kind === 'step')) {
      this.#lose('after_finish', 'A step comes after the line that ends the plan.');
      return [];
    }
    if (read.at(-1)?.kind === 'finish') this.#isWhole = true;
    return read;
  }

  #lose(code: string, message: string): void {
    this.lost.push({ code, message });
    if (this.lost.length < MAX_LOST) return;
    this.#fault ??= { code: 'plan_line', message: `${MAX_LOST} rows are not steps.` };
  }

  #noteIssues(): void {
    const { issues } = this.#rows;
    for (; this.#issuesRead < issues.length; this.#issuesRead += 1) {
      const { kind, line, message } = issues[this.#issuesRead] as NdjsonIssue;
      if (kind === 'lost') this.#lose('plan_line', `Line ${line}: ${message}.`);
      else if (kind === 'tolerated') this.repaired.push({ code: 'repaired', message: `line ${line}: ${message}` });
    }
  }
}

const TYPES: ReadonlySet<unknown> = new Set(STEP_TYPES);

/** What a row says. A plan as a whole, and a step that stands by itself, are as good as lines. */
function linesIn(row: { readonly [key: string]: Json }): readonly PlanLine[] | undefined {
  const { type, step, steps, text, result, id } = row;
  if (type === 'step') return isJsonObject(step) ? [{ kind: 'step', step }] : undefined;
  if (type === 'reasoning') return typeof text === 'string' ? [{ kind: 'reasoning', text }] : undefined;
  if (type === 'finish' && id === undefined)
    return [result === undefined ? { kind: 'finish' } : { kind: 'finish', result }];
  if (id !== undefined && TYPES.has(type)) return [{ kind: 'step', step: row }];
  if (type !== undefined || !Array.isArray(steps) || row['edges'] !== undefined) return undefined;
  return [...steps.map((each: Json) => ({ kind: 'step' as const, step: each })), { kind: 'finish' }];
}

function typeShown({ type }: { readonly [key: string]: Json }): string {
  return typeof type === 'string' ? `: its type is ${JSON.stringify(oneLine(type, 40))}` : '';
}
