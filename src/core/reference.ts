/** `{ "$from": "s1", "path": "/items/0/id" }` inside the arguments of a branch: the value of an earlier branch. */
import { PilotageError } from './errors.ts';
import { atPointer, isJsonObject, type Json } from './json.ts';

export interface Reference {
  /** The id of a branch of the same call, or of the call of `step`. */
  readonly $from: string;
  readonly path?: string;
  /** An earlier step of the run, by its index. */
  readonly step?: number;
}

/** The value, if it stands for another branch's. */
export function asReference(value: Json): Reference | undefined {
  if (!isJsonObject(value) || typeof value['$from'] !== 'string') return undefined;
  const { path, step } = value;
  const isWhole = Object.keys(value).every((key) => key === '$from' || key === 'path' || key === 'step');
  if (!isWhole || (path !== undefined && typeof path !== 'string')) return undefined;
  if (step !== undefined && !(typeof step === 'number' && Number.isInteger(step) && step >= 0)) return undefined;
  return value as unknown as Reference;
}

/** The branch ids of the same call that `args` refers to, each once. */
export function referencesIn(args: Json): Set<string> {
  return new Set(allReferencesIn(args).flatMap(({ $from, step }) => (step === undefined ? [$from] : [])));
}

/** Every reference in `args`, also those to earlier steps. */
export function allReferencesIn(args: Json): readonly Reference[] {
  const found: Reference[] = [];
  const open: Json[] = [args];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const reference = asReference(value);
    if (reference !== undefined) found.push(reference);
    else open.push(...Object.values(value));
  }
  return found;
}

/**
 * `args` with every reference replaced by the value that `lookUp` gives for its branch.
 * @throws PilotageError `reference_unresolved` when nothing is at the path.
 */
export function resolveReferences(args: Json, lookUp: (reference: Reference) => Json | undefined): Json {
  if (typeof args !== 'object' || args === null) return args;
  const reference = asReference(args);
  if (reference !== undefined) {
    const { $from, path = '', step } = reference;
    const value = lookUp(reference);
    const found = value === undefined ? undefined : atPointer(value, path);
    if (found !== undefined) return found;
    const where = step === undefined ? '' : ` of step ${step}`;
    throw new PilotageError(
      'reference_unresolved',
      `Nothing is at ${JSON.stringify(path)} in the result of branch ${JSON.stringify($from)}${where}.`,
    );
  }
  if (Array.isArray(args)) return args.map((item) => resolveReferences(item, lookUp));
  const fields = Object.entries(args).map(([key, value]) => [key, resolveReferences(value, lookUp)] as const);
  return Object.fromEntries(fields);
}
