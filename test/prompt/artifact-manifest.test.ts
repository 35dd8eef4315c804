import { describe, expect, it } from 'vitest';
import type { ArtifactRow } from '#core';
import { artifactLines } from '#prompt';

const row = (artifactRef: string, createdAt: number, more: Partial<ArtifactRow> = {}): ArtifactRow => ({
  artifactRef,
  mime: 'text/plain',
  sizeBytes: 7,
  source: 'user',
  createdAt,
  ...more,
});
const refs = (lines: readonly string[]) => lines.map((line) => line.split(' ')[1]);

describe('the list of stored values', () => {
  it('MM-14 has the newest first, ties by reference; nothing in, nothing out', () => {
    const rows = [row('b', 1), row('d', 2), row('c', 2), row('a', 1)];
    expect(refs(artifactLines(rows))).toEqual(['c', 'd', 'a', 'b']);
    expect(artifactLines([])).toEqual([]);
  });

  it('MM-16, MM-17 a row names reference, file, type, size and source', () => {
    const rows = [
      row('art_1', 2, { fileName: 'a.csv', mime: 'text/csv', sizeBytes: 12, source: 'tool: export' }),
      row('art_2', 1, { mime: ' ', source: '' }),
    ];
    expect(artifactLines(rows)).toEqual([
      '- art_1 | a.csv | text/csv | 12 bytes | tool: export',
      '- art_2 | no file name | application/octet-stream | 7 bytes | unknown',
    ]);
  });

  it('MM-17 of 25 it shows 20 and says that there are 5 more; those that were not loaded count too', () => {
    const rows = Array.from({ length: 25 }, (_, index) => row(`art_${index}`, index));
    const lines = artifactLines(rows);
    expect(lines).toHaveLength(21);
    expect([lines[0]?.split(' ')[1], lines[19]?.split(' ')[1], lines[20]]).toEqual(['art_24', 'art_5', '+5 more']);
    expect(artifactLines(rows.slice(0, 20), 5).at(-1)).toBe('+5 more');
    expect(artifactLines(rows, 3).at(-1)).toBe('+8 more');
    expect(artifactLines(rows.slice(0, 20), 979).at(-1)).toBe('+979 more');
    expect(artifactLines(rows.slice(0, 20), 980).at(-1)).toBe('+980 or more');
    expect(artifactLines(rows.slice(0, 20))).toHaveLength(20);
  });

  it('a name from outside stays on its line', () => {
    const [line = ''] = artifactLines([row('art_1', 1, { fileName: `a\n- art_2 | b\u2028${'x'.repeat(500)}` })]);
    expect(line).toMatch(/^[^\n\u2028]+$/);
    expect(line.length).toBeLessThan(300);
  });
});
