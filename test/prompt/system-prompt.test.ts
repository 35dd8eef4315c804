import { describe, expect, it } from 'vitest';
import { systemPrompt } from '../../src/prompt/system-prompt.ts';
import { toolView } from '../../src/testing/run-view.ts';

const base = { converse: false };
const startedAt = Date.UTC(2026, 0, 2, 23, 59, 59, 999);
const tools = toolView([
  { name: 'b', description: 'does\n  b', inputSchema: { type: 'object', secret: 1 }, effect: 'read', tags: [] },
  'a',
]).list();
const tags = (prompt: string) => [...prompt.matchAll(/^<(\w+)>$/gm)].map((match) => match[1]);

describe('the system prompt', () => {
  it('has its sections in order, a blank line between', () => {
    const prompt = systemPrompt({ ...base, guidance: ' Be brief. ' }, tools, startedAt);
    expect(tags(prompt)).toEqual([
      'identity',
      'tool_usage',
      'answering',
      'error_handling',
      'available_tools',
      'additional_guidance',
    ]);
    expect(prompt.match(/<\/\w+>\n\n</g)).toHaveLength(5);
    expect(prompt).toContain('<additional_guidance>\nBe brief.\n</additional_guidance>');
  });

  it('RA-24 has one line a tool without schemas, or one that there is none', () => {
    const prompt = systemPrompt(base, tools, startedAt);
    expect(prompt).toContain('<available_tools>\n- a: The tool a.\n- b: does b\n</available_tools>');
    expect(prompt).not.toContain('secret');
    const without = systemPrompt(base, [], startedAt);
    expect(without).toContain('No tools are available.');
    expect(tags(without)).toEqual(['identity', 'answering', 'available_tools']);
  });

  it('RA-25 a custom prompt replaces the first sections; blank parts are left out', () => {
    const custom = systemPrompt({ ...base, systemPrompt: 'You are a cat.', guidance: 'Purr.' }, tools, startedAt);
    expect(custom.startsWith('You are a cat.\n\n<available_tools>')).toBe(true);
    expect(tags(custom)).toEqual(['available_tools', 'additional_guidance']);
    const blank = systemPrompt({ ...base, systemPrompt: ' ', guidance: ' \n' }, tools, startedAt);
    expect(blank).toBe(systemPrompt(base, tools, startedAt));
  });

  it('RA-26 has the day of the recorded start in UTC and nothing finer', () => {
    const prompt = systemPrompt(base, tools, startedAt);
    expect(prompt).toContain('2026-01-02 (UTC)');
    expect(prompt).toBe(systemPrompt(base, tools, Date.UTC(2026, 0, 2)));
  });

  it('RA-41 does not speak of tasks, nor of a finish tool', () => {
    expect(systemPrompt(base, tools, startedAt)).not.toMatch(/_spawn_task|_await_task|_finish/);
  });

  it('says in a conversation that the user writes back', () => {
    expect(systemPrompt({ converse: true }, tools, startedAt)).toContain('may write again');
  });
});
