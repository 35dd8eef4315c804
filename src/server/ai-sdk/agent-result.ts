/** The result of an agent's call, in the form of `streamText` and `generateText` of the AI SDK. Its stream can be read any number of times. */
import type { FinishReason, LanguageModelUsage } from 'ai';
import type { SdkStep, StreamPart } from './agent-parts.ts';

/** What is known when the agent has ended. */
export interface AgentEnd {
  readonly steps: readonly SdkStep[];
  readonly totalUsage: LanguageModelUsage;
  readonly finishReason: FinishReason;
  readonly error?: Error;
}

type Stream<T> = ReadableStream<T> & AsyncIterable<T>;

export class AgentResult {
  readonly #parts: StreamPart[] = [];
  readonly #finished: Promise<AgentEnd>;
  #isOver = false;
  #fault: { readonly error: unknown } | undefined;
  #wake: (() => void)[] = [];

  /** @param read reads the run to its end, even when nobody reads the result. */
  constructor(read: (tell: (part: StreamPart) => void) => Promise<AgentEnd>) {
    this.#finished = read((part) => {
      this.#parts.push(part);
      this.#news();
    });
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
    return this.#streamOf((part) => [part]);
  }

  get fullStream(): Stream<StreamPart> {
    return this.stream;
  }

  get textStream(): Stream<string> {
    return this.#streamOf((part) => (part.type === 'text-delta' && part.text !== '' ? [part.text] : []));
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
    return this.finalStep.then((step) => step?.content ?? []);
  }

  get reasoning(): Promise<SdkStep['reasoning']> {
    return this.finalStep.then((step) => step?.reasoning ?? []);
  }

  get reasoningText(): Promise<string | undefined> {
    return this.finalStep.then((step) => step?.reasoningText);
  }

  get files(): Promise<SdkStep['files']> {
    return this.finalStep.then((step) => step?.files ?? []);
  }

  get sources(): Promise<SdkStep['sources']> {
    return this.steps.then((steps) => steps.flatMap(({ sources }) => sources));
  }

  get toolCalls(): Promise<SdkStep['toolCalls']> {
    return this.finalStep.then((step) => step?.toolCalls ?? []);
  }

  get dynamicToolCalls(): Promise<SdkStep['dynamicToolCalls']> {
    return this.finalStep.then((step) => step?.dynamicToolCalls ?? []);
  }

  get toolResults(): Promise<SdkStep['toolResults']> {
    return this.finalStep.then((step) => step?.toolResults ?? []);
  }

  get dynamicToolResults(): Promise<SdkStep['dynamicToolResults']> {
    return this.finalStep.then((step) => step?.dynamicToolResults ?? []);
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

  get responseMessages(): Promise<unknown[]> {
    return this.steps.then((steps) => steps.flatMap(messagesOf));
  }

  get response(): Promise<unknown> {
    return Promise.all([this.finalStep, this.responseMessages]).then(([step, messages]) => ({
      ...step?.response,
      messages,
    }));
  }

  get output(): Promise<string> {
    return this.text;
  }

  async consumeStream(): Promise<void> {
    await this.#finished.catch(() => {});
  }

  /** The whole result, as `generateText` gives it. @throws the error of the run. */
  async whole(): Promise<Record<string, unknown>> {
    const { steps, totalUsage, finishReason } = await this.#done();
    const final = steps.at(-1);
    const responseMessages = await this.responseMessages;
    return {
      ...{ content: [], text: '', reasoning: [], files: [], toolCalls: [], toolResults: [], ...final },
      sources: await this.sources,
      ...{ steps, finalStep: final, usage: totalUsage, totalUsage, finishReason, responseMessages },
      response: { ...final?.response, messages: responseMessages },
      output: final?.text ?? '',
    };
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

  #streamOf<T>(pick: (part: StreamPart) => readonly T[]): Stream<T> {
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

/** The messages of a step: what the model said, and the results of its calls. */
function messagesOf({ content }: SdkStep): unknown[] {
  const said = content.filter(({ type }) => ['text', 'reasoning', 'tool-call', 'tool-approval-request'].includes(type));
  const results = content.flatMap((part) => {
    if (part.type === 'tool-result') return [resultOf(part, outputOf(part.output))];
    return part.type === 'tool-error'
      ? [resultOf(part, { type: 'error-text', value: String((part.error as Error).message) })]
      : [];
  });
  const assistant = said.map((part) => {
    if (part.type === 'tool-approval-request') {
      const { type, approvalId, toolCall } = part;
      return { type, approvalId, toolCallId: toolCall.toolCallId };
    }
    if (part.type !== 'tool-call') return part;
    const { type, toolCallId, toolName, input } = part;
    return { type, toolCallId, toolName, input };
  });
  return [
    ...(assistant.length === 0 ? [] : [{ role: 'assistant', content: assistant }]),
    ...(results.length === 0 ? [] : [{ role: 'tool', content: results }]),
  ];
}

function resultOf({ toolCallId, toolName }: { toolCallId: string; toolName: string }, output: unknown) {
  return { type: 'tool-result', toolCallId, toolName, output };
}

function outputOf(value: unknown) {
  return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value };
}
