import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { JsonObject } from '#core';
import { makeScene } from './workspace-scene.ts';

const author = { GIT_AUTHOR_NAME: 'Ana', GIT_AUTHOR_EMAIL: 'ana@example.org' };
const committer = { GIT_COMMITTER_NAME: 'Ana', GIT_COMMITTER_EMAIL: 'ana@example.org' };
const env = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  ...author,
  ...committer,
};

function git(folder: string, ...args: string[]): void {
  execFileSync('git', args, { cwd: folder, env, stdio: 'pipe' });
}

function commit(folder: string, message: string, file = 'file.txt'): void {
  writeFileSync(join(folder, file), message);
  git(folder, 'add', '.');
  git(folder, 'commit', '-q', '-m', message);
}

type Commit = { commit: string; date: string; author: string; subject: string; body?: string };
const commitsOf = (value: JsonObject): Commit[] => value['commits'] as unknown as Commit[];

afterEach(() => vi.unstubAllEnvs());

describe('git_log', () => {
  it('gives commits, newest first, and pages', async () => {
    const { root, call } = makeScene();
    git(root, 'init', '-q');
    for (const message of ['one', 'two\n\nWhy: because.', 'three']) commit(root, message);
    commit(root, 'elsewhere', 'other.txt');
    const first = await call('git_log', { limit: 2 });
    expect(commitsOf(first).map(({ subject }) => subject)).toEqual(['elsewhere', 'three']);
    expect(first['next']).toEqual({ skip: 2 });
    const second = await call('git_log', { limit: 2, skip: 2 });
    expect(commitsOf(second)).toMatchObject([
      { author: 'Ana', subject: 'two', body: 'Why: because.' },
      { author: 'Ana', subject: 'one' },
    ]);
    expect(second['next']).toBeUndefined();
    expect(commitsOf(second)[0]?.commit).toMatch(/^[0-9a-f]{40}$/);
    expect(Date.parse(commitsOf(second)[0]?.date ?? '')).not.toBeNaN();
    expect(commitsOf(await call('git_log', { path: 'other.txt' }))).toHaveLength(1);
    expect(commitsOf(await call('git_log', { path: ':(exclude)other.txt' }))).toEqual([]);
  });

  it('says that there is no repository, no commit, or no git', async () => {
    const { root, call, refusal } = makeScene();
    expect(await call('git_log')).toEqual({
      repository: false,
      note: 'The workspace is not a git repository, so that it has no history.',
    });
    git(root, 'init', '-q');
    expect(await call('git_log')).toEqual({ repository: true, commits: [] });
    vi.stubEnv('PATH', root);
    expect((await refusal('git_log')).data).toEqual({ reason: 'git_missing' });
  });

  it('does not look at a repository above the workspace, or one whose data is elsewhere', async () => {
    const { base, root, call, refusal } = makeScene();
    git(base, 'init', '-q');
    commit(base, 'outside');
    expect(await call('git_log')).toMatchObject({ repository: false });
    writeFileSync(join(root, '.git'), `gitdir: ${join(base, '.git')}\n`);
    expect((await refusal('git_log')).data).toEqual({ reason: 'git_outside' });
  });

  it('does not follow links inside .git', async () => {
    const { base, root, refusal } = makeScene();
    git(root, 'init', '-q');
    commit(root, 'inside');
    renameSync(join(root, '.git', 'objects'), join(base, 'objects'));
    symlinkSync(join(base, 'objects'), join(root, '.git', 'objects'));
    expect((await refusal('git_log')).data).toEqual({ reason: 'git_outside' });
  });

  it('runs no program that the repository or the environment names', async () => {
    const { base, root, call } = makeScene();
    git(root, 'init', '-q');
    commit(root, 'one');
    const trap = join(base, 'trap.sh');
    writeFileSync(trap, `#!/bin/sh\necho caught >> ${join(base, 'caught')}\n`);
    chmodSync(trap, 0o700);
    for (const name of ['core.fsmonitor', 'core.pager', 'gpg.program', 'diff.external', 'core.sshCommand']) {
      git(root, 'config', name, trap);
    }
    git(root, 'config', 'log.showSignature', 'true');
    const plain = execFileSync('git', ['cat-file', 'commit', 'HEAD'], { cwd: root, env, encoding: 'utf8' });
    const signature = 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----';
    const input = plain.replace('\n\n', `\n${signature}\n\n`);
    const signed = execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin'], { cwd: root, env, input });
    git(root, 'update-ref', 'HEAD', signed.toString().trim());
    mkdirSync(join(base, 'elsewhere'));
    for (const name of ['GIT_DIR', 'GIT_WORK_TREE']) vi.stubEnv(name, join(base, 'elsewhere'));
    for (const name of ['GIT_PAGER', 'GIT_EXTERNAL_DIFF', 'PAGER']) vi.stubEnv(name, trap);
    expect(commitsOf(await call('git_log'))).toHaveLength(1);
    expect(existsSync(join(base, 'caught'))).toBe(false);
  });

  it('stays small with huge messages, and always goes on', async () => {
    const { root, call } = makeScene();
    git(root, 'init', '-q');
    for (let index = 0; index < 3; index += 1) {
      writeFileSync(join(root, 'file.txt'), String(index));
      git(root, 'add', '.');
      const message = `subject ${index}\n\n${'body '.repeat(300_000)}`;
      execFileSync('git', ['commit', '-q', '-F', '-'], { cwd: root, env, input: message });
    }
    const seen: string[] = [];
    for (let skip: number | undefined = 0; skip !== undefined; ) {
      const page: JsonObject = await call('git_log', { skip });
      expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(32 * 1024);
      seen.push(...commitsOf(page).map(({ subject }) => subject));
      skip = (page['next'] as { skip: number } | undefined)?.skip;
    }
    expect(seen).toEqual(['subject 2', 'subject 1', 'subject 0']);
  });

  it('stops when it is aborted', async () => {
    const { root, call } = makeScene();
    git(root, 'init', '-q');
    commit(root, 'one');
    await expect(call('git_log', {}, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
  });
});
