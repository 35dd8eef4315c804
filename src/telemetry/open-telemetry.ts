/**
 * Runs as traces and metrics of OpenTelemetry. A span is made when the journal has what it tells of, with its times, by the process that has written
 * it; nothing is read twice, so that replays, resumed runs and readers make none.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Context, MeterProvider, Span, SpanContext, Tracer, TracerProvider } from '@opentelemetry/api';
import {
  assertOptions,
  type Entry,
  fieldOf,
  type OptionShape,
  PilotageError,
  parentSpanId,
  partSpanId,
  type RunTrace,
  readTraceparent,
  runSpanId,
  type Telemetry,
  type TracedAbout,
  type TracedPart,
  type TracedRun,
  traceIdOf,
  traceparentOf,
} from '#core';
import { type Api, loadApi } from './api.ts';
import { RunMetrics } from './metrics.ts';
import { withIds } from './run-ids.ts';
import { type CallEntry, callSpan, type EndEntry, moveSpan, planSpan, runSpan, type SpanFacts } from './spans.ts';

export interface OpenTelemetryOptions {
  /** What makes spans, with `runIds` as its `idGenerator`. Default: the provider that the program has registered. */
  readonly tracerProvider?: TracerProvider;
  /** What counts. Default: the provider that the program has registered. */
  readonly meterProvider?: MeterProvider;
  /**
   * True: spans also say what was asked, said and answered, and the arguments and results of calls, as the journal has them (`redact` comes
   * first). Default false.
   */
  readonly content?: boolean;
}

const OPTIONS: OptionShape<OpenTelemetryOptions> = {
  tracerProvider: 'object?',
  meterProvider: 'object?',
  content: 'flag?',
};
const SCOPE = 'pilotage';
/** So long a runtime that is closed waits for exporters. Milliseconds. */
const FLUSH_MS = 5_000;
const NOT_SENT = `What was traced and counted last was not sent: its exporter has not taken it within ${FLUSH_MS} ms. Is its collector there?`;

/** What was found out about the program's provider. */
interface Found {
  /** It gives spans ids of its own, which was told. */
  foreignIds: boolean;
}

/**
 * For the option `telemetry` of a runtime: each run is a span `invoke_agent`, with a span `chat` for each reply of a model and `execute_tool` for
 * each call below it, tasks below the calls that started them, and all of it in one trace, whichever processes carry the run out.
 * @throws PilotageError `invalid_config`; `package_missing` without `@opentelemetry/api`.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  assertOptions('openTelemetry', options, OPTIONS);
  const api = loadApi();
  const { trace, context, metrics } = api;
  const { tracerProvider = trace, meterProvider = metrics, content = false } = options;
  const counted = new RunMetrics(meterProvider.getMeter(SCOPE));
  const tracer = tracerProvider.getTracer(SCOPE);
  const found: Found = { foreignIds: false };
  return {
    parent: () => {
      const active = trace.getSpanContext(context.active());
      if (active === undefined || !api.isSpanContextValid(active)) return undefined;
      return traceparentOf({ ...active, isSampled: isSampled(active) });
    },
    of: (run) => new TracedSpans(run, { api, tracer, counted, found, content }),
    flush: () => flush(api, [tracerProvider, meterProvider]),
  };
}

/** The API has no word for it; each SDK has. @throws what an exporter throws; Error when they are silent. */
async function flush({ trace, metrics }: Api, given: readonly object[]): Promise<void> {
  const sent = given.map((provider) => {
    const registered = provider === trace ? trace.getTracerProvider() : provider;
    const own = provider === metrics ? metrics.getMeterProvider() : registered;
    // Not by its class: the program may have another copy of the API.
    const sdk = called(own, 'getDelegate') ?? own;
    return called(sdk, 'forceFlush');
  });
  const over = new AbortController();
  try {
    await Promise.race([Promise.all(sent), silence(over.signal)]);
  } finally {
    over.abort();
  }
}

function called(of: unknown, name: string): unknown {
  const method = fieldOf(of, name);
  return typeof method === 'function' ? method.call(of) : undefined;
}

/** Fails when nobody has taken the spans for so long. */
async function silence(signal: AbortSignal): Promise<void> {
  await delay(FLUSH_MS, undefined, { signal }).catch(() => {});
  if (!signal.aborted) throw new Error(NOT_SENT);
}

/** What all runs of a runtime have in common. */
interface Common {
  readonly api: Api;
  readonly tracer: Tracer;
  readonly counted: RunMetrics;
  readonly found: Found;
  readonly content: boolean;
}

class TracedSpans implements RunTrace {
  readonly #run: TracedRun;
  readonly #common: Common;
  readonly #traceId: string;
  /** The run's own span: begun once in each process that drives it, so that the sampler decides, and ended by the one that ends the run. */
  #own: { readonly id: string; readonly span: Span } | undefined;

  constructor(run: TracedRun, common: Common) {
    this.#run = run;
    this.#common = common;
    this.#traceId = traceIdOf(run);
  }

  within<T>(part: TracedPart, work: () => T): T {
    return this.#common.api.context.with(this.#contextOf(this.#idOf(part)), work);
  }

  traceparent(part?: TracedPart): string {
    const spanId = part === undefined ? runSpanId(this.#run) : this.#idOf(part);
    return traceparentOf({ traceId: this.#traceId, spanId, isSampled: this.#isSampled });
  }

  recorded(entry: Entry, about: TracedAbout): void {
    switch (entry.kind) {
      case 'moved':
      case 'plan_grown':
        this.#move(entry, about);
        return;
      case 'model_away':
        this.#asked(entry, about, entry.error.code, `#${entry.seq}`);
        return;
      case 'call_ended':
      case 'call_away':
      case 'call_waits':
        this.#call(entry, about);
        return;
      case 'finished':
      case 'failed':
        this.#asked(entry, about, entry.kind === 'failed' ? entry.error.code : entry.reason);
        this.#end(entry);
        return;
      default:
        return;
    }
  }

  #move({ at }: Entry, { move, provider }: TracedAbout): void {
    if (move === undefined || move.undoes !== undefined) return;
    const facts = moveSpan(this.#run, { ...move, at }, provider, this.#common.content);
    this.#emit(this.#idOf({ step: move.step }), facts);
    this.#common.counted.move(facts, move.usage);
  }

  /** What was done while the planner was asked is below its span, whatever came of it. */
  #asked({ at }: Entry, { asked }: TracedAbout, errorType: string, part = ''): void {
    if (asked === undefined) return;
    const { step, startedAt } = asked;
    this.#emit(this.#idOf({ step }, part), { ...planSpan(this.#run, step), startedAt, endedAt: at, errorType });
  }

  #call(entry: CallEntry, about: TracedAbout): void {
    const facts = callSpan(this.#run, entry, about, this.#common.content);
    if (facts === undefined) return;
    // What goes on later has spans for its parts, and the one of its first end is what it asked others from.
    const isPart = entry.kind !== 'call_ended' || about.isAgain === true;
    this.#emit(this.#idOf(entry, isPart ? `#${entry.seq}` : ''), facts);
    if (entry.startedAt !== undefined) this.#common.counted.call(facts);
  }

  #end(entry: EndEntry): void {
    const facts = runSpan(this.#run, entry, this.#common.content);
    this.#close(this.#span(), facts);
    this.#common.counted.run(facts);
  }

  get #isSampled(): boolean {
    const own = this.#span().spanContext();
    // Without a provider nobody has decided: what comes from outside is passed on.
    if (/^0*$/.test(own.traceId)) return readTraceparent(this.#run.trace ?? '')?.isSampled ?? false;
    return isSampled(own);
  }

  #span(): Span {
    const id = runSpanId(this.#run);
    if (this.#own?.id === id) return this.#own.span;
    const facts = runSpan(this.#run, undefined, this.#common.content);
    const parent = parentSpanId(this.#run);
    const above = parent === undefined ? this.#common.api.ROOT_CONTEXT : this.#contextOf(parent, this.#isRootSampled());
    const span = this.#start(id, facts, above);
    this.#own = { id, span };
    return span;
  }

  /** As the root of the run's tree says, or as its sampler says of such a trace, whose decision nobody has written down. */
  #isRootSampled(): boolean {
    const { identity, task, trace: given } = this.#run;
    if (given !== null || task === null) return readTraceparent(given ?? '')?.isSampled ?? true;
    const root = { ...this.#run, identity: { ...identity, run: task.root }, task: null };
    const { ROOT_CONTEXT } = this.#common.api;
    return isSampled(this.#start(runSpanId(root), runSpan(root, undefined, false), ROOT_CONTEXT).spanContext());
  }

  #idOf(part: TracedPart, of = ''): string {
    const { identity, reopenings } = this.#run;
    return partSpanId(`${identity.run}${of}`, part, reopenings);
  }

  #emit(id: string, facts: SpanFacts): void {
    this.#close(this.#start(id, facts, this.#contextOf(runSpanId(this.#run))), facts);
  }

  #start(spanId: string, { name, startedAt, attributes, isOfModel }: SpanFacts, above: Context): Span {
    const { SpanKind, trace, isSpanContextValid, INVALID_SPAN_CONTEXT } = this.#common.api;
    const kind = isOfModel === true ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const traceId = this.#traceId;
    const span = withIds({ traceId, spanId }, () =>
      this.#common.tracer.startSpan(name, { kind, startTime: startedAt, attributes }, above),
    );
    const made = span.spanContext();
    // Without an SDK the API gives back what is above.
    const isNobodys = !isSpanContextValid(made) || made.spanId === trace.getSpanContext(above)?.spanId;
    if (isNobodys || made.spanId === spanId) return span;
    if (this.#common.found.foreignIds) return trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
    this.#common.found.foreignIds = true;
    throw foreignIds();
  }

  #contextOf(spanId: string, isSampled = this.#isSampled): Context {
    const { trace, TraceFlags, ROOT_CONTEXT } = this.#common.api;
    const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId: this.#traceId, spanId, traceFlags, isRemote: true });
  }

  #close(span: Span, { endedAt, attributes, errorType }: SpanFacts): void {
    span.setAttributes(attributes);
    if (errorType !== undefined) {
      span.setAttribute('error.type', errorType);
      span.setStatus({ code: this.#common.api.SpanStatusCode.ERROR });
    }
    span.end(endedAt);
  }
}

function isSampled({ traceFlags }: Pick<SpanContext, 'traceFlags'>): boolean {
  return (traceFlags & 1) === 1;
}

function foreignIds(): PilotageError {
  return new PilotageError(
    'invalid_config',
    'The tracer provider gives spans of runs ids of its own, so that no other process could add to the trace of a run. Give the provider ours: `idGenerator: runIds`, from pilotage/telemetry.',
  );
}
