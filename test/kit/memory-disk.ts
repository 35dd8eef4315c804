/**
 * Gives the tests a temporary folder in memory, where the system has one with room: most of their time would be waiting for
 * a disk. A process that is killed leaves the same there. What a real disk does with it is seen by the tests of journals in files, which have one (`vitest.config.ts`).
 */
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

const MEMORY_DISK = '/dev/shm';
const ROOM_BYTES = 2 ** 30;

export default function useMemoryDisk(): (() => void) | undefined {
  if (process.env['TMPDIR'] !== undefined || !hasRoom()) return undefined;
  const folder = mkdtempSync(join(MEMORY_DISK, 'pilotage-tests-'));
  // Open to all users, as the folder in whose place it stands.
  chmodSync(folder, 0o1777);
  process.env['TMPDIR'] = folder;
  return () => {
    delete process.env['TMPDIR'];
    rmSync(folder, { recursive: true, force: true });
  };
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DISK);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    // Other systems than Linux have none.
    return false;
  }
}
