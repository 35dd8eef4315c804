/**
 * Shortens a run's history when its next request has become too long, or did not fit its model: the older steps become a summary, and
 * results of the newest one that are too large become previews.
 */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import {
  addUsage,
  asJson,
  assertIdentity,
  type CompactionAttempt,
  type CompactionErrorCode,
  describeThrown,
  isBeforeRest,
  isJsonObject,
  type Json,
  jsonEquals,
  jsonText,
  type Outcome,
  PilotageError,
  type Planner,
  type RunView,
  type Shortening,
  type Summary,
  systemClock,
  type Trajectory,
  type Usage,
  withUsage,
} from '#core';
import { askStructured, estimateTokens, type ReadyModel, readyModel, type Structured, usageOfError } from '#model';
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
import { leftFor, type ModelPool } from '#planners';
import {
  awaitsCode,
  chooseCut,
  cutAt,
  earlierActs,
  plainSummary,
  readSummary,
  SUMMARY_PARTS,
  SUMMARY_SCHEMA,
  summaryRequest,
  summedUpTo,
} from '#prompt';
import { misfitsIn } from './answer-form.ts';
import type { ReactOptions } from './options.ts';
import { type Requests, withCompaction } from './requests.ts';
import { limitOf, mayBeSent, replyTokens } from './room.ts';

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

/** A run that was not asked to keep to a budget, and whose requests have fitted so far, costs nothing. */
export function compactor(parts: CompactorParts): NonNullable<Planner['compact']> {
  const isAsked = parts.options.compaction !== undefined;
  return (view, signal) =>
    isAsked || view.trajectory.contextLimits !== undefined ? shorten(view, signal, parts) : undefined;
}

async function shorten(
  view: RunView,
  signal: AbortSignal,
  parts: CompactorParts,
): Promise<CompactionAttempt | undefined> {
  signal.throwIfAborted();
  assertIdentity(view.identity);
  const { options, pool, requests, summariser: given } = parts;
  const asked = pool.ranked()[0] as ReadyModel;
  const isDue = isTimeToTry(view.trajectory);
  let need: Need | undefined;
  let place: number | undefined;
  let canGoOn = true;
  try {
    need = needOf(view, asked, options.compaction?.budgetTokens, requests);
    if (need === undefined) return undefined;
    canGoOn = hasRoom(view, pool, requests);
    // Who gave several models, and no budget, wants the next one asked with the whole history.
    if (canGoOn && (!isDue || need.isLearnt) && options.compaction === undefined) return undefined;
    // The last chance to go on is not waited away.
    if (canGoOn && !isDue) return undefined;
    const sizes = sizesOf(view, requests, asked);
    const hasFailed = view.trajectory.compactionFailures?.step === view.trajectory.count;
    place = hasFailed ? undefined : cutOf(view, sizes, need, WORTH_SHARE);
    if (place === undefined && !canGoOn) {
      const shorter = shorteningOf(view, sizes.told, need);
      if (shorter !== undefined) return { shorten: shorter, tokenEstimate: need.tokens };
      place = hasFailed ? undefined : cutOf(view, sizes, need, 0);
    }
  } catch (error) {
    return isDue ? failed('estimator_error', error, need?.tokens ?? 0) : undefined;
  }
  // The newest step alone is left, or next to nothing before it.
  if (place === undefined) return undefined;
  const model = given ?? asked;
  return summarise({ view, place, model, asked, tokenEstimate: need.tokens, canGoOn, options, requests }, signal);
}

/** How long the next request is, and how long it may be: with the user's own budget as far as counts of the provider go, else by our own. */
interface Need {
  readonly tokens: number;
  readonly budget: number;
  readonly isLearnt: boolean;
}

/** `undefined`: it is short enough. */
function needOf(
  view: RunView,
  asked: ReadyModel,
  budgetTokens: number | undefined,
  requests: Requests,
): Need | undefined {
  const most = limitOf(view, asked)?.tokens;
  const own = most === undefined ? 0 : requests.ownTokensOf(view, asked);
  if (most !== undefined && own >= most) return { tokens: own, budget: most, isLearnt: true };
  if (budgetTokens === undefined) return undefined;
  const tokens = requests.tokensOf(view, asked);
  const isLong =
    tokens > budgetTokens || (view.earlier !== undefined && requests.transcriptOf(view, asked).runsLeftOut > 0);
  return isLong ? { tokens, budget: budgetTokens, isLearnt: false } : undefined;
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
  return pool.ranked().some((model) => mayBeSent(view, model, requests));
}

interface Sizes {
  /** Tokens of each earlier run and each step that is sent in full, oldest first. */
  readonly told: readonly number[];
  /** How many earlier runs before them have no room. They are summed up with whatever is. */
  readonly leftOut: number;
}

function sizesOf(view: RunView, requests: Requests, model: ReadyModel): Sizes {
  const transcript = requests.transcriptOf(view, model);
  const messages = transcript.upTo(view);
  const { stepStarts, runStarts, runsLeftOut: leftOut } = transcript;
  const runs = runStarts.slice(leftOut);
  const sizeOf = (start: number, end: number | undefined): number =>
    estimateTokens({ prompt: messages.slice(start, end) });
  return {
    told: [
      ...runs.map((start, index) => sizeOf(start, runs[index + 1] ?? transcript.runsEnd)),
      ...stepStarts.map((start, index) => sizeOf(start, stepStarts[index + 1])),
    ],
    leftOut,
  };
}

/**
 * The place from which on everything is kept, when there is something worth summing up before it.
 * @param worth less than this share of the budget is not.
 */
function cutOf(view: RunView, { told, leftOut }: Sizes, need: Need, worth: number): number | undefined {
  const { tokens, budget } = need;
  const { trajectory, earlier } = view;
  const fixed = tokens - sumOf(told);
  const all = (earlier?.runs.length ?? 0) + trajectory.count;
  let kept = chooseCut(told, Math.max(0, budget - fixed) * KEPT_SHARE);
  // A reply that has come in several steps stays whole, and so does code of the provider's with the calls that it makes.
  for (; kept < told.length; kept += 1) {
    const before = trajectory.step(trajectory.count - kept - 1);
    if (before === undefined || !(isBeforeRest(before) || awaitsCode(before))) break;
  }
  const summedUp = sumOf(told.slice(0, told.length - kept));
  return leftOut > 0 || (summedUp > 0 && summedUp >= budget * worth) ? all - kept : undefined;
}

/** The results of the newest step may have this share of what the rest of the request leaves. */
const RESULTS_SHARE = 0.6;
const BYTES_PER_TOKEN = 4;
/** What a preview has beside its text, and the least that it has of it, in bytes. */
const PREVIEW_BYTES = 500;
const LEAST_PREVIEW_BYTES = 200;

/** The results of the newest step that are too large for what the model takes. `undefined`: none of them is. */
function shorteningOf({ trajectory }: RunView, steps: readonly number[], need: Need): Shortening | undefined {
  const last = trajectory.step(trajectory.count - 1);
  if (last === undefined) return undefined;
  const sizes = last.calls.map(({ outcome }) => (outcome.kind === 'value' ? sizeOf(outcome) : 0));
  const large = sizes.filter((size) => size > LEAST_PREVIEW_BYTES + PREVIEW_BYTES).length;
  if (large === 0) return undefined;
  const room = Math.max(0, need.budget - need.tokens + (steps.at(-1) ?? 0));
  const bytes = Math.max(
    LEAST_PREVIEW_BYTES,
    Math.floor((room * RESULTS_SHARE * BYTES_PER_TOKEN) / large) - PREVIEW_BYTES,
  );
  const calls = sizes.flatMap((size, call) => (size > bytes + PREVIEW_BYTES ? [call] : []));
  return calls.length === 0 ? undefined : { calls, bytes };
}

/** A preview has no files: they are left out with the rest. */
function sizeOf({ value, modelOutput }: Extract<Outcome, { kind: 'value' }>): number {
  const files = modelOutput?.type === 'content' ? modelOutput.value.filter(({ type }) => type === 'file').length : 0;
  return jsonText(value).length + files * FILE_BYTES;
}

/** About as much text as has the tokens of a picture. */
const FILE_BYTES = 6_000;

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

interface Summarising {
  readonly view: RunView;
  /** What is before it is summed up. */
  readonly place: number;
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

async function summarise(of: Summarising, signal: AbortSignal): Promise<CompactionAttempt> {
  const { view, place, asked, tokenEstimate, canGoOn, requests } = of;
  let usage: Usage | undefined;
  let failure: CompactionAttempt;
  try {
    const written = await summaryOf(of, signal, (used) => {
      usage = addUsage(usage, used);
    });
    failure = 'refused' in written ? refusedFor(written.refused, tokenEstimate, usage) : tried(written.summary);
  } catch (error) {
    if (signal.aborted) throw withUsage(error, usage);
    // Without a summary there is no next request: the run waits for the summariser.
    if (!canGoOn && PilotageError.is(error, 'model_unavailable')) throw error;
    const used = usageOfError(error);
    failure = failed('summariser_error', error, tokenEstimate, used === undefined ? usage : addUsage(usage, used));
  }
  if (canGoOn || 'compaction' in failure) return failure;
  // The only way on: what was done is told without a model.
  const plain = tried(plainSummary(view, place));
  return 'compaction' in plain ? plain : failure;

  function tried(summary: Summary): CompactionAttempt {
    const cut = cutAt(view, place);
    const made = cut.earlier === undefined ? [] : earlierActs(view, place);
    const compaction = { summary, ...cut, tokenEstimate, ...(made.length === 0 ? {} : { made }) };
    const { before: now, after } = requests.tokensWith(view, asked, compaction);
    // Turns that have no room are not in the request, which gets no shorter without them.
    if (after < now || requests.transcriptOf(view, asked).runsLeftOut > 0)
      return usage === undefined ? { compaction } : { compaction, usage };
    const message = `The summary is not shorter than the steps: about ${after} tokens with it, ${now} without.`;
    return failed('long_summary', message, tokenEstimate, usage);
  }
}

type Refusal = Extract<SummaryReading, { refused: unknown }>['refused'];

function refusedFor({ code, message }: Refusal, tokenEstimate: number, usage: Usage | undefined): CompactionAttempt {
  return failed(code, message, tokenEstimate, usage);
}

/** The summary needs the rest of the summariser's window. */
const PIECE_SHARE = 0.7;
/** How often a piece is made smaller that its summariser does not take. */
const MOST_TRIES = 6;

/**
 * The summary of the steps, in as many pieces as the summariser needs: each is summed up with the summary of those before it.
 * @param note is told what each request has used.
 * @throws what the summariser throws.
 */
async function summaryOf(
  { view, place, model, canGoOn, options, requests }: Summarising,
  signal: AbortSignal,
  note: (used: Usage) => void,
): Promise<SummaryReading> {
  const { clock = systemClock, retries, stallMs } = options;
  const windows = [limitOf(view, model)?.tokens, model.contextTokens].filter((tokens) => tokens !== undefined);
  let most = windows.length === 0 ? undefined : Math.min(...windows) * PIECE_SHARE;
  let maxOutputTokens = replyTokens(view, model, requests, undefined);
  const earlier = (view.trajectory.compaction ?? view.earlier?.summary)?.summary;
  let sofar = view;
  let used: Usage | undefined;
  const count = (more: Usage | undefined): void => {
    if (more === undefined) return;
    used = addUsage(used, more);
    note(more);
  };
  for (let tries = 1; ; ) {
    const piece = pieceOf(sofar, place, most);
    let made: Structured<SummaryReading>;
    try {
      made = await askStructured({
        model,
        request: { prompt: piece.prompt, ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }) },
        schema: SUMMARY_SCHEMA,
        name: 'summary',
        // Where the run cannot go on without one, a summary that has not changed is better than none.
        parse: (text) => summaryIn(text, canGoOn ? earlier : undefined),
        signal,
        clock,
        left: leftFor(view, used),
        ...(retries === undefined ? {} : { retries }),
        ...(stallMs === undefined ? {} : { stallMs }),
      });
    } catch (error) {
      const overflow = PilotageError.is(error, 'context_window_exceeded') ? error.data?.['overflow'] : undefined;
      if (!isJsonObject(overflow) || tries === MOST_TRIES) throw error;
      tries += 1;
      count(usageOfError(error));
      if (overflow['kind'] === 'output') maxOutputTokens = Number(overflow['mostTokens']);
      else most = piece.tokens / 2;
      continue;
    }
    count(made.usage);
    if (!made.ok) throw made.error;
    if ('refused' in made.value || piece.place === place) return made.value;
    const done = { summary: made.value.summary, ...cutAt(view, piece.place), tokenEstimate: piece.tokens };
    sofar = { ...view, trajectory: withCompaction(view.trajectory, done) };
  }
}

interface Piece {
  readonly place: number;
  readonly prompt: LanguageModelV4Prompt;
  readonly tokens: number;
}

/** How many characters of each text the summariser is given, at most. The last ones are for steps that are too large by themselves. */
const TEXT_CHARS = [4_000, 1_000, 250] as const;

/** The first of the steps that are to be summed up: as many as fit. At least one step, as short as it can be told. */
function pieceOf(view: RunView, place: number, most: number | undefined): Piece {
  const from = summedUpTo(view);
  const upTo = (to: number, maxChars: number): Piece => {
    const prompt = summaryRequest(view, to, maxChars);
    return { place: to, prompt, tokens: estimateTokens({ prompt }) };
  };
  let least = upTo(place, TEXT_CHARS[0]);
  if (most === undefined || least.tokens <= most) return least;
  for (const maxChars of TEXT_CHARS) {
    least = upTo(from + 1, maxChars);
    if (least.tokens <= most) return largest(least, place, (to) => upTo(to, maxChars), most);
  }
  return least;
}

/** The longest piece that fits, between one that does and the whole. */
function largest(fits: Piece, place: number, upTo: (to: number) => Piece, most: number): Piece {
  let found = fits;
  for (let over = place + 1; over - found.place > 1; ) {
    const middle = upTo(Math.floor((found.place + over) / 2));
    if (middle.tokens <= most) found = middle;
    else over = middle.place;
  }
  return found;
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
export function* objectsIn(text: string): Generator<{ readonly value: Json; readonly isCut: boolean }> {
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
