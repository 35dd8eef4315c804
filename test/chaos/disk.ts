/** A small disk that can be filled to the last byte. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const SIZE = '48m';
const PIECES_BYTES = [1 << 20, 1 << 12] as const;

/** Set in a process that may mount, because it has a mount namespace of its own. */
export const ROOM_MARK = 'PILOTAGE_CHAOS_MAY_MOUNT';
/** How to run a program so that it may mount; what it mounts is gone when it ends. Users may do so on most Linux machines. */
export const IN_A_ROOM: readonly string[] = ['unshare', '--map-root-user', '--mount'];

export function mayHaveRoom(): boolean {
  const [command = '', ...args] = IN_A_ROOM;
  return process.platform === 'linux' && spawnSync(command, [...args, 'true']).status === 0;
}

export interface Disk {
  readonly folder: string;
  /** Whatever is written to it from now on fails with ENOSPC. */
  readonly fill: (() => void) | undefined;
  free(): void;
  remove(): void;
}

/** Of a process that may mount, a file system of its own; of others a folder that cannot be filled. */
export function disk(folder: string): Disk {
  mkdirSync(folder);
  const ballast = join(folder, 'ballast');
  const free = (): void => rmSync(ballast, { force: true });
  if (process.env[ROOM_MARK] === undefined) return { folder, fill: undefined, free, remove: () => {} };
  const run = (...command: readonly [string, ...string[]]): void => {
    const [program, ...args] = command;
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${command.join(' ')} failed: ${stderr}`);
  };
  run('mount', '-t', 'tmpfs', '-o', `size=${SIZE}`, 'pilotage-chaos', folder);
  return { folder, fill: () => fill(ballast), free, remove: () => run('umount', '--lazy', folder) };
}

function fill(ballast: string): void {
  const file = openSync(ballast, 'a');
  for (const bytes of PIECES_BYTES) {
    const piece = Buffer.alloc(bytes);
    try {
      while (writeSync(file, piece) === bytes);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOSPC') throw error;
    }
  }
  closeSync(file);
}
