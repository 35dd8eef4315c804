import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { doorUrl, projectDir } from '../kit/project.ts';

/** What a clean process loads when it imports the module: URLs of files, `node:` names of built-in modules. */
function loadedBy(url: string): string[] {
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

const fileUrl = (path: string): string => pathToFileURL(join(projectDir, path)).href;
const packagesOf = (urls: readonly string[]): string[] => [
  ...new Set(
    urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? '').filter((name) => name !== ''),
  ),
];
const SERVERS_AND_DATABASES = /^node:(sqlite|https?|http2|net|tls|dgram|cluster|inspector)$/;
const CHILD_ROOMS = /\/src\/(cli|testing|server|engine|telemetry)\//;

describe('importing the package', () => {
  it('loads no server, no database, no model vendor', () => {
    const loaded = loadedBy(fileUrl('src/index.ts'));
    expect(loaded.length).toBeGreaterThan(20);
    expect(loaded.filter((url) => SERVERS_AND_DATABASES.test(url))).toEqual([]);
    expect(loaded.filter((url) => CHILD_ROOMS.test(url))).toEqual([]);
    // What is loaded is named here, so that a new one is a decision. The validator and what it brings; nothing that talks.
    const allowed = ['@ai-sdk/provider', 'ajv', 'fast-deep-equal', 'fast-uri', 'json-schema-traverse'];
    expect(packagesOf(loaded).filter((name) => !allowed.includes(name))).toEqual([]);
  });

  it('loads the reader of HDDL for those alone who ask for it', () => {
    const isHddl = (url: string): boolean => url.includes('/hddl/');
    expect(loadedBy(doorUrl('#planners/htn')).filter(isHddl)).toEqual([]);
    expect(loadedBy(doorUrl('#planners/htn/hddl')).some(isHddl)).toBe(true);
  });

  it.each([
    ['an import', doorUrl('#testing'), 'node:http'],
    ['a call', "data:text/javascript,process.getBuiltinModule('node:sqlite')", 'node:sqlite'],
    ['a package', doorUrl('#model/openai-compatible'), '@ai-sdk/openai-compatible'],
  ])('would see it: %s', (_what, url, expected) => {
    const loaded = loadedBy(url);
    expect([...loaded, ...packagesOf(loaded)]).toContain(expected);
  });
});

describe('the manifest', () => {
  const read = (path: string): Record<string, unknown> => JSON.parse(readFileSync(join(projectDir, path), 'utf8'));

  it('has at most 12 direct dependencies and at most thirteen scripts', () => {
    const { dependencies, scripts } = read('package.json');
    expect(Object.keys(dependencies ?? {}).length).toBeLessThanOrEqual(12);
    expect(Object.keys(scripts ?? {}).length).toBeLessThanOrEqual(13);
  });

  it('pins every version exactly', () => {
    const { dependencies, devDependencies } = read('package.json');
    const versions: string[] = Object.values({ ...(dependencies ?? {}), ...(devDependencies ?? {}) });
    expect(versions.filter((version) => !/^(npm:@?[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  });

  it('has a lock file that names no registry: `npm install --omit-lockfile-registry-resolved` writes it so', () => {
    expect(readFileSync(join(projectDir, 'package-lock.json'), 'utf8')).not.toContain('"resolved"');
  });
});
