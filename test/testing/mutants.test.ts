import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MUTANTS } from '../../scripts/mutants/all.ts';

const sources = join(dirname(dirname(import.meta.dirname)), 'src');

/** How often what a fault replaces stands in its file. */
function timesFound(file: string, find: string): number {
  return readFileSync(join(sources, file), 'utf8').split(find).length - 1;
}

describe('the known faults of npm run simulate:mutants', () => {
  it('each have their place exactly once in the sources', () => {
    const astray = MUTANTS.filter(({ file, find }) => timesFound(file, find) !== 1);
    expect(astray.map(({ name, file }) => `${name}: src/${file}`)).toEqual([]);
  });

  it('each change something, and each have a name of their own', () => {
    expect(MUTANTS.filter(({ find, replace }) => find === replace)).toEqual([]);
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  });
});
