/**
 * A run as the messages of a model request. Messages are only ever added, so that each request is the former one with
 * more at its end, and each step is turned into messages once. The one thing that begins anew is a compaction.
 */

import type { LanguageModelV4Message } from '@ai-sdk/provider';
import {
  type ArtifactRow,
  type BackgroundResult,
  type CallRecord,
  type Compaction,
  defined,
  isRefusedReply,
  isWokenByTasks,
  type MediaView,
  type RunContext,
  type RunView,
  type SteeringTurn,
  type Step,
  type ToolSchema,
  type Trajectory,
} from '#core';
import { addNativeTurns, addTextTurns, MADE_ID } from './call-turns.ts';
import { type ActLine, actLines, shownActs } from './compaction.ts';
import { earlierMessages, madeTurn, systemWords } from './earlier-turns.ts';
import type { FileRules } from './file-rules.ts';
import {
  assistantTurn,
  type CallMode,
  frame,
  note,
  quotedJson,
  type UserWords,
  userTurn,
  userWordsIn,
} from './frame.ts';
import {
  type AssistantPart,
  actsOfProvider,
  awaitsCode,
  filesForOthers,
  isOwnReply,
  isTold,
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
  contextTurns,
  groupText,
  rememberedTurn,
  summaryTurn,
  taskTurn,
} from './untrusted.ts';
import { filePart, isSpoken, requestTurn, steeringText } from './user-turn.ts';

export interface TranscriptOptions extends Recipient, FileRules {
  readonly mode: CallMode;
  /** False: the model cannot start tasks or wait for them, so that it is not shown calls that did. Default true. */
  readonly tasks?: boolean;
  /** How many characters the texts of earlier turns may have together; longer ones are cut off, and say so. Default: any number. */
  readonly historyChars?: number;
  /** How many examples of a found tool are shown in text mode. Default 3. */
  readonly maxExamples?: number;
}

export class Transcript {
  readonly #messages: LanguageModelV4Message[];
  readonly #options: TranscriptOptions;
  readonly #write: UserWords;
  readonly #callIds = new Set<string>();
  /** Ids of the calls that providers have carried out, as far as the messages have them. */
  readonly #known = new Set<string>();
  /** Deferred tools that the messages tell of; text mode only. */
  readonly #announced = new Set<string>();
  readonly #tools: readonly ToolSchema[];
  readonly #query: string;
  readonly #history: unknown;
  readonly #context: RunContext;
  readonly #startedAt: number;
  readonly #compaction: Compaction | undefined;
  /** From which step on files of results are shown. */
  readonly #from: number | undefined;
  readonly #starts: number[] = [];
  /** What is told once the provider's code has its results. */
  readonly #later: LanguageModelV4Message[] = [];
  #steps: number;
  #turns = 0;
  #results = 0;
  #lastStep: Step | undefined;
  #lastTurn: SteeringTurn | undefined;
  #lastResult: BackgroundResult | undefined;

  /** @throws PilotageError `memory_block_unserializable`. */
  constructor(system: string, view: RunView, options: TranscriptOptions) {
    const { trajectory } = view;
    this.#options = options;
    const { mode, takes, historyChars } = options;
    const write = userWordsIn(mode);
    this.#write = write;
    this.#tools = view.tools.all();
    this.#query = view.query;
    this.#history = view.history;
    this.#context = view.context;
    this.#startedAt = view.startedAt;
    this.#compaction = trajectory.compaction;
    this.#from = view.media?.from;
    // How large an attachment of the user may be nobody knows but the provider.
    const request = requestTurn(view, { takes }, write);
    const remembered = view.recalled && rememberedTurn(view.recalled, view.tools);
    this.#messages = [
      { role: 'system', content: [system, ...systemWords(view.history)].join('\n\n') },
      ...contextTurns(view.context, view.tools),
      ...earlierMessages(view, { mode, rules: options, write, ...defined({ maxChars: historyChars }) }, this.#callIds),
      // Behind the turns that other runs of the session begin with too: what fits is another thing for each query.
      ...(remembered === undefined ? [] : [remembered]),
      ...(request === undefined ? [] : [request]),
    ];
    this.#steps = 0;
    if (trajectory.compaction !== undefined) this.#addSummary(trajectory.compaction, view);
  }

  /** False when this is not the beginning of that run: another run, other tools, a newer summary, or files that have become old. */
  fits({ tools, query, history, context, startedAt, trajectory, media }: RunView): boolean {
    return (
      (this.#from ?? 0) === (media?.from ?? 0) &&
      sameTools(this.#tools, tools.all()) &&
      this.#query === query &&
      this.#history === history &&
      this.#context === context &&
      this.#startedAt === startedAt &&
      this.#compaction === trajectory.compaction &&
      this.#isPastOf(trajectory)
    );
  }

  /** What was told so far is how that trajectory begins. */
  #isPastOf(trajectory: Trajectory): boolean {
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

  /**
   * Adds what is new in the view. The array is the caller's: a model may keep it, and it will not grow under it. (The
   * copy is of pointers only: about a microsecond for a thousand steps.)
   */
  upTo(view: RunView): LanguageModelV4Message[] {
    const { trajectory } = view;
    for (; this.#steps < trajectory.count; this.#steps += 1) {
      this.#starts.push(this.#messages.length);
      this.#addWaiting(trajectory);
      const step = trajectory.step(this.#steps) as Step;
      this.#addStep(step, view);
      this.#lastStep = step;
    }
    this.#addWaiting(trajectory);
    return this.#messages.slice();
  }

  /** What is told between two steps, unless code of the provider's waits for nothing but results: then it is told behind the next. */
  #addWaiting(trajectory: Trajectory): void {
    if (this.#lastStep !== undefined && awaitsCode(this.#lastStep)) return;
    if (this.#later.length > 0) this.#messages.push(...this.#later.splice(0));
    this.#addArrivals(trajectory, this.#steps);
  }

  /** Messages so far. */
  get length(): number {
    return this.#messages.length;
  }

  /**
   * Where the messages of each step that is sent in full begin, with those that came in just before it: one index for
   * each step from the compaction's `before` on.
   */
  get stepStarts(): readonly number[] {
    return this.#starts;
  }

  /**
   * The provider's ids where they are usable, so that they stay what the provider knows; otherwise made from the place
   * of the call. An id of that form is never taken from a provider, so that the made ones stay unique.
   */
  uniqueCallIds(wanted: readonly (string | undefined)[], step: number, single: boolean): string[] {
    return wanted.map((id = '', index) => {
      const isFirst = wanted.indexOf(id) === index;
      if (isFirst && id !== '' && !id.startsWith(MADE_ID) && !this.#callIds.has(id)) return id;
      return single ? `${MADE_ID}${step}` : `${MADE_ID}${step}.${index}`;
    });
  }

  /** The ids of a step's calls, which are taken from then on. */
  #claimIds(step: Step, calls: readonly StepCall[]): string[] {
    const wanted = calls.map((call) => call.callId);
    const ids = this.uniqueCallIds(wanted, step.index, step.decision.kind !== 'call_parallel');
    for (const id of ids) this.#callIds.add(id);
    return ids;
  }

  /** What came in before a step: messages, then what tasks came to. A summary has all but what `keeps` wants. */
  #addArrivals(trajectory: Trajectory, step: number, keeps?: (turn: SteeringTurn) => boolean): void {
    const { background } = trajectory;
    const from = this.#messages.length;
    this.#addTurns(trajectory, ({ atStep }) => atStep <= step, keeps);
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
    const last = this.#messages[from - 1];
    if (last?.role === 'assistant') {
      const content = withoutOpenCalls(last.content, this.#known);
      this.#messages.splice(from - 1, 1, ...(content.length === 0 ? [] : [{ ...last, content }]));
    }
    this.#messages.push(userTurn(note(ANEW)));
  }

  /** What was said between the question of the step and its answer. */
  #addBeforeAnswer(trajectory: Trajectory, { index }: Step, keeps?: (turn: SteeringTurn) => boolean): void {
    this.#addTurns(trajectory, ({ atStep, beforeAnswer }) => beforeAnswer === true && atStep === index + 1, keeps);
  }

  /** The messages that come next, as long as they are of `those`. */
  #addTurns({ steering }: Trajectory, those: (turn: SteeringTurn) => boolean, keeps?: typeof those): void {
    for (; this.#turns < steering.length; this.#turns += 1) {
      const turn = steering[this.#turns] as SteeringTurn;
      if (!those(turn)) break;
      if (keeps === undefined || keeps(turn)) this.#messages.push(userTurn(steeringText(turn, this.#write)));
      this.#lastTurn = turn;
    }
  }

  #addStep(step: Step, view: RunView): void {
    if (isRefusedReply(step)) return;
    const { mode, replay, tasks = true } = this.#options;
    const { calls, told } = shownCalls(step, tasks);
    const said = saidIn(step, replay);
    if (calls.length + told.length === 0) {
      const own = this.#ownWords(step, view.media);
      const content = own ?? said.map((text) => ({ type: 'text' as const, text }));
      if (content.length > 0) this.#messages.push({ role: 'assistant', content });
      // Its provider goes on with its own turn, when nothing stands behind it.
      if (step.partial === 'paused' && own !== undefined && isOwnReply(step, this.#options)) return;
      this.#addOthersActs(step, view);
      this.#addBeforeAnswer(view.trajectory, step);
      const reply = replyTo(step, this.#write);
      this.#messages.push(isWaitingAnswer(step) ? taskTurn(reply, ANSWERED) : userTurn(reply));
      return;
    }
    const ids = this.#claimIds(step, calls);
    // The provider's form of a reply has a place for each of its calls.
    const form = told.length === 0 ? step : {};
    const { tools, media } = view;
    const files = { rules: this.#options, step: step.index, media };
    const after = awaitsCode(step) ? this.#later : this.#messages;
    const turns = {
      messages: this.#messages,
      after,
      form,
      calls,
      said,
      to: this.#options,
      known: this.#known,
      files,
      tools,
    };
    if (calls.length === 0) {
      if (said.length > 0) this.#messages.push(assistantTurn(said.join('\n\n')));
    } else if (mode === 'native') addNativeTurns(turns, ids);
    else addTextTurns(turns);
    this.#addOthersActs(step, view);
    if (told.length > 0) after.push(userTurn(toldText(told)));
    if (leftNothing(step)) return;
    const lost = lostHandlesText(step);
    if (lost !== undefined) after.push(userTurn(note(lost)));
    this.#addNews(artifactsOf(step, { results: false }), found(step), view, after);
  }

  /** The reply's own form without calls; one that was not accepted is told by its text alone, unless its provider had done something. */
  #ownWords(step: Step, media: MediaView | undefined): AssistantPart[] | undefined {
    const content = isTold(step) ? restoreParts(step, [], this.#options, this.#known, media) : undefined;
    return content?.length === 0 ? undefined : content;
  }

  /** What another provider and its model have done and made. */
  #addOthersActs(step: Step, { media, tools }: RunView): void {
    if (!isTold(step)) return;
    const acts = actsOfProvider(step, this.#options);
    if (acts !== undefined) this.#messages.push(userTurn(acts));
    const files = filesForOthers(step, this.#options);
    if (files.length === 0) return;
    const loaded = files.map((file) => ({ ...file, ...defined({ bytes: media?.bytes.get(file.artifactRef) }) }));
    this.#messages.push(madeTurn(loaded.map((file) => filePart(file, this.#options, tools, 'an earlier message'))));
  }

  /** What a step made known beside its results. */
  #addNews(stored: readonly ArtifactRow[], names: readonly string[], view: RunView, to = this.#messages): void {
    const turn = artifactTurn(artifactLines(stored));
    if (turn !== undefined) to.push(turn);
    // With native calls the request itself declares the tools that were found.
    if (names.length > 0 && this.#options.mode === 'text') this.#announce(names, view);
  }

  #announce(names: readonly string[], { tools }: RunView): void {
    const entries: string[] = [];
    for (const name of names) {
      const tool = tools.get(name);
      if (tool?.loading !== 'deferred' || this.#announced.has(name)) continue;
      this.#announced.add(name);
      entries.push(toolEntry(tool, this.#options.maxExamples));
    }
    if (entries.length > 0)
      this.#messages.push(userTurn(`Tools that were found:\n${frame('found_tools', entries.join('\n'))}`));
  }

  /** The summary in place of the first steps; the user's own words, found tools and stored values stay. */
  #addSummary({ summary, before }: Compaction, view: RunView): void {
    const { trajectory } = view;
    const stored: ArtifactRow[] = [];
    const names: string[] = [];
    const acts: ActLine[] = [];
    this.#messages.push(summaryTurn(summary));
    for (; this.#steps < before; this.#steps += 1) {
      this.#addArrivals(trajectory, this.#steps, isSpoken);
      const step = trajectory.step(this.#steps);
      if (step === undefined) break;
      this.#claimIds(step, callsOf(step));
      this.#addBeforeAnswer(trajectory, step, isSpoken);
      for (const words of spokenIn(step, this.#write)) this.#messages.push(userTurn(words));
      stored.push(...artifactsOf(step, { results: true }));
      names.push(...found(step));
      acts.push(...actLines(step, view.tools));
      this.#lastStep = step;
    }
    const made = callsMadeTurn(shownActs(acts));
    if (made !== undefined) this.#messages.push(made);
    this.#addNews(stored, names, view);
  }
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

/** Views of one run may hold copies of the list; its schemas are the same ones. */
function sameTools(left: readonly ToolSchema[], right: readonly ToolSchema[]): boolean {
  return left === right || (left.length === right.length && left.every((tool, index) => tool === right[index]));
}

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
