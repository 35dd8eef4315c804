/**
 * What runs have recorded, as clients may see it: the words of recorded errors hold anything, so that each is replaced by what the server says of its
 * code. What users, models and tools have given stays as it is.
 */
import { type ErrorData, isJsonObject, type Json, type JsonObject } from '#core';
import type { ErrorText } from '../problem.ts';

/** Content, whatever its keys are called. */
const CONTENT: ReadonlySet<string> = new Set([
  ...['args', 'input', 'output', 'value', 'result', 'chunk', 'context', 'schema', 'labels'],
]);
const ERROR_KEYS: ReadonlySet<string> = new Set(['code', 'message', 'data']);

export function told(value: Json, errorText: ErrorText): Json {
  if (Array.isArray(value)) return value.map((each) => told(each, errorText));
  if (!isJsonObject(value)) return value;
  if (isError(value)) return { code: value.code, message: errorText(value) };
  if (value['type'] === 'dynamic-tool') return toldCall(value, errorText);
  const isQuestion = 'token' in value;
  const entries = Object.entries(value).map(([key, part]): [string, Json] => {
    // What a planner gives is content; what a question shows is put together by the runtime.
    const isContent = key === 'payload' ? !isQuestion : CONTENT.has(key);
    return [key, isContent ? part : told(part, errorText)];
  });
  return Object.fromEntries(entries);
}

function isError(value: JsonObject): value is JsonObject & ErrorData {
  const { code, message } = value;
  if (typeof code !== 'string' || typeof message !== 'string') return false;
  return Object.keys(value).every((key) => ERROR_KEYS.has(key));
}

/** The part of a call in a message of the AI SDK has the error as the model was told of it. */
function toldCall(part: JsonObject, errorText: ErrorText): JsonObject {
  if (part['state'] !== 'output-error') return part;
  return { ...part, errorText: errorText({ code: 'tool_failed', message: '' }) };
}
