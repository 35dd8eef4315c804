/** What the file keeps beside runs: artifacts, one row for the same bytes in the same scope. */
import type { DatabaseSync } from 'node:sqlite';
import { type ArtifactRef, type ArtifactRow, MOST_ARTIFACTS_COUNTED, PilotageError, type Scope } from '#core';
import type { ArtifactAbout, ArtifactStore } from '../port.ts';
import { artifactDigest, assertCounts, assertSameContent, ownedBy } from '../rules.ts';
import type { Watchers } from '../watchers.ts';
import { ArtifactDrops } from './artifact-drops.ts';
import { atMost, type PreparedStatement, prepared } from './statements.ts';

const LARGE_BYTES = 1 << 20;

interface StoredRow {
  readonly sha256: string;
  readonly mime: string;
}

interface ListedRow {
  readonly ref: string;
  readonly mime: string;
  readonly size: number;
  readonly file_name: string | null;
  readonly source: string;
  readonly created_at: number;
}

/** How the journal lets statements run: open files only, SQLite's errors typed. */
export interface StoreAccess {
  /** What was read, when it is on the disk. */
  read<T>(run: () => T): Promise<T>;
  /** `run` may be tried several times, and is told the time. */
  write<T>(run: (now: number) => T): Promise<T>;
}

export interface FileWatch {
  readonly watchers: Watchers;
  /** Adds a watch, and sees that the file is looked at. */
  readonly watching: (add: () => () => void) => () => void;
}

export class SqliteArtifacts implements ArtifactStore {
  readonly #access: StoreAccess;
  readonly #find: PreparedStatement;
  readonly #bytes: PreparedStatement;
  readonly #insert: PreparedStatement;
  readonly #insertRow: PreparedStatement;
  readonly #rows: PreparedStatement;
  readonly #count: PreparedStatement;
  readonly #drops: ArtifactDrops;

  constructor(db: DatabaseSync, access: StoreAccess) {
    const sql = prepared(db);
    this.#access = access;
    this.#find = sql('SELECT sha256, mime FROM artifacts WHERE scope = ? AND ref = ?');
    this.#bytes = sql('SELECT bytes, sha256, mime FROM artifacts WHERE scope = ? AND ref = ?');
    this.#insert = sql('INSERT INTO artifacts (scope, ref, sha256, mime, bytes) VALUES (?, ?, ?, ?, ?)');
    this.#insertRow = sql(`
      INSERT INTO artifact_rows (scope, created_at, ref, mime, size, file_name, source) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#rows = sql(`
      SELECT ref, mime, size, file_name, source, created_at FROM artifact_rows
      WHERE scope = ? ORDER BY created_at DESC, ref ${atMost('?')}`);
    this.#count = sql(`SELECT count(*) AS rows FROM (SELECT 1 FROM artifact_rows WHERE scope = ? ${atMost('?')})`);
    this.#drops = new ArtifactDrops(db);
  }

  async put(scope: Scope, bytes: Uint8Array, about: ArtifactAbout): Promise<ArtifactRef> {
    const key = ownedBy(scope);
    const { mime, fileName = null, source = 'unknown' } = about;
    const copy = new Uint8Array(bytes);
    const digest = artifactDigest(copy);
    const { artifactRef, sha256 } = digest;
    // To copy and digest it took long, and so does writing it.
    if (copy.byteLength >= LARGE_BYTES) await new Promise((resolve) => setImmediate(resolve));
    return this.#access.write((now) => {
      const stored = this.#find().get(key, artifactRef) as StoredRow | undefined;
      if (stored !== undefined) assertSameContent(digest, stored.sha256);
      else {
        this.#insert().run(key, artifactRef, sha256, mime, copy);
        this.#insertRow().run(key, now, artifactRef, mime, copy.byteLength, fileName, source);
      }
      return { artifactRef, mime: stored?.mime ?? mime, sizeBytes: copy.byteLength };
    });
  }

  async get(scope: Scope, artifactRef: string): Promise<{ bytes: Uint8Array; mime: string } | undefined> {
    const key = ownedBy(scope);
    const row = (await this.#access.read(() => this.#bytes().get(key, artifactRef))) as
      | (StoredRow & { readonly bytes: Uint8Array })
      | undefined;
    if (row === undefined) return undefined;
    if (artifactDigest(row.bytes).sha256 === row.sha256) return { bytes: row.bytes, mime: row.mime };
    throw new PilotageError('journal_corrupt', `The bytes of ${artifactRef} have changed. Restore a backup.`, {
      data: { artifactRef },
    });
  }

  async list(scope: Scope, limit: number): Promise<{ rows: readonly ArtifactRow[]; total: number }> {
    assertCounts({ limit });
    const key = ownedBy(scope);
    return this.#access.read(() => {
      const rows = this.#rows().all<ListedRow>(key, limit);
      const total =
        rows.length < limit
          ? rows.length
          : Number(this.#count().get(key, Math.max(limit, MOST_ARTIFACTS_COUNTED))?.['rows']);
      return { rows: rows.map(rowOf), total };
    });
  }

  async erase(owner: Pick<Scope, 'tenant' | 'user'>): Promise<number> {
    let erased = 0;
    for (;;) {
      const { count, isLast } = await this.#access.write(() => this.#drops.ofOwner(owner));
      erased += count;
      if (isLast) return erased;
    }
  }
}

function rowOf({ ref, mime, size, file_name: fileName, source, created_at: createdAt }: ListedRow): ArtifactRow {
  return { artifactRef: ref, mime, sizeBytes: size, source, createdAt, ...(fileName === null ? {} : { fileName }) };
}
