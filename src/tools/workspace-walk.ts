/** The files and folders of a workspace in a fixed order, so that a page can begin where the one before it ended. */
import { opendir } from 'node:fs/promises';
import { ToolFailure } from './tool.ts';
import { partsOf, withOpened } from './workspace-fence.ts';

/** Folders that hold what tools made or fetched, and are not walked into. They can still be asked for by their path. */
const HEAVY = new Set([
  '.git',
  '.hg',
  '.svn',
  '.pilotage',
  'node_modules',
  'bower_components',
  'dist',
  'build',
  'target',
  'coverage',
  'vendor',
  'venv',
  '.venv',
  '__pycache__',
  '.mypy_cache',
  '.pytest_cache',
  '.tox',
  '.gradle',
  '.next',
  '.nuxt',
  '.turbo',
  '.cache',
]);

const MAX_FOLDER_ENTRIES = 50_000;

type FoundType = 'file' | 'folder' | 'link' | 'other';

export interface Found {
  /** Relative to the workspace, with `/` between the parts. */
  readonly path: string;
  readonly type: FoundType;
  /** Why a folder's content is missing or not whole. */
  readonly note?: string;
}

export interface WalkOptions {
  /** Levels of folders below the start that are read; 1 is the start alone. */
  readonly depth: number;
  /** Only what comes after this path in the order of the walk. */
  readonly after?: string;
  readonly signal: AbortSignal;
}

interface Child {
  readonly name: string;
  readonly type: FoundType;
}

interface Folder {
  readonly parts: readonly string[];
  readonly children: readonly Child[];
  next: number;
}

/**
 * Names in the order of their UTF-16 code units, what is in a folder right after the folder. Links are not followed. A
 * folder that cannot be read has a note; only the start throws.
 * @throws ToolFailure `workspace_refused`, or the signal's reason.
 */
export async function* walk(root: string, start: string, options: WalkOptions): AsyncGenerator<Found> {
  const { depth, signal } = options;
  const mark = options.after === undefined ? [] : partsOf(options.after);
  const parts = partsOf(start);
  const first = await readFolder(root, parts);
  if (first.note !== undefined && mark.length === 0) {
    yield { path: parts.join('/') || '.', type: 'folder', note: first.note };
  }
  const open: Folder[] = [{ parts, children: first.children, next: 0 }];
  for (let folder = open.at(-1); folder !== undefined; folder = open.at(-1)) {
    signal.throwIfAborted();
    const child = folder.children[folder.next];
    folder.next += 1;
    if (child === undefined) {
      open.pop();
      continue;
    }
    const at = [...folder.parts, child.name];
    const isNew = mark.length === 0 || compareParts(at, mark) > 0;
    if (!isNew && !isWithin(at, mark)) continue;
    const found: Found = { path: at.join('/'), type: child.type };
    if (child.type !== 'folder') {
      if (isNew) yield found;
    } else if (HEAVY.has(child.name)) {
      if (isNew) yield { ...found, note: 'not walked into' };
    } else if (open.length >= depth) {
      if (isNew) yield found;
    } else {
      const { children, note } = await readBelow(root, at);
      if (isNew) yield note === undefined ? found : { ...found, note };
      open.push({ parts: at, children, next: 0 });
    }
  }
}

interface FolderContent {
  readonly children: readonly Child[];
  readonly note?: string;
}

async function readFolder(root: string, parts: readonly string[]): Promise<FolderContent> {
  const children: Child[] = [];
  return withOpened(root, parts.join('/'), 'folder', async ({ place }) => {
    let note: string | undefined;
    for await (const entry of await opendir(place, { bufferSize: 256 })) {
      if (children.length === MAX_FOLDER_ENTRIES) {
        note = `has more than ${MAX_FOLDER_ENTRIES} entries; the others are not shown`;
        break;
      }
      const type = entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'other';
      children.push({ name: entry.name, type });
    }
    children.sort((left, right) => compareNames(left.name, right.name));
    return note === undefined ? { children } : { children, note };
  });
}

async function readBelow(root: string, parts: readonly string[]): Promise<FolderContent> {
  try {
    return await readFolder(root, parts);
  } catch (error) {
    const reason = error instanceof ToolFailure ? error.data?.['reason'] : undefined;
    if (reason === undefined) throw error;
    return { children: [], note: parts.at(-1)?.includes('\uFFFD') ? UNNAMEABLE : `cannot be read (${reason})` };
  }
}

/** A name that is no UTF-8 comes from the system with this mark in the place of its bytes, and opens nothing. */
export const UNNAMEABLE = 'the name is not UTF-8, so that no path leads here';

function compareNames(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareParts(left: readonly string[], right: readonly string[]): number {
  for (const [index, part] of left.entries()) {
    const other = right[index];
    if (other === undefined) return 1;
    const order = compareNames(part, other);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** True for the folder itself, too. */
export function isWithin(folder: readonly string[], path: readonly string[]): boolean {
  return folder.length <= path.length && folder.every((part, index) => part === path[index]);
}
