/**
 * The outcome of a call whose tool has `toModelOutput`: what a model is to read is found out once, when the value is there, and is recorded
 * with it. Files leave the journal, also from the value, which gets them back wherever the whole value is read.
 */
import {
  capture,
  defined,
  describeThrown,
  type InputArtifact,
  isJsonObject,
  isPlan,
  type Json,
  jsonEquals,
  type ModelOutput,
  type ModelOutputPart,
  mediaNote,
  type Outcome,
  pointerTo,
  type Scope,
  type TakenMedia,
} from '#core';
import type { ArtifactStore } from '#journal';
import type { ReadyFunction } from '#tools';
import type { Call, DispatchPorts } from './call-ports.ts';
import {
  type GivenFile,
  type GivenOutput,
  type GivenPart,
  isMcpError,
  mcpFiles,
  readOutput,
  withMcpFiles,
} from './given-output.ts';
import { storeLargeValue } from './large-values.ts';
import { errorData, misfitOf, valueLost, valueOutcome } from './outcome.ts';

type ValueOutcome = Extract<Outcome, { kind: 'value' }>;

/** A call whose tool gave a value, with its arguments as the tool got them. */
export interface ValuedCall {
  readonly call: Call;
  readonly tool: ReadyFunction;
  readonly args: unknown;
}

/** What a call comes to whose tool gave this value. */
export function outcomeOfValue(value: unknown, of: ValuedCall, ports: DispatchPorts): Outcome | Promise<Outcome> {
  const { call, tool } = of;
  const { turns } = ports;
  if (tool.source.toModelOutput === undefined) return valueOutcome(value, call, tool, ports, () => turns.take());
  return shownOutcome(value, of, ports).catch((thrown: unknown) => valueLost(errorData(thrown), tool));
}

/** @throws PilotageError `unserializable`, or of the store. */
async function shownOutcome(
  value: unknown,
  of: ValuedCall,
  { artifacts, isReadByModel }: DispatchPorts,
): Promise<Outcome> {
  const { call, tool } = of;
  const { name } = tool.schema;
  const isCheckable = tool.checkValue !== undefined;
  const misfit = isCheckable ? await misfitOf(capture(value ?? null, 'value').json, tool) : undefined;
  if (misfit !== undefined) return misfit;
  const isRead = isReadByModel && !isPlan(call.open.move.decision);
  const read = isRead ? await askTool(value, of) : undefined;
  const stored = new StoredFiles(name, call.identity, artifacts);
  await stored.take(read, value);
  const taken: TakenMedia[] = [];
  const captured = capture(stored.isEmpty ? (value ?? null) : withoutFiles(value, stored, taken), 'value');
  const outcome: { -readonly [K in keyof ValueOutcome]: ValueOutcome[K] } = {
    ...(await storeLargeValue(captured, name, call.identity, artifacts)),
  };
  if (taken.length > 0) outcome.media = taken;
  const modelOutput =
    read && recordedOutput(read, { value, json: captured.json, isPreview: outcome.artifact !== undefined }, stored);
  if (modelOutput !== undefined) outcome.modelOutput = modelOutput;
  return outcome;
}

type Failed = Extract<ModelOutput, { type: 'failed' }>;
type Read = GivenOutput | Failed;

/** Asks the tool what a model is to read. It has the time of an attempt. */
function askTool(value: unknown, { call, tool, args }: ValuedCall): Read | Promise<Read> {
  const { source, timeoutMs } = tool;
  const about = { toolCallId: call.idempotencyKey, input: args as never, output: value };
  return call.attempt.run<unknown, Read>(
    () => source.toModelOutput?.(about),
    (settled) => {
      if (settled.kind === 'thrown') return failedOutput(settled.error.message);
      if (settled.kind !== 'value') return failedOutput(`it did not end within ${timeoutMs} ms, or was stopped.`);
      try {
        return withMcpFiles(readOutput(settled.value), value);
      } catch (thrown) {
        return failedOutput(describeThrown(thrown));
      }
    },
    { timeoutMs },
  );
}

function failedOutput(why: string): Failed {
  const message = `toModelOutput has failed, and a model reads the value: ${why}`;
  return { type: 'failed', error: { code: 'model_output_failed', message } };
}

/** The files of one result, each stored once. */
class StoredFiles {
  readonly #byData = new Map<unknown, InputArtifact>();
  readonly #byRef = new Map<string, InputArtifact>();
  readonly #source: string;
  readonly #scope: Scope;
  readonly #artifacts: ArtifactStore;

  constructor(tool: string, scope: Scope, artifacts: ArtifactStore) {
    this.#source = `tool: ${tool}`;
    this.#scope = scope;
    this.#artifacts = artifacts;
  }

  /** All files that the output and the value have. */
  async take(read: Read | undefined, value: unknown): Promise<void> {
    for (const part of read?.type === 'content' ? read.value : []) {
      if (part.type === 'bytes') await this.#put(part.file);
      else if (part.type === 'artifact') await this.#find(part.ref);
    }
    for (const file of mcpFiles(value)?.values() ?? []) await this.#put(file);
  }

  get isEmpty(): boolean {
    return this.#byData.size === 0;
  }

  async #put({ bytes, mime, fileName, data }: GivenFile): Promise<void> {
    if (this.#byData.has(data)) return;
    const named = fileName === undefined ? {} : { fileName };
    const ref = await this.#artifacts.put(this.#scope, bytes, { mime, ...named, source: this.#source });
    this.#byData.set(data, { ...ref, mime, ...named });
  }

  async #find(artifactRef: string): Promise<void> {
    const found = await this.#artifacts.get(this.#scope, artifactRef);
    if (found !== undefined)
      this.#byRef.set(artifactRef, { artifactRef, mime: found.mime, sizeBytes: found.bytes.length });
  }

  of(data: unknown): InputArtifact | undefined {
    return this.#byData.get(data);
  }

  known(ref: string): InputArtifact | undefined {
    return this.#byRef.get(ref);
  }
}

/** A value is looked through this deep for files; what is deeper is refused as a value anyhow. */
const DEEPEST = 512;

/** The value with references in place of the files that were stored. It is as the tool gave it, and may be anything: only lists and plain objects are looked into. */
function withoutFiles(value: unknown, stored: StoredFiles, taken: TakenMedia[], at = '', depth = 0): unknown {
  // What is short may stand there for something else.
  const found = typeof value === 'string' && value.length < LEAST_CHARS ? undefined : stored.of(value);
  if (found !== undefined) {
    const { artifactRef, mime, sizeBytes } = found;
    const prefix =
      typeof value === 'string' && value.startsWith('data:') ? value.slice(0, value.indexOf(',') + 1) : undefined;
    taken.push({ at, artifact: { artifactRef, mime, sizeBytes }, ...defined({ prefix }) });
    return mediaNote(found);
  }
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value;
  if (Array.isArray(value))
    return value.map((item, index) => withoutFiles(item, stored, taken, `${at}/${index}`, depth + 1));
  const made = Object.getPrototypeOf(value);
  if (made !== Object.prototype && made !== null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, withoutFiles(item, stored, taken, pointerTo(at, key), depth + 1)]),
  );
}

/** Texts that are longer together do not stand in the journal a second time: the model reads the value, or its preview. */
const MOST_CHARS = 16_384;

/** The value of a call: as its tool gave it, and as it is recorded. */
interface RecordedValue {
  readonly value: unknown;
  readonly json: Json;
  /** The journal has a preview of it. */
  readonly isPreview: boolean;
}

/** What is recorded; `undefined` when a model reads the same without it. */
function recordedOutput(output: Read, of: RecordedValue, stored: StoredFiles): ModelOutput | undefined {
  const { value, json } = of;
  switch (output.type) {
    case 'text':
      return output.value === json ? undefined : contentOf([{ type: 'text', text: output.value }], of, stored);
    case 'error-text':
      return { type: 'error-text', value: start(output.value) };
    case 'json':
    case 'error-json': {
      const isPlain = output.type === 'json';
      if (isPlain && output.value === value) return undefined;
      const said = jsonOf(output.value);
      if (said === undefined) return failedOutput('what it gave is no JSON.');
      if (isPlain && jsonEquals(said, json)) return undefined;
      const text = JSON.stringify(said);
      if (text.length <= MOST_CHARS) return { type: output.type, value: said };
      return isPlain ? undefined : { type: 'error-text', value: start(text) };
    }
    case 'content':
      return contentOf(output.value, of, stored);
    default:
      return output;
  }
}

function jsonOf(value: unknown): Json | undefined {
  try {
    return capture(value ?? null, 'toModelOutput').json;
  } catch {
    return undefined;
  }
}

function start(text: string): string {
  return text.slice(0, MOST_CHARS).toWellFormed();
}

/** Shorter texts are not looked for in the value. */
const LEAST_CHARS = 64;

function contentOf(
  given: readonly GivenPart[],
  { value, json, isPreview }: RecordedValue,
  stored: StoredFiles,
): ModelOutput | undefined {
  const isError = isMcpError(value);
  const texts = given.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const wanted = new Set(isPreview ? [] : texts.filter(({ length }) => length >= LEAST_CHARS));
  const places = new Map<string, string>();
  if (wanted.size > 0) findTexts(json, wanted, places);
  const chars = texts.reduce((sum, text) => sum + (places.has(text) ? 0 : text.length), 0);
  const parts: ModelOutputPart[] = [];
  let isTold = chars <= MOST_CHARS;
  for (const part of given) {
    if (part.type === 'text' && chars > MOST_CHARS) {
      if (!isTold) parts.push({ type: 'value' });
      isTold = true;
    } else parts.push(recordedPart(part, places, stored));
  }
  if (isError) return { type: 'content', value: parts, isError };
  return parts.length > 0 && parts.every(({ type }) => type === 'value')
    ? undefined
    : { type: 'content', value: parts };
}

function recordedPart(part: GivenPart, places: ReadonlyMap<string, string>, stored: StoredFiles): ModelOutputPart {
  switch (part.type) {
    case 'text': {
      const at = places.get(part.text);
      return at === undefined ? part : { type: 'text', at };
    }
    case 'bytes': {
      const { file, type: _, ...told } = part;
      return { type: 'file', ...(stored.of(file.data) as InputArtifact), ...told };
    }
    case 'artifact': {
      const { ref, type: _, ...told } = part;
      const known = stored.known(ref);
      return known === undefined
        ? { type: 'text', text: `(the file ${ref} is not there)` }
        : { type: 'file', ...known, ...told };
    }
    default:
      return part;
  }
}

/** Where these texts stand in the value, as JSON pointers. */
function findTexts(value: Json, wanted: ReadonlySet<string>, places: Map<string, string>, at = ''): void {
  if (typeof value === 'string') {
    if (wanted.has(value) && !places.has(value)) places.set(value, at);
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) findTexts(item as Json, wanted, places, `${at}/${index}`);
  } else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) findTexts(item, wanted, places, pointerTo(at, key));
  }
}
