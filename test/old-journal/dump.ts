/** A journal's file as SQL text, and back: what is kept here can be read in a review. */
import type { DatabaseSync } from 'node:sqlite';

interface Table {
  readonly name: string;
  readonly sql: string;
}

/** What makes the same file: its format, its tables with all their rows, and its indexes. */
export function dumpOf(db: DatabaseSync): { readonly format: number; readonly sql: string } {
  const format = pragma(db, 'user_version');
  const schema = (type: string): Table[] =>
    db
      .prepare("SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
      .all(type) as unknown as Table[];
  const tables = schema('table');
  const lines = [
    `PRAGMA application_id = ${pragma(db, 'application_id')};`,
    `PRAGMA user_version = ${format};`,
    ...tables.map(({ sql }) => `${sql};`),
    ...tables.flatMap(({ name }) => rowsOf(db, name)),
    ...schema('index').map(({ sql }) => `${sql};`),
  ];
  return { format, sql: `${lines.join('\n')}\n` };
}

function rowsOf(db: DatabaseSync, table: string): string[] {
  // Without the columns that are computed.
  const columns = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all() as unknown as { name: string }[];
  const names = columns.map(({ name }) => `"${name}"`);
  const values = names.map((name) => `quote(${name})`).join(" || ', ' || ");
  const rows = db.prepare(`SELECT ${values} AS text FROM "${table}"`).all() as unknown as { text: string }[];
  return rows.map(({ text }) => `INSERT INTO "${table}" (${names.join(', ')}) VALUES (${text});`);
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
