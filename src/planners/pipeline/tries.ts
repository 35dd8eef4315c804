/** The calls of models for one move. Each is numbered, redacted and recorded, whatever its result, and its cost counts. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import {
  addUsage,
  asJson,
  defined,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
  type PlanFault,
  type PlanTry,
  type PlanTryPurpose,
  type Remark,
  type RunView,
  steadyMs,
  type Usage,
  withUsage,
} from '#core';
import {
  askModel,
  BrokenReply,
  type BudgetLeft,
  failureData,
  type ModelAnswer,
  type ReadyModel,
  type Reply,
  refusalError,
  usageOfError,
  usageOfText,
} from '#model';
import { leftFor } from '#planners';
import type { ReadyPlan } from '#plans';
import type { Setup } from './options.ts';

export interface ModelRequest {
  readonly purpose: PlanTryPurpose;
  readonly model: ReadyModel;
  /** Without its abort signal. */
  readonly request: LanguageModelV4CallOptions;
  /** The number of the try before it. */
  readonly previous?: number | undefined;
  /** Ends this call earlier than the run's own. */
  readonly signal?: AbortSignal;
}

/** What a reply is worth. */
export interface Judged {
  readonly result: PlanTry['result'];
  readonly faults: readonly PlanFault[];
  /** The plan, when it is valid. */
  readonly plan?: ReadyPlan;
  /** What was repaired to read it. */
  readonly remarks?: readonly Remark[];
}

/** A call without a reply, or with one that was refused: nobody judges it. */
type Failed = Judged & { readonly result: 'failed' };

export interface Tried<J extends Judged = Judged> {
  readonly number: number;
  readonly call: ModelRequest;
  /** Raw, as the model gave it. */
  readonly output: string;
  /** A failed call was judged by nobody. */
  readonly judged: J | Failed;
}

export class Tries {
  /** What was done, in order, for the move. */
  readonly remarks: Remark[] = [];
  readonly #setup: Pick<Setup, 'redact' | 'patience' | 'note'>;
  readonly #run: RunView;
  readonly #template: PlanTry['template'];
  readonly #signal: AbortSignal;
  #usage: Usage | undefined;
  #count = 0;
  #away: PilotageError | undefined;
  #tight: PilotageError | undefined;
  #refusal: JsonObject | undefined;

  constructor(
    setup: Pick<Setup, 'redact' | 'patience' | 'note'>,
    run: RunView,
    template: PlanTry['template'],
    signal: AbortSignal,
  ) {
    this.#setup = setup;
    this.#run = run;
    this.#template = template;
    this.#signal = signal;
  }

  get count(): number {
    return this.#count;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Why no plan could be had of a model that was not there, of the last such try. */
  get away(): PilotageError | undefined {
    return this.#away;
  }

  /** What the last model that refused said, with its name. */
  get refusal(): JsonObject | undefined {
    return this.#refusal;
  }

  /** A reply that was refused is judged by nobody: its model is not asked again. */
  refused({ reply, model }: ModelAnswer): Failed | undefined {
    const { refusal } = reply;
    if (refusal === undefined) return undefined;
    return this.#noteRefusal(refusalError(refusal, undefined, model.name, undefined));
  }

  #noteRefusal({ code, message, data }: PilotageError): Failed {
    const { model = null, refusal } = data ?? {};
    this.#refusal = { model, ...(isJsonObject(refusal) ? refusal : {}) };
    return { result: 'failed', faults: [{ code, message }] };
  }

  /** What is left for the next request and its reply; `undefined`: nothing limits them. */
  get left(): BudgetLeft | undefined {
    return leftFor(this.#run, this.#usage);
  }

  /** Why the last request for a plan that had no room in the budget was not made. */
  get tight(): PilotageError | undefined {
    return this.#tight;
  }

  /** Nothing is left of the budget for what a plan can do without. */
  get isSpent(): boolean {
    const { tokens = Number.POSITIVE_INFINITY, costMicroUsd = Number.POSITIVE_INFINITY } = this.left ?? {};
    return this.#tight !== undefined || tokens <= 0 || costMicroUsd <= 0;
  }

  /**
   * One call. A model that gives no reply has failed; tries again, for failures that may pass, are within the call.
   * @throws the reason of the signal.
   */
  async ask<J extends Judged>(call: ModelRequest, judge: (reply: Reply) => J | Promise<J>): Promise<Tried<J>> {
    const { patience } = this.#setup;
    const begun = this.begin(call);
    const startedAt = steadyMs(patience.clock);
    let asked: ModelAnswer;
    try {
      asked = await askModel({
        ...patience,
        models: [call.model],
        requestFor: () => ({ ...call.request }),
        signal: call.signal ?? this.#signal,
        left: this.left,
      });
    } catch (error) {
      return begun.failed(error, '', Math.round(steadyMs(patience.clock) - startedAt));
    }
    return begun.ended<J>(asked, rawOutput(asked.reply), this.refused(asked) ?? (await judge(asked.reply)));
  }

  /** For a call that the caller makes itself. @throws the reason of the signal. */
  begin(call: ModelRequest): BegunTry {
    if (this.#signal.aborted) throw withUsage(this.#signal.reason, this.#usage);
    const { request, purpose, model, previous } = call;
    const prompt = JSON.stringify(redactTexts(asJson(request.prompt), this.#setup.redact));
    this.#count += 1;
    const number = this.#count;
    const { temperature, seed } = request;
    const about = {
      try: number,
      ...defined({ previous }),
      purpose,
      model: model.name,
      template: this.#template,
      ...defined({ temperature, seed }),
      prompt,
    };
    const record = (output: string, latencyMs: number, { result, faults }: Judged, usage: Usage | undefined): void => {
      if (usage !== undefined) this.#usage = addUsage(this.#usage, usage);
      const { redact, note } = this.#setup;
      const kept: PlanTry = {
        ...about,
        output: cut(redact(output)),
        latencyMs,
        ...defined({ usage }),
        result,
        faults: faults.map((fault) => ({ ...fault, message: redact(fault.message) })),
      };
      this.remarks.push({ type: 'plan.try', ...kept });
      note(kept);
    };
    return {
      ended: <J extends Judged>(asked: ModelAnswer, output: string, judged: J | Failed): Tried<J> => {
        this.remarks.push(...asked.remarks);
        record(output, asked.latencyMs, judged, asked.usage);
        this.remarks.push(...(judged.remarks ?? []));
        return { number, call, output, judged };
      },
      brokenOff: (output, latencyMs, judged, before) => {
        record(output, latencyMs, judged, addUsage(before, usageOfText(request, output, model)));
        return { number, call, output, judged };
      },
      failed: (error, output, latencyMs, before) => {
        if (this.#signal.aborted) throw withUsage(error, this.#usage);
        if (ASKS_FOR_A_PLAN.has(purpose)) {
          if (PilotageError.is(error, 'budget_exceeded')) this.#tight = error;
          if (PilotageError.is(error, 'model_unavailable')) this.#away = error;
        }
        const judged = PilotageError.is(error, 'model_refused')
          ? this.#noteRefusal(error)
          : { result: 'failed' as const, faults: [failureData(error)] };
        const isOurs = error instanceof BrokenReply;
        const usage = isOurs ? addUsage(before, usageOfText(request, output, model)) : usageOfError(error);
        // A request without room was not made.
        if (usage !== undefined || !PilotageError.is(error, 'budget_exceeded'))
          record(output, latencyMs, judged, usage);
        else this.#count -= 1;
        return { number, call, output, judged };
      },
    };
  }
}

export interface BegunTry {
  ended<J extends Judged>(asked: ModelAnswer, output: string, judged: J | Failed): Tried<J>;
  /** The caller wants no more of the reply. What it has used is estimated. @param before what replies have used that broke off before it. */
  brokenOff<J extends Judged>(output: string, latencyMs: number, judged: J, before?: Usage): Tried<J>;
  /** @throws the reason of the signal, when that is why. */
  failed(error: unknown, output: string, latencyMs: number, before?: Usage): Tried<never>;
}

/** Without an outline or a verdict there is a plan all the same. */
const ASKS_FOR_A_PLAN: ReadonlySet<PlanTryPurpose> = new Set(['plan', 'detail', 'rest', 'repair']);

/** What is kept of one reply. */
const MAX_OUTPUT_CHARS = 1_000_000;

function cut(text: string): string {
  if (text.length <= MAX_OUTPUT_CHARS) return text;
  return `${text.slice(0, MAX_OUTPUT_CHARS)}… (${text.length - MAX_OUTPUT_CHARS} characters more)`;
}

/** Tells also what calls the reply has, which are no text. */
function rawOutput({ text, calls }: Reply): string {
  if (calls.length === 0) return text;
  const said = text.trim() === '' ? [] : [text];
  return [...said, ...calls.map(({ tool, input }) => `${tool}(${input})`)].join('\n');
}

/** Every text in it has passed through `redact`, as it is and not as JSON spells it. */
function redactTexts(value: Json, redact: (text: string) => string): Json {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => redactTexts(item, redact));
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, redactTexts(field, redact)]));
}
