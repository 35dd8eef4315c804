/** This project, small ones to plant faults in, and the project's own checks. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

export const projectDir: string = resolve(import.meta.dirname, '../..');

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly imports: Readonly<Record<string, string>>;
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8'));
}

/** The file behind one of the names in the package's `imports`, for code that runs outside of the project. */
export function doorUrl(name: `#${string}`): string {
  const path = readManifest().imports[name];
  if (path === undefined) throw new Error(`package.json names no ${name}.`);
  return pathToFileURL(join(projectDir, path)).href;
}

/** Code of a user's project, importing the package's sources instead. `place` says where: it is given `src/flow/index.ts`. */
export function onSources(code: string, place: (source: string) => string): string {
  const { exports } = readManifest();
  return code.replace(/(?<=from ')pilotage(\/[\w/-]+)?(?=')/g, (specifier, subpath = '') => {
    const path = /"\.\/dist\/([^"]+)\.js"/.exec(JSON.stringify(exports[`.${subpath}`]) ?? '')?.[1];
    if (path === undefined) throw new Error(`package.json exports no ${specifier}.`);
    return place(`src/${path}.ts`);
  });
}

/** A project in a folder of its own, to plant faults in. Removed when disposed. */
export interface Scratch extends Disposable {
  readonly dir: string;
  write(path: string, text: string): void;
}

function scratch(): Scratch {
  const dir = mkdtempSync(join(tmpdir(), 'pilotage-project-'));
  cpSync(join(projectDir, 'package.json'), join(dir, 'package.json'));
  return {
    dir,
    write: (path, text) => {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), text);
    },
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** This project's own sources. */
export function projectCopy(): Scratch {
  const copy = scratch();
  cpSync(join(projectDir, 'src'), join(copy.dir, 'src'), { recursive: true });
  return copy;
}

/** One door in each room that must be there, and nothing wrong with any. */
export function smallProject(): Scratch {
  const project = scratch();
  for (const room of [
    'core',
    'journal',
    'state',
    'loop',
    'runtime',
    'tools',
    'model',
    'testing',
    'cli',
    'planners/react',
  ]) {
    project.write(`src/${room}/internal.ts`, 'export {};\n');
  }
  project.write('src/planners/internal.ts', "import '#core';\n");
  project.write('src/index.ts', "import '#runtime';\n");
  project.write('test/index.ts', 'export {};\n');
  return project;
}

/** Runs one of the project's own checks on the project in `dir`. */
export function runCheck(script: string, dir: string): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [join(projectDir, 'scripts', script)], { cwd: dir, encoding: 'utf8' });
}
