import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ParsedCall, type ParsedCalls, type ParseTool, parseToolCalls, ToolCallStream } from '#parse';
import { cut, cuts } from './stream-cuts.ts';

const TOOLS: readonly ParseTool[] = [
  {
    name: 'get_weather',
    inputSchema: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer' } },
      required: ['city'],
      additionalProperties: false,
    },
  },
  {
    name: 'web.search',
    inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
];

interface Streamed {
  readonly text: string;
  readonly early: readonly ParsedCall[];
  readonly end: ParsedCalls;
}

function stream(text: string, sizes: readonly number[] = [text.length]): Streamed {
  const calls = new ToolCallStream(TOOLS);
  let shown = '';
  const early: ParsedCall[] = [];
  for (const piece of cut(text, sizes)) {
    const part = calls.push(piece);
    shown += part.text;
    early.push(...part.calls);
  }
  const { text: last, ...end } = calls.end();
  return { text: shown + last, early, end };
}

const PARIS: ParsedCall = { tool: 'get_weather', args: { city: 'Paris' }, form: 'clear' };

/** The ways to write `get_weather` with one city. A call must not show, whatever is in the city. */
const FORMS: readonly [form: string, write: (city: string) => string][] = [
  ['an object', (city) => `{"name": "get_weather", "arguments": {"city": ${city}}}`],
  [
    'an object over several lines',
    (city) => `{\n  "name": "get_weather",\n  "arguments": {\n    "city": ${city}\n  }\n}`,
  ],
  ['a list', (city) => `[{"name": "get_weather", "parameters": {"city": ${city}}}]`],
  ['a tag', (city) => `<tool_call>\n{"name": "get_weather", "arguments": {"city": ${city}}}\n</tool_call>`],
  ['a tag with white space', (city) => `<function_call> {"name": "get_weather", "arguments": {"city": ${city}}}`],
  ['a function tag', (city) => `<function=get_weather>{"city": ${city}}</function>`],
  [
    'a parameter tag',
    (city) =>
      `<tool_call><function=get_weather><parameter=city>${city.slice(1, -1)}</parameter></function></tool_call>`,
  ],
  ['a fence', (city) => `\`\`\`json\n{"name": "get_weather", "arguments": {"city": ${city}}}\n\`\`\``],
  ['a fence without a tag', (city) => `\`\`\`\n[get_weather(city=${city})]\n\`\`\``],
  [
    'a tag in a fence',
    (city) => `\`\`\`xml\n<tool_call>{"name": "get_weather", "arguments": {"city": ${city}}}</tool_call>\n\`\`\``,
  ],
  ['a Python call', (city) => `[get_weather(city=${city})]`],
  ['a bare call', (city) => `get_weather(city=${city})`],
  ['a call of an object', (city) => `get_weather({"city": ${city}})`],
  ['a name and an object', (city) => `get_weather\n{"city": ${city}}`],
  ['ReAct lines', (city) => `Action: get_weather\nAction Input: {"city": ${city}}`],
  [
    'an action in a fence',
    (city) => `Action:\n\`\`\`json\n{"name": "get_weather", "arguments": {"city": ${city}}}\n\`\`\``,
  ],
  ['an action in JSON', (city) => `Action:\n{"name": "get_weather", "arguments": {"city": ${city}}}`],
];

describe('ToolCallStream', () => {
  it.each(FORMS)('gives %s early and shows nothing of it', (_form, write) => {
    const text = `Let me look.\n\n${write('"Paris"')}\n\nThat's all.`;
    for (const sizes of [[1], [4], [text.length]]) {
      const streamed = stream(text, sizes);
      expect(streamed.early).toEqual([PARIS]);
      expect(streamed.end.calls).toEqual([PARIS]);
      expect(streamed.text).toMatch(/^Let me look\.\s+That's all\.$/);
    }
  });

  it('gives a call as soon as it is complete, and prose as soon as it cannot be one', () => {
    const calls = new ToolCallStream(TOOLS);
    const parts = [
      'Looking',
      ' now: 1 <',
      ' 2 <tool',
      '_call>{"name": "web.',
      'search", "arguments": {"query": "x"}',
      '}</tool_c',
      'all> Done',
    ].map((piece) => calls.push(piece));
    expect(parts.map(({ text }) => text)).toEqual(['', 'Looking now: 1 ', '< 2 ', '', '', '', ' ']);
    expect(parts.map((part) => part.calls.length)).toEqual([0, 0, 0, 0, 0, 1, 0]);
    expect(calls.end()).toEqual({
      calls: [{ tool: 'web.search', args: { query: 'x' }, form: 'clear' }],
      issues: [],
      text: 'Done',
    });
  });

  it.each<[what: string, text: string]>([
    ['links, notes and tasks', 'See [the docs](https://example.org/a_b) and [1].\n- [ ] to do\n- [x] done'],
    ['brackets of code', 'In C: `int a[3] = {1, 2};` and in JS { return x } or { other: no }.'],
    ['a comparison', 'If 1 < 2 and b<c then a<<d, and <b>bold</b> is <br/> a tag.'],
    ['an open bracket', 'It [began well, but { it never ended'],
    ['a fence of code', '```ts\nfunction f() {\n  return { a: 1 };\n}\n```\nand\n```\nplain text\n```\n'],
    ['data that is no call', 'The answer:\n```json\n{"total": 3, "items": ["a", "b"]}\n```\nand {"a": [1, 2]} too.'],
    ['a mention of a tool', "I'd use get_weather here, or call get_weather() or web.search: either works."],
    ['a quoted tag', 'Write `<tool_call>` around it.'],
    ['a report of a call', 'Done: I called get_weather(city="Oslo"), and it rains.'],
    ['a refusal', 'I would never run this:\n```json\n{"tool": "get_weather", "args": {"city": "Oslo"}}\n```\n'],
    ['an action in prose', 'Action: none\nI am done.'],
    ['ticks in prose', 'Use `a`, ``b`` or ```c``` as you like.'],
  ])('shows %s as they are', (_what, text) => {
    for (const sizes of [[1], [5], [text.length]]) {
      expect(stream(text, sizes)).toEqual({ text, early: [], end: { calls: [], issues: expect.any(Array) } });
    }
  });

  it.each<[what: string, text: string, shown: string]>([
    ['a thought', '<think>I could call {"name": "get_weather"}</think>Hello', 'Hello'],
    ['a thought that never ends', 'Hello <think>what if', 'Hello '],
    ['half a tag', 'Hello <tool_ca', 'Hello '],
    ['a call that is cut off', 'Hello {"arguments": {"city": "Par', 'Hello '],
    ['a call that cannot be read', 'Hello <tool_call>{"nonsense": </tool_call>', 'Hello '],
    ['special tokens', '<|im_start|>Hello<|im_end|>', 'Hello'],
    [
      'an echoed definition',
      'Hello [{"name": "get_weather", "description": "d", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]',
      'Hello ',
    ],
  ])('leaves out %s', (_what, text, shown) => {
    for (const sizes of [[1], [3], [text.length]])
      expect(stream(text, sizes)).toMatchObject({ text: shown, early: [] });
  });

  it('takes ticks inside a value for no fence', () => {
    const object = '{"name": "get_weather", "arguments": {"city": "a ```"}}';
    const { text } = stream(`One: ${object}\n\`\`\`json\n${object.replace('a', 'b')}\n\`\`\`\ntwo`);
    expect(text).toBe('One: \n\ntwo');
  });

  it('says a call that is written again only once', () => {
    const object = '{"name": "get_weather", "arguments": {"city": "Paris"}}';
    const { early, end } = stream(`${object}\n\nSo the call is:\n\n${object}`);
    expect({ early, final: end.calls }).toEqual({ early: [PARIS], final: [PARIS] });
  });

  const word = fc.constantFrom(
    'the',
    "it's",
    'a_b',
    'city',
    '1.5',
    '(no)',
    'x < y',
    '`code`',
    '[1]',
    'é',
    '- item',
    '"quoted"',
  );
  const prose = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '));
  const city = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '{', ']', '<', '`', "'"), maxLength: 8 });

  it('shows all prose and nothing of the calls, whatever the pieces', () => {
    const writing = fc.tuple(prose, fc.constantFrom(...FORMS), city).map(([before, [form, write], name]) => ({
      before,
      // Free text stands in no quotes there.
      written: write(JSON.stringify(form === 'a parameter tag' ? 'SECRET' : `SECRET ${name}`)),
    }));
    fc.assert(
      fc.property(fc.array(writing, { minLength: 1, maxLength: 4 }), prose, cuts(), (writings, after, sizes) => {
        const text = [...writings.flatMap(({ before, written }) => [before, written]), after].join('\n\n');
        const shown = stream(text, sizes).text;
        expect(shown).not.toMatch(/SECRET|get_weather|tool_call|function|Action|\{/);
        expect(shown.split(/\s+/)).toEqual([...writings.map(({ before }) => before), after].join(' ').split(/\s+/));
      }),
      { numRuns: 200 },
    );
  });

  it('ends with the calls of the whole text, and gives the same for all pieces of any text', () => {
    const scrap = fc.constantFrom(
      '```',
      '<',
      '<tool_call>',
      '</tool_call>',
      '{"',
      '"}',
      '[',
      ']',
      '\n',
      'get_weather',
      '(',
      ')',
      '\\',
      "'",
      'Action:',
      '<think>',
      '</think>',
      ': ',
      '`',
    );
    const anything = fc.array(
      fc.oneof(
        prose,
        scrap,
        fc.constantFrom(...FORMS).map(([, write]) => write('"Rome"')),
      ),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(anything, cuts(), (scraps, sizes) => {
        const text = scraps.join('');
        const pieces = stream(text, sizes);
        expect(pieces).toEqual(stream(text));
        expect(pieces.end).toEqual(parseToolCalls(text, TOOLS));
      }),
      { numRuns: 300 },
    );
  });
});
