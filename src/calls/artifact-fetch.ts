/** The built-in tool that reads a stored value on, page by page. It is listed once a run has such a value. */
import { isUtf8 } from 'node:buffer';
import { ARTIFACT_FETCH, encodedBytes, type Json, type JsonObject } from '#core';
import type { ArtifactStore } from '#journal';
import type { Tool } from '#tools';
import { cutUtf8, LARGE_VALUE_BYTES } from './large-values.ts';

const DEFAULT_PAGE_BYTES = 16_384;
const MAX_PAGE_BYTES = 28_672;
const NOT_TEXT = 'The artifact is not text, and cannot be shown as text.';

/** A single object for all runtimes, so that its check is compiled once. */
const INPUT: JsonObject = {
  type: 'object',
  properties: {
    ref: { type: 'string', description: 'The artifact_ref of a stored value.' },
    offset: { type: 'integer', minimum: 0, description: 'Where to begin, in bytes. Default 0.' },
    length: {
      type: 'integer',
      minimum: 1,
      description: `Bytes to read, at most ${MAX_PAGE_BYTES}. Default ${DEFAULT_PAGE_BYTES}.`,
    },
  },
  required: ['ref'],
  additionalProperties: false,
};

/** @param artifacts is asked for at the first use: the store may not be open yet. */
export function artifactFetch(artifacts: () => ArtifactStore): Tool {
  return {
    name: ARTIFACT_FETCH,
    description:
      'Reads a stored value by its artifact ref, a page at a time. Give next_offset of a page as offset to read on; no next_offset means that was the end.',
    effect: 'read',
    loading: 'deferred',
    mimeTypes: ['text/*', 'application/json'],
    inputSchema: INPUT,
    execute: async ({ ref, offset = 0, length = DEFAULT_PAGE_BYTES }, { identity }) => {
      const stored = await artifacts().get(identity, String(ref));
      // A foreign reference and an unknown one give the same answer.
      if (stored === undefined) return { found: false, ref: String(ref) };
      const { bytes, mime } = stored;
      if (!isUtf8(bytes)) return { found: true, ref: String(ref), mime, size_bytes: bytes.length, error: NOT_TEXT };
      return page(String(ref), bytes, Number(offset), Math.min(Number(length), MAX_PAGE_BYTES));
    },
  };
}

/** A page whose JSON stays below the size at which results are stored, however much escaping the text needs. */
function page(ref: string, bytes: Uint8Array, offset: number, length: number): Json {
  const { text, next } = cutUtf8(bytes, offset, length);
  const result = { found: true, ref, size_bytes: bytes.length, offset, text };
  const whole = next >= bytes.length ? result : { ...result, next_offset: next };
  return encodedBytes(whole) < LARGE_VALUE_BYTES ? whole : page(ref, bytes, offset, Math.floor(length / 2));
}
