/** What a JSON Schema says of a value, as far as reading needs it: shape and choice, not ranges or patterns. */
import { isJsonObject, type Json, type JsonObject, jsonEquals } from '#core';
import { plainName } from './names.ts';

const MAX_REFERENCES = 32;

/** Follows `$ref` inside the document. `undefined` when it leads nowhere. */
export function followReference(schema: JsonObject, root: JsonObject): JsonObject | undefined {
  let at: JsonObject = schema;
  for (let count = 0; typeof at['$ref'] === 'string'; count += 1) {
    const target = lookUp(root, at['$ref']);
    if (count >= MAX_REFERENCES || !isJsonObject(target)) return undefined;
    at = target;
  }
  return at;
}

function lookUp(root: JsonObject, reference: string): Json | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined;
  let at: Json | undefined = root;
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = at[Number(key)];
    else if (isJsonObject(at) && Object.hasOwn(at, key)) at = at[key];
    else return undefined;
  }
  return at;
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

export type SchemaType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'null';

/** Names of types as schemas in the wild write them. */
const TYPES: ReadonlyMap<string, SchemaType> = new Map<string, SchemaType>([
  ['string', 'string'],
  ['str', 'string'],
  ['number', 'number'],
  ['float', 'number'],
  ['double', 'number'],
  ['integer', 'integer'],
  ['int', 'integer'],
  ['boolean', 'boolean'],
  ['bool', 'boolean'],
  ['array', 'array'],
  ['list', 'array'],
  ['tuple', 'array'],
  ['object', 'object'],
  ['dict', 'object'],
  ['null', 'null'],
]);

const NO_TYPES: readonly SchemaType[] = [];
const SINGLE: ReadonlyMap<string, readonly SchemaType[]> = new Map(
  [...TYPES].map(([name, type]) => [name, [type]] as const),
);

/** The types that a schema allows; none listed means any. `nullable` is a word of OpenAPI 3.0. */
export function typesOf(schema: JsonObject): readonly SchemaType[] {
  const types = namedTypes(schema);
  return isNullable(schema) && types.length > 0 ? [...types, 'null'] : types;
}

function isNullable(schema: JsonObject): boolean {
  return schema['nullable'] === true;
}

function namedTypes(schema: JsonObject): readonly SchemaType[] {
  const type = schema['type'];
  if (typeof type === 'string') return SINGLE.get(type) ?? NO_TYPES;
  if (Array.isArray(type)) {
    return type.flatMap((name) => (typeof name === 'string' ? (TYPES.get(name) ?? []) : []));
  }
  if (type !== undefined) return NO_TYPES;
  if (isJsonObject(schema['properties'])) return SINGLE.get('object') ?? NO_TYPES;
  return isJsonObject(schema['items']) ? (SINGLE.get('array') ?? NO_TYPES) : NO_TYPES;
}

/** Whether only objects fit. */
export function isObjectSchema(schema: JsonObject): boolean {
  const types = typesOf(followReference(schema, schema) ?? schema);
  return types.length === 1 && types[0] === 'object';
}

export function alternativesOf(schema: JsonObject): readonly Json[] | undefined {
  const list = schema['anyOf'] ?? schema['oneOf'];
  return Array.isArray(list) && list.length > 0 ? list : undefined;
}

const TYPE_BITS: Readonly<Record<SchemaType, number>> = {
  string: 1,
  number: 2,
  integer: 4,
  boolean: 8,
  array: 16,
  object: 32,
  null: 64,
};
const ANY = 127;
const MAX_DEPTH = 200;

/** A schema made ready for checking. What does not occur is left out, so that a plain leaf costs one comparison. */
interface Check {
  types: number;
  /** Nothing but the types is to be looked at. */
  isPlain: boolean;
  items?: Check;
  firstItems?: readonly Check[];
  properties?: ReadonlyMap<string, Check>;
  /** The declared names without case and joints: another spelling of one does not fit. */
  plainNames?: ReadonlySet<string>;
  /** `false` refuses names that are not declared. */
  others?: Check | false;
  required: readonly string[];
  choices?: readonly Json[];
  some?: readonly Check[];
  all?: readonly Check[];
  /** `nullable` beside anything but a type: null fits whatever else is said. */
  takesNull?: true;
}

type Checks = WeakMap<JsonObject, Check>;

/** A cache and nothing else: the checks of a schema are the same each time. */
const CHECKS_BY_ROOT = new WeakMap<JsonObject, Checks>();
const ACCEPTS_ALL: Check = { types: ANY, isPlain: true, required: [] };
const REFUSES_ALL: Check = { types: 0, isPlain: true, required: [] };

/** Whether the value fits already: well-formed arguments cost little more than their parse. */
export function fits(value: Json, schema: Json | undefined, root: JsonObject): boolean {
  let checks = CHECKS_BY_ROOT.get(root);
  if (checks === undefined) {
    checks = new WeakMap();
    CHECKS_BY_ROOT.set(root, checks);
  }
  return passes(value, checkOf(schema, root, checks), 0);
}

function checkOf(schema: Json | undefined, root: JsonObject, checks: Checks): Check {
  if (schema === false) return REFUSES_ALL;
  if (!isJsonObject(schema)) return ACCEPTS_ALL;
  const known = checks.get(schema);
  if (known !== undefined) return known;
  const check: Check = { types: ANY, isPlain: true, required: [] };
  checks.set(schema, check); // before its parts, which may refer back to it
  if (isNullable(schema) && schema['type'] === undefined) check.takesNull = true;
  const followed = followReference(schema, root);
  if (followed !== undefined) fillCheck(check, followed, root, checks);
  return check;
}

function fillCheck(check: Check, schema: JsonObject, root: JsonObject, checks: Checks): void {
  const inner = (part: Json | undefined): Check => checkOf(part, root, checks);
  const types = typesOf(schema);
  if (types.length > 0) check.types = types.reduce((bits, type) => bits | TYPE_BITS[type], 0);
  const { items, prefixItems, properties, required, additionalProperties, patternProperties } = schema;
  if (items !== undefined) check.items = inner(items);
  if (Array.isArray(prefixItems)) check.firstItems = prefixItems.map(inner);
  if (isJsonObject(properties)) {
    check.plainNames = new Set(Object.keys(properties).map(plainName));
    check.properties = new Map(Object.entries(properties).map(([name, part]) => [name, inner(part)]));
  }
  if (additionalProperties === false && patternProperties === undefined) check.others = false;
  else if (isJsonObject(additionalProperties)) check.others = inner(additionalProperties);
  if (Array.isArray(required)) check.required = required.filter((name) => typeof name === 'string');
  const choices = schema['const'] === undefined ? schema['enum'] : [schema['const']];
  if (Array.isArray(choices)) check.choices = choices;
  const some = alternativesOf(schema);
  if (some !== undefined) check.some = some.map(inner);
  if (Array.isArray(schema['allOf'])) check.all = schema['allOf'].map(inner);
  check.isPlain = Object.keys(check).length === 3 && check.required.length === 0;
}

function passes(value: Json, check: Check, depth: number): boolean {
  if (value === null && check.takesNull === true) return true;
  if ((check.types & bitsOf(value)) === 0) return false;
  if (check.isPlain) return true;
  if (depth > MAX_DEPTH) return true;
  if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value) ? !passItems(value, check, depth) : !passProperties(value as JsonObject, check, depth)) {
      return false;
    }
  }
  if (check.choices?.some((choice) => jsonEquals(choice, value)) === false) return false;
  if (check.some?.some((one) => passes(value, one, depth + 1)) === false) return false;
  return check.all?.every((one) => passes(value, one, depth + 1)) !== false;
}

function bitsOf(value: Json): number {
  switch (typeof value) {
    case 'string':
      return 1;
    case 'number':
      return Number.isInteger(value) ? 6 : 2;
    case 'boolean':
      return 8;
    default:
      return value === null ? 64 : Array.isArray(value) ? 16 : 32;
  }
}

function passItems(list: readonly Json[], check: Check, depth: number): boolean {
  const { items, firstItems } = check;
  if (items === undefined && firstItems === undefined) return true;
  for (let index = 0; index < list.length; index += 1) {
    const part = firstItems?.[index] ?? items;
    if (part !== undefined && !passes(list[index] ?? null, part, depth + 1)) return false;
  }
  return true;
}

/** Whether the name is another spelling of a declared one that is not there itself. */
function isMisspelt(key: string, value: JsonObject, { properties, plainNames }: Check): boolean {
  if (properties === undefined || plainNames?.has(plainName(key)) !== true) return false;
  for (const name of properties.keys()) {
    if (!Object.hasOwn(value, name) && plainName(name) === plainName(key)) return true;
  }
  return false;
}

function passProperties(value: JsonObject, check: Check, depth: number): boolean {
  const { properties, others, required } = check;
  if (properties !== undefined || others !== undefined) {
    for (const key in value) {
      const declared = properties?.get(key);
      const part = declared ?? others;
      if (part === false || (declared === undefined && isMisspelt(key, value, check))) return false;
      if (part !== undefined && !passes(value[key] ?? null, part, depth + 1)) return false;
    }
  }
  for (const key of required) if (!Object.hasOwn(value, key)) return false;
  return true;
}
