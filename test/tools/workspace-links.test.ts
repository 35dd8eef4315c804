/** What lies outside is not read through another name of it either: hard links, and the places where git looks for objects. */
import { execFileSync } from 'node:child_process';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { workspaceTools } from '#tools/workspace';
import { makeScene, SECRET } from './workspace-scene.ts';

const who = {
  GIT_AUTHOR_NAME: 'Ana',
  GIT_AUTHOR_EMAIL: 'a@e.org',
  GIT_COMMITTER_NAME: 'Ana',
  GIT_COMMITTER_EMAIL: 'a@e.org',
};
const env = { PATH: process.env['PATH'], GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', ...who };
const git = (cwd: string, ...args: string[]): void => void execFileSync('git', args, { cwd, env, stdio: 'pipe' });
const outside = (): string => realpathSync(mkdtempSync(join(tmpdir(), 'pilotage-outside-')));

/** The place of one object: its folder and its name. */
function loose(objects: string): string[] {
  const folder = readdirSync(objects).find((name) => /^[0-9a-f]{2}$/.test(name)) ?? '';
  return [folder, ...readdirSync(join(objects, folder))];
}

function repository(at: string): void {
  git(at, 'init', '-q');
  git(at, 'commit', '-q', '--allow-empty', '-m', SECRET);
}

describe('a file with a second name', () => {
  it('is not read, nor searched; the refusal says how it may be allowed', async () => {
    const { root, call, refusal } = makeScene();
    const secret = join(outside(), 'secret.txt');
    writeFileSync(secret, SECRET);
    linkSync(secret, join(root, 'linked.txt'));
    const { data, message } = await refusal('read_file', { path: 'linked.txt' });
    expect(data).toEqual({ reason: 'hard_linked' });
    expect(message).toContain("hardLinks: 'read'");
    const found = await call('search_files', { pattern: SECRET });
    expect(JSON.stringify(found)).not.toContain('linked.txt');
    expect(found['filesSkipped']).toBeGreaterThan(0);
  });

  it('is read where that is allowed, as for the files of pnpm', async () => {
    const { root } = makeScene();
    const store = join(outside(), 'index.js');
    writeFileSync(store, 'export const a = 1;');
    linkSync(store, join(root, 'linked.js'));
    const read = workspaceTools({ root, hardLinks: 'read' }).find(({ name }) => name === 'read_file');
    const context = { signal: new AbortController().signal } as never;
    expect(JSON.stringify(await read?.execute({ path: 'linked.js' }, context))).toContain('export const a');
    expect(() => workspaceTools({ root, hardLinks: 'always' as never })).toThrow(/refuse.*read/);
  });
});

describe('git data outside', () => {
  it.each<[string, (root: string, elsewhere: string) => void]>([
    [
      'alternates',
      (root, elsewhere) => {
        repository(elsewhere);
        repository(root);
        writeFileSync(join(root, '.git/objects/info/alternates'), `${join(elsewhere, '.git/objects')}\n`);
      },
    ],
    [
      'alternates of alternates',
      (root, elsewhere) => {
        repository(elsewhere);
        repository(root);
        mkdirSync(join(root, 'inner'));
        repository(join(root, 'inner'));
        writeFileSync(join(root, '.git/objects/info/alternates'), '../../inner/.git/objects\n');
        writeFileSync(join(root, 'inner/.git/objects/info/alternates'), `${join(elsewhere, '.git/objects')}\n`);
      },
    ],
    [
      'a clone that shares its objects',
      (root, elsewhere) => {
        repository(elsewhere);
        git(root, 'clone', '-q', '--shared', elsewhere, '.git-clone');
        renameSync(join(root, '.git-clone/.git'), join(root, '.git'));
      },
    ],
    [
      'packs behind a link',
      (root, elsewhere) => {
        repository(root);
        renameSync(join(root, '.git/objects/pack'), join(elsewhere, 'pack'));
        symlinkSync(join(elsewhere, 'pack'), join(root, '.git/objects/pack'));
      },
    ],
    [
      'included settings',
      (root, elsewhere) => {
        repository(root);
        writeFileSync(join(elsewhere, 'more'), '[user]\n  name = Ana\n');
        git(root, 'config', 'include.path', join(elsewhere, 'more'));
      },
    ],
    [
      'a .git file that points out',
      (root, elsewhere) => {
        repository(elsewhere);
        writeFileSync(join(root, '.git'), `gitdir: ${join(elsewhere, '.git')}\n`);
      },
    ],
    [
      'a linked worktree',
      (root, elsewhere) => {
        repository(elsewhere);
        git(elsewhere, 'worktree', 'add', '-q', join(root, 'tree'));
        renameSync(join(root, 'tree/.git'), join(root, '.git'));
      },
    ],
    [
      'an object behind a link',
      (root, elsewhere) => {
        repository(elsewhere);
        repository(root);
        const objects = join(elsewhere, '.git/objects');
        const [folder = '', name = ''] = loose(objects);
        mkdirSync(join(root, '.git/objects', folder), { recursive: true });
        rmSync(join(root, '.git/objects', folder, name), { force: true });
        symlinkSync(join(objects, folder, name), join(root, '.git/objects', folder, name));
      },
    ],
    [
      'objects with a second name, as of a local clone',
      (root, elsewhere) => {
        repository(elsewhere);
        git(root, 'clone', '-q', elsewhere, '.git-clone');
        renameSync(join(root, '.git-clone/.git'), join(root, '.git'));
      },
    ],
    [
      'settings with a second name',
      (root, elsewhere) => {
        repository(root);
        writeFileSync(join(elsewhere, 'secret'), SECRET);
        rmSync(join(root, '.git/config'));
        linkSync(join(elsewhere, 'secret'), join(root, '.git/config'));
      },
    ],
  ])('is not read: %s', async (_, set) => {
    const { root, refusal } = makeScene();
    set(root, outside());
    expect((await refusal('git_log')).data).toEqual({ reason: 'git_outside' });
  });

  it('of a local clone is read where second names are allowed', async () => {
    const { root } = makeScene();
    const elsewhere = outside();
    repository(elsewhere);
    git(root, 'clone', '-q', elsewhere, '.git-clone');
    renameSync(join(root, '.git-clone/.git'), join(root, '.git'));
    const log = workspaceTools({ root, hardLinks: 'read' }).find(({ name }) => name === 'git_log');
    const context = { signal: new AbortController().signal } as never;
    expect(await log?.execute({}, context)).toMatchObject({ repository: true, commits: [{ subject: SECRET }] });
  });

  it('alternates that stay inside are read', async () => {
    const { root, call } = makeScene();
    mkdirSync(join(root, 'inner'));
    repository(join(root, 'inner'));
    repository(root);
    writeFileSync(join(root, '.git/objects/info/alternates'), '# one\n../../inner/.git/objects\n');
    expect(await call('git_log')).toMatchObject({ repository: true });
  });
});
