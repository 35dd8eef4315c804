/** What the package costs whoever installs and imports it. Measured on the built package, not on the sources. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Measured, median, short } from './measure.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ENTRY = join(ROOT, 'dist/index.js');
const ROUNDS = 15;

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}
interface Pack {
  readonly size: number;
  readonly unpackedSize: number;
}

export async function packageCost(): Promise<Measured> {
  buildIfStale();
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  const direct = Object.keys(manifest.dependencies ?? {}).length;
  const importMs = short(median(Array.from({ length: ROUNDS }, coldImportMs)));
  const { size, unpackedSize } = packed();
  return {
    keys: { import_ms: importMs, direct_dependencies: direct },
    rows: [
      ['cold import of the built package', `${importMs} ms`, 'in a fresh process, after Node itself has started'],
      ['size of the package', `${Math.round(size / 1024)} KiB`, `${Math.round(unpackedSize / 1024)} KiB unpacked`],
      ['direct dependencies', String(direct)],
    ],
  };
}

function buildIfStale(): void {
  const sources = globSync('src/**/*.ts', { cwd: ROOT }).map((file) => statSync(join(ROOT, file)).mtimeMs);
  if (existsSync(ENTRY) && statSync(ENTRY).mtimeMs >= Math.max(...sources)) return;
  execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
}

function coldImportMs(): number {
  const code = `const t = performance.now(); await import(${JSON.stringify(pathToFileURL(ENTRY).href)}); console.log(performance.now() - t);`;
  return Number(execFileSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' }));
}

function packed(): Pack {
  const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [pack] = JSON.parse(text) as Pack[];
  if (pack === undefined) throw new Error('npm pack said nothing.');
  return pack;
}
