/** The built-in tools with which a run finds and reads other tools and its skills. */
import {
  defined,
  isBuiltinTool,
  type Json,
  SKILL_GET,
  SKILL_SEARCH,
  TOOL_GET,
  TOOL_SEARCH,
  type ToolSchema,
  type ToolView,
} from '#core';
import { TimeLimit } from '#schema';
import { ToolFailure, type ToolOptions, tool } from './tool.ts';

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 50;
const MAX_QUERY_CHARS = 500;
const MAX_WORDS = 16;
/** A regular expression sees this much of a tool's text. */
const MAX_TEXT_CHARS = 4_000;
const PATTERN_TIME_MS = 200;

/** Value: `{ tools: { name, description, tags }[], count }`, the best first. */
export const toolSearch: ToolOptions = tool({
  name: TOOL_SEARCH,
  description:
    'Finds tools by what they do. Those that are found can be called from your next turn on. Give words, or a regular ' +
    'expression between slashes; without a query and tags all tools are given.',
  effect: 'read',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', maxLength: MAX_QUERY_CHARS, description: 'Words, a name, or /a pattern/.' },
      tags: { type: 'array', items: { type: 'string' }, description: 'Only tools that have all of these.' },
      limit: { type: 'integer', description: `Default ${DEFAULT_LIMIT}, at most ${MAX_LIMIT}.` },
    },
    additionalProperties: false,
  },
  execute: ({ query = '', tags = [], limit = 0 }, { tools, discover }) => {
    const hits = searchTools(tools, String(query), tags as readonly string[], Number(limit));
    discover(hits.map((hit) => hit.name));
    const shown = hits.map(({ name, description, tags: own }): Json => ({ name, description, tags: own }));
    return { tools: shown, count: shown.length };
  },
});

/** The tools of the view, but for the built-in ones, that have all the tags and match the query; the best first. */
function searchTools(view: ToolView, query: string, tags: readonly string[], limit: number): readonly ToolSchema[] {
  const wanted = tags.map(fold);
  const candidates = view.all().filter(({ name, tags: own }) => {
    const has = own.map(fold);
    return !isBuiltinTool(view, name) && wanted.every((tag) => has.includes(tag));
  });
  return rank(candidates, query.trim()).slice(0, limit <= 0 ? DEFAULT_LIMIT : Math.min(limit, MAX_LIMIT));
}

function rank(tools: readonly ToolSchema[], query: string): readonly ToolSchema[] {
  if (query === '') return tools;
  const pattern = /^\/(.+)\/[im]*$/s.exec(query)?.[1];
  return pattern === undefined ? rankByWords(tools, query) : matching(tools, pattern);
}

/** @throws ToolFailure for a pattern that is not valid, or that takes too long. */
function matching(tools: readonly ToolSchema[], pattern: string): readonly ToolSchema[] {
  const hits: ToolSchema[] = [];
  let inTime: boolean;
  try {
    const expression = new RegExp(pattern, 'im');
    inTime = new TimeLimit(PATTERN_TIME_MS).run(() => {
      for (const schema of tools) if (expression.test(textOf(schema).slice(0, MAX_TEXT_CHARS))) hits.push(schema);
    });
  } catch (cause) {
    throw new ToolFailure('The query between slashes is not a valid regular expression.', {
      code: 'tool_invalid_args',
      cause,
    });
  }
  if (inTime) return hits;
  throw new ToolFailure('The regular expression takes too long. Give plain words.', { code: 'tool_invalid_args' });
}

function textOf({ name, description, tags }: ToolSchema): string {
  return [name, description, ...tags].join('\n');
}

/** Folded texts of a tool, and where it stands. */
interface Candidate {
  readonly schema: ToolSchema;
  readonly name: string;
  readonly rest: string;
  readonly text: string;
}

/** What holds the query as it stands, or all its words; when nothing does, what holds some of them. */
function rankByWords(tools: readonly ToolSchema[], query: string): readonly ToolSchema[] {
  const whole = fold(query);
  const words = [...new Set(whole.match(/[\p{L}\p{N}]+/gu))].slice(0, MAX_WORDS);
  const candidates = tools.map(candidateOf);
  const weights = words.map((word) => 1 / Math.max(1, candidates.filter(({ text }) => text.includes(word)).length));
  const strict = candidates.filter(
    ({ text }) => text.includes(whole) || (words.length > 0 && words.every((word) => text.includes(word))),
  );
  const loose = strict.length > 0 ? strict : candidates.filter(({ text }) => words.some((word) => text.includes(word)));
  return loose
    .map((candidate) => ({ candidate, score: scoreOf(candidate, whole, words, weights) }))
    .sort((a, b) => b.score - a.score)
    .map(({ candidate }) => candidate.schema);
}

function candidateOf(schema: ToolSchema): Candidate {
  const name = fold(schema.name);
  const rest = fold([schema.description, ...schema.tags].join('\n'));
  return { schema, name, rest, text: `${name}\n${rest}` };
}

/** The exact name, then the query within the name, then within the rest; below that by the words, rare ones first. */
function scoreOf(
  { name, rest }: Candidate,
  whole: string,
  words: readonly string[],
  weights: readonly number[],
): number {
  const score = name === whole ? 3_000 : name.includes(whole) ? 2_000 : rest.includes(whole) ? 1_000 : 0;
  return words.reduce((sum, word, index) => {
    const place = name.includes(word) ? 3 : rest.includes(word) ? 1 : 0;
    return sum + place * (weights[index] ?? 0);
  }, score);
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/** Value: `{ name, description, args_schema, found: true }`, or `{ name, found: false, error }`. */
export const toolGet: ToolOptions = tool({
  name: TOOL_GET,
  description:
    'Describes one tool: what it does and the schema of its arguments. It can be called from your next turn on.',
  effect: 'read',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', description: 'The name of the tool, as tool_search gives it.' } },
    required: ['name'],
    additionalProperties: false,
  },
  execute: ({ name }, { tools, discover }) => {
    const wanted = String(name);
    const schema = tools.get(wanted);
    // The same words for a tool that this run may not use.
    if (schema === undefined) return { name: wanted, found: false, error: 'There is no tool of this name.' };
    discover([wanted]);
    return { name: wanted, description: schema.description, args_schema: schema.inputSchema, found: true };
  },
});

/** Value: `{ skills: { name, title, description?, score }[], count }`, the best first. */
export const skillSearch: ToolOptions = tool({
  name: SKILL_SEARCH,
  description: 'Finds ways of working that the operator wrote down, by words of what you want to do.',
  effect: 'read',
  loading: 'deferred',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', maxLength: 500, description: 'Words, or a name. Without it all are given.' },
      limit: { type: 'integer', description: `Default ${DEFAULT_LIMIT}, at most ${MAX_LIMIT}.` },
    },
    additionalProperties: false,
  },
  execute: ({ query = '', limit = 0 }, { skills }) => {
    const most = Number(limit) <= 0 ? DEFAULT_LIMIT : Math.min(Number(limit), MAX_LIMIT);
    const wanted = String(query).trim();
    const hits =
      wanted === ''
        ? skills
            .list()
            .slice(0, most)
            .map((skill) => ({ skill, score: 1 }))
        : skills.search(wanted, most);
    const shown = hits.map(
      ({ skill: { name, title, description }, score }): Json => ({
        name,
        title,
        ...defined({ description }),
        score,
      }),
    );
    return { skills: shown, count: shown.length };
  },
});

/** Value: `{ name, title, description?, steps?, found: true }`, or `{ name, found: false, error }`. */
export const skillGet: ToolOptions = tool({
  name: SKILL_GET,
  description: 'Gives one way of working, whole, by its name.',
  effect: 'read',
  loading: 'deferred',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', description: 'As skill_search gives it.' } },
    required: ['name'],
    additionalProperties: false,
  },
  execute: ({ name }, { skills }) => {
    const skill = skills.get(String(name));
    return skill === undefined
      ? { name: String(name), found: false, error: 'There is no skill of this name.' }
      : { ...skill, found: true };
  },
});
