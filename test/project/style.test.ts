import { describe, expect, it } from 'vitest';
import { runCheck, smallProject } from '../kit/project.ts';

describe('the style check', () => {
  it.each([
    [
      'a source file over 600 lines',
      'src/core/planted.ts',
      'export {};\n'.repeat(601),
      'src/core/planted.ts has 601 lines',
    ],
    [
      'a star export outside an index file',
      'src/core/planted.ts',
      "export * from './index.ts';\n",
      'outside an index file',
    ],
    [
      'a marker for unfinished work',
      'test/planted.ts',
      '\n// TODO later\n',
      'test/planted.ts:2 leaves unfinished work',
    ],
    [
      'what a merge left behind',
      'src/state/planted.ts.orig',
      'export {};\n',
      'src/state/planted.ts.orig was left over',
    ],
    ['a part of a patch that did not fit', 'docs/planted.md.rej', '', 'docs/planted.md.rej was left over'],
  ])('refuses %s', (_what, path, text, problem) => {
    using copy = smallProject();
    copy.write(path, text);
    const { status, stdout } = runCheck('check-style.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout).toContain(problem);
  });

  it('fails when there is nothing to read', () => {
    using copy = smallProject();
    const { status, stdout } = runCheck('check-style.ts', `${copy.dir}/src`);
    expect(status).toBe(1);
    expect(stdout).toContain('No source file was read');
  });
});
