/** A recorded agent run as a script for one run here: what the user and the model said, and what the calls gave. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Json, JsonObject, Turn } from '#core';

export interface RecordedMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

export interface RecordedTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** One line of the file, as far as it is read here. */
export interface Row {
  readonly id: string;
  readonly system: string;
  readonly tools: readonly RecordedTool[];
  /** Without the system message. */
  readonly messages: readonly RecordedMessage[];
}

export interface RecordedCall {
  /** The provider's; it may repeat. */
  readonly id: string;
  readonly tool: string;
  /** The text as the model wrote it. */
  readonly input: string;
  /** The text that the model saw, also for a call that failed. */
  readonly result: string;
}

/** One reply of the model, which is one step of the run. */
export interface RecordedTurn {
  /** How many messages the model was shown, without the system message. */
  readonly shown: number;
  readonly text: string;
  readonly calls: readonly RecordedCall[];
  /** What the user said to a reply without calls; absent when the recording ends with it. */
  readonly answer?: string;
}

export interface Recording {
  readonly id: string;
  readonly system: string;
  readonly tools: readonly RecordedTool[];
  readonly messages: readonly RecordedMessage[];
  /** What the assistant said before the user said anything. */
  readonly history: readonly Turn[];
  readonly query: string;
  readonly turns: readonly RecordedTurn[];
}

/** The rows of a gzip'd JSON-lines file, at most `limit`. @throws what a file that is no such file makes throw. */
export function readRows(path: string, limit: number): Row[] {
  const lines = gunzipSync(readFileSync(path)).toString('utf8').split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .slice(0, limit)
    .map((line) => JSON.parse(line) as Row);
}

/** @throws Error for a conversation that a run cannot hold, saying where. */
export function recordingOf({ id, system, tools, messages }: Row): Recording {
  const first = messages.findIndex(({ role }) => role === 'user');
  const before = messages.slice(0, Math.max(first, 0));
  if (first === -1 || before.some(({ role, tool_calls = [] }) => role !== 'assistant' || tool_calls.length > 0)) {
    throw new Error('the recording does not begin with words of the assistant or of the user');
  }
  const history = before.map(({ content }) => ({ role: 'assistant' as const, text: content ?? '' }));
  const turns: RecordedTurn[] = [];
  for (let at = first + 1; at < messages.length; ) {
    const turn = turnAt(messages, at);
    turns.push(turn);
    at += 1 + turn.calls.length + (turn.answer === undefined ? 0 : 1);
  }
  return { id, system, tools, messages, history, query: messages[first]?.content ?? '', turns };
}

function turnAt(messages: readonly RecordedMessage[], at: number): RecordedTurn {
  const message = messages[at];
  if (message?.role !== 'assistant') throw new Error(`message ${at} is the ${message?.role}'s, not the assistant's`);
  const calls = (message.tool_calls ?? []).map((call, index): RecordedCall => {
    const result = messages[at + 1 + index];
    if (result?.role !== 'tool' || result.tool_call_id !== call.id) {
      throw new Error(`call ${index} of message ${at} has no result in its place`);
    }
    return { id: call.id, tool: call.function.name, input: call.function.arguments, result: result.content ?? '' };
  });
  const turn = { shown: at, text: message.content ?? '', calls };
  const next = messages[at + 1];
  if (calls.length > 0 || next === undefined) return turn;
  if (next.role !== 'user') throw new Error(`message ${at + 1} is not the user's answer to the text before it`);
  return { ...turn, answer: next.content ?? '' };
}

/** What the text of a call's arguments says; text that is not JSON says itself. */
export function readArguments(input: string): Json {
  try {
    return JSON.parse(input) as Json;
  } catch {
    return input;
  }
}
