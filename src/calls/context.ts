/** What a tool is given beside its arguments, and what it leaves behind beside its value. */
import { isUint8Array } from 'node:util/types';
import {
  type ArtifactRef,
  type ArtifactRow,
  assertOptions,
  type CallPlace,
  type Clock,
  capture,
  type EventPayloads,
  type Identity,
  type Json,
  type JsonObject,
  type LazySignal,
  type OptionShape,
  PilotageError,
  type SkillView,
  type Store,
  type StoreUse,
  Thrown,
  type ToolView,
  type WaitEnd,
} from '#core';
import { type ArtifactStore, storeIfLarge } from '#journal';
import type { WaitingCall } from '#state';
import type { ArtifactDescription, AwaitedEvent, HandleSet, Question, ToolContext } from '#tools';
import type { RunTracing } from '../loop/run-tracing.ts';
import type { Attempt } from './attempt.ts';
import { CallStore, type CallStorePorts } from './call-store.ts';
import { CallStreams, type RunStreams } from './call-streams.ts';
import { NOT_SENT, OUTCOME_UNKNOWN } from './doubt.ts';
import { type KeptPorts, keptOnce } from './kept-work.ts';
import type { LargeTurns } from './large-values.ts';
import type { Spender } from './model-request.ts';
import { callIsOver, type ToolSpending } from './spending.ts';
import { AttemptWaits, type NewWait, type WaitingStops, type WaitPorts } from './waits.ts';

/** The call that a context belongs to. */
export interface OwnCall {
  /** What it has waited for before. */
  readonly waiting: WaitingCall | undefined;
  readonly attempt: Pick<Attempt, 'untimed' | 'spoke'>;
  readonly open: { readonly move: { readonly step: number } };
  readonly index: number;
  readonly branch: { readonly tool: string };
  readonly idempotencyKey: string;
  readonly identity: Identity;
  readonly tools: ToolView;
}

interface ContextPorts {
  readonly spending: ToolSpending;
  readonly clock: Clock;
  readonly artifacts: ArtifactStore;
  readonly turns: LargeTurns;
  /** What the run was started with beside its query. */
  readonly meta: JsonObject;
  /** Those of the run. */
  readonly skills: SkillView;
  /** The long-term store for this run's calls. */
  readonly store: CallStorePorts;
  readonly streams: RunStreams;
  readonly tracing: Pick<RunTracing, 'traceparent'> | undefined;
  /** Tells whoever reads the run, or one above it. */
  tellChunk(call: OwnCall, piece: Piece): void;
  /** What `context.once` has recorded of the call. */
  readonly kept: KeptPorts;
  /** Asks while the call stays open. */
  hold(call: OwnCall, asked: NewWait): Promise<WaitEnd>;
}

const NO_HANDLES: Readonly<Record<string, unknown>> = Object.freeze({});

/** A chunk, and which one it is of which attempt. */
export type Piece = Pick<EventPayloads['tool.chunk'], 'attempt' | 'index' | 'chunk'>;

/** The context of one attempt. Everything in it that most tools never use is made when it is asked for. */
export class CallContext implements ToolContext<HandleSet>, Spender {
  readonly idempotencyKey: string;
  readonly identity: Identity;
  readonly attempt: number;
  readonly #call: OwnCall;
  readonly #ports: ContextPorts;
  readonly #lazy: LazySignal;
  readonly handles: Readonly<Record<string, unknown>>;
  #discovered: string[] | undefined;
  #saving: Promise<ArtifactRow>[] | undefined;
  #store: CallStore | undefined;
  #streams: CallStreams | undefined;
  #emitted = 0;
  #isOver = false;
  #over: AbortController | undefined;
  #spends = false;
  #waits: AttemptWaits | undefined;
  #works: Map<string, Promise<Json>> | undefined;
  /** What was thrown by a work of `once` of which nobody knows now whether it is done. */
  #unsure: Thrown | undefined;
  readonly #stops: WaitingStops | undefined;
  #isParked = false;

  constructor(
    call: OwnCall,
    ports: ContextPorts,
    lazy: LazySignal,
    attempt: number,
    stops?: WaitingStops,
    handles: Readonly<Record<string, unknown>> = NO_HANDLES,
  ) {
    this.idempotencyKey = call.idempotencyKey;
    this.identity = call.identity;
    this.attempt = attempt;
    this.handles = handles;
    this.#call = call;
    this.#ports = ports;
    this.#lazy = lazy;
    this.#stops = stops;
  }

  get signal(): AbortSignal {
    return this.#lazy.signal;
  }

  get tools(): ToolView {
    return this.#call.tools;
  }

  get meta(): JsonObject {
    return this.#ports.meta;
  }

  get skills(): SkillView {
    return this.#ports.skills;
  }

  get traceparent(): string | undefined {
    return this.#ports.tracing?.traceparent(this.place);
  }

  get emit(): ToolContext['emit'] {
    return (chunk) => this.#emit(chunk);
  }

  /** The attempt has ended or was given up: its chunks are dropped from now on. */
  end(): void {
    this.#isOver = true;
    this.#over?.abort();
    if (this.#spends) this.#ports.spending.over(this);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** For a generator, which is closed then. */
  get over(): AbortSignal {
    this.#over ??= new AbortController();
    if (this.#isOver) this.#over.abort();
    return this.#over.signal;
  }

  get place(): CallPlace {
    const { open, index } = this.#call;
    return { step: open.move.step, call: index };
  }

  get tool(): string {
    return this.#call.branch.tool;
  }

  get model(): ToolContext['model'] {
    return (model) => {
      this.#spends = true;
      return this.#ports.spending.modelFor(this, model);
    };
  }

  get ask(): ToolContext['ask'] {
    return ((question: Question) => promised(() => this.#waiting().ask(question))) as ToolContext['ask'];
  }

  get sleep(): ToolContext['sleep'] {
    return (time) => promised(() => this.#waiting().sleep(time));
  }

  get event(): ToolContext['event'] {
    return ((event: AwaitedEvent) => promised(() => this.#waiting().event(event))) as ToolContext['event'];
  }

  get once(): ToolContext['once'] {
    return (name, work) => promised(() => this.#once(name, work));
  }

  /** What the attempt has begun to wait for, when it was stopped because it waits. */
  get begunWaits(): readonly NewWait[] | undefined {
    return this.#isParked ? this.#waits?.begun : undefined;
  }

  #waiting(): AttemptWaits {
    if (this.#isOver) throw callIsOver(this.tool, 'and waits for nothing');
    const stops = this.#stops;
    if (stops === undefined) {
      const message =
        'reconcile finds out at once what has become of a call. It cannot wait: answer { status: "unknown" }.';
      throw new PilotageError('invalid_config', message);
    }
    const { clock } = this.#ports;
    const stop = (): void => {
      stops.idle();
      if (this.#isOver) return;
      const unsure = stops.fail && this.#unsure;
      this.#isParked = unsure === undefined;
      if (unsure === undefined) this.#isParked = stops.park();
      else stops.fail?.(unsure);
    };
    const { attempt } = this.#call;
    const hold: WaitPorts['hold'] = (asked) => attempt.untimed(this.#ports.hold(this.#call, asked));
    this.#waits ??= new AttemptWaits({
      known: this.#call.waiting?.waits ?? [],
      now: () => clock.now(),
      recorded: this.#ports.store.redaction.known,
      stop,
      hold,
    });
    return this.#waits;
  }

  #once<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    if (this.#isOver) throw callIsOver(this.tool, 'and records nothing');
    this.#works ??= new Map();
    const done = (): Promise<Json> => this.#work(name, work);
    // The same work twice in one attempt is done once. `reconcile` records what it finds done, and waits for nothing.
    const made = this.#works.get(name) ?? (this.#stops === undefined ? done() : this.#waiting().within(done));
    this.#works.set(name, made);
    return made as Promise<T>;
  }

  async #work(name: string, work: () => unknown): Promise<Json> {
    let isDone = false;
    const noted = async (): Promise<unknown> => {
      const made = await work();
      isDone = true;
      return made;
    };
    try {
      return await keptOnce(this.place, name, typeof work === 'function' ? noted : work, this.#ports.kept);
    } catch (thrown) {
      const error = Thrown.of(thrown);
      if (isDone) this.#unsure ??= unrecorded(name, error);
      else if (error.code === OUTCOME_UNKNOWN || (this.#lazy.aborted && error.code !== NOT_SENT))
        this.#unsure ??= error;
      throw thrown;
    }
  }

  get spent(): ToolContext['spent'] {
    return (used) => {
      const spent = this.#ports.spending.spent(this, used);
      // A tool need not wait for it, and what fails then must not end the process.
      spent.catch(() => {});
      return spent;
    };
  }

  get store(): Store {
    if (this.#store === undefined) {
      const { step, call } = this.place;
      const source = { run: this.identity.run, step, call };
      this.#store = new CallStore(this.#ports.store, source, () => {
        if (this.#isOver) throw callIsOver(this.tool, 'and uses the store no more');
      });
    }
    return this.#store;
  }

  get stream(): ToolContext['stream'] {
    return (name) => {
      this.#streams ??= new CallStreams(this.#ports.streams, { ...this.place, attempt: this.attempt }, () => {
        if (this.#isOver) return callIsOver(this.tool, 'and writes to no stream');
        this.#call.attempt.spoke();
        return undefined;
      });
      return this.#streams.writer(name);
    };
  }

  /** Stores what was written to streams and is not stored yet; `undefined` when there were none. */
  untilStreamed(): Promise<void> | undefined {
    return this.#streams?.flush();
  }

  /** What it has read and written; `undefined` when it did not touch the store. @param hasValue the call has ended with a value. */
  storeUse(hasValue: boolean): Promise<StoreUse | undefined> | undefined {
    if (this.#store?.isUsed !== true) return undefined;
    const { artifacts } = this.#ports;
    const about = { fileName: `store-reads-${this.tool}.json`, source: `tool: ${this.tool}` };
    return this.#store.use(hasValue, (reads) => storeIfLarge(reads, this.identity, artifacts, about));
  }

  /** A function of its own, as `emit` and `saveArtifact`: tools take them out of the context. */
  get discover(): ToolContext['discover'] {
    return (names) => {
      this.#discovered ??= [];
      this.#discovered.push(...names);
    };
  }

  get saveArtifact(): ToolContext['saveArtifact'] {
    return (bytes, about) => this.#save(bytes, about);
  }

  get artifact(): ToolContext['artifact'] {
    return async (artifactRef: unknown) => {
      if (typeof artifactRef === 'string') return await this.#ports.artifacts.get(this.identity, artifactRef);
      const message = 'context.artifact takes the text of a reference: context.artifact(ref.artifactRef).';
      throw new PilotageError('invalid_config', message);
    };
  }

  /** Names as the tool gave them. */
  get discovered(): readonly string[] {
    return this.#discovered ?? [];
  }

  get hasSaved(): boolean {
    return this.#saving !== undefined;
  }

  /** What was stored, in the order in which it was asked for. Waits for what the tool did not wait for. */
  async saved(): Promise<readonly ArtifactRow[]> {
    const settled = await Promise.allSettled(this.#saving ?? []);
    return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  }

  #emit(given: unknown): void {
    const chunk = capture(given, 'chunk').json;
    if (this.#isOver) return;
    this.#call.attempt.spoke();
    this.#emitted += 1;
    this.#ports.tellChunk(this.#call, { attempt: this.attempt, index: this.#emitted, chunk });
  }

  #save(bytes: Uint8Array | string, about: ArtifactDescription): Promise<ArtifactRef> {
    if (this.#isOver) return refusedLate(callIsOver(this.tool, 'and stores nothing'));
    const unfit = whyNotStored(bytes, about);
    if (unfit !== undefined) return refusedLate(unfit);
    const { mime, fileName } = about;
    const { artifacts, clock, turns } = this.#ports;
    const named = fileName === undefined ? {} : { fileName };
    const source = `tool: ${this.#call.branch.tool}`;
    const put = (given: Uint8Array | string): Promise<ArtifactRef> => {
      const content = typeof given === 'string' ? Buffer.from(given) : given;
      return artifacts.put(this.identity, content, { mime, ...named, source });
    };
    const kept = keptIfLarge(bytes);
    const stored = kept === undefined ? put(bytes) : turns.store(() => put(kept));
    const saving = stored.then((ref): ArtifactRow => ({ ...ref, ...named, source, createdAt: clock.now() }));
    // A tool may go on without it: that is for the tool to say, and what it does not wait for must not end the process.
    saving.catch(() => {});
    this.#saving ??= [];
    this.#saving.push(saving);
    return stored;
  }
}

/** What is wrong is told to whoever awaits it: thrown out of a timer of the tool it would end the process. */
function promised<T>(make: () => Promise<T>): Promise<T> {
  try {
    return make();
  } catch (error) {
    return refusedLate(error);
  }
}

/** A tool need not wait for it: what nobody hears must not end the process. */
function refusedLate(error: unknown): Promise<never> {
  const refused = Promise.reject(error);
  refused.catch(() => {});
  return refused;
}

const ABOUT: OptionShape<ArtifactDescription> = { mime: 'text', fileName: 'text?' };

/** What a tool wants to store and no store can take, before a store is blamed for it. */
function whyNotStored(bytes: unknown, about: unknown): PilotageError | undefined {
  if (typeof bytes !== 'string' && !isUint8Array(bytes)) {
    const message = 'saveArtifact stores a text or a Uint8Array: saveArtifact(bytes, { mime: "text/csv" }).';
    return new PilotageError('invalid_config', message);
  }
  try {
    assertOptions('saveArtifact', about, ABOUT);
    return undefined;
  } catch (refused) {
    return refused as PilotageError;
  }
}

/** Storing this much, and more, takes so long that each has a turn of its own. */
const LARGE_BYTES = 1 << 20;

/** The tool may change its bytes afterwards; a text it cannot. `undefined`: it is not large. */
function keptIfLarge(given: Uint8Array | string): Uint8Array | string | undefined {
  if (typeof given === 'string') return given.length >= LARGE_BYTES ? given : undefined;
  return isUint8Array(given) && given.byteLength >= LARGE_BYTES ? new Uint8Array(given) : undefined;
}

function unrecorded(name: string, { message, value }: Thrown): Thrown {
  const told = `Its work ${JSON.stringify(name)} was done, and could not be recorded: ${message}`;
  return Thrown.of(new PilotageError(OUTCOME_UNKNOWN, told, { cause: value }));
}
