/**
 * What runs have recorded, as clients and receivers of webhooks may see it: the words of recorded errors hold anything, so that each is replaced by what the
 * server says of its code. What users, models and tools have given stays as it is.
 */
import { type ErrorData, isJsonObject, type Json, type JsonObject, OPERATOR_REASONS } from '#core';
import type { ErrorText } from './problem.ts';

/** Content, whatever its keys are called. */
const CONTENT: ReadonlySet<string> = new Set([
  ...['args', 'input', 'output', 'value', 'result', 'chunk', 'context', 'schema', 'labels', 'data'],
]);

export function told(value: Json, errorText: ErrorText): Json {
  if (Array.isArray(value)) return value.map((each) => told(each, errorText));
  if (!isJsonObject(value)) return value;
  if (value['type'] === 'dynamic-tool') return toldCall(value, errorText);
  const isOfRuntime = asksForRuntime(value);
  const entries = Object.entries(toldWords(value, errorText)).map(([key, part]): [string, Json] => {
    // What agents and people give is content; what the runtime itself asks is put together from what it has met.
    const isContent = key === 'payload' ? !isOfRuntime : CONTENT.has(key);
    return [key, isContent ? part : told(part, errorText)];
  });
  return Object.fromEntries(entries);
}

/** The part of a call in a message of the AI SDK has the error as the model was told of it. */
function toldCall(part: JsonObject, errorText: ErrorText): JsonObject {
  if (part['state'] !== 'output-error') return part;
  return { ...part, errorText: errorText({ code: 'tool_failed', message: '' }) };
}

function asksForRuntime({ reason }: JsonObject): boolean {
  return typeof reason === 'string' && OPERATOR_REASONS.includes(reason);
}

function isError(value: JsonObject): value is JsonObject & ErrorData {
  return typeof value['code'] === 'string' && typeof value['message'] === 'string';
}

/** Replaces the words of an error wherever its parent has them: in an error itself, beside its code, in a question of the runtime's own. */
function toldWords(value: JsonObject, errorText: ErrorText): JsonObject {
  const say = (code: string, words: Json): Json =>
    typeof words === 'string' ? errorText({ code, message: words }) : words;
  const saying = (of: JsonObject, code: string, keys: readonly string[]): JsonObject =>
    Object.fromEntries(Object.entries(of).map(([key, part]) => [key, keys.includes(key) ? say(code, part) : part]));
  const { type, errorCode, reasons, reason, payload = null } = value;
  if (isError(value)) {
    const { data: _, ...rest } = value;
    return { ...rest, message: errorText(value) };
  }
  if (typeof errorCode === 'string') return saying(value, errorCode, ['errorMessage']);
  // Models that gave no reply are among them.
  if (type === 'planner.repair_exhausted' && Array.isArray(reasons))
    return { ...value, reasons: reasons.map((each) => say('repair_exhausted', each)) };
  if (typeof reason !== 'string' || !asksForRuntime(value) || !isJsonObject(payload)) return value;
  // A call in doubt has as `why` what its tool has thrown; a model that is away has a word of ours there.
  const inside = saying(payload, reason, reason === 'in_doubt' ? ['message', 'why'] : ['message']);
  return { ...saying(value, reason, ['question']), payload: inside };
}
