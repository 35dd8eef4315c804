/**
 * The turns that a caller gives as the conversation before a run: as texts, as messages of the AI SDK (`ModelMessage`, `UIMessage`), or as turns
 * that a view has shown. Each is taken over as it is, or refused before anything is stored.
 */
import {
  assertKnownKeys,
  capture,
  defined,
  type Identity,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
  pictureTypeOf,
  type Turn,
  type TurnCall,
  type TurnFile,
  type TurnPart,
  type TurnResult,
} from '#core';
import type { ArtifactStore } from '#journal';
import { type PlacedPart, readUIMessage, referenceIn } from '#messages';

/**
 * A turn as a caller gives it: `{ role, text }`, or a message of the AI SDK. `content` is a text, or a list of parts: `text`, `file` and
 * `image` with their bytes (also as base64 or a data URL), `reasoning`, `tool-call` and `tool-result`; and `file` with an `artifactRef` of the session.
 * A message of a client has `parts` and no `content`: calls have states there, and one without an outcome is told in words.
 */
export type GivenTurn =
  | Turn
  | {
      readonly role: Turn['role'];
      readonly content: string | readonly object[];
      readonly providerOptions?: object;
    }
  | { readonly role: 'system' | 'user' | 'assistant'; readonly parts: readonly object[] };

/** A file whose bytes are not stored yet. */
interface GivenFile extends Pick<TurnFile, 'type' | 'mime' | 'fileName' | 'providerOptions'> {
  readonly bytes: Uint8Array;
}

type Part = Exclude<TurnPart, TurnFile> | GivenFile | TurnFile;
type ReadTurn = Omit<Turn, 'parts'> & { readonly parts?: readonly Part[] };

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool'];
const TURN_KEYS: readonly string[] = ['role', 'text', 'content', 'parts', 'providerOptions'];
/** What programs keep beside a message, and a model is not told. */
const BESIDE: readonly string[] = ['id', 'createdAt', 'metadata'];
/** What each role may say. */
const SAYS: Readonly<Record<Turn['role'], readonly string[]>> = {
  system: ['text'],
  user: ['text', 'file', 'image'],
  assistant: ['text', 'reasoning', 'file', 'tool-call', 'tool-result'],
  tool: ['tool-result'],
};

/** @throws PilotageError `invalid_config` naming the turn or the part that cannot be taken over, and what to write instead. */
export function readHistory(given: readonly GivenTurn[]): readonly ReadTurn[] {
  const turns = withOwnIds(given.flatMap((turn, index) => readTurn(turn, `history[${index}]`)));
  assertOrder(turns);
  return turns;
}

/** Stores the files of the turns. @throws PilotageError of the store. */
export async function storedHistory(
  turns: readonly ReadTurn[],
  identity: Identity,
  store: ArtifactStore,
): Promise<readonly Turn[]> {
  const stored = turns.map(async ({ parts, ...turn }): Promise<Turn> => {
    if (parts === undefined) return turn;
    return { ...turn, parts: await Promise.all(parts.map((part) => storedPart(part, identity, store))) };
  });
  return capture<readonly Turn[]>(await Promise.all(stored), 'history').json;
}

async function storedPart(part: Part, identity: Identity, store: ArtifactStore): Promise<TurnPart> {
  if (part.type !== 'file' || 'artifactRef' in part) return part;
  const { bytes, mime, fileName, providerOptions } = part;
  const ref = await store.put(identity, bytes, { mime, source: 'user', ...defined({ fileName }) });
  return { type: 'file', ...ref, mime, ...defined({ fileName, providerOptions }) };
}

/**
 * Calls of several runs may have the same id, since some servers count from 0 in each reply: one whose id was used, and answered, before gets another. Two calls
 * of one turn with one id are refused.
 */
function withOwnIds(turns: readonly ReadTurn[]): readonly ReadTurn[] {
  const used = new Set<string>();
  const counts = new Map<string, number>();
  const freshId = (id: string): string => {
    const count = (counts.get(id) ?? 1) + 1;
    counts.set(id, count);
    const fresh = `${id}_${count}`;
    return used.has(fresh) ? freshId(id) : fresh;
  };
  let renamed = new Map<string, string>();
  return turns.map((turn) => {
    const { role, parts } = turn;
    if (parts === undefined) return turn;
    if (role === 'assistant') {
      renamed = new Map();
      const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []));
      for (const id of new Set(calls)) if (used.has(id)) renamed.set(id, freshId(id));
      for (const id of calls) used.add(renamed.get(id) ?? id);
    }
    if (renamed.size === 0) return turn;
    const own = parts.map((part) => {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') return part;
      return { ...part, toolCallId: renamed.get(part.toolCallId) ?? part.toolCallId };
    });
    return { ...turn, parts: own };
  });
}

function readTurn(given: unknown, at: string): readonly ReadTurn[] {
  const fields = fieldsOf(given, at);
  const { role } = fields;
  if (!ROLES.includes(role)) {
    throw refusal(`${at}.role is ${shown(role)}; give system, user, assistant or tool.`);
  }
  assertKnownKeys(at, fields, TURN_KEYS, BESIDE);
  const own = { role: role as Turn['role'], ...optionsOf(fields, at) };
  const { text, parts, content = text === undefined ? undefined : parts } = fields;
  if (content === undefined && Array.isArray(parts)) return clientTurns(own, parts, at);
  if (Array.isArray(content)) {
    const of = `${at}.${parts === undefined ? 'content' : 'parts'}`;
    return turnsOf(
      own,
      content.map((part, index) => ({ part, at: `${of}[${index}]` })),
    );
  }
  const words = content ?? text;
  if (typeof words !== 'string' || (content !== undefined && text !== undefined && content !== text)) {
    throw refusal(`${at} is not a turn. Give { role, text }, or a message of the AI SDK: { role, content }.`);
  }
  if (role === 'tool')
    throw refusal(`${at} is of the role tool, whose content is a list of parts of the type tool-result.`);
  return [{ ...own, text: words }];
}

/** What a message of a client says; nothing for one that says nothing to a model. */
function clientTurns(own: Omit<ReadTurn, 'text'>, parts: readonly unknown[], at: string): readonly ReadTurn[] {
  const { role } = own;
  if (role === 'tool') {
    const content = parts.map((part, index) => ({ part, at: `${at}.parts[${index}]` }));
    return turnsOf(own, content);
  }
  return readUIMessage(role, parts, at).flatMap((message) => turnsOf({ ...own, role: message.role }, message.content));
}

/**
 * Results that a provider gave in the model's own message stand in turns of their own, as all results do, each before what the model said when
 * it had them.
 */
function turnsOf(own: Omit<ReadTurn, 'text'>, content: readonly PlacedPart[]): readonly ReadTurn[] {
  const parts = content.map(({ part, at }) => readPart(part, own.role, at));
  if (own.role !== 'assistant') return [turnOf(own, parts)];
  const turns: ReadTurn[] = [];
  let spoken: Part[] = [];
  let results: Part[] = [];
  const close = (): void => {
    if (spoken.length > 0 || results.length === 0) turns.push(turnOf(own, spoken));
    if (results.length > 0) turns.push(turnOf({ role: 'tool' }, results));
    spoken = [];
    results = [];
  };
  for (const part of parts) {
    if (part.type === 'tool-result') {
      results.push(part);
      continue;
    }
    // A call whose result comes later keeps the turn open: nothing may stand between them.
    if (results.length > 0 && unanswered(spoken, results) === 0) close();
    spoken.push(part);
  }
  close();
  return turns;
}

function unanswered(spoken: readonly Part[], results: readonly Part[]): number {
  const answered = new Set(results.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])));
  return spoken.filter((part) => part.type === 'tool-call' && !answered.has(part.toolCallId)).length;
}

function turnOf(own: Omit<ReadTurn, 'text'>, parts: readonly Part[]): ReadTurn {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const text = texts.join('\n\n');
  const isPlain = texts.length === parts.length && parts.length <= 1 && parts[0]?.providerOptions === undefined;
  return isPlain || own.role === 'system' ? { ...own, text } : { ...own, text, parts };
}

function readPart(given: unknown, role: Turn['role'], at: string): Part {
  const fields = fieldsOf(given, at, "{ type: 'text', text }");
  const { type } = fields;
  if (typeof type !== 'string' || !SAYS[role].includes(type)) {
    throw refusal(
      `${at} is a part of the type ${shown(type)}, which a turn of the role ${role} cannot have here: give ${SAYS[role].join(', ')}, or leave it out.`,
    );
  }
  const options = optionsOf(fields, at);
  switch (type) {
    case 'tool-call':
      return { type, ...callOf(fields, at), input: jsonOf(fields['input'], `${at}.input`), ...options };
    case 'tool-result':
      return { type, ...callOf(fields, at), output: outputOf(fields['output'], `${at}.output`), ...options };
    case 'file':
    case 'image':
      return { ...fileOf(fields, at), ...options };
    default:
      return { type: type as 'text' | 'reasoning', text: stringOf(fields['text'], `${at}.text`), ...options };
  }
}

function callOf(fields: Fields, at: string): Pick<TurnCall, 'toolCallId' | 'toolName'> {
  return {
    toolCallId: stringOf(fields['toolCallId'], `${at}.toolCallId`),
    toolName: stringOf(fields['toolName'], `${at}.toolName`),
  };
}

function outputOf(given: unknown, at: string): TurnResult['output'] {
  const fields = fieldsOf(given, at, "{ type: 'text', value }");
  const { type, value, reason } = fields;
  switch (type) {
    case 'text':
    case 'error-text':
      return { type, value: stringOf(value, `${at}.value`) };
    case 'json':
    case 'error-json':
      return { type, value: jsonOf(value, `${at}.value`) };
    case 'execution-denied':
      return { type, ...(reason === undefined ? {} : { reason: stringOf(reason, `${at}.reason`) }) };
    case 'content': {
      const texts = Array.isArray(value) ? value.map((part: unknown) => textIn(part)) : [undefined];
      if (texts.every((text) => text !== undefined)) return { type: 'text', value: texts.join('\n\n') };
      throw refusal(
        `${at} has more than texts. Give what the tool said as text or json, and a file in a turn of the user.`,
      );
    }
    default:
      throw refusal(
        `${at} is of the type ${shown(type)}; give text, json, error-text, error-json or execution-denied.`,
      );
  }
}

function textIn(part: unknown): string | undefined {
  const { type, text } = typeof part === 'object' && part !== null ? (part as Fields) : {};
  return type === 'text' && typeof text === 'string' ? text : undefined;
}

function fileOf(fields: Fields, at: string): GivenFile | TurnFile {
  const { type, artifactRef, sizeBytes, image, data, mime } = fields;
  const fileName = fields['filename'] ?? fields['fileName'];
  const named = fileName === undefined ? {} : { fileName: stringOf(fileName, `${at}.filename`) };
  if (type === 'file' && typeof artifactRef === 'string') {
    if (!Number.isSafeInteger(sizeBytes))
      throw refusal(`${at} needs artifactRef, mime and sizeBytes, as the artifact has them.`);
    return { type, artifactRef, mime: stringOf(mime, `${at}.mime`), sizeBytes: sizeBytes as number, ...named };
  }
  const reference = addressOf(data);
  if (reference !== undefined) {
    return { type: 'file', ...reference, mime: stringOf(fields['mediaType'], `${at}.mediaType`), ...named };
  }
  const { bytes, mediaType } = bytesOf(type === 'image' ? image : data, `${at}.${type === 'image' ? 'image' : 'data'}`);
  const stated = fields['mediaType'] ?? mediaType ?? (type === 'image' ? pictureTypeOf(bytes) : undefined);
  if (typeof stated !== 'string' || stated === '') throw refusal(`${at} needs its mediaType, such as image/png.`);
  if (bytes.length === 0) throw refusal(`${at} is an empty file, which no provider takes. Leave it out.`);
  return { type: 'file', bytes, mime: stated, ...named };
}

/** The artifact of the session that the data of a file names. */
function addressOf(data: unknown): ReturnType<typeof referenceIn> {
  const { type, url }: Fields =
    typeof data === 'object' && data !== null && !(data instanceof URL) ? (data as Fields) : {};
  const address = type === 'url' ? url : data;
  if (address instanceof URL) return referenceIn(address.href);
  return typeof address === 'string' ? referenceIn(address) : undefined;
}

interface Bytes {
  readonly bytes: Uint8Array;
  readonly mediaType?: string;
}

function bytesOf(given: unknown, at: string): Bytes {
  if (given instanceof Uint8Array) return { bytes: given };
  if (given instanceof ArrayBuffer) return { bytes: new Uint8Array(given) };
  if (given instanceof URL) return bytesOf(given.href, at);
  if (typeof given === 'string') return bytesIn(given, at);
  const { type, data, url, text }: Fields = typeof given === 'object' && given !== null ? (given as Fields) : {};
  if (type === 'data') return bytesOf(data, at);
  if (type === 'url') return bytesOf(url, at);
  if (type === 'text' && typeof text === 'string') return { bytes: Buffer.from(text), mediaType: 'text/plain' };
  throw refusal(`${at} cannot be stored as a file. Give its bytes, as a Uint8Array or as base64.`);
}

const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*?(;base64)?,/;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

function bytesIn(text: string, at: string): Bytes {
  const url = DATA_URL.exec(text);
  const body = url === null ? text : text.slice(url[0].length);
  const isPlain = url !== null && url[2] === undefined;
  if (isPlain && isUriText(body)) return { bytes: Buffer.from(decodeURIComponent(body)), ...typeIn(url[1]) };
  if (!isPlain && BASE64.test(body)) return { bytes: Buffer.from(body, 'base64'), ...typeIn(url?.[1]) };
  throw refusal(
    `${at} is ${shown(text.slice(0, 80))}, which is not base64. What stands at a URL is not fetched: give its bytes.`,
  );
}

/** Each "%" begins an escape of UTF-8. */
function isUriText(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function typeIn(mediaType: string | undefined): Pick<Bytes, 'mediaType'> {
  return mediaType === undefined || mediaType === '' ? {} : { mediaType };
}

/** Providers refuse a request in which a call has no result, or a result no call. */
function assertOrder(turns: readonly ReadTurn[]): void {
  const open = new Map<string, string>();
  const calls = new Set<string>();
  const assertAnswered = (): void => {
    for (const [id, tool] of open) {
      throw refusal(
        `The history has the call ${shown(id)} of ${tool} without its result. Add a tool turn right after it, or leave the call out.`,
      );
    }
  };
  for (const [index, { role, parts = [] }] of turns.entries()) {
    if (role === 'system' && turns[index - 1] !== undefined && turns[index - 1]?.role !== 'system') {
      throw refusal(
        'A system turn of the history comes after others. Put it first, or say what it says in a turn of the user.',
      );
    }
    if (role !== 'tool') assertAnswered();
    for (const part of parts) {
      if (part.type === 'tool-call') {
        if (calls.has(part.toolCallId))
          throw refusal(`Two calls of the history have the id ${shown(part.toolCallId)}. Give each its own.`);
        calls.add(part.toolCallId);
        open.set(part.toolCallId, part.toolName);
      }
      if (part.type !== 'tool-result' || open.delete(part.toolCallId)) continue;
      throw refusal(
        `The history has a result of the call ${shown(part.toolCallId)}, which the turn before it does not make. Add the call, or leave the result out.`,
      );
    }
  }
  assertAnswered();
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(given: unknown, at: string, such = "{ role: 'user', text }"): Fields {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Fields;
  throw refusal(`${at} is ${shown(given)}; give an object, such as ${such}.`);
}

function optionsOf({ providerOptions }: Fields, at: string): { readonly providerOptions?: JsonObject } {
  if (providerOptions === undefined) return {};
  const { json } = capture(providerOptions, `${at}.providerOptions`);
  if (isJsonObject(json)) return { providerOptions: json };
  throw refusal(`${at}.providerOptions must be an object; give one by the names of providers.`);
}

function jsonOf(given: unknown, at: string): Json {
  return capture(given ?? null, at).json;
}

function stringOf(given: unknown, at: string): string {
  if (typeof given === 'string') return given;
  throw refusal(`${at} is ${shown(given)}; give a string.`);
}

function shown(given: unknown): string {
  if (typeof given === 'string') return JSON.stringify(given);
  return given === null || typeof given !== 'object' ? String(given) : Array.isArray(given) ? 'a list' : 'an object';
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
