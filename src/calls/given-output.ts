/** What `toModelOutput` of a tool gave, in any of the forms that the AI SDK knows, older ones too. It may be anything, and is checked. */
import { captureObject, defined, isJsonObject, type JsonObject, type ModelOutputPart, pictureTypeOf } from '#core';

/** A file that is not stored yet. */
export interface GivenFile {
  readonly bytes: Uint8Array;
  readonly mime: string;
  readonly fileName?: string;
  /** As it was given, so that it is found in the value of the call: base64, or bytes. */
  readonly data: unknown;
}

type Told = { readonly providerOptions?: JsonObject };

export type GivenPart =
  | Exclude<ModelOutputPart, { readonly artifactRef: string } | { readonly at: string } | { readonly type: 'value' }>
  | ({ readonly type: 'bytes'; readonly file: GivenFile } & Told)
  /** An artifact of the session. */
  | ({ readonly type: 'artifact'; readonly ref: string; readonly fileName?: string } & Told);

export type GivenOutput =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'json' | 'error-json'; readonly value: unknown }
  | { readonly type: 'execution-denied'; readonly reason?: string }
  | { readonly type: 'content'; readonly value: readonly GivenPart[] };

/** Whose references are artifacts of the session: `{ type: 'reference', reference: { pilotage: 'art_…' } }`. */
const OURS = 'pilotage';

/** @throws Error that says what is not as the AI SDK wants it. */
export function readOutput(given: unknown): GivenOutput {
  const { type, value, reason } = fieldsOf(given, 'the output');
  switch (type) {
    case 'text':
    case 'error-text':
      return { type, value: textOf(value, 'value') };
    case 'json':
    case 'error-json':
      return { type, value };
    case 'execution-denied':
      return { type, ...(typeof reason === 'string' ? { reason } : {}) };
    case 'content':
      if (!Array.isArray(value)) throw new Error('the value of an output of the type content must be a list of parts');
      return { type, value: value.map(readPart) };
    default:
      throw new Error(
        `${JSON.stringify(type)} cannot be the type of an output; use text, json, content, error-text or error-json`,
      );
  }
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(given: unknown, what: string): Fields {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Fields;
  throw new Error(`${what} must be an object with a type`);
}

function textOf(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new Error(`the field ${name} must be a text`);
}

function readPart(given: unknown): GivenPart {
  const part = fieldsOf(given, 'a part of the output');
  const { type } = part;
  const told: Told = isJsonObject(part['providerOptions'])
    ? { providerOptions: captureObject<JsonObject>(part['providerOptions'], 'providerOptions').json }
    : {};
  switch (type) {
    case 'text':
      return { type, text: textOf(part['text'], 'text') };
    case 'custom':
      return { type, ...told };
    case 'file':
      return { ...readFile(part), ...told };
    case 'media':
    case 'file-data':
    case 'image-data':
      return { ...bytesPart(part['data'], part), ...told };
    case 'file-url':
    case 'image-url':
      return { ...urlPart(part['url'], part, type === 'image-url' ? 'image/*' : undefined), ...told };
    case 'file-id':
    case 'file-reference':
    case 'image-file-id':
    case 'image-file-reference': {
      const reference = part['fileId'] ?? part['providerReference'];
      return { ...referencePart(reference, part, type.startsWith('image') ? 'image/*' : undefined), ...told };
    }
    default:
      throw new Error(`${JSON.stringify(type)} cannot be the type of a part; use text, file or custom`);
  }
}

function readFile(part: Fields): GivenPart {
  const data = fieldsOf(part['data'], 'the data of a file');
  switch (data['type']) {
    case 'data':
      return bytesPart(data['data'], part);
    case 'url':
      return urlPart(data['url'], part);
    case 'reference':
      return referencePart(data['reference'], part);
    case 'text':
      return { type: 'text', text: textOf(data['text'], 'text') };
    default:
      throw new Error('the data of a file must have the type data, url, reference or text');
  }
}

function nameIn({ filename }: Fields): { readonly fileName?: string } {
  return defined({ fileName: typeof filename === 'string' ? filename : undefined });
}

function bytesPart(data: unknown, part: Fields): GivenPart & { type: 'bytes' } {
  const bytes = bytesOf(data);
  if (bytes === undefined) throw new Error('the data of a file must be base64 or bytes');
  return { type: 'bytes', file: { bytes, mime: mimeOf(part['mediaType'], bytes), ...nameIn(part), data } };
}

function bytesOf(data: unknown): Uint8Array | undefined {
  if (typeof data === 'string')
    return Buffer.from(data.slice(data.startsWith('data:') ? data.indexOf(',') + 1 : 0), 'base64');
  if (data instanceof Uint8Array) return data;
  return data instanceof ArrayBuffer ? new Uint8Array(data) : undefined;
}

function urlPart(given: unknown, part: Fields, otherwise = 'application/octet-stream'): GivenPart {
  const url = given instanceof URL ? given.href : textOf(given, 'url');
  const inside = /^data:([^;,]*)[^,]*;base64,/.exec(url);
  if (inside !== null) return bytesPart(url, { ...part, mediaType: inside[1] });
  const mediaType = typeof part['mediaType'] === 'string' ? part['mediaType'] : otherwise;
  return { type: 'file', url, mediaType, ...nameIn(part) };
}

function referencePart(given: unknown, part: Fields, otherwise = 'application/octet-stream'): GivenPart {
  if (!isJsonObject(given))
    throw new Error('the reference of a file must be an object: the names of providers, and their ids');
  const reference: Record<string, string> = {};
  for (const [provider, id] of Object.entries(given)) reference[provider] = textOf(id, provider);
  const ours = reference[OURS];
  if (ours !== undefined) return { type: 'artifact', ref: ours, ...nameIn(part) };
  const mediaType = typeof part['mediaType'] === 'string' ? part['mediaType'] : otherwise;
  return { type: 'file', reference, mediaType, ...nameIn(part) };
}

/** The media type, which may have been given in part (`image`, `image/*`). */
function mimeOf(given: unknown, bytes: Uint8Array): string {
  const type = typeof given === 'string' ? given.trim() : '';
  if (/^[^/\s]+\/[^/\s*]+/.test(type)) return type;
  return pictureTypeOf(bytes) ?? 'application/octet-stream';
}

// What a server of MCP gives. Its client gives texts and pictures on as they are, and everything else as JSON text, base64 included.

/** The files in a value that is in the form of MCP, by the index of the content; `undefined` for another value. */
export function mcpFiles(value: unknown): ReadonlyMap<number, GivenFile> | undefined {
  const content = contentOf(value);
  if (content === undefined) return undefined;
  const files = new Map<number, GivenFile>();
  for (const [index, item] of content.entries()) {
    const file = isJsonObject(item) ? mcpFile(item) : undefined;
    if (file !== undefined) files.set(index, file);
  }
  return files;
}

function contentOf(value: unknown): readonly unknown[] | undefined {
  const content = isJsonObject(value) ? (value as Fields)['content'] : undefined;
  return Array.isArray(content) ? content : undefined;
}

function mcpFile(item: Fields): GivenFile | undefined {
  const { type, data, mimeType, resource } = item;
  if ((type === 'image' || type === 'audio') && typeof data === 'string') return asFile(data, mimeType);
  if (type !== 'resource' || !isJsonObject(resource)) return undefined;
  const { blob, mimeType: mime, uri } = resource as Fields;
  if (typeof blob !== 'string') return undefined;
  const fileName = typeof uri === 'string' ? uri.split('/').at(-1) : undefined;
  return { ...asFile(blob, mime), ...(fileName ? { fileName } : {}) };
}

function asFile(data: string, mime: unknown): GivenFile {
  const bytes = Buffer.from(data, 'base64');
  return { bytes, mime: mimeOf(mime, bytes), data };
}

/** The output with files, and texts of resources, in place of their JSON. */
export function withMcpFiles(output: GivenOutput, value: unknown): GivenOutput {
  const content = contentOf(value);
  const files = mcpFiles(value);
  if (output.type !== 'content' || content?.length !== output.value.length) return output;
  const parts = output.value.map((part, index): GivenPart => {
    const item = content[index];
    if (part.type !== 'text' || !isJsonObject(item) || item['type'] === 'text') return part;
    if (part.text !== JSON.stringify(item)) return part;
    const file = files?.get(index);
    if (file !== undefined) return { type: 'bytes', file };
    const text = isJsonObject(item['resource']) ? item['resource']['text'] : undefined;
    return typeof text === 'string' ? { type: 'text', text } : part;
  });
  return { type: 'content', value: parts };
}

/** A server of MCP says so that the call has failed. */
export function isMcpError(value: unknown): boolean {
  return contentOf(value) !== undefined && (value as Fields)['isError'] === true;
}
