/** `{ "$from": "s1", "path": "/items/0/id" }` inside the arguments of a branch: the value of an earlier branch. */
import { PilotageError } from './errors.ts';
import { atPointer, isJsonObject, type Json } from './json.ts';

export interface Reference {
  readonly $from: string;
  readonly path?: string;
}

/** The value, if it stands for another branch's. */
export function asReference(value: Json): Reference | undefined {
  if (!isJsonObject(value) || typeof value['$from'] !== 'string') return undefined;
  const extra = Object.keys(value).filter((key) => key !== '$from' && key !== 'path');
  const { path } = value;
  if (extra.length > 0 || (path !== undefined && typeof path !== 'string')) return undefined;
  return value as unknown as Reference;
}

/** The branch ids that `args` refers to, each once. */
export function referencesIn(args: Json): Set<string> {
  const found = new Set<string>();
  const open: Json[] = [args];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const reference = asReference(value);
    if (reference !== undefined) found.add(reference.$from);
    else open.push(...Object.values(value));
  }
  return found;
}

/**
 * `args` with every reference replaced by the value that `lookUp` gives for its branch.
 * @throws PilotageError `reference_unresolved` when nothing is at the path.
 */
export function resolveReferences(args: Json, lookUp: (branchId: string) => Json | undefined): Json {
  if (typeof args !== 'object' || args === null) return args;
  const reference = asReference(args);
  if (reference !== undefined) {
    const value = lookUp(reference.$from);
    const found = value === undefined ? undefined : atPointer(value, reference.path ?? '');
    if (found !== undefined) return found;
    throw new PilotageError(
      'reference_unresolved',
      `Nothing is at ${JSON.stringify(reference.path ?? '')} in the result of branch ${JSON.stringify(reference.$from)}.`,
    );
  }
  if (Array.isArray(args)) return args.map((item) => resolveReferences(item, lookUp));
  const fields = Object.entries(args).map(([key, value]) => [key, resolveReferences(value, lookUp)] as const);
  return Object.fromEntries(fields);
}
