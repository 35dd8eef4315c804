/**
 * The steps of one run as messages of a request, be it the run that is asked for or an earlier one of its session: what was told of a step in its own
 * run is told of it later. Messages are only ever added, and each step is turned into messages once.
 */
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import {
  type ArtifactRow,
  answerFiles,
  type BackgroundResult,
  type CallRecord,
  type Compaction,
  defined,
  isRefusedReply,
  isWokenByTasks,
  type MediaView,
  messageFiles,
  type RunView,
  type SteeringTurn,
  type Step,
  type Trajectory,
  userAnswer,
} from '#core';
import { addNativeTurns, addTextTurns, MADE_ID } from './call-turns.ts';
import { type ActLine, actLines, shownActs } from './compaction.ts';
import { madeTurn } from './earlier-turns.ts';
import type { FileRules } from './file-rules.ts';
import { assistantTurn, type CallMode, frame, note, quotedJson, type UserWords, userTurn } from './frame.ts';
import {
  type AssistantPart,
  actsOfProvider,
  awaitsCode,
  filesForOthers,
  isOwnReply,
  isTold,
  type OwnForm,
  type Recipient,
  restoreParts,
  withoutOpenCalls,
} from './provider-parts.ts';
import {
  callsOf,
  isWaitingAnswer,
  replyTo,
  type StepCall,
  saidIn,
  shownCalls,
  toldText,
  verdictText,
} from './step-parts.ts';
import { toolEntry } from './tool-text.ts';
import {
  artifactLines,
  artifactsOf,
  artifactTurn,
  callsMadeTurn,
  groupText,
  summaryTurn,
  taskTurn,
} from './untrusted.ts';
import { filePart, isSpoken, spokenTurn, steeringText } from './user-turn.ts';

export interface MessageOptions extends Recipient, FileRules {
  readonly mode: CallMode;
  /** False: the model cannot start tasks or wait for them, so that it is not shown calls that did. Default true. */
  readonly tasks?: boolean;
  /** How many examples of a found tool are shown in text mode. Default 3. */
  readonly maxExamples?: number;
}

/** What the messages of a request share, whichever run they tell of. */
export interface RequestParts {
  readonly options: MessageOptions;
  /** How a user's own words are written. */
  readonly write: UserWords;
  /** Ids of calls that the request has. */
  readonly callIds: Set<string>;
  /** Ids of the calls that providers have carried out, as far as the request has them. */
  readonly known: Set<string>;
}

/** What is looked at of a view, or of an earlier run. */
export type StepsView = Pick<RunView, 'trajectory' | 'media' | 'tools'>;

/** What is told of an earlier run, which goes on no more. */
export interface EarlierRules {
  /** How the ids of its calls begin that no provider has named. */
  readonly madeIds: string;
  /** It is told from this step on. */
  readonly from: number;
}

export class RunMessages {
  readonly #messages: LanguageModelV4Message[];
  readonly #parts: RequestParts;
  readonly #earlier: EarlierRules | undefined;
  /** Deferred tools that the messages tell of; text mode only. */
  readonly #announced = new Set<string>();
  /** Where the messages of each step that is sent in full begin, with those that came in just before it. */
  readonly #starts: number[] = [];
  /** What is told once the provider's code has its results. */
  readonly #later: LanguageModelV4Message[] = [];
  #steps = 0;
  #turns = 0;
  #results = 0;
  #lastStep: Step | undefined;
  #lastTurn: SteeringTurn | undefined;
  #lastResult: BackgroundResult | undefined;

  /** @param earlier absent: it is the run that is asked for. */
  constructor(messages: LanguageModelV4Message[], parts: RequestParts, earlier?: EarlierRules) {
    this.#messages = messages;
    this.#parts = parts;
    this.#earlier = earlier;
  }

  /** Where each further exchange with the user begins: at the answer to a question of the run. */
  readonly exchanges: number[] = [];

  get stepStarts(): readonly number[] {
    return this.#starts;
  }

  /** What was told so far is how that trajectory begins. */
  isPastOf(trajectory: Trajectory): boolean {
    const { count, steering, background } = trajectory;
    const lastResult = this.#lastResult;
    return (
      this.#steps <= count &&
      (this.#lastStep === undefined || trajectory.step(this.#steps - 1) === this.#lastStep) &&
      (this.#lastTurn === undefined || steering[this.#turns - 1] === this.#lastTurn) &&
      (lastResult === undefined || background[this.#results - 1] === lastResult) &&
      // A message of the same step that came later has its place before the results.
      (lastResult === undefined || (steering[this.#turns]?.atStep ?? Infinity) > lastResult.atStep)
    );
  }

  /** Adds what is new. */
  upTo(view: StepsView): void {
    const { trajectory } = view;
    for (; this.#steps < trajectory.count; this.#steps += 1) {
      this.#starts.push(this.#messages.length);
      this.#addWaiting(view);
      const step = trajectory.step(this.#steps) as Step;
      this.#addStep(step, view);
      this.#lastStep = step;
    }
    this.#addWaiting(view);
  }

  /** Passes by the steps before that one, and what was said before it. */
  skipTo(trajectory: Trajectory, from: number): void {
    const { steering, background } = trajectory;
    for (; this.#turns < steering.length; this.#turns += 1) {
      const { atStep, beforeAnswer } = steering[this.#turns] as SteeringTurn;
      if (atStep > from || (atStep === from && beforeAnswer !== true)) break;
    }
    for (; (background[this.#results]?.atStep ?? Infinity) < from; this.#results += 1);
    this.#steps = from;
    this.#lastStep = trajectory.step(from - 1);
  }

  /** An earlier run says no more: nothing of its last reply may stay open. */
  close(trajectory: Trajectory): void {
    this.#messages.push(...this.#later.splice(0));
    if (goesOnAt(trajectory, trajectory.count)) this.#closeCalls(this.#messages.length);
  }

  /** What is told between two steps, unless code of the provider's waits for nothing but results: then it is told behind the next. */
  #addWaiting(view: StepsView): void {
    if (this.#lastStep !== undefined && awaitsCode(this.#lastStep)) return;
    if (this.#later.length > 0) this.#messages.push(...this.#later.splice(0));
    this.#addArrivals(view, this.#steps);
  }

  /** The ids of a step's calls, which are taken from then on. */
  #claimIds(step: Step, calls: readonly StepCall[]): string[] {
    const { callIds } = this.#parts;
    const { madeIds = MADE_ID } = this.#earlier ?? {};
    const wanted = calls.map((call) => call.callId);
    const ids = uniqueIds(wanted, callIds, `${madeIds}${step.index}`, step.decision.kind !== 'call_parallel');
    for (const id of ids) callIds.add(id);
    return ids;
  }

  /** What came in before a step: messages, then what tasks came to. A summary has all but what `keeps` wants. */
  #addArrivals(view: StepsView, step: number, keeps?: (turn: SteeringTurn) => boolean): void {
    const { trajectory } = view;
    const { background } = trajectory;
    const from = this.#messages.length;
    this.#addTurns(view, ({ atStep }) => atStep <= step, keeps);
    for (; this.#results < background.length; this.#results += 1) {
      const result = background[this.#results] as BackgroundResult;
      if (result.atStep > step) break;
      if (keeps === undefined) this.#messages.push(taskTurn(quotedJson(groupText(result.group))));
      this.#lastResult = result;
    }
    const isNews = keeps === undefined && this.#messages.length > from;
    if (isNews && goesOnAt(trajectory, step)) this.#breakOff(from);
  }

  /**
   * The reply before the message at `from` goes on no more, for something came in between: it begins anew. No provider takes a turn of its
   * own with calls that it has not finished when another turn stands behind it.
   */
  #breakOff(from: number): void {
    this.#closeCalls(from);
    this.#messages.push(userTurn(note(ANEW)));
  }

  #closeCalls(from: number): void {
    const last = this.#messages[from - 1];
    if (last?.role !== 'assistant') return;
    const content = withoutOpenCalls(last.content, this.#parts.known);
    this.#messages.splice(from - 1, 1, ...(content.length === 0 ? [] : [{ ...last, content }]));
  }

  /** What was said between the question of the step and its answer. */
  #addBeforeAnswer(view: StepsView, { index }: Step, keeps?: (turn: SteeringTurn) => boolean): void {
    this.#addTurns(view, ({ atStep, beforeAnswer }) => beforeAnswer === true && atStep === index + 1, keeps);
  }

  /** The messages that come next, as long as they are of `those`. */
  #addTurns(view: StepsView, those: (turn: SteeringTurn) => boolean, keeps?: typeof those): void {
    const { steering } = view.trajectory;
    for (; this.#turns < steering.length; this.#turns += 1) {
      const turn = steering[this.#turns] as SteeringTurn;
      if (!those(turn)) break;
      if (keeps === undefined || keeps(turn)) this.#messages.push(this.#spoken(turn, view));
      this.#lastTurn = turn;
    }
  }

  #spoken(turn: SteeringTurn, view: StepsView): LanguageModelV4Message {
    const { type, payload } = turn.control;
    const files = type === 'USER_MESSAGE' ? messageFiles(payload) : [];
    return spokenTurn(steeringText(turn, this.#parts.write), files, this.#parts.options, view);
  }

  #addStep(step: Step, view: StepsView): void {
    if (isRefusedReply(step)) return;
    const { mode, replay, tasks = true } = this.#parts.options;
    const all = shownCalls(step, tasks);
    const few = this.#earlier === undefined ? undefined : fewCalls(all);
    const { calls, told } = few ?? all;
    const left = few?.left ?? 0;
    const said = saidIn(step, replay);
    if (calls.length + told.length === 0) {
      const own = this.#ownWords(step, view.media);
      const content = own ?? said.map((text) => ({ type: 'text' as const, text }));
      if (content.length > 0) this.#messages.push({ role: 'assistant', content });
      // Its provider goes on with its own turn, when nothing stands behind it.
      if (step.partial === 'paused' && own !== undefined && isOwnReply(step, this.#parts.options)) return;
      this.addOthersActs(step, view);
      if (userAnswer(step) !== '') this.exchanges.push(this.#messages.length);
      this.#addBeforeAnswer(view, step);
      const reply = replyTo(step, this.#parts.write);
      const answer = spokenTurn(reply, answerFiles(step), this.#parts.options, view);
      this.#messages.push(isWaitingAnswer(step) ? taskTurn(reply, ANSWERED) : answer);
      return;
    }
    const ids = this.#claimIds(step, calls);
    // The provider's form of a reply has a place for each of its calls.
    const isPlain = told.length > 0 || left > 0 || this.#isCutOff(step, view);
    const form = isPlain ? {} : step;
    const { tools, media } = view;
    const files = { rules: this.#parts.options, step: step.index, media };
    const after = awaitsCode(step) && !isPlain ? this.#later : this.#messages;
    const turns = {
      messages: this.#messages,
      after,
      form,
      calls,
      said,
      to: this.#parts.options,
      known: this.#parts.known,
      files,
      tools,
    };
    if (calls.length === 0) {
      if (said.length > 0) this.#messages.push(assistantTurn(said.join('\n\n')));
    } else if (mode === 'native') addNativeTurns(turns, ids);
    else addTextTurns(turns);
    this.addOthersActs(step, view);
    if (told.length > 0) after.push(userTurn(toldText(told)));
    if (left > 0) after.push(userTurn(note(`${left} more calls of that step, in the middle of it, are left out.`)));
    if (leftNothing(step)) return;
    const lost = lostHandlesText(step);
    if (lost !== undefined) after.push(userTurn(note(lost)));
    this.#addNews(artifactsOf(step, { results: false }), found(step), view, after);
  }

  /** Code of the provider's waited for these calls, and the run ended: nobody goes on with it. */
  #isCutOff(step: Step, { trajectory }: StepsView): boolean {
    return this.#earlier !== undefined && step.index === trajectory.count - 1 && awaitsCode(step);
  }

  /** The reply's own form without calls; one that was not accepted is told by its text alone, unless its provider had done something. */
  #ownWords(step: Step, media: MediaView | undefined): AssistantPart[] | undefined {
    const content = isTold(step) ? restoreParts(step, [], this.#parts.options, this.#parts.known, media) : undefined;
    return content?.length === 0 ? undefined : content;
  }

  /** What another provider and its model have done and made. */
  addOthersActs(step: OwnForm & Pick<Step, 'error'>, { media, tools }: Pick<StepsView, 'media' | 'tools'>): void {
    if (!isTold(step)) return;
    const acts = actsOfProvider(step, this.#parts.options);
    if (acts !== undefined) this.#messages.push(userTurn(acts));
    const files = filesForOthers(step, this.#parts.options);
    if (files.length === 0) return;
    const loaded = files.map((file) => ({ ...file, ...defined({ bytes: media?.bytes.get(file.artifactRef) }) }));
    this.#messages.push(
      madeTurn(loaded.map((file) => filePart(file, this.#parts.options, tools, 'an earlier message'))),
    );
  }

  /** What a step made known beside its results. */
  #addNews(stored: readonly ArtifactRow[], names: readonly string[], view: StepsView, to = this.#messages): void {
    const turn = artifactTurn(artifactLines(stored));
    if (turn !== undefined) to.push(turn);
    // With native calls the request itself declares the tools that were found.
    if (names.length > 0 && this.#parts.options.mode === 'text' && this.#earlier === undefined)
      this.#announce(names, view);
  }

  #announce(names: readonly string[], { tools }: StepsView): void {
    const entries: string[] = [];
    for (const name of names) {
      const tool = tools.get(name);
      if (tool?.loading !== 'deferred' || this.#announced.has(name)) continue;
      this.#announced.add(name);
      entries.push(toolEntry(tool, this.#parts.options.maxExamples));
    }
    if (entries.length > 0)
      this.#messages.push(userTurn(`Tools that were found:\n${frame('found_tools', entries.join('\n'))}`));
  }

  /**
   * The summary in place of the first steps; the user's own words, found tools and stored values stay. In a run without end these are the
   * newest ones: what is far back stands in the summary alone.
   * @param maxChars what earlier turns of the session may have: the user's words may have half of it.
   */
  addSummary({ summary, before, made = [] }: Compaction, view: StepsView, maxChars: number = USUAL_CHARS): void {
    const { trajectory } = view;
    const stored: ArtifactRow[] = [];
    const names: string[] = [];
    const acts: ActLine[] = [];
    this.#messages.push(summaryTurn(summary));
    const words = this.#messages.length;
    let isLeftOut = false;
    const leavesOut = (turn: SteeringTurn): boolean => {
      if (isSpoken(turn)) isLeftOut = true;
      return false;
    };
    const from = Math.max(0, before - FAR_STEPS);
    if (from > 0) this.#passOver(trajectory, from).forEach(leavesOut);
    for (; this.#steps < before; this.#steps += 1) {
      const keeps = this.#steps < before - FAR_WORDS ? leavesOut : isSpoken;
      this.#addArrivals(view, this.#steps, keeps);
      const step = trajectory.step(this.#steps);
      if (step === undefined) break;
      this.#lastStep = step;
      this.#addBeforeAnswer(view, step, keeps);
      if (step.decision.kind === 'request_pause') {
        if (keeps === leavesOut) isLeftOut = true;
        else
          for (const said of spokenIn(step, this.#parts.write))
            this.#messages.push(spokenTurn(said, answerFiles(step), this.#parts.options, view));
        continue;
      }
      this.#claimIds(step, callsOf(step));
      stored.push(...artifactsOf(step, { results: true }));
      names.push(...found(step));
      acts.push(...actLines(step, view.tools));
    }
    const said = this.#messages.splice(words);
    const newest = newestOf(said, maxChars * WORDS_SHARE);
    if (isLeftOut || newest.length < said.length) this.#messages.push(userTurn(note(LEFT_OUT)));
    this.#messages.push(...newest);
    const calls = callsMadeTurn([...made, ...shownActs(acts)]);
    if (calls !== undefined) this.#messages.push(calls);
    this.#addNews(stored, names, view);
  }

  /** The steps before this one, and what came in before it, are told by the summary alone. @returns the messages among it. */
  #passOver({ steering, background }: Trajectory, step: number): readonly SteeringTurn[] {
    const isLater = ({ atStep }: { readonly atStep: number }): boolean => atStep >= step;
    const turns = steering.findIndex(isLater);
    const results = background.findIndex(isLater);
    this.#steps = step;
    this.#turns = turns === -1 ? steering.length : turns;
    this.#results = results === -1 ? background.length : results;
    return steering.slice(0, this.#turns);
  }
}

/** So many steps before the cut are looked through for what stays beside their summary. */
const FAR_STEPS = 1_000;
/** And so many for what the user said. */
const FAR_WORDS = 200;
/** The user's words before the cut may have this share of what earlier turns of the session may have. */
const WORDS_SHARE = 0.5;
/** What these may have when nobody knows how much the model takes, in characters. */
const USUAL_CHARS = 60_000;
const LEFT_OUT = 'What the user said before the following is left out: the summary tells of it.';

/** The newest messages that have no more characters together, but at least one. */
function newestOf(messages: readonly LanguageModelV4Message[], maxChars: number): readonly LanguageModelV4Message[] {
  let chars = 0;
  const first = messages.findLastIndex(({ content }) => {
    const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
    for (const part of parts) if (part.type === 'text') chars += part.text.length;
    return chars > maxChars;
  });
  return messages.slice(Math.min(first + 1, Math.max(0, messages.length - 1)));
}

/**
 * The provider's ids where they are usable, so that they stay what the provider knows; otherwise made from the place of the call. An id of that form is
 * never taken from a provider, so that the made ones stay unique.
 * @param made the id of a single call; a number follows where there are several.
 */
export function uniqueIds(
  wanted: readonly (string | undefined)[],
  taken: ReadonlySet<string>,
  made: string,
  single: boolean,
): string[] {
  return wanted.map((id = '', index) => {
    const isFirst = wanted.indexOf(id) === index;
    if (isFirst && id !== '' && !id.startsWith(MADE_ID) && !taken.has(id)) return id;
    return single ? made : `${made}.${index}`;
  });
}

/** So many calls at each end of a longer step of an earlier run are told. */
const CALLS_AT_AN_END = 25;

type ShownCalls = ReturnType<typeof shownCalls>;

/** The first and the last calls, and how many are between them. A plan may have thousands. */
function fewCalls({ calls, told }: ShownCalls): ShownCalls & { readonly left: number } {
  const few = { calls: bothEnds(calls), told: bothEnds(told) };
  return { ...few, left: calls.length + told.length - few.calls.length - few.told.length };
}

function bothEnds<T>(all: readonly T[]): readonly T[] {
  if (all.length <= 2 * CALLS_AT_AN_END) return all;
  return [...all.slice(0, CALLS_AT_AN_END), ...all.slice(-CALLS_AT_AN_END)];
}

/** A reply was to go on in that step. */
function goesOnAt(trajectory: Trajectory, step: number): boolean {
  let before = trajectory.step(step - 1);
  while (before !== undefined && isRefusedReply(before)) before = trajectory.step(before.index - 1);
  return before?.partial !== undefined;
}

const ANEW =
  'This came in before your last reply was whole. Do not go on with that reply: reply again, with this in mind.';

const ANSWERED = 'Your last reply did not end the run, for a task was under way. Reply again with this in mind.';

/** The calls of the step left nothing beside their results: so it is with nearly all steps. */
function leftNothing({ calls }: Step): boolean {
  for (let index = 0; index < calls.length; index += 1) {
    const { artifacts, discovered, handles } = calls[index] as CallRecord;
    if (artifacts !== undefined || discovered !== undefined || handles !== undefined) return false;
  }
  return true;
}

/** The tools that a step made known. */
function found({ calls }: Step): readonly string[] {
  return calls.flatMap((call) => call.discovered ?? []);
}

/** What a user said in answer to a pause. */
function spokenIn({ calls }: Step, write: UserWords): readonly string[] {
  return calls.flatMap(({ outcome }) =>
    outcome.kind === 'verdict' &&
    outcome.verdict !== 'superseded' &&
    outcome.payload !== undefined &&
    !isWokenByTasks(outcome)
      ? [verdictText(outcome.verdict, outcome.payload, write)]
      : [],
  );
}

// The note to a model about live handles that were opened again: everything it did with the former values is gone.

/** `undefined`: nothing that earlier steps used was lost. A call that was refused for it says so itself. */
function lostHandlesText({ calls }: Step): string | undefined {
  const reopened = calls.flatMap(({ handles = [] }) =>
    handles.filter(({ opening, lost }) => opening > 1 && lost !== true),
  );
  const names = [...new Set(reopened.map(({ name }) => name))];
  if (names.length === 0) return undefined;
  const [what, it] = names.length === 1 ? ['is a new one', 'it'] : ['are new ones', 'them'];
  return (
    `From these results on, ${names.join(' and ')} ${what}. The one before was closed or lost, and all that earlier steps had done in ` +
    `${it} is gone: where it stood, logins, what was not saved. Do again what the rest needs.`
  );
}
