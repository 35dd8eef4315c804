/** The files of the build that the tests' processes run: see `build.ts`. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inject } from 'vitest';

/** @param source a TypeScript file of the project, such as `src/index.ts`. @throws Error when it is no entry of the build. */
export function builtFile(source: string): string {
  const path = join(inject('build'), source.replace(/\.ts$/, '.js'));
  if (!existsSync(path)) throw new Error(`${source} is no entry of the build: add it in test/kit/build.ts.`);
  return path;
}

/** The same as a URL, for code that imports it. */
export const builtUrl = (source: string): string => pathToFileURL(builtFile(source)).href;
