/** What statements are run with: their texts are prepared once, and what is to be written is encoded before the transaction. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import { assertStoreWrite, encodeEntry, isCapped, type Message, type Started } from '#core';
import type { Append, NewRun, Sending, Told } from '../port.ts';
import { agentAfter, assertConsecutive, assertLease, assertNewRun } from '../rules.ts';

type Values = readonly (SQLInputValue | Readonly<Record<string, SQLInputValue>>)[];
type AnyRow = Record<string, SQLOutputValue>;

/** Rows have the shape that the statement's text asks for: whoever runs it names that. */
interface Statement extends Pick<StatementSync, 'run'> {
  all<Row = AnyRow>(...values: Values): Row[];
  get<Row = AnyRow>(...values: Values): Row | undefined;
}

export type PreparedStatement = () => Statement;

/**
 * Prepares statements on a connection, each when it is first run: that costs more than to run one, and most connections need few of
 * them. What SQLite says of a text that does not fit the file as it is then is thrown by the first who asks.
 */
export function prepared(db: DatabaseSync): (text: string) => PreparedStatement {
  return (text) => {
    let statement: Statement | undefined;
    return () => {
      statement ??= db.prepare(text) as unknown as Statement;
      return statement;
    };
  };
}

/** In SQL: `has_text(given, text)`, whatever the case; `text` is in small letters. SQLite itself knows the cases of ASCII alone. */
export function hasText(db: DatabaseSync): void {
  db.function('has_text', { deterministic: true }, (given, text) =>
    Number(typeof given === 'string' && given.toLowerCase().includes(String(text))),
  );
}

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
