/**
 * Search in the files of a workspace. A regular expression runs a file at a time under a time limit; lines are bounded, and
 * the signal is looked at between files.
 */
import { encodedBytes, type JsonObject } from '#core';
import { TimeLimit } from '#schema';
import { type Tool, ToolFailure, tool } from './tool.ts';
import { type Fence, MAX_RESULT_BYTES, partsOf, readTextBytes, refuse } from './workspace-fence.ts';
import { type Found, isWithin, walk } from './workspace-walk.ts';

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_MATCHES = 100;
const MAX_SHOWN_CHARS = 240;
/** A regular expression sees this much of a line. */
const MAX_LINE_CHARS = 2000;
const FILE_TIME_MS = 500;
const SEARCH_TIME_MS = 10_000;

interface SearchArgs {
  readonly pattern: string;
  readonly regex?: boolean;
  readonly ignoreCase?: boolean;
  readonly path?: string;
  readonly after?: string;
}

interface Match {
  readonly line: number;
  readonly text: string;
}

/** The index of the match in a line, or -1. */
type LineTest = (line: string) => number;

/** Value: `{ matches: { path, line, text }[], filesSearched, filesSkipped, next?: { after } }`. */
export function searchFilesTool(fence: Fence): Tool {
  return tool({
    name: 'search_files',
    description:
      'Finds the lines of text files of the workspace that contain a text, or match a regular expression with `regex`. ' +
      'Binary files, files over 4 MiB and folders of tools and dependencies are passed over. When `next` is in the ' +
      'result, the search was cut: pass its `after` to go on.',
    effect: 'read',
    tags: ['workspace'],
    inputSchema: {
      type: 'object',
      properties: {
        pattern: { type: 'string', minLength: 1, maxLength: 500 },
        regex: { type: 'boolean', description: 'The pattern is a JavaScript regular expression. Default false.' },
        ignoreCase: { type: 'boolean', description: 'Default false.' },
        path: { type: 'string', description: 'File or folder, relative to the workspace. Default: all of it.' },
        after: { type: 'string', description: 'Go on after this place: `next.after` of the result before.' },
      },
      required: ['pattern'],
      additionalProperties: false,
    },
    execute: (args, { signal }) => search(fence, args as unknown as SearchArgs, signal),
  });
}

async function search(fence: Fence, args: SearchArgs, signal: AbortSignal): Promise<JsonObject> {
  const find = args.regex === true ? guardedFinder(args) : plainFinder(args);
  const mark = args.after === undefined ? undefined : readMark(args.after);
  const until = performance.now() + SEARCH_TIME_MS;
  const page = new Page();
  for await (const { path, type } of filesOf(fence.root, args.path ?? '.', mark?.path, signal)) {
    if (type !== 'file') continue;
    if (performance.now() > until && page.searched + page.skipped > 0) return page.value(`${path}:0`);
    const text = await readSearchable(fence, path);
    if (text === undefined) {
      page.skipped += 1;
      continue;
    }
    const first = path === mark?.path ? mark.line + 1 : 1;
    for (const match of find(text, first)) if (!page.add(path, match)) return page.value(page.last);
    page.searched += 1;
  }
  return page.value();
}

/** One result. `last` is the place of its last match, where the next one begins. */
class Page {
  searched = 0;
  skipped = 0;
  last: string | undefined;
  readonly #matches: JsonObject[] = [];
  #bytes = 0;

  /** False when there is no room. */
  add(path: string, match: Match): boolean {
    const entry = { path, ...match };
    this.#bytes += encodedBytes(entry) + 1;
    if (this.#matches.length > 0 && this.#bytes > MAX_RESULT_BYTES - 1024) return false;
    if (this.#matches.length === MAX_MATCHES) return false;
    this.#matches.push(entry);
    this.last = `${path}:${match.line}`;
    return true;
  }

  value(after?: string): JsonObject {
    const { searched, skipped } = this;
    const value = { matches: this.#matches, filesSearched: searched, filesSkipped: skipped };
    return after === undefined ? value : { ...value, next: { after } };
  }
}

function readMark(after: string): { path: string; line: number } {
  const colon = after.lastIndexOf(':');
  const line = Number(after.slice(colon + 1));
  if (colon < 1 || !Number.isSafeInteger(line) || line < 0) throw refuse('after');
  return { path: partsOf(after.slice(0, colon)).join('/'), line };
}

/** The file of the mark is given again: the rest of its lines may still be open. */
async function* filesOf(
  root: string,
  start: string,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Found> {
  const whole = partsOf(start).join('/');
  try {
    if (after !== undefined && after !== whole && isWithin(partsOf(start), partsOf(after))) {
      yield { path: after, type: 'file' };
    }
    yield* walk(root, start, { depth: Number.POSITIVE_INFINITY, signal, ...(after !== undefined && { after }) });
  } catch (error) {
    if (!(error instanceof ToolFailure) || error.data?.['reason'] !== 'not_a_folder') throw error;
    yield { path: whole, type: 'file' };
  }
}

/** `undefined` for a file that is passed over: binary, too large, not readable, or gone since its folder was read. */
async function readSearchable(fence: Fence, path: string): Promise<string | undefined> {
  try {
    return (await readTextBytes(fence, path, MAX_FILE_BYTES)).toString('utf8');
  } catch (error) {
    if (error instanceof ToolFailure) return undefined;
    throw error;
  }
}

function plainFinder({ pattern, ignoreCase }: SearchArgs): (text: string, first: number) => Match[] {
  const fold = ignoreCase === true ? (text: string): string => text.toLowerCase() : (text: string): string => text;
  const wanted = fold(pattern);
  return (text, first) => {
    if (!fold(text).includes(wanted)) return [];
    const matches: Match[] = [];
    findLines(text, first, (line) => fold(line).indexOf(wanted), matches);
    return matches;
  };
}

function guardedFinder({ pattern, ignoreCase }: SearchArgs): (text: string, first: number) => Match[] {
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, ignoreCase === true ? 'i' : '');
  } catch (cause) {
    throw refuse('bad_pattern', { cause });
  }
  const limit = new TimeLimit(FILE_TIME_MS);
  return (text, first) => {
    const matches: Match[] = [];
    const find = (): void =>
      findLines(text, first, (line) => line.slice(0, MAX_LINE_CHARS).search(expression), matches);
    if (!inTime(limit, find)) throw refuse('slow_pattern');
    return matches;
  };
}

/** @throws ToolFailure for a pattern that turns out to be too large only when it is used. */
function inTime(limit: TimeLimit, find: () => void): boolean {
  try {
    return limit.run(find);
  } catch (cause) {
    throw refuse('bad_pattern', { cause });
  }
}

/** Adds the matching lines from line `first` on, and stops when there are more than one result can hold. */
function findLines(text: string, first: number, test: LineTest, matches: Match[]): void {
  let start = 0;
  for (let line = 1; start < text.length && matches.length <= MAX_MATCHES; line += 1) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    if (line >= first) {
      const content = text.slice(start, end);
      const index = test(content);
      if (index !== -1) matches.push({ line, text: excerpt(content, index) });
    }
    start = end + 1;
  }
}

function excerpt(line: string, index: number): string {
  if (line.length <= MAX_SHOWN_CHARS) return line.trimEnd().toWellFormed();
  const from = Math.max(0, Math.min(index - 40, line.length - MAX_SHOWN_CHARS));
  const until = from + MAX_SHOWN_CHARS;
  const shown = line.slice(from, until).toWellFormed();
  return `${from > 0 ? '…' : ''}${shown}${until < line.length ? '…' : ''}`;
}
