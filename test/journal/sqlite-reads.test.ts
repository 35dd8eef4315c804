/** What is read from a file is there at once: whoever reads much must still let others have their turn. */
import { describe, expect, it } from 'vitest';
import { createClaimed } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal } from '../kit/sqlite.ts';

/** Far more than the event loop is kept for, on any machine. */
const MANY = 20_000;

describe('reads that follow one another', () => {
  it('leave the event loop to others now and then', async () => {
    const journal = openJournal(temporaryFile());
    await createClaimed(journal, 'run_1');
    // What was written is on the disk from here on: no read waits for that.
    await journal.get('run_1');
    let reads = 0;
    let hadTurn = false;
    setImmediate(() => {
      hadTurn = true;
    });
    while (!hadTurn && reads < MANY) {
      await journal.get('run_1');
      reads += 1;
    }
    expect(hadTurn).toBe(true);
    // Few reads go on at once, as before.
    expect(reads).toBeGreaterThan(1);
  });

  it('also those that were asked for together', async () => {
    const journal = openJournal(temporaryFile());
    await createClaimed(journal, 'run_1');
    await journal.get('run_1');
    let left = MANY;
    let leftAtTurn: number | undefined;
    const reads = Array.from({ length: MANY }, async () => {
      await journal.get('run_1');
      left -= 1;
    });
    setImmediate(() => {
      leftAtTurn = left;
    });
    await Promise.all(reads);
    expect(leftAtTurn).toBeGreaterThan(0);
  });
});
