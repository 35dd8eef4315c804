/** The texts of what is to be written, made before the transaction: what cannot be a text fails alone. */
import { encodeEntry, isCapped, type Message, type Started } from '#core';
import type { Append, NewRun } from './port.ts';
import { agentAfter, assertConsecutive, assertNewRun, assertTurn } from './rules.ts';

export interface RunText {
  readonly run: NewRun;
  readonly first: Started;
  readonly bodies: readonly string[];
}

export interface MessageText {
  readonly id: string;
  readonly isCapped: boolean;
  readonly body: string;
}

export interface ToldText {
  readonly run: string;
  readonly message: MessageText;
}

export interface AppendText {
  readonly append: Append;
  readonly bodies: readonly string[];
  readonly agent: string | undefined;
  readonly starts: readonly RunText[] | undefined;
  readonly tells: readonly ToldText[] | undefined;
}

/** @throws PilotageError as `Journal.create` does. */
export function encodeRun(run: NewRun): RunText {
  return { run, first: assertNewRun(run), bodies: run.entries.map(encodeEntry) };
}

export function encodeMessage(message: Message): MessageText {
  return { id: message.id, isCapped: isCapped(message), body: JSON.stringify(message) };
}

/** @throws PilotageError `journal_conflict`, `identity_required` or `invalid_config`, where no look at the store is needed. */
export function encodeAppend(append: Append): AppendText {
  assertConsecutive(append);
  assertTurn(append);
  const bodies = append.entries.map(encodeEntry);
  const tells = append.tells?.map(({ run, message }) => ({ run, message: encodeMessage(message) }));
  return { append, bodies, agent: agentAfter(append), starts: append.starts?.map(encodeRun), tells };
}
