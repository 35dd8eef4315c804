/** ReAct: one model call a step, whichever way the model writes its calls. It holds no state of a run but caches. */
import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider';
import {
  addUsage,
  asPlanner,
  assertIdentity,
  type Delta,
  defined,
  isJsonObject,
  type Json,
  type Move,
  type OutputMode,
  PilotageError,
  type Planner,
  partsBefore,
  type Remark,
  type RunView,
  systemClock,
  type Usage,
  withUsage,
} from '#core';
import {
  type AskOptions,
  askModel,
  assertOffered,
  isFormatRefusal,
  type ModelAnswer,
  type ModelRefusal,
  oneLower,
  type ReadyModel,
  streamModel,
  usageOfError,
} from '#model';
import { askFallback, asksModels, leftFor, modelPool } from '#planners';
import { guidanceTurn, lastMoveTurn, unreadableInputs } from '#prompt';
import { answerForm } from './answer-form.ts';
import { compactor, summariserOf } from './compact.ts';
import { refusedBy } from './decide.ts';
import { extractorOf } from './extract.ts';
import { CALM, exhausted, modelsLeft, rungOf, unavailable } from './ladder.ts';
import { MadeCalls } from './made-calls.ts';
import { moveOf, PlainProvenance, readingOf, refusedMove } from './move.ts';
import { assertReactOptions, DEFAULT_REASKS, DEFAULT_RECALL, endsByCall, type ReactOptions } from './options.ts';
import { Requests } from './requests.ts';
import { Counts, exhaustedMove, mayBeSent, overflowFrom, overflowMove, replyTokens } from './room.ts';
import { proseOnly } from './text-stream.ts';

/**
 * Raised by hand when the wording of the prompt, or how a reply is made a decision, has changed so much that a run which was
 * started before should not go on unasked.
 */
const VERSION = 'react.1';

/** @throws PilotageError `invalid_config` for a value that is not a model, and for wrong options. */
export function react(options: ReactOptions): Planner {
  assertReactOptions(options);
  const pool = modelPool(options.model, options.prices, { needs: 'calls' });
  const fallback = options.fallback === undefined ? undefined : asPlanner(options.fallback);
  const { reasks = DEFAULT_REASKS, clock = systemClock, retries, stallMs } = options;
  const form = options.answerSchema === undefined ? undefined : answerForm(options.answerSchema);
  const requests = new Requests(options, form);
  const making = {
    options,
    pool,
    requests,
    readAnswer: form?.read,
    madeCalls: new MadeCalls(),
    plain: new PlainProvenance(),
  };
  const patience = {
    clock,
    ...defined({ retries, stallMs }),
  };
  /** The best format that a model is known to take; found out anew by each planner. */
  const formats = new Map<ReadyModel, OutputMode>();
  const counts = new Counts();

  /** Everything about one step but the model's reply. */
  function begin(view: RunView, signal: AbortSignal): Turn {
    signal.throwIfAborted();
    if (!requests.knows(view)) assertIdentity(view.identity);
    const rung = rungOf(view.trajectory, reasks);
    const left = tookOver(view) ? [] : modelsLeft(pool.ranked(), rung);
    const models = sendable(left, view);
    if (models.length === 0) {
      const hadTries = left.length === 0 || rung.spent.length > 0;
      return { kind: 'ladder', move: hadTries ? exhausted(rung) : full(view, left) };
    }
    // Whoever goes on with a reply is told nothing else: a paused one has no turn behind it.
    const goesOn = partsBefore(view.trajectory, view.trajectory.count).length > 0;
    const isCalm = goesOn || (rung === CALM && view.noProgress === undefined);
    const guidance = isCalm ? undefined : guidanceTurn(rung.counters, view.noProgress, endsByCall(options, view));
    const remarks: Remark[] = guidance === undefined ? [] : [...guidance.remarks];
    const reminder = view.lastMove === undefined ? guidance?.message : lastMoveTurn();
    if (view.trajectory.count === 0) remarks.push(...unreadableInputs(view));
    const turn: ModelTurn = {
      kind: 'model',
      remarks,
      asked: models[0] as ReadyModel,
      maxOutputTokens: undefined,
      used: undefined,
      asking: {
        ...patience,
        models,
        signal,
        requestFor: (model) => requestFor(model, turn, view, reminder),
        tokensOf: (request, model) => requests.tokensIn(request, model, view),
      },
    };
    return turn;
  }

  /** Those of the models that can be sent the request: mostly all of them. */
  function sendable(models: readonly ReadyModel[], view: RunView): readonly ReadyModel[] {
    for (const model of models) {
      if (!mayBeSent(view, model, requests)) return models.filter((other) => mayBeSent(view, other, requests));
    }
    return models;
  }

  function requestFor(
    model: ReadyModel,
    turn: ModelTurn,
    view: RunView,
    reminder: LanguageModelV4Message | undefined,
  ): LanguageModelV4CallOptions {
    turn.asked = model;
    const request = requests.of(view, model, reminder, formats.get(model) ?? model.structuredOutput);
    const most = replyTokens(view, model, requests, request.maxOutputTokens);
    turn.maxOutputTokens = most;
    return most === undefined ? request : { ...request, maxOutputTokens: most };
  }

  /**
   * No model that is left has room for the request. The run learns that of the first one, so that its history is shortened; when
   * that was done, somebody has to help.
   */
  function full(view: RunView, left: readonly ReadyModel[]): Move {
    const [model] = left as readonly [ReadyModel, ...ReadyModel[]];
    const { contextTokens } = model;
    if (view.trajectory.contextLimits !== undefined || contextTokens === undefined)
      return exhaustedMove(view, left, requests);
    const sentTokens = requests.tokensOf(view, model);
    const message = `The request would have about ${sentTokens} tokens, and the window of the model ${model.name} is ${contextTokens}.`;
    const overflow = { kind: 'input', limitTokens: contextTokens, sentTokens } as const;
    return overflowMove(view, model, requests, { overflow, message, remarks: [] });
  }

  /** What to do about a failure of the models: try another format (`undefined`), end with a move, or throw it. */
  function recover(error: unknown, turn: ModelTurn, view: RunView): Move | undefined {
    const model = turn.asked;
    if (PilotageError.is(error, 'budget_exceeded')) throw error;
    const tooLong = overflowFrom(error, view, { model, maxOutputTokens: turn.maxOutputTokens }, requests, turn.remarks);
    if (tooLong !== undefined) return tooLong;
    if (PilotageError.is(error, 'model_unavailable')) {
      for (const name of triedModels(error)) pool.record(name, { succeeded: false });
      return unavailable(error, turn.remarks, fallback !== undefined);
    }
    if (PilotageError.is(error, 'model_refused')) {
      pool.record(model.name, { succeeded: false });
      const refusal = (error.data?.['refusal'] ?? {}) as ModelRefusal;
      const decided = refusedBy({ refusal, text: '', model, models: turn.asking.models });
      return refusedMove(decided, turn.remarks, usageOfError(error), model);
    }
    if (form === undefined || !isFormatRefusal(error)) {
      if (!turn.asking.signal.aborted) pool.record(model.name, { succeeded: false });
      throw error;
    }
    const from = formats.get(model) ?? model.structuredOutput;
    const to = oneLower(from);
    if (to === undefined) throw error;
    formats.set(model, to);
    // A try before the refused one may have cost something.
    turn.used = usageOfError(error);
    turn.remarks.push({ type: 'model.output_downgraded', model: model.name, from, to });
    return undefined;
  }

  async function generateMove(view: RunView, signal: AbortSignal): Promise<Move> {
    const turn = begin(view, signal);
    if (turn.kind === 'ladder') return endOrFallBack(turn.move, view, signal);
    for (;;) {
      try {
        const asked = withBefore(await askModel(askingNow(turn, view)), turn);
        const move = unread(asked, turn, view) ?? moveOf(asked, turn, view, making);
        return isRefused(move) ? await endOrFallBack(move, view, signal) : move;
      } catch (thrown) {
        const move = recover(withUsage(thrown, turn.used), turn, view);
        if (move !== undefined) return endOrFallBack(move, view, signal);
      }
    }
  }

  async function* streamMove(view: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
    const turn = begin(view, signal);
    if (turn.kind === 'ladder') return yield* fallBackStreaming(turn.move, view, signal);
    for (;;) {
      try {
        const reading = () => readingOf(turn.asked, view, making);
        const isFree = (callId: string) => requests.callIds(view, turn.asked, [callId])[0] === callId;
        const asked = withBefore(yield* proseOnly(streamModel(askingNow(turn, view)), reading, isFree), turn);
        const unfit = unread(asked, turn, view);
        if (unfit === undefined) {
          const move = moveOf(asked, turn, view, making);
          if (!isRefused(move)) return move;
          // Whoever takes over says something else.
          if (takesOver(move) !== undefined) yield { type: 'reset' };
          return yield* fallBackStreaming(move, view, signal);
        }
        yield { type: 'reset' };
        return unfit;
      } catch (thrown) {
        const move = recover(withUsage(thrown, turn.used), turn, view);
        // What was said before the stream broke off is void.
        if (move?.fault?.code === 'context_window_exceeded') yield { type: 'reset' };
        if (move !== undefined) return yield* fallBackStreaming(move, view, signal);
      }
    }
  }

  /** A reply to a part of the request alone is not taken: the request is made again, shorter. */
  function unread(asked: ModelAnswer, { remarks }: ModelTurn, view: RunView): Move | undefined {
    const overflow = counts.overflowOf(asked, view, requests);
    if (overflow === undefined) return undefined;
    const { model, usage, remarks: tries } = asked;
    const message = `The server of the model ${model.name} has cut off the request, or its reply, since its window is full.`;
    return overflowMove(view, model, requests, { overflow, message, usage, remarks: [...remarks, ...tries] });
  }

  function tookOver({ trajectory }: RunView): boolean {
    return fallback !== undefined && trajectory.step(trajectory.count - 1)?.provenance?.['fallback'] === fallback.name;
  }

  /**
   * Nobody takes over for a request that is too long: it is made again, shorter, or the run waits for a larger window. Nor while
   * another model can be asked.
   */
  function takesOver({ fault }: Move): Planner | undefined {
    return fault !== undefined && GOES_ON.has(fault.code) ? undefined : fallback;
  }

  async function endOrFallBack(ending: Move, view: RunView, signal: AbortSignal): Promise<Move> {
    const stream = fallBackStreaming(ending, view, signal);
    for (;;) {
      const { value, done } = await stream.next();
      if (done === true) return value;
    }
  }

  async function* fallBackStreaming(ending: Move, view: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
    const instead = takesOver(ending);
    return instead === undefined ? ending : yield* askFallback(instead, ending, view, signal);
  }

  const summariser = summariserOf(options);
  const planner: Planner = {
    name: 'react',
    version: VERSION,
    wakeMode: 'push',
    modelDriven: true,
    ...remembersOf(options),
    assertOffered: (tools) => {
      assertOffered(pool.models, tools);
      fallback?.assertOffered?.(tools);
    },
    ...asksModels([...pool.models, summariser], [fallback]),
    next: (view, signal) => (view.streaming ? streamMove(view, signal) : generateMove(view, signal)),
  };
  return Object.freeze({ ...planner, compact: compactor({ options, pool, requests, summariser }) });
}

function remembersOf(options: ReactOptions): Pick<Planner, 'remembers'> {
  const { memory } = options;
  if (memory === undefined) return {};
  const { profile, recall = DEFAULT_RECALL } = memory;
  const extract = extractorOf(options);
  return { remembers: Object.freeze({ recall, ...defined({ profile, extract }) }) };
}

const GOES_ON: ReadonlySet<string> = new Set(['context_window_exceeded', 'context_exhausted', 'reply_refused']);

function askingNow({ asking, used }: ModelTurn, view: RunView): AskOptions {
  return { ...asking, left: leftFor(view, used) };
}

function withBefore(asked: ModelAnswer, { used }: ModelTurn): ModelAnswer {
  return used === undefined ? asked : { ...asked, usage: addUsage(used, asked.usage) };
}

/** No model is left that could be asked. */
function isRefused({ decision, fault }: Move): boolean {
  return decision.kind === 'finish' && decision.reason === 'refused' && fault === undefined;
}

/** The models of the tries that failed, a name for each try. */
function triedModels({ data }: PilotageError): readonly string[] {
  const tries = Array.isArray(data?.['tries']) ? (data['tries'] as readonly Json[]) : [];
  return tries.flatMap((each) => (isJsonObject(each) && typeof each['model'] === 'string' ? [each['model']] : []));
}

/** The models have had their tries: the move that ends the run, unless somebody takes over. */
interface LadderTurn {
  readonly kind: 'ladder';
  readonly move: Move;
}

interface ModelTurn {
  readonly kind: 'model';
  readonly remarks: Remark[];
  readonly asking: AskOptions;
  /** The model that the last request was made for. */
  asked: ReadyModel;
  /** The longest reply that it was asked for. */
  maxOutputTokens: number | undefined;
  /** What requests before have used that were made in a format that their model does not take. */
  used: Usage | undefined;
}

type Turn = LadderTurn | ModelTurn;
