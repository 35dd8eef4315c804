/** Turns the chunks of a message into the parts of the AI SDK's `streamText`, and into its steps. */
import type { LanguageModelUsage, StepResult, TextStreamPart, ToolSet } from 'ai';
import { defined, type RunEvent, type Usage } from '#core';
import type { UIChunk } from '#messages';

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
}

const NO_USAGE = usageOf(undefined);

export class SdkParts {
  readonly steps: SdkStep[] = [];
  readonly #tell: (part: StreamPart) => void;
  readonly #options: PartsOptions;
  readonly #calls = new Map<string, Call>();
  readonly #byApproval = new Map<string, Call>();
  #content: Record<string, unknown>[] = [];
  #spoken = new Map<string, { text: string }>();
  #used: Usage | undefined;
  #startedAt = Date.now();
  #run = '';
  totalUsage: LanguageModelUsage = NO_USAGE;

  constructor(tell: (part: StreamPart) => void, options: PartsOptions) {
    this.#tell = tell;
    this.#options = options;
  }

  /** Takes over the calls that other parts have told before. */
  adopt(before: SdkParts): void {
    for (const [id, call] of before.#calls) this.#calls.set(id, call);
    for (const [id, call] of before.#byApproval) this.#byApproval.set(id, call);
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
        this.#content = [];
        this.#give({ type: 'start-step', request: {}, warnings: [] });
        return;
      case 'finish-step':
        this.#endStep();
        return;
      case 'text-start':
      case 'reasoning-start': {
        const part = { type: chunk.type === 'text-start' ? 'text' : 'reasoning', text: '' };
        this.#spoken.set(chunk.id, part);
        this.#content.push(part);
        this.#give(chunk);
        return;
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const { type, id, delta: text } = chunk;
        const part = this.#spoken.get(id);
        if (part !== undefined) part.text += text;
        this.#give({ type, id, text });
        return;
      }
      case 'text-end':
      case 'reasoning-end':
        this.#give(chunk);
        return;
      case 'source-url': {
        const { sourceId: id, url, title } = chunk;
        const source = { type: 'source', sourceType: 'url', id, url, ...defined({ title }) } as const;
        this.#content.push(source);
        this.#give(source);
        return;
      }
      case 'reset-step':
        // `streamText` has no such part. What was taken back is left out of the step's result.
        this.#content = [];
        return;
      default:
        this.#ofCall(chunk);
        return;
    }
  }

  #ofCall(chunk: UIChunk): void {
    switch (chunk.type) {
      case 'tool-input-start':
        this.#give({ type: 'tool-input-start', id: chunk.toolCallId, toolName: chunk.toolName, dynamic: true });
        return;
      case 'tool-input-delta':
        this.#give({ type: 'tool-input-delta', id: chunk.toolCallId, delta: chunk.inputTextDelta });
        return;
      case 'tool-input-available': {
        const { toolCallId, toolName, input, providerExecuted } = chunk;
        const call: Call = {
          ...{ type: 'tool-call', toolCallId, toolName, input, dynamic: true },
          ...defined({ providerExecuted }),
        };
        const isKnown = this.#calls.has(toolCallId);
        this.#calls.set(toolCallId, call);
        this.#add(call);
        if (!isKnown) this.#give({ type: 'tool-input-end', id: toolCallId });
        this.#give(call as StreamPart);
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
        this.#result(chunk.toolCallId, { type: 'tool-output-denied' }, true);
        return;
      default:
        return;
    }
  }

  #result(toolCallId: string, part: Record<string, unknown>, stays: boolean): void {
    const call = this.#calls.get(toolCallId);
    if (call === undefined) return;
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
    this.steps.push({
      ...stepOf(this.#content, this.steps.length, this.#options.agent),
      ...more,
      response: { ...response, messages: [] },
    } as unknown as SdkStep);
    this.#content = [];
    this.#give({ type: 'finish-step', ...more });
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
    files: [],
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
