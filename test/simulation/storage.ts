/** What the processes of a history share: a journal in memory, or one SQLite file with a connection for each worker. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '#core';
import { type Journal, memoryJournal, openDatabase } from '#journal';
import { SqliteJournal, sqliteJournal } from '#journal/sqlite';

/** What befalls the disk under one worker: it is full, or it cannot be written any more. */
export type DiskTrouble = 'full' | 'read_only';

export interface Storage {
  /** For those who look from outside. */
  readonly journal: Journal;
  /** What was asked for first is there first, whoever asked. */
  readonly isInOrder: boolean;
  /** The journal as the processes of this worker reach it. */
  of(worker: number): Journal;
  /** False where no disk is: then nothing changes. */
  setDisk(worker: number, trouble: DiskTrouble | undefined): boolean;
  close(): Promise<void>;
}

/** @param clock judges leases and waits. */
export function openStorage(kind: 'memory' | 'sqlite', workers: number, clock: Clock): Storage {
  return kind === 'memory' ? inMemory(clock) : onDisk(workers, clock);
}

function inMemory(clock: Clock): Storage {
  const journal = memoryJournal({ clock });
  return { journal, isInOrder: true, of: () => journal, setDisk: () => false, close: () => journal.close() };
}

function onDisk(workers: number, clock: Clock): Storage {
  const folder = mkdtempSync(join(existsSync(MEMORY_DISK) ? MEMORY_DISK : tmpdir(), 'pilotage-simulation-'));
  const path = join(folder, 'journal.db');
  writeFileSync(path, emptyFile(folder));
  const open = (): { db: ReturnType<typeof openDatabase>; journal: Journal } => {
    const db = openDatabase({ path });
    // What it says of itself is the same in every history.
    return { db, journal: new SqliteJournal(db, { path: 'journal.db', synchronous: 'normal', clock }) };
  };
  const outside = open();
  const connections = Array.from({ length: workers }, open);
  const troubles = new Map<number, DiskTrouble | undefined>();
  return {
    journal: outside.journal,
    isInOrder: false,
    of: (worker) => connections[worker]?.journal ?? outside.journal,
    setDisk: (worker, trouble) => {
      // Such a pragma makes SQLite prepare all statements anew.
      if (troubles.get(worker) !== trouble) connections[worker]?.db.exec(TROUBLES[trouble ?? 'none']);
      troubles.set(worker, trouble);
      return true;
    },
    close: async () => {
      for (const { journal } of [outside, ...connections]) await journal.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Where files stand that never reach a disk. */
const MEMORY_DISK = '/dev/shm';

const TROUBLES: Readonly<Record<DiskTrouble | 'none', string>> = {
  // A limit below what is there stands for no page more than is there.
  full: 'PRAGMA max_page_count = 1',
  read_only: 'PRAGMA query_only = ON',
  none: 'PRAGMA max_page_count = 1073741823; PRAGMA query_only = OFF',
};

let empty: Buffer | undefined;

/** A new journal's file: making it takes as long as playing a history. */
function emptyFile(folder: string): Buffer {
  if (empty !== undefined) return empty;
  const path = join(folder, 'empty.db');
  void sqliteJournal({ path, synchronous: 'normal' }).close();
  empty = readFileSync(path);
  return empty;
}
