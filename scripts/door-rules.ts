/**
 * The doors: each room has a file that lists what other rooms and the tests may use of it, and a name for that file among the
 * package's `imports`. Nobody else reaches into a room, so a file can move inside its room without anybody noticing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync } from 'rolldown/utils';
import type { Doors, Import } from './import-graph.ts';
import { ROOMS } from './import-rules.ts';

/** The file name of a room's door. Beside it, `index.ts` is what users of the package get. */
const DOOR_FILE = /\/internal\.ts$/;

export const isWithin = (path: string, room: string): boolean => path.startsWith(`src/${room}/`);

/** The longest name of the table that holds the file; nothing for `src/index.ts`, which may import every room. */
export function roomOf(path: string): string | undefined {
  return Object.keys(ROOMS)
    .filter((room) => isWithin(path, room))
    .sort((a, b) => b.length - a.length)[0];
}

/** The room whose door leads to the file. */
function doorRoomOf(path: string): string | undefined {
  const room = roomOf(path);
  return room === undefined ? undefined : (ROOMS[room]?.behind ?? room);
}

/** The files under `src` that the package publishes, as its `exports` say. */
export function publicFiles(exports: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const built = [...JSON.stringify(exports).matchAll(/"\.\/dist\/([^"]+)\.js"/g)];
  return new Set(built.map(([, path = '']) => `src/${path}.ts`));
}

export const isUnknownDoor = ({ target }: Import): boolean => target.kind === 'file' && target.path.startsWith('#');

/** What is wrong with the way that an import takes: past a door, or out of a room and in again. */
export function wayProblem(
  { from, specifier, target }: Import,
  doors: Doors,
  faces: ReadonlySet<string>,
): string | undefined {
  if (target.kind !== 'file' || !target.path.startsWith('src/')) return undefined;
  const room = doorRoomOf(target.path);
  const isAtHome = from.startsWith('src/') && doorRoomOf(from) === room;
  // Examples show what a user writes, so they have what a user gets.
  if (from.startsWith('examples/')) {
    return faces.has(target.path) && !specifier.startsWith('#') ? undefined : 'an example imports what is published';
  }
  if (specifier.startsWith('#')) {
    return isAtHome ? 'inside its own room a file imports by a relative path' : undefined;
  }
  if (isAtHome) return undefined;
  const names = Object.keys(doors).filter((name) => roomOf(posix.normalize(doors[name] ?? '')) === room);
  return `it reaches into a room: import from ${names.join(' or ') || 'a door of that room'}`;
}

function exportedBy(door: string): string[] {
  const { program } = parseSync(door, readFileSync(door, 'utf8'));
  return program.body.flatMap((node) =>
    node.type === 'ExportNamedDeclaration'
      ? node.specifiers.map(({ exported }) => (exported.type === 'Literal' ? exported.value : exported.name))
      : [],
  );
}

/** Names that a door gives and nobody takes. A door that only grows would end as the room without walls. */
export function unusedNames(doors: Doors, imports: readonly Import[]): string[] {
  const paths = Object.values(doors).map((path) => posix.normalize(path));
  return paths
    .filter((path) => DOOR_FILE.test(path) && existsSync(path))
    .flatMap((path) => {
      const takers = imports.filter(({ target }) => target.kind === 'file' && target.path === path);
      const taken = new Set(takers.flatMap(({ names }) => names));
      if (taken.has('*')) return [];
      return exportedBy(path)
        .filter((name) => !taken.has(name))
        .map((name) => `${path} exports ${name}, which nobody outside the room imports: take it off the list`);
    });
}
