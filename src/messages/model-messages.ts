/** Turns as messages of the AI SDK (`ModelMessage`), which `generateText({ messages })` and `start({ history })` take. */
import { defined, type Json, type JsonObject, type Turn, type TurnPart, type TurnResult } from '#core';
import { assertTurns } from './assert-turns.ts';
import { artifactUrl } from './file-url.ts';

type Options = Record<string, Record<string, Json>>;

interface PartOptions {
  providerOptions?: Options;
}

interface ModelText extends PartOptions {
  type: 'text';
  text: string;
}

interface ModelReasoning extends PartOptions {
  type: 'reasoning';
  text: string;
}

/** `data`: the bytes, or the address of an artifact of the session (`artifact:`) where the turn has its reference alone. */
interface ModelFile extends PartOptions {
  type: 'file';
  data: Uint8Array | URL;
  mediaType: string;
  filename?: string;
}

interface ModelCall extends PartOptions {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: Json;
}

interface ModelResult extends PartOptions {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  output: TurnResult['output'];
}

/** A message as the AI SDK has it. `providerOptions`: what a provider is told of it. */
export type TurnMessage = PartOptions &
  (
    | { role: 'system'; content: string }
    | { role: 'user'; content: string | (ModelText | ModelFile)[] }
    | { role: 'assistant'; content: string | (ModelText | ModelReasoning | ModelFile | ModelCall)[] }
    | { role: 'tool'; content: ModelResult[] }
  );

/**
 * One message a turn. A file has its bytes where the turn has them, as turns that a planner is shown do; else the address of the artifact, which
 * `start({ history })` takes back, and no provider can read.
 * @throws PilotageError `invalid_config`.
 */
export function toModelMessages(turns: readonly Turn[]): TurnMessage[] {
  assertTurns('toModelMessages', turns);
  return turns.map(messageOf);
}

function messageOf({ role, text, parts, providerOptions }: Turn): TurnMessage {
  const options = optionsOf(providerOptions);
  if (role === 'system') return { role, content: text, ...options };
  if (role === 'tool') return { role, content: (parts ?? []).flatMap(resultOf), ...options };
  if (parts === undefined) return { role, content: text, ...options };
  return role === 'user'
    ? { role, content: parts.flatMap(spokenByUser), ...options }
    : { role, content: parts.flatMap(spokenByModel), ...options };
}

function spokenByUser(part: TurnPart): (ModelText | ModelFile)[] {
  const made = partOf(part);
  return made?.type === 'text' || made?.type === 'file' ? [made] : [];
}

function spokenByModel(part: TurnPart): (ModelText | ModelReasoning | ModelFile | ModelCall)[] {
  const made = partOf(part);
  return made === undefined || made.type === 'tool-result' ? [] : [made];
}

function resultOf(part: TurnPart): ModelResult[] {
  const made = partOf(part);
  return made?.type === 'tool-result' ? [made] : [];
}

function partOf(part: TurnPart): ModelText | ModelReasoning | ModelFile | ModelCall | ModelResult | undefined {
  const options = optionsOf(part.providerOptions);
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text, ...options };
    case 'reasoning':
      return { type: 'reasoning', text: part.text, ...options };
    case 'file': {
      const { bytes, mime, fileName } = part;
      const data = bytes ?? new URL(artifactUrl(part));
      return { type: 'file', data, mediaType: mime, ...defined({ filename: fileName }), ...options };
    }
    case 'tool-call': {
      const { toolCallId, toolName, input } = part;
      return { type: 'tool-call', toolCallId, toolName, input, ...options };
    }
    case 'tool-result': {
      const { toolCallId, toolName, output } = part;
      return { type: 'tool-result', toolCallId, toolName, output, ...options };
    }
    default:
      return part satisfies never;
  }
}

function optionsOf(options: JsonObject | undefined): PartOptions {
  return options === undefined ? {} : { providerOptions: options as Options };
}
