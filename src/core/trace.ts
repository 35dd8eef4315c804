/**
 * Where a run stands in a trace. The ids of a run's spans follow from its own id, so that whichever process goes on with it knows them, and so does
 * whatever a tool asks elsewhere (W3C Trace Context, https://www.w3.org/TR/trace-context/).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Entry, Moved } from './entry.ts';
import { PilotageError } from './errors.ts';
import type { Identity } from './identity.ts';
import type { Json } from './json.ts';
import type { TaskOrigin } from './task.ts';

/** A span, as others name it. */
export interface SpanPlace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** A run, as far as its trace goes. */
export interface TracedRun {
  readonly identity: Identity;
  readonly agent: string;
  readonly task: Pick<TaskOrigin, 'root'> | null;
  /** The traceparent of whoever started it, or the run at the root of its tree. */
  readonly trace: string | null;
  readonly query: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** How often it had failed and went on. */
  readonly reopenings: number;
}

/** A move or a call of a run. `call` is the place of the call in its step. */
export interface TracedPart {
  readonly step: number;
  readonly call?: number;
}

/** What an entry does not say of the call or the move that it tells of. */
export interface TracedAbout {
  /** The move that is whole with the entry. */
  readonly move?: Moved;
  /** The move that the planner was asked for when the entry was written, and has not made. */
  readonly asked?: Pick<Moved, 'step' | 'startedAt'>;
  readonly tool?: string;
  readonly args?: Json;
  readonly callId?: string;
  /** True: its step had ended, and was opened again for the call. */
  readonly isAgain?: boolean;
  /** When the call went on for the last time, when it had waited. Milliseconds since the epoch. */
  readonly wentOnAt?: number;
  /** The provider of the model, in the words of its package, such as `openai.chat`. */
  readonly provider?: string;
}

/** Where runs are traced and counted. Whatever it throws goes to `onFault`, and the run goes on. */
export interface Telemetry {
  /** The traceparent of what is under way in the program; a run that is started now becomes a part of it. */
  parent(): string | undefined;
  /** For as long as this process drives the run. What is read of it may change meanwhile. */
  of(run: TracedRun): RunTrace;
  /** Sends what is not sent yet: a runtime that is closed waits for it. */
  flush?(): Promise<void>;
}

export interface RunTrace {
  /** Carries out a part of the run: what is traced in it belongs to that part. It throws only what `work` throws. */
  within<T>(part: TracedPart, work: () => T): T;
  /** The traceparent of the part, for what it asks elsewhere, or of the run itself, for the one that goes on with it. */
  traceparent(part?: TracedPart): string;
  /** An entry of the run that this process has just written, once. */
  recorded(entry: Entry, about: TracedAbout): void;
}

/** Later versions of the standard may say more behind it. */
const PARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|(?<!^00.*)-)/s;

/** `undefined` for a text that names no span: the standard says that it is then as if there were none. */
export function readTraceparent(text: string): SpanPlace | undefined {
  const [, traceId, spanId, flags] = PARENT.exec(text.trim()) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparentOf({ traceId, spanId, isSampled }: SpanPlace): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

function digest(text: string, digits: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digits);
}

/** All runs of a tree are in one trace: that of whoever started its root, or one of its own. */
export function traceIdOf({ identity, task, trace }: TracedRun): string {
  const given = trace === null ? undefined : readTraceparent(trace)?.traceId;
  return given ?? digest(`pilotage trace ${task?.root ?? identity.run}`, 32);
}

/** The span of the run itself. A run that failed and went on has another one for each time. */
export function runSpanId({ identity, reopenings }: TracedRun): string {
  return digest(`pilotage run ${identity.run}${again(reopenings)}`, 16);
}

/**
 * The span of a call is named as the task is that carries it out: the task knows its own.
 * @param reopenings of the run: a planner that has failed is asked for the same step again.
 */
export function partSpanId(run: string, { step, call }: TracedPart, reopenings: number = 0): string {
  if (call !== undefined) return callSpanId(`${run}.${step}.${call}`);
  return digest(`pilotage move ${run} ${step}${again(reopenings)}`, 16);
}

function again(reopenings: number): string {
  return reopenings === 0 ? '' : ` ${reopenings}`;
}

function callSpanId(task: string): string {
  return digest(`pilotage call ${task}`, 16);
}

/** What started the run: a call of the run above it, or what its trace names. */
export function parentSpanId({ identity, task, trace }: TracedRun): string | undefined {
  if (task !== null) return callSpanId(identity.run.replace(/~\d+$/, ''));
  return trace === null ? undefined : readTraceparent(trace)?.spanId;
}

const given = new AsyncLocalStorage<string | undefined>();

/**
 * Runs that `work` starts become a part of the trace that a request has named. A text that names none changes nothing.
 * @throws what `work` throws; PilotageError `invalid_config` when it is not a function.
 */
export function withTraceparent<T>(traceparent: string | undefined, work: () => T): T {
  if (typeof work !== 'function') {
    const message =
      'withTraceparent takes a traceparent and a function that starts runs, such as () => runtime.start(query).';
    throw new PilotageError('invalid_config', message);
  }
  // Written anew: what a later version says behind it is for nobody here, and as long as whoever sends it likes.
  const place = typeof traceparent === 'string' ? readTraceparent(traceparent) : undefined;
  return place === undefined ? work() : given.run(traceparentOf(place), work);
}

/** Drives a run with the trace that its first entry names, whoever's request has led here. */
export function withTraceOf<T>({ trace }: Pick<TracedRun, 'trace'>, work: () => T): T {
  return given.run(trace ?? undefined, work);
}

/** What a run that is started now becomes a part of, where no telemetry says it. */
export function givenTraceparent(): string | undefined {
  return given.getStore();
}
