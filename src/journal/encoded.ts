/** What is to be written, encoded before the transaction that writes it. */
import { assertStoreWrite, encodeEntry, isCapped, type Message, type Started } from '#core';
import type { Append, NewRun, Sending, Told } from './port.ts';
import { agentAfter, assertConsecutive, assertLease, assertNewRun } from './rules.ts';

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

export interface SendingText {
  readonly sending: Sending;
  readonly starts: RunText | undefined;
  readonly tells: readonly ToldText[];
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
  if (append.leaseMs !== undefined) assertLease({ leaseMs: append.leaseMs });
  if (append.writes !== undefined) for (const write of append.writes) assertStoreWrite(write);
  const bodies = append.entries.map(encodeEntry);
  const tells = append.tells?.map(encodeTold);
  return { append, bodies, agent: agentAfter(append), starts: append.starts?.map(encodeRun), tells };
}

function encodeTold({ run, message }: Told): ToldText {
  return { run, message: encodeMessage(message) };
}

/** @throws PilotageError as `Journal.create` does. */
export function encodeSending(sending: Sending): SendingText {
  const { starts, tells = [] } = sending;
  return { sending, starts: starts && encodeRun(starts), tells: tells.map(encodeTold) };
}
