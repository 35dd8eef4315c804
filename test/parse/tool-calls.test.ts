import { describe, expect, it } from 'vitest';
import { parseToolCalls } from '#parse';
import { tools } from './tools.ts';

const codes = (text: string): string[] => parseToolCalls(text, tools).issues.map(({ code }) => code);
const calls = (text: string): { tool: string; args: unknown }[] =>
  parseToolCalls(text, tools).calls.map(({ tool, args }) => ({ tool, args }));

const CAT = { tool: 'search', args: { q: 'cats', limit: 3 } };

/** One call of `search` with q = cats and limit = 3, in every form. */
const FORMS: Readonly<Record<string, string>> = {
  'tool and args': '{"tool":"search","args":{"q":"cats","limit":3}}',
  'name and arguments': '{"name": "search", "arguments": {"q": "cats", "limit": 3}}',
  'name and parameters': '{"name": "search", "parameters": {"q": "cats", "limit": 3}}',
  'arguments first': '{"arguments": {"q": "cats", "limit": 3}, "name": "search"}',
  'arguments as text': '{"name": "search", "arguments": "{\\"q\\": \\"cats\\", \\"limit\\": 3}"}',
  'function object':
    '{"type":"function","function":{"name":"search","arguments":"{\\"q\\":\\"cats\\",\\"limit\\":3}"}}',
  'tool_calls list': '{"tool_calls":[{"name":"search","arguments":{"q":"cats","limit":3}}]}',
  'action and action_input': '{"action": "search", "action_input": {"q": "cats", "limit": 3}}',
  'arguments beside the name': '{"name": "search", "q": "cats", "limit": 3}',
  'name as key': '{"search": {"q": "cats", "limit": 3}}',
  list: '[{"name": "search", "arguments": {"q": "cats", "limit": 3}}]',
  'name and object in a list': '["search", {"q": "cats", "limit": 3}]',
  'name and object in a tuple': "('search', {'q': 'cats', 'limit': 3})",
  'a list that is a pair': '[["search", {"q": "cats", "limit": 3}]]',
  'list with keys': "['search', 'arguments': {'q': 'cats', 'limit': 3}]",
  fence: '```json\n{"tool":"search","args":{"q":"cats","limit":3}}\n```',
  'fence of another kind': '```tool_code\n{"tool":"search","args":{"q":"cats","limit":3}}\n```',
  'open fence': '```json\n{"tool":"search","args":{"q":"cats","limit":3}}',
  'prose around': 'Let me look.\n{"tool":"search","args":{"q":"cats","limit":3}}\nThat should do.',
  'colon before': 'Calling search now: {"tool":"search","args":{"q":"cats","limit":3}} and then we see.',
  'called with an object': 'search({"q": "cats", "limit": 3})',
  'object right behind the name': 'search{"q": "cats", "limit": 3}',
  'object on the next line': 'search\n{"q": "cats", "limit": 3}',
  'quoted name before the object': '"search": {"q": "cats", "limit": 3}',
  'tool_call tag': '<tool_call>\n{"name": "search", "arguments": {"q": "cats", "limit": 3}}\n</tool_call>',
  'open tag': '<tool_call>\n{"name": "search", "arguments": {"q": "cats", "limit": 3}}',
  'function tag': '<function=search>{"q": "cats", "limit": 3}</function>',
  'custom tag': '<my_call>{"name": "search", "arguments": {"q": "cats", "limit": 3}}</my_call>',
  'comment tag': '<!-- {"name": "search", "arguments": {"q": "cats", "limit": 3}} -->',
  'python tag': '<|python_tag|>{"name": "search", "parameters": {"q": "cats", "limit": 3}}<|eom_id|>',
  'TOOL_CALLS mark': '[TOOL_CALLS] [{"name": "search", "arguments": {"q": "cats", "limit": 3}}]',
  'parameter tags':
    '<invoke name="search">\n<parameter name="q">cats</parameter>\n<parameter name="limit">3</parameter>\n</invoke>',
  'parameter tags of another style':
    '<tool_call>\n<function=search>\n<parameter=q>\ncats\n</parameter>\n<parameter=limit>\n3\n</parameter>\n</function>\n</tool_call>',
  'argument pairs':
    '<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>cats</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>',
  'tags by name': '<search><q>cats</q><limit>3</limit></search>',
  'named tags': '<call><name>search</name><arguments><q>cats</q><limit>3</limit></arguments></call>',
  'Action lines': 'Thought: I need cats.\nAction: search\nAction Input: {"q": "cats", "limit": 3}',
  'Action with an object': 'Thought: go\nAction:\n{"name": "search", "arguments": {"q": "cats", "limit": 3}}',
  'Action behind thinking':
    '<think>\nshould I call {"name":"now","arguments":{}}?\n</think>\nAction: {"name": "search", "arguments": {"q": "cats", "limit": 3}}',
  'Action with bold marks': '**Action:** `search`\n**Action Input:** {"q": "cats", "limit": 3}',
  python: 'search(q="cats", limit=3)',
  'python in a list': "[search(q='cats', limit=3)]",
  'python in quotes': '["search(q=\'cats\', limit=3)"]',
  'python in the same quotes': "['search(q='cats', limit=3)']",
  'python with escaped quotes': '["search(q=\\"cats\\", limit=3)"]',
  'python in a fence': '```python\nresult = search(q="cats", limit=3)\nprint(result)\n```',
  'python with positions': 'search("cats", 3)',
  'python with a dict': "search(**{'q': 'cats', 'limit': 3})",
  'python with variables': '```python\nquery = "cats"\ncount = 3\nsearch(query, count)\n```',
  'python with a prefix': 'functions.search(q="cats", limit=3)',
  'python with a semicolon': "search(q='cats', limit=3);",
  'escaped underscores': "search(q='cats', limit=3)  # as in write\\_note",
  'single quotes': "{'name': 'search', 'arguments': {'q': 'cats', 'limit': 3}}",
  'smart quotes':
    '{\u201cname\u201d: \u201csearch\u201d, \u201carguments\u201d: {\u201cq\u201d: \u201ccats\u201d, \u201climit\u201d: 3}}',
  'unquoted keys': '{name: "search", arguments: {q: "cats", limit: 3}}',
  'trailing commas': '{"name": "search", "arguments": {"q": "cats", "limit": 3,},}',
  comments: '{"name": "search", // the tool\n "arguments": {"q": "cats", /* few */ "limit": 3} # done\n}',
  'missing closers': '{"name": "search", "arguments": {"q": "cats", "limit": 3}',
  'wrong closer': '[{"name": "search", "arguments": {"q": "cats", "limit": 3]}',
  'missing comma': '{"name": "search" "arguments": {"q": "cats" "limit": 3}}',
  'escaped once more': '{\\"name\\": \\"search\\", \\"arguments\\": {\\"q\\": \\"cats\\", \\"limit\\": 3}}',
  'double braces': '{{"name": "search", "arguments": {"q": "cats", "limit": 3}}}',
};

describe('forms of a call', () => {
  for (const [name, text] of Object.entries(FORMS)) {
    it(`reads ${name}`, () => expect(calls(text)).toEqual([CAT]));
  }
});

describe('RP: reading', () => {
  it('RP-02 reads one object with a tool; missing args are {}', () => {
    expect(calls('{"tool":"now"}')).toEqual([{ tool: 'now', args: {} }]);
    expect(Object.keys(calls('{"tool":"search","args":{"q":"b","limit":1,"exact":true}}')[0]?.args ?? {})).toEqual([
      'q',
      'limit',
      'exact',
    ]);
  });

  it('RP-03 reads arrays without the entries that name no tool, and all fences and objects in order', () => {
    const a = '{"tool":"search","args":{"q":"a"}}';
    const b = '{"tool":"search","args":{"q":"b"}}';
    const want = ['a', 'b'].map((q) => ({ tool: 'search', args: { q } }));
    expect(calls(`[${a}, {"note": 1}, ${b}]`)).toEqual(want);
    expect(calls(`first\n\`\`\`JSON\n${a}\n\`\`\`\nthen\n\`\`\`\n${b}\n\`\`\``)).toEqual(want);
    expect(calls(`I will do ${a} and after it ${b}.`)).toEqual(want);
  });

  it.each([
    '',
    '   \n',
    '{"too',
    '{"args": {"unheard": 1}}',
    '{"tool":',
    'just words',
    '[]',
    '{}',
    'null',
    '42',
  ])('RP-04 finds no call in %j', (text) => expect(calls(text)).toEqual([]));

  it('RP-05 drops reasoning and thought beside the tool and reports each', () => {
    const result = parseToolCalls('{"thought":"hm","reasoning":"so","tool":"now","args":{}}', tools);
    expect(result.calls).toMatchObject([{ tool: 'now', args: {} }]);
    expect(result.issues.filter(({ code }) => code === 'extra_field_dropped')).toHaveLength(2);
  });

  it('RP-06 keeps the order of several calls', () => {
    const text = '[now(), search(q="x"), math.gcd(12, 18)]';
    expect(calls(text)).toEqual([
      { tool: 'now', args: {} },
      { tool: 'search', args: { q: 'x' } },
      { tool: 'math.gcd', args: { a: 12, b: 18 } },
    ]);
  });

  it('RP-13 cuts a name in a message to 64 characters without control characters', () => {
    const name = `evil\u0000\n${'x'.repeat(200)}`;
    const { issues } = parseToolCalls(JSON.stringify({ tool: name, args: {} }), tools);
    const message = issues.find(({ code }) => code === 'unknown_tool')?.message ?? '';
    expect(message).toContain('evil  x');
    expect(message).not.toMatch(/\p{Cc}/u);
    expect(message).not.toContain('x'.repeat(65));
  });

  it('RP-24 passes over an unknown tool when a known one is there', () => {
    const text = '```json\n{"tool":"example_tool","args":{"a":1}}\n```\nReally:\n{"tool":"search","args":{"q":"x"}}';
    expect(calls(text)).toEqual([{ tool: 'search', args: { q: 'x' } }]);
  });

  it('makes no call of a tool that was not given, and says so', () => {
    const { calls: found, issues } = parseToolCalls('{"tool":"delete_all","args":{"a":1}}', tools);
    expect(found).toEqual([]);
    expect(issues).toEqual([{ code: 'unknown_tool', message: 'there is no tool named delete_all' }]);
  });
});

describe('programs that a text explains', () => {
  const code = (line: string): string => `This is how it works:\n\n\`\`\`ts\n${line}\n\`\`\`\n\nIt gives the rows.`;

  it.each([
    "const rows = list.search('x');",
    "const rows = Search('x');",
    "math_gcd_of.search({ q: 'x' })",
  ])('a function that only resembles a tool is none: %s', (line) => expect(calls(code(line))).toEqual([]));

  it.each([
    "search(q='x')",
    "functions.search(q='x')",
    "tools.search({ q: 'x' })",
  ])('the tool itself is one, also behind a word for tools: %s', (line) =>
    expect(calls(code(line))).toEqual([{ tool: 'search', args: { q: 'x' } }]));
});

describe('unknown tools in program syntax', () => {
  it('tells them when the text is nothing but such calls', () => {
    const { calls: found, issues } = parseToolCalls("[serch(q='x'), lookup()]", tools);
    expect(found).toEqual([]);
    expect(issues.map(({ code }) => code)).toEqual(['unknown_tool', 'unknown_tool']);
  });

  it.each([
    "Try serch(q='x') some time.",
    "serch(q='x') is what I would use.",
    'print(q)',
    'f(x) = 2',
    'search()',
  ])('finds none in %j', (text) => expect(parseToolCalls(text, tools)).toEqual({ calls: [], issues: [] }));
});

describe('names', () => {
  it.each(['math.gcd', 'math_gcd', 'Math-GCD', 'functions.math.gcd', 'tools.math_gcd'])('maps %s', (name) => {
    const result = parseToolCalls(JSON.stringify({ name, arguments: { a: 4, b: 6 } }), tools);
    expect(result.calls).toMatchObject([{ tool: 'math.gcd', args: { a: 4, b: 6 } }]);
    expect(result.issues.map(({ code }) => code)).toEqual(name === 'math.gcd' ? [] : ['renamed']);
  });

  it('maps no name that two tools could mean', () => {
    const twins = [{ name: 'a.run' }, { name: 'a_run' }];
    expect(parseToolCalls('{"name":"A-RUN","arguments":{}}', twins).calls).toEqual([]);
    expect(parseToolCalls('{"name":"a_run","arguments":{}}', twins).calls[0]?.tool).toBe('a_run');
  });

  it('keeps the id of a call', () => {
    expect(parseToolCalls('{"id":"c7","name":"now","arguments":{}}', tools).calls[0]?.callId).toBe('c7');
    const text = '{"tool_calls":[{"id":"k1","type":"function","function":{"name":"now","arguments":"{}"}}]}';
    expect(parseToolCalls(text, tools).calls[0]?.callId).toBe('k1');
  });
});

/** Texts that speak of tools and call none. */
const NO_CALLS: Readonly<Record<string, string>> = {
  'a definition with a schema':
    '{"name":"search","description":"Finds.","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}',
  'a list of definitions':
    "[{'name': 'search', 'parameters': {'type': 'dict', 'properties': {'q': {'type': 'string'}}}}]",
  'parameters described one by one': '{"name":"search","parameters":{"q":{"type":"string","description":"what"}}}',
  'a function definition': '```python\ndef search(q, limit):\n    return []\n```',
  'a signature in prose': 'You could use `search(q, limit)` for that, or math.gcd(a, b).',
  'a mention with dots': 'The tool search(...) cannot help.',
  'an empty call that needs arguments': 'search() is the tool for it.',
  'a named signature in prose': 'Call it as search(q=q, limit=limit) in your program.',
  'an example to fill in': 'For example:\n\n    search(q="path/to/your/file")\n',
  'thinking only': '<think>{"tool":"search","args":{"q":"x"}}</think>The answer is 4.',
  'open thinking': '<think>maybe {"tool":"search","args":{"q":"x"}}',
  'prose with brackets': 'See [1] and {a, b} (or not), e.g. f(x) = {x: 1}.',
  'a payload of a program': '```python\nimport requests\ndata = {"q": "x"}\nrequests.post(url, json=data)\n```',
  'an object in a sentence about search': 'With search you would give {"q": "x"} and wait.',
};

describe('texts without a call', () => {
  for (const [name, text] of Object.entries(NO_CALLS))
    it(`finds none in ${name}`, () => expect(calls(text)).toEqual([]));
});

describe('drafts, repeats and other turns', () => {
  const one = '<tool_call>{"name":"search","arguments":{"q":"x"}}</tool_call>';

  it('drops a call that is written again, and says so', () => {
    const result = parseToolCalls(`${one}\n<tool_call>{'name': 'search', 'arguments': {'q': 'x'}}</tool_call>`, tools);
    expect(result.calls).toHaveLength(1);
    expect(result.issues.map(({ code }) => code)).toContain('duplicate_dropped');
  });

  it('keeps equal calls that have ids of their own', () => {
    const text = '[{"id":"a","name":"now","arguments":{}},{"id":"b","name":"now","arguments":{}}]';
    expect(parseToolCalls(text, tools).calls.map(({ callId }) => callId)).toEqual(['a', 'b']);
  });

  it('ends where the model makes up the turn of another', () => {
    const react =
      'Action: search\nAction Input: {"q": "x"}\nObservation: none\nAction: search\nAction Input: {"q": "y"}';
    expect(calls(react)).toEqual([{ tool: 'search', args: { q: 'x' } }]);
    expect(calls(`${one}\n<|im_start|>user\n<tool_call>{"name":"now","arguments":{}}</tool_call>`)).toHaveLength(1);
    const ours = '<tool_result tool="search" call="1">\nnone\n</tool_result>\n<user_message>\nGo on.\n</user_message>';
    expect(calls(`${one}\n${ours}\n<tool_call>{"name":"now","arguments":{}}</tool_call>`)).toHaveLength(1);
  });

  it('drops an alternative that the text offers behind the call', () => {
    const text = '[search(q="x")]\n\nIf you want the newest, use:\n\n[search(q="x", order="newest")]';
    expect(calls(text)).toEqual([{ tool: 'search', args: { q: 'x' } }]);
  });

  it('leaves out a call that waits for the result of another', () => {
    const text = '[search(q="x"), math.gcd(a=search_result, b=2)]';
    expect(calls(text)).toEqual([{ tool: 'search', args: { q: 'x' } }]);
  });

  it('leaves out a call that is cut off when there are whole ones', () => {
    expect(calls(`${one}<tool_call>{"name":"search","arguments":{"q":"yy`)).toEqual([
      { tool: 'search', args: { q: 'x' } },
    ]);
  });

  it('gives a lone call that is cut off, marked as truncated', () => {
    const { calls: found, issues } = parseToolCalls('{"name":"search","arguments":{"q":"half of i', tools);
    expect(found).toMatchObject([{ tool: 'search', args: { q: 'half of i' } }]);
    expect(issues).toContainEqual(expect.objectContaining({ code: 'truncated', call: 0 }));
  });

  it('reads arguments without a name when only one tool can be meant', () => {
    expect(calls('Use `math.gcd` with:\n```json\n{"a": 4, "b": 6}\n```')).toEqual([
      { tool: 'math.gcd', args: { a: 4, b: 6 } },
    ]);
  });
});

describe('values in program code', () => {
  const args = (source: string): unknown => calls(`write_note(${source})`)[0]?.args;

  it.each([
    ["text='it is'", { text: 'it is' }],
    ["text='it's fine', n=1", { text: "it's fine", n: 1 }],
    ['text="""two\nlines"""', { text: 'two\nlines' }],
    ["path=r'C:\\new'", { path: 'C:\\new' }],
    ["text=f'a' 'b'", { text: 'ab' }],
    ['ok=True, no=False, none=None', { ok: true, no: false, none: null }],
    ['x=1/4', { x: 0.25 }],
    ['x=2**3, y=-5, z=1e3', { x: 8, y: -5, z: 1000 }],
    ['x=(1 + 2) * 3', { x: 9 }],
    ['p=(1, 2), s={1, 2}', { p: [1, 2], s: [1, 2] }],
    ["d={'a': [1, {'b': None}]}", { d: { a: [1, { b: null }] } }],
    ['d=dict(a=1, b="c")', { d: { a: 1, b: 'c' } }],
    ['day=date(2024, 1, 31)', { day: 'date(2024, 1, 31)' }],
    ['day=2024-01-31', { day: '2024-01-31' }],
    ['when=None', { when: null }],
    ['id=12345678901234567890', { id: '12345678901234567890' }],
    ['list=new ArrayList<String>(Arrays.asList("a", "b"))', { list: 'new ArrayList<String>(Arrays.asList("a", "b"))' }],
    ['f=(a, b) => a + b', { f: '(a, b) => a + b' }],
    ['f=lambda x: x**2 + 1', { f: 'lambda x: x**2 + 1' }],
    ['f=function (a) { return [a, 1]; }', { f: 'function (a) { return [a, 1]; }' }],
  ])('reads %s', (source, want) => expect(args(source)).toEqual(want));

  it('keeps source text where the schema wants text', () => {
    const tool = { name: 'run', parameters: { type: 'object', properties: { code: { type: 'string' } } } } as const;
    const code = (source: string): unknown => parseToolCalls(`run(code=${source})`, [tool]).calls[0]?.args['code'];
    expect(code('new int[]{1, 2}')).toBe('new int[]{1, 2}');
    expect(code('1.50')).toBe('1.50');
    expect(code('5L')).toBe('5L');
    expect(code('[a, b]')).toBe('[a, b]');
    expect(code('[1, 2]')).toEqual([1, 2]);
  });
});

describe('issues', () => {
  it('reports nothing for a well-formed call', () => {
    expect(codes('{"tool":"search","args":{"q":"x","limit":2}}')).toEqual([]);
    expect(codes('```json\n{"tool":"search","args":{"q":"x","limit":2}}\n```')).toEqual([]);
  });

  it('points at the call and the argument', () => {
    const text = '[{"tool":"now","args":{}},{"tool":"search","args":{"q":"x","limit":"3"}}]';
    expect(parseToolCalls(text, tools).issues).toMatchObject([{ code: 'coerced', call: 1, path: '/limit' }]);
  });

  it('does not change its inputs', () => {
    const frozen = [Object.freeze({ ...tools[0] })] as typeof tools;
    const before = JSON.stringify(frozen);
    parseToolCalls("[search(q=5, limit='3', tags='a', extra=1)]", frozen);
    expect(JSON.stringify(frozen)).toBe(before);
  });
});

it('says what the tools are to be when they are no list', () => {
  for (const given of [{ search: {} }, undefined, 'search']) {
    expect(() => Reflect.apply(parseToolCalls, undefined, ['hello', given])).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('The tools are a list') }),
    );
  }
});
