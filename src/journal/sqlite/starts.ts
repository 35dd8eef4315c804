/** The statements on what runs are found by, and on starts under keys. All are called inside the writer's transaction. */
import type { DatabaseSync } from 'node:sqlite';
import type { Started, StartKey } from '#core';
import { indexedLabels, type KeyDecision, type KeyRow, rowsThatCount } from '../start-rules.ts';
import { atMost, type PreparedStatement, prepared } from './statements.ts';

/** How many rows of keys that are of no use any more are deleted with a start under any key. */
const SWEPT_AT_ONCE = 20;

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  return {
    addLabel: sql('INSERT INTO run_labels (name, value, run) VALUES (:name, :value, :key)'),
    dropLabels: sql('DELETE FROM run_labels WHERE run = :key'),
    begins: sql('UPDATE runs SET starts_at = :startsAt, wake_at = :wakeAt WHERE key = :key'),
    rows: sql(`
      SELECT at, run FROM start_keys WHERE tenant = :tenant AND kind = :kind AND name = :name
      ORDER BY at DESC, number DESC ${atMost(':limit')}`),
    addRow: sql(`
      INSERT INTO start_keys (tenant, kind, name, at, number, run, until)
      VALUES (:tenant, :kind, :name, :at, :number, :run, :until)`),
    dropOlder: sql(`
      DELETE FROM start_keys WHERE tenant = :tenant AND kind = :kind AND name = :name AND at < :at`),
    forget: sql('DELETE FROM start_keys WHERE run = :run'),
    forgetOver: sql('DELETE FROM start_keys WHERE run = :run AND (until IS NULL OR until < :now)'),
    sweep: sql(`
      DELETE FROM start_keys WHERE (tenant, kind, name, at, number) IN (
        SELECT tenant, kind, name, at, number FROM start_keys WHERE until < :now LIMIT ${SWEPT_AT_ONCE}
      )`),
    replaceFirst: sql('UPDATE entries SET body = :body, at = :now WHERE id = (:key << 32) + 1'),
    replaceRun: sql(`
      UPDATE runs SET agent = :agent, priority = :priority, starts_at = :startsAt, wake_at = :wakeAt, updated_at = :now
      WHERE key = :key`),
    firstAt: sql(`SELECT body ->> '$.at' AS at FROM entries WHERE id = (:key << 32) + 1`),
  } satisfies Record<string, PreparedStatement>;
}

export class SqliteStarts {
  readonly #sql: ReturnType<typeof statementsOn>;

  constructor(db: DatabaseSync) {
    this.#sql = statementsOn(db);
  }

  /** What is said of few runs. @param wakeAt 0: it begins at once. */
  began(key: number, first: Started, wakeAt: number): void {
    if (first.labels !== undefined || first.schedule !== undefined) this.#index(key, first);
    if (wakeAt > 0) this.#sql.begins().run({ key, startsAt: wakeAt, wakeAt });
  }

  /** The first entry is another one now. */
  reindex(key: number, first: Started): void {
    this.#sql.dropLabels().run({ key });
    this.#index(key, first);
  }

  #index(key: number, first: Started): void {
    for (const [name, value] of indexedLabels(first)) this.#sql.addLabel().run({ key, name, value });
  }

  rows(tenant: string, key: StartKey): readonly KeyRow[] {
    return this.#sql.rows().all<KeyRow & Record<string, never>>({ ...place(tenant, key), limit: rowsThatCount(key) });
  }

  /** @param number orders rows of one time. */
  add(
    { tenant, run, number }: { readonly tenant: string; readonly run: string; readonly number: number },
    key: StartKey,
    { at, until }: Extract<KeyDecision, { do: 'start' }>,
    now: number,
  ): void {
    const where = place(tenant, key);
    if (key.kind === 'singleton' || key.kind === 'debounce') this.#sql.dropOlder().run({ ...where, at: at + 1 });
    this.#sql.addRow().run({ ...where, at, number, run, until });
    this.#sql.sweep().run({ now });
  }

  /** The run is gone, or what it was started with. */
  forget(run: string): void {
    this.#sql.forget().run({ run });
  }

  /** The run is gone, and counts under its keys as long as it would have. */
  forgetOver(run: string, now: number): void {
    this.#sql.forgetOver().run({ run, now });
  }

  dropLabels(key: number): void {
    this.#sql.dropLabels().run({ key });
  }

  firstAt(key: number): number {
    return Number(this.#sql.firstAt().get<{ at: number }>({ key })?.at ?? 0);
  }

  replace(
    key: number,
    { first, body, priority }: { readonly first: Started; readonly body: string; readonly priority: number },
    wakeAt: number,
    now: number,
  ): void {
    this.#sql.replaceFirst().run({ key, body, now });
    const startsAt = wakeAt === 0 ? null : wakeAt;
    this.#sql.replaceRun().run({ key, agent: first.agent, priority, startsAt, wakeAt, now });
    this.reindex(key, first);
  }
}

function place(tenant: string, { kind, key }: StartKey): Record<'tenant' | 'kind' | 'name', string> {
  return { tenant, kind, name: key };
}
