/** From a model's reply to the plan in it, whose shape alone is looked at: a call, a JSON value, or lines that are read while they come. */
import { isJsonObject, type Json, type JsonObject, oneLine, type PlanFault, shownName } from '#core';
import type { Reply } from '#model';
import {
  answerStart,
  coerceToSchema,
  createReader,
  DEFAULT_PARSE_LIMITS,
  fits,
  looseToJson,
  type NdjsonIssue,
  NdjsonStream,
  nextOpener,
  type ParseIssue,
  parseToolArgs,
  type Reader,
  readContainer,
  readStrictJson,
  workFor,
} from '#parse';
import { STEP_TYPES } from '#plans';
import { type PlanForm, SUBMIT_PLAN } from './request.ts';

export type PlanReply = Pick<Reply, 'text' | 'calls' | 'finish'>;

export type ReadPlan =
  | {
      /** An object with `steps` or `nodes`; nothing else is known of it. */
      readonly value: JsonObject;
      /** What was not well formed, and was read all the same. */
      readonly repaired: readonly ParseIssue[];
      /** For a plan in lines: what is missing. The steps that came are usable as they are. */
      readonly missing?: readonly PlanFault[];
    }
  | { readonly fault: PlanFault };

/**
 * The plan of a call of `submit_plan`; else the last JSON value of the text that has the shape of a plan, with any text around
 * it; else the lines that are steps. For `ndjson` lines come before values. It never throws.
 */
export function readPlan(reply: PlanReply, form: PlanForm): ReadPlan {
  const called = chosen(
    reply.calls.flatMap(({ input }) => candidateOf(input, isCutOff(reply))),
    reply,
  );
  if (called !== undefined) return called;
  const asBlock = (): ReadPlan | undefined => chosen(blocksIn(reply.text, isCutOff(reply)), reply);
  const asLines = (): ReadPlan | undefined => readLines(reply);
  const read = form === 'json' ? (asBlock() ?? asLines()) : (asLines() ?? asBlock());
  return read ?? { fault: nothingIn(reply) };
}

interface Candidate {
  readonly value: JsonObject;
  readonly issues: readonly ParseIssue[];
  /** The text ends inside it. */
  readonly isCut: boolean;
  /** It goes up to the end of the text and is not well formed: perhaps it is not whole. */
  readonly isOpen?: true;
}

/** Steps and nodes are left as they are: what is left out of one would be left out in silence. */
const OUTLINE: JsonObject = {
  type: 'object',
  properties: {
    planId: { type: 'string' },
    steps: { type: 'array' },
    nodes: { type: 'object' },
    edges: { type: 'object' },
  },
};
const STEP: JsonObject = {
  type: 'object',
  required: ['id', 'type'],
  properties: { id: { type: 'string' }, type: { enum: STEP_TYPES } },
};
const SHAPE: JsonObject = {
  oneOf: [
    {
      type: 'object',
      required: ['planId', 'steps'],
      properties: { planId: { type: 'string' }, steps: { type: 'array', items: STEP } },
    },
    { type: 'object', required: ['nodes'], properties: { nodes: { type: 'object', additionalProperties: STEP } } },
  ],
};
const STEP_LIST: JsonObject = { type: 'array', items: STEP };

/**
 * The last that has the whole shape, else the last that is meant to be one. If the very last may not be whole, none before it
 * counts.
 */
function chosen(candidates: readonly Candidate[], reply: PlanReply): ReadPlan | undefined {
  const last = candidates.at(-1);
  if (last === undefined) return undefined;
  if (last.isCut) return { fault: cutFault(reply) };
  const shaped = last.isOpen ? last : candidates.findLast((each) => !each.isCut && fits(each.value, SHAPE, SHAPE));
  const { value, issues } = shaped ?? last;
  return { value, repaired: issues };
}

function candidateOf(input: string, cutOff: boolean): readonly Candidate[] {
  const read = parseToolArgs(input, { name: SUBMIT_PLAN, inputSchema: OUTLINE });
  if (read === null) return [];
  const isCut = read.issues.some(({ code }) => code === 'truncated' || (cutOff && code === 'repaired'));
  return isCut || isMeant(read.args) ? [{ value: read.args, issues: read.issues, isCut }] : [];
}

const REPAIRED: ParseIssue = { code: 'repaired', message: 'the text is not well-formed' };
const BARE_LIST: ParseIssue = { code: 'repaired', message: 'the steps are a list without the plan around it' };
const OPENER = /[{[<]/g;

/** Values that are meant as plans; none for a text that takes too much work to read, as the last one would be missed. */
function blocksIn(text: string, cutOff: boolean): Candidate[] {
  const { maxChars, maxDepth } = DEFAULT_PARSE_LIMITS;
  if (text.length > maxChars) return [];
  const whole = readStrictJson(text, maxDepth);
  const only = whole === undefined ? undefined : asCandidate(whole, [], false);
  if (only !== undefined) return [only];
  const work = workFor(text, DEFAULT_PARSE_LIMITS);
  const end = text.trimEnd().length;
  const found: Candidate[] = [];
  let next = answerStart(text);
  for (;;) {
    const at = nextOpener(text, OPENER, next, work);
    if (at === undefined) break;
    const reader = createReader(text, at, maxDepth, work);
    const candidate = candidateAt(reader, end, cutOff);
    if (candidate !== undefined) found.push(candidate);
    next = candidate === undefined ? at + 1 : reader.at;
  }
  return work.left > 0 ? found : [];
}

function candidateAt(reader: Reader, textEnd: number, cutOff: boolean): Candidate | undefined {
  const value = readContainer(reader);
  if (value === undefined) return undefined;
  const { isTruncated, isLoose } = reader;
  const issues = isLoose ? [REPAIRED] : [];
  // A text may also be cut between two values: then its brackets are not merely forgotten.
  const isOpen = isLoose && reader.at >= textEnd;
  if (cutOff && (isTruncated || isOpen)) return { value: {}, issues, isCut: true };
  const candidate = asCandidate(looseToJson(value), issues, isTruncated);
  return candidate === undefined || !isOpen ? candidate : { ...candidate, isOpen: true };
}

function asCandidate(json: Json, issues: readonly ParseIssue[], isCut: boolean): Candidate | undefined {
  if (Array.isArray(json)) {
    if (json.length === 0 || !fits(json, STEP_LIST, STEP_LIST)) return undefined;
    return { value: { steps: json }, issues: [...issues, BARE_LIST], isCut };
  }
  if (!isJsonObject(json)) return undefined;
  if (isCut && Object.hasOwn(json, 'planId')) return { value: json, issues, isCut };
  if (!isMeant(json)) return undefined;
  // A null is left out: then it was no plan.
  const { value, issues: changes } = coerceToSchema(json, OUTLINE);
  return isJsonObject(value) && isMeant(value) ? { value, issues: [...issues, ...changes], isCut } : undefined;
}

/** It was to be a plan. */
function isMeant(value: JsonObject): boolean {
  return Object.hasOwn(value, 'steps') || Object.hasOwn(value, 'nodes');
}

function readLines(reply: PlanReply): ReadPlan | undefined {
  const lines = new PlanLines();
  const read = [...lines.push(reply.text.slice(answerStart(reply.text))), ...lines.end()];
  const steps = read.flatMap((line) => (line.kind === 'step' ? [line.step] : []));
  if (lines.fault !== undefined && steps.length > 0) return { fault: lines.fault };
  if (steps.length === 0) return undefined;
  const finish = read.find(({ kind }) => kind === 'finish');
  if (finish?.kind === 'finish' && finish.result !== undefined) steps.push(finishStep(steps, finish.result));
  const isCut = !lines.isWhole && isCutOff(reply);
  const missing = isCut ? [...lines.lost, cutFault(reply)] : lines.lost;
  const unended = lines.isWhole || isCut ? [] : [NO_END];
  return {
    value: { steps },
    repaired: [...lines.repaired, ...unended],
    ...(missing.length === 0 ? {} : { missing }),
  };
}

const NO_END: ParseIssue = { code: 'repaired', message: 'the line that ends the plan is not there' };

/** A result that stands in the line of the end: a step behind all others. */
export function finishStep(steps: readonly Json[], result: Json): JsonObject {
  const ids = steps.flatMap((step) => (isJsonObject(step) && typeof step['id'] === 'string' ? [step['id']] : []));
  let id = 'finish';
  while (ids.includes(id)) id = `_${id}`;
  return { id, type: 'finish', input: result, after: [...new Set(ids)] };
}

/** The model had not come to its end. */
function isCutOff({ finish }: PlanReply): boolean {
  return finish !== 'stop' && finish !== 'tool-calls' && finish !== 'other';
}

function cutFault({ finish }: PlanReply): PlanFault {
  const why = finish === 'length' ? ': the limit of output tokens was reached' : '';
  return { code: 'plan_cut', message: `The plan ends before it is whole${why}.` };
}

function nothingIn(reply: PlanReply): PlanFault {
  const { text, calls } = reply;
  if (isCutOff(reply)) return cutFault(reply);
  const [call] = calls;
  if (call !== undefined) {
    const message =
      call.tool === SUBMIT_PLAN
        ? `The arguments of ${SUBMIT_PLAN} are not a plan: an object with "planId" and "steps" is needed.`
        : `The reply calls ${shownName(call.tool)}, which is not a plan.`;
    return { code: 'plan_unreadable', message };
  }
  if (text.trim() === '') return { code: 'plan_unreadable', message: 'The reply is empty.' };
  return {
    code: 'plan_unreadable',
    message: 'No plan is in the reply: an object with "planId" and "steps" is needed.',
  };
}

// A plan in lines of JSON. A bad line costs itself alone.

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
