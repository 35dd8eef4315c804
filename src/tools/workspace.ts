/** Tools that let a run look at one folder, and at nothing else. They change nothing. */
import { realpathSync, statSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { assertOptions, encodedBytes, type JsonObject, type OptionShape, PilotageError } from '#core';
import { type Tool, tool } from './tool.ts';
import { type Fence, type HardLinks, MAX_RESULT_BYTES, partsOf, readTextBytes, refuse } from './workspace-fence.ts';
import { gitLogTool } from './workspace-git.ts';
import { searchFilesTool } from './workspace-search.ts';
import { type Found, UNNAMEABLE, walk } from './workspace-walk.ts';

export interface WorkspaceOptions {
  /** The folder. Everything in it can be read, also hidden files; nothing outside of it can. */
  readonly root: string;
  /**
   * What happens with a file that has a second name: a hard link, which may lie outside of the folder. Default `refuse`.
   * `read` is for folders whose files are linked on purpose, such as a `node_modules` of pnpm.
   */
  readonly hardLinks?: HardLinks;
}

const OPTIONS: OptionShape<WorkspaceOptions> = { root: 'text', hardLinks: 'any?' };

/**
 * `list_files`, `read_file`, `search_files` and `git_log` for one folder, all with the effect `read`. A refusal is the
 * outcome `workspace_refused`, whose `data.reason` says why.
 * @throws PilotageError `invalid_config` when `root` is not a folder.
 */
export function workspaceTools(options: WorkspaceOptions): Tool[] {
  assertOptions('workspaceTools', options, OPTIONS);
  const { root, hardLinks = 'refuse' } = options;
  if (hardLinks !== 'refuse' && hardLinks !== 'read') {
    throw new PilotageError('invalid_config', `hardLinks is ${String(hardLinks)}; give 'refuse' or 'read'.`);
  }
  const real = realFolder(root);
  const fence = { root: real, hardLinks };
  return [listFilesTool(real), readFileTool(fence), searchFilesTool(fence), gitLogTool(fence)];
}

function realFolder(root: string): string {
  try {
    const real = realpathSync(root);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    throw new PilotageError('invalid_config', `The workspace ${root} cannot be read. Give an existing folder.`, {
      cause,
    });
  }
  throw new PilotageError('invalid_config', `The workspace ${root} is not a folder. Give an existing folder.`);
}

const MAX_DEPTH = 32;

/** Value: `{ entries: { path, type, sizeBytes?, note? }[], next?: { after } }`. */
function listFilesTool(root: string): Tool {
  return tool({
    name: 'list_files',
    description:
      'Lists the files and folders below a folder of the workspace, with sizes. Folders of tools and dependencies ' +
      '(.git, node_modules, dist …) are not walked into; list one by its path. When `next` is in the result, pass its `after` to go on.',
    effect: 'read',
    tags: ['workspace'],
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Folder, relative to the workspace. Default: the workspace itself.' },
        depth: { type: 'integer', minimum: 1, maximum: MAX_DEPTH, description: 'Levels of folders. Default 1.' },
        after: { type: 'string', description: 'Go on after this path: `next.after` of the result before.' },
      },
      additionalProperties: false,
    },
    async execute(args, { signal }) {
      const { path = '.', depth = 1, after } = args as { path?: string; depth?: number; after?: string };
      const entries: JsonObject[] = [];
      let bytes = 0;
      for await (const found of walk(root, path, { depth, signal, ...(after !== undefined && { after }) })) {
        const entry = await describe(root, found);
        bytes += encodedBytes(entry) + 1;
        const last = entries.at(-1);
        if (bytes > MAX_RESULT_BYTES && last !== undefined) return { entries, next: { after: last['path'] } };
        entries.push(entry);
      }
      return { entries };
    },
  });
}

async function describe(root: string, found: Found): Promise<JsonObject> {
  if (found.type !== 'file') return { ...found };
  try {
    const { size } = await lstat(join(root, found.path));
    return { ...found, sizeBytes: size };
  } catch {
    // Gone since its folder was read, or a name that cannot be spelled.
    return { ...found, note: found.path.includes('\uFFFD') ? UNNAMEABLE : 'is gone' };
  }
}

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
function readFileTool(fence: Fence): Tool {
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
