import { describe, expect, it } from 'vitest';
import { runCheck, smallProject } from '../kit/project.ts';

const REFUSED = [
  ['the steps planner importing the prompt', 'src/planners/deterministic/planted-0.ts', '#prompt'],
  ['the steps planner importing the parser', 'src/planners/deterministic/planted-1.ts', '#parse'],
  ['the steps planner importing the model', 'src/planners/deterministic/planted-2.ts', '#model'],
  ['the registry importing the runtime', 'src/planners/registry.ts', '#runtime'],
  ['the runtime importing the configuration', 'src/runtime/planted.ts', '#config'],
  ['the planners importing the configuration', 'src/planners/planted.ts', '#config'],
  ['the configuration importing the command', 'src/config/planted-0.ts', '#cli'],
  ['the configuration importing a package', 'src/config/planted-1.ts', 'ajv'],
] as const;

describe('PC-04 the rooms around the configuration', () => {
  /** All are planted in one project: the check is a process, and takes long. */
  it('refuse what is none of their business', () => {
    using project = smallProject();
    for (const room of ['prompt', 'parse', 'config']) project.write(`src/${room}/internal.ts`, 'export {};\n');
    for (const [, path, specifier] of REFUSED) project.write(path, `import '${specifier}';\n`);
    const { status, stdout } = runCheck('check-imports.ts', project.dir);
    expect(status).toBe(1);
    for (const [what, path, specifier] of REFUSED) expect(stdout, what).toContain(`${path}:1 imports ${specifier}: `);
  });

  it('let the configuration make a runtime of planners, models and journals', () => {
    using project = smallProject();
    const rooms = ['core', 'journal', 'model', 'planners', 'runtime'];
    project.write('src/config/internal.ts', rooms.map((room) => `import '#${room}';\n`).join(''));
    expect(runCheck('check-imports.ts', project.dir)).toMatchObject({ status: 0 });
  });
});
