/** A message of the user as a program gives it, and as it is stored: files are artifacts of the session before anybody hears of them. */
import {
  type Author,
  assertOptions,
  defined,
  type InputArtifact,
  type InputFile,
  type JsonObject,
  type OptionShape,
  PilotageError,
  readAuthor,
  type Scope,
} from '#core';
import type { ArtifactStore } from '#journal';
import { assertInput, storedInput } from '../loop/inputs.ts';
import { type FileAtUrl, type FileOptions, fetchFile } from './fetch-file.ts';

/** A file of a message: its bytes, the reference of an artifact of the session, or its URL. */
export type MessageFile = InputArtifact | InputFile | FileAtUrl;

export interface UserMessage {
  /** The words. Absent or empty: the message has files alone. */
  readonly text?: string;
  readonly inputs?: readonly MessageFile[];
  /** Who has written it, as the program knows; models are told. A text is the name. */
  readonly author?: Author | string;
  /** True: a notice of the program, such as that a build has ended. Models are told that it is no word of the user. Default false. */
  readonly notice?: boolean;
}

const MESSAGE: OptionShape<UserMessage> = { text: 'any?', inputs: 'list?', author: 'any?', notice: 'flag?' };

export interface MessageStores {
  readonly artifacts: ArtifactStore;
  readonly files: FileOptions;
}

/**
 * The payload of a `USER_MESSAGE`.
 * @throws PilotageError `invalid_config`, `url_refused`, `url_failed`, or a store error. Nothing was sent then.
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
  // One after another: a message with many addresses is no way to have many requests made at once.
  const fetched: (InputArtifact | InputFile)[] = [];
  for (const input of inputs) fetched.push(isAtUrl(input) ? await fetchFile(input, files) : input);
  return fetched;
}

function isAtUrl(input: MessageFile): input is FileAtUrl {
  return typeof input === 'object' && input !== null && 'url' in input && typeof input.url === 'string';
}
