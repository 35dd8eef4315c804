import { describe, expect, it } from 'vitest';
import { doorUrl } from '../kit/project.ts';
import { loadedBy, packagesOf } from './loaded.ts';

describe('importing a part of the package', () => {
  it('loads the reader of HDDL for those alone who ask for it', () => {
    const isHddl = (url: string): boolean => url.includes('/hddl/');
    expect(loadedBy(doorUrl('#planners/htn')).filter(isHddl)).toEqual([]);
    expect(loadedBy(doorUrl('#planners/htn/hddl')).some(isHddl)).toBe(true);
  });

  it.each([
    ['an import', doorUrl('#testing'), 'node:http'],
    ['a call', "data:text/javascript,process.getBuiltinModule('node:sqlite')", 'node:sqlite'],
    ['a package', doorUrl('#model/openai-compatible'), '@ai-sdk/openai-compatible'],
  ])('would see it: %s', (_what, url, expected) => {
    const loaded = loadedBy(url);
    expect([...loaded, ...packagesOf(loaded)]).toContain(expected);
  });
});
