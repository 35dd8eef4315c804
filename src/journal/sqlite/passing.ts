/** What passes in runs: a row for each that is read, and for each piece of what its readers are told. */
import type { DatabaseSync } from 'node:sqlite';
import { type NewPassing, type PassingRow, type PassingStore, READ_LATELY_MS, type ReadRun } from '../port-passing.ts';
import { type PassingText, passingRowsOf } from '../stored-rows.ts';
import { passingKey, READERS } from '../watchers.ts';
import { type PreparedStatement, prepared } from './statements.ts';
import type { FileWatch, StoreAccess } from './stores.ts';

/** In SQL, for the key of a run. */
export const DROP_PASSING = 'DELETE FROM passing WHERE run = ?';
export const DROP_READERS = 'DELETE FROM readers WHERE run = ?';

export class SqlitePassing implements PassingStore {
  readonly #access: StoreAccess;
  readonly #watch: FileWatch;
  readonly #want: PreparedStatement;
  readonly #dropOldRows: PreparedStatement;
  readonly #dropOld: PreparedStatement;
  readonly #wanted: PreparedStatement;
  readonly #owned: PreparedStatement;
  readonly #clear: PreparedStatement;
  readonly #insert: PreparedStatement;
  readonly #rows: PreparedStatement;
  readonly #now: () => number;

  constructor(db: DatabaseSync, access: StoreAccess, now: () => number, watch: FileWatch) {
    const sql = prepared(db);
    this.#access = access;
    this.#now = now;
    this.#watch = watch;
    this.#want = sql(`
      INSERT INTO readers (run, until) SELECT key, :until FROM runs WHERE id = :run
      ON CONFLICT (run) DO UPDATE SET until = max(until, excluded.until)`);
    this.#dropOldRows = sql('DELETE FROM passing WHERE run IN (SELECT run FROM readers WHERE until < ?)');
    this.#dropOld = sql('DELETE FROM readers WHERE until < ?');
    this.#wanted = sql(`
      SELECT runs.id AS run, readers.until - :now AS leftMs FROM readers JOIN runs ON runs.key = readers.run`);
    this.#owned = sql('SELECT key FROM runs WHERE id = ? AND fence = ?');
    this.#clear = sql(DROP_PASSING);
    this.#insert = sql('INSERT INTO passing (run, fence, value) VALUES (?, ?, ?)');
    this.#rows = sql(`
      SELECT number, fence, value FROM passing
      WHERE run = (SELECT key FROM runs WHERE id = :run) AND number > :after ORDER BY number`);
  }

  async want(runs: readonly string[], forMs: number): Promise<void> {
    await this.#access.write((now) => {
      this.#dropOldRows().run(now - READ_LATELY_MS);
      this.#dropOld().run(now - READ_LATELY_MS);
      for (const run of runs) this.#want().run({ run, until: now + forMs });
    });
    this.#watch.watchers.wake(READERS);
  }

  async wanted(): Promise<readonly ReadRun[]> {
    return this.#access.read(() => this.#wanted().all<ReadRun>({ now: this.#now() }));
  }

  watchWanted(wake: () => void): () => void {
    return this.#watch.watching(() => this.#watch.watchers.add(READERS, wake));
  }

  async put(rows: readonly NewPassing[]): Promise<void> {
    const texts = rows.map(({ value }) => (value === undefined ? undefined : JSON.stringify(value)));
    await this.#access.write(() => {
      for (const [index, { run, fence, clears = false }] of rows.entries()) {
        const key = this.#owned().get<{ readonly key: number }>(run, fence)?.key;
        if (key === undefined) continue;
        if (clears) this.#clear().run(key);
        const text = texts[index];
        if (text !== undefined) this.#insert().run(key, fence, text);
      }
    });
    for (const { run } of rows) this.#watch.watchers.wake(passingKey(run));
  }

  async read(run: string, after: number): Promise<readonly PassingRow[]> {
    return this.#access.read(() => passingRowsOf(this.#rows().all<PassingText>({ run, after })));
  }

  watch(run: string, wake: () => void): () => void {
    return this.#watch.watching(() => this.#watch.watchers.add(passingKey(run), wake));
  }
}
