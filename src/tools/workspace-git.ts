import { execFile } from 'node:child_process';
import { lstat, readdir, readFile, realpath } from 'node:fs/promises';
import { devNull } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { encodedBytes, type JsonObject } from '#core';
import { type Tool, tool } from './tool.ts';
import { type Fence, isInside, MAX_RESULT_BYTES, partsOf, refuse } from './workspace-fence.ts';

const run = promisify(execFile);

const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_SUBJECT_CHARS = 200;
const MAX_BODY_CHARS = 1000;

// What the repository's own settings could switch on: a program that watches files or checks signatures, and fetching.
const SAFE = [
  '--no-pager',
  '--no-optional-locks',
  '--no-replace-objects',
  '--literal-pathspecs',
  ...['-c', 'core.fsmonitor=false', '-c', 'log.showSignature=false', '-c', 'protocol.allow=never'],
];
const FIELDS = ['commit', 'date', 'author', 'subject', 'body'] as const;
const LOG = [
  ...['log', '-z', '--format=tformat:%H%x00%cI%x00%an%x00%s%x00%b', '--encoding=UTF-8', '--no-color', '--no-decorate'],
  ...['--no-mailmap', '--no-patch', '--no-ext-diff', '--no-textconv'],
];

interface GitArgs {
  readonly path?: string;
  readonly limit?: number;
  readonly skip?: number;
}

/**
 * Value: `{ repository: true, commits: { commit, date, author, subject, body? }[], next?: { skip } }`, newest first, or
 * `{ repository: false, note }`.
 */
export function gitLogTool(fence: Fence): Tool {
  return tool({
    name: 'git_log',
    description:
      'The commits of the git repository in the workspace, newest first. When `next` is in the result, pass its `skip` ' +
      'to go on.',
    effect: 'read',
    tags: ['workspace'],
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Only commits that touched this file or folder.' },
        limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Default 20.' },
        skip: { type: 'integer', minimum: 0, description: 'Commits to pass over first. Default 0.' },
      },
      additionalProperties: false,
    },
    execute: (args, { signal }) => log(fence, args as GitArgs, signal),
  });
}

async function log(fence: Fence, args: GitArgs, signal: AbortSignal): Promise<JsonObject> {
  const { root } = fence;
  const { path = '.', limit = 20, skip = 0 } = args;
  const parts = partsOf(path);
  await assertOwnFiles(fence, join(root, '.git'));
  const found = await git(root, ['rev-parse', ...GIT_PATHS], signal);
  if (found.failed?.includes('not a git repository')) {
    return { repository: false, note: 'The workspace is not a git repository, so that it has no history.' };
  }
  if (found.failed !== undefined) throw refuse('git_failed', { detail: found.failed });
  await assertDataInside(fence, found.output);
  const only = parts.length === 0 ? [] : [parts.join('/')];
  // One more than asked for shows whether there are more.
  const range = [`--max-count=${limit + 1}`, `--skip=${skip}`, '--', ...only];
  const { output, cut, failed } = await git(root, [...LOG, ...range], signal);
  if (failed?.includes('does not have any commits yet')) return { repository: true, commits: [] };
  if (failed !== undefined) throw refuse('git_failed', { detail: failed });
  return page(output, { limit, skip, cut });
}

const GIT_PATHS = ['--absolute-git-dir', '--git-common-dir', '--git-path', 'objects', '--git-path', 'refs'];

/** A linked worktree, a submodule or a link inside `.git` keeps its data elsewhere; so do alternates and included settings. */
async function assertDataInside(fence: Fence, output: string): Promise<void> {
  const { root } = fence;
  const places = output.trimEnd().split('\n');
  const real = await Promise.all(places.map((place) => realInside(root, resolve(root, place))));
  const [own = root, common = root, objects = root] = real;
  for (const folder of new Set([own, common])) await assertOwnFiles(fence, folder);
  await assertObjectsInside(fence, objects, MAX_ALTERNATES);
}

/** @throws ToolFailure when it leads out, or nowhere. */
async function realInside(root: string, path: string): Promise<string> {
  const real = await realpath(path).catch((cause: unknown) => {
    throw refuse('git_failed', { cause });
  });
  if (!isInside(root, real)) throw refuse('git_outside');
  return real;
}

/** Settings may be read from other files, and any file of git's may be a link. */
async function assertOwnFiles(fence: Fence, folder: string): Promise<void> {
  await assertEntriesInside(fence, folder);
  for (const name of ['config', 'config.worktree']) {
    if (INCLUDES.test(await textOf(join(folder, name)))) throw refuse('git_outside');
  }
}

const INCLUDES = /^\s*\[\s*include/im;
/** Follows alternates like git itself: alternates may have alternates, five deep. */
const MAX_ALTERNATES = 5;

/** Objects are also looked for where `info/alternates` says. */
async function assertObjectsInside(fence: Fence, objects: string, depth: number): Promise<void> {
  if (depth < 0) throw refuse('git_outside');
  const { root } = fence;
  await assertEntriesInside(fence, objects);
  const folders = await readdir(objects).catch(() => []);
  for (const folder of folders) await assertEntriesInside(fence, join(objects, folder));
  if ((await textOf(join(objects, 'info', 'http-alternates'))).trim() !== '') throw refuse('git_outside');
  const lines = (await textOf(join(objects, 'info', 'alternates'))).split('\n');
  for (const line of lines) {
    if (line === '' || line.startsWith('#')) continue;
    // Git takes a line in quotes too; where that leads is not worth finding out.
    if (line.startsWith('"')) throw refuse('git_outside');
    const place = await realpath(resolve(objects, line)).catch(() => undefined);
    if (place === undefined) continue;
    if (!isInside(root, place)) throw refuse('git_outside');
    await assertObjectsInside(fence, place, depth - 1);
  }
}

/** A folder that is not there holds nothing. */
async function assertEntriesInside({ root, hardLinks }: Fence, folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const place = join(folder, entry.name);
    if (entry.isSymbolicLink()) {
      const real = await realpath(place).catch(() => undefined);
      if (real !== undefined && !isInside(root, real)) throw refuse('git_outside');
    } else if (entry.isFile() && hardLinks === 'refuse') {
      const { nlink } = await lstat(place).catch(() => ({ nlink: 1 }));
      if (nlink > 1) throw refuse('git_outside', { detail: LINKED });
    }
  }
}

const LINKED =
  "hard links, as a clone of a local repository has; whoever runs this may allow them with workspaceTools({ root, hardLinks: 'read' })";

/** Empty for what cannot be read: git cannot read it either. */
async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

function page(output: string, asked: { limit: number; skip: number; cut: boolean }): JsonObject {
  const texts = output.split('\0');
  // Every field of the last commit ends with a NUL, unless the output was cut in the middle of it.
  const whole = Math.floor((texts.length - 1) / FIELDS.length);
  const commits: JsonObject[] = [];
  let bytes = 0;
  for (let index = 0; index < Math.max(whole, asked.cut ? 1 : 0) && commits.length < asked.limit; index += 1) {
    const commit = describe(texts.slice(index * FIELDS.length, (index + 1) * FIELDS.length));
    bytes += encodedBytes(commit) + 1;
    if (bytes > MAX_RESULT_BYTES - 1024) break;
    commits.push(commit);
  }
  const value = { repository: true, commits };
  const more = asked.cut || whole > commits.length;
  return more ? { ...value, next: { skip: asked.skip + commits.length } } : value;
}

function describe([commit = '', date = '', author = '', subject = '', body = '']: readonly string[]): JsonObject {
  const known = { commit, date, author: clip(author, MAX_SUBJECT_CHARS), subject: clip(subject, MAX_SUBJECT_CHARS) };
  const text = body.trim();
  return text === '' ? known : { ...known, body: clip(text, MAX_BODY_CHARS) };
}

function clip(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars).toWellFormed()}…`;
}

interface GitResult {
  readonly output: string;
  /** The output was longer than what is kept of it. */
  readonly cut: boolean;
  /** What git said when it failed. */
  readonly failed?: string;
}

/** @throws ToolFailure when git is missing; the signal's reason when it was aborted. */
async function git(root: string, args: readonly string[], signal: AbortSignal): Promise<GitResult> {
  const { PATH = '', SystemRoot } = process.env;
  const env = {
    PATH,
    ...(SystemRoot !== undefined && { SystemRoot }),
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: devNull,
    GIT_CEILING_DIRECTORIES: dirname(root),
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
  };
  try {
    const { stdout } = await run('git', [...SAFE, ...args], { cwd: root, env, signal, maxBuffer: MAX_OUTPUT_BYTES });
    return { output: stdout, cut: false };
  } catch (error) {
    signal.throwIfAborted();
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (code === 'ENOENT') throw refuse('git_missing', { cause: error });
    if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return { output: stdout ?? '', cut: true };
    return {
      output: '',
      cut: false,
      failed: clip((stderr ?? '').split('\n', 1)[0] || String(code), MAX_SUBJECT_CHARS),
    };
  }
}
