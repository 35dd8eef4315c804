/** The messages of a step, for whoever keeps the conversation: what the model said, and the results of its calls. */
import type { StepResult, ToolResultPart, ToolSet } from 'ai';
import { defined } from '#core';

type Step = StepResult<ToolSet>;
type Part = Step['content'][number];
export type ResponseMessage = Step['response']['messages'][number];
type Spoken = Exclude<Extract<ResponseMessage, { role: 'assistant' }>['content'], string>;

/** @param has the calls whose results the caller has. */
export function stepMessages(content: Step['content'], has: ReadonlySet<string>): readonly ResponseMessage[] {
  const said = content.flatMap(spokenOf);
  const results = content.flatMap(resultOf).filter(({ toolCallId }) => !has.has(toolCallId));
  return [
    ...(said.length === 0 ? [] : [{ role: 'assistant' as const, content: said }]),
    ...(results.length === 0 ? [] : [{ role: 'tool' as const, content: results }]),
  ];
}

function spokenOf(part: Part): Spoken {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return part.text === '' ? [] : [{ type: part.type, text: part.text }];
    case 'file':
      return [{ type: 'file', data: part.file.base64, mediaType: part.file.mediaType }];
    case 'tool-call': {
      const { type, toolCallId, toolName, input } = part;
      return [{ type, toolCallId, toolName, input }];
    }
    case 'tool-approval-request': {
      const { type, approvalId, toolCall } = part;
      return [{ type, approvalId, toolCallId: toolCall.toolCallId }];
    }
    default:
      return [];
  }
}

function resultOf(part: Part): readonly ToolResultPart[] {
  switch (part.type) {
    case 'tool-result':
      return [resultPart(part, outputOf(part.output))];
    case 'tool-error':
      return [resultPart(part, { type: 'error-text', value: wordsOf(part.error) })];
    case 'tool-approval-response':
      if (part.approved) return [];
      return [resultPart(part.toolCall, { type: 'execution-denied', ...defined({ reason: part.reason }) })];
    default:
      return [];
  }
}

function resultPart(
  { toolCallId, toolName }: { readonly toolCallId: string; readonly toolName: string },
  output: ToolResultPart['output'],
): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName, output };
}

function outputOf(value: Extract<Part, { type: 'tool-result' }>['output']): ToolResultPart['output'] {
  return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value };
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
