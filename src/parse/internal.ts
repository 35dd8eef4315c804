/** What the other rooms and the tests may use of `parse`. */

export { coerceToSchema } from './coerce.ts';
export type { CallForm } from './find-calls.ts';
export type { ParseIssue } from './issue.ts';
export { looseToJson, readStrictJson } from './loose-value.ts';
export type { ParseTool } from './names.ts';
export { isTemplate } from './placeholders.ts';
export { createReader, DEFAULT_PARSE_LIMITS, type Reader, workFor } from './reader.ts';
export { fits, isObjectSchema } from './schema.ts';
export { JsonStream } from './stream-json.ts';
export type { NdjsonIssue } from './stream-ndjson.ts';
export { NdjsonStream } from './stream-ndjson.ts';
export { ToolCallStream } from './stream-text.ts';
export { parseToolArgs } from './tool-args.ts';
export { type ParsedCall, type ParsedCalls, parseToolCalls } from './tool-calls.ts';
export { answerStart, nextOpener, withoutThoughts } from './turns.ts';
export { readContainer } from './value-reader.ts';
