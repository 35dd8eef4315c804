/**
 * Packs the built project as npm would publish it and checks the archive: publint, an install into an empty project, every
 * subpath imported in a clean process, its types read by the compiler, and the command started.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

function run(command: string, args: readonly string[], cwd: string): SpawnSyncReturns<string> {
  const result = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    throw new Error(
      `\`${command} ${args.join(' ')}\` ended with ${result.status ?? result.signal}:\n${result.stdout}${result.stderr}`,
    );
  }
  return result;
}

function pack(into: string): string {
  const { stdout } = run('npm', ['pack', '--json', '--pack-destination', into], '.');
  // Older npm prints a list, newer an object by package name.
  const printed: Record<string, { filename: string; files: { path: string }[]; size: number }> = JSON.parse(stdout);
  const [packed] = Object.values(printed);
  if (!packed) throw new Error('npm pack wrote nothing');
  const strangers = packed.files.filter(
    ({ path }) => !/^((dist|docs|examples)\/.+|package\.json|README\.md|LICENSE)$/.test(path),
  );
  if (strangers.length > 0)
    throw new Error(`These files do not belong in the package: ${strangers.map((file) => file.path).join(', ')}`);
  checkLinks(packed.files.map(({ path }) => path));
  console.log(`${packed.filename}: ${packed.files.length} files, ${Math.round(packed.size / 1024)} KiB`);
  return join(into, packed.filename);
}

/** For who works on the package: they are large, and stay in the repository. */
const IN_THE_REPOSITORY: ReadonlySet<string> = new Set([
  'CHANGELOG.md',
  'bench/RESULTS.md',
  'docs/behaviours.md',
  'docs/decisions.md',
]);

/** Whoever reads the documentation in an installed package comes where it leads. */
function checkLinks(packed: readonly string[]): void {
  const links = packed
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, to = '']) => ({ path, to })),
    );
  const broken = links.filter(({ path, to }) => {
    const target = join(dirname(path), to);
    return !IN_THE_REPOSITORY.has(target) && !packed.some((each) => each === target || each.startsWith(`${target}/`));
  });
  if (broken.length > 0)
    throw new Error(`Links that lead out of the package: ${broken.map(({ path, to }) => `${path}: ${to}`).join(', ')}`);
  console.log(`links: ${links.length}, ok`);
}

/** Subpaths that have nothing but types. */
const TYPES_ALONE: ReadonlySet<string> = new Set(['pilotage/engine']);

function checkImports(consumer: string, specifiers: readonly string[]): void {
  for (const specifier of specifiers) {
    const code = `const { length } = Object.keys(await import('${specifier}')); console.log(length);`;
    const { stdout } = run('node', ['--input-type=module', '--eval', code], consumer);
    if (Number(stdout) === 0 && !TYPES_ALONE.has(specifier)) throw new Error(`${specifier} exports nothing`);
    console.log(`${specifier}: ${stdout.trim()} exports`);
  }
}

/** Packages whose own types are those of a subpath: whoever imports it has them. */
const PEERS_OF_TYPES = ['ai', '@opentelemetry/api'];

/** Compiles the declarations of every subpath in a strict project. What is wrong inside other packages' is not ours to fail for. */
function checkTypes(consumer: string, specifiers: readonly string[]): void {
  const lines = specifiers.map((specifier, at) => `export * as part${at} from '${specifier}';`);
  for (const peer of PEERS_OF_TYPES) {
    const place = join(consumer, 'node_modules', peer);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(resolve('node_modules', peer), place);
  }
  writeFileSync(join(consumer, 'types.ts'), `${lines.join('\n')}\n`);
  const options = {
    target: 'es2024',
    module: 'nodenext',
    lib: ['es2024', 'esnext.disposable'],
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    preserveSymlinks: true,
    typeRoots: [resolve('node_modules/@types')],
    types: ['node'],
  };
  writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['types.ts'] }));
  const { stdout, error } = spawnSync('tsc', ['-p', '.', '--pretty', 'false'], { cwd: consumer, encoding: 'utf8' });
  if (error) throw error;
  const ours = stdout.split('\n').filter((line) => {
    return (
      line.includes('error TS') &&
      (!line.startsWith('node_modules/') || line.startsWith(`node_modules/${manifest.name}/`))
    );
  });
  if (ours.length > 0) throw new Error(`The published types do not compile:\n${ours.join('\n')}`);
  console.log('types: ok');
}

const manifest: Manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const dir = mkdtempSync(join(tmpdir(), 'pilotage-package-'));
try {
  const archive = pack(dir);
  console.log(run('publint', ['run', '--strict', archive], '.').stdout.trim());

  const consumer = join(dir, 'consumer');
  mkdirSync(consumer);
  writeFileSync(join(consumer, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', archive], consumer);

  const specifiers = Object.keys(manifest.exports)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => join(manifest.name, subpath).replaceAll('\\', '/'));
  checkImports(consumer, specifiers);
  checkTypes(consumer, specifiers);
  run(join(consumer, 'node_modules/.bin', manifest.name), ['--help'], consumer);
  console.log(`${manifest.name} --help: ok`);
} finally {
  rmSync(dir, { recursive: true, force: true });
}
