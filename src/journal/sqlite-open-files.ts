/**
 * Which files this process has open through SQLite. To close any other descriptor of such a file takes away the locks that
 * SQLite has on it (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_):
 * another process would take itself for the last one, and delete the log that this one still writes.
 */
import { realpathSync, type Stats, statSync } from 'node:fs';

const open = new Map<string, number>();

/** What tells a file from every other as long as somebody has it open. */
export function idOf(stats: Pick<Stats, 'dev' | 'ino'> | undefined): string | undefined {
  return stats && `${stats.dev}:${stats.ino}`;
}

/** @returns how to say that it was closed. */
export function noteOpen(id: string): () => void {
  open.set(id, (open.get(id) ?? 0) + 1);
  return () => {
    const left = (open.get(id) ?? 1) - 1;
    if (left === 0) open.delete(id);
    else open.set(id, left);
  };
}

export function isOpenHere(path: string): boolean {
  const id = idOf(statSync(path, { throwIfNoEntry: false }));
  return id !== undefined && open.has(id);
}

/** Where the file is that the path names: SQLite keeps the log and the index there, not beside a symbolic link to it. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
