import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { type NdjsonIssue, NdjsonStream } from '#parse';
import { anyJson } from '../kit/json-values.ts';
import { cut, cuts } from './stream-cuts.ts';

interface Read {
  readonly rows: Json[];
  readonly issues: readonly NdjsonIssue[];
}

function read(text: string, sizes: readonly number[] = [text.length]): Read {
  const stream = new NdjsonStream();
  const rows = cut(text, sizes).flatMap((piece) => stream.push(piece));
  stream.end();
  return { rows, issues: stream.issues };
}

const row = (): fc.Arbitrary<Json> =>
  anyJson().map((value) => (typeof value === 'object' && value !== null ? value : [value]));

describe('NdjsonStream', () => {
  it('reads line by line what JSON.parse reads, whatever the pieces', () => {
    fc.assert(
      fc.property(
        fc.array(row()),
        fc.constantFrom('\n', '\r\n', '\n\n'),
        fc.boolean(),
        cuts(),
        (rows, gap, last, sizes) => {
          const text = rows.map((value) => JSON.stringify(value)).join(gap) + (last ? gap : '');
          const lines = text.split(/\s*\n\s*/).filter((line) => line !== '');
          expect(read(text, sizes)).toEqual({ rows: lines.map((line) => JSON.parse(line)), issues: [] });
        },
      ),
    );
  });

  it('reads rows that run over several lines', () => {
    fc.assert(
      fc.property(fc.array(row()), cuts(), (rows, sizes) => {
        const text = rows.map((value) => JSON.stringify(value, null, 2)).join('\n');
        expect(read(text, sizes)).toEqual({ rows: JSON.parse(JSON.stringify(rows)), issues: [] });
      }),
    );
  });

  it('gives a row as soon as it is closed', () => {
    const stream = new NdjsonStream();
    expect(['{"a": 1', '}', '\n{"a": 2}\n{"a"', ': 3}'].map((piece) => stream.push(piece))).toEqual([
      [],
      [{ a: 1 }],
      [{ a: 2 }],
      [{ a: 3 }],
    ]);
  });

  it.each<
    [what: string, lines: string[], rows: Json[], issues: [NdjsonIssue['kind'], line: number, message: RegExp][]]
  >([
    [
      'fences and prose around the rows',
      ['Here is the plan:', '', '```json', '{"id":1}', '{"id":2}', '```', 'Good luck.'],
      [{ id: 1 }, { id: 2 }],
      [
        ['between', 1, /no row begins here/],
        ['between', 6, /no row begins here/],
      ],
    ],
    ['rows that are indented', ['  {"id":1}', '    {"id":2}', '{"id":3}'], [{ id: 1 }, { id: 2 }, { id: 3 }], []],
    [
      'a bad row between good ones',
      ['{"id":1}', '{"id":2 oops}', '{"id":3}'],
      [{ id: 1 }, { id: 3 }],
      [['lost', 2, /this row was left out: the value that begins here is not JSON|a comma or }/]],
    ],
    [
      'a row that is never closed',
      ['{"id":1, "of": [', '{"id":2}', '{"id":3}'],
      [{ id: 2 }, { id: 3 }],
      [['lost', 1, /the next row begins before this one is closed/]],
    ],
    [
      'a bad row over several lines, none of whose inner parts is a row',
      ['{', '  "id": 1,', '  "of": [', '    {"no": 1} {', '    {"no": 2}', '  ]', '}', '{"id":2}'],
      [{ id: 2 }],
      [['lost', 1, /this row was left out: a comma or ] was expected/]],
    ],
    [
      'rows in an array that is not indented',
      ['[', '{"id":1},', '{"id":2}', ']'],
      [{ id: 1 }, { id: 2 }],
      [
        ['lost', 1, /the next row begins/],
        ['tolerated', 2, /text follows the value/],
        ['between', 4, /no row begins here/],
      ],
    ],
    [
      'what is tolerated in a row',
      ["{'id': 1,}"],
      [{ id: 1 }],
      [
        ['tolerated', 1, /single quotes/],
        ['tolerated', 1, /comma/],
      ],
    ],
    [
      'a line break inside a string',
      ['{"text": "one', '    two"}'],
      [{ text: 'one\n    two' }],
      [['tolerated', 1, /control character/]],
    ],
    [
      'text after a row',
      ['{"id":1} // first', '{"id":2}'],
      [{ id: 1 }, { id: 2 }],
      [['tolerated', 1, /text follows the value/]],
    ],
    ['a last row that is cut', ['{"id":1}', '{"id":2'], [{ id: 1 }], [['lost', 2, /the text ends inside this row/]]],
    ['a last row that is broken', ['{"id":1}', '{"id":}'], [{ id: 1 }], [['lost', 2, /a value was expected/]]],
    ['a byte order mark', ['\uFEFF{"id":1}'], [{ id: 1 }], []],
  ])('copes with %s', (_what, lines, rows, issues) => {
    for (const sizes of [[1], [7], [1000]]) {
      const got = read(lines.join('\n'), sizes);
      expect(got.rows).toEqual(rows);
      expect(got.issues).toEqual(
        issues.map(([kind, line, message]) => ({ kind, line, message: expect.stringMatching(message) })),
      );
    }
  });

  it('gives the same rows and issues for all pieces of any text', () => {
    const line = fc.oneof(
      row().map((value) => JSON.stringify(value)),
      row().map((value) => JSON.stringify(value, null, 1)),
      row().map((value) => JSON.stringify(value).slice(0, -1)),
      fc.constantFrom('```', 'prose', '  ]', ' {"a":', ', {', '"}', ''),
    );
    fc.assert(
      fc.property(fc.array(line), cuts(), (lines, sizes) => {
        const text = lines.join('\n');
        expect(read(text, sizes)).toEqual(read(text));
      }),
      { numRuns: 300 },
    );
  });
});
