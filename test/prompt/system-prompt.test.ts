import { describe, expect, it } from 'vitest';
import type { PlanningHints } from '#core';
import { systemPrompt, toolDescription } from '#prompt';
import { type RunViewOptions, runView, toolView } from '#testing';
import { DISCOVERY, schema, TOOLS } from '../kit/tool-schemas.ts';

const base = { converse: false };
const startedAt = Date.UTC(2026, 0, 2, 23, 59, 59, 999);
const two = toolView(TOOLS);
const all = toolView([...TOOLS, ...DISCOVERY]);
const hints: PlanningHints = {
  constraints: 'Stay within the folder.',
  preferredOrder: ['search', 'read'],
  parallelGroups: [['read', 'search'], [], ['csv_read', 'read']],
  disallowedTools: ['delete'],
  preferredTools: ['search'],
  budget: { steps: 5, costUsd: 1.5, latencyMs: 30_000 },
};
const FULL: RunViewOptions = { tools: all, startedAt, context: { hints } };

const prompt = (parts: object, options: RunViewOptions, mode: 'native' | 'text' = 'native') =>
  systemPrompt({ ...base, ...parts }, runView({ startedAt, ...options }), mode);
const tags = (text: string) => [...text.matchAll(/^<(\w+)>$/gm)].map((match) => match[1]);
const sectionOf = (text: string, tag: string) => text.match(new RegExp(`<${tag}>\\n([\\s\\S]*?)\\n</${tag}>`))?.[1];

describe('the system prompt', () => {
  it('RA-23 is the golden one: two tools, no tools, everything, text mode', async () => {
    await expect(prompt({}, { tools: two })).toMatchFileSnapshot('golden/two-tools.txt');
    await expect(prompt({}, {})).toMatchFileSnapshot('golden/no-tools.txt');
    await expect(prompt({ guidance: 'Be brief.', tasks: true }, FULL)).toMatchFileSnapshot('golden/everything.txt');
    await expect(prompt({}, { tools: two }, 'text')).toMatchFileSnapshot('golden/text-mode.txt');
  });

  it('RA-23 has its sections in order, a blank line between', () => {
    const text = prompt({ guidance: ' Be brief. ', tasks: true }, FULL);
    expect(tags(text)).toEqual([
      ...['identity', 'tool_discovery', 'heavy_results', 'tool_usage', 'reasoning', 'tone', 'error_handling'],
      ...['framed_text', 'additional_guidance', 'planning_constraints'],
    ]);
    expect(text.match(/<\/\w+>\n\n</g)).toHaveLength(9);
    expect(sectionOf(text, 'additional_guidance')).toBe('Be brief.');
  });

  it('RA-41 each section is there only with what it speaks of', () => {
    expect(tags(prompt({}, {}))).toEqual(['identity', 'reasoning', 'tone', 'framed_text', 'available_tools']);
    expect(tags(prompt({}, { tools: two }))).not.toContain('tool_discovery');
    const noSearch = toolView([...TOOLS, schema('csv_read', { loading: 'deferred' })]);
    expect(tags(prompt({}, { tools: noSearch }))).not.toContain('tool_discovery');
    const noGet = toolView([schema('tool_search'), schema('csv_read', { loading: 'deferred' })]);
    expect(sectionOf(prompt({}, { tools: noGet }), 'tool_discovery')).not.toContain('tool_get');
    expect(prompt({}, { tools: two })).not.toContain('artifact_fetch');
    expect(sectionOf(prompt({}, { tools: all }), 'heavy_results')).toContain('artifact_fetch');
    for (const mode of ['native', 'text'] as const) {
      expect(prompt({}, { tools: two }, mode)).not.toMatch(/_spawn_task|_await_task|_finish/);
    }
  });

  it('speaks of tasks where there are tasks, even without another tool', () => {
    const text = prompt({ tasks: true }, {});
    expect(prompt({}, { tasks: true })).not.toContain('task');
    expect(sectionOf(text, 'tool_usage')).toContain('While a task is under way');
    expect(prompt({ tasks: true, converse: true }, {})).not.toContain('While a task is under way');
    expect(sectionOf(text, 'tool_usage')).toMatch(/_spawn_task[\s\S]*_await_task/);
    const listed = sectionOf(prompt({ tasks: true }, {}, 'text'), 'available_tools') ?? '';
    expect(listed.match(/^- \w+/gm)).toEqual(['- _spawn_task', '- _await_task']);
  });

  it('RA-24 says nothing of tools that the request declares, lists them in text mode, and says when there is none', () => {
    const native = prompt({ tasks: true }, FULL);
    for (const { description } of all.all()) expect(native).not.toContain(description);
    expect(tags(native)).not.toContain('available_tools');
    expect(sectionOf(native, 'tool_discovery')).toContain('There are more tools than those declared to you.');
    const text = prompt({}, FULL, 'text');
    expect(sectionOf(text, 'available_tools')).toContain('- read: Reads a file. Paths are relative.\n');
    expect(sectionOf(text, 'tool_discovery')).toContain('There are more tools than those listed below.');
    for (const mode of ['native', 'text'] as const) {
      expect(sectionOf(prompt({}, {}, mode), 'available_tools')).toBe('No tools are available.');
    }
  });

  it('W46 a tool that is found does not change it', () => {
    for (const mode of ['native', 'text'] as const) {
      const found = toolView([...TOOLS, ...DISCOVERY], ['csv_read']);
      expect(found.list().map(({ name }) => name)).toContain('csv_read');
      expect(prompt({}, { tools: found }, mode)).toBe(prompt({}, { tools: all }, mode));
      expect(prompt({}, { tools: found }, mode)).not.toContain('csv_read');
    }
  });

  it('RA-25 a custom prompt replaces the first seven sections; blank parts are left out', () => {
    const parts = { systemPrompt: 'You are a cat.', guidance: 'Purr.' };
    const custom = prompt(parts, FULL);
    expect(custom.startsWith('You are a cat.\n\n<framed_text>')).toBe(true);
    expect(tags(custom)).toEqual(['framed_text', 'additional_guidance', 'planning_constraints']);
    expect(tags(prompt(parts, { tools: two }, 'text'))).toEqual([
      ...['framed_text', 'tool_calling', 'available_tools', 'additional_guidance'],
    ]);
    const blank = { systemPrompt: ' ', guidance: ' \n' };
    expect(prompt(blank, { tools: two })).toBe(prompt({}, { tools: two }));
  });

  it('RA-26 has the day of the recorded start in UTC and nothing finer', () => {
    const text = prompt({}, { tools: two });
    expect(text).toContain('2026-01-02 (UTC)');
    expect(text).toBe(prompt({}, { tools: two, startedAt: Date.UTC(2026, 0, 2) }));
  });

  it('RA-28, BG-06 names the hints that are set, and only those', () => {
    expect(sectionOf(prompt({}, FULL), 'planning_constraints')?.split('\n')).toEqual([
      'Constraints: Stay within the folder.',
      'Preferred order: search -> read',
      'May be called together: read + search; csv_read + read',
      'Do not use: delete',
      'Preferred tools: search',
      'Budget: 5 steps, 1.5 USD, 30000 ms',
    ]);
    const some = { context: { hints: { disallowedTools: ['x'], preferredOrder: [], budget: { steps: 0 } } } };
    expect(sectionOf(prompt({}, some), 'planning_constraints')).toBe('Do not use: x\nBudget: 0 steps');
    const none = { context: { hints: { constraints: ' ', parallelGroups: [[]], budget: {} } } };
    expect(tags(prompt({}, none))).not.toContain('planning_constraints');
  });

  it('says how a run ends, and in a conversation that the user writes back', () => {
    expect(prompt({}, {})).toContain('that answer ends the run');
    expect(prompt({ converse: true }, {})).toContain('may write again');
    expect(prompt({ converse: true }, {})).not.toContain('ends the run');
    expect(sectionOf(prompt({ converse: true }, { tools: two }, 'text'), 'tool_calling')).not.toContain('ends the run');
  });

  it('gives the schema of the answer when there is one, under a custom prompt too', () => {
    const answerSchema = { type: 'object', required: ['city'] };
    const text = prompt({ answerSchema, guidance: 'Go.' }, { tools: two });
    expect(tags(text).slice(-3)).toEqual(['framed_text', 'answer_format', 'additional_guidance']);
    expect(sectionOf(text, 'answer_format')).toContain('\n{"type":"object","required":["city"]}');
    expect(text).toContain('answer without a tool call: that answer ends the run');
    expect(text).not.toContain('plain text');
    expect(tags(prompt({ answerSchema, systemPrompt: 'Hi.' }, {}))).toEqual([
      'framed_text',
      'answer_format',
      'available_tools',
    ]);
  });

  it('text mode states the form of a call and the schema and examples of each tool', () => {
    const text = prompt({ maxExamples: 1, tasks: true }, { tools: two }, 'text');
    expect(sectionOf(text, 'tool_calling')).toContain('```json\n{"tool": "...", "args": {...}}\n```');
    const tools = sectionOf(text, 'available_tools') ?? '';
    expect(tools.split('\n').slice(0, 3)).toEqual([
      '- read: Reads a file. Paths are relative.',
      '  arguments: {"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}',
      '  example: {"path":"README.md"}',
    ]);
    expect(tools).toMatch(/- _await_task: .*\n {2}arguments: .*"task_id"/);
    expect(tags(prompt({}, {}, 'text'))).not.toContain('tool_calling');
  });
});

describe("a tool's description", () => {
  it('RG-12 has the first three examples, or as many as it is told', () => {
    const [read, search] = TOOLS;
    expect(toolDescription(read ?? schema(''))).toBe(
      'Reads a file.\n  Paths are relative.\nExamples of arguments:\n{"path":"README.md"}\n{"path":"src"}\n{"path":"a"}',
    );
    expect(toolDescription(read ?? schema(''), 1)).toMatch(/arguments:\n\{"path":"README.md"\}$/);
    expect(toolDescription(read ?? schema(''), 0)).toBe('Reads a file.\n  Paths are relative.');
    expect(toolDescription(search ?? schema(''))).toBe('Finds text in files.');
  });
});
