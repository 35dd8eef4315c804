/** Removes artifacts, a part at a time: the pages of their bytes are freed one by one. Called inside the writer's transaction. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { type Scope, scopeKey } from '#core';
import { ownerKey } from '../rules.ts';
import { type PreparedStatement, prepared } from './statements.ts';

/** So many artifacts go with a commit, or as many as have so many bytes. */
const MOST = 1_000;
const MOST_BYTES = 16 << 20;

interface Row {
  readonly scope: string;
  readonly created_at: number;
  readonly ref: string;
  readonly size: number;
}

export interface DroppedPart {
  readonly count: number;
  /** There are no more. */
  readonly isLast: boolean;
}

export class ArtifactDrops {
  readonly #ofScope: PreparedStatement;
  readonly #ofOwner: PreparedStatement;
  readonly #bytes: PreparedStatement;
  readonly #row: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    const some = (which: string): PreparedStatement =>
      sql(`SELECT scope, created_at, ref, size FROM artifact_rows WHERE ${which} LIMIT ${MOST}`);
    this.#ofScope = some('scope = :scope AND created_at <= :before');
    // The key of a scope begins with `:owner`, which ends with a slash; `0` is the character behind that.
    this.#ofOwner = some("scope >= :owner AND scope < substr(:owner, 1, length(:owner) - 1) || '0'");
    this.#bytes = sql('DELETE FROM artifacts WHERE scope = ? AND ref = ?');
    this.#row = sql('DELETE FROM artifact_rows WHERE scope = ? AND created_at = ? AND ref = ?');
  }

  /** @param before younger artifacts stay. */
  ofSession(scope: Scope, before: number): DroppedPart {
    return this.#drop(this.#ofScope, { scope: scopeKey(scope), before });
  }

  ofOwner(owner: Pick<Scope, 'tenant' | 'user'>): DroppedPart {
    return this.#drop(this.#ofOwner, { owner: ownerKey(owner) });
  }

  #drop(some: PreparedStatement, which: Record<string, SQLInputValue>): DroppedPart {
    const rows = some().all<Row>(which);
    let count = 0;
    let bytes = 0;
    for (const { scope, created_at: at, ref, size } of rows) {
      if (bytes > MOST_BYTES) break;
      this.#bytes().run(scope, ref);
      this.#row().run(scope, at, ref);
      bytes += size;
      count += 1;
    }
    return { count, isLast: count === rows.length && rows.length < MOST };
  }
}
