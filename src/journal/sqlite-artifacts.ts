/** Artifacts in the journal's file: one row for the same bytes in the same scope. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ArtifactRef } from '../core/artifact.ts';
import { PilotageError } from '../core/errors.ts';
import type { Scope } from '../core/identity.ts';
import { artifactScope, assertSameContent, digestOf } from './artifact-id.ts';
import type { ArtifactStore } from './port.ts';

interface ArtifactRow {
  readonly sha256: string;
  readonly mime: string;
}

/** How the journal lets statements run: open files only, SQLite's errors typed. */
export interface StoreAccess {
  read<T>(run: () => T): T;
  write<T>(run: () => T): Promise<T>;
}

export class SqliteArtifacts implements ArtifactStore {
  readonly #access: StoreAccess;
  readonly #find: StatementSync;
  readonly #bytes: StatementSync;
  readonly #insert: StatementSync;

  constructor(db: DatabaseSync, access: StoreAccess) {
    this.#access = access;
    this.#find = db.prepare('SELECT sha256, mime FROM artifacts WHERE scope = ? AND ref = ?');
    this.#bytes = db.prepare('SELECT bytes, sha256, mime FROM artifacts WHERE scope = ? AND ref = ?');
    this.#insert = db.prepare('INSERT INTO artifacts (scope, ref, sha256, mime, bytes) VALUES (?, ?, ?, ?, ?)');
  }

  async put(scope: Scope, bytes: Uint8Array, mime: string): Promise<ArtifactRef> {
    const key = artifactScope(scope);
    const copy = new Uint8Array(bytes);
    const digest = digestOf(copy);
    const { artifactRef, sha256 } = digest;
    return this.#access.write(() => {
      const stored = this.#find.get(key, artifactRef) as ArtifactRow | undefined;
      if (stored !== undefined) assertSameContent(digest, stored.sha256);
      else this.#insert.run(key, artifactRef, sha256, mime, copy);
      return { artifactRef, mime: stored?.mime ?? mime, sizeBytes: copy.byteLength };
    });
  }

  async get(scope: Scope, artifactRef: string): Promise<{ bytes: Uint8Array; mime: string } | undefined> {
    const key = artifactScope(scope);
    const row = this.#access.read(() => this.#bytes.get(key, artifactRef)) as
      | (ArtifactRow & { readonly bytes: Uint8Array })
      | undefined;
    if (row === undefined) return undefined;
    if (digestOf(row.bytes).sha256 === row.sha256) return { bytes: row.bytes, mime: row.mime };
    throw new PilotageError('journal_corrupt', `The bytes of ${artifactRef} have changed. Restore a backup.`, {
      data: { artifactRef },
    });
  }
}
