/**
 * What the arguments of a branch may hold beside plain JSON: `{ "$from": "s1", "path": "/items/0/id" }` stands for the value of
 * an earlier branch, and `{ "$literal": … }` for the value inside, unchanged and with any keys. Both are written by
 * the author of the plan. Values that come from elsewhere are put in through `literal`, and values of earlier calls by reference.
 */
import { PilotageError } from './errors.ts';
import { asJson, atPointer, isJsonObject, type Json, type JsonObject } from './json.ts';

export interface Reference {
  /** The id of a branch of the same call, or of the call of `step`. */
  readonly $from: string;
  /** A JSON Pointer. */
  readonly path?: string;
  /** An earlier step of the run, by its index. */
  readonly step?: number;
}

/** The value as a part of arguments: itself, or in an escape when something inside could be read as a reference. */
export function literal(value: Json): Json {
  return walk(value, isMarked) ? { $literal: value } : value;
}

/** The reference, if the value is one; otherwise `undefined`. */
export function asReference(value: Json): Reference | undefined {
  if (!isJsonObject(value) || typeof value['$from'] !== 'string') return undefined;
  const { path, step } = value;
  const isWhole = Object.keys(value).every((key) => key === '$from' || key === 'path' || key === 'step');
  if (!isWhole || (path !== undefined && typeof path !== 'string')) return undefined;
  if (step !== undefined && !(typeof step === 'number' && Number.isInteger(step) && step >= 0)) return undefined;
  return value as unknown as Reference;
}

/** The escape, if the value is one: its `$literal` is the value that it stands for. */
export function asLiteral(value: Json): { readonly $literal: Json } | undefined {
  if (!isJsonObject(value) || !Object.hasOwn(value, '$literal')) return undefined;
  return Object.keys(value).length === 1 ? (value as { readonly $literal: Json }) : undefined;
}

/** The branch ids of the same call that `args` refers to, each once. */
export function referencesIn(args: Json): Set<string> {
  return new Set(allReferencesIn(args).flatMap(({ $from, step }) => (step === undefined ? [$from] : [])));
}

/** Every reference in `args`, also those to earlier steps. */
export function allReferencesIn(args: Json): readonly Reference[] {
  const found: Reference[] = [];
  walk(args, (part) => {
    const reference = asReference(part);
    if (reference !== undefined) found.push(reference);
    return false;
  });
  return found;
}

/** Why `args` cannot be used, whatever values the branches have: names the first part that looks like a reference and is not valid. */
export function referenceFault(args: Json): string | undefined {
  let fault: string | undefined;
  walk(args, (part) => {
    fault = isMarked(part) ? faultOf(part as JsonObject) : undefined;
    return fault !== undefined;
  });
  return fault;
}

/**
 * `args` with every reference replaced by the value that `lookUp` gives for its branch, and every escape by what is in it. What
 * is put in is not looked into.
 * @throws PilotageError `reference_unresolved` when nothing is at the path.
 */
export function resolveReferences(args: Json, lookUp: (reference: Reference) => Json | undefined): Json {
  return fillReferences(args, (reference) => foundAt(reference, lookUp(reference)));
}

/** `args` with every escape replaced by what is in it; references stay. Without references it is what the tool gets. */
export function unescaped(args: Json): Json {
  return walk(args, isMarked) ? fillReferences(args, asJson) : args;
}

/** `args` with its references replaced by others; escapes stay. */
export function mapReferences(args: Json, map: (reference: Reference) => Reference): Json {
  return replaced(args, (reference) => asJson(map(reference)), asJson);
}

/** `args` with every escape replaced by what is in it, and every reference by what `of` gives. */
export function fillReferences(args: Json, of: (reference: Reference) => Json): Json {
  return replaced(args, of, ({ $literal }) => $literal);
}

type Literal = NonNullable<ReturnType<typeof asLiteral>>;

function replaced(args: Json, of: (reference: Reference) => Json, inside: (escaped: Literal) => Json): Json {
  if (typeof args !== 'object' || args === null) return args;
  const escaped = asLiteral(args);
  if (escaped !== undefined) return inside(escaped);
  const reference = asReference(args);
  if (reference !== undefined) return of(reference);
  if (Array.isArray(args)) return args.map((item) => replaced(item, of, inside));
  const fields = Object.entries(args).map(([key, value]) => [key, replaced(value, of, inside)] as const);
  return Object.fromEntries(fields);
}

function foundAt({ $from, path = '', step }: Reference, value: Json | undefined): Json {
  const found = value === undefined ? undefined : atPointer(value, path);
  if (found !== undefined) return found;
  const where = step === undefined ? '' : ` of step ${step}`;
  throw new PilotageError(
    'reference_unresolved',
    `Nothing is at ${JSON.stringify(path)} in the result of branch ${JSON.stringify($from)}${where}.`,
  );
}

/** Visits the value and all that is inside it, but for what stands in an escape, until `visit` gives true; tells whether it did. */
function walk(value: Json, visit: (part: Json) => boolean): boolean {
  const open: Json[] = [value];
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part !== 'object' || part === null) continue;
    if (visit(part)) return true;
    if (asLiteral(part) === undefined && asReference(part) === undefined) open.push(...Object.values(part));
  }
  return false;
}

/** Whether the value has the key of a reference or an escape: it is one, or looks like one. */
export function isMarked(part: Json): boolean {
  return isJsonObject(part) && (Object.hasOwn(part, '$from') || Object.hasOwn(part, '$literal'));
}

function faultOf(part: JsonObject): string | undefined {
  if (asLiteral(part) !== undefined) return undefined;
  const shown = JSON.stringify(part).slice(0, MAX_SHOWN_CHARS);
  if (Object.hasOwn(part, '$literal'))
    return `${shown} has keys beside "$literal", which must be the only key of its object`;
  const { path = '' } = asReference(part) ?? {};
  if (asReference(part) === undefined) {
    return `${shown} is not a reference such as {"$from": "<id>", "path": "<JSON Pointer>"}; write {"$literal": …} around a value that is meant as it stands`;
  }
  if (isPointer(path)) return undefined;
  return `the path ${JSON.stringify(path.slice(0, MAX_SHOWN_CHARS))} is not a JSON Pointer; write ${JSON.stringify(pointerFor(path))}`;
}

const MAX_SHOWN_CHARS = 100;

function isPointer(path: string): boolean {
  return /^(\/([^~]|~[01])*)?$/s.test(path);
}

/** The JSON Pointer that was probably meant by `hits.0`, `$.hits[0]` or `#/hits/0`. */
function pointerFor(path: string): string {
  const keys = path.startsWith('/') || path.startsWith('#/') ? path.replace(/^#?\//, '').split('/') : keysIn(path);
  return keys
    .map((key) => `/${key.replaceAll(/~(?![01])/g, '~0')}`)
    .join('')
    .slice(0, MAX_SHOWN_CHARS);
}

function keysIn(path: string): string[] {
  return path
    .replace(/^\$/, '')
    .split(/[.[\]/]/)
    .map((key) => key.replaceAll(/^["']|["']$/g, ''))
    .filter((key) => key !== '');
}
