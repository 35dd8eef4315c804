/**
 * A reply as it goes back to its provider: its parts in their order, with what the provider noted at each (signatures, ids of items,
 * encrypted content) and what the provider did itself. It is the `providerState` of a step whose move a model of this room made.
 */
import type { LanguageModelV4Content, LanguageModelV4ToolResult } from '@ai-sdk/provider';
import {
  asJson,
  defined,
  fieldOf,
  type InputFile,
  isJsonObject,
  type Json,
  type JsonObject,
  pictureTypeOf,
} from '#core';

type WithOptions = { readonly providerOptions?: JsonObject };

export type StoredPart =
  | ({ readonly type: 'text'; readonly text: string } & WithOptions)
  /** Without a text of its own it is the reasoning of the step. */
  | ({ readonly type: 'reasoning'; readonly text?: string } & WithOptions)
  | ({ readonly type: 'custom'; readonly kind: string } & WithOptions)
  /** The step's file with this index, or one that stands at a URL. */
  | ({ readonly type: 'file' | 'reasoning-file' } & WithOptions &
      ({ readonly file: number } | { readonly url: string; readonly mediaType: string }))
  /** The step's call with this index: its id and its input are the step's. */
  | ({ readonly type: 'call'; readonly call: number } & WithOptions)
  /** The provider asks leave for a call of its own: the answer is the outcome of the step's call with this index. */
  | {
      readonly type: 'approval';
      readonly call: number;
      readonly approvalId: string;
      /** The id of the provider's call, which has not been made. */
      readonly toolCallId: string;
    }
  | ProviderCallPart
  | ProviderResultPart;

/** A call that the provider carried out itself. */
type ProviderCallPart = {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
  readonly providerExecuted: true;
} & OwnName &
  WithOptions;

/** The program's name for the tool, where its provider has another one. */
type OwnName = { readonly tool?: string };

/** What it gave; it may come in a later reply than the call. */
type ProviderResultPart = {
  readonly type: 'tool-result';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output:
    | { readonly type: 'text' | 'error-text'; readonly value: string }
    | { readonly type: 'json' | 'error-json'; readonly value: Json };
} & OwnName &
  WithOptions;

export interface ProviderState {
  /** The provider as its package calls it, such as `anthropic.messages`; absent in journals of before. */
  readonly provider?: string;
  readonly parts: readonly StoredPart[];
}

/**
 * `undefined` when one text and the calls after it make the same message.
 * @param isPaused its provider goes on with the message, and nobody else: whose it is counts, however plain it is.
 * @param files is given the files of the reply: no bytes stand in the state.
 */
export function providerStateOf(
  content: readonly LanguageModelV4Content[],
  provider: string,
  isPaused: boolean,
  files: InputFile[] = [],
): Json | undefined {
  if (!isPaused && isPlain(content)) return undefined;
  const parts: StoredPart[] = [];
  const thoughts = content.filter(({ type }) => type === 'reasoning').length;
  let calls = 0;
  for (const part of content) {
    switch (part.type) {
      case 'text':
        if ((part.text ?? '') !== '' || part.providerMetadata !== undefined)
          parts.push({ type: 'text', text: part.text ?? '', ...optionsOf(part) });
        break;
      case 'reasoning':
        parts.push({ type: 'reasoning', ...(thoughts === 1 ? {} : { text: part.text }), ...optionsOf(part) });
        break;
      case 'custom':
        parts.push({ type: 'custom', kind: part.kind, ...optionsOf(part) });
        break;
      case 'tool-call': {
        const { toolCallId, toolName, input } = part;
        if (part.providerExecuted !== true) parts.push({ type: 'call', call: calls++, ...optionsOf(part) });
        else
          parts.push({
            type: 'tool-call',
            toolCallId,
            toolName,
            input: inputOf(input),
            providerExecuted: true,
            ...optionsOf(part),
          });
        break;
      }
      case 'tool-approval-request':
        parts.push({ type: 'approval', call: calls++, approvalId: part.approvalId, toolCallId: part.toolCallId });
        break;
      case 'tool-result':
        parts.push(resultPart(part, files));
        break;
      case 'file':
      case 'reasoning-file': {
        const file = filePart(part, files);
        if (file !== undefined) parts.push(file);
        break;
      }
      default:
        break; // sources are not sent back
    }
  }
  return parts.length === 0 ? undefined : asJson({ provider, parts } satisfies ProviderState);
}

function isPlain(content: readonly LanguageModelV4Content[]): boolean {
  let isAfterText = false;
  for (const part of content) {
    if (part.type === 'text') {
      if (part.providerMetadata !== undefined) return false;
      if (part.text === '') continue;
      if (isAfterText) return false;
      isAfterText = true;
    } else if (part.type === 'tool-call') {
      if (part.providerMetadata !== undefined || part.providerExecuted === true) return false;
      // A text that comes now would stand behind the call.
      isAfterText = true;
    } else if (part.type !== 'source') return false;
  }
  return true;
}

/** Some providers send nothing for a call without arguments. */
function inputOf(input: string): Json {
  if (input.trim() === '') return {};
  try {
    return JSON.parse(input) as Json;
  } catch {
    return input;
  }
}

type FileContent = Extract<LanguageModelV4Content, { type: 'file' | 'reasoning-file' }>;

/** A part without a type of its own may be anything. */
const UNKNOWN_TYPE = 'application/octet-stream';

/** `undefined` for a file that is nothing: when it came back, its provider would refuse each later request. */
function filePart(part: FileContent, files: InputFile[]): StoredPart | undefined {
  const { type, mediaType = UNKNOWN_TYPE } = part;
  const url = urlOf(part);
  if (url !== undefined) return { type, url, mediaType, ...optionsOf(part) };
  const bytes = bytesOf(fieldOf(part.data, 'data') ?? part.data);
  if (bytes === undefined || bytes.length === 0) return undefined;
  files.push({ bytes, mime: mediaType });
  return { type, file: files.length - 1, ...optionsOf(part) };
}

/** Where the file stands; `undefined` for one that came with the reply. */
export function urlOf({ data }: FileContent): string | undefined {
  const url = fieldOf(data, 'url');
  return url !== undefined && URL.canParse(String(url)) ? String(url) : undefined;
}

/** @param data of a file: a model of version 3 gives it as it is, and one of version 4 in an object. */
function bytesOf(data: unknown): Uint8Array | undefined {
  if (data instanceof Uint8Array) return data;
  if (typeof data !== 'string') return undefined;
  return Buffer.from(data.startsWith('data:') ? data.slice(data.indexOf(',') + 1) : data, 'base64');
}

/** The picture that a provider's own tool has made: its result is base64 alone, which the provider knows by the id of the call. */
function pictureIn({ result }: LanguageModelV4ToolResult): InputFile | undefined {
  const data = isJsonObject(result) && Object.keys(result).length === 1 ? result['result'] : undefined;
  if (typeof data !== 'string') return undefined;
  const bytes = bytesOf(data);
  const mime = bytes && pictureTypeOf(bytes);
  return mime === undefined || bytes === undefined ? undefined : { bytes, mime };
}

function resultPart(part: LanguageModelV4ToolResult, files: InputFile[]): ProviderResultPart {
  const { toolCallId, toolName, isError = false } = part;
  const picture = pictureIn(part);
  if (picture !== undefined) files.push(picture);
  // A provider's package may have none, whatever its type says.
  const given = (part.result as Json | undefined) ?? null;
  const result: Json = picture === undefined ? given : { file: files.length - 1 };
  const output =
    typeof result === 'string'
      ? { type: isError ? ('error-text' as const) : ('text' as const), value: result }
      : { type: isError ? ('error-json' as const) : ('json' as const), value: result };
  return { type: 'tool-result', toolCallId, toolName, output, ...optionsOf(part) };
}

function optionsOf({ providerMetadata }: { providerMetadata?: unknown }): WithOptions {
  return defined({ providerOptions: providerMetadata as JsonObject | undefined });
}
