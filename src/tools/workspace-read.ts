import { encodedBytes } from '#core';
import { type Tool, tool } from './tool.ts';
import { type Fence, MAX_RESULT_BYTES, partsOf, readTextBytes, refuse } from './workspace-fence.ts';

/** A file over this is refused. */
const MAX_READ_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;

interface ReadArgs {
  readonly path: string;
  readonly line?: number;
  readonly offset?: number;
  readonly maxLines?: number;
}

/** Value: `{ path, sizeBytes, text, line, next?: { offset, line } }`; `line` is the number of the first line of `text`. */
export function readFileTool(fence: Fence): Tool {
  return tool({
    name: 'read_file',
    description:
      'Reads a text file of the workspace, a page at a time. When `next` is in the result, the file goes on: pass its ' +
      '`offset` to read the next page. Bytes that are no UTF-8 are shown as \uFFFD.',
    effect: 'read',
    tags: ['workspace'],
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'File, relative to the workspace.' },
        line: { type: 'integer', minimum: 1, description: 'First line to read. Default 1.' },
        offset: { type: 'integer', minimum: 0, description: 'First byte to read, in place of a line.' },
        maxLines: { type: 'integer', minimum: 1, description: 'Lines to read. Default: what fits into one result.' },
      },
      required: ['path'],
      additionalProperties: false,
    },
    async execute(args) {
      const { path, line, offset, maxLines = Number.POSITIVE_INFINITY } = args as unknown as ReadArgs;
      if (line !== undefined && offset !== undefined) throw refuse('line_and_offset');
      const bytes = await readTextBytes(fence, path, MAX_READ_BYTES);
      const start = offset === undefined ? startOfLine(bytes, line ?? 1) : startOfCharacter(bytes, offset);
      if (start > bytes.length) throw refuse('past_the_end', { detail: `it has ${bytes.length} bytes` });
      const end = endOfPage(bytes, start, maxLines);
      const from = linesBefore(bytes, start) + 1;
      const page = {
        path: partsOf(path).join('/'),
        sizeBytes: bytes.length,
        text: bytes.toString('utf8', start, end),
        line: from,
      };
      return end === bytes.length ? page : { ...page, next: { offset: end, line: linesBefore(bytes, end) + 1 } };
    },
  });
}

function startOfLine(bytes: Buffer, line: number): number {
  let start = 0;
  for (let at = 1; at < line; at += 1) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end === -1) return bytes.length + 1;
    start = end + 1;
  }
  return start;
}

/** `offset`, moved back to the beginning of its character. */
function startOfCharacter(bytes: Buffer, offset: number): number {
  let start = offset;
  while (start > 0 && offset - start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}

function linesBefore(bytes: Buffer, end: number): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1 && at < end; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

/** The whole lines that fit. A single line that is too long is cut between two characters. */
function endOfPage(bytes: Buffer, start: number, maxLines: number): number {
  const room = MAX_RESULT_BYTES - 1024;
  let end = start;
  let used = 0;
  for (let lines = 0; lines < maxLines && end < bytes.length; lines += 1) {
    const newline = bytes.indexOf(NEWLINE, end);
    const next = newline === -1 ? bytes.length : newline + 1;
    used += next - end > room ? room + 1 : encodedBytes(bytes.toString('utf8', end, next));
    if (used > room) return end === start ? cutLine(bytes, start, room) : end;
    end = next;
  }
  return end;
}

function cutLine(bytes: Buffer, start: number, room: number): number {
  let length = Math.min(room, bytes.length - start);
  while (encodedBytes(bytes.toString('utf8', start, start + length)) > room) length = Math.ceil(length / 2);
  return Math.max(startOfCharacter(bytes, start + length), start + 1);
}
