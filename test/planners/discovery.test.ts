/** Deferred tools, from a model's search to its call of what it found. */
import { describe, expect, it } from 'vitest';
import { type ReplyFunction, type ScriptedReply, scriptedModel } from '#testing';
import { type Tool, tool } from '#tools';
import { temporaryFile } from '../kit/files.ts';
import { outcomes } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { until } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import { chatFaults, good, input, type PlayOptions, play, reactWorld, search, system, wordsOf } from './played.ts';

const DONE: ScriptedReply = { text: 'done' };
const later = (name: string, description: string, more: Partial<Tool> = {}): Tool =>
  tool({
    name,
    description,
    effect: 'read',
    loading: 'deferred',
    inputSchema: input,
    execute: ({ q }) => `${name} ${String(q)}`,
    ...more,
  } as Tool);
const TOOLS: readonly Tool[] = [
  search,
  later('csv_read', 'Reads a table.'),
  later('csv_write', 'Writes a table.'),
  later('mail_send', 'Sends a letter.'),
  later('secret', 'Reads a secret table.', { scopes: ['admin'] }),
];
const BASE = ['search', 'tool_get', 'tool_search'];
const find = (query: string): ScriptedReply => ({ calls: [{ tool: 'tool_search', args: { query } }] });
const use = (name: string, args: object = { q: 'x' }): ScriptedReply => ({
  calls: [{ tool: name, input: JSON.stringify(args) }],
});

async function played(replies: readonly (ScriptedReply | ReplyFunction)[], more: Partial<PlayOptions> = {}) {
  const model = scriptedModel(replies);
  const made = await play({ tools: TOOLS, ...more, model });
  expect(chatFaults(model)).toEqual([]);
  return {
    ...made,
    requests: model.calls,
    declared: model.calls.map((call) => (call.tools ?? []).map(({ name }) => name)),
  };
}

describe('a request and its tools', () => {
  it('DT-01 the first declares the tools that are always there, and the way to find the others', async () => {
    const { declared, requests } = await played([DONE]);
    expect(declared).toEqual([BASE]);
    const prompt = system(requests[0] ?? { prompt: [] });
    expect(prompt).toContain('<tool_discovery>');
    expect(prompt).not.toMatch(/csv_|mail_/);
  });

  it('DT-05 a tool that was found is declared from the next request on, at the end, and the messages stay a prefix', async () => {
    const { declared, requests, steps, result } = await played([find('letter'), find('table'), use('csv_read'), DONE]);
    const found = [...BASE, 'mail_send', 'csv_read', 'csv_write'];
    expect(declared).toEqual([BASE, [...BASE, 'mail_send'], found, found]);
    for (const [index, { prompt, tools }] of requests.slice(1).entries()) {
      const before = requests[index];
      expect(prompt.slice(0, before?.prompt.length)).toEqual(before?.prompt);
      expect(tools?.slice(0, before?.tools?.length)).toEqual(before?.tools);
    }
    expect(outcomes({ steps }, 2)).toEqual(['value']);
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('DT-08 a search inside a parallel reply counts, and what is found twice is declared once', async () => {
    const both: ScriptedReply = {
      calls: [
        { tool: 'search', args: { q: 'x' } },
        { tool: 'tool_search', args: { query: 'table' } },
        { tool: 'tool_get', args: { name: 'csv_read' } },
      ],
    };
    const { declared, requests } = await played([both, DONE]);
    expect(declared[1]).toEqual([...BASE, 'csv_read', 'csv_write']);
    expect(wordsOf(requests[1]?.prompt.at(-1))).toContain('Reads a table.');
  });

  it('DT-14 a deferred tool that was never looked for runs, and is declared from then on', async () => {
    const { declared, steps } = await played([use('mail_send'), DONE]);
    expect(outcomes({ steps })).toEqual(['value']);
    expect(declared).toEqual([BASE, [...BASE, 'mail_send']]);
  });

  it('DT-09 a tool that the user may not use is not found, not declared, and answered as one that nobody has', async () => {
    const { declared, requests } = await played([find('secret'), use('secret'), use('secrex'), DONE]);
    expect(declared.at(-1)).toEqual(BASE);
    expect(wordsOf(requests[1]?.prompt.at(-1))).not.toContain('Reads a secret');
    const [refused, unknown] = requests.slice(2).map(({ prompt }) => {
      const results = prompt.filter(({ role }) => role === 'tool');
      return wordsOf(results.at(-1));
    });
    expect(refused).toMatch(/^<call_error>\ntool_not_found — /);
    expect(unknown).toBe(refused?.replaceAll('secret', 'secrex'));
    const allowed = await played([find('secret'), use('secret'), DONE], { start: { scopes: ['admin'] } });
    expect(allowed.declared[1]).toEqual([...BASE, 'secret']);
    expect(outcomes(allowed, 1)).toEqual(['value']);
  });

  it('DT-09 a name that is not allowed is not repaired to, nor offered as the one that was meant', async () => {
    const { requests } = await played([use('secre'), use('Secret'), DONE]);
    for (const { prompt } of requests)
      expect(JSON.stringify(prompt.filter(({ role }) => role === 'tool'))).not.toContain('Reads a secret');
    const results =
      requests
        .at(-1)
        ?.prompt.filter(({ role }) => role === 'tool')
        .map(wordsOf) ?? [];
    for (const result of results) expect(result).toMatch(/^<call_error>\ntool_not_found/);
  });

  it('DT-07 the same declaration after a restart, and none in a new run', async () => {
    const path = temporaryFile();
    const stalled = scriptedModel([find('table'), good(), { stall: true }]);
    const before = reactWorld({ model: stalled, tools: TOOLS, journal: openJournal(path) });
    const run = await start(before);
    await until(() => stalled.calls.length === 3);
    await before.runtime.close();
    const model = scriptedModel([DONE, DONE]);
    const after = reactWorld({ model, tools: TOOLS, journal: openJournal(path) });
    await after.runtime.run(run.id).resume();
    await after.runtime.run(run.id).result();
    expect(model.calls[0]?.tools).toEqual(stalled.calls[2]?.tools);
    expect(model.calls[0]?.prompt).toEqual(stalled.calls[2]?.prompt);
    await (await start(after)).result();
    expect(model.calls[1]?.tools?.map(({ name }) => name)).toEqual(BASE);
  });

  it('tools that were found survive a compaction', async () => {
    const long: Tool = { ...search, execute: () => 'word '.repeat(1_000) };
    const summary = { goals: ['g'], pending: [], lastOutputDigest: 'd', note: '' };
    const summariser = scriptedModel((_, index) => ({
      text: JSON.stringify({ ...summary, facts: [`fact ${index}`] }),
    }));
    for (const toolCalls of ['native', 'text'] as const) {
      const reply = ({ calls = [] }: ScriptedReply): ScriptedReply =>
        toolCalls === 'native'
          ? { calls }
          : { text: JSON.stringify(calls.map(({ tool: name, args }) => ({ tool: name, args }))) };
      const model = scriptedModel([reply(find('table')), ...Array(4).fill(reply(good())), DONE]);
      const { result, run, journal } = await play({
        model: { model, toolCalls },
        tools: [long, ...TOOLS.slice(1)],
        react: { compaction: { budgetTokens: 3_000, summariser } },
      });
      expect(result).toMatchObject({ reason: 'goal' });
      expect((await journal.read(run.id)).some(({ kind }) => kind === 'compacted')).toBe(true);
      const last = model.calls.at(-1);
      const known =
        toolCalls === 'native' ? last?.tools?.map(({ name }) => name).join() : last?.prompt.map(wordsOf).join('\n');
      for (const name of ['csv_read', 'csv_write']) expect(known).toContain(name);
    }
  });
});
