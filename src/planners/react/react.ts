/** ReAct: one model call a step, whichever way the model writes its calls. It holds no state of a run but caches. */
import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider';
import {
  asPlanner,
  assertIdentity,
  captureObject,
  type Delta,
  defined,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  type Move,
  type OutputMode,
  PilotageError,
  type Planner,
  type Remark,
  type RunView,
  systemClock,
} from '#core';
import { type AskOptions, askModel, isFormatRefusal, oneLower, type ReadyModel, streamModel } from '#model';
import { askFallback, asksModels, modelPool } from '#planners';
import { guidanceTurn, unreadableInputs } from '#prompt';
import { answerForm } from './answer-form.ts';
import { compactor, summariserOf } from './compact.ts';
import { CALM, exhausted, modelsLeft, type Rung, rungOf, unavailable } from './ladder.ts';
import { MadeCalls } from './made-calls.ts';
import { moveOf, PlainProvenance, readingOf } from './move.ts';
import { assertReactOptions, DEFAULT_REASKS, endsByCall, type ReactOptions } from './options.ts';
import { FULL_WINDOW, Requests, windowShare } from './requests.ts';
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
  const { reasks = DEFAULT_REASKS, clock = systemClock, compaction, retries, stallMs } = options;
  const form = options.answerSchema === undefined ? undefined : answerForm(answerSchemaOf(options.answerSchema));
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

  /** Everything about one step but the model's reply. */
  function begin(view: RunView, signal: AbortSignal): Turn {
    signal.throwIfAborted();
    if (!requests.knows(view)) assertIdentity(view.identity);
    const rung = rungOf(view.trajectory, reasks);
    const models = tookOver(view) ? [] : fitting(view, rung);
    if (models.length === 0) return { kind: 'ladder', move: exhausted(rung) };
    const isCalm = rung === CALM && view.noProgress === undefined;
    const guidance = isCalm ? undefined : guidanceTurn(rung.counters, view.noProgress, endsByCall(options, view));
    const remarks: Remark[] = guidance === undefined ? [] : [...guidance.remarks];
    if (view.trajectory.count === 0) remarks.push(...unreadableInputs(view));
    const turn: ModelTurn = {
      kind: 'model',
      remarks,
      asked: models[0] as ReadyModel,
      asking: { ...patience, models, signal, requestFor: (model) => requestFor(model, turn, view, guidance?.message) },
    };
    return turn;
  }

  function requestFor(
    model: ReadyModel,
    turn: ModelTurn,
    view: RunView,
    reminder: LanguageModelV4Message | undefined,
  ): LanguageModelV4CallOptions {
    turn.asked = model;
    return requests.of(view, model, reminder, formats.get(model) ?? model.structuredOutput);
  }

  /**
   * The models that are left and whose window has room for the request; perhaps none, when others have had their tries.
   * @throws PilotageError `context_window_exceeded` when no model has room.
   */
  function fitting(view: RunView, rung: Rung): readonly ReadyModel[] {
    const models = modelsLeft(pool.ranked(), rung);
    if (models.every(({ contextTokens }) => contextTokens === undefined)) return models;
    const sizes = models.map((model) => windowShare(view, model, requests));
    const fit = models.filter((_, index) => (sizes[index] as number) < FULL_WINDOW);
    if (fit.length > 0 || rung.spent.length > 0) return fit;
    const share = Math.round(Math.min(...sizes) * 100);
    throw new PilotageError(
      'context_window_exceeded',
      `The request would take about ${share} % of the model's window. Set compaction, or use a model with a larger one.`,
    );
  }

  /** What to do about a failure of the models: try another format (`undefined`), end with a move, or throw it. */
  function recover(error: unknown, turn: ModelTurn): Move | undefined {
    const model = turn.asked;
    if (PilotageError.is(error, 'model_unavailable')) {
      for (const name of triedModels(error)) pool.record(name, { succeeded: false });
      return unavailable(error, turn.remarks, fallback !== undefined);
    }
    if (form === undefined || !isFormatRefusal(error)) {
      if (!turn.asking.signal.aborted) pool.record(model.name, { succeeded: false });
      throw error;
    }
    const from = formats.get(model) ?? model.structuredOutput;
    const to = oneLower(from);
    if (to === undefined) throw error;
    formats.set(model, to);
    turn.remarks.push({ type: 'model.output_downgraded', model: model.name, from, to });
    return undefined;
  }

  async function generateMove(view: RunView, signal: AbortSignal): Promise<Move> {
    const turn = begin(view, signal);
    if (turn.kind === 'ladder') return endOrFallBack(turn.move, view, signal);
    for (;;) {
      try {
        return moveOf(await askModel(turn.asking), turn.remarks, view, making);
      } catch (error) {
        const move = recover(error, turn);
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
        const asked = yield* proseOnly(streamModel(turn.asking), reading);
        return moveOf(asked, turn.remarks, view, making);
      } catch (error) {
        const move = recover(error, turn);
        if (move !== undefined) return yield* fallBackStreaming(move, view, signal);
      }
    }
  }

  function tookOver({ trajectory }: RunView): boolean {
    return fallback !== undefined && trajectory.step(trajectory.count - 1)?.provenance?.['fallback'] === fallback.name;
  }

  async function endOrFallBack(ending: Move, view: RunView, signal: AbortSignal): Promise<Move> {
    const stream = fallBackStreaming(ending, view, signal);
    for (;;) {
      const { value, done } = await stream.next();
      if (done === true) return value;
    }
  }

  async function* fallBackStreaming(ending: Move, view: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
    return fallback === undefined ? ending : yield* askFallback(fallback, ending, view, signal);
  }

  const summariser = summariserOf(options);
  const planner: Planner = {
    name: 'react',
    version: VERSION,
    wakeMode: 'push',
    modelDriven: true,
    ...asksModels([...pool.models, summariser], [fallback]),
    next: (view, signal) => (view.streaming ? streamMove(view, signal) : generateMove(view, signal)),
  };
  return Object.freeze(
    compaction === undefined
      ? planner
      : { ...planner, compact: compactor(compaction, { options, pool, requests, summariser }) },
  );
}

/** What makes a JSON Schema may give it a type, and functions, of its own. @throws PilotageError `invalid_config`. */
function answerSchemaOf(given: object): JsonObject {
  try {
    return captureObject(given, 'answerSchema').json;
  } catch (cause) {
    const message = `The option answerSchema of react must be a JSON Schema: ${describeThrown(cause)}`;
    throw new PilotageError('invalid_config', message, { cause });
  }
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
}

type Turn = LadderTurn | ModelTurn;
