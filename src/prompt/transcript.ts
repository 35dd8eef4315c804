/**
 * A run as the messages of a model request, with the earlier runs of its session before it. Messages are only ever added, so that each request is the
 * former one with more at its end. The one thing that begins anew is a compaction.
 */

import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { type Compaction, defined, type EarlierRuns, type RunContext, type RunView, type ToolSchema } from '#core';
import { MADE_ID } from './call-turns.ts';
import { actsAside } from './compaction.ts';
import { earlierMessages, systemWords } from './earlier-turns.ts';
import { userWordsIn } from './frame.ts';
import { type MessageOptions, type RequestParts, RunMessages, uniqueIds } from './run-messages.ts';
import { toldRuns } from './told-runs.ts';
import { callsAsideTurn, contextTurns, rememberedTurn } from './untrusted.ts';
import { requestTurn } from './user-turn.ts';

export interface TranscriptOptions extends MessageOptions {
  /** How many characters earlier turns may have together. The oldest of more are left out. Default: any number. */
  readonly historyChars?: number;
}

export class Transcript {
  readonly #messages: LanguageModelV4Message[];
  readonly #own: RunMessages;
  readonly #callIds = new Set<string>();
  readonly #tools: readonly ToolSchema[];
  readonly #query: string;
  readonly #history: unknown;
  readonly #earlier: EarlierRuns | undefined;
  readonly #context: RunContext;
  readonly #startedAt: number;
  readonly #compaction: Compaction | undefined;
  /** From which step on files of results are shown. */
  readonly #from: number | undefined;
  /** Where the messages of each earlier run begin that may be summed up; of one that has no room, where the next one's begin. */
  readonly runStarts: readonly number[];
  /** Where their messages end. */
  readonly runsEnd: number;
  /** How many of these runs have no room. */
  readonly runsLeftOut: number;

  /** @throws PilotageError `memory_block_unserializable`. */
  constructor(system: string, view: RunView, options: TranscriptOptions) {
    const { trajectory, earlier, context, tools } = view;
    const { mode, takes, historyChars } = options;
    const write = userWordsIn(mode);
    this.#tools = tools.all();
    this.#query = view.query;
    this.#history = view.history;
    this.#earlier = earlier;
    this.#context = context;
    this.#startedAt = view.startedAt;
    this.#compaction = trajectory.compaction;
    this.#from = view.media?.from;
    const parts: RequestParts = { options, write, callIds: this.#callIds, known: new Set() };
    const limit = defined({ maxChars: historyChars });
    this.#messages = [{ role: 'system', content: [system, ...systemWords(view.history)].join('\n\n') }];
    // What a program gives as the history is in no run.
    if (earlier === undefined || (earlier.runs.length === 0 && earlier.summary === undefined)) {
      const given = earlierMessages(view, { mode, rules: options, write, ...limit }, this.#callIds);
      this.#messages.push(...contextTurns(context, tools), ...given);
      this.runsEnd = this.#messages.length;
      this.runStarts = [];
      this.runsLeftOut = 0;
    } else {
      // What changes with each run comes behind what the session has said, so that the provider's cache holds from one run to the next.
      const told = toldRuns(earlier, view, callsNothing(view, options) ? inText(parts) : parts, limit);
      const at = this.#messages.length;
      this.#messages.push(...told.messages);
      this.runsEnd = this.#messages.length;
      this.#messages.push(...contextTurns(context, tools));
      this.runStarts = told.starts.map((start) => at + start);
      this.runsLeftOut = told.leftOut;
    }
    const aside = callsAsideTurn(actsAside(view));
    if (aside !== undefined) this.#messages.push(aside);
    // How large an attachment of the user may be nobody knows but the provider.
    const request = requestTurn(view, { takes }, write);
    const remembered = view.recalled && rememberedTurn(view.recalled, view.tools);
    // Behind the turns that other runs of the session begin with too: what fits is another thing for each query.
    if (remembered !== undefined) this.#messages.push(remembered);
    if (request !== undefined) this.#messages.push(request);
    this.#own = new RunMessages(this.#messages, parts);
    if (trajectory.compaction !== undefined && standsInside(trajectory.compaction))
      this.#own.addSummary(trajectory.compaction, view, historyChars);
  }

  /** False when this is not the beginning of that run: another run, other tools, a newer summary, or files that have become old. */
  fits({ tools, query, history, earlier, context, startedAt, trajectory, media }: RunView): boolean {
    return (
      (this.#from ?? 0) === (media?.from ?? 0) &&
      sameTools(this.#tools, tools.all()) &&
      this.#query === query &&
      this.#history === history &&
      this.#earlier === earlier &&
      this.#context === context &&
      this.#startedAt === startedAt &&
      this.#compaction === trajectory.compaction &&
      this.#own.isPastOf(trajectory)
    );
  }

  /**
   * Adds what is new in the view. The array is the caller's: a model may keep it, and it will not grow under it. (The
   * copy is of pointers only: about a microsecond for a thousand steps.)
   */
  upTo(view: RunView): LanguageModelV4Message[] {
    this.#own.upTo(view);
    return this.#messages.slice();
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
    return this.#own.stepStarts;
  }

  /** Ids for the calls of that step which no other call of the request has, the provider's own where they are usable. */
  uniqueCallIds(wanted: readonly (string | undefined)[], step: number, single: boolean): string[] {
    return uniqueIds(wanted, this.#callIds, `${MADE_ID}${step}`, single);
  }
}

/** The summary has its place between the request and the steps of its run. Where it covers no steps, it stands before the earlier runs that are left. */
function standsInside({ before, earlier }: Compaction): boolean {
  return before > 0 || earlier === undefined;
}

/** The request declares no tools, and servers such as Anthropic's refuse calls in it then: those of earlier runs are told as text. */
function callsNothing({ tools }: RunView, { mode, tasks = true }: TranscriptOptions): boolean {
  if (mode === 'text' || tasks || tools.hosted !== undefined) return false;
  return !tools.all().some(({ loading }) => loading === 'always');
}

function inText(parts: RequestParts): RequestParts {
  return { ...parts, options: { ...parts.options, mode: 'text' } };
}

/** Views of one run may hold copies of the list; its schemas are the same ones. */
function sameTools(left: readonly ToolSchema[], right: readonly ToolSchema[]): boolean {
  return left === right || (left.length === right.length && left.every((tool, index) => tool === right[index]));
}
