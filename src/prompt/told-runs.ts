/** Earlier runs of the session as messages of a request, as many of them as there is room for. */
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import {
  type Compaction,
  type EarlierRun,
  type EarlierRuns,
  jsonText,
  keptFrom,
  partsBefore,
  type RunView,
  type Step,
  textOfParts,
} from '#core';
import { MADE_ID } from './call-turns.ts';
import { coveredRuns, plainSummary } from './compaction.ts';
import { cutShort, LEAST_CHARS } from './earlier-turns.ts';
import { note, userTurn } from './frame.ts';
import { type AssistantPart, isOwnReply, restoreParts } from './provider-parts.ts';
import { type RequestParts, RunMessages, type StepsView } from './run-messages.ts';
import { replyTo } from './step-parts.ts';
import { callsMadeTurn, summaryTurn } from './untrusted.ts';
import { filePart, requestWords } from './user-turn.ts';

export interface ToldEarlier {
  readonly messages: readonly LanguageModelV4Message[];
  /** Where each run begins that the run's own summary does not cover. */
  readonly starts: readonly number[];
  /** How many of these have no room. */
  readonly leftOut: number;
}

/** So many files of results are shown of all earlier runs, the newest. */
const MOST_FILES = 16;
/** So many steps of one earlier run are told in full, when nobody has summed up the others. */
const MOST_STEPS = 200;

/**
 * The newest runs whole, as many as have at most `maxChars` together. Of more, the oldest exchanges leave, and stay away in later requests. The newest alone
 * is cut when it is too long by itself.
 */
export function toldRuns(
  earlier: EarlierRuns,
  view: RunView,
  parts: RequestParts,
  { maxChars = Number.POSITIVE_INFINITY }: { readonly maxChars?: number },
): ToldEarlier {
  const { compaction } = view.trajectory;
  const runs = earlier.runs.slice(coveredRuns(earlier, compaction));
  const summary = compaction?.earlier === undefined ? earlier.summary : compaction.before > 0 ? undefined : compaction;
  const messages: LanguageModelV4Message[] = [];
  if (summary !== undefined) {
    const made = callsMadeTurn(summary.made ?? []);
    messages.push(summaryTurn(summary.summary), ...(made === undefined ? [] : [made]));
  }
  const shownFrom = keptFrom(
    runs.map(({ media }) => media?.bytes.size ?? 0),
    MOST_FILES,
  );
  const told = runs.map((run, index) => toldRun(run, view, parts, { showsFiles: index >= shownFrom }));
  const exchanges = told.flatMap((each, run) => partsOf(each).map((part) => ({ run, part, chars: charsOf(part) })));
  const from = keptFrom(
    exchanges.map(({ chars }) => chars),
    maxChars,
  );
  const last = exchanges.at(-1);
  if (from === exchanges.length - 1 && last !== undefined && last.chars > maxChars) {
    const run = runs.at(-1) as EarlierRun;
    const short = toldRun(run, view, parts, { showsFiles: true, maxChars });
    exchanges.splice(from, 1, { ...last, part: partsOf(short).at(-1) ?? [] });
  }
  const kept = exchanges.slice(from);
  if (from > 0) messages.push(userTurn(note(LEFT_OUT)));
  const leftOut = kept[0]?.run ?? 0;
  const starts = runs.slice(0, leftOut).map(() => messages.length);
  for (const { run, part } of kept) {
    if (starts.length === run) starts.push(messages.length);
    messages.push(...part);
  }
  return { messages, starts, leftOut };
}

const LEFT_OUT = 'Earlier turns of this conversation are left out.';

interface Told {
  readonly messages: readonly LanguageModelV4Message[];
  /** Where each exchange with the user begins. */
  readonly starts: readonly number[];
}

function partsOf({ messages, starts }: Told): readonly (readonly LanguageModelV4Message[])[] {
  return starts.map((start, index) => messages.slice(start, starts[index + 1]));
}

function toldRun(
  run: EarlierRun,
  { tools }: RunView,
  parts: RequestParts,
  { showsFiles, maxChars }: { readonly showsFiles: boolean; readonly maxChars?: number },
): Told {
  const { trajectory, from = 0, media, end } = run;
  const { options, write: writeWhole } = parts;
  // Half of what there is for each of the two texts; steps are told in a few words.
  const write = maxChars === undefined ? writeWhole : (said: string) => cutText(said, maxChars, writeWhole);
  const messages: LanguageModelV4Message[] = [];
  const rules = { madeIds: `${MADE_ID}${shortDigest(run.run)}.`, from };
  const steps = new RunMessages(messages, { ...parts, write }, rules);
  const view: StepsView = {
    trajectory,
    tools,
    ...(media === undefined ? {} : { media: showsFiles ? media : { ...media, from: Number.POSITIVE_INFINITY } }),
  };
  if (from > 0) {
    messages.push(userTurn(replyTo(trajectory.step(from - 1) as Step, write)));
    steps.skipTo(trajectory, from);
  } else {
    const text = requestWords(run, write);
    const words = text === '' ? [] : [{ type: 'text' as const, text }];
    const rule = { takes: options.takes };
    const content = [...words, ...run.inputs.map((input) => filePart(input, rule, tools, 'an earlier message'))];
    if (content.length > 0) messages.push({ role: 'user', content });
    const compaction = maxChars === undefined ? summaryFor(run) : shortest(run);
    if (compaction !== undefined) steps.addSummary(compaction, view);
  }
  steps.upTo(view);
  steps.close(trajectory);
  const reply = replyOf(run, parts, maxChars);
  if (reply.length > 0) messages.push({ role: 'assistant', content: [...reply] });
  steps.addOthersActs({ ...end, files: end.files ?? [] }, view);
  return { messages, starts: [0, ...steps.exchanges] };
}

/** The summary in place of its first steps: the run's own, or a few words where it has very many steps. */
function summaryFor(run: EarlierRun): Compaction | undefined {
  const { compaction, count } = run.trajectory;
  if (compaction !== undefined && compaction.before > 0) return compaction;
  return count > MOST_STEPS ? plain(run, count - MOST_STEPS / 2) : undefined;
}

/** A few words in place of all its steps. */
function shortest(run: EarlierRun): Compaction | undefined {
  const { count } = run.trajectory;
  return count === 0 ? undefined : plain(run, count);
}

function plain({ query, trajectory }: EarlierRun, before: number): Compaction {
  return { summary: plainSummary({ goal: query, trajectory }, before), before, tokenEstimate: 0 };
}

/** What the run said at its end, in its provider's own form where the model is that provider's. */
function replyOf(
  { end, media, trajectory }: EarlierRun,
  { options, known }: RequestParts,
  maxChars: number | undefined,
): readonly AssistantPart[] {
  const { text = '', answer = '', unanswered, files = [] } = end;
  // Where a reply came in pieces, the others stand in the steps before.
  const before = textOfParts(partsBefore(trajectory, trajectory.count));
  const said = unanswered !== undefined ? text : answer.startsWith(before) ? answer.slice(before.length) : answer;
  const own =
    maxChars === undefined && isOwnReply(end, options)
      ? restoreParts({ ...end, files }, [], options, known, media)
      : undefined;
  const words = maxChars === undefined ? said : cutText(said, maxChars, (whole) => whole);
  const plain: AssistantPart[] = words === '' ? [] : [{ type: 'text', text: words }];
  // An answer that was read out of the reply, such as a form that was filled in, stands in its place.
  const parts = own !== undefined && textIn(own).trim() === said.trim() ? own : plain;
  const why = unanswered ?? (parts.length + files.length === 0 ? NO_ANSWER : undefined);
  return why === undefined ? parts : [...parts, { type: 'text', text: `(${why})` }];
}

const NO_ANSWER = 'There is no answer.';

function textIn(parts: readonly AssistantPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** Each of the two texts of a run that is too long has half of what there is. */
function cutText(text: string, maxChars: number, write: (text: string) => string): string {
  return cutShort(text, Math.max(LEAST_CHARS, Math.floor(maxChars / 2)), write);
}

function charsOf(messages: readonly LanguageModelV4Message[]): number {
  return messages.reduce(
    (sum, { content }) => sum + (typeof content === 'string' ? content.length : contentChars(content)),
    0,
  );
}

function contentChars(content: Exclude<LanguageModelV4Message['content'], string>): number {
  let sum = 0;
  for (const part of content) {
    if (part.type === 'text' || part.type === 'reasoning') sum += part.text.length;
    else if (part.type === 'tool-call') sum += jsonText(part.input as never).length;
    else if (part.type === 'tool-result') sum += outputChars(part.output);
  }
  return sum;
}

function outputChars(
  output: Extract<
    Extract<LanguageModelV4Message, { role: 'tool' }>['content'][number],
    { type: 'tool-result' }
  >['output'],
): number {
  if (output.type === 'content')
    return output.value.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
  return output.type === 'execution-denied' ? (output.reason?.length ?? 0) : jsonText(output.value as never).length;
}

/** A few letters that differ from one run to the next: ids of calls may not be long. */
function shortDigest(run: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < run.length; index += 1) hash = Math.imul(hash ^ run.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(36);
}
