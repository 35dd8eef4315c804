/** What reading a reply needs and gives. */
import { type ErrorData, FINISH_TOOL, type Json, type Remark, shownName, type ToolView } from '#core';
import type { StopReason } from '#model';
import type { ParseIssue, ParseTool } from '#parse';
import { CONTROL_TOOLS } from '#prompt';
import { faultData } from './faults.ts';
import type { MadeCall } from './made-calls.ts';

export interface ReadCall {
  readonly tool: string;
  /** The id as the provider gave it; empty when the provider gave none. */
  readonly callId: string;
  readonly args: Json;
  /** Why the call cannot be made. */
  readonly refusal?: ErrorData;
  /** Why it is made once more, in the model's words. */
  readonly again?: string;
}

export interface ReadReply {
  /** What was said beside the calls. */
  readonly text: string;
  readonly calls: readonly ReadCall[];
  readonly remarks: readonly Remark[];
  /** Set when the text was meant to be a call: why it is not a call. */
  readonly unreadable?: string;
}

/** The way to end, as the parser needs it. */
const FINISH: ParseTool = {
  name: FINISH_TOOL,
  inputSchema: { type: 'object', properties: { answer: {} }, required: ['answer'] },
};

const RESERVED: readonly ParseTool[] = [FINISH];
const RESERVED_WITH_TASKS: readonly ParseTool[] = [...CONTROL_TOOLS, FINISH];

/** What a reply may call. */
export interface Callable {
  readonly tools: ToolView;
  /** The run may give work to tasks. */
  readonly tasks: boolean;
}

export function reservedTools(tasks: boolean): readonly ParseTool[] {
  return tasks ? RESERVED_WITH_TASKS : RESERVED;
}

/** All tools that a reply may name, as the parser needs them. */
export function parseTools({ tools, tasks }: Callable): readonly ParseTool[] {
  return [...tools.all(), ...reservedTools(tasks)];
}

export interface ReadOptions extends Callable {
  readonly mode: 'native' | 'text';
  /** Fits an answer to the schema that was asked for; without one every answer will do. */
  readonly readAnswer?: (answer: Json) => { readonly answer: Json } | { readonly misfit: string };
  /** The last equal call that the run has made already, if it may have changed something. */
  readonly madeBefore: (tool: string, args: Json) => MadeCall | undefined;
}

/** The reply ended before the model was done: its text is not an answer, and its last call may be half a call. */
export const CUT_OFF: ReadonlySet<StopReason> = new Set(['length', 'interrupted', 'error']);

export function isCut({ code }: ParseIssue): boolean {
  return code === 'truncated';
}

export function cutRefusal(tool: string): ErrorData {
  return faultData(
    'tool_invalid_args',
    `The arguments of ${shownName(tool)} end in the middle. Send the whole call again.`,
  );
}

const NO_REMARKS: readonly Remark[] = [];
const MAX_ISSUES = 10;
const MAX_MESSAGE_CHARS = 256;

/** What was repaired, as one remark; each field that was left out as its own. */
export function remarksOf(issues: readonly ParseIssue[]): readonly Remark[] {
  if (issues.length === 0) return NO_REMARKS;
  const dropped = new Set(
    issues.flatMap((issue) => (issue.code === 'extra_field_dropped' ? [issue.field ?? issue.message] : [])),
  );
  const remarks = [...dropped].map((field): Remark => ({ type: 'planner.action_extra_field_dropped', field }));
  const repaired = issues.filter(({ code }) => code !== 'extra_field_dropped' && code !== 'mismatch');
  if (repaired.length === 0) return remarks;
  const shown = repaired.slice(0, MAX_ISSUES).map(({ code, message }) => ({
    code,
    message: message.slice(0, MAX_MESSAGE_CHARS),
  }));
  return [...remarks, { type: 'planner.reply_repaired', issues: shown }];
}
