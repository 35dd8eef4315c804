/** Calls in the very form that the text-mode prompt teaches (`prompt/system-prompt.ts`). A text that differs is not a call. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import { isDefinition } from './call-shapes.ts';
import type { FoundCall } from './find-calls.ts';
import { NO_SOURCES } from './fit-arguments.ts';
import { readStrictJson } from './loose-value.ts';
import { setsOut } from './mood.ts';
import type { ToolNames } from './names.ts';
import { isTemplate } from './placeholders.ts';
import type { ParseLimits } from './reader.ts';
import { turnEnd, withoutThoughts } from './turns.ts';

const OPENING = /^```json[ \t]*\r?\n/;
const CLOSING = /\r?\n```\s*$/;

/**
 * The calls of a reply that ends with one fenced block of them: `{"tool": name, "args": {…}}`, or a list of such objects.
 * Words may stand before it, if they set out to make the call. Nothing when the block is anything
 * else, or says no tool that was given; unknown tools beside known ones have no `tool`.
 */
export function exactCalls(text: string, names: ToolNames, limits: Required<ParseLimits>): FoundCall[] | undefined {
  const closing = CLOSING.exec(text);
  if (closing === null) return undefined;
  const start = text.lastIndexOf('\n```json', closing.index) + 1;
  const opening = OPENING.exec(text.slice(start, start + 40));
  if (opening === null || start + opening[0].length > closing.index) return undefined;
  const calls = readBlock(text.slice(start + opening[0].length, closing.index), names, limits);
  if (calls === undefined || !calls.some(({ tool }) => tool !== undefined)) return undefined;
  const prose = proseOf(text.slice(0, start));
  if (prose === undefined || !setsOut(prose)) return undefined;
  return calls.map((call) => ({ ...call, start, end: text.length }));
}

/** Dots and blanks are no reason. */
const REASON = /\p{L}{2}/u;

function isReason(again: string): boolean {
  return REASON.test(again) && !isTemplate({ named: { reason: again }, positional: [] }, false);
}

type BlockCall = Omit<FoundCall, 'start' | 'end'>;

function readBlock(body: string, names: ToolNames, limits: Required<ParseLimits>): BlockCall[] | undefined {
  const value = readStrictJson(body, limits.maxDepth);
  if (value === undefined || hasRepeatedKey(body)) return undefined;
  const calls = (Array.isArray(value) ? value : [value]).map((item) => readCall(item, names));
  const whole = calls.filter((call) => call !== undefined);
  return whole.length === calls.length ? whole : undefined;
}

const JSON_MARK = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}]/g;

/** Whether an object of a well-formed JSON text has a key twice: readers differ in which of the two counts. */
function hasRepeatedKey(json: string): boolean {
  const open: Set<string>[] = [];
  for (const [mark, colon] of json.matchAll(JSON_MARK)) {
    if (mark === '{') open.push(new Set());
    else if (mark === '}') open.pop();
    else if (colon !== undefined) {
      const key: unknown = JSON.parse(mark.slice(0, mark.length - colon.length));
      const keys = open.at(-1);
      if (typeof key !== 'string' || keys?.has(key) === true) return true;
      keys?.add(key);
    }
  }
  return false;
}

/** An object with a tool and its arguments, perhaps the reason to make it again, and nothing beside them. */
function readCall(value: Json, names: ToolNames): BlockCall | undefined {
  if (!isJsonObject(value)) return undefined;
  const { tool: name, args, again = '', ...more } = value;
  if (typeof name !== 'string' || !isJsonObject(args) || typeof again !== 'string') return undefined;
  if (Object.keys(more).length > 0) return undefined;
  const tool = names.resolve(name)?.tool;
  if (tool !== undefined && (tool.name !== name || isNoArguments(args, tool))) return undefined;
  return {
    name,
    ...(tool === undefined ? {} : { tool }),
    named: args,
    positional: [],
    ...(isReason(again) ? { again: again.trim() } : {}),
    syntax: 'object',
    form: 'exact',
    isLoose: false,
    isTruncated: false,
    sources: NO_SOURCES,
  };
}

function isNoArguments(args: JsonObject, tool: Parameters<typeof isDefinition>[1]): boolean {
  return isDefinition(args, tool) || isTemplate({ named: args, positional: [] }, false);
}

/** Words that stand in a fence, a quotation, a comment or an element are not the model's own. */
const CODE = /^[ \t]*(?:```|~~~|>)|<!--|<(?:[a-z][\w-]*)(?:\s[^<>]*)?>/m;

/** The words before the block, without thinking, or nothing when the block stands inside something. */
function proseOf(before: string): string | undefined {
  const prose = withoutThoughts(before);
  if (prose === undefined || CODE.test(prose)) return undefined;
  const lines = prose.split('\n');
  if (lines.some((line) => turnEnd(line.trimStart().replace(/^[*#]+\s*/, ''), 0))) return undefined;
  return hasOpenQuotation(lines.slice(-4).join('\n')) ? undefined : prose;
}

function hasOpenQuotation(words: string): boolean {
  const straight = words.split('"').length - 1;
  const ticks = words.split('`').length - 1;
  return straight % 2 === 1 || ticks % 2 === 1 || words.lastIndexOf('\u201c') > words.lastIndexOf('\u201d');
}
