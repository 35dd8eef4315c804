import { describe, expect, it } from 'vitest';
import { runCheck, smallProject } from '../project/scratch.ts';

describe('PC-04 the rooms around the configuration', () => {
  it.each([
    ['the steps planner importing the prompt', 'src/planners/deterministic/planted.ts', '../../prompt/index.ts'],
    ['the steps planner importing the parser', 'src/planners/deterministic/planted.ts', '../../parse/index.ts'],
    ['the steps planner importing the model', 'src/planners/deterministic/planted.ts', '../../model/index.ts'],
    ['the registry importing the runtime', 'src/planners/registry.ts', '../runtime/index.ts'],
    ['the runtime importing the configuration', 'src/runtime/planted.ts', '../config/index.ts'],
    ['the planners importing the configuration', 'src/planners/planted.ts', '../config/index.ts'],
    ['the configuration importing the command', 'src/config/planted.ts', '../cli/index.ts'],
    ['the configuration importing a package', 'src/config/planted.ts', 'ajv'],
  ])('refuse %s', (_what, path, specifier) => {
    using project = smallProject();
    for (const room of ['prompt', 'parse', 'config']) project.write(`src/${room}/index.ts`, 'export {};\n');
    project.write(path, `import '${specifier}';\n`);
    const { status, stdout } = runCheck('check-imports.ts', project.dir);
    expect({ status, stdout }).toEqual({
      status: 1,
      stdout: expect.stringContaining(`${path}:1 imports ${specifier}: `),
    });
  });

  it('let the configuration make a runtime of planners, models and journals', () => {
    using project = smallProject();
    const rooms = ['core', 'journal', 'model', 'planners', 'runtime'];
    project.write('src/config/index.ts', rooms.map((room) => `import '../${room}/index.ts';\n`).join(''));
    expect(runCheck('check-imports.ts', project.dir)).toMatchObject({ status: 0 });
  });
});
