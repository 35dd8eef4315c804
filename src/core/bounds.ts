/** The bounds of a pause payload and of a control payload: small enough to list, show and index. */
import { PilotageError } from './errors.ts';
import { encodedBytes, isJsonObject, type Json, type JsonObject } from './json.ts';

export const PAYLOAD_BOUNDS = {
  depth: 6,
  keys: 64,
  items: 50,
  /** Characters (code points), not bytes. */
  stringChars: 4096,
  bytes: 16_384,
} as const;

/** @throws PilotageError `payload_invalid` naming the bound that was passed, and where. Nothing is ever trimmed. */
export function assertPayloadBounds(payload: JsonObject, root: string): void {
  visit(payload, root, 1);
  const bytes = encodedBytes(payload);
  if (bytes > PAYLOAD_BOUNDS.bytes) refuse(root, `${bytes} bytes of JSON`, `${PAYLOAD_BOUNDS.bytes} bytes`);
}

function visit(value: Json, path: string, depth: number): void {
  if (typeof value === 'string') {
    const chars = value.length <= PAYLOAD_BOUNDS.stringChars ? 0 : [...value].length;
    if (chars > PAYLOAD_BOUNDS.stringChars) refuse(path, `${chars} characters`, `${PAYLOAD_BOUNDS.stringChars}`);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  if (depth > PAYLOAD_BOUNDS.depth) refuse(path, `${depth} levels`, `${PAYLOAD_BOUNDS.depth} levels`);
  if (Array.isArray(value)) {
    if (value.length > PAYLOAD_BOUNDS.items) refuse(path, `${value.length} items`, `${PAYLOAD_BOUNDS.items} items`);
    for (const [index, item] of value.entries()) visit(item, `${path}[${index}]`, depth + 1);
  } else if (isJsonObject(value)) {
    const keys = Object.keys(value);
    if (keys.length > PAYLOAD_BOUNDS.keys) refuse(path, `${keys.length} keys`, `${PAYLOAD_BOUNDS.keys} keys`);
    for (const key of keys) visit(value[key] as Json, `${path}.${key}`, depth + 1);
  }
}

function refuse(path: string, found: string, bound: string): never {
  throw new PilotageError('payload_invalid', `${path} has ${found}; the bound is ${bound}.`, { data: { path } });
}
