/** Reads a configuration file. Node strips the types of one in TypeScript by itself. */
import { existsSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describeThrown, PilotageError } from '#core';
import type { Config } from './config.ts';
import type { DriverPart } from './drivers.ts';
import { isRecord } from './shape.ts';

const EXTENSIONS: readonly string[] = ['.ts', '.mts', '.js', '.mjs'];

/**
 * The default export of the file; `readyConfig` checks what it says. A journal's path is taken from the file's folder.
 * @param path of the file, from the current folder.
 * @throws PilotageError `invalid_config` when there is no such file, when it throws, or when it exports no configuration.
 */
export async function loadConfig(path: string): Promise<Config<DriverPart>> {
  if (typeof path !== 'string') throw new PilotageError('invalid_config', 'loadConfig takes the path of a file.');
  const file = resolve(path);
  if (!EXTENSIONS.includes(extname(file))) throw unusable(path, `must end in one of ${EXTENSIONS.join(', ')}`);
  if (!existsSync(file)) throw unusable(path, 'does not exist');
  const config = await defaultExport(file, path);
  if (!isRecord(config)) {
    throw unusable(path, 'has no configuration as its default export; write `export default defineConfig({ … })`');
  }
  const { journal } = config;
  return typeof journal === 'string' && journal !== ''
    ? { ...config, journal: resolve(dirname(file), journal) }
    : config;
}

async function defaultExport(file: string, path: string): Promise<unknown> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(file).href);
    return module.default;
  } catch (cause) {
    throw unusable(path, `could not be read: ${describeThrown(cause)}`, cause);
  }
}

function unusable(path: string, problem: string, cause?: unknown): PilotageError {
  return new PilotageError('invalid_config', `The configuration file ${path} ${problem}.`, { cause });
}
