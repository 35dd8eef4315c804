/** The version of an installed peer; without a name, ours. */
import { readFileSync } from 'node:fs';

export function versionOf(name) {
  const folder = name === undefined ? '../..' : `node_modules/${name}`;
  return JSON.parse(readFileSync(new URL(`${folder}/package.json`, import.meta.url), 'utf8')).version;
}
