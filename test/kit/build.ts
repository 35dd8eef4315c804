/**
 * Builds this checkout once before the tests, so that the many processes which they start load a few files of JavaScript
 * and not hundreds of TypeScript: they start in about half of the time. Each run of the tests has a build of its own, with
 * what its processes have compiled: the second one that loads a file takes it from there.
 */
import { cpSync, globSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';
import type { TestProject } from 'vitest/node';
import { projectDir, readManifest } from './project.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the build; `builtFile` finds a file in it. */
    readonly build: string;
  }
}

/** What processes are started with or may import: the command, the package's faces and doors, and the tests' own programs. */
function entries(): string[] {
  const { exports, imports } = readManifest();
  const faces = [...JSON.stringify(exports).matchAll(/"\.\/dist\/([^"]+)\.js"/g)].map(([, path]) => `src/${path}.ts`);
  const doors = Object.values(imports).map((path) => path.replace('./', ''));
  const programs = globSync('test/**/{*-,}{child,agent}.ts', { cwd: projectDir });
  return [...new Set(['src/cli/main.ts', 'src/cli/command-line.ts', ...faces, ...doors, ...programs])];
}

export default async function buildOnce(project: TestProject): Promise<() => void> {
  // Inside of `node_modules`, so that the packages are found from there.
  const cache = join(projectDir, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  removeOld(cache);
  const folder = mkdtempSync(join(cache, 'pilotage-built-'));
  cpSync(join(projectDir, 'package.json'), join(folder, 'package.json'));
  await build({
    cwd: projectDir,
    input: Object.fromEntries(entries().map((path) => [path.replace(/\.ts$/, ''), `./${path}`])),
    external: /^[\w@]/,
    platform: 'node',
    logLevel: 'warn',
    output: {
      dir: folder,
      minify: { compress: false, mangle: false, codegen: true },
      entryFileNames: '[name].js',
      // As deep as the files of the command, which find the manifest from where they are.
      chunkFileNames: 'src/chunks/[name]-[hash].js',
    },
  });
  // As in `dist`: see `tsdown.config.ts`.
  for (const path of ['src', 'test']) writeFileSync(join(folder, path, 'package.json'), '{ "type": "module" }\n');
  process.env['NODE_COMPILE_CACHE'] = join(folder, 'compiled');
  process.env['PILOTAGE_TEST_POSTGRES_TEMPLATES'] = join(folder, 'postgres');
  project.provide('build', folder);
  return () => rmSync(folder, { recursive: true });
}

const DAY_MS = 24 * 60 * 60_000;

/** Builds of runs that were killed. */
function removeOld(cache: string): void {
  for (const path of globSync('pilotage-{built-*,compiled}', { cwd: cache }).map((name) => join(cache, name))) {
    const at = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - at > DAY_MS) rmSync(path, { recursive: true, force: true });
  }
}
