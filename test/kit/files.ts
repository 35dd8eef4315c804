/** Files of a test, which are removed after it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'journal.db');
}
