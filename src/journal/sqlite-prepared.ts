/** Statements are prepared when they are first run: that costs more than to run one, and most connections need few of them. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

export type PreparedStatement = () => StatementSync;

/** What SQLite says of a text that does not fit the file as it is then is thrown by the first who asks. */
export function prepared(db: DatabaseSync, text: string): PreparedStatement {
  let statement: StatementSync | undefined;
  return () => {
    statement ??= db.prepare(text);
    return statement;
  };
}
