/** What a run is given beside its query: attachments, memory, skills, and what its session has stored. */
import {
  capture,
  deepFreeze,
  defined,
  type Identity,
  type InputArtifact,
  type InputFile,
  isJsonObject,
  type Json,
  type LoadedInput,
  PilotageError,
  type RunContext,
  type Scope,
} from '#core';
import type { ArtifactStore } from '#journal';
import type { Agent } from '#tools';

/** The parts of a run's context that the caller gives; the rest is found out at the start. */
export type GivenContext = Omit<RunContext, 'inputs' | 'artifacts' | 'carried'>;

interface StartMaterial {
  readonly context?: GivenContext;
  readonly inputs?: readonly (InputArtifact | InputFile)[];
}

/** Stored values of the session that a run is told of at its start. */
const MANIFEST_ROWS = 20;

/**
 * The context that is recorded with the run's start, frozen. `undefined`: there is nothing to record.
 * @throws PilotageError `invalid_config`, `unserializable`, `memory_block_unserializable`, `scope_mismatch` for a memory block that names
 * another identity, or a store error.
 */
export async function contextAtStart(
  { context = {}, inputs = [] }: StartMaterial,
  identity: Identity,
  store: ArtifactStore,
): Promise<RunContext | undefined> {
  const made: { -readonly [K in keyof RunContext]: RunContext[K] } = { ...pickGiven(context, identity) };
  for (const [index, input] of inputs.entries()) assertInput(input, index);
  // Before the attachments are stored: they have a place of their own.
  const { rows, total } = await store.list(identity, MANIFEST_ROWS);
  if (rows.length > 0) made.artifacts = { rows, more: total - rows.length };
  if (inputs.length > 0)
    made.inputs = await Promise.all(inputs.map((input) => storedInput(input, 'user', identity, store)));
  if (Object.keys(made).length === 0) return undefined;
  return capture<RunContext>(made, 'context').json;
}

/** The context with the arguments as the planner gets them. @throws the error of that reading. */
export async function withReadArgs(
  given: StartMaterial,
  identity: Identity,
  readArgs: NonNullable<Agent['readArgs']>,
): Promise<StartMaterial> {
  const args = await readArgs(given.context?.args, identity);
  // Read by their names, since both may be objects of a class.
  const { inputs, context = {} } = given;
  return { ...defined({ inputs }), context: { ...namedParts(context), args } };
}

function pickGiven(context: GivenContext, identity: Identity): GivenContext {
  const given = namedParts(context);
  const { meta, externalMemory, conversationMemory, retrieved } = given;
  if (meta !== undefined && !isJsonObject(meta)) {
    throw new PilotageError('invalid_config', 'context.meta must be an object: its keys hold what tools may read.');
  }
  for (const [name, block] of Object.entries({ externalMemory, conversationMemory, retrieved })) {
    if (block !== undefined) assertBlock(name, block, identity);
  }
  return given;
}

function namedParts(context: GivenContext): GivenContext {
  const { args, meta, hints, externalMemory, conversationMemory, retrieved, skills, reasoningReplay } = context;
  return defined({ args, meta, hints, externalMemory, conversationMemory, retrieved, skills, reasoningReplay });
}

/** A memory block must be JSON, and if it has an identity, that of this session. */
function assertBlock(name: string, block: Json, identity: Identity): void {
  let json: Json;
  try {
    json = capture(block, `context.${name}`).json;
  } catch (cause) {
    if (!PilotageError.is(cause)) throw cause;
    const message = `The memory block cannot be sent: ${cause.message}`;
    throw new PilotageError('memory_block_unserializable', message, { cause, data: cause.data });
  }
  const owner = isJsonObject(json) ? json['identity'] : undefined;
  if (!isJsonObject(owner)) return;
  for (const part of ['tenant', 'user', 'session'] as const) {
    if (owner[part] === undefined || owner[part] === identity[part]) continue;
    throw new PilotageError('scope_mismatch', `context.${name} belongs to another ${part}. Nothing was started.`);
  }
}

export function assertInput(input: InputArtifact | InputFile, index: number): void {
  const { mime, fileName }: Partial<InputFile> = input ?? {};
  const isNamed = typeof mime === 'string' && (fileName === undefined || typeof fileName === 'string');
  if (isNamed && (isFile(input) ? input.bytes instanceof Uint8Array : isReference(input))) return;
  throw new PilotageError(
    'invalid_config',
    `inputs[${index}] is not an attachment. Give { bytes, mime, fileName? }, { artifactRef, mime, sizeBytes, fileName? } or { url, mime?, fileName? }.`,
  );
}

function isFile(input: InputArtifact | InputFile): input is InputFile {
  return 'bytes' in input;
}

function isReference({ artifactRef, sizeBytes }: InputArtifact): boolean {
  return typeof artifactRef === 'string' && artifactRef !== '' && Number.isSafeInteger(sizeBytes) && sizeBytes >= 0;
}

/** @param source who has made it. */
export async function storedInput(
  input: InputArtifact | InputFile,
  source: string,
  identity: Scope,
  store: ArtifactStore,
): Promise<InputArtifact> {
  const { mime, fileName } = input;
  const named = fileName === undefined ? {} : { fileName };
  const ref = isFile(input)
    ? await store.put(identity, input.bytes, { mime, ...named, source })
    : { artifactRef: input.artifactRef, mime, sizeBytes: input.sizeBytes };
  return { ...ref, ...named };
}

/** @throws Error when it is not a list of files: the planner has failed. */
export function assertFiles(made: readonly InputFile[]): void {
  const isFileOf = (file: Partial<InputFile> | null): boolean =>
    file?.bytes instanceof Uint8Array && typeof file.mime === 'string';
  if (Array.isArray(made) && made.every(isFileOf)) return;
  throw new Error('the field made of a move must be a list of { bytes, mime }, with bytes as a Uint8Array');
}

/** The files that a model has made, as artifacts of the session. @throws an error of the store. */
export async function storedFiles(
  made: readonly InputFile[],
  identity: Identity,
  store: ArtifactStore,
): Promise<readonly InputArtifact[]> {
  return deepFreeze(await Promise.all(made.map((file) => storedInput(file, 'model', identity, store))));
}

/**
 * The attachments with their bytes, in order, frozen. An attachment that is unknown in this scope, or damaged, comes without bytes.
 * @throws PilotageError of a store that cannot be read for now.
 */
export async function loadInputs(
  inputs: readonly InputArtifact[],
  scope: Scope,
  store: ArtifactStore,
): Promise<readonly LoadedInput[]> {
  return Object.freeze(await Promise.all(inputs.map((input) => load(input, scope, store))));
}

async function load(input: InputArtifact, scope: Scope, store: ArtifactStore): Promise<LoadedInput> {
  try {
    const found = await store.get(scope, input.artifactRef);
    return Object.freeze(found === undefined ? { ...input } : { ...input, bytes: found.bytes });
  } catch (error) {
    // A fault of the store as a whole must not change what the model is sent: the run waits for it to pass.
    if (!PilotageError.is(error, 'journal_corrupt')) throw error;
    return Object.freeze({ ...input });
  }
}
