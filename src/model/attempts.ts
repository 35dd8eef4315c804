/**
 * Gets one reply from a list of models. After a failure that may pass, the request is tried again, then with the next model; any other
 * failure is thrown unchanged. Each failed try is reported as a remark.
 */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import {
  addUsage,
  type Clock,
  describeThrown,
  isJsonObject,
  type JsonObject,
  PilotageError,
  type Remark,
  type Source,
  type SpokenDelta,
  steadyMs,
  type Usage,
  withUsage,
} from '#core';
import type { ReadyModel } from './entry.ts';
import {
  BrokenReply,
  failureData,
  httpStatusOf,
  remedyFor,
  retryAfterMs,
  type Unavailable,
  whyUnavailable,
} from './failure.ts';
import { overflowError, overflowOf } from './overflow.ts';
import { refusalError, refusalOf } from './refusal.ts';
import { generatedReply, type Reply, StreamedContent, streamedReply, streamReply } from './reply.ts';
import { type BudgetLeft, withinBudget } from './reply-room.ts';
import { estimated, estimateTokens, priced } from './usage.ts';
import { paceOf, Watch } from './watch.ts';

const DEFAULT_RETRIES = 2;
const DEFAULT_STALL_MS = 120_000;
const DEFAULT_CALL_TIMEOUT_MS = 600_000;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
/** The longest wait, in milliseconds, within one request. When a provider asks for more, the run waits instead, which holds no slot. */
const MAX_ASKED_MS = 2_000;
/** Models that have answered this process at least once. If such a model does not answer later, that is an outage. */
const ALIVE = new WeakSet<ReadyModel['model']>();

export interface AskOptions {
  /** The models, at least one, tried in this order. */
  readonly models: readonly ReadyModel[];
  /** The request, made once for each model that is asked. Its abort signal is set here. */
  readonly requestFor: (model: ReadyModel) => LanguageModelV4CallOptions;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** A number from 0 up to, not including, 1, which spreads the waits. Default `Math.random`. */
  readonly random?: () => number;
  /** How many further tries one model gets after a failure that may pass. Default 2. */
  readonly retries?: number;
  /**
   * Milliseconds without any part of a reply after which the try counts as a failure that may pass. Default 120,000 for a stream; for a
   * reply in one piece the model's `callTimeoutMs`.
   */
  readonly stallMs?: number;
  /** What the run has left for the request and its reply, which is asked to be no longer. Absent: nothing limits them. */
  readonly left?: BudgetLeft | undefined;
  /** About how many tokens a request has, for whoever knows more of it than its texts. Asked where something is `left`. Default: an estimate. */
  readonly tokensOf?: (request: LanguageModelV4CallOptions, model: ReadyModel) => number;
}

export interface ModelAnswer {
  readonly reply: Reply;
  /** The one that gave the reply. */
  readonly model: ReadyModel;
  /** A `model.fallback` for each failed try, a `model.usage_refused` for each usage that cannot be true, a `model.warned` for what the provider warned of. */
  readonly remarks: readonly Remark[];
  /** Usage of all tries that began, estimated where a provider did not report it, with the cost where the model has prices. */
  readonly usage: Usage;
  /** How long the try that gave the reply took, in milliseconds. */
  readonly latencyMs: number;
}

/**
 * @throws the reason of the signal, or PilotageError `cancelled` with it as its cause and the usage of what was begun as `data.usage`; PilotageError `budget_exceeded` for a request that does not fit what is `left` (see `withinBudget`); `context_window_exceeded` for a request that does not fit, with `data.model` and
 * `data.overflow`; PilotageError `model_refused` for a request that is refused for what it says, with `data.model` and `data.refusal`; another failure that is the request's fault, as it is, or as the cause of one that says what was used before it; PilotageError `model_unavailable` when no model is available, with `data.why` (an `Unavailable`), `data.tries`, perhaps `data.retryAfterMs`, and the last failure as its cause.
 */
export async function askModel(options: AskOptions): Promise<ModelAnswer> {
  const tries = new Tries(options);
  for (;;) {
    tries.throwIfStopped();
    const { model } = tries.model;
    const request = tries.bounded();
    const watch = watchOver(tries.model, options, Number.POSITIVE_INFINITY);
    let failure: unknown;
    let reply: Reply | undefined;
    try {
      reply = generatedReply(model, await watch.until(model.doGenerate(watched(request, watch))));
      options.signal.throwIfAborted();
      return tries.asked(reply, watch.tookMs);
    } catch (error) {
      failure = error;
    } finally {
      watch.end(false);
    }
    await tries.next(failure, false, reply);
  }
}

/**
 * Yields what the models say while they say it. A `reset` comes before a new try when something of the failed try was
 * shown. The provider's stream is cancelled by an abort, by a stall, and when the consumer stops.
 * @throws as `askModel`.
 */
export async function* streamModel(options: AskOptions): AsyncGenerator<SpokenDelta, ModelAnswer> {
  const { signal } = options;
  const tries = new Tries(options);
  for (;;) {
    tries.throwIfStopped();
    const { model } = tries;
    const request = tries.bounded();
    const watch = watchOver(model, options, DEFAULT_STALL_MS);
    const streamed = new StreamedContent();
    const stream = streamReply(model.model, watched(request, watch), { watch, streamed, pace: paceOf(options.clock) });
    let shown = false;
    let reply: Reply | undefined;
    let failure: unknown;
    try {
      for (;;) {
        let next: IteratorResult<SpokenDelta, Reply>;
        // Only reading is guarded: an error that the consumer throws in at `yield` is not a failure of the model.
        try {
          next = await stream.next();
        } catch (error) {
          failure = error;
          // The reply is whole; only the end of its stream was not.
          if (streamed.finished && !signal.aborted) reply = streamedReply(model.model, streamed);
          break;
        }
        if (next.done === true) {
          reply = next.value;
          break;
        }
        shown = true;
        yield next.value;
      }
    } finally {
      watch.end(reply === undefined);
      // Cancels the stream when the consumer has stopped; otherwise it is over already.
      await stream.return(undefined as never);
    }
    if (reply !== undefined && !isNothing(reply)) return tries.asked(reply, watch.tookMs);
    if (reply !== undefined)
      failure = new BrokenReply('model_interrupted', 'The stream ended before anything was said.');
    await tries.next(failure, streamed.began, streamed.began ? streamedReply(model.model, streamed) : undefined);
    if (shown) yield { type: 'reset' };
  }
}

function watched(request: LanguageModelV4CallOptions, watch: Watch): LanguageModelV4CallOptions {
  return { ...request, abortSignal: watch.signal };
}

function watchOver(
  { callTimeoutMs = DEFAULT_CALL_TIMEOUT_MS }: ReadyModel,
  { signal, clock, stallMs }: AskOptions,
  usualMs: number,
): Watch {
  return new Watch({ signal, clock, stallMs: stallMs ?? usualMs, limitMs: callTimeoutMs });
}

/** An interrupted reply that says something is given to the planner, which judges it. */
function isNothing({ finish, text, calls }: Reply): boolean {
  return finish === 'interrupted' && calls.length === 0 && text.trim() === '';
}

function saysAnything({ text, reasoning, calls }: Reply): boolean {
  return text !== '' || reasoning !== '' || calls.length > 0;
}

/** Most replies come at the first try. */
const NOTHING: readonly never[] = Object.freeze([]);

/** Knows which model is asked now, and how the tries before ended. */
class Tries {
  readonly #options: AskOptions;
  #remarks: readonly Remark[] = NOTHING;
  #failed: readonly JsonObject[] = NOTHING;
  /** Why each model that was given up is unavailable. */
  #given: readonly GivenUp[] = NOTHING;
  #usage: Usage | undefined;
  #place = 0;
  #failures = 0;
  model: ReadyModel;
  request: LanguageModelV4CallOptions;

  constructor(options: AskOptions) {
    this.#options = options;
    const [first] = options.models;
    if (first === undefined) throw new PilotageError('invalid_config', 'There is no model to ask. List at least one.');
    this.model = first;
    this.request = options.requestFor(first);
  }

  /** The request for the next try. @throws as `withinBudget`. */
  bounded(): LanguageModelV4CallOptions {
    const { left, tokensOf = (sent) => estimateTokens(sent) } = this.#options;
    const { request, model } = this;
    if (left === undefined) return request;
    return withinBudget(left, { request, model, tokens: tokensOf(request, model) }, this.#usage);
  }

  /** @param tookMs how long the try took. */
  asked(reply: Reply, tookMs: number): ModelAnswer {
    ALIVE.add(this.model.model);
    const usage = this.#count(reply);
    if (reply.warnings !== undefined) this.#noteWarnings(reply.warnings);
    if (reply.sources !== undefined) this.#noteSources(reply.sources);
    return { reply, model: this.model, remarks: this.#remarks, usage, latencyMs: Math.round(tookMs) };
  }

  #noteSources(sources: readonly Source[]): void {
    this.#remarks = [...this.#remarks, { type: 'model.sources', model: this.model.name, sources }];
  }

  #noteWarnings(given: NonNullable<Reply['warnings']>): void {
    const warnings = given.slice(0, MAX_WARNINGS).map(wordsOf);
    this.#remarks = [...this.#remarks, { type: 'model.warned', model: this.model.name, warnings }];
  }

  /** Goes on to the next try, when its time has come. @throws what ends the asking. */
  async next(error: unknown, inStream: boolean, said?: Reply): Promise<void> {
    const { signal, clock, models, requestFor } = this.#options;
    if (signal.aborted) throw this.#stopped(signal.reason, said);
    const overflow = overflowOf(error);
    if (overflow !== undefined) {
      if (said !== undefined) this.#count(said);
      throw overflowError(overflow, error, this.model.name, this.#usage);
    }
    const refused = refusalOf(error);
    if (refused !== undefined) {
      if (said !== undefined) this.#count(said);
      throw refusalError(refused, error, this.model.name, this.#usage);
    }
    const why = this.#whyUnavailable(error, inStream);
    // The provider accepted the request, and charges for it; one that it finds wrong before a word is said was not carried out.
    if (said !== undefined && (why !== undefined || saysAnything(said))) this.#count(said);
    if (why === undefined) throw this.#faultOf(error);
    const from = this.model.name;
    const data = failureData(error);
    this.#failed = [...this.#failed, { model: from, ...data }];
    const askedMs = retryAfterMs(error, clock.now());
    let waitMs = 0;
    if (this.#mayTryAgain(why, askedMs)) {
      waitMs = Math.max(this.#backoffMs(), askedMs ?? 0);
      this.#failures += 1;
    } else {
      this.#given = [...this.#given, { why, askedMs, remedy: remedyFor(why, error, from) }];
      const model = models[this.#place + 1];
      if (model === undefined) throw this.#unavailable(error);
      this.#place += 1;
      this.#failures = 0;
      this.model = model;
      try {
        this.request = requestFor(model);
      } catch (thrown) {
        throw withUsage(thrown, this.#usage);
      }
    }
    this.#remarks = [...this.#remarks, { type: 'model.fallback', from, to: this.model.name, error: data }];
    if (waitMs > 0) await pause(waitMs, signal, clock);
  }

  /** What is wrong with the request: as it was thrown, or with what was used by then. In a stream providers send plain objects. */
  #faultOf(error: unknown): unknown {
    if (this.#usage === undefined || error instanceof Error) return withUsage(error, this.#usage);
    return withUsage(new Error(failureData(error).message, { cause: error }), this.#usage);
  }

  /** @throws the reason of the signal, with what was used by then. */
  throwIfStopped(): void {
    const { signal } = this.#options;
    if (signal.aborted) throw this.#stopped(signal.reason, undefined);
  }

  /** What a reply that is stopped has used counts: its provider charges for it. */
  #stopped(reason: unknown, said: Reply | undefined): unknown {
    if (said !== undefined) this.#count(said);
    if (this.#usage === undefined) return reason;
    const message = `The reply of the model ${this.model.name} was stopped.`;
    return new PilotageError('cancelled', message, { data: { usage: { ...this.#usage } }, cause: reason });
  }

  /** A server that has answered before, in any way, is known to exist. */
  #whyUnavailable(error: unknown, inStream: boolean): Unavailable | undefined {
    const why = whyUnavailable(error, inStream);
    const { model } = this.model;
    if (httpStatusOf(error) !== undefined) ALIVE.add(model);
    return why === 'unreachable' && ALIVE.has(model) ? 'away' : why;
  }

  #mayTryAgain(why: Unavailable, askedMs: number = 0): boolean {
    const { retries = DEFAULT_RETRIES } = this.#options;
    return isPassing(why) && this.#failures < retries && askedMs <= MAX_ASKED_MS;
  }

  /** Full jitter, so that many runs that failed together do not come back together. */
  #backoffMs(): number {
    const { random = Math.random } = this.#options;
    return random() * Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, MAX_BACKOFF_MS);
  }

  #count(reply: Reply): Usage {
    const { name, prices } = this.model;
    const { refusedUsage: why } = reply;
    if (why !== undefined) this.#remarks = [...this.#remarks, { type: 'model.usage_refused', model: name, why }];
    const used = estimated(reply.usage, this.request, reply);
    this.#usage = addUsage(this.#usage, prices === undefined ? used : priced(used, prices));
    return this.#usage;
  }

  /** The run may wait as long as one of the models may come back; the first of those says how long. */
  #unavailable(cause: unknown): PilotageError {
    const count = this.#failed.length;
    const { code, message } = failureData(cause);
    const hopes = this.#given.filter(({ why }) => isPassing(why));
    const why = (hopes.find((given) => given.why === 'away') ?? hopes[0] ?? this.#given[0])?.why ?? 'away';
    const waits = hopes.map(({ askedMs = 0 }) => askedMs);
    const askedMs = waits.length === 0 ? 0 : Math.min(...waits);
    const remedies = this.#given.flatMap(({ remedy }) => remedy ?? []);
    const last = `No model replied in ${count} ${count === 1 ? 'try' : 'tries'}; the last failure, of ${this.model.name}, was ${code}: ${message}`;
    const text =
      remedies.length === this.#given.length ? [...new Set(remedies)].join(' ') : [...remedies, last].join(' ');
    return new PilotageError('model_unavailable', text, {
      data: {
        why,
        tries: this.#failed,
        ...(askedMs === 0 ? {} : { retryAfterMs: askedMs }),
        ...(this.#usage === undefined ? {} : { usage: { ...this.#usage } }),
      },
      cause,
    });
  }
}

const MAX_WARNINGS = 10;
const MAX_WARNING_CHARS = 500;

/** What it is about, and what is said of it. A provider of another version may warn in a form that is not known here. */
function wordsOf(warning: unknown): string {
  const given = isJsonObject(warning) ? warning : {};
  const { type, feature, setting, message, details } = given;
  const words = [type === 'other' ? undefined : type, feature, setting, message, details];
  const said = words.filter((word) => typeof word === 'string').join(': ') || describeThrown(warning);
  return said.slice(0, MAX_WARNING_CHARS).toWellFormed();
}

/** A model that has had its tries. */
interface GivenUp {
  readonly why: Unavailable;
  /** How long its provider asks not to be called again, in milliseconds. */
  readonly askedMs: number | undefined;
  readonly remedy: string | undefined;
}

function isPassing(why: Unavailable): boolean {
  return why === 'away' || why === 'unreachable';
}

/** Until the time is over, or the signal is aborted. */
function pause(delayMs: number, signal: AbortSignal, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const endsAt = steadyMs(clock) + delayMs;
    let cancelTimer: () => void;
    const onAbort = (): void => {
      cancelTimer();
      resolve();
    };
    const wait = (): void => {
      const leftMs = endsAt - steadyMs(clock);
      if (leftMs > 0) {
        cancelTimer = clock.after(leftMs, wait);
        return;
      }
      signal.removeEventListener('abort', onAbort);
      resolve();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    wait();
  });
}
