/**
 * Brings the write-ahead log onto the disk. SQLite would do it in each commit (`synchronous = FULL`), and the event loop would stand still for as long as
 * a slow disk takes. Here a commit is made without it. Whoever wrote is told after it, and so is whoever has read what may not be on the disk yet: a loss of
 * power takes nothing of which somebody was told.
 */
// Called by its name on the module, so that a test can put a slow or a broken disk in its place.
import fs from 'node:fs';
import type { PreparedStatement } from './statements.ts';

/** A disk that takes no longer is waited for at once: to wait beside the event loop for such a disk makes many runs a third slower. */
const QUICK_MS = 2;
/** A disk that was slow may be fast again: it is tried so often. */
const TRY_AGAIN_MS = 1_000;

export class LogSync {
  readonly #path: string;
  /** Changes when another connection has committed. */
  readonly #dataVersion: PreparedStatement;
  readonly #onFailure: (error: unknown) => never;
  #log: number | undefined;
  /** How many changes of the file are known, and how many of them are on the disk. What was there before is the first. */
  #changes = 1;
  #synced = 0;
  #versionSeen: unknown;
  /** How long the disk took when it was last waited for at once, and when that was, by the monotonic clock. */
  #tookMs = 0;
  #triedAt = Number.NEGATIVE_INFINITY;
  #underWay: Promise<void> | undefined;

  /** @param onFailure throws what all get who use the journal after the disk has failed: what it has kept since the last time, nobody can know. */
  constructor(path: string, dataVersion: PreparedStatement, onFailure: (error: unknown) => never) {
    this.#path = path;
    this.#dataVersion = dataVersion;
    this.#onFailure = onFailure;
  }

  /** This connection has committed. */
  committed(): void {
    this.#changes += 1;
  }

  /** In the transaction of a read: it sees what others have committed. */
  look(): void {
    const version = this.#dataVersion().get()?.['data_version'];
    if (version === this.#versionSeen) return;
    this.#versionSeen = version;
    this.#changes += 1;
  }

  /** Whether the disk is so fast that it need not be waited for beside the event loop. */
  get isQuick(): boolean {
    return this.#tookMs < QUICK_MS || performance.now() - this.#triedAt > TRY_AGAIN_MS;
  }

  /** Brings all onto the disk at once. The event loop stands still meanwhile, which is the fastest way for one who is alone. */
  now(): void {
    const before = performance.now();
    try {
      const log = this.#open();
      if (log !== undefined) fs.fdatasyncSync(log);
    } catch (error) {
      this.#onFailure(error);
    }
    this.#triedAt = performance.now();
    this.#tookMs = this.#triedAt - before;
    this.#synced = this.#changes;
  }

  /** Resolves when all that is committed or was seen now is on the disk. `undefined`: it is. */
  soon(): Promise<void> | undefined {
    return this.#synced === this.#changes ? undefined : this.#until(this.#changes);
  }

  async close(): Promise<void> {
    await this.#underWay?.catch(() => {});
    if (this.#log !== undefined) fs.closeSync(this.#log);
  }

  async #until(change: number): Promise<void> {
    while (this.#synced < change) {
      this.#underWay ??= this.#begin().finally(() => {
        this.#underWay = undefined;
      });
      await this.#underWay;
    }
  }

  async #begin(): Promise<void> {
    const change = this.#changes;
    try {
      const log = this.#open();
      if (log !== undefined) await synced(log);
    } catch (error) {
      this.#onFailure(error);
    }
    this.#synced = Math.max(this.#synced, change);
  }

  /** `undefined`: there is no log, and nothing is in it. */
  #open(): number | undefined {
    if (this.#log !== undefined) return this.#log;
    if (!fs.existsSync(this.#path)) return undefined;
    // SQLite has no locks on the log, which another descriptor of the file would take away when it is closed.
    this.#log = fs.openSync(this.#path, 'r+');
    return this.#log;
  }
}

function synced(log: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.fdatasync(log, (error) => (error === null ? resolve() : reject(error)));
  });
}
