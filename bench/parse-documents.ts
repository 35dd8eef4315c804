/** The texts that the parsers read: arguments with many small fields, and arguments with one long string. */
import type { ParseTool } from '#parse';

export interface Kind {
  readonly name: string;
  readonly tool: ParseTool;
  /** Well-formed arguments of about so many characters. */
  write(chars: number): string;
}

const RECORD = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    price: { type: 'number' },
    inStock: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['id', 'name'],
  additionalProperties: false,
} as const;

const RECORDS: Kind = {
  name: 'many fields',
  tool: {
    name: 'save_records',
    inputSchema: {
      type: 'object',
      properties: { records: { type: 'array', items: RECORD } },
      required: ['records'],
      additionalProperties: false,
    },
  },
  write(chars) {
    const records: string[] = [];
    for (let id = 0, length = 14; length < chars; id += 1) {
      const record = JSON.stringify({
        id,
        name: `Item number ${id}`,
        price: id * 1.25,
        inStock: id % 3 > 0,
        tags: ['new', `shelf ${id % 7}`],
      });
      records.push(record);
      length += record.length + 1;
    }
    return `{"records":[${records.join(',')}]}`;
  },
};

const LINE = 'export function greet(name: string): string { return "Hello, " + name; }\n';

const LONG_STRING: Kind = {
  name: 'one long string',
  tool: {
    name: 'write_file',
    inputSchema: {
      type: 'object',
      properties: { path: { type: 'string' }, content: { type: 'string' } },
      required: ['path', 'content'],
      additionalProperties: false,
    },
  },
  write(chars) {
    const lines = Math.round(chars / (JSON.stringify(LINE).length - 2));
    return JSON.stringify({ path: 'src/greet.ts', content: LINE.repeat(lines) });
  },
};

export const KINDS: readonly Kind[] = [RECORDS, LONG_STRING];

/** The size of the arguments that most calls have. */
export const SMALL: { readonly text: string; readonly tool: ParseTool } = {
  text: RECORDS.write(150),
  tool: RECORDS.tool,
};
