/** From a model's reply to the plan in it, whose shape alone is looked at. */
import { isJsonObject, type Json, type JsonObject, type PlanFault, shownName } from '#core';
import type { Reply } from '#model';
import {
  answerStart,
  coerceToSchema,
  createReader,
  DEFAULT_PARSE_LIMITS,
  fits,
  looseToJson,
  nextOpener,
  type ParseIssue,
  parseToolArgs,
  type Reader,
  readContainer,
  readStrictJson,
  workFor,
} from '#parse';
import { STEP_TYPES } from '#plans';
import { PlanLines } from './read-plan-lines.ts';
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
  const { finish, text, calls } = reply;
  if (finish === 'content-filter') return { code: 'plan_unreadable', message: 'The model, or its provider, refused.' };
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
