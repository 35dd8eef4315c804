/**
 * One request of a tool to a model. It is counted once, however it ends: by what the model says that it used, or by an estimate of what
 * was asked and said when the request is left or aborted.
 */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from '@ai-sdk/provider';
import { type CallPlace, defined, PilotageError, type Usage } from '#core';
import { estimated, priced, type ReadyModel, usageOf } from '#model';
import type { Spending } from './in-flight-budget.ts';

/** The attempt that spends. */
export interface Spender {
  readonly place: CallPlace;
  readonly tool: string;
  readonly signal: AbortSignal;
  /** It has ended, or was given up. */
  readonly isOver: boolean;
  /** What a model says on the way. */
  emit(chunk: { readonly model: string; readonly text: string }): void;
}

/** What is asked, and what is set aside for it. */
export interface Asked {
  readonly by: Spender;
  readonly ready: ReadyModel;
  readonly options: LanguageModelV4CallOptions;
  readonly amounts: Spending;
  readonly maxOutputTokens: number | undefined;
}

type Said = Parameters<typeof estimated>[2];

/** Gives back what was set aside, once the usage is recorded; without one, at once. */
type Settle = (request: ToolModelRequest, usage?: Usage) => Promise<void>;

export class ToolModelRequest {
  readonly asked: Asked;
  readonly #settle: Settle;
  readonly #left = new AbortController();
  readonly #signal: AbortSignal;
  #text = '';
  #settled: Promise<void> | undefined;
  #reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | undefined;
  #out: ReadableStreamDefaultController<LanguageModelV4StreamPart> | undefined;
  #isReading = false;
  #readsAhead = false;

  constructor(asked: Asked, settle: Settle) {
    this.asked = asked;
    this.#settle = settle;
    const { by, options } = asked;
    const signals = [this.#left.signal, by.signal];
    this.#signal = AbortSignal.any(options.abortSignal === undefined ? signals : [...signals, options.abortSignal]);
  }

  async generate(): Promise<LanguageModelV4GenerateResult> {
    const made = await this.#send((model, options) => model.doGenerate(options));
    const said = made.content.flatMap((part) => (part.type === 'text' || part.type === 'reasoning' ? [part.text] : []));
    const calls = made.content.flatMap((part) =>
      part.type === 'tool-call' ? [{ tool: part.toolName, input: part.input }] : [],
    );
    await this.#count(usageOf(made.usage).usage, { text: said.join(''), reasoning: '', calls });
    return made;
  }

  async stream(): Promise<LanguageModelV4StreamResult> {
    const made = await this.#send((model, options) => model.doStream(options));
    const reader = made.stream.getReader();
    this.#reader = reader;
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (out) => {
        this.#out = out;
      },
      pull: (out) => this.#read(reader, out),
      cancel: async (reason) => {
        await this.#count();
        await reader.cancel(reason);
      },
    });
    if (this.#left.signal.aborted) this.#drop();
    return { ...made, stream };
  }

  /** Somebody waits for what is set aside: the stream goes on to its end, whether or not it is read. */
  readAhead(): void {
    this.#readsAhead = true;
    if (this.#reader !== undefined && this.#out !== undefined) void this.#read(this.#reader, this.#out);
  }

  /** Its attempt has ended. What was said by now is counted, and the provider is told that nobody listens. */
  close(): void {
    // Whoever records it says what went wrong with that.
    this.#count().catch(() => {});
    this.#left.abort(new PilotageError('cancelled', `The call of ${this.asked.by.tool} has ended.`));
    this.#drop();
  }

  #drop(): void {
    const { reason } = this.#left.signal;
    this.#out?.error(reason);
    // A stream that breaks when it is left has nothing to lose.
    this.#reader?.cancel(reason).catch(() => {});
  }

  async #send<T>(
    send: (model: ReadyModel['model'], options: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    const { ready, options, maxOutputTokens } = this.asked;
    let isSent = false;
    try {
      this.#signal.throwIfAborted();
      isSent = true;
      return await send(ready.model, { ...options, ...defined({ maxOutputTokens }), abortSignal: this.#signal });
    } catch (error) {
      // The provider has what was asked, and may count it.
      if (isSent && this.#signal.aborted) await this.#count();
      else await this.#free();
      throw error;
    }
  }

  async #read(
    reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
    out: ReadableStreamDefaultController<LanguageModelV4StreamPart>,
  ): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      do if (!(await this.#readPart(reader, out))) return;
      while (this.#readsAhead);
    } catch (error) {
      out.error(
        await this.#count().then(
          () => error,
          (failed: unknown) => failed,
        ),
      );
    } finally {
      this.#isReading = false;
    }
  }

  /** False at the end. */
  async #readPart(
    reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
    out: ReadableStreamDefaultController<LanguageModelV4StreamPart>,
  ): Promise<boolean> {
    const { done, value } = await reader.read();
    if (done) {
      await this.#count();
      out.close();
      return false;
    }
    await this.#hear(value);
    out.enqueue(value);
    return true;
  }

  async #hear(part: LanguageModelV4StreamPart): Promise<void> {
    if (part.type === 'finish') return this.#count(usageOf(part.usage).usage);
    if (part.type !== 'text-delta' && part.type !== 'reasoning-delta' && part.type !== 'tool-input-delta') return;
    this.#text += part.delta;
    const { by, ready } = this.asked;
    if (part.type === 'text-delta') by.emit({ model: ready.name, text: part.delta });
  }

  #count(given?: Usage, said: Said = { text: this.#text, reasoning: '', calls: [] }): Promise<void> {
    const { ready, options } = this.asked;
    const usage = estimated(given, options, said);
    this.#settled ??= this.#settle(this, ready.prices === undefined ? usage : priced(usage, ready.prices));
    return this.#settled;
  }

  #free(): Promise<void> {
    this.#settled ??= this.#settle(this);
    return this.#settled;
  }
}
