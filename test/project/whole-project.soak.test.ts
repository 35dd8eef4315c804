/** The project's own checks, on all of it. What each of them finds is shown on small projects, in `imports.test.ts` and `style.test.ts`. */
import { describe, expect, it } from 'vitest';
import { projectCopy, projectDir, runCheck } from '../kit/project.ts';

describe('the import check', () => {
  it('PC-04 passes on this project', () => {
    const { status, stdout, stderr } = runCheck('check-imports.ts', projectDir);
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: expect.stringContaining(' 0 problems'),
      stderr: '',
    });
  });

  it('PC-04 refuses one crossing planted in a copy of this project', () => {
    using copy = projectCopy();
    copy.write('src/planners/react/planted.ts', "import type { Json } from '#core';\nimport '#journal';");
    const { status, stdout } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout).toContain('src/planners/react/planted.ts:2 imports #journal: planners/react may import core, model');
  });
});

describe('the style check', () => {
  it('passes on this project and prints the numbers', () => {
    const { status, stdout } = runCheck('check-style.ts', projectDir);
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^\d+ source files; lines: median \d+ .*\n$/),
    });
  });
});
