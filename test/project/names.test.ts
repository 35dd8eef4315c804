/** One name, one meaning: what `src` exports under a name is declared in one file. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { sourceFiles } from '../../scripts/source-files.ts';

const DECLARED = /^export (?:declare |abstract |async )*(?:class|function\*?|interface|type|const|let) (\w+)/gm;

/** Names that more than one file declares for others, with those files. */
function twinsIn(files: ReadonlyMap<string, string>): string[] {
  const places = new Map<string, Set<string>>();
  for (const [path, text] of files) {
    for (const [, name = ''] of text.matchAll(DECLARED)) {
      places.set(name, (places.get(name) ?? new Set()).add(path));
    }
  }
  return [...places].flatMap(([name, paths]) => (paths.size > 1 ? [`${name}: ${[...paths].join(', ')}`] : []));
}

it('no two files export the same name for different things', () => {
  const sources = sourceFiles('src');
  expect(sources.length).toBeGreaterThan(200);
  expect(twinsIn(new Map(sources.map((path) => [path, readFileSync(path, 'utf8')])))).toEqual([]);
});

it('finds a type and a function of one name, and takes overloads and re-exports for none', () => {
  const files = new Map([
    [
      'a.ts',
      'export function one(a: string): string;\nexport function one(a: unknown): unknown {}\nexport type Two = 1;',
    ],
    ['b.ts', "export { one } from './a.ts';\nexport async function Two() {}\n"],
  ]);
  expect(twinsIn(files)).toEqual(['Two: a.ts, b.ts']);
});
