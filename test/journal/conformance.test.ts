import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { journalConformance } from '#testing';

describe('memory journal', () => {
  for (const check of journalConformance({ open: (clock) => memoryJournal({ clock }) })) it(check.name, check.run);
});

describe('SQLite journal', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  for (const check of journalConformance({
    open: (clock, store) => sqliteJournal({ path: join(folder, store, 'journal.db'), clock, watchIntervalMs: 5 }),
    durable: true,
  })) {
    it(check.name, check.run);
  }
});
