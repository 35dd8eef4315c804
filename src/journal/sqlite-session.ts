/** What sessions remember, in the journal's file. A turn is written in the transaction of its run's ending. */
import type { DatabaseSync } from 'node:sqlite';
import type { Scope } from '#core';
import { assertCounts, assertSummary, ownedBy } from './rules.ts';
import type { MemoryHealth, SessionMemory, SessionMemoryStore, SessionSummary, SessionTurn } from './session-memory.ts';
import type { StoreAccess } from './sqlite-artifacts.ts';
import { type PreparedStatement, prepared } from './sqlite-prepared.ts';

interface SummaryRow {
  readonly text: string;
  readonly covers: number;
  readonly health: MemoryHealth;
  readonly failures: number;
  readonly updated_at: number;
}

interface TurnRow {
  readonly run: string;
  readonly user: string;
  readonly assistant: string | null;
  readonly at: number;
}

export class SqliteSessions implements SessionMemoryStore {
  readonly #access: StoreAccess;
  readonly #scopeOf: PreparedStatement;
  readonly #add: PreparedStatement;
  readonly #turns: PreparedStatement;
  readonly #count: PreparedStatement;
  readonly #summary: PreparedStatement;
  readonly #setSummary: PreparedStatement;

  constructor(db: DatabaseSync, access: StoreAccess) {
    this.#access = access;
    this.#scopeOf = prepared(db, 'SELECT tenant, user, session FROM runs WHERE id = ?');
    this.#add = prepared(
      db,
      `
      INSERT INTO session_turns (scope, number, run, user, assistant, at)
      VALUES (:scope, (SELECT coalesce(max(number) + 1, 0) FROM session_turns WHERE scope = :scope), :run, :user, :assistant, :at)
      ON CONFLICT (run) DO NOTHING`,
    );
    this.#turns = prepared(
      db,
      `
      SELECT run, user, assistant, at FROM session_turns
      WHERE scope = ? AND number >= ? AND number < ? ORDER BY number DESC LIMIT ?`,
    );
    this.#count = prepared(db, 'SELECT coalesce(max(number) + 1, 0) AS turns FROM session_turns WHERE scope = ?');
    this.#summary = prepared(
      db,
      'SELECT text, covers, health, failures, updated_at FROM session_summaries WHERE scope = ?',
    );
    this.#setSummary = prepared(
      db,
      `
      INSERT INTO session_summaries (scope, text, covers, health, failures, updated_at)
      VALUES (:scope, :text, :covers, :health, :failures, :updatedAt)
      ON CONFLICT (scope) DO UPDATE SET
        text = excluded.text, covers = excluded.covers, health = excluded.health,
        failures = excluded.failures, updated_at = excluded.updated_at`,
    );
  }

  /** Inside the writer's transaction, of a run that is there. A second turn of the same run changes nothing. */
  add({ run, user, assistant, at }: SessionTurn): void {
    const scope = ownedBy(this.#scopeOf().get(run) as Scope);
    this.#add().run({ scope, run, user, assistant, at });
  }

  async read(scope: Scope, limit: number, from: number = 0): Promise<SessionMemory> {
    assertCounts({ limit, from });
    const key = ownedBy(scope);
    return this.#access.read(() => {
      // In this order what another process commits in between goes unseen: turns never change, a summary covers no later ones.
      const summary = this.#summary().get(key) as SummaryRow | undefined;
      const count = Number(this.#count().get(key)?.['turns']);
      const rows = this.#turns().all<TurnRow>(key, from, count, limit);
      return {
        count,
        turns: rows.reverse().map(turnOf),
        ...(summary === undefined ? {} : { summary: summaryOf(summary) }),
      };
    });
  }

  async summarise(scope: Scope, expected: number | undefined, summary: SessionSummary): Promise<boolean> {
    assertSummary(summary);
    const key = ownedBy(scope);
    const { text, covers, health, failures, updatedAt } = summary;
    return this.#access.write(() => {
      const stored = this.#summary().get(key) as SummaryRow | undefined;
      if (stored?.updated_at !== expected) return false;
      this.#setSummary().run({ scope: key, text, covers, health, failures, updatedAt });
      return true;
    });
  }
}

function turnOf({ run, user, assistant, at }: TurnRow): SessionTurn {
  return Object.freeze({ run, user, assistant, at });
}

function summaryOf({ updated_at, ...summary }: SummaryRow): SessionSummary {
  return Object.freeze({ ...summary, updatedAt: updated_at });
}
