/**
 * A snapshot of a run's state is good as long as the same code would fold the entries to the same state. Which code that is, nobody can tell at
 * run time: a bundle has other files than the sources. So the version is a number, and this test knows the sources that it stands for.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { FOLD_VERSION } from '#state';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));

/** The sources that decide what a state is: the fold with all that it takes from its room, and the shapes and sums that it has from `core`. */
const BEGIN = ['state/fold.ts', 'state/stored-state.ts', 'state/state.ts'];
const OF_CORE = ['entry', 'compaction', 'step', 'decision', 'control', 'outcome', 'limits', 'task', 'context'];

/** Set both when a state that is folded today may differ from one that was stored before. When it cannot, set the digest alone. */
const VERSION = 9;
const DIGEST = 'ee4c0c31e027d6fd';

it('the version of the fold is raised when what it depends on has changed', () => {
  const digest = digestOf(sources());
  expect(
    [FOLD_VERSION, digest],
    'The fold has changed: raise FOLD_VERSION in src/state/stored-state.ts, and set VERSION and DIGEST here. A change that leaves every folded ' +
      'state as it is (a name, a type, a rule of what is refused) needs the digest alone.',
  ).toEqual([VERSION, DIGEST]);
});

function sources(): readonly string[] {
  const found = new Set<string>();
  const visit = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    for (const [, from] of readFileSync(path, 'utf8').matchAll(/from '(\.[^']+)'/g)) {
      visit(resolve(dirname(path), from as string));
    }
  };
  for (const file of BEGIN) visit(join(SRC, file));
  for (const name of OF_CORE) found.add(join(SRC, 'core', `${name}.ts`));
  return [...found].sort();
}

/** Comments and the way a source is broken into lines do not count. */
function digestOf(paths: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of paths) {
    const code = readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    hash.update(`${relative(SRC, path)}\n${code.replaceAll(/\s+/g, '')}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}
