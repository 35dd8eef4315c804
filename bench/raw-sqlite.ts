/** The durable floor: the texts of a journal, each put into a bare table by one prepared INSERT in its own transaction. */
import { DatabaseSync } from 'node:sqlite';

/** All entries of a closed journal file, as it stored them. */
export function storedTexts(journalPath: string): string[] {
  const db = new DatabaseSync(journalPath, { readOnly: true });
  const texts = db
    .prepare('SELECT body FROM entries ORDER BY id')
    .all()
    .map(({ body }) => String(body));
  db.close();
  if (texts.length === 0) throw new Error('The journal file holds no entries.');
  return texts;
}

/** An empty table under the pragmas of the journal: a write-ahead log that reaches the disk at every commit. */
export function openRaw(path: string): { insertEach(texts: readonly string[]): void; close(): void } {
  const db = new DatabaseSync(path);
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE entries (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
  `);
  const insert = db.prepare('INSERT INTO entries (body) VALUES (?)');
  return {
    insertEach(texts) {
      for (const text of texts) insert.run(text);
    },
    close: () => db.close(),
  };
}
