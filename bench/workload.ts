/** What every measure runs: a model that asks for one small tool call a step, N times, and then answers. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FunctionTool,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';

export const SIZES = [10, 100, 1000] as const;
export type Size = (typeof SIZES)[number];

export const QUERY = 'Make the notes.';
export const TOOL_NAME = 'note';
export const TOOL_DESCRIPTION = 'Keeps a note';

export const INPUT_SCHEMA = {
  type: 'object',
  properties: { id: { type: 'integer' }, text: { type: 'string' } },
  required: ['id', 'text'],
  additionalProperties: false,
} as const;

export interface Note {
  readonly id: number;
  readonly text: string;
}

export async function keepNote(note: Note): Promise<{ readonly ok: boolean; readonly id: number }> {
  return { ok: true, id: note.id };
}

export function callId(step: number): string {
  return `call_${step}`;
}

/** The step that comes after the call with this id; the first step is 1. */
export function stepAfter(id: string | undefined): number {
  return id === undefined ? 1 : Number(id.slice('call_'.length)) + 1;
}

export function argumentText(step: number): string {
  return `{"id":${step},"text":"step ${step}"}`;
}

const USAGE: LanguageModelV4GenerateResult['usage'] = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const CALLS: LanguageModelV4GenerateResult['finishReason'] = { unified: 'tool-calls', raw: 'tool_calls' };
const STOP: LanguageModelV4GenerateResult['finishReason'] = { unified: 'stop', raw: 'stop' };

/**
 * Keeps nothing and copies nothing: it reads its place in the script from the last tool result in the prompt, so one
 * object serves any number of runs at once and a call costs the same at step 1 and at step 1,000.
 */
export function scriptedModel(steps: number): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: `scripted-${steps}`,
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const { content, finishReason } = reply(prompt, steps);
      return { content, finishReason, usage: USAGE, warnings: [] };
    },
    async doStream({ prompt }) {
      return { stream: ReadableStream.from(streamParts(prompt, steps)) };
    },
  };
}

function reply(
  prompt: LanguageModelV4CallOptions['prompt'],
  steps: number,
): Pick<LanguageModelV4GenerateResult, 'content' | 'finishReason'> {
  const step = stepAfter(lastCallId(prompt));
  if (step > steps) return { content: [{ type: 'text', text: 'Done.' }], finishReason: STOP };
  const call: LanguageModelV4Content = {
    type: 'tool-call',
    toolCallId: callId(step),
    toolName: TOOL_NAME,
    input: argumentText(step),
  };
  return { content: [call], finishReason: CALLS };
}

function lastCallId(prompt: LanguageModelV4CallOptions['prompt']): string | undefined {
  for (let index = prompt.length - 1; index >= 0; index -= 1) {
    const message = prompt[index];
    if (message?.role !== 'tool') continue;
    for (const part of message.content) if (part.type === 'tool-result') return part.toolCallId;
  }
  return undefined;
}

function streamParts(prompt: LanguageModelV4CallOptions['prompt'], steps: number): LanguageModelV4StreamPart[] {
  const { content, finishReason } = reply(prompt, steps);
  const parts: LanguageModelV4StreamPart[] = [{ type: 'stream-start', warnings: [] }];
  for (const part of content) {
    if (part.type === 'tool-call') parts.push(part);
    if (part.type !== 'text') continue;
    parts.push({ type: 'text-start', id: '1' });
    parts.push({ type: 'text-delta', id: '1', delta: part.text });
    parts.push({ type: 'text-end', id: '1' });
  }
  parts.push({ type: 'finish', finishReason, usage: USAGE });
  return parts;
}

/** The tool as a model's request lists it. */
export const TOOL_FOR_MODEL: LanguageModelV4FunctionTool = {
  type: 'function',
  name: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  inputSchema: { ...INPUT_SCHEMA, required: [...INPUT_SCHEMA.required] },
};
