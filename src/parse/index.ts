/** `pilotage/parse`: from what a model wrote to calls and values. */

export { coerceToSchema } from './coerce.ts';
export type { CallForm } from './find-calls.ts';
export type { ParseIssue, ParseIssueCode } from './issue.ts';
export type { ParseTool } from './names.ts';
export { DEFAULT_PARSE_LIMITS, type ParseLimits } from './reader.ts';
export { JsonStream, type JsonStreamFault, type JsonStreamIssue, type JsonStreamIssueCode } from './stream-json.ts';
export { type NdjsonIssue, NdjsonStream } from './stream-ndjson.ts';
export { type ToolCallEnd, type ToolCallPart, ToolCallStream } from './stream-text.ts';
export { type ParsedArguments, parseToolArgs } from './tool-args.ts';
export {
  DEFAULT_STRICTNESS,
  type ParsedCall,
  type ParsedCalls,
  type ParseOptions,
  parseToolCalls,
} from './tool-calls.ts';
