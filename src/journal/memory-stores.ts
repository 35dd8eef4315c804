/** Artifacts, and snapshots of runs, in the memory of this process. */
import { type ArtifactRef, type ArtifactRow, MOST_ARTIFACTS_COUNTED, type Scope } from '#core';
import type { ArtifactAbout, ArtifactStore, NewSnapshot, SnapshotStore, StoredSnapshot } from './port.ts';
import { artifactDigest, assertCounts, assertSameContent, ownedBy, ownerKey } from './rules.ts';

interface StoredArtifact {
  readonly bytes: Uint8Array;
  readonly sha256: string;
  readonly row: ArtifactRow;
}

/** How the journal lends its state: open or not, and the time. */
interface Access {
  readonly assertOpen: () => void;
  readonly now: () => number;
}

export class MemoryArtifacts implements ArtifactStore {
  readonly #access: Access;
  readonly #scopes = new Map<string, Map<string, StoredArtifact>>();

  constructor(access: Access) {
    this.#access = access;
  }

  async put(scope: Scope, bytes: Uint8Array, about: ArtifactAbout): Promise<ArtifactRef> {
    this.#access.assertOpen();
    const key = ownedBy(scope);
    const digest = artifactDigest(bytes);
    const { artifactRef, sha256 } = digest;
    const artifacts = this.#scopes.get(key) ?? new Map<string, StoredArtifact>();
    this.#scopes.set(key, artifacts);
    const found = artifacts.get(artifactRef);
    if (found !== undefined) assertSameContent(digest, found.sha256);
    const { mime, fileName, source = 'unknown' } = about;
    const stored = found ?? {
      bytes: new Uint8Array(bytes),
      sha256,
      row: Object.freeze({
        artifactRef,
        mime,
        sizeBytes: bytes.byteLength,
        source,
        createdAt: Math.floor(this.#access.now()),
        ...(fileName === undefined ? {} : { fileName }),
      }),
    };
    artifacts.set(artifactRef, stored);
    return { artifactRef, mime: stored.row.mime, sizeBytes: stored.row.sizeBytes };
  }

  async get(scope: Scope, artifactRef: string): Promise<{ bytes: Uint8Array; mime: string } | undefined> {
    this.#access.assertOpen();
    const stored = this.#scopes.get(ownedBy(scope))?.get(artifactRef);
    return stored && { bytes: new Uint8Array(stored.bytes), mime: stored.row.mime };
  }

  async list(scope: Scope, limit: number): Promise<{ rows: readonly ArtifactRow[]; total: number }> {
    this.#access.assertOpen();
    assertCounts({ limit });
    if (this.#scopes.size === 0) return { rows: [], total: 0 };
    const stored = [...(this.#scopes.get(ownedBy(scope))?.values() ?? [])];
    const rows = stored.map(({ row }) => row).sort(newestFirst);
    const counted = Math.max(limit, MOST_ARTIFACTS_COUNTED);
    return { rows: rows.slice(0, limit), total: Math.min(rows.length, counted) };
  }

  /** @param before given: what is younger stays. */
  delete(scope: Scope, before: number = Number.POSITIVE_INFINITY): void {
    const key = ownedBy(scope);
    const artifacts = this.#scopes.get(key);
    for (const [ref, { row }] of artifacts ?? []) if (row.createdAt <= before) artifacts?.delete(ref);
    if (artifacts?.size === 0) this.#scopes.delete(key);
  }

  async erase(owner: Pick<Scope, 'tenant' | 'user'>): Promise<number> {
    this.#access.assertOpen();
    let count = 0;
    for (const [key, artifacts] of this.#scopes) {
      if (!isOf(key, owner)) continue;
      count += artifacts.size;
      this.#scopes.delete(key);
    }
    return count;
  }
}

/** Whether the key of a scope is that of a session of this user. */
function isOf(key: string, { tenant, user }: Pick<Scope, 'tenant' | 'user'>): boolean {
  return key.startsWith(ownerKey({ tenant, user }));
}

function newestFirst(one: ArtifactRow, other: ArtifactRow): number {
  return other.createdAt - one.createdAt || (one.artifactRef < other.artifactRef ? -1 : 1);
}

/** Bytes are copied on the way in and out, as with any other store. */
export class MemorySnapshots implements SnapshotStore {
  readonly #fenceOf: (run: string) => number;
  readonly #newest = new Map<string, StoredSnapshot & Pick<NewSnapshot, 'version'>>();

  /** @param fenceOf throws `run_not_found`, or that the journal is closed. */
  constructor(fenceOf: (run: string) => number) {
    this.#fenceOf = fenceOf;
  }

  async newest(run: string, version: number): Promise<StoredSnapshot | undefined> {
    this.#fenceOf(run);
    const stored = this.#newest.get(run);
    if (stored?.version !== version) return undefined;
    const { head, body, blocks } = stored;
    return { head, body: body.slice(), blocks: blocks.map((block) => block.slice()) };
  }

  async keep({ run, fence, version, head, body, from, blocks }: NewSnapshot): Promise<boolean> {
    if (this.#fenceOf(run) !== fence) return false;
    const stored = this.#newest.get(run);
    const before = stored?.version === version ? stored : undefined;
    if (before !== undefined && before.head >= head) return false;
    const earlier = before?.blocks.slice(0, from) ?? [];
    if (earlier.length < from) return false;
    this.#newest.set(run, {
      version,
      head,
      body: body.slice(),
      blocks: [...earlier, ...blocks.map((block) => block.slice())],
    });
    return true;
  }

  async forget(run: string): Promise<void> {
    this.#fenceOf(run);
    this.drop(run);
  }

  drop(run: string): void {
    this.#newest.delete(run);
  }
}
