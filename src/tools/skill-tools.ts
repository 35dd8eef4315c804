/** The built-in tools that find and read the skills of a run that has more of them than it is shown. */
import { defined, type Json, SKILL_GET, SKILL_SEARCH } from '#core';
import { type ToolOptions, tool } from './tool.ts';

const MAX_LIMIT = 50;
const DEFAULT_LIMIT = 10;

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
