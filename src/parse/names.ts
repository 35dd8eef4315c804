/** The tools of a parse by their names, as declared and as models write them. */
import { isJsonObject, type JsonObject, PilotageError } from '#core';

/** A tool as the parser needs it: a `ToolSchema`, or a definition with `parameters`. */
export interface ParseTool {
  readonly name: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema?: JsonObject;
  /** The same under the name that many providers use. */
  readonly parameters?: JsonObject;
}

interface Resolved {
  readonly tool: ParseTool;
  /** Only the end of the name fits: `search` for `web.search`. */
  readonly isPartial: boolean;
}

export interface ToolNames {
  readonly tools: readonly ParseTool[];
  /** False when no tool's name ends with this character, so that most words of a text are not even cut out of it. */
  mayEndWith(code: number): boolean;
  /** The tool that is meant, when exactly one can be. */
  resolve(name: string): Resolved | undefined;
}

const EMPTY: JsonObject = {};

export function schemaOf(tool: ParseTool): JsonObject {
  return tool.inputSchema ?? tool.parameters ?? EMPTY;
}

/** The declared arguments, in their order. */
export function propertiesOf(tool: ParseTool): JsonObject {
  const properties = schemaOf(tool)['properties'];
  return isJsonObject(properties) ? properties : EMPTY;
}

/** The tool declares no arguments by name. */
export function takesAnything(tool: ParseTool): boolean {
  return !isJsonObject(schemaOf(tool)['properties']);
}

export function requiredOf(tool: ParseTool): readonly string[] {
  const required = schemaOf(tool)['required'];
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

const OTHER_THAN_WORD = /[^\p{L}\p{N}]/gu;

/** A name without case and without what joins its words. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(OTHER_THAN_WORD, '');
}

const MAX_NAME_CHARS = 200;
const MAX_REMEMBERED = 5000;

/** @throws PilotageError `invalid_config` for a value that is not a list, since that is the caller's mistake. */
export function toolNames(tools: readonly ParseTool[]): ToolNames {
  if (!Array.isArray(tools)) {
    throw new PilotageError('invalid_config', 'The tools are a list, of which each has a name: [{ name, … }].');
  }
  const exact = new Map<string, ParseTool>();
  const plain = new Map<string, ParseTool | undefined>();
  const endings = new Map<string, ParseTool | undefined>();
  // A name ends as one of the tools does, in every way of writing it: most words of a text are excluded by that.
  const lastChars = new Set<string>();
  for (const tool of tools) {
    if (exact.has(tool.name)) continue;
    exact.set(tool.name, tool);
    const key = plainName(tool.name);
    addUnique(plain, key, tool);
    lastChars.add(key.slice(-1)).add(tool.name.slice(-1).toLowerCase());
    const last = tool.name.split(/[./:]/).at(-1) ?? '';
    if (last !== tool.name) addUnique(endings, plainName(last), tool);
  }
  const find = (name: string): Resolved | undefined => {
    const tool = exact.get(name) ?? resolveLongest(name, plain);
    if (tool !== undefined) return { tool, isPartial: false };
    const partial = endings.get(plainName(name));
    return partial === undefined ? undefined : { tool: partial, isPartial: true };
  };
  const remembered = new Map<string, Resolved | undefined>();
  const endsCode = endCodes(lastChars);
  return {
    tools,
    mayEndWith: (code) => endsCode[code] !== 0,
    resolve(name) {
      if (name.length > MAX_NAME_CHARS) return undefined;
      const known = remembered.get(name);
      if (known !== undefined || remembered.has(name)) return known;
      if (!lastChars.has(lastWordChar(name))) return undefined;
      const resolved = find(name);
      if (remembered.size < MAX_REMEMBERED) remembered.set(name, resolved);
      return resolved;
    },
  };
}

/** By the code of an ASCII letter or digit: 1 when a name may end with it. Any other character may be anything. */
function endCodes(lastChars: ReadonlySet<string>): Uint8Array {
  const codes = new Uint8Array(128).fill(1);
  for (let code = 48; code < 123; code += 1) {
    const char = String.fromCharCode(code).toLowerCase();
    if (/[a-z0-9]/.test(char) && !lastChars.has(char)) codes[code] = 0;
  }
  return codes;
}

/** The last letter or digit, in lower case. */
function lastWordChar(name: string): string {
  const last = name.slice(-1).toLowerCase();
  return /[a-z0-9]/.test(last) ? last : plainName(name).slice(-1);
}

/** A name that two tools share stands for neither. */
function addUnique(map: Map<string, ParseTool | undefined>, key: string, tool: ParseTool): void {
  if (key !== '') map.set(key, map.has(key) ? undefined : tool);
}

/** `functions.math.gcd` is tried as it is, then as `math.gcd`, then as `gcd`. */
function resolveLongest(name: string, plain: ReadonlyMap<string, ParseTool | undefined>): ParseTool | undefined {
  let rest = name.trim();
  for (;;) {
    const tool = plain.get(plainName(rest));
    if (tool !== undefined) return tool;
    const cut = rest.search(/[./:]/);
    if (cut < 0) return undefined;
    rest = rest.slice(cut + 1);
  }
}
