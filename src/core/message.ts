/** What a message of the user says: words, files, who has written it. */
import type { InputArtifact } from './artifact.ts';
import { PilotageError } from './errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonText } from './json.ts';

/** Who has written a message, as the program that accepted it knows. */
export interface Author {
  readonly id?: string;
  readonly name?: string;
}

/** What stands in the payload of a message of the user (`USER_MESSAGE`), and of an answer in words, beside the words. */
export interface MessageParts {
  /** Attachments, as artifacts of the session. */
  readonly inputs: readonly InputArtifact[];
  readonly author?: Author;
  /** True: a notice of the program, and no word of the user. */
  readonly notice: boolean;
  /** All else: the words, and what the sender has put beside them. */
  readonly rest: JsonObject;
}

const NO_INPUTS: readonly InputArtifact[] = Object.freeze([]);
const MAX_AUTHOR_CHARS = 200;
/** The most files of one message. */
export const MAX_INPUTS = 64;

/** What does not have the form of a part is the sender's own, and stays with the words. */
export function messageParts(payload: JsonObject): MessageParts {
  const { inputs, author, notice, ...others } = payload;
  const rest: Record<string, Json> = others;
  const hasInputs = areInputs(inputs);
  const named = inputs !== undefined && !hasInputs ? { inputs } : {};
  const known = authorIn(author);
  const unknown = author !== undefined && known === undefined ? { author } : {};
  const odd = notice !== undefined && typeof notice !== 'boolean' ? { notice } : {};
  return {
    inputs: hasInputs && Array.isArray(inputs) ? (inputs as unknown as readonly InputArtifact[]) : NO_INPUTS,
    ...(known === undefined ? {} : { author: known }),
    notice: notice === true,
    rest: { ...rest, ...named, ...unknown, ...odd },
  };
}

/** The files of a message, without a look at the rest. */
export function messageFiles(payload: JsonObject | undefined): readonly InputArtifact[] {
  return payload?.['inputs'] === undefined ? NO_INPUTS : messageParts(payload).inputs;
}

/**
 * What a person says in a message or an answer, as text: its `message`, or else its `reason`, and then as JSON what stands beside it. Files and the author
 * are no words.
 */
export function wordsIn(payload: JsonObject): string {
  const { message, ...others } = messageParts(payload).rest;
  const { reason, ...more } = others;
  const isReason = message === undefined && typeof reason === 'string';
  const said = isReason ? reason : message;
  const beside = isReason ? more : others;
  const rest = Object.keys(beside).length === 0 ? [] : [JSON.stringify(beside)];
  return (said === undefined ? rest : [jsonText(said), ...rest]).join('\n');
}

/** The same for whoever reads it later, to whom a notice must not look like words of the user. */
export function messageWords(payload: JsonObject): string {
  const words = wordsIn(payload);
  return messageParts(payload).notice ? `(A notice, which the user did not write: ${words})` : words;
}

/** The words of what a run works for, as later readers are told of it. */
export function queryWords({
  query,
  notice,
}: {
  readonly query: string;
  readonly notice?: boolean | undefined;
}): string {
  return notice === true ? messageWords({ message: query, notice }) : query;
}

/** Who has written all of it. Words of several people are nobody's in particular: they must not seem to be one's own. */
export function commonAuthor(authors: readonly (Author | null | undefined)[]): Author | undefined {
  const [first] = authors;
  const isOne = authors.every((author) => author?.id === first?.id && author?.name === first?.name);
  return isOne ? (first ?? undefined) : undefined;
}

/** A text is the name. `undefined` for what names nobody. */
function authorIn(given: unknown): Author | undefined {
  if (typeof given === 'string') return isName(given) ? { name: given } : undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined;
  const { id, name, ...others } = given as Readonly<Record<string, unknown>>;
  const isAuthor = Object.keys(others).length === 0 && (id ?? name) !== undefined;
  if (!isAuthor || ![id, name].every((part) => part === undefined || isName(part))) return undefined;
  return { ...(isName(id) ? { id } : {}), ...(isName(name) ? { name } : {}) };
}

function isName(given: unknown): given is string {
  return typeof given === 'string' && given !== '' && given.length <= MAX_AUTHOR_CHARS;
}

/**
 * The author as it is recorded.
 * @throws PilotageError `code` for anything else.
 */
export function readAuthor(given: unknown, of: string, code: 'invalid_config' | 'payload_invalid'): Author {
  const author = authorIn(given);
  if (author !== undefined) return author;
  throw new PilotageError(
    code,
    `The author of ${of} must be a name, or { id, name } of which one may be left out, each of 1 to ${MAX_AUTHOR_CHARS} characters.`,
  );
}

/** @throws PilotageError `payload_invalid` for parts of a message that do not have their form. */
export function assertMessageParts({ inputs, author, notice }: JsonObject): void {
  if (author !== undefined) readAuthor(author, 'a message', 'payload_invalid');
  if (notice !== undefined && typeof notice !== 'boolean') throw invalid('notice', 'true or false');
  if (areInputs(inputs)) return;
  throw invalid(
    'inputs',
    `a list of at most ${MAX_INPUTS} artifacts of the session: { artifactRef, mime, sizeBytes, fileName? }`,
  );
}

function invalid(key: string, needed: string): PilotageError {
  return new PilotageError(
    'payload_invalid',
    `The payload of USER_MESSAGE may have ${key}, ${needed}; this is something else.`,
    {
      data: { path: `payload.${key}` },
    },
  );
}

function areInputs(given: Json | undefined): boolean {
  return given === undefined || (Array.isArray(given) && given.length <= MAX_INPUTS && given.every(isReference));
}

function isReference(given: Json): boolean {
  if (!isJsonObject(given)) return false;
  const { artifactRef, mime, sizeBytes, fileName } = given;
  const isNamed = fileName === undefined || typeof fileName === 'string';
  return typeof artifactRef === 'string' && typeof mime === 'string' && Number.isSafeInteger(sizeBytes) && isNamed;
}
