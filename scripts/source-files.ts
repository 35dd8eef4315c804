import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Not the project's own: installed, built, or kept by Git. */
const FOREIGN: ReadonlySet<string> = new Set(['node_modules', 'dist', '.git', '.pilotage', 'coverage']);

/** Paths of the files under a folder, with `/`, sorted; none when it does not exist. */
export function filesUnder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const found: string[] = [];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const name of readdirSync(next)) {
      if (FOREIGN.has(name)) continue;
      const path = join(next, name).replaceAll('\\', '/');
      if (statSync(path).isDirectory()) folders.push(path);
      else found.push(path);
    }
  }
  return found.sort();
}

/** Those of them that are JavaScript or TypeScript. */
export function sourceFiles(folder: string): string[] {
  return filesUnder(folder).filter((path) => /\.[cm]?[jt]s$/.test(path));
}
