/** The table of docs/compared.md says of our programs how many lines they have, and of none that it has more than half of those of others. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { linesOfCode } from '../../bench/lines.ts';
import { projectDir } from '../kit/project.ts';

const page = readFileSync(join(projectDir, 'docs/compared.md'), 'utf8');
const rows = page.matchAll(/^\| .* \| .*, \[\d\] \| (\d+) \| \[(\S+)\]\(\S+\) \| (\d+) \| (\S+) \|$/gm);
const compared = Array.from(rows, ([, theirs, example = '', ours, ratio]) => ({ theirs, example, ours, ratio }));

describe('docs/compared.md', () => {
  it('compares eight programs', () => {
    expect(new Set(compared.map(({ example }) => example)).size).toBe(8);
  });

  it.each(compared)('counts the lines of $example', ({ theirs, example, ours, ratio }) => {
    expect(linesOfCode(join(projectDir, 'examples', example))).toBe(Number(ours));
    expect((Number(ours) / Number(theirs)).toFixed(2)).toBe(ratio);
    expect(Number(ratio)).toBeLessThanOrEqual(0.5);
  });
});
