/** Shortens a run's history when its next request has become too long: the older steps become a summary. */

import {
  asJson,
  type CompactionAttempt,
  type CompactionErrorCode,
  describeThrown,
  isJsonObject,
  type Json,
  jsonEquals,
  PilotageError,
  type Planner,
  type RunView,
  type Summary,
  systemClock,
  type Trajectory,
  type Usage,
} from '#core';
import { askStructured, estimateTokens, type ReadyModel, readyModel, usageOfError } from '#model';
import {
  answerStart,
  coerceToSchema,
  createReader,
  DEFAULT_PARSE_LIMITS,
  looseToJson,
  nextOpener,
  readContainer,
  workFor,
} from '#parse';
import type { ModelPool } from '#planners';
import { chooseCut, readSummary, SUMMARY_PARTS, SUMMARY_SCHEMA, summaryRequest } from '#prompt';
import { misfitsIn } from './answer-form.ts';
import type { CompactionOptions, ReactOptions } from './options.ts';
import { FULL_WINDOW, type Requests, windowShare } from './requests.ts';

export interface CompactorParts {
  /** Absent: the model that is asked writes its own. */
  readonly summariser: ReadyModel | undefined;
  readonly options: ReactOptions;
  readonly pool: ModelPool;
  readonly requests: Requests;
}

/** The newest steps may keep this share of what the fixed part of a request leaves; the summary and later steps need the rest. */
const KEPT_SHARE = 0.5;
/** Less than this share of the budget is not worth a call of the summariser. */
const WORTH_SHARE = 0.1;

/**
 * The model that writes summaries, if it has one of its own.
 * @throws PilotageError `invalid_config` for a value that is not a model.
 */
export function summariserOf({ compaction, prices }: ReactOptions): ReadyModel | undefined {
  const given = compaction?.summariser;
  return given === undefined ? undefined : readyModel(given, prices === undefined ? {} : { prices });
}

export function compactor(
  { budgetTokens }: CompactionOptions,
  { options, pool, requests, summariser: given }: CompactorParts,
): NonNullable<Planner['compact']> {
  return async (view, signal) => {
    const asked = pool.ranked()[0] as ReadyModel;
    const isDue = isTimeToTry(view.trajectory);
    let tokenEstimate = 0;
    let before: number | undefined;
    try {
      tokenEstimate = requests.tokensOf(view, asked);
      if (tokenEstimate <= budgetTokens) return undefined;
      // The last chance to go on is not waited away.
      if (!isDue && hasRoom(view, pool, requests)) return undefined;
      before = cutOf(view, stepSizes(view, requests, asked), tokenEstimate, budgetTokens);
    } catch (error) {
      return isDue ? failed('estimator_error', error, tokenEstimate) : undefined;
    }
    // The newest step alone is left, or next to nothing before it.
    if (before === undefined) return undefined;
    const canGoOn = hasRoom(view, pool, requests);
    return summarise({ view, before, model: given ?? asked, asked, tokenEstimate, canGoOn, options, requests }, signal);
  };
}

/** After the first failure it is tried again two steps later, then after four, eight and so on, up to this many. */
const LONGEST_WAIT = 64;

function isTimeToTry({ count, compactionFailures }: Trajectory): boolean {
  if (compactionFailures === undefined) return true;
  const { step, times } = compactionFailures;
  return count >= step + Math.min(2 ** times, LONGEST_WAIT);
}

/** Some model can still be sent the request as it is. */
function hasRoom(view: RunView, pool: ModelPool, requests: Requests): boolean {
  return pool.ranked().some((model) => windowShare(view, model, requests) < FULL_WINDOW);
}

/** Tokens of each step that is sent in full, oldest first. */
function stepSizes(view: RunView, requests: Requests, model: ReadyModel): readonly number[] {
  const transcript = requests.transcriptOf(view, model);
  const messages = transcript.upTo(view);
  const starts = transcript.stepStarts;
  return starts.map((start, index) => estimateTokens({ prompt: messages.slice(start, starts[index + 1]) }));
}

/** The step from which on everything is kept, when there is something worth summing up before it. */
function cutOf({ trajectory }: RunView, steps: readonly number[], total: number, budget: number): number | undefined {
  const fixed = total - sumOf(steps);
  const kept = chooseCut(steps, Math.max(0, budget - fixed) * KEPT_SHARE);
  const summedUp = sumOf(steps.slice(0, steps.length - kept));
  return summedUp > 0 && summedUp >= budget * WORTH_SHARE ? trajectory.count - kept : undefined;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

interface Summarising {
  readonly view: RunView;
  readonly before: number;
  /** The summariser. */
  readonly model: ReadyModel;
  /** The model that is to be asked next, whose messages are to get shorter. */
  readonly asked: ReadyModel;
  readonly tokenEstimate: number;
  /** Some model takes the request without a summary. */
  readonly canGoOn: boolean;
  readonly options: ReactOptions;
  readonly requests: Requests;
}

async function summarise(
  { view, before, model, asked, tokenEstimate, canGoOn, options, requests }: Summarising,
  signal: AbortSignal,
): Promise<CompactionAttempt> {
  const { clock = systemClock, retries, stallMs } = options;
  try {
    const made = await askStructured({
      model,
      request: { prompt: summaryRequest(view, before) },
      schema: SUMMARY_SCHEMA,
      name: 'summary',
      parse: (text) => summaryIn(text, view.trajectory.compaction?.summary),
      signal,
      clock,
      ...(retries === undefined ? {} : { retries }),
      ...(stallMs === undefined ? {} : { stallMs }),
    });
    const { usage } = made;
    if (!made.ok) return failed('summariser_error', made.error, tokenEstimate, usage);
    if ('refused' in made.value) {
      const { code, message } = made.value.refused;
      return failed(code, message, tokenEstimate, usage);
    }
    const compaction = { summary: made.value.summary, before, tokenEstimate };
    const { before: now, after } = requests.tokensWith(view, asked, compaction);
    if (after >= now) {
      const message = `The summary is not shorter than the steps: about ${after} tokens with it, ${now} without.`;
      return failed('long_summary', message, tokenEstimate, usage);
    }
    return usage === undefined ? { compaction } : { compaction, usage };
  } catch (error) {
    signal.throwIfAborted();
    // Without a summary there is no next request: the run waits for the summariser.
    if (!canGoOn && PilotageError.is(error, 'model_unavailable')) throw error;
    return failed('summariser_error', error, tokenEstimate, usageOfError(error));
  }
}

function failed(code: CompactionErrorCode, thrown: unknown, tokenEstimate: number, usage?: Usage): CompactionAttempt {
  const failure = { code, message: describeThrown(thrown) };
  return usage === undefined ? { failure, tokenEstimate } : { failure, tokenEstimate, usage };
}

// A summariser's reply: the summary may stand in a fence, behind thoughts, or between words.

type SummaryReading =
  | { readonly summary: Summary }
  | { readonly refused: { readonly code: CompactionErrorCode; readonly message: string } };

/** The last object of the text that is a whole summary; else what is wrong with the last that was to be one. */
function summaryIn(text: string, earlier: Summary | undefined): SummaryReading {
  let last: SummaryReading = refuse('empty_summary', 'The summariser gave no JSON object.');
  let found: SummaryReading | undefined;
  for (const { value, isCut } of objectsIn(text)) {
    const read = isCut ? refuse('invalid_summary', 'The summary ends before it is whole.') : readOne(value, earlier);
    if ('summary' in read) found = read;
    // A value inside an object is not better than the object.
    else if (isMeant(value)) last = read;
  }
  return found ?? last;
}

function refuse(code: CompactionErrorCode, message: string): SummaryReading {
  return { refused: { code, message } };
}

function isMeant(value: Json): boolean {
  return isJsonObject(value) && SUMMARY_PARTS.some((key) => Object.hasOwn(value, key));
}

function readOne(value: Json, earlier: Summary | undefined): SummaryReading {
  const { value: fitting, issues } = coerceToSchema(value, SUMMARY_SCHEMA);
  const misfits = misfitsIn(issues);
  if (misfits !== undefined) return refuse('invalid_summary', `The summary does not fit its schema: ${misfits}.`);
  const read = readSummary(fitting);
  if ('empty' in read) {
    const message = `The summary says nothing as ${read.empty.join(', ')}.`;
    return refuse(read.empty.length === SUMMARY_PARTS.length ? 'empty_summary' : 'invalid_summary', message);
  }
  if (earlier !== undefined && jsonEquals(asJson(read), asJson(earlier))) {
    return refuse('invalid_summary', 'The summary is the earlier one again, and says nothing of the steps since.');
  }
  return { summary: read };
}

const OPENER = /[{<]/g;

/** The objects of a text in order, also those inside others, but none of a thought. */
function* objectsIn(text: string): Generator<{ readonly value: Json; readonly isCut: boolean }> {
  const { maxChars, maxDepth } = DEFAULT_PARSE_LIMITS;
  if (text.length > maxChars) return;
  const work = workFor(text, DEFAULT_PARSE_LIMITS);
  const end = text.trimEnd().length;
  for (
    let at = nextOpener(text, OPENER, answerStart(text), work);
    at !== undefined;
    at = nextOpener(text, OPENER, at + 1, work)
  ) {
    const reader = createReader(text, at, maxDepth, work);
    const value = readContainer(reader);
    if (value === undefined) continue;
    // Where brackets are missing at the end of the text, more may be missing than brackets.
    const isOpen = reader.isLoose && reader.at >= end && text[end - 1] !== '}';
    yield { value: looseToJson(value), isCut: reader.isTruncated || isOpen };
  }
}
