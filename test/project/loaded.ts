/** What a process loads when it imports a module. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { projectDir } from '../kit/project.ts';

/** What a clean process loads when it imports the module: URLs of files, `node:` names of built-in modules. */
export function loadedBy(url: string): string[] {
  const probe = `
    import { registerHooks } from 'node:module';
    const loaded = new Set();
    registerHooks({
      resolve(specifier, context, next) {
        const resolved = next(specifier, context);
        loaded.add(resolved.url);
        return resolved;
      },
    });
    const before = new Set(process.moduleLoadList);
    await import(${JSON.stringify(url)});
    // Built-in modules can be had without an import.
    for (const name of process.moduleLoadList) if (!before.has(name)) loaded.add(name.replace('NativeModule ', 'node:'));
    process.stdout.write(JSON.stringify([...loaded]));
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', probe], {
    encoding: 'utf8',
  });
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

export const fileUrl = (path: string): string => pathToFileURL(join(projectDir, path)).href;
export const packagesOf = (urls: readonly string[]): string[] => [
  ...new Set(
    urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? '').filter((name) => name !== ''),
  ),
];
