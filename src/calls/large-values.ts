/** Large values leave the journal: they become an artifact, and a preview stands in their place. */

import { isUtf8 } from 'node:buffer';
import {
  ARTIFACT_FETCH,
  type ArtifactRef,
  answerText,
  type Captured,
  encodedBytes,
  type Finished,
  isJsonObject,
  type Json,
  type JsonObject,
  LARGE_VALUE_BYTES,
  type Outcome,
  replacedAt,
  reservedAct,
  type Scope,
  type TakenMedia,
} from '#core';
import { type ArtifactStore, storedJson, storedJsonIfAny, storeIfLarge, storeValue } from '#journal';
import type { Tool } from '#tools';

const PREVIEW_BYTES = 16_384;
const FIELD_BYTES = 1_024;

type ValueOutcome = Extract<Outcome, { kind: 'value' }>;

/**
 * The outcome of a value: itself when it is small, otherwise a preview with a reference to the stored whole.
 * @param reader the name under which the run has the tool that reads stored values.
 */
export async function storeLargeValue(
  value: Captured,
  tool: string,
  scope: Scope,
  artifacts: ArtifactStore,
  reader?: string,
): Promise<ValueOutcome> {
  const artifact = await storeIfLarge(value.json, scope, artifacts, aboutResult(tool));
  if (artifact === undefined) return { kind: 'value', value: value.json };
  const { artifactRef, sizeBytes } = artifact;
  return { kind: 'value', value: previewOf(value.json, tool, artifactRef, sizeBytes, PREVIEW_BYTES, reader), artifact };
}

/** A preview of at most so many bytes in place of a value, or of its preview, and the whole in an artifact, however small it is. */
export async function shorterValue(
  outcome: ValueOutcome,
  tool: string,
  bytes: number,
  scope: Scope,
  artifacts: ArtifactStore,
): Promise<{ readonly value: Json; readonly artifact: ArtifactRef }> {
  const whole = await recordedValue(outcome, scope, artifacts);
  const artifact = outcome.artifact ?? (await storeValue(whole, scope, artifacts, aboutResult(tool)));
  const value = previewOf(whole, tool, artifact.artifactRef, artifact.sizeBytes, bytes);
  return { value, artifact };
}

/** True when the value may be heavy; only then is its exact size worth finding out. */
export function mayBeLarge(value: Captured): boolean {
  return value.maxBytes >= LARGE_VALUE_BYTES;
}

function aboutResult(tool: string): { readonly fileName: string; readonly source: string } {
  const act = reservedAct(tool);
  return act === undefined
    ? { fileName: `tool-result-${tool}.json`, source: `tool: ${tool}` }
    : { fileName: `${act}.json`, source: act };
}

/** @param bytes about how many the preview may have. Fewer than usual: the model has no room for more, nor for large pages of the rest. */
function previewOf(
  value: Json,
  tool: string,
  artifactRef: string,
  sizeBytes: number,
  bytes: number,
  reader: string = ARTIFACT_FETCH,
): Json {
  const opened = openSingleKey(value);
  const { preview, leftOut } = isJsonObject(opened) ? fieldsPreview(opened, bytes) : textPreview(opened, bytes);
  const act = reservedAct(tool);
  const isUsual = bytes >= PREVIEW_BYTES;
  const again = leftOut && act === undefined && tool !== reader ? ` Do not call ${tool} again for the rest.` : '';
  const pages = isUsual ? '' : `, with a length of at most ${bytes}`;
  return Object.freeze({
    tool: act ?? tool,
    size_bytes: sizeBytes,
    truncated: true,
    preview,
    artifact_ref: artifactRef,
    read_on: `Call ${reader} with ref ${artifactRef}${pages} to read the whole.${again}`,
  });
}

/** An object of a single key says nothing by itself: show what is inside. */
function openSingleKey(value: Json): Json {
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value);
  return keys.length === 1 ? (value[keys[0] as string] as Json) : value;
}

function fieldsPreview(
  value: { readonly [key: string]: Json },
  mostBytes: number,
): { preview: Json; leftOut: boolean } {
  const shown: Record<string, Json> = {};
  let left = mostBytes;
  let leftOut = false;
  for (const [key, field] of Object.entries(value)) {
    const bytes = encodedBytes(field);
    const small = bytes <= Math.min(FIELD_BYTES, mostBytes / 4);
    const piece: Json = small ? field : `(${bytes} bytes)`;
    leftOut ||= !small;
    left -= Buffer.byteLength(key) + 4 + (small ? bytes : encodedBytes(piece));
    if (left < 0) return { preview: { ...shown, '…': 'more fields were left out' }, leftOut: true };
    shown[key] = piece;
  }
  return { preview: shown, leftOut };
}

function textPreview(value: Json, mostBytes: number): { preview: Json; leftOut: boolean } {
  const bytes = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  let length = mostBytes;
  let { text } = cutUtf8(bytes, 0, length);
  // Text that needs much escaping grows in the journal.
  while (encodedBytes(text) > 2 * mostBytes && length > 1) {
    length = Math.floor(length / 2);
    text = cutUtf8(bytes, 0, length).text;
  }
  return { preview: `${text}…`, leftOut: true };
}

/** A slice of whole code points, at least one if any is left. `next` is where the following slice begins. */
function cutUtf8(bytes: Uint8Array, offset: number, length: number): { text: string; next: number } {
  let from = Math.min(offset, bytes.length);
  while (from < bytes.length && isContinuation(bytes[from])) from += 1;
  let next = Math.min(from + length, bytes.length);
  while (next > from && next < bytes.length && isContinuation(bytes[next])) next -= 1;
  if (next === from) while (next < bytes.length && (next === from || isContinuation(bytes[next]))) next += 1;
  return { text: Buffer.from(bytes.subarray(from, next)).toString('utf8'), next };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
}

/** The whole value behind an outcome. @throws PilotageError `artifact_not_found`. */
export async function wholeValue(outcome: ValueOutcome, scope: Scope, artifacts: ArtifactStore): Promise<Json> {
  const value = await recordedValue(outcome, scope, artifacts);
  return outcome.media === undefined ? value : withMedia(value, outcome.media, scope, artifacts);
}

/** The value without the files that were taken out of it. */
async function recordedValue({ value, artifact }: ValueOutcome, scope: Scope, artifacts: ArtifactStore): Promise<Json> {
  return artifact === undefined ? value : storedJson({ ...artifact }, scope, artifacts);
}

/** The value with its files in it, as its tool gave it. What the store has no more stays a reference. */
async function withMedia(
  value: Json,
  media: readonly TakenMedia[],
  scope: Scope,
  artifacts: ArtifactStore,
): Promise<Json> {
  const found = new Map<string, Json>();
  for (const { at, artifact, prefix = '' } of media) {
    const bytes = (await artifacts.get(scope, artifact.artifactRef))?.bytes;
    if (bytes !== undefined) found.set(at, prefix + Buffer.from(bytes).toString('base64'));
  }
  return replacedAt(value, found);
}

/** What a run has answered, in words; `undefined` when it said nothing, or the store has no words of it. */
export async function answerOf(
  { payload, stored }: Pick<Finished, 'payload' | 'stored'>,
  scope: Scope,
  artifacts: ArtifactStore,
): Promise<string | undefined> {
  return answerText(stored === undefined ? payload : await storedJsonIfAny(payload, scope, artifacts));
}

/** The built-in tool that reads a stored value on, page by page. It is listed once a run has such a value. */

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

/** Lets the event loop go round once: timers, signals and other runs have their turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Large values are read and stored one a turn, so that many that are ready at once do not keep everybody else waiting. */
export class LargeTurns {
  #isTaken = false;
  #stored: Promise<unknown> = Promise.resolve();

  /** Something large was read: what comes next waits for the next turn. */
  take(): void {
    if (this.#isTaken) return;
    this.#isTaken = true;
    setImmediate(() => {
      this.#isTaken = false;
    });
  }

  /** Now, when nothing large was read in this turn; else in a later one. */
  read<T>(work: () => T | Promise<T>): T | Promise<T> {
    return this.#isTaken ? this.#free().then(work) : work();
  }

  /** Runs the pieces one after the other, each in a turn of its own. */
  store<T>(work: () => Promise<T>): Promise<T> {
    const stored = this.#stored.then(async () => {
      await this.#free();
      this.take();
      return work();
    });
    this.#stored = stored.catch(() => {});
    return stored;
  }

  async #free(): Promise<void> {
    while (this.#isTaken) await turn();
  }
}
