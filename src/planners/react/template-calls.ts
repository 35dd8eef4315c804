/** What stands between the tokens of the known chat templates: how each writes a call's name and arguments. */

import { isJsonObject, type Json, type JsonObject } from '#core';
import { DEFAULT_PARSE_LIMITS, readStrictJson } from '#parse';

/** Reads one text from left to right, and strictly: what is not there as it should be is not there. */
export class TemplateText {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  get isAtEnd(): boolean {
    this.space();
    return this.at >= this.text.length;
  }

  /** Passes over blanks. */
  space(): void {
    while (/\s/.test(this.text.charAt(this.at))) this.at += 1;
  }

  /** @param pattern sticky. */
  match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) return undefined;
    this.at = pattern.lastIndex;
    return match;
  }

  /** Everything up to `end`, which is passed over too. */
  upTo(end: string): string | undefined {
    const found = this.text.indexOf(end, this.at);
    if (found === -1) return undefined;
    const between = this.text.slice(this.at, found);
    this.at = found + end.length;
    return between;
  }

  /** The JSON object or list that begins here. */
  json(): Json | undefined {
    const end = this.#containerEnd();
    if (end === undefined) return undefined;
    const value = readStrictJson(this.text.slice(this.at, end), DEFAULT_PARSE_LIMITS.maxDepth);
    if (value !== undefined) this.at = end;
    return value;
  }

  object(): JsonObject | undefined {
    const value = this.json();
    return isJsonObject(value) ? value : undefined;
  }

  #containerEnd(): number | undefined {
    const first = this.text[this.at];
    if (first !== '{' && first !== '[') return undefined;
    let depth = 0;
    for (let at = this.at; at < this.text.length; at += 1) {
      const char = this.text[at];
      if (char === '"') {
        for (at += 1; at < this.text.length && this.text[at] !== '"'; at += 1) if (this.text[at] === '\\') at += 1;
      } else if (char === '{' || char === '[') depth += 1;
      else if (char === '}' || char === ']') depth -= 1;
      if (depth === 0) return at + 1;
    }
    return undefined;
  }
}

export interface TemplateCall {
  readonly tool: string;
  readonly args: JsonObject;
}

/** Reads what a template has between its tokens. Gives nothing for what is not there as it should be. */
export type ReadCalls = (at: TemplateText, typeOf: TypeOf) => readonly TemplateCall[] | undefined;

/** The type that the tool's schema gives an argument; arguments in tags do not say theirs. */
export type TypeOf = (tool: string, argument: string) => Json | undefined;

const BAR = '[|｜]';
const GAP = '[_▁ ]';
export const deepseek = (name: string): string => `<${BAR}${name.replaceAll(' ', GAP)}${BAR}>`;

/** Objects, or lists of them, with at most a semicolon or comma between them. */
export function objects(at: TemplateText): readonly TemplateCall[] | undefined {
  const calls: TemplateCall[] = [];
  while (at.match(/(?=\{|\[\s*\{)/y) !== undefined) {
    const value = at.json();
    const items = Array.isArray(value) ? value : [value];
    for (const item of items) {
      const call = callOf(item);
      if (call === undefined) return undefined;
      calls.push(call);
    }
    at.match(/\s*[;,]?\s*/y);
  }
  return calls.length === 0 ? undefined : calls;
}

const CALL_KEYS: ReadonlySet<string> = new Set([
  'name',
  'tool_name',
  'arguments',
  'parameters',
  'id',
  'tool_call_id',
  'type',
]);

function callOf(item: Json | undefined): TemplateCall | undefined {
  if (!isJsonObject(item)) return undefined;
  const { function: inner, ...around } = item;
  if (inner !== undefined) {
    return Object.keys(around).every((key) => key === 'id' || key === 'type') ? callOf(inner) : undefined;
  }
  if (!Object.keys(item).every((key) => CALL_KEYS.has(key))) return undefined;
  const tool = item['name'] ?? item['tool_name'];
  const args = argumentsOf(item['arguments'] ?? item['parameters']);
  return typeof tool === 'string' && args !== undefined ? { tool, args } : undefined;
}

/** Some templates have the arguments as JSON text. */
function argumentsOf(written: Json | undefined): JsonObject | undefined {
  if (typeof written !== 'string') return isJsonObject(written) ? written : undefined;
  const text = new TemplateText(written.trim());
  const args = text.object();
  return text.isAtEnd ? args : undefined;
}

/** `<function=name>{…}</function>`, or with `<parameter=key>value</parameter>` inside. */
export function functionTags(at: TemplateText, typeOf: TypeOf): readonly TemplateCall[] | undefined {
  const calls: TemplateCall[] = [];
  for (;;) {
    const tool = at.match(/\s*<function=([^<>\s]{1,128})>\s*/y)?.[1];
    if (tool === undefined) return calls.length === 0 ? undefined : calls;
    const args =
      at.text[at.at] === '{'
        ? at.object()
        : parameters(at, tool, typeOf, /\s*<parameter=([^<>]{1,128})>/y, '</parameter>');
    if (args === undefined || at.match(/\s*<\/function>/y) === undefined) return undefined;
    calls.push({ tool, args });
  }
}

/** `<invoke name="…">` with `<parameter name="…">value</parameter>` inside. @param prefix of the tags, as a pattern. */
export function invokeTags(at: TemplateText, typeOf: TypeOf, prefix: string): readonly TemplateCall[] | undefined {
  const invoke = new RegExp(`\\s*<${prefix}invoke name="([^"<>]{1,128})">`, 'y');
  const parameter = new RegExp(`\\s*<${prefix}parameter name="([^"<>]{1,128})"(?: string="(true|false)")?>`, 'y');
  const calls: TemplateCall[] = [];
  for (;;) {
    const tool = at.match(invoke)?.[1];
    if (tool === undefined) return calls.length === 0 ? undefined : calls;
    const bar = prefix === '' ? '' : at.text.includes('｜DSML｜') ? '｜DSML｜' : '|DSML|';
    const args = parameters(at, tool, typeOf, parameter, `</${bar}parameter>`);
    if (args === undefined || at.match(new RegExp(`\\s*</${prefix}invoke>`, 'y')) === undefined) return undefined;
    calls.push({ tool, args });
  }
}

/** `name`, then `<arg_key>key</arg_key><arg_value>value</arg_value>` over and over. */
export function keyTags(at: TemplateText, typeOf: TypeOf): readonly TemplateCall[] | undefined {
  const tool = at.match(/([^\s<>{}[\]]{1,128})\s*(?=<arg_key>|<\/tool_call>)/y)?.[1];
  if (tool === undefined) return undefined;
  const args = parameters(at, tool, typeOf, /\s*<arg_key>([^<>]{1,128})<\/arg_key>\s*<arg_value>/y, '</arg_value>');
  return args === undefined ? undefined : [{ tool, args }];
}

function parameters(
  at: TemplateText,
  tool: string,
  typeOf: TypeOf,
  open: RegExp,
  close: string,
): JsonObject | undefined {
  const args = new Map<string, Json>();
  for (;;) {
    const begun = at.match(open);
    const key = begun?.[1]?.trim();
    if (begun === undefined || key === undefined) return Object.fromEntries(args);
    const text = at.upTo(close);
    if (text === undefined || args.has(key)) return undefined;
    const type = begun[2] === 'true' ? 'string' : typeOf(tool, key);
    args.set(key, typedValue(text.replace(/^\r?\n/, '').replace(/\r?\n$/, ''), type));
  }
}

function typedValue(text: string, type: Json | undefined): Json {
  if (type === 'string') return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** `[TOOL_CALLS] [{…}]`, or `[TOOL_CALLS]name[ARGS]{…}` over and over. */
export function mistral(at: TemplateText): readonly TemplateCall[] | undefined {
  const calls: TemplateCall[] = [];
  while (at.match(/\s*\[TOOL_CALLS\]\s*/y) !== undefined) {
    const tool = at.match(/([^\s[\]{}"]{1,128})(?:\[CALL_ID\][\w-]{1,64})?(?:\[ARGS\])?\s*(?=\{)/y)?.[1];
    if (tool === undefined) {
      const listed = objects(at);
      if (listed === undefined) return undefined;
      calls.push(...listed);
      continue;
    }
    const args = at.object();
    if (args === undefined) return undefined;
    calls.push({ tool, args });
  }
  return calls;
}

const DEEPSEEK_BEGIN = new RegExp(`\\s*${deepseek('tool call begin')}`, 'y');
const DEEPSEEK_NAME = new RegExp(
  `(?:function${deepseek('tool sep')})?([^\\s<>{}｜|]{1,128})\\s*(?:${deepseek('tool sep')})?`,
  'y',
);
const DEEPSEEK_END = new RegExp(`\\s*${deepseek('tool call end')}`, 'y');

/** `name<sep>{…}`, or in earlier versions `function<sep>name` and a fence. */
export function deepseekCalls(at: TemplateText): readonly TemplateCall[] | undefined {
  const calls: TemplateCall[] = [];
  while (at.match(DEEPSEEK_BEGIN) !== undefined) {
    const tool = at.match(DEEPSEEK_NAME)?.[1];
    const isFenced = at.match(/\s*```(?:json)?\s*/y) !== undefined;
    const args = at.object();
    if (tool === undefined || args === undefined) return undefined;
    if (isFenced && at.match(/\s*```/y) === undefined) return undefined;
    if (at.match(DEEPSEEK_END) === undefined) return undefined;
    calls.push({ tool, args });
  }
  return calls;
}

/** `functions.name:0` and its arguments, over and over. */
export function kimi(at: TemplateText): readonly TemplateCall[] | undefined {
  const calls: TemplateCall[] = [];
  while (at.match(/\s*<\|tool_call_begin\|>/y) !== undefined) {
    const tool = at.match(/\s*(?:functions\.)?([^\s<>|:]{1,128}):\d{1,6}\s*<\|tool_call_argument_begin\|>\s*/y)?.[1];
    const args = at.object();
    if (tool === undefined || args === undefined || at.match(/\s*<\|tool_call_end\|>/y) === undefined) return undefined;
    calls.push({ tool, args });
  }
  return calls;
}

/** `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}`. */
export function harmony(at: TemplateText): readonly TemplateCall[] | undefined {
  const head =
    /(?:<\|start\|>assistant)?<\|channel\|>commentary to=functions\.([^\s<>|]{1,128})\s*(?:<\|constrain\|>)?(?:json)?\s*<\|message\|>\s*/y;
  const tool = at.match(head)?.[1];
  const args = at.object();
  return tool === undefined || args === undefined ? undefined : [{ tool, args }];
}
