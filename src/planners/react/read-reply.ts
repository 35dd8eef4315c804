/** The calls of a reply, whichever way the model wrote them: natively, as text of a model without native calls, or leaked. */

import { FINISH_TOOL, isJsonObject, type Json, shownName, type ToolSchema } from '#core';
import type { ModelCall, Reply } from '#model';
import { type ParseIssue, parseToolArgs } from '#parse';
import { CONTROL_TOOLS } from '#prompt';
import { readTemplate } from './chat-template.ts';
import { faultData } from './faults.ts';
import { readReplyText } from './read-text.ts';
import {
  type Callable,
  CUT_OFF,
  cutRefusal,
  isCut,
  type ReadCall,
  type ReadOptions,
  type ReadReply,
  remarksOf,
  reservedTools,
} from './reading.ts';

export function readReply(reply: Reply, options: ReadOptions): ReadReply {
  if (reply.calls.length > 0) return readNative(reply, options);
  if (options.mode === 'text') return readReplyText(reply, options);
  return readLeaked(reply, options);
}

function readNative({ text, calls }: Reply, callable: Callable): ReadReply {
  const issues: ParseIssue[] = [];
  const read = calls.map((call) => readNativeCall(call, callable, issues));
  return { text, calls: read, remarks: remarksOf(issues) };
}

function readNativeCall(
  { tool, callId, input }: ModelCall,
  { tools, tasks }: Callable,
  issues: ParseIssue[],
): ReadCall {
  // Some providers send nothing for a call without arguments.
  if (input.trim() === '') return { tool, callId, args: {} };
  const known = reservedTools(tasks).find(({ name }) => name === tool) ?? tools.get(tool) ?? { name: tool };
  // What ends a run is not guessed from less than an object.
  const parsed = tool === FINISH_TOOL && !input.trimStart().startsWith('{') ? null : parseToolArgs(input, known);
  if (parsed === null) {
    const message = `The arguments of ${shownName(tool)} are not a JSON object. Send an object that fits the schema of the tool.`;
    return { tool, callId, args: input, refusal: faultData('tool_invalid_args', message) };
  }
  issues.push(...parsed.issues);
  if (parsed.issues.some(isCut)) return { tool, callId, args: parsed.args, refusal: cutRefusal(tool) };
  return { tool, callId, args: parsed.args };
}

/**
 * What a model with native calls wrote in place of them. Words are always an answer, and so is JSON. Only the
 * template of a call counts, and only when nothing of it is missing, to be mended, or of a tool that was not offered. One
 * that does not count is not an answer either: nobody wants to read its tokens.
 */
function readLeaked({ text, finish }: Reply, options: ReadOptions): ReadReply {
  const words: ReadReply = { text, calls: [], remarks: [] };
  // Any JSON may be that answer, and nothing else is asked for.
  if (options.readAnswer !== undefined) return words;
  const reading = readTemplate(text, (tool, argument) => typeOf(options.tools.get(tool), argument));
  if (reading.kind === 'prose') return words;
  if (reading.kind === 'broken' || CUT_OFF.has(finish)) return { ...words, unreadable: BROKEN_TEMPLATE };
  const unknown = reading.calls.find(({ tool }) => !isOffered(tool, options));
  if (unknown !== undefined) return { ...words, unreadable: `There is no tool named "${shownName(unknown.tool)}".` };
  const issues: ParseIssue[] = [];
  const calls = reading.calls.map(({ tool, args }) =>
    readNativeCall({ tool, callId: '', input: JSON.stringify(args) }, options, issues),
  );
  if (issues.some(({ code }) => !HARMLESS.has(code))) return { ...words, unreadable: BROKEN_TEMPLATE };
  const leaked = { code: 'repaired', message: 'The calls were written as text in place of native calls.' };
  return { text: '', calls, remarks: [...remarksOf(issues), { type: 'planner.reply_repaired', issues: [leaked] }] };
}

const BROKEN_TEMPLATE =
  'It is a call that was written as text, and it is not whole and well formed. Make the call as a tool call, or answer in words.';

/** What is done to the arguments of a native call too, and leaves their meaning as it is. */
const HARMLESS: ReadonlySet<ParseIssue['code']> = new Set([
  'coerced',
  'default_filled',
  'argument_dropped',
  'mismatch',
]);

function isOffered(tool: string, { tools, tasks }: Callable): boolean {
  return tools.list().some(({ name }) => name === tool) || (tasks && CONTROL_TOOLS.some(({ name }) => name === tool));
}

function typeOf(tool: ToolSchema | undefined, argument: string): Json | undefined {
  const properties = tool?.inputSchema['properties'];
  const property = isJsonObject(properties) && Object.hasOwn(properties, argument) ? properties[argument] : undefined;
  return isJsonObject(property) ? property['type'] : undefined;
}
