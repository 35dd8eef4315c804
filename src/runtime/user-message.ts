/** A message of the user as a program gives it, and as it is stored: files are artifacts of the session before anybody hears of them. */
import {
  assertOptions,
  defined,
  type InputArtifact,
  type InputFile,
  type JsonObject,
  MAX_INPUTS,
  type OptionShape,
  PilotageError,
  readAuthor,
  type Scope,
} from '#core';
import type { ArtifactStore } from '#journal';
import type { FetchOptions, FileAtUrl, FileOptions, MessageFile, UserMessage } from '#messages';
import { assertInput, storedInput } from '../loop/inputs.ts';

const FILES: OptionShape<FileOptions> = { fetch: 'any?' };
const FETCH: OptionShape<FetchOptions> = { allowHosts: 'list?', maxBytes: 'count?', timeoutMs: 'count?' };
const MESSAGE: OptionShape<UserMessage> = { text: 'any?', inputs: 'list?', author: 'any?', notice: 'flag?' };

/** @throws PilotageError `invalid_config`. */
export function assertFileOptions(files: FileOptions): void {
  assertOptions('createRuntime({ files })', files, FILES);
  const { fetch } = files;
  if (fetch === undefined || fetch === true) return;
  if (typeof fetch !== 'object' || fetch === null) {
    throw new PilotageError('invalid_config', 'files.fetch must be true, or { allowHosts, maxBytes, timeoutMs }.');
  }
  assertOptions('createRuntime({ files: { fetch } })', fetch, FETCH);
  if (fetch.allowHosts?.some((host) => typeof host !== 'string') !== true) return;
  throw new PilotageError(
    'invalid_config',
    "files.fetch.allowHosts must be a list of hosts, such as ['files.example.com'].",
  );
}

export interface MessageStores {
  readonly artifacts: ArtifactStore;
  readonly files: FileOptions;
}

/**
 * The payload of a `USER_MESSAGE`.
 * @throws PilotageError `invalid_config`, `payload_invalid` for too many files, `url_refused`, `url_failed`, or a store error. Nothing was sent then.
 */
export async function messagePayload(
  message: string | UserMessage,
  scope: Scope,
  { artifacts, files }: MessageStores,
): Promise<JsonObject> {
  if (typeof message === 'string') return { message };
  assertOptions('A message', message, MESSAGE);
  const { text = '', inputs = [], author, notice } = message;
  if (typeof text !== 'string') throw new PilotageError('invalid_config', 'The text of a message must be a string.');
  if (text === '' && inputs.length === 0) {
    throw new PilotageError('invalid_config', 'The message says nothing: give it a text, or inputs.');
  }
  if (inputs.length > MAX_INPUTS) {
    const words = `A message has at most ${MAX_INPUTS} files, and this one has ${inputs.length}. Send the others in a message of their own.`;
    throw new PilotageError('payload_invalid', words);
  }
  const by = author === undefined ? undefined : { ...readAuthor(author, 'a message', 'invalid_config') };
  const given = await fetchedFiles(inputs, files);
  for (const [index, input] of given.entries()) assertInput(input, index);
  const stored = await Promise.all(given.map((input) => storedInput(input, 'user', scope, artifacts)));
  return {
    message: text,
    ...(stored.length === 0 ? {} : { inputs: stored.map((input) => ({ ...input })) }),
    ...defined({ author: by }),
    ...(notice === true ? { notice } : {}),
  };
}

/** The files with the bytes of those that were given by their URLs. @throws PilotageError `url_refused`, `url_failed`. */
export async function fetchedFiles(
  inputs: readonly MessageFile[],
  files: FileOptions,
): Promise<readonly (InputArtifact | InputFile)[]> {
  // One after another: a message with many addresses must not make many requests at once.
  const fetched: (InputArtifact | InputFile)[] = [];
  for (const input of inputs) fetched.push(isAtUrl(input) ? await fetchedFile(input, files) : input);
  return fetched;
}

async function fetchedFile(file: FileAtUrl, files: FileOptions): Promise<InputFile> {
  // A program that fetches nothing loads nothing for it.
  const { fetchFile } = await import('./fetch-file.ts');
  return fetchFile(file, files);
}

function isAtUrl(input: MessageFile): input is FileAtUrl {
  return typeof input === 'object' && input !== null && 'url' in input && typeof input.url === 'string';
}
