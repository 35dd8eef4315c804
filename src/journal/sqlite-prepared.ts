/** Statements are prepared when they are first run: that costs more than to run one, and most connections need few of them. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';

type Values = readonly (SQLInputValue | Readonly<Record<string, SQLInputValue>>)[];
type AnyRow = Record<string, SQLOutputValue>;

/** Rows have the shape that the statement's text asks for: whoever runs it names that. */
interface Statement extends Pick<StatementSync, 'run'> {
  all<Row = AnyRow>(...values: Values): Row[];
  get<Row = AnyRow>(...values: Values): Row | undefined;
}

export type PreparedStatement = () => Statement;

/** What SQLite says of a text that does not fit the file as it is then is thrown by the first who asks. */
export function prepared(db: DatabaseSync, text: string): PreparedStatement {
  let statement: Statement | undefined;
  return () => {
    statement ??= db.prepare(text) as unknown as Statement;
    return statement;
  };
}
