import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCheck, smallProject } from '../kit/project.ts';

type Planted = readonly [what: string, path: string, text: string];

const REFUSED: readonly Planted[] = [
  ['a planner that imports the runtime', 'src/planners/planted.ts', "import '#runtime';"],
  ['a planner that imports only its types', 'src/planners/planted.ts', "import type { A } from '#runtime';"],
  ['a planner that imports it later', 'src/planners/planted.ts', "export const a = () => import('#journal');"],
  ['a planner that names its type in place', 'src/planners/planted.ts', "export type A = import('#tools').Tool;"],
  ['a planner that passes it on', 'src/planners/planted.ts', "export * from '#tools';"],
  ['a plain planner that imports the model', 'src/planners/deterministic/planted.ts', "import '#model';"],
  ['a plain planner that imports ReAct', 'src/planners/htn/planted.ts', "import '#planners/react';"],
  ['plans importing a planner', 'src/plans/planted.ts', "import '#planners/react';"],
  ['the core importing a room', 'src/core/planted.ts', "import '#journal';"],
  ['the core importing a package', 'src/core/planted.ts', "import 'ajv';"],
  ['the prompt importing more than types of the model', 'src/prompt/planted.ts', "import { type A } from '#model';"],
  ['a room importing the whole package', 'src/state/planted.ts', "import '#pilotage';"],
  ['a folder that is no room', 'src/helpers/planted.ts', "import '#core';"],
  ['the sources importing a test', 'src/testing/planted.ts', "import '../../test/index.ts';"],
  ['a package of development only', 'src/runtime/planted.ts', "import 'vitest';"],
  ['SQLite outside its store', 'src/runtime/planted.ts', "import 'node:sqlite';"],
  ['SQLite outside its store, by a call', 'src/cli/planted.ts', "process.getBuiltinModule('node:sqlite');"],
  ['a vendor outside its own file', 'src/model/planted.ts', "import '@ai-sdk/openai-compatible';"],
  ['a file that does not exist', 'src/core/planted.ts', "import './nowhere.ts';"],
  ['a package that is not declared', 'test/planted.ts', "import 'left-pad';"],
  ['a file of another room', 'src/state/planted.ts', "import '../core/internal.ts';"],
  ['the whole package, by its path', 'src/testing/planted.ts', "import '../index.ts';"],
  ['a test that reaches into a room', 'test/planted.ts', "import '../src/core/internal.ts';"],
  [
    'a script that names a type of a file in place',
    'scripts/planted.ts',
    "type A = import('../src/core/internal.ts').A;",
  ],
  ['a benchmark that loads a file later', 'bench/planted.ts', "await import('../src/core/internal.ts');"],
  ['a way out of a room and in again', 'src/core/planted.ts', "import '#core';"],
  ['a door that is none', 'src/runtime/planted.ts', "import '#cellar';"],
  ['a door that is none, in a test', 'test/planted.ts', "import '#core/json';"],
  ['one planner with a model importing another', 'src/planners/pipeline/planted.ts', "import '#planners/react';"],
  ['an example that goes through a door', 'examples/planted.ts', "import '#core';"],
  ['a call that uses the loop', 'src/calls/planted.ts', "import '../runtime/internal.ts';"],
  ['a folder behind a door that goes through it', 'src/loop/planted.ts', "import '#runtime';"],
  ['an example that reaches into a room', 'examples/planted.ts', "import '../src/core/internal.ts';"],
];

const ALLOWED: readonly Planted[] = [
  ['types of the model in the prompt', 'src/prompt/planted.ts', "import type { A } from '#model';"],
  ['the core and a package in a planner', 'src/planners/planted.ts', "import '#core';\nimport 'ajv';"],
  ['a folder behind the same door', 'src/runtime/planted.ts', "import '../loop/internal.ts';"],
  ['SQLite in its store', 'src/journal/sqlite/planted.ts', "import 'node:sqlite';"],
  ['every room in the testing kit', 'src/testing/planted.ts', "import '#journal';\nimport '#core';"],
  ['doors in tests', 'test/planted.ts', "import '#core';\nimport '#pilotage';"],
  ['what is published in an example', 'examples/planted.ts', "import '../src/index.ts';"],
];

/** The same, each in a file of its own. */
function numbered(files: readonly Planted[]): Planted[] {
  return files.map(([what, path, text], at) => [what, path.replace('planted', `planted-${at}`), text]);
}

/** Plants all the files in one small project and says what the check found wrong with it. It is asked once: a process for each file takes long. */
function checked(files: readonly Planted[]): () => readonly string[] {
  let problems: readonly string[] | undefined;
  return () => {
    problems ??= checkWith(numbered(files));
    return problems;
  };
}

function checkWith(files: readonly Planted[]): string[] {
  using copy = smallProject();
  for (const [, path, text] of files) copy.write(path, text);
  const { status, stdout } = runCheck('check-imports.ts', copy.dir);
  const problems = stdout.split('\n').slice(0, -2);
  expect(status).toBe(problems.length > 0 ? 1 : 0);
  return problems;
}

const refusals = checked(REFUSED);
const permissions = checked(ALLOWED);

describe('the import check', () => {
  it.each(numbered(REFUSED))('PC-04 refuses %s', (_what, path) => {
    const own = refusals().filter((problem) => problem.startsWith(`${path}:`));
    expect(own).toEqual([expect.stringContaining(`${path}:1 imports `)]);
  });

  it('refuses nothing else in the same project', () => {
    expect(refusals()).toHaveLength(REFUSED.length);
  });

  it.each(numbered(ALLOWED))('allows %s', (_what, path) => {
    expect(permissions().filter((problem) => problem.includes(path))).toEqual([]);
  });

  it('has nothing to say of what it allows', () => {
    expect(permissions()).toEqual([]);
  });

  it.each(['rules', 'pipeline'])('PC-04 refuses %s that imports another planner, also a plain one', (planner) => {
    using copy = smallProject();
    const path = `src/planners/${planner}/planted.ts`;
    copy.write('src/planners/graph/index.ts', 'export {};\n');
    copy.write(path, "import '#planners/graph';");
    const { status, stdout } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout).toContain(`${path}:1 imports #planners/graph: planners/${planner} may import`);
  });

  it('refuses a name that a door gives and nobody takes', () => {
    using copy = smallProject();
    copy.write('src/core/json.ts', 'export const taken = 1;\nexport const left = 2;\nexport type Kept = 3;');
    copy.write(
      'src/core/internal.ts',
      "export { left, taken } from './json.ts';\nexport type { Kept } from './json.ts';",
    );
    copy.write('src/state/planted.ts', "import { taken } from '#core';");
    copy.write('test/planted.ts', "export type { Kept } from '#core';");
    const { status, stdout } = runCheck('check-imports.ts', copy.dir);
    expect(status).toBe(1);
    expect(stdout.split('\n').slice(0, -2)).toEqual([
      'src/core/internal.ts exports left, which nobody outside the room imports: take it off the list',
    ]);
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
