import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectCopy, projectDir, runCheck, smallProject } from './scratch.ts';

/** Plants one file in a small project and says what the check found wrong with it. */
function checkWith(path: string, text: string): string[] {
  using copy = smallProject();
  copy.write(path, text);
  const { status, stdout } = runCheck('check-imports.ts', copy.dir);
  const problems = stdout.split('\n').slice(0, -2);
  expect(status).toBe(problems.length > 0 ? 1 : 0);
  return problems;
}

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
    copy.write(
      'src/planners/react/planted.ts',
      "import type { Json } from '../../core/json.ts';\nimport '../../journal/port.ts';",
    );
    const { status, stdout } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout).toContain(
      'src/planners/react/planted.ts:2 imports ../../journal/port.ts: planners may import core, model',
    );
  });

  it.each([
    ['a planner that imports the runtime', 'src/planners/planted.ts', "import '../runtime/index.ts';"],
    [
      'a planner that imports only its types',
      'src/planners/planted.ts',
      "import type { A } from '../runtime/index.ts';",
    ],
    [
      'a planner that imports it later',
      'src/planners/planted.ts',
      "export const a = () => import('../journal/index.ts');",
    ],
    [
      'a planner that names its type in place',
      'src/planners/planted.ts',
      "export type A = import('../tools/index.ts').Tool;",
    ],
    ['a planner that passes it on', 'src/planners/planted.ts', "export * from '../tools/index.ts';"],
    [
      'a plain planner that imports the model',
      'src/planners/deterministic/planted.ts',
      "import '../../model/index.ts';",
    ],
    ['a plain planner that imports ReAct', 'src/planners/htn/planted.ts', "import '../react/index.ts';"],
    ['the core importing a room', 'src/core/planted.ts', "import '../journal/index.ts';"],
    ['the core importing a package', 'src/core/planted.ts', "import 'ajv';"],
    [
      'the prompt importing more than types of the model',
      'src/prompt/planted.ts',
      "import { type A } from '../model/index.ts';",
    ],
    ['a room importing the whole package', 'src/view/planted.ts', "import '../index.ts';"],
    ['a folder that is no room', 'src/helpers/planted.ts', "import '../core/index.ts';"],
    ['the sources importing a test', 'src/testing/planted.ts', "import '../../test/index.ts';"],
    ['a package of development only', 'src/runtime/planted.ts', "import 'vitest';"],
    ['SQLite outside its store', 'src/runtime/planted.ts', "import 'node:sqlite';"],
    ['SQLite outside its store, by a call', 'src/cli/planted.ts', "process.getBuiltinModule('node:sqlite');"],
    ['a vendor outside its own file', 'src/model/planted.ts', "import '@ai-sdk/openai-compatible';"],
    ['a file that does not exist', 'src/core/planted.ts', "import './nowhere.ts';"],
    ['a package that is not declared', 'test/planted.ts', "import 'left-pad';"],
  ])('PC-04 refuses %s', (_what, path, text) => {
    expect(checkWith(path, text)).toEqual([expect.stringContaining(`${path}:1 imports `)]);
  });

  it.each([
    ['types of the model in the prompt', 'src/prompt/planted.ts', "import type { A } from '../model/index.ts';"],
    ['the core and a package in a planner', 'src/planners/planted.ts', "import '../core/index.ts';\nimport 'ajv';"],
    ['SQLite in its store', 'src/journal/sqlite-planted.ts', "import 'node:sqlite';"],
    [
      'every room in the testing kit',
      'src/testing/planted.ts',
      "import '../journal/index.ts';\nimport '../core/index.ts';",
    ],
  ])('allows %s', (_what, path, text) => {
    expect(checkWith(path, text)).toEqual([]);
  });

  it('refuses files that import each other, also when they share only types', () => {
    using copy = smallProject();
    copy.write('src/core/planted-a.ts', "import './planted-b.ts';");
    copy.write('src/core/planted-b.ts', "export type * from './planted-c.ts';");
    copy.write('src/core/planted-c.ts', "import type { A } from './planted-a.ts';");
    const { status, stdout } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout).toContain('src/core/planted-a.ts, src/core/planted-b.ts, src/core/planted-c.ts');
  });

  it('PC-05 fails when the planners are gone or renamed, and when there is nothing to read', () => {
    using copy = smallProject();
    const check = (): string => {
      const { status, stdout } = runCheck('check-imports.ts', copy.dir);
      expect(status).toBe(1);
      return stdout;
    };
    renameSync(join(copy.dir, 'src/planners'), join(copy.dir, 'src/policies'));
    expect(check()).toContain('No file of src/planners was read');
    rmSync(join(copy.dir, 'src'), { recursive: true });
    expect(check()).toContain('No file of src/core was read');
  });

  it('PC-05 fails when a room of the table is there and holds no source', () => {
    using copy = smallProject();
    copy.write('src/telemetry/notes.md', 'Nothing yet.');
    const { status, stdout } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout).toContain('No file of src/telemetry was read');
  });

  it('fails when a file cannot be parsed', () => {
    using copy = smallProject();
    copy.write('src/core/planted.ts', 'export const = 1;');
    const { status, stderr } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stderr).toContain('src/core/planted.ts cannot be parsed');
  });
});
