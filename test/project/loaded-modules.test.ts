import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectDir } from '../kit/project.ts';
import { fileUrl, loadedBy, packagesOf } from './loaded.ts';

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
