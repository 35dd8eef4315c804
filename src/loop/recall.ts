/** What a run is told of the memory of its user: read once, before its first step, and recorded. */
import {
  capture,
  defined,
  encodedBytes,
  isJsonObject,
  type Json,
  type JsonObject,
  MEMORY,
  PilotageError,
  type PlannerMemory,
  PROFILE,
  type RecalledItem,
  type RecalledMemory,
  type StoreHit,
} from '#core';
import type { StoreLayer } from '#journal';
import type { RunState } from '#state';
import { profileCheck } from '#tools';
import { layerOf } from '../calls/call-store.ts';
import type { DriverDeps } from './driver-deps.ts';

/** So much of an item is told: what is long is for a tool to look up. */
const MOST_BYTES = 4_096;
const MOST_CHARS = 2_000;

/** @throws PilotageError of the store. */
export async function recalled(deps: DriverDeps, state: RunState): Promise<RecalledMemory> {
  const { remembers } = deps.planner;
  const layer = layerOf(state);
  const namespace = [...deps.memory.rootOf(state.identity), ...MEMORY];
  const profile = await profileIn(deps, remembers, [...namespace], layer);
  const most = remembers?.recall ?? 0;
  const found = most === 0 ? [] : await fitting(deps, { namespace, limit: most + 1 }, state.query, layer);
  const items = found.filter((hit) => hit.key !== PROFILE || hit.namespace.length > namespace.length).slice(0, most);
  return { kind: 'recalled', ...defined({ profile }), items: items.map(told) };
}

/** A profile that was written for another schema is not told. */
async function profileIn(
  { memory }: DriverDeps,
  remembers: PlannerMemory | undefined,
  namespace: readonly string[],
  layer: StoreLayer,
): Promise<JsonObject | undefined> {
  if (remembers?.profile === undefined) return undefined;
  const item = await memory.view.get(namespace, PROFILE, layer);
  if (item === undefined || !isJsonObject(item.value)) return undefined;
  const checked = await profileCheck(remembers.profile)(item.value);
  return checked.ok ? item.value : undefined;
}

/** A run does not wait for an embedding function that fails: then words have to do. */
async function fitting(
  { memory, onFault }: DriverDeps,
  query: { readonly namespace: readonly string[]; readonly limit: number },
  text: string,
  layer: StoreLayer,
): Promise<StoreHit[]> {
  try {
    return await memory.view.search(query, text, layer);
  } catch (error) {
    if (!PilotageError.is(error, 'embedding_failed')) throw error;
    onFault(error);
    return memory.view.searchWords(query, text, layer);
  }
}

function told({ namespace, key, value, score, source }: StoreHit): RecalledItem {
  return capture<RecalledItem>({ namespace, key, value: shortened(value), score, ...defined({ source }) }, 'recalled')
    .json;
}

function shortened(value: Json): Json {
  if (encodedBytes(value) <= MOST_BYTES) return value;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `${text.slice(0, MOST_CHARS).toWellFormed()}…`;
}
