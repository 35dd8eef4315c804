/**
 * Walks every import of the project in the current folder and fails on one that the table of rooms does not allow, on one
 * that passes a room's door by, on a cycle, on a package that is not declared, and when it has not read the rooms it is
 * there to check.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isUnknownDoor, isWithin, publicFiles, roomOf, unusedNames, wayProblem } from './door-rules.ts';
import { cyclesOf, type Import, importsOf } from './import-graph.ts';
import { RESERVED, ROOMS, type Room } from './import-rules.ts';
import { sourceFiles } from './source-files.ts';

interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly imports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function crossing(room: string, rules: Room, { target, typesOnly }: Import): string | undefined {
  if (target.kind === 'builtin') return undefined;
  if (target.kind === 'package') return rules.packages ? undefined : `${room} imports no package`;
  const allowed = rules.mayImport;
  const other = roomOf(target.path);
  if (allowed === 'any' || other === room) return undefined;
  if (other !== undefined && allowed.includes(other)) return undefined;
  if (other !== undefined && rules.typesOnly?.includes(other)) {
    return typesOnly ? undefined : `${room} may import only types from there: write \`import type\``;
  }
  const list = [...allowed, ...(rules.typesOnly ?? []).map((name) => `${name} (types)`)];
  return `${room} may import ${list.join(', ') || 'no other room'}`;
}

function sourceProblem(found: Import, runtimePackages: ReadonlySet<string>): string | undefined {
  const { from, specifier, target } = found;
  const reserved = RESERVED[target.kind === 'file' ? '' : target.name];
  if (reserved && !reserved.test(from)) return `only ${reserved.source} may import it`;
  if (isUnknownDoor(found)) return 'package.json names no such door';
  if (target.kind === 'file' && !target.path.startsWith('src/')) return 'src imports nothing outside src';
  if (target.kind === 'package' && !runtimePackages.has(target.name))
    return 'it is not in dependencies or peerDependencies';
  const room = roomOf(from);
  const rules = room === undefined ? undefined : ROOMS[room];
  if (room !== undefined && rules !== undefined) return crossing(room, rules, found);
  return from.split('/').length === 2 ? undefined : `its folder is not a room of the table (importing ${specifier})`;
}

function otherProblem(found: Import, manifest: Manifest, runtimePackages: ReadonlySet<string>): string | undefined {
  const { target } = found;
  if (isUnknownDoor(found)) return 'package.json names no such door';
  if (target.kind !== 'package' || target.name === manifest.name || runtimePackages.has(target.name)) return undefined;
  return manifest.devDependencies?.[target.name] === undefined ? 'it is not declared in package.json' : undefined;
}

/** A check that read nothing would pass for the wrong reason. */
function unreadRooms(files: readonly string[], imports: readonly Import[]): string[] {
  const problems = Object.entries(ROOMS)
    .filter(
      ([room, { required }]) => (required || existsSync(`src/${room}`)) && !files.some((file) => isWithin(file, room)),
    )
    .map(([room]) => `No file of src/${room} was read: the folder is missing or empty, so nothing was checked there`);
  const reads = (room: string): boolean => imports.some(({ from }) => isWithin(from, room));
  return reads('planners')
    ? problems
    : [...problems, 'No import was found under src/planners: nothing was checked there'];
}

const manifest: Manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const runtimePackages = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }));
const sources = sourceFiles('src');
const others = ['test', 'scripts', 'examples', 'bench']
  .flatMap(sourceFiles)
  // The peers are measured in a package of their own.
  .filter((path) => !path.startsWith('bench/peers/'));
const files = new Set([...sources, ...others]);
const doors = manifest.imports ?? {};
const faces = publicFiles(manifest.exports ?? {});
const sourceImports = sources.flatMap((path) => importsOf(path, doors));
const otherImports = others.flatMap((path) => importsOf(path, doors));
const allImports = [...sourceImports, ...otherImports];

const problems = unreadRooms(sources, sourceImports);
const report = (found: Import, problem: string | undefined): void => {
  if (problem) problems.push(`${found.from}:${found.line} imports ${found.specifier}: ${problem}`);
};
const wayOf = (found: Import): string | undefined => wayProblem(found, doors, faces);
for (const found of sourceImports) report(found, sourceProblem(found, runtimePackages) ?? wayOf(found));
for (const found of otherImports) report(found, otherProblem(found, manifest, runtimePackages) ?? wayOf(found));
for (const found of allImports) {
  const { target } = found;
  if (target.kind === 'file' && !isUnknownDoor(found) && !files.has(target.path) && !existsSync(target.path))
    report(found, 'there is no such file');
}
problems.push(...unusedNames(doors, allImports));
for (const cycle of cyclesOf(sourceImports)) problems.push(`These files import each other: ${cycle.join(', ')}`);

for (const problem of problems) console.log(problem);
console.log(`${files.size} files and ${allImports.length} imports read, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
