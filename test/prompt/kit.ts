/** Steps and views made by hand, and what a request says. */
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { branchesOf, type Decision } from '../../src/core/decision.ts';
import type { ErrorData } from '../../src/core/errors.ts';
import type { Json } from '../../src/core/json.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import type { RunView, SteeringTurn } from '../../src/core/planner.ts';
import type { CallRecord, MoveNotes, Step } from '../../src/core/step.ts';
import type { BackgroundResult, TaskEnd } from '../../src/core/task.ts';
import type { ToolSchema } from '../../src/core/tool-schema.ts';
import { systemPrompt } from '../../src/prompt/system-prompt.ts';
import { Transcript, type TranscriptOptions } from '../../src/prompt/transcript.ts';

export const NATIVE: TranscriptOptions = { mode: 'native', replay: 'never', takes: () => false };
export const TEXT: TranscriptOptions = { ...NATIVE, mode: 'text' };

export const value = (json: Json): Outcome => ({ kind: 'value', value: json });
export const failure = (code: string, message: string): Outcome => ({ kind: 'error', error: { code, message } });

export interface StepOptions extends MoveNotes {
  readonly outcomes?: readonly Outcome[];
  /** What stands beside the outcome in the record of the call with the same index. */
  readonly records?: readonly Partial<CallRecord>[];
  /** The step was not accepted, or its reply was no move. */
  readonly error?: ErrorData;
}

/** A step as it comes back from a journal. Default: every call gave `"done"`. */
export function stepOf(index: number, decision: Decision, options: StepOptions = {}): Step {
  const { outcomes = [], records = [], error, ...notes } = options;
  const slots = error === undefined ? branchesOf(decision).length || 1 : 0;
  const calls = Array.from({ length: slots }, (_, call) => ({
    outcome: outcomes[call] ?? value('done'),
    startedAt: 0,
    endedAt: index,
    attempts: 1,
    seq: index * 10 + call,
    ...records[call],
  }));
  const step = {
    index,
    decision,
    ...notes,
    calls,
    startedAt: 0,
    endedAt: 1,
    ...(error === undefined ? {} : { error }),
  };
  return JSON.parse(JSON.stringify(step)) as Step;
}

export function callTool(tool: string, args: Json = {}, callId?: string): Decision {
  return { kind: 'call_tool', tool, args, ...(callId === undefined ? {} : { callId }) };
}

export function says(atStep: number, message: string): SteeringTurn {
  return { atStep, control: { id: `m${atStep}${message}`, type: 'USER_MESSAGE', payload: { message } } };
}

/** A group of one task, which has ended. */
export function group(id: string, atStep: number, end: Partial<TaskEnd> = { result: 'Oslo.' }): BackgroundResult {
  const usage = { steps: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
  const task = `${id}.task`;
  const made = { id: task, group: id, kind: 'background' as const, description: 'Find it.', step: 0, pauses: [] };
  const member = { ...made, end: { task, status: 'complete' as const, usage, ...end } };
  return { atStep, group: { id, status: 'completed', members: [member], endedAt: 1 } };
}

/** The messages of a view, without the system prompt. */
export function messagesOf(view: RunView, options: TranscriptOptions = NATIVE): LanguageModelV4Message[] {
  return new Transcript(systemPrompt({ converse: false }, view, options.mode), view, options).upTo(view).slice(1);
}

export const user = (text: string): LanguageModelV4Message => ({ role: 'user', content: [{ type: 'text', text }] });
export const assistant = (text: string): LanguageModelV4Message => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
});

/** The texts of messages; a file is its type, a call and a result are their tool. */
export function textOf({ content }: LanguageModelV4Message): string {
  if (typeof content === 'string') return content;
  return content
    .map((part) =>
      part.type === 'text' ? part.text : 'toolName' in part ? `${part.type} ${part.toolName}` : part.type,
    )
    .join('\n');
}

export const schema = (name: string, more: Partial<ToolSchema> = {}): ToolSchema => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object' },
  effect: 'read',
  tags: [],
  loading: 'always',
  examples: [],
  ...more,
});

export const TOOLS: readonly ToolSchema[] = [
  schema('read', {
    description: 'Reads a file.\n  Paths are relative.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    examples: [{ path: 'README.md' }, { path: 'src' }, { path: 'a' }, { path: 'b' }],
  }),
  schema('search', {
    description: 'Finds text in files.',
    inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  }),
];

/** Tools that come with the runtime, and one that is not listed at first. */
export const DISCOVERY: readonly ToolSchema[] = [
  schema('artifact_fetch', { description: 'Reads a stored value.' }),
  schema('csv_read', { description: 'Reads a table.', loading: 'deferred', examples: [{ path: 'a.csv' }] }),
  schema('tool_get', { description: 'Shows a tool.' }),
  schema('tool_search', { description: 'Finds tools.' }),
];
