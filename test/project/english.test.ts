/** Messages and comments are for people who have not written the code. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectDir } from '../kit/project.ts';

/** Turns without a subject, or whose noun the reader has to guess. */
const TURNS = /(?:\/\*\*|\/\/|^ *\*) Of |\b(?:is|are) none\b|\bis no [a-z]|\bOne that /;
/** "There is no such tool" and "is no longer open" are plain English. */
const PLAIN = /\bthere (?:is|are) (?:no|none)\b|\bis no longer\b/gi;
/** What models are taught stays as it was measured. */
const TAUGHT = ['It is no new request:'];

it('no message and no comment of the source says "Of the …", "One that …", "is none" or "is no …"', () => {
  const src = join(projectDir, 'src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((path) =>
    readFileSync(join(src, path), 'utf8')
      .split('\n')
      .filter((line) => TURNS.test(line.replace(PLAIN, '')) && !TAUGHT.some((text) => line.includes(text)))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
});
