/** Turns the chunks of a message into the parts of the AI SDK's `streamText`, and into its steps. */
import { isDeepStrictEqual } from 'node:util';
import type { GeneratedFile, LanguageModelUsage, StepResult, TextStreamPart, ToolSet } from 'ai';
import { defined, type RunEvent, type Usage } from '#core';
import type { UIChunk } from '#messages';
import { type ResponseMessage, stepMessages } from './agent-messages.ts';
import { StepWords } from './agent-words.ts';

export type StreamPart = TextStreamPart<ToolSet>;
export type SdkStep = StepResult<ToolSet>;

/** A call, as results, errors and approvals repeat it. */
interface Call {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly dynamic: true;
  readonly providerExecuted?: true;
}

export interface PartsOptions {
  readonly agent: string;
  /** The ids of the calls that the caller has, and of those whose results it has. */
  readonly calls?: ReadonlySet<string>;
  readonly results?: ReadonlySet<string>;
  /** What the reader is to be told in place of a file of the message, by its address. */
  readonly fileAt?: (url: string) => GeneratedFile | undefined;
  /** Told when words of the step that were told count no more. */
  readonly onTakenBack?: () => void;
}

const NO_USAGE = usageOf(undefined);
const NONE: ReadonlySet<string> = new Set();

export class SdkParts {
  readonly steps: SdkStep[] = [];
  readonly #tell: (part: StreamPart) => void;
  readonly #options: PartsOptions;
  readonly #calls = new Map<string, Call>();
  readonly #byApproval = new Map<string, Call>();
  /** Calls whose arguments are being written, by their ids. */
  readonly #writing = new Map<string, string>();
  /** What was told of the step apart from words and calls. */
  readonly #told = new Set<string>();
  readonly #words: StepWords;
  readonly #messages: ResponseMessage[] = [];
  #content: Record<string, unknown>[] = [];
  #used: Usage | undefined;
  #startedAt = Date.now();
  #run = '';
  totalUsage: LanguageModelUsage = NO_USAGE;

  constructor(tell: (part: StreamPart) => void, options: PartsOptions) {
    this.#tell = tell;
    this.#options = options;
    this.#words = new StepWords(tell);
  }

  /** Takes over the calls that other parts have told before, as far as the caller has them. */
  adopt(before: SdkParts): void {
    const { calls = NONE } = this.#options;
    for (const [id, call] of before.#calls) if (calls.has(id)) this.#calls.set(id, call);
    for (const [id, call] of before.#byApproval) if (calls.has(call.toolCallId)) this.#byApproval.set(id, call);
  }

  hear(event: RunEvent): void {
    if (event.path !== undefined) return;
    this.#run = event.identity.run;
    if (event.type === 'planner.decision' && event.usage !== undefined) {
      this.#used = event.usage;
      this.totalUsage = sum(this.totalUsage, usageOf(event.usage));
    }
  }

  chunk(chunk: UIChunk): void {
    switch (chunk.type) {
      case 'start':
        this.#give({ type: 'start' });
        return;
      case 'start-step':
        this.#startedAt = Date.now();
        this.#give({ type: 'start-step', request: {}, warnings: [] });
        return;
      case 'finish-step':
        this.#endStep();
        return;
      case 'text-start':
      case 'reasoning-start':
        this.#add(this.#words.start(chunk.type === 'text-start' ? 'text' : 'reasoning', chunk.id));
        return;
      case 'text-delta':
      case 'reasoning-delta':
        this.#words.say(chunk.id, chunk.delta);
        return;
      case 'text-end':
      case 'reasoning-end':
        this.#words.end(chunk.id);
        return;
      case 'source-url':
      case 'source-document':
      case 'file':
        this.#beside(chunk);
        return;
      case 'reset-step':
        this.#content = [];
        this.#words.takeBack();
        this.#options.onTakenBack?.();
        return;
      default:
        this.#ofCall(chunk);
        return;
    }
  }

  /** Ends a step of which nothing more comes. */
  close(): void {
    if (this.#content.length > 0) this.#endStep();
  }

  /** Sources and files are told again behind what was taken back; the reader has them. */
  #beside(chunk: Extract<UIChunk, { type: 'source-url' | 'source-document' | 'file' }>): void {
    const part = this.#partOf(chunk);
    const key = chunk.type === 'file' ? chunk.url : chunk.sourceId;
    if (part === undefined) return;
    this.#add(part);
    if (!this.#told.has(key)) this.#give(part);
    this.#told.add(key);
  }

  #partOf(
    chunk: Extract<UIChunk, { type: 'source-url' | 'source-document' | 'file' }>,
  ): Extract<StreamPart, { type: 'source' | 'file' }> | undefined {
    if (chunk.type === 'file') {
      const file = this.#options.fileAt?.(chunk.url);
      return file && { type: 'file', file };
    }
    const { sourceId: id, title } = chunk;
    if (chunk.type === 'source-url')
      return { type: 'source', sourceType: 'url', id, url: chunk.url, ...defined({ title }) };
    const { mediaType, filename } = chunk;
    return { type: 'source', sourceType: 'document', id, mediaType, title: chunk.title, ...defined({ filename }) };
  }

  #ofCall(chunk: UIChunk): void {
    switch (chunk.type) {
      case 'tool-input-start': {
        const { toolCallId: id, toolName } = chunk;
        if (this.#calls.has(id) || this.#writing.has(id)) return;
        this.#writing.set(id, toolName);
        this.#give({ type: 'tool-input-start', id, toolName, dynamic: true });
        return;
      }
      case 'tool-input-delta':
        this.#give({ type: 'tool-input-delta', id: chunk.toolCallId, delta: chunk.inputTextDelta });
        return;
      case 'tool-input-available': {
        const { toolCallId, toolName, input, providerExecuted } = chunk;
        this.#call({
          ...{ type: 'tool-call', toolCallId, toolName, input, dynamic: true },
          ...defined({ providerExecuted }),
        });
        return;
      }
      case 'tool-approval-request': {
        const { approvalId, toolCallId, reason } = chunk;
        const toolCall = this.#calls.get(toolCallId);
        if (toolCall === undefined) return;
        this.#byApproval.set(approvalId, toolCall);
        this.#both({ type: 'tool-approval-request', approvalId, toolCall, ...defined({ reason }) });
        return;
      }
      case 'tool-approval-response': {
        const { approvalId, approved, reason } = chunk;
        const toolCall = this.#byApproval.get(approvalId);
        if (toolCall === undefined) return;
        this.#both({ type: 'tool-approval-response', approvalId, toolCall, approved, ...defined({ reason }) });
        return;
      }
      case 'tool-output-available': {
        const { output, preliminary, toolCallId } = chunk;
        this.#result(toolCallId, { type: 'tool-result', output, ...defined({ preliminary }) }, preliminary !== true);
        return;
      }
      case 'tool-output-error':
        this.#result(chunk.toolCallId, { type: 'tool-error', error: new Error(chunk.errorText) }, true);
        return;
      case 'tool-output-denied':
        this.#result(chunk.toolCallId, { type: 'tool-output-denied' }, false);
        return;
      default:
        return;
    }
  }

  /** A call may come again: behind what was taken back, or with the arguments that its approver has given. */
  #call(call: Call): void {
    const { toolCallId: id } = call;
    const before = this.#calls.get(id);
    this.#calls.set(id, call);
    if (this.#options.calls?.has(id) !== true) {
      const at = this.#content.findIndex((part) => part['type'] === 'tool-call' && part['toolCallId'] === id);
      if (at === -1) this.#add(call);
      else this.#content[at] = { ...call };
    }
    if (this.#writing.delete(id)) this.#give({ type: 'tool-input-end', id });
    if (before === undefined || !isDeepStrictEqual(before.input, call.input)) this.#give(call as StreamPart);
  }

  #result(toolCallId: string, part: Record<string, unknown>, stays: boolean): void {
    const call = this.#calls.get(toolCallId);
    // A denial is told: clients show it, and put its result beside it before anybody has heard of it.
    const isHeard = this.#options.results?.has(toolCallId) === true && part['type'] !== 'tool-output-denied';
    if (call === undefined || isHeard) return;
    const { type: _, ...of } = call;
    const told = { ...of, ...part };
    if (stays) this.#add(told);
    this.#give(told as unknown as StreamPart);
  }

  #both(part: Record<string, unknown>): void {
    this.#add(part);
    this.#give(part as unknown as StreamPart);
  }

  #add(part: object): void {
    this.#content.push(part as Record<string, unknown>);
  }

  #give(part: StreamPart): void {
    this.#tell(part);
  }

  #endStep(): void {
    this.#words.close();
    this.#dropWriting();
    const finishReason = this.#content.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop';
    const response = {
      id: `${this.#run}:${this.steps.length}`,
      timestamp: new Date(this.#startedAt),
      modelId: this.#options.agent,
    };
    const usage = usageOf(this.#used);
    const stepTimeMs = Date.now() - this.#startedAt;
    this.#used = undefined;
    const performance = performanceOf(stepTimeMs);
    const more = {
      response,
      usage,
      performance,
      finishReason,
      rawFinishReason: undefined,
      providerMetadata: undefined,
    } as const;
    this.#messages.push(...stepMessages(this.#content as unknown as SdkStep['content'], this.#options.results ?? NONE));
    this.steps.push({
      ...stepOf(this.#content, this.steps.length, this.#options.agent),
      ...more,
      response: { ...response, messages: [...this.#messages] },
    } as unknown as SdkStep);
    this.#content = [];
    this.#told.clear();
    this.#give({ type: 'finish-step', ...more });
  }

  /** Arguments of which no call has come: a reader of the stream would wait for it. */
  #dropWriting(): void {
    for (const [toolCallId, toolName] of this.#writing) {
      const error = new Error('The call was not made.');
      this.#give({ type: 'tool-input-end', id: toolCallId });
      this.#give({ type: 'tool-call', toolCallId, toolName, input: {}, dynamic: true, invalid: true, error });
    }
    this.#writing.clear();
  }
}

function stepOf(content: readonly Record<string, unknown>[], stepNumber: number, agent: string) {
  const of = (type: string) => content.filter((part) => part['type'] === type);
  const reasoning = of('reasoning');
  const textOf = (parts: readonly Record<string, unknown>[]) => parts.map(({ text }) => String(text)).join('');
  return {
    callId: `step-${stepNumber}`,
    stepNumber,
    model: { provider: 'pilotage', modelId: agent },
    toolsContext: {},
    runtimeContext: {},
    content,
    text: textOf(of('text')),
    reasoning,
    reasoningText: reasoning.length === 0 ? undefined : textOf(reasoning),
    files: of('file').map(({ file }) => file),
    sources: of('source'),
    toolCalls: of('tool-call'),
    staticToolCalls: [],
    dynamicToolCalls: of('tool-call'),
    toolResults: of('tool-result'),
    staticToolResults: [],
    dynamicToolResults: of('tool-result'),
    warnings: [],
    request: {},
  };
}

function performanceOf(stepTimeMs: number): SdkStep['performance'] {
  return {
    effectiveOutputTokensPerSecond: 0,
    outputTokensPerSecond: undefined,
    inputTokensPerSecond: undefined,
    effectiveTotalTokensPerSecond: 0,
    stepTimeMs,
    responseTimeMs: stepTimeMs,
    toolExecutionMs: {},
    timeToFirstOutputMs: undefined,
  };
}

function usageOf(used: Usage | undefined): LanguageModelUsage {
  const { inputTokens, outputTokens } = used ?? {};
  return {
    inputTokens,
    inputTokenDetails: { noCacheTokens: undefined, cacheReadTokens: undefined, cacheWriteTokens: undefined },
    outputTokens,
    outputTokenDetails: { textTokens: undefined, reasoningTokens: undefined },
    totalTokens: used === undefined ? undefined : (inputTokens ?? 0) + (outputTokens ?? 0),
  };
}

function sum(one: LanguageModelUsage, other: LanguageModelUsage): LanguageModelUsage {
  const add = (a: number | undefined, b: number | undefined) =>
    a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
  return {
    ...one,
    inputTokens: add(one.inputTokens, other.inputTokens),
    outputTokens: add(one.outputTokens, other.outputTokens),
    totalTokens: add(one.totalTokens, other.totalTokens),
  };
}
