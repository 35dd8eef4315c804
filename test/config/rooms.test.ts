import { describe, expect, it } from 'vitest';
import { runCheck, smallProject } from '../kit/project.ts';

describe('PC-04 the rooms around the configuration', () => {
  it.each([
    ['the steps planner importing the prompt', 'src/planners/deterministic/planted.ts', '#prompt'],
    ['the steps planner importing the parser', 'src/planners/deterministic/planted.ts', '#parse'],
    ['the steps planner importing the model', 'src/planners/deterministic/planted.ts', '#model'],
    ['the registry importing the runtime', 'src/planners/registry.ts', '#runtime'],
    ['the runtime importing the configuration', 'src/runtime/planted.ts', '#config'],
    ['the planners importing the configuration', 'src/planners/planted.ts', '#config'],
    ['the configuration importing the command', 'src/config/planted.ts', '#cli'],
    ['the configuration importing a package', 'src/config/planted.ts', 'ajv'],
  ])('refuse %s', (_what, path, specifier) => {
    using project = smallProject();
    for (const room of ['prompt', 'parse', 'config']) project.write(`src/${room}/internal.ts`, 'export {};\n');
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
    project.write('src/config/internal.ts', rooms.map((room) => `import '#${room}';\n`).join(''));
    expect(runCheck('check-imports.ts', project.dir)).toMatchObject({ status: 0 });
  });
});
