/** Values of a flow document. A reader gives nothing for what it cannot take, and notes a fault: reading goes on. */
import { isJsonObject, meantBy, PilotageError } from '#core';
import { checkOf, type InputSchema } from '#tools';
import type { GraphNode } from '../graph.ts';
import type { Flow } from '../types.ts';
import { advice, type DocumentFault, type DocumentPart, faultAt, quotedName, type Spot } from './parts.ts';

/** What a document refers to by name, and what was found wrong with it. */
export interface DocumentReading {
  readonly functions: Readonly<Record<string, (...args: never[]) => unknown>>;
  readonly flows: Readonly<Record<string, Flow>>;
  readonly schemas: Readonly<Record<string, InputSchema>>;
  readonly faults: DocumentFault[];
  /** The names of the nodes that the document has. */
  nodes: ReadonlySet<string>;
  /** Nodes or ways between them could not be read: nothing can be said of the graph as a whole. */
  graphBroken: boolean;
}

/** What a node is, beside its name: it can be made once those that it needs are. */
export interface Form {
  /** The parents of a join, the targets of a router, the branches of a race. */
  readonly needs: readonly string[];
  make(nodeOf: (name: string) => GraphNode): GraphNode;
}

export type Fields = ReadonlyMap<string, DocumentPart>;

export function noteFault(reading: DocumentReading, code: string, spot: Spot, message: string): undefined {
  reading.faults.push(faultAt(code, spot, message));
}

/** The fields of an object that has no other keys than these. */
export function fieldsOf(part: DocumentPart, keys: readonly string[], reading: DocumentReading): Fields | undefined {
  if (part.fields === undefined) return wrongType(part, 'an object', reading);
  const known = new Map<string, DocumentPart>();
  for (const [name, { key, part: value }] of part.fields) {
    if (keys.includes(name)) known.set(name, value);
    else
      noteFault(
        reading,
        'unknown_key',
        key,
        `There is no key ${quotedName(name)} here. ${meantBy(name, keys)?.advice ?? advice(name, keys, 'keys here')}`,
      );
  }
  return known;
}

/** A part that has to be there. @param of what it belongs to: `The flow`. */
export function needed(
  fields: Fields,
  key: string,
  of: DocumentPart,
  what: string,
  reading: DocumentReading,
): DocumentPart | undefined {
  return fields.get(key) ?? noteFault(reading, 'missing_key', of, `${what} needs ${quotedName(key)}.`);
}

/** The option `key`, if the document has it and it could be read: to be spread. */
export function givenField<K extends string, T>(
  key: K,
  fields: Fields,
  read: (part: DocumentPart) => T | undefined,
): { readonly [P in K]?: T } {
  const part = fields.get(key);
  const value = part === undefined ? undefined : read(part);
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: T });
}

export function wrongType(part: DocumentPart, wanted: string, reading: DocumentReading): undefined {
  return noteFault(reading, 'wrong_type', part, `This is ${kindOf(part)}; give ${wanted}.`);
}

function kindOf({ json, items }: DocumentPart): string {
  if (json === null) return 'empty';
  if (items !== undefined) return 'a list';
  if (isJsonObject(json)) return 'an object';
  if (json === '') return 'an empty text';
  return typeof json === 'string' ? 'a text' : `the ${typeof json} ${String(json)}`;
}

export function readTextPart(part: DocumentPart, reading: DocumentReading, wanted = 'a text'): string | undefined {
  if (typeof part.json === 'string' && part.json.trim() !== '') return part.json;
  return wrongType(part, wanted, reading);
}

export function flagOf(part: DocumentPart, reading: DocumentReading): boolean | undefined {
  return typeof part.json === 'boolean' ? part.json : wrongType(part, 'true or false', reading);
}

export function wholeOf(part: DocumentPart, least: number, reading: DocumentReading): number | undefined {
  const { json } = part;
  if (typeof json === 'number' && Number.isSafeInteger(json) && json >= least) return json;
  return wrongType(part, `a whole number from ${least}`, reading);
}

export function numberOf(part: DocumentPart, least: number, reading: DocumentReading): number | undefined {
  const { json } = part;
  return typeof json === 'number' && json >= least ? json : wrongType(part, `a number from ${least}`, reading);
}

export function readOneOf<const W extends string>(
  part: DocumentPart,
  words: readonly W[],
  reading: DocumentReading,
): W | undefined {
  const found = words.find((word) => word === part.json);
  return found ?? wrongType(part, `one of ${words.map(quotedName).join(', ')}`, reading);
}

export function isPointer(text: string): boolean {
  return text === '' || text.startsWith('/');
}

export function pointerOf(part: DocumentPart, reading: DocumentReading): string | undefined {
  if (typeof part.json === 'string' && isPointer(part.json)) return part.json;
  return wrongType(part, 'a JSON Pointer: "" for the whole, else it begins with "/"', reading);
}

/** An entry of one of the tables. @param what `function`, `flow` or `schema`. */
export function namedOf<T>(
  part: DocumentPart,
  table: Readonly<Record<string, T>>,
  what: string,
  reading: DocumentReading,
): T | undefined {
  const name = readTextPart(part, reading, `the name of a ${what}`);
  if (name === undefined || Object.hasOwn(table, name)) return name === undefined ? undefined : table[name];
  const known = advice(name, Object.keys(table), `${what}s`);
  return noteFault(
    reading,
    `unknown_${what}`,
    part,
    `There is no ${what} ${quotedName(name)} in \`${what}s\`. ${known}`,
  );
}

/** Any function, so that the rest can be judged where one is missing. It is never called: there is a fault. */
const NOTHING = (): undefined => undefined;

export function functionOf(part: DocumentPart, reading: DocumentReading): (...args: never[]) => unknown {
  const found = namedOf(part, reading.functions, 'function', reading);
  if (found === undefined || typeof found === 'function') return found ?? NOTHING;
  noteFault(reading, 'unknown_function', part, `\`functions\` has no function under ${quotedName(String(part.json))}.`);
  return NOTHING;
}

/** The name of a schema, or a JSON Schema. */
export function readSchema(part: DocumentPart, reading: DocumentReading): InputSchema | undefined {
  const { json } = part;
  const inline = isJsonObject(json) ? json : undefined;
  const schema =
    typeof json === 'string'
      ? namedOf(part, reading.schemas, 'schema', reading)
      : (inline ?? wrongType(part, 'the name of a schema or a JSON Schema', reading));
  if (schema === undefined) return undefined;
  try {
    checkOf(schema, 'The document');
    return schema;
  } catch (cause) {
    if (!PilotageError.is(cause)) throw cause;
    return noteFault(reading, 'schema_invalid', part, cause.message);
  }
}

/** The name of a node of the flow. Without it the graph is not whole. */
export function nodeNameOf(part: DocumentPart, reading: DocumentReading): string | undefined {
  const name = readTextPart(part, reading, 'the name of a node');
  if (name !== undefined && reading.nodes.has(name)) return name;
  reading.graphBroken = true;
  if (name === undefined) return undefined;
  const message = `There is no node ${quotedName(name)}. ${advice(name, [...reading.nodes], 'nodes')}`;
  return noteFault(reading, 'unknown_node', part, message);
}

/** Names of nodes; `undefined` when one of them is not the name of a node. */
export function nodeNamesOf(part: DocumentPart, reading: DocumentReading): readonly string[] | undefined {
  if (part.items === undefined) return wrongType(part, 'a list of nodes', reading);
  const names = part.items.flatMap((item) => nodeNameOf(item, reading) ?? []);
  return names.length === part.items.length ? names : undefined;
}
