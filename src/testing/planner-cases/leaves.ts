/** Everything that stands in a value, by its path, so that a change can be named. */

const DEEPEST = 12;

/** Plain objects, lists, maps and sets are looked into, and what is kept on functions; the value itself whatever it is. */
export function leavesOf(
  value: unknown,
  isForeign: (part: unknown) => boolean = () => false,
): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>();
  const seen = new Set<unknown>();
  const walk = (part: unknown, path: string, depth: number): void => {
    const parts = isForeign(part) || seen.has(part) || depth > DEEPEST ? undefined : partsIn(part, depth === 0);
    if (parts === undefined || typeof part === 'function') leaves.set(path, part);
    if (parts === undefined) return;
    seen.add(part);
    leaves.set(`${path}.*`, parts.length);
    for (const [name, inner] of parts) walk(inner, `${path}.${name}`, depth + 1);
  };
  walk(value, '', 0);
  return leaves;
}

function partsIn(value: unknown, isRoot: boolean): readonly (readonly [string, unknown])[] | undefined {
  if (typeof value === 'function')
    return named(value).filter(([name]) => !['length', 'name', 'prototype'].includes(name));
  if (typeof value !== 'object' || value === null) return undefined;
  if (value instanceof Map) return [...value].map(([key, inner]) => [String(key), inner]);
  if (value instanceof Set) return [...value].map((inner, index) => [String(index), inner]);
  const parent: unknown = Object.getPrototypeOf(value);
  const isPlain = parent === Object.prototype || parent === null || Array.isArray(value);
  return isPlain || isRoot ? named(value) : undefined;
}

function named(value: object): (readonly [string, unknown])[] {
  return Object.entries(Object.getOwnPropertyDescriptors(value)).flatMap(([name, own]) =>
    // What a getter gives is made when it is asked.
    'value' in own ? [[name, own.value] as const] : [],
  );
}

/** The path of the first part that is another now, or of one that came or went. */
export function firstDifference(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
): string | undefined {
  const paths = [...new Set([...before.keys(), ...after.keys()])].filter((path) => !path.endsWith('.*'));
  const changed = paths.find(
    (path) => before.has(path) !== after.has(path) || !Object.is(before.get(path), after.get(path)),
  );
  if (changed !== undefined) return changed;
  return [...before].find(([path, count]) => after.get(path) !== count)?.[0];
}
