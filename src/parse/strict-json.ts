/** The fast path: a text that is JSON as a whole, read by the engine. */
import { isJsonObject, type Json } from '../core/json.ts';

/** The value, or `undefined` when the text is no JSON object or list, nests too deep, or holds a number that would change. */
export function readStrictJson(text: string, maxDepth: number): Json | undefined {
  if (!beginsContainer(text)) return undefined;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  return isSafe(value, maxDepth) ? value : undefined;
}

function beginsContainer(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 123 || code === 91) return true;
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return false;
  }
  return false;
}

function isSafe(value: Json, depthLeft: number): boolean {
  if (typeof value === 'number')
    return Number.isSafeInteger(value) || (!Number.isInteger(value) && Number.isFinite(value));
  if (typeof value !== 'object' || value === null) return true;
  if (depthLeft <= 0) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (!isSafe(item, depthLeft - 1)) return false;
    return true;
  }
  if (!isJsonObject(value)) return true;
  for (const key in value) {
    const inner = value[key];
    if (inner !== undefined && !isSafe(inner, depthLeft - 1)) return false;
  }
  return true;
}
