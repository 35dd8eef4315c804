/** What a model reads of a call in place of its value, and the files that stand outside of the journal. */
import type { ArtifactRef, InputArtifact } from './artifact.ts';
import type { ErrorData } from './errors.ts';
import { isJsonObject, type Json, type JsonObject, pointerTo, setField } from './json.ts';

/**
 * What `toModelOutput` of a tool has made of the call's value, in the words of the AI SDK, with files as artifacts of the session. It is
 * recorded with the outcome, so that every later request has the same, also in another process and under other code.
 */
export type ModelOutput =
  | { readonly type: 'error-text'; readonly value: string }
  | { readonly type: 'json' | 'error-json'; readonly value: Json }
  | { readonly type: 'execution-denied'; readonly reason?: string }
  /** With `isError` it tells of an error, as a server of MCP does. */
  | { readonly type: 'content'; readonly value: readonly ModelOutputPart[]; readonly isError?: true }
  /** It could not be made, and the model reads the value. */
  | { readonly type: 'failed'; readonly error: ErrorData };

export type ModelOutputPart =
  | { readonly type: 'text'; readonly text: string }
  /** A text that stands in the call's value, at this JSON pointer. */
  | { readonly type: 'text'; readonly at: string }
  /** The call's value, as a model reads it otherwise: the texts were too large to stand here. */
  | { readonly type: 'value' }
  | ResultFile
  /** A file at a URL, or one that a provider has (`reference`, by the names of providers). */
  | ({ readonly type: 'file'; readonly mediaType: string; readonly fileName?: string } & WithOptions &
      ({ readonly url: string } | { readonly reference: Readonly<Record<string, string>> }))
  | ({ readonly type: 'custom' } & WithOptions);

interface WithOptions {
  /** What a provider is told of the part, by the names of providers. */
  readonly providerOptions?: JsonObject;
}

/** A file of a result, which the session keeps. */
export interface ResultFile extends InputArtifact, WithOptions {
  readonly type: 'file';
}

/** Base64 that was taken out of a value: at `at`, a JSON pointer, a reference stands in place of the bytes of this artifact. */
export interface TakenMedia {
  readonly at: string;
  readonly artifact: ArtifactRef;
  /** What stood before the base64, as in a URL of the form `data:image/png;base64,…`. */
  readonly prefix?: string;
}

/** Files of results and of replies with their bytes, as a planner is shown them. */
export interface MediaView {
  /** Files in the results of steps before this one are told by their references: they are old. */
  readonly from: number;
  /** By the references of the files that are shown. Of a file that could not be read there is nothing. */
  readonly bytes: ReadonlyMap<string, Uint8Array>;
}

export function isResultFile(part: ModelOutputPart): part is ResultFile {
  return part.type === 'file' && 'artifactRef' in part;
}

/** What stands in a value in place of base64. */
export function mediaNote({ artifactRef, mime, sizeBytes }: ArtifactRef): JsonObject {
  return { artifact_ref: artifactRef, mime, size_bytes: sizeBytes };
}

/** The value with another one at each of these JSON pointers. Pointers to nothing are passed over. */
export function replacedAt(value: Json, at: ReadonlyMap<string, Json>, pointer = ''): Json {
  const found = at.get(pointer);
  if (found !== undefined) return found;
  if (Array.isArray(value)) return value.map((item: Json, index) => replacedAt(item, at, `${pointer}/${index}`));
  if (!isJsonObject(value)) return value;
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value))
    setField(copy, key, replacedAt(value[key] as Json, at, pointerTo(pointer, key)));
  return copy;
}
