/** A run that several processes carry out, each killed at another moment, is one trace all the same. */
import { describe, expect, it } from 'vitest';
import { partSpanId, runSpanId } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { foldEntries } from '#state';
import { builtFile } from '../kit/built.ts';
import { temporaryFile } from '../kit/files.ts';
import { live } from '../kit/lives.ts';

interface Told {
  readonly span?: string;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parent?: string;
  readonly made?: string;
  readonly status?: string;
}

const program = builtFile('test/telemetry/traced-child.ts');

describe('processes that are killed', () => {
  it.each([1, 2, 3, 4, 6, 8])('at every %dth line', async (every) => {
    const folder = temporaryFile();
    const told: Told[] = [];
    let lives = 0;
    for (; lives < 40 && !told.some(({ status }) => status !== undefined); lives += 1) {
      let heard = 0;
      const isEnough = (): boolean => {
        heard += 1;
        // The last ones live longer, so that the run comes to its end.
        return heard === every + Math.floor(lives / 4);
      };
      const { lines } = await live({ program, folder, args: ['traced'], isEnough, delayMs: 0 });
      told.push(...lines.map((line) => JSON.parse(line) as Told));
    }
    expect(told.at(-1)).toEqual({ status: 'finished' });
    const spans = told.filter(({ span }) => span !== undefined);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    // Nothing twice: what was written has its span from the process that wrote it. A process that dies between a commit and the export
    // takes that one with it.
    const ids = spans.map(({ spanId }) => spanId ?? '');
    expect(new Set(ids).size).toBe(ids.length);
    const recorded = await recordedIn(folder, ['traced', 'traced.1.0']);
    expect(recorded).toEqual(expect.arrayContaining(ids));
    expect(recorded.length - ids.length).toBeLessThanOrEqual(lives);
    // Each hangs on one that the journal has.
    expect(recorded).toEqual(expect.arrayContaining(spans.flatMap(({ parent }) => parent ?? [])));
    const own = spans.filter(({ span }) => span === 'invoke_agent function');
    expect(own.length).toBeLessThanOrEqual(1);
    expect(own.every(({ parent }) => parent === undefined)).toBe(true);
  });
});

/** The ids of all spans that the journals of these runs ask for. */
async function recordedIn(path: string, runs: readonly string[]): Promise<readonly string[]> {
  const journal = sqliteJournal({ path });
  const found: string[] = [];
  for (const run of runs) {
    const entries = await journal.read(run);
    for (const entry of entries) {
      if (entry.kind === 'moved') found.push(partSpanId(run, { step: entry.step }));
      if (entry.kind === 'call_ended') found.push(partSpanId(run, entry));
      if (entry.kind === 'finished') found.push(runSpanId(foldEntries(entries)));
    }
  }
  await journal.close();
  return found;
}
