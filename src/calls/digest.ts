/** A short text that stands for a value. */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json } from '#core';

/** Equal for equal values, in whichever order their keys are. */
export function jsonDigest(value: Json): string {
  const sorted = JSON.stringify(value, (_, part: Json) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
  return createHash('sha256').update(sorted).digest('base64url');
}
