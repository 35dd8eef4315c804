/**
 * A message of a client (`UIMessage`) as the messages of a model that it stands for: what a model said in one step, then the results of its calls. What no
 * model is told is left out: sources, data of the program, marks of steps.
 */
import { isJsonObject, type Json, type JsonObject } from '#core';
import { referenceIn, withoutOurs } from './file-url.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A part of a `ModelMessage`, and where in the given message it comes from. */
export interface PlacedPart {
  readonly part: unknown;
  readonly at: string;
}

export interface PlacedMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: readonly PlacedPart[];
}

/** Parts that a model is not told. */
const UNTOLD: ReadonlySet<string> = new Set(['source-url', 'source-document', 'custom', 'reasoning-file']);

/** @param at where the message stands, for errors. */
export function readUIMessage(role: PlacedMessage['role'], parts: readonly unknown[], at: string): PlacedMessage[] {
  const messages: PlacedMessage[] = [];
  let said: PlacedPart[] = [];
  let results: PlacedPart[] = [];
  const close = (): void => {
    if (said.length > 0 || results.length > 0) messages.push({ role, content: [...said, ...results] });
    said = [];
    results = [];
  };
  for (const [index, given] of parts.entries()) {
    const place = `${at}.parts[${index}]`;
    const fields: Fields = typeof given === 'object' && given !== null ? (given as Fields) : {};
    const { type } = fields;
    if (type === 'step-start') close();
    else if (type === 'steering-message') {
      close();
      if (Array.isArray(fields['parts'])) messages.push(...readUIMessage('user', fields['parts'], place));
    } else if (typeof type === 'string' && (UNTOLD.has(type) || type.startsWith('data-'))) continue;
    else if (typeof type === 'string' && (type === 'dynamic-tool' || type.startsWith('tool-')) && 'state' in fields) {
      const { call, result } = readCall(fields, type);
      said.push({ part: call, at: place });
      if (result !== undefined) results.push({ part: result, at: place });
    } else said.push({ part: readSpoken(given, fields), at: place });
  }
  close();
  return messages;
}

function readSpoken(given: unknown, fields: Fields): unknown {
  const { type, url, mediaType, filename, text, providerMetadata, providerReference } = fields;
  const { options, ours } = withoutOurs(isJsonObject(providerMetadata as Json) ? (providerMetadata as JsonObject) : {});
  const provided = options === undefined ? {} : { providerOptions: options };
  if (type === 'file' && typeof url === 'string' && providerReference === undefined) {
    const reference = referenceIn(url) ?? (isJsonObject(ours) ? ours : undefined);
    const named = filename === undefined ? {} : { filename };
    if (reference !== undefined) return { type, ...reference, mime: mediaType, ...named, ...provided };
    return { type, data: url, mediaType, ...named, ...provided };
  }
  if (type === 'text' || type === 'reasoning')
    return { type, text, ...(providerMetadata === undefined ? optionsIn(fields) : provided) };
  return given;
}

function optionsIn({ providerOptions }: Fields): Fields {
  return providerOptions === undefined ? {} : { providerOptions };
}

/** A call without an outcome is told in words: no provider takes one. */
function readCall(fields: Fields, type: string): { readonly call: Fields; readonly result?: Fields } {
  const { toolCallId, state, input, rawInput, approval, callProviderMetadata } = fields;
  const toolName = type === 'dynamic-tool' ? fields['toolName'] : type.slice('tool-'.length);
  const of = { toolCallId, toolName };
  const output = outputOf(fields);
  if (output === undefined) return { call: { type: 'text', text: standIn(String(toolName), state, approval) } };
  const call = { type: 'tool-call', ...of, input: input ?? rawInput ?? null };
  const told = callProviderMetadata === undefined ? call : { ...call, providerOptions: callProviderMetadata };
  return { call: told, result: { type: 'tool-result', ...of, ...output } };
}

function outputOf({
  state,
  output,
  errorText,
  approval,
  preliminary,
  resultProviderMetadata,
}: Fields): Fields | undefined {
  const meta = isJsonObject(resultProviderMetadata as Json) ? (resultProviderMetadata as JsonObject) : {};
  const { options, ours } = withoutOurs(meta);
  const provided = options === undefined ? {} : { providerOptions: options };
  const noted = isJsonObject(ours) ? ours['output'] : undefined;
  if (state === 'output-available' && preliminary !== true) {
    const kind = typeof output === 'string' && noted !== 'json' ? 'text' : 'json';
    return { output: { type: kind, value: output ?? null }, ...provided };
  }
  if (state === 'output-error') {
    const value = noted === 'error-json' && typeof errorText === 'string' ? jsonIn(errorText) : undefined;
    return {
      output: value === undefined ? { type: 'error-text', value: errorText } : { type: 'error-json', value },
      ...provided,
    };
  }
  const { approved, reason }: Fields = typeof approval === 'object' && approval !== null ? (approval as Fields) : {};
  if (state !== 'output-denied' && !(state === 'approval-responded' && approved === false)) return undefined;
  return { output: { type: 'execution-denied', ...(reason === undefined ? {} : { reason }) }, ...provided };
}

function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function standIn(tool: string, state: unknown, approval: unknown): string {
  const { approved }: Fields = typeof approval === 'object' && approval !== null ? (approval as Fields) : {};
  if (state === 'approval-requested') return `(A call of ${tool} waits for an approval, and is not made yet.)`;
  if (approved === true) return `(A call of ${tool} was approved; what became of it is not known here.)`;
  return `(A call of ${tool} has no result.)`;
}
