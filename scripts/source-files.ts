import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of the JavaScript and TypeScript files under a folder, with `/`, sorted, `node_modules` left out; none when it does not exist. */
export function sourceFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const found: string[] = [];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const name of readdirSync(next)) {
      const path = join(next, name).replaceAll('\\', '/');
      if (name === 'node_modules') continue;
      if (statSync(path).isDirectory()) folders.push(path);
      else if (/\.[cm]?[jt]s$/.test(name)) found.push(path);
    }
  }
  return found.sort();
}
