/**
 * The fence around one folder. A path is checked as text, then by where it really leads, then once more by where the
 * file that was opened really is, so that swapping a folder for a link in between gains nothing.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { isAbsolute, join, sep } from 'node:path';
import { ToolFailure } from './tool.ts';

/** The JSON of one result stays under this, so that it reaches the planner whole and not as an artifact. */
export const MAX_RESULT_BYTES: number = 28 * 1024;

const HOW = 'Give a path relative to the workspace, such as "src/index.ts"; list_files shows what is there.';

export interface Fence {
  /** The real path of the folder. */
  readonly root: string;
  /** What becomes of a file that has other names too: nothing says where these are. */
  readonly hardLinks: HardLinks;
}

export type HardLinks = 'refuse' | 'read';

export type Refusal =
  | 'nul'
  | 'absolute'
  | 'parent'
  | 'outside'
  | 'not_found'
  | 'not_a_file'
  | 'not_a_folder'
  | 'hard_linked'
  | 'unreadable'
  | 'too_large'
  | 'binary'
  | 'after'
  | 'line_and_offset'
  | 'past_the_end'
  | 'bad_pattern'
  | 'slow_pattern'
  | 'git_missing'
  | 'git_outside'
  | 'git_failed';

const REFUSALS: Readonly<Record<Refusal, string>> = {
  nul: `The path has a NUL byte. ${HOW}`,
  absolute: `The path is absolute. ${HOW}`,
  parent: `The path has "..", which is not followed. ${HOW}`,
  outside: `The path leads out of the workspace through a symbolic link, which is not followed. ${HOW}`,
  not_found: `Nothing is at this path. ${HOW}`,
  not_a_file: 'The path is not a regular file. Use list_files for a folder; devices, pipes and sockets cannot be read.',
  not_a_folder: 'The path is not a folder. Use read_file for a file, or leave the path out for the whole workspace.',
  hard_linked:
    "The file has a second name (a hard link), which may lie outside of the workspace, so it is not read. Whoever runs this may allow it with workspaceTools({ root, hardLinks: 'read' }); package managers such as pnpm link their files so.",
  unreadable: 'The system does not let this be read. Go on without it.',
  too_large: 'The file is too large to be read. Use search_files for a smaller one, or go on without it.',
  binary: 'The file is binary and has no text to show. Go on without it.',
  after: 'The value of "after" was not given by a result. Pass the value of next.after unchanged, or leave it out.',
  line_and_offset: 'Both "line" and "offset" are given. Give one of them.',
  past_the_end: 'The file ends before the place that was asked for. Start at an earlier line or offset.',
  bad_pattern:
    'The pattern is not a valid regular expression. Correct it, or leave "regex" out to search for plain text.',
  slow_pattern:
    'The pattern takes too long. Avoid repeats inside repeats, or leave "regex" out to search for plain text.',
  git_missing: 'The program git is not installed here, so the history cannot be read. Go on without it.',
  git_outside:
    'The git data of this folder lies, at least in part, outside of the workspace, so the history is not read. Go on without it.',
  git_failed: 'git could not read the history. Go on without it.',
};

/** An outcome that says why and what to do instead. `data.reason` has the word, `data.detail` what the system said. */
export function refuse(reason: Refusal, options: { detail?: string; cause?: unknown } = {}): ToolFailure {
  const { detail, cause } = options;
  const message = detail === undefined ? REFUSALS[reason] : `${REFUSALS[reason]} (${detail})`;
  return new ToolFailure(message, { code: 'workspace_refused', data: { reason }, cause });
}

/**
 * The parts of a path inside the workspace; none for the workspace itself. Looks at the text only.
 * @throws ToolFailure `workspace_refused`.
 */
export function partsOf(path: string): string[] {
  if (path.includes('\0')) throw refuse('nul');
  if (isAbsolute(path)) throw refuse('absolute');
  const parts = path.split(sep === '\\' ? /[\\/]/ : '/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw refuse('parent');
  // On Windows a colon begins a drive or a hidden stream of a file.
  if (sep === '\\' && path.includes(':')) throw refuse('absolute');
  return parts;
}

export interface Opened {
  readonly handle: FileHandle;
  readonly stats: Stats;
  /** A path to what was opened that stays right when folders above it are moved, where the system has one. */
  readonly place: string;
}

/**
 * Opens a regular file or a folder inside `root` (a real path), hands it to `use` and closes it.
 * @throws ToolFailure `workspace_refused`.
 */
export async function withOpened<T>(
  root: string,
  path: string,
  kind: 'file' | 'folder',
  use: (opened: Opened) => Promise<T>,
): Promise<T> {
  const handle = await openChecked(root, partsOf(path), kind);
  try {
    const stats = await handle.stat();
    assertKind(stats, kind);
    return await use({ handle, stats, place: await placeInside(root, handle, stats, path) });
  } finally {
    await handle.close();
  }
}

async function openChecked(root: string, parts: string[], kind: 'file' | 'folder'): Promise<FileHandle> {
  try {
    const real = await realpath(join(root, ...parts));
    if (!isInside(root, real)) throw refuse('outside');
    // Looked at before it is opened: opening a device or a pipe may already do something.
    assertKind(await lstat(real), kind);
    return await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw asRefusal(error);
  }
}

/** Where the opened file really is. @throws ToolFailure when that is not inside. */
async function placeInside(root: string, handle: FileHandle, stats: Stats, path: string): Promise<string> {
  const place = `/proc/self/fd/${handle.fd}`;
  try {
    if (!isInside(root, await readlink(place))) throw refuse('outside');
    return place;
  } catch (error) {
    if (error instanceof ToolFailure) throw error;
  }
  // No /proc: what is at the path now must be inside, and be the very file that was opened.
  try {
    const real = await realpath(join(root, path));
    const now = await lstat(real);
    if (isInside(root, real) && now.dev === stats.dev && now.ino === stats.ino) return real;
  } catch (error) {
    throw asRefusal(error);
  }
  throw refuse('outside');
}

/** True when the real path `path` is `root` or lies in it. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

function assertKind(stats: Stats, kind: 'file' | 'folder'): void {
  if (kind === 'file' && !stats.isFile()) throw refuse('not_a_file');
  if (kind === 'folder' && !stats.isDirectory()) throw refuse('not_a_folder');
}

function asRefusal(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || error instanceof ToolFailure) return error;
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ENAMETOOLONG') {
    return refuse('not_found', { cause: error });
  }
  if (error.code === 'ELOOP') return refuse('outside', { cause: error });
  return refuse('unreadable', { detail: String(error.code), cause: error });
}

const BINARY_LOOK_BYTES = 8192;

/**
 * The bytes of a text file.
 * @throws ToolFailure `workspace_refused` when it is larger than `maxBytes`, has a NUL byte near its beginning, or a second name
 * that may lie outside, unless that is allowed.
 */
export async function readTextBytes({ root, hardLinks }: Fence, path: string, maxBytes: number): Promise<Buffer> {
  return withOpened(root, path, 'file', async ({ handle, stats }) => {
    if (stats.nlink > 1 && hardLinks === 'refuse') throw refuse('hard_linked');
    if (stats.size > maxBytes) throw refuse('too_large', { detail: `${stats.size} bytes; the limit is ${maxBytes}` });
    // A file may have grown since it was measured: what is over the limit then is not read.
    const bytes = Buffer.allocUnsafe(Math.min(stats.size + 1, maxBytes));
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    const text = bytes.subarray(0, length);
    if (text.subarray(0, BINARY_LOOK_BYTES).includes(0)) throw refuse('binary');
    return text;
  });
}
