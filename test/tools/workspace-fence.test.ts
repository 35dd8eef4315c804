import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { partsOf } from '#tools';
import { workspaceTools } from '#tools/workspace';
import { makeScene, SECRET } from './workspace-scene.ts';

const scene = makeScene();
const { base, root } = scene;

beforeAll(() => {
  scene.write('inside.txt', 'inside\n');
  scene.write('folder/deep.txt', 'deep\n');
  symlinkSync(join(base, 'outside', 'secret.txt'), join(root, 'link.txt'));
  symlinkSync(join(base, 'outside'), join(root, 'way-out'));
  symlinkSync('way-out', join(root, 'link-to-link'));
  symlinkSync('../../secret.txt', join(root, 'folder', 'up.txt'));
  symlinkSync('/', join(root, 'everything'));
  symlinkSync('inside.txt', join(root, 'good-link.txt'));
  symlinkSync('loop', join(root, 'loop'));
  symlinkSync('nowhere', join(root, 'dangling'));
  // A folder whose name begins with the root's name is outside, too.
  mkdirSync(`${root}-twin`);
  symlinkSync(`${root}-twin`, join(root, 'twin'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
});

describe('workspaceTools', () => {
  it('gives four tools that only read', () => {
    const tools = workspaceTools({ root });
    expect(tools.map(({ name, effect }) => `${name} ${effect}`)).toEqual([
      'list_files read',
      'read_file read',
      'search_files read',
      'git_log read',
    ]);
  });

  it('refuses a root that is no folder', () => {
    expect(() => workspaceTools({ root: join(root, 'inside.txt') })).toThrow(/is not a folder/);
    expect(() => workspaceTools({ root: join(root, 'missing') })).toThrow(/cannot be read/);
  });

  it.each([
    ['../secret.txt', 'parent'],
    ['folder/../../secret.txt', 'parent'],
    ['..', 'parent'],
    ['inside.txt\0.png', 'nul'],
    [join(base, 'secret.txt'), 'absolute'],
    ['/etc/passwd', 'absolute'],
    ['link.txt', 'outside'],
    ['way-out/secret.txt', 'outside'],
    ['link-to-link/secret.txt', 'outside'],
    ['folder/up.txt', 'outside'],
    ['everything/etc/passwd', 'outside'],
    ['everything/dev/null', 'outside'],
    ['twin', 'outside'],
    ['loop', 'outside'],
    ['dangling', 'not_found'],
    ['missing.txt', 'not_found'],
    ['inside.txt/more', 'not_found'],
    ['x'.repeat(5000), 'not_found'],
    ['pipe', 'not_a_file'],
    ['folder', 'not_a_file'],
    ['', 'not_a_file'],
  ])('read_file refuses %j: %s', async (path, reason) => {
    const refused = await scene.refusal('read_file', { path });
    expect(refused.code).toBe('workspace_refused');
    expect(refused.data).toEqual({ reason });
    expect(refused.retryable).toBe(false);
    expect(refused.message).not.toContain(base);
  });

  it.each([
    ['list_files', 'way-out', 'outside'],
    ['list_files', 'everything/etc', 'outside'],
    ['list_files', '../outside', 'parent'],
    ['list_files', 'inside.txt', 'not_a_folder'],
    ['list_files', 'pipe', 'not_a_folder'],
    ['search_files', 'way-out', 'outside'],
    ['search_files', '/', 'absolute'],
    ['search_files', 'missing', 'not_found'],
    ['git_log', '../outside', 'parent'],
    ['git_log', '/etc', 'absolute'],
    ['git_log', 'a\0b', 'nul'],
  ])('%s refuses %j: %s', async (tool, path, reason) => {
    const refused = await scene.refusal(tool, { path, ...(tool === 'search_files' && { pattern: 'secret' }) });
    expect([refused.code, refused.data]).toEqual(['workspace_refused', { reason }]);
  });

  it('says what to do instead', async () => {
    const { message } = await scene.refusal('read_file', { path: '/etc/passwd' });
    expect(message).toContain('Give a path relative to the workspace');
  });

  it('follows a link that stays inside', async () => {
    expect(await scene.call('read_file', { path: 'good-link.txt' })).toMatchObject({ text: 'inside\n' });
  });

  it('refuses a device', async () => {
    const device = makeScene();
    try {
      execFileSync('mknod', [join(device.root, 'zero'), 'c', '1', '5'], { stdio: 'ignore' });
    } catch {
      return; // Only root can make one; the pipe above takes the same way.
    }
    expect((await device.refusal('read_file', { path: 'zero' })).data).toEqual({ reason: 'not_a_file' });
  });

  it('never shows the outside while a folder is swapped for a link again and again', async () => {
    const race = makeScene();
    race.write('there/secret.txt', 'harmless\n');
    const there = join(race.root, 'there');
    symlinkSync(join(race.base, 'outside'), join(race.root, 'bait'));
    const seen = new Set<string>();
    const reads: Promise<unknown>[] = [];
    // On a busy machine it may take a while until a read is quick enough to see anything.
    for (let round = 0; round < 300 || !seen.has('harmless\n'); round += 1) {
      reads.push(
        race.call('read_file', { path: 'there/secret.txt' }).then(
          ({ text }) => seen.add(String(text)),
          () => seen.add('refused'),
        ),
      );
      renameSync(there, join(race.root, 'kept'));
      renameSync(join(race.root, 'bait'), there);
      await new Promise(setImmediate);
      renameSync(there, join(race.root, 'bait'));
      renameSync(join(race.root, 'kept'), there);
    }
    await Promise.all(reads);
    expect(seen).not.toContain(`${SECRET}\n`);
  });

  it('shows nothing from outside for any path', async () => {
    const part = fc.oneof(
      fc.constantFrom(
        '..',
        '.',
        '',
        '...',
        'way-out',
        'link-to-link',
        'link.txt',
        'everything',
        'secret.txt',
        'folder',
      ),
      fc.constantFrom(
        'up.txt',
        'outside',
        'good-link.txt',
        'twin',
        'proc',
        'self',
        'cwd',
        'root',
        '..\\',
        '~',
        '%2e%2e',
      ),
      fc.constantFrom(...base.split('/').filter((name) => name !== '')),
      fc.string({ maxLength: 3, unit: 'binary' }),
    );
    const path = fc.oneof(
      fc.array(part, { maxLength: 8 }).map((parts) => parts.join('/')),
      fc.array(part, { maxLength: 8 }).map((parts) => `${base}/${parts.join('/')}`),
      fc.string({ unit: 'binary' }),
    );
    const call = fc.oneof(
      fc.record({ tool: fc.constant('read_file'), args: fc.record({ path }) }),
      fc.record({ tool: fc.constant('list_files'), args: fc.record({ path, depth: fc.constant(4), after: path }) }),
      fc.record({ tool: fc.constant('list_files'), args: fc.record({ path, depth: fc.constant(4) }) }),
      fc.record({ tool: fc.constant('search_files'), args: fc.record({ pattern: fc.constant('-secret-'), path }) }),
      fc.record({
        tool: fc.constant('search_files'),
        args: fc.record({ pattern: fc.constant('-secret-'), after: path.map((text) => `${text}:0`) }),
      }),
      fc.record({ tool: fc.constant('git_log'), args: fc.record({ path }) }),
    );
    await fc.assert(
      fc.asyncProperty(call, async ({ tool, args }) => {
        const shown = await scene.call(tool, args as JsonObject).then(JSON.stringify, (error: Error) => {
          expect(error).toMatchObject({ code: 'workspace_refused' });
          return error.message;
        });
        expect(shown).not.toContain(SECRET);
        expect(shown).not.toContain('"secret.txt"');
        expect(shown).not.toContain('passwd');
      }),
      { numRuns: 60 },
    );
  });

  it('gives parts that never lead up', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('.', '/', 'a', '\\', '\0') }), (path) => {
        let parts: string[] = [];
        try {
          parts = partsOf(path);
        } catch (error) {
          expect(error).toMatchObject({ code: 'workspace_refused' });
        }
        for (const part of parts) expect(part).not.toMatch(/^(\.\.?)?$|\/|\0/);
      }),
    );
  });
});
