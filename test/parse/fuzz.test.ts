import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { coerceToSchema, isTemplate, parseToolArgs, parseToolCalls } from '#parse';
import { note, search, tools } from './tools.ts';

const SEEDS = [
  '{"tool":"search","args":{"q":"cats and \\"dogs\\"","limit":3,"tags":["a","b"]}}',
  "<tool_call>\n{'name': 'search', 'arguments': {'q': 'it\\'s', \"exact\": True}}\n</tool_call>",
  '[search(q="x", limit=3, tags=["a"]), math.gcd(a=12, b=2**3)]',
  'Thought: so\nAction: search\nAction Input: {"q": "x", "order": "newest"}\nObservation: none',
  '```python\nq = "a"\nresult = search(q, limit=1/1)\n```\nDone.',
  '<invoke name="search"><parameter name="q">x</parameter></invoke>',
  '["search", {"q": "x"}] and {"write_note": {"deep": {"er": [1, [2, {"a": null}]]}}}',
];

interface Edit {
  readonly kind: 'delete' | 'insert' | 'swap' | 'cut' | 'duplicate';
  readonly at: number;
  readonly length: number;
  readonly text: string;
}

const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('delete', 'insert', 'swap', 'cut', 'duplicate'),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 1, max: 12 }),
  text: fc.oneof(
    fc.constantFrom(
      '"',
      "'",
      '{',
      '}',
      '[',
      ']',
      '(',
      ')',
      ',',
      ':',
      '\\',
      '<',
      '>',
      '```',
      '</',
      '//',
      '\n',
      '__proto__',
      '\ud800',
    ),
    fc.string({ maxLength: 4 }),
  ),
});

function apply(text: string, { kind, at, length, text: inserted }: Edit): string {
  const index = Math.floor(at * text.length);
  const head = text.slice(0, index);
  const part = text.slice(index, index + length);
  const tail = text.slice(index + length);
  switch (kind) {
    case 'delete':
      return head + tail;
    case 'insert':
      return head + inserted + part + tail;
    case 'swap':
      return head + tail.slice(0, length) + part + tail.slice(length);
    case 'cut':
      return head;
    case 'duplicate':
      return head + part + part + tail;
    default:
      return kind satisfies never;
  }
}

/** JSON and nothing else, to the last leaf. */
function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  return (
    typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isJson)
  );
}

const edited = fc
  .tuple(fc.constantFrom(...SEEDS), fc.array(edit, { minLength: 1, maxLength: 6 }))
  .map(([seed, edits]) => edits.reduce(apply, seed));

describe('edited calls', () => {
  it('never throw and give well-formed results', () => {
    fc.assert(
      fc.property(edited, (text) => {
        const { calls, issues } = parseToolCalls(text, tools);
        for (const { tool, args } of calls)
          expect(typeof tool === 'string' && isJson(args) && !Array.isArray(args)).toBe(true);
        for (const { call } of issues) expect(call === undefined || call < calls.length).toBe(true);
        const result = parseToolArgs(text, search);
        expect(result === null || isJson(result.args)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('never throw on any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        expect(parseToolCalls(text, tools).calls.every(({ args }) => isJson(args))).toBe(true);
        parseToolArgs(text, note);
      }),
    );
  });
});

/** Values that every form can write: no key that the forms read in a way of their own. */
const number = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(1e300, -2.5e25))
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21);
/** Any text but a placeholder, which makes a template of a call. */
const text = fc
  .string({ unit: 'grapheme' })
  .filter((value) => !isTemplate({ named: { key_0: value }, positional: [] }, true));
const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, false),
    number.map((value) => (value === 0 ? 0 : value)),
    text,
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(fc.string({ unit: 'grapheme' }), tie('json'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));
// A text may be a template only under the name beside which it stands, such as "$" under none.
const fields = fc
  .dictionary(fc.stringMatching(/^[a-z]{3,9}_\d$/), json, { maxKeys: 5, noNullPrototype: true })
  .filter((args) => !isTemplate({ named: args, positional: [] }, true));

function asPython(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(asPython).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([key, inner]) => `${asPython(key)}: ${asPython(inner)}`)
      .join(', ')}}`;
  }
  return JSON.stringify(value);
}

describe('round trip', () => {
  const write: Readonly<Record<string, (args: Record<string, Json>) => string>> = {
    object: (args) => JSON.stringify({ tool: 'write_note', args }),
    'indented in a fence': (args) =>
      `Here:\n\`\`\`json\n${JSON.stringify({ name: 'write_note', arguments: args }, null, 2)}\n\`\`\``,
    'arguments as text': (args) => JSON.stringify([{ name: 'write_note', arguments: JSON.stringify(args) }]),
    tag: (args) => `ok <tool_call>${JSON.stringify({ arguments: args, name: 'write_note' })}</tool_call>`,
    react: (args) => `Thought: x\nAction: write_note\nAction Input: ${JSON.stringify(args)}`,
    'python dict': (args) => `[{'name': 'write_note', 'arguments': ${asPython(args)}}]`,
    'python call': (args) =>
      `[write_note(${Object.entries(args)
        .map(([key, value]) => `${key}=${asPython(value)}`)
        .join(', ')})]`,
    'call with an object': (args) => `write_note(${JSON.stringify(args)})`,
  };

  for (const [name, form] of Object.entries(write)) {
    it(`comes back equal as ${name}`, () => {
      fc.assert(
        fc.property(fields, (args) => {
          expect(parseToolCalls(form(args), tools).calls).toEqual([
            { tool: 'write_note', args, form: expect.any(String) },
          ]);
        }),
        { numRuns: 300 },
      );
    });
  }

  it('hands on any JSON arguments of a native call', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json, { noNullPrototype: true }), (args) => {
        const plain = JSON.parse(JSON.stringify(args)) as Record<string, Json>;
        expect(parseToolArgs(JSON.stringify(plain), note)).toEqual({ args: plain, issues: [] });
      }),
    );
  });

  it('coerces any value without throwing, and once is enough', () => {
    const schema = search.inputSchema ?? {};
    fc.assert(
      fc.property(json, (value) => {
        const once = coerceToSchema(value, schema);
        expect(isJson(once.value)).toBe(true);
        expect(coerceToSchema(once.value, schema).value).toEqual(once.value);
      }),
    );
  });
});
