import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { makeScene, type Scene, SECRET } from './workspace-scene.ts';

type Match = { path: string; line: number; text: string };

async function searchAll(scene: Scene, args: JsonObject): Promise<{ matches: Match[]; pages: number }> {
  const matches: Match[] = [];
  for (let after: string | undefined, pages = 1; ; pages += 1) {
    const page = await scene.call('search_files', { ...args, ...(after !== undefined && { after }) });
    matches.push(...(page['matches'] as unknown as Match[]));
    const next = page['next'] as { after: string } | undefined;
    if (next === undefined) return { matches, pages };
    after = next.after;
  }
}

describe('search_files', () => {
  const scene = makeScene();
  scene.write('a.ts', 'first\nconst x = 1; // TODO: a (b)\r\n');
  scene.write('deep/er/b.md', 'todo\nTODO');
  scene.write('node_modules/c.js', 'TODO');
  scene.write('image', Buffer.from('TODO\0'));
  scene.write('huge', Buffer.alloc(4 * 1024 * 1024 + 1, 'TODO '));
  symlinkSync(join(scene.base, 'secret.txt'), join(scene.root, 'link.txt'));

  it('finds plain text line by line', async () => {
    expect(await scene.call('search_files', { pattern: 'TODO' })).toEqual({
      matches: [
        { path: 'a.ts', line: 2, text: 'const x = 1; // TODO: a (b)' },
        { path: 'deep/er/b.md', line: 2, text: 'TODO' },
      ],
      filesSearched: 2,
      filesSkipped: 2,
    });
  });

  it('takes the pattern as plain text unless told otherwise', async () => {
    expect((await scene.call('search_files', { pattern: '(b)' }))['matches']).toHaveLength(1);
    expect((await scene.call('search_files', { pattern: 'a.b' }))['matches']).toEqual([]);
  });

  it('ignores case, and looks at one file or folder', async () => {
    const { matches } = await searchAll(scene, { pattern: 'Todo', ignoreCase: true, path: 'deep' });
    expect(matches.map(({ line }) => line)).toEqual([1, 2]);
    const file = await searchAll(scene, { pattern: 'T.DO$', regex: true, path: 'deep/er/b.md' });
    expect(file.matches).toEqual([{ path: 'deep/er/b.md', line: 2, text: 'TODO' }]);
    const heavy = await searchAll(scene, { pattern: 'TODO', path: 'node_modules' });
    expect(heavy.matches).toHaveLength(1);
  });

  it('does not follow links out', async () => {
    expect((await searchAll(scene, { pattern: SECRET })).matches).toEqual([]);
    expect(await searchAll(scene, { pattern: SECRET, path: 'link.txt' }).catch((error: Error) => error)).toMatchObject({
      code: 'workspace_refused',
      data: { reason: 'outside' },
    });
  });

  it('refuses a pattern that is no regular expression', async () => {
    const refused = await scene.refusal('search_files', { pattern: '(', regex: true });
    expect(refused.data).toEqual({ reason: 'bad_pattern' });
  });

  it('refuses a pattern that would take for ever', async () => {
    const slow = makeScene();
    slow.write('a.txt', `${'a'.repeat(60)}!\n`);
    const refused = await slow.refusal('search_files', { pattern: '^(a+)+$', regex: true });
    expect(refused.data).toEqual({ reason: 'slow_pattern' });
    expect(await slow.call('search_files', { pattern: '^a+!$', regex: true })).toMatchObject({ filesSearched: 1 });
  });

  it('pages through many matches without a gap or a repeat', async () => {
    const many = makeScene();
    for (let file = 0; file < 7; file += 1) {
      many.write(
        `f${file}.txt`,
        Array.from({ length: 61 }, (_, line) => `hit ${file} ${line} ${'x'.repeat(500)}\nmiss\n`).join(''),
      );
    }
    for (const args of [{ pattern: 'hit' }, { pattern: '^h.t \\d', regex: true }]) {
      const { matches, pages } = await searchAll(many, args);
      expect(pages).toBeGreaterThan(4);
      expect(matches.map(({ path, line }) => `${path}:${line}`)).toEqual(
        Array.from({ length: 7 * 61 }, (_, index) => `f${Math.floor(index / 61)}.txt:${(index % 61) * 2 + 1}`),
      );
      for (const { text } of matches) expect(text.length).toBeLessThan(250);
    }
  });

  it('shows the part of a long line around the match', async () => {
    const long = makeScene();
    long.write('min.js', `${'a'.repeat(100_000)}needle${'b'.repeat(100_000)}`);
    const { matches } = await searchAll(long, { pattern: 'needle' });
    expect(matches[0]?.text).toMatch(/^…a+needleb+…$/);
  });

  it('refuses a mark that no result gave', async () => {
    for (const after of ['nonsense', 'a:b', ':1', '../secret.txt:0']) {
      const refused = await scene.refusal('search_files', { pattern: 'x', after });
      expect(refused.code).toBe('workspace_refused');
    }
  });

  it('stops when it is aborted', async () => {
    const stopped = scene.call('search_files', { pattern: 'x' }, AbortSignal.abort(new Error('stop')));
    await expect(stopped).rejects.toThrow('stop');
  });
});
