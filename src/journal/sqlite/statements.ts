/** What statements are run with: their texts are prepared once. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';

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

/** So many texts that are put together are kept: more than a program asks in different ways. */
const MOST_TEXTS = 100;

/** The same for texts that are put together as a query wants them. */
export function preparedTexts(db: DatabaseSync): (text: string) => Statement {
  const known = new Map<string, PreparedStatement>();
  const sql = prepared(db);
  return (text) => {
    const statement = known.get(text) ?? sql(text);
    if (known.size >= MOST_TEXTS) known.clear();
    known.set(text, statement);
    return statement();
  };
}

/**
 * In SQL: `LIMIT`, with a parameter such as `:limit`. SQLite prepares a statement anew whenever the parameter of a bare `LIMIT` is bound, which costs
 * many times what most statements do.
 */
export const atMost = (parameter: string): string => `LIMIT CAST(${parameter} AS INTEGER)`;

/** In SQL: `has_text(given, text)`, whatever the case; `text` is in small letters. SQLite itself knows the cases of ASCII alone. */
export function hasText(db: DatabaseSync): void {
  db.function('has_text', { deterministic: true }, (given, text) =>
    Number(typeof given === 'string' && given.toLowerCase().includes(String(text))),
  );
}
