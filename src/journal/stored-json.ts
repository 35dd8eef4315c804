/** JSON that is too large to stand in the journal: stored as an artifact, and read back by its reference. */
import { type ArtifactRef, isJsonObject, type Json, LARGE_VALUE_BYTES, PilotageError, type Scope } from '#core';
import type { ArtifactStore } from './port.ts';

/** Stores what is too large to stand in the journal. @returns `undefined` for what is not. */
export async function storeIfLarge(
  value: Json,
  scope: Scope,
  artifacts: ArtifactStore,
  about: { readonly fileName: string; readonly source: string },
): Promise<ArtifactRef | undefined> {
  const bytes = Buffer.from(JSON.stringify(value));
  if (bytes.length < LARGE_VALUE_BYTES) return undefined;
  return artifacts.put(scope, bytes, { mime: 'application/json', ...about });
}

/** Stores a value of any size. */
export function storeValue(
  value: Json,
  scope: Scope,
  artifacts: ArtifactStore,
  about: { readonly fileName: string; readonly source: string },
): Promise<ArtifactRef> {
  return artifacts.put(scope, Buffer.from(JSON.stringify(value)), { mime: 'application/json', ...about });
}

/** The JSON that an artifact holds. @param ref its reference. @throws PilotageError `artifact_not_found`. */
export async function storedJson(ref: Json, scope: Scope, artifacts: ArtifactStore): Promise<Json> {
  const text = await storedText(ref, scope, artifacts);
  if (text !== undefined) return JSON.parse(text) as Json;
  throw new PilotageError('artifact_not_found', `The artifact ${refIn(ref)} is not in the store.`);
}

/**
 * The JSON that an artifact holds, for whoever can do without: `undefined` when the store has it no more, and when it holds something
 * else, such as an image that a planner gave as its answer.
 */
export async function storedJsonIfAny(
  ref: Json | undefined,
  scope: Scope,
  artifacts: ArtifactStore,
): Promise<Json | undefined> {
  const text = await storedText(ref, scope, artifacts);
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}

async function storedText(ref: Json | undefined, scope: Scope, artifacts: ArtifactStore): Promise<string | undefined> {
  const stored = await artifacts.get(scope, refIn(ref));
  return stored && Buffer.from(stored.bytes).toString('utf8');
}

function refIn(ref: Json | undefined): string {
  return isJsonObject(ref) ? String(ref['artifactRef']) : '';
}
