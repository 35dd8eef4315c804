/** The result of an agent's call, in the form of `streamText` and `generateText` of the AI SDK. Its stream can be read any number of times. */
import type { ServerResponse } from 'node:http';
import type { FinishReason, GenerateTextResult, LanguageModelUsage, StreamTextResult, ToolSet } from 'ai';
import { PilotageError } from '#core';
import type { ResponseMessage } from './agent-messages.ts';
import type { SdkStep, StreamPart } from './agent-parts.ts';

/** What is known when the agent has ended. */
export interface AgentEnd {
  readonly steps: readonly SdkStep[];
  readonly totalUsage: LanguageModelUsage;
  readonly finishReason: FinishReason;
  readonly error?: Error;
}

export type Generated = GenerateTextResult<ToolSet, Record<string, unknown>, never>;
export type Streamed = StreamTextResult<ToolSet, Record<string, unknown>, never>;

/** What the forms of a stream are made with. */
export interface Presenting {
  /** Absent: the package is not there. */
  readonly sdk?: typeof import('ai');
  /** The tools whose calls clients know by their names. */
  readonly tools: ToolSet;
}

/** Tells what happens. */
export interface PartSink {
  tell(part: StreamPart): void;
  /** The words of the step under way count no more. */
  takeBack(): void;
}

type Stream<T> = ReadableStream<T> & AsyncIterable<T>;
type UIOptions = NonNullable<Parameters<Streamed['toUIMessageStreamResponse']>[0]>;

const TAKEN_BACK = { type: 'taken-back' } as const;

export class AgentResult implements Record<keyof Streamed, unknown> {
  readonly #parts: (StreamPart | typeof TAKEN_BACK)[] = [];
  readonly #presenting: Presenting;
  readonly #finished: Promise<AgentEnd>;
  #isOver = false;
  #fault: { readonly error: unknown } | undefined;
  #wake: (() => void)[] = [];

  /** @param read reads the run to its end, even when nobody reads the result. */
  constructor(read: (telling: PartSink) => Promise<AgentEnd>, presenting: Presenting) {
    this.#presenting = presenting;
    const push = (part: StreamPart | typeof TAKEN_BACK): void => {
      this.#parts.push(part);
      this.#news();
    };
    this.#finished = read({ tell: push, takeBack: () => push(TAKEN_BACK) });
    this.#finished
      .catch((error: unknown) => {
        this.#fault = { error };
      })
      .finally(() => {
        this.#isOver = true;
        this.#news();
      });
  }

  get stream(): Stream<StreamPart> {
    return this.#streamOf((part) => (part.type === 'taken-back' ? [] : [part]));
  }

  get fullStream(): Stream<StreamPart> {
    return this.stream;
  }

  get textStream(): Stream<string> {
    return this.#streamOf((part) => (part.type === 'text-delta' && part.text !== '' ? [part.text] : []));
  }

  /** The text of the step under way, as far as it goes. */
  get partialOutputStream(): Stream<string> {
    let text = '';
    return this.#streamOf((part) => {
      if (part.type === 'start-step' || part.type === 'taken-back') text = '';
      if (part.type !== 'text-delta' || part.text === '') return [];
      text += part.text;
      return [text];
    });
  }

  get experimental_partialOutputStream(): Stream<string> {
    return this.partialOutputStream;
  }

  /** @throws PilotageError `invalid_config`. */
  get elementStream(): never {
    const message =
      'An agent of a runtime has no list as its output, and so no elementStream. Read textStream or stream.';
    throw new PilotageError('invalid_config', message);
  }

  get steps(): Promise<readonly SdkStep[]> {
    return this.#done().then(({ steps }) => steps);
  }

  get totalUsage(): Promise<LanguageModelUsage> {
    return this.#done().then(({ totalUsage }) => totalUsage);
  }

  get usage(): Promise<LanguageModelUsage> {
    return this.totalUsage;
  }

  get finishReason(): Promise<FinishReason> {
    return this.#done().then(({ finishReason }) => finishReason);
  }

  get rawFinishReason(): Promise<undefined> {
    return this.#done().then(() => undefined);
  }

  get finalStep(): Promise<SdkStep> {
    return this.steps.then((steps) => steps.at(-1) as SdkStep);
  }

  get text(): Promise<string> {
    return this.finalStep.then((step) => step?.text ?? '');
  }

  get content(): Promise<SdkStep['content']> {
    return this.#ofAll(({ content }) => content);
  }

  get reasoning(): Promise<SdkStep['reasoning']> {
    return this.finalStep.then((step) => step?.reasoning ?? []);
  }

  get reasoningText(): Promise<string | undefined> {
    return this.finalStep.then((step) => step?.reasoningText);
  }

  get files(): Promise<SdkStep['files']> {
    return this.#ofAll(({ files }) => files);
  }

  get sources(): Promise<SdkStep['sources']> {
    return this.#ofAll(({ sources }) => sources);
  }

  get toolCalls(): Promise<SdkStep['toolCalls']> {
    return this.#ofAll(({ toolCalls }) => toolCalls);
  }

  get dynamicToolCalls(): Promise<SdkStep['dynamicToolCalls']> {
    return this.#ofAll(({ dynamicToolCalls }) => dynamicToolCalls);
  }

  get toolResults(): Promise<SdkStep['toolResults']> {
    return this.#ofAll(({ toolResults }) => toolResults);
  }

  get dynamicToolResults(): Promise<SdkStep['dynamicToolResults']> {
    return this.#ofAll(({ dynamicToolResults }) => dynamicToolResults);
  }

  get staticToolCalls(): Promise<SdkStep['staticToolCalls']> {
    return this.finalStep.then(() => []);
  }

  get staticToolResults(): Promise<SdkStep['staticToolResults']> {
    return this.finalStep.then(() => []);
  }

  get warnings(): Promise<SdkStep['warnings']> {
    return this.finalStep.then(() => []);
  }

  get request(): Promise<SdkStep['request']> {
    return this.finalStep.then((step) => step?.request ?? {});
  }

  get providerMetadata(): Promise<undefined> {
    return this.#done().then(() => undefined);
  }

  get responseMessages(): Promise<readonly ResponseMessage[]> {
    return this.finalStep.then((step) => step?.response.messages ?? []);
  }

  get response(): Promise<unknown> {
    return this.finalStep.then((step) => step?.response ?? { messages: [] });
  }

  get output(): Promise<string> {
    return this.text;
  }

  async consumeStream(options: { readonly onError?: (error: unknown) => void } = {}): Promise<void> {
    await this.#finished.catch((error: unknown) => options.onError?.(error));
  }

  toUIMessageStream(options: UIOptions = {}): Stream<unknown> {
    const { sdk, tools } = this.#sdk('toUIMessageStream');
    return sdk.toUIMessageStream({ ...options, stream: this.stream, tools }) as unknown as Stream<unknown>;
  }

  toUIMessageStreamResponse(options: UIOptions = {}): Response {
    const { sdk, tools } = this.#sdk('toUIMessageStreamResponse');
    const stream = sdk.toUIMessageStream({ ...options, stream: this.stream, tools });
    return sdk.createUIMessageStreamResponse({ ...options, stream });
  }

  async pipeUIMessageStreamToResponse(response: ServerResponse, options: UIOptions = {}): Promise<void> {
    const { sdk, tools } = this.#sdk('pipeUIMessageStreamToResponse');
    const stream = sdk.toUIMessageStream({ ...options, stream: this.stream, tools });
    await sdk.pipeUIMessageStreamToResponse({ ...options, response, stream });
  }

  toTextStreamResponse(init: ResponseInit = {}): Response {
    const { sdk } = this.#sdk('toTextStreamResponse');
    return sdk.createTextStreamResponse({ ...init, stream: this.textStream });
  }

  async pipeTextStreamToResponse(response: ServerResponse, init: ResponseInit = {}): Promise<void> {
    const { sdk } = this.#sdk('pipeTextStreamToResponse');
    await sdk.pipeTextStreamToResponse({ ...init, response, stream: this.textStream });
  }

  /** The whole result, as `generateText` gives it. @throws the error of the run. */
  async whole(): Promise<Record<keyof Generated, unknown>> {
    const { steps, totalUsage, finishReason } = await this.#done();
    const final = steps.at(-1);
    const [content, files, sources] = await Promise.all([this.content, this.files, this.sources]);
    const [toolCalls, toolResults] = await Promise.all([this.toolCalls, this.toolResults]);
    const responseMessages = await this.responseMessages;
    return {
      ...{ text: final?.text ?? '', reasoning: final?.reasoning ?? [], reasoningText: final?.reasoningText },
      ...{ content, files, sources, toolCalls, toolResults, warnings: [], request: final?.request ?? {} },
      ...{ staticToolCalls: [], dynamicToolCalls: toolCalls, staticToolResults: [], dynamicToolResults: toolResults },
      ...{ steps, finalStep: final, usage: totalUsage, totalUsage, finishReason, rawFinishReason: undefined },
      ...{ responseMessages, response: final?.response ?? { messages: [] }, providerMetadata: undefined },
      output: final?.text ?? '',
    };
  }

  #ofAll<T>(pick: (step: SdkStep) => readonly T[]): Promise<T[]> {
    return this.steps.then((steps) => steps.flatMap(pick));
  }

  /** @throws PilotageError `package_missing`. */
  #sdk(of: string): Required<Presenting> {
    const { sdk, tools } = this.#presenting;
    if (sdk !== undefined) return { sdk, tools };
    throw new PilotageError('package_missing', `${of} needs the package ai: npm install ai`, {
      data: { package: 'ai' },
    });
  }

  /** @throws the error with which the run has ended. */
  async #done(): Promise<AgentEnd> {
    const finished = await this.#finished;
    if (finished.error !== undefined) throw finished.error;
    return finished;
  }

  #news(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  #streamOf<T>(pick: (part: StreamPart | typeof TAKEN_BACK) => readonly T[]): Stream<T> {
    let next = 0;
    return new ReadableStream<T>(
      {
        pull: async (controller) => {
          for (;;) {
            const part = this.#parts[next];
            if (part !== undefined) {
              next += 1;
              const picked = pick(part);
              for (const each of picked) controller.enqueue(each);
              if (picked.length > 0) return;
            } else if (this.#isOver) {
              if (this.#fault !== undefined) controller.error(this.#fault.error);
              else controller.close();
              return;
            } else await new Promise<void>((resolve) => this.#wake.push(resolve));
          }
        },
      },
      { highWaterMark: 0 },
    ) as unknown as Stream<T>;
  }
}
