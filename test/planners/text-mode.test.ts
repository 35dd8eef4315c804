/** A model without native calls: the same planner, told how to write its calls, and read from its text. */
import { describe, expect, it } from 'vitest';
import { type ScriptedReply, scriptedModel } from '#testing';
import { tool } from '#tools';
import { only } from '../kit/events.ts';
import { outcomes } from '../kit/run-record.ts';
import {
  chatFaults,
  good,
  input,
  named,
  type PlayOptions,
  play,
  playStreamed,
  type Replies,
  shownTexts,
  system,
  tiers,
  wordsOf,
} from './played.ts';

const fenced = (json: unknown, before = ''): ScriptedReply => ({
  text: `${before}\`\`\`json\n${JSON.stringify(json)}\n\`\`\``,
});
const searchFor = (q: string) => ({ tool: 'search', args: { q } });
const DONE: ScriptedReply = { text: 'done' };

async function played(replies: Replies, more: Omit<PlayOptions, 'model'> = {}, run = play) {
  const model = scriptedModel(replies);
  const made = await run({ model: { model, toolCalls: 'text' }, ...more });
  model.assertConsumed();
  expect(chatFaults(model)).toEqual([]);
  for (const request of model.calls) expect(request).not.toHaveProperty('tools');
  return { ...made, model, requests: model.calls };
}

describe('text mode', () => {
  it('the prompt has the tools with their schemas and examples, and says how a call is written', async () => {
    const sample = tool({
      name: 'sample',
      description: 'Takes a sample.',
      effect: 'read',
      inputSchema: input,
      examples: [{ args: { q: 'rain' } }],
      execute: () => 'drops',
    });
    const { requests } = await played([DONE], { tools: [sample] });
    const prompt = system(requests[0] ?? { prompt: [] });
    expect(prompt).toContain('<tool_calling>\n');
    expect(prompt).toContain('- sample: Takes a sample.\n  arguments: {"type":"object"');
    expect(prompt).toContain('  example: {"q":"rain"}');
  });

  it('a call is read from its fence, its result comes as a user turn, and the text is the answer', async () => {
    const { steps, requests, result } = await played([fenced(searchFor('x'), 'I look.\n\n'), { text: 'It is x.' }]);
    expect(steps[0]).toMatchObject({
      text: 'I look.',
      decision: { kind: 'call_tool', ...searchFor('x'), callId: 'react.callid.0' },
    });
    expect(outcomes({ steps })).toEqual(['value']);
    const added = requests[1]?.prompt.slice(requests[0]?.prompt.length) ?? [];
    expect(added.map(({ role }) => role)).toEqual(['assistant', 'user']);
    expect(added.map(wordsOf)).toEqual([
      'I look.\n\n```json\n{"tool":"search","args":{"q":"x"}}\n```',
      '<tool_result tool="search" call="1">\nfound x\n</tool_result>',
    ]);
    expect(result).toMatchObject({ reason: 'goal', answer: 'It is x.' });
  });

  it('several calls of one block are one parallel step, with a section for each result', async () => {
    const { steps, requests } = await played([fenced([searchFor('a'), { tool: 'read', args: { q: 'b' } }]), DONE]);
    expect(outcomes({ steps })).toEqual(['value', 'value']);
    expect(wordsOf(requests[1]?.prompt.at(-1))).toBe(
      '<tool_result tool="search" call="1">\nfound a\n</tool_result>\n<tool_result tool="read" call="2">\ntext of b\n</tool_result>',
    );
  });

  it('a call is understood in other forms too, and what was mended is told', async () => {
    const { steps, events, requests } = await played([
      { text: '<tool_call>\n{"name": "search", "arguments": {"q": "x", "limit": "3"}}\n</tool_call>' },
      { text: "search(q='y')" },
      DONE,
    ]);
    expect(steps.map(({ decision }) => decision)).toMatchObject([
      { tool: 'search', args: { q: 'x', limit: 3 } },
      { tool: 'search', args: { q: 'y' } },
    ]);
    expect(only(events, 'planner.reply_repaired').length).toBeGreaterThan(0);
    // The history has every call in the one form that the model was told to write.
    expect(wordsOf(requests[1]?.prompt.at(-2))).toBe('```json\n{"tool":"search","args":{"q":"x","limit":3}}\n```');
  });

  it('_finish is understood, and its answer is the payload', async () => {
    expect((await played([fenced({ tool: '_finish', args: { answer: 'forty' } })])).result).toMatchObject({
      reason: 'goal',
      payload: 'forty',
    });
  });

  it('listeners see the words and never the calls', async () => {
    const { events, steps } = await played(
      [
        fenced([searchFor('x'), searchFor('y')], 'I look for `x` and {y}. '),
        fenced({ tool: '_finish', args: { answer: 'the whole answer' } }, 'I will finish now. '),
      ],
      {},
      playStreamed,
    );
    expect(steps[0]?.text).toBe('I look for `x` and {y}.');
    expect(shownTexts(events).map((shown) => shown.trim())).toEqual(['I look for `x` and {y}.', 'I will finish now.']);
  });

  it('an answer is streamed whole, whatever brackets and fences it has', async () => {
    const answer = 'Use {a} and [b]:\n```ts\nconst x = { y: 1 };\n```\nThat is all.';
    const { events, result } = await played([{ text: answer }], {}, playStreamed);
    expect(result).toMatchObject({ reason: 'goal', answer });
    expect(shownTexts(events)).toEqual([answer]);
  });

  it('thoughts in tags are neither shown nor part of the answer, and are no answer themselves', async () => {
    const { events, result } = await played([{ text: '<think>2 and 2</think>\nIt is 4.' }], {}, playStreamed);
    expect(result).toMatchObject({ reason: 'goal', answer: 'It is 4.' });
    expect(shownTexts(events).map((shown) => shown.trim())).toEqual(['It is 4.']);
    const thought = await played(['2', '2 and', '2 and 2'].map((thought) => ({ text: `<think>${thought}` })));
    expect(thought.result).toMatchObject({ reason: 'no_path' });
    expect(thought.steps[0]).toMatchObject({ error: { code: 'reply_empty' } });
    const draft = '<think>{"tool":"search","args":{"q":"draft"}}</think>';
    const { steps } = await played([{ text: `${draft}${JSON.stringify(searchFor('x'))}` }, DONE]);
    expect(steps.map(({ decision }) => decision)).toMatchObject([searchFor('x')]);
  });

  it('the result of a call cannot pass as a turn of its own', async () => {
    const { requests } = await played([fenced(searchFor('```\n{"tool":"read"}\n```')), DONE]);
    const said = wordsOf(requests[1]?.prompt.at(-2));
    // One fence, opened and closed once.
    expect(said.match(/```/g)).toHaveLength(2);
  });

  it('a tool that was found is told of after the step that found it, once, and the prompt stays', async () => {
    const hidden = tool({
      name: 'csv_read',
      description: 'Reads a table.',
      effect: 'read',
      loading: 'deferred',
      inputSchema: input,
      execute: ({ q }) => `rows of ${String(q)}`,
    });
    const find = fenced({ tool: 'tool_search', args: { query: 'table' } });
    const { requests, steps } = await played([find, find, fenced({ tool: 'csv_read', args: { q: 'a' } }), DONE], {
      tools: [hidden],
    });
    const [first, second, third, fourth] = requests.map(({ prompt }) => prompt);
    expect(JSON.stringify(first)).not.toContain('csv_read');
    expect(second?.slice(0, first?.length)).toEqual(first);
    expect(wordsOf(second?.at(-1))).toMatch(
      /^Tools that were found:\n<found_tools>\n- csv_read: Reads a table\.\n {2}arguments: \{/,
    );
    expect(third?.slice(0, second?.length)).toEqual(second);
    expect(JSON.stringify(fourth).match(/Tools that were found/g)).toHaveLength(1);
    expect(outcomes({ steps }, 2)).toEqual(['value']);
  });
});

describe('the ladder in text mode', () => {
  it('a block that is cut or of no tool is told as what it is, and reminded of', async () => {
    const cut: ScriptedReply = { text: 'Look:\n```json\n{"tool": "search", "args": {"q": "x' };
    const unknown = fenced({ tool: 'nothing', args: {} });
    const { requests, result } = await played([cut, unknown, DONE]);
    expect(result).toMatchObject({ reason: 'goal' });
    expect(wordsOf(requests[1]?.prompt.at(-1))).toMatch(/tool_invalid_args — .*search.* end in the middle/);
    const told = requests[2]?.prompt.slice(requests[1]?.prompt.length).map(wordsOf).join('\n');
    expect(told).toMatch(/reply_unreadable — there is no tool named nothing/);
  });

  it('RP-22 the same ladder: error, error and reminder, then no path', async () => {
    const wrong = (limit: number) => fenced({ tool: 'search', args: { limit } });
    const { requests, result } = await played([wrong(1), wrong(2), wrong(3)]);
    expect(requests.map(tiers)).toEqual([[], [], ['reminder']]);
    expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_exhausted: true } });
  });
});

describe('a pool of both kinds', () => {
  it('a model without native calls that takes over gets the same history in its own form, and the other way round', async () => {
    const native = named('native', [good('a'), {}, {}, {}, DONE]);
    const worded = named('worded', [fenced(searchFor('b'))]);
    const { result, steps } = await play({ model: [native, { model: worded, toolCalls: 'text' }] });
    expect(result).toMatchObject({ reason: 'goal', answer: 'done' });
    expect(steps.map(({ provenance }) => provenance?.['model'])).toEqual([
      'native',
      'native',
      'native',
      'native',
      'worded',
    ]);
    const [asked] = worded.calls;
    expect(asked).not.toHaveProperty('tools');
    const words = asked?.prompt.map(wordsOf) ?? [];
    expect(words[0]).toContain('<tool_calling>');
    expect(words.slice(2, 4)).toEqual([
      '```json\n{"tool":"search","args":{"q":"a"}}\n```',
      '<tool_result tool="search" call="1">\nfound a\n</tool_result>',
    ]);
    const back = native.calls.at(-1);
    expect(back?.tools).toHaveLength(2);
    expect(back?.prompt.at(-2)?.content).toMatchObject([{ type: 'tool-call', toolName: 'search', input: { q: 'b' } }]);
    expect(chatFaults(native, worded)).toEqual([]);
  });

  it('a stream that fails over to the other kind shows only words', async () => {
    const broken: ScriptedReply = {
      text: 'I lo',
      error: Object.assign(new Error('gone'), { statusCode: 503 }),
      errorAt: 'read',
    };
    const worded = named('worded', [fenced(searchFor('b'), 'I look. ')]);
    const native = named('native', [broken, DONE]);
    const { events, steps } = await playStreamed({
      model: [native, { model: worded, toolCalls: 'text' }],
      react: { retries: 0 },
    });
    expect(steps.map(({ provenance }) => provenance?.['model'])).toEqual(['worded']);
    expect(shownTexts(events).map((shown) => shown.trim())).toEqual(['I look.', 'done']);
  });
});
