/** The fast path: a text that is JSON as a whole, read by the engine. */
import { isJsonObject, isTooLarge, type Json } from '#core';

/**
 * The value, or `undefined` when the text is no JSON object or list, nests too deep, is larger than can be recorded, or holds a
 * number that would change.
 */
export function readStrictJson(text: string, maxDepth: number): Json | undefined {
  if (!isContainer(text) || isTooLarge(text)) return undefined;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  return isSafe(value, maxDepth) ? value : undefined;
}

const WHITE = ' \n\r\t';

/** Whether the text begins with a bracket and ends with its counterpart: a quick look that spares most failing parses. */
function isContainer(text: string): boolean {
  let start = 0;
  while (WHITE.includes(text.charAt(start)) && start < text.length) start += 1;
  let end = text.length - 1;
  while (end > start && WHITE.includes(text.charAt(end))) end -= 1;
  const open = text[start];
  return (open === '{' && text[end] === '}') || (open === '[' && text[end] === ']');
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
