/** Artifacts: one row for the same bytes in the same scope. */
import { type ArtifactRef, type ArtifactRow, MOST_ARTIFACTS_COUNTED, PilotageError, type Scope } from '#core';
import type { ArtifactAbout, ArtifactStore } from '../port.ts';
import { artifactDigest, assertCounts, assertSameContent, ownedBy, ownerKey } from '../rules.ts';
import { type Database, NOW_1, type Sql } from './database.ts';

/** The bytes come back as hexadecimal digits, and Node makes no text of more than 2^29 characters. */
const MOST_BYTES = 250_000_000;

interface StoredRow {
  readonly sha256: string;
  readonly mime: string;
}

interface ListedRow {
  readonly total: number;
  readonly ref: string | null;
  readonly mime: string;
  readonly size: number;
  readonly file_name: string | null;
  readonly source: string;
  readonly created_at: number;
}

const FIND = 'SELECT sha256, mime FROM {artifacts} WHERE scope = $1 AND ref = $2';
const BYTES = 'SELECT bytes, sha256, mime FROM {artifacts} WHERE scope = $1 AND ref = $2';
// Who stores the same bytes at the same time waits here until the other one has.
const INSERT = `
  INSERT INTO {artifacts} (scope, ref, sha256, mime, size, file_name, source, created_at, bytes)
  VALUES ($2, $3, $4, $5, $6, $7, $8, ${NOW_1}, $9) ON CONFLICT (scope, ref) DO NOTHING`;
/** The count also when there is no row to give. */
const LIST = `
  SELECT counted.total, listed.* FROM (
    SELECT count(*) AS total FROM (SELECT FROM {artifacts} WHERE scope = $1 LIMIT greatest($2::bigint, ${MOST_ARTIFACTS_COUNTED})) AS first
  ) AS counted
  LEFT JOIN LATERAL (
    SELECT ref, mime, size, file_name, source, created_at FROM {artifacts}
    WHERE scope = $1 ORDER BY created_at DESC, ref LIMIT $2::bigint
  ) AS listed ON TRUE
  ORDER BY listed.created_at DESC, listed.ref`;
const ERASE = 'DELETE FROM {artifacts} WHERE scope >= $1 AND scope < $2';
const ERASE_SCOPE = 'DELETE FROM {artifacts} WHERE scope = $1 AND ($2::float8 IS NULL OR created_at <= $2::float8)';

export class PostgresArtifacts implements ArtifactStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async put(scope: Scope, bytes: Uint8Array, about: ArtifactAbout): Promise<ArtifactRef> {
    const key = ownedBy(scope);
    const { mime, fileName = null, source = 'unknown' } = about;
    const size = bytes.byteLength;
    if (size > MOST_BYTES) throw tooLarge(size);
    const copy = new Uint8Array(bytes);
    const digest = artifactDigest(copy);
    const { artifactRef, sha256 } = digest;
    const given = this.#database.given;
    return this.#database.read(async (sql) => {
      for (;;) {
        const values = [given, key, artifactRef, sha256, mime, size, fileName, source, copy] as const;
        if ((await sql.run(INSERT, ...values)) > 0) return { artifactRef, mime, sizeBytes: size };
        const stored = await sql.row<StoredRow>(FIND, key, artifactRef);
        // Somebody has erased it in between.
        if (stored === undefined) continue;
        assertSameContent(digest, stored.sha256);
        return { artifactRef, mime: stored.mime, sizeBytes: size };
      }
    });
  }

  async get(scope: Scope, artifactRef: string): Promise<{ bytes: Uint8Array; mime: string } | undefined> {
    const key = ownedBy(scope);
    const row = await this.#database.read((sql) =>
      sql.row<StoredRow & { readonly bytes: Uint8Array }>(BYTES, key, artifactRef),
    );
    if (row === undefined) return undefined;
    if (artifactDigest(row.bytes).sha256 === row.sha256) return { bytes: row.bytes, mime: row.mime };
    throw new PilotageError('journal_corrupt', `The bytes of ${artifactRef} have changed. Restore a backup.`, {
      data: { artifactRef },
    });
  }

  async list(scope: Scope, limit: number): Promise<{ rows: readonly ArtifactRow[]; total: number }> {
    assertCounts({ limit });
    const key = ownedBy(scope);
    const rows = await this.#database.read((sql) => sql.rows<ListedRow>(LIST, key, limit));
    return { rows: rows.flatMap(rowOf), total: rows[0]?.total ?? 0 };
  }

  async erase(owner: Pick<Scope, 'tenant' | 'user'>): Promise<number> {
    const from = ownerKey(owner);
    // The key of a scope begins with that of its owner, which ends with a slash; `0` is the character behind that.
    const to = `${from.slice(0, -1)}0`;
    return this.#database.read((sql) => sql.run(ERASE, from, to));
  }
}

/** In the transaction that deletes the session, or its last run. @param before given: what is younger stays. */
export async function dropArtifacts(sql: Sql, scope: Scope, before: number | null): Promise<void> {
  await sql.run(ERASE_SCOPE, ownedBy(scope), before);
}

function rowOf({ ref, mime, size, file_name: fileName, source, created_at: createdAt }: ListedRow): ArtifactRow[] {
  if (ref === null) return [];
  return [{ artifactRef: ref, mime, sizeBytes: size, source, createdAt, ...(fileName === null ? {} : { fileName }) }];
}

function tooLarge(size: number): PilotageError {
  return new PilotageError(
    'invalid_config',
    `An artifact has ${size} bytes; a journal on Postgres takes at most ${MOST_BYTES}. Store it elsewhere, and where it is here.`,
  );
}
