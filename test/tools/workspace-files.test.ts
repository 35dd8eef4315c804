import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { makeScene, type Scene } from './workspace-scene.ts';

type Entry = { path: string; type: string; sizeBytes?: number; note?: string };

async function listAll(scene: Scene, args: JsonObject): Promise<{ entries: Entry[]; pages: number }> {
  const entries: Entry[] = [];
  for (let after: string | undefined, pages = 1; ; pages += 1) {
    const page = await scene.call('list_files', { ...args, ...(after !== undefined && { after }) });
    entries.push(...(page['entries'] as unknown as Entry[]));
    const next = page['next'] as { after: string } | undefined;
    if (next === undefined) return { entries, pages };
    after = next.after;
  }
}

describe('list_files', () => {
  it('gives a level of files, folders and links with sizes', async () => {
    const scene = makeScene();
    scene.write('b.txt', '12345');
    scene.write('a/deep.txt', 'x');
    scene.write('node_modules/x/index.js', 'x');
    symlinkSync('..', join(scene.root, 'c'));
    expect(await scene.call('list_files')).toEqual({
      entries: [
        { path: 'a', type: 'folder' },
        { path: 'b.txt', type: 'file', sizeBytes: 5 },
        { path: 'c', type: 'link' },
        { path: 'node_modules', type: 'folder', note: 'not walked into' },
      ],
    });
    const inside = await scene.call('list_files', { path: 'node_modules', depth: 2 });
    expect(inside['entries']).toContainEqual({ path: 'node_modules/x/index.js', type: 'file', sizeBytes: 1 });
  });

  it('is empty for an empty folder', async () => {
    expect(await makeScene().call('list_files', { depth: 5 })).toEqual({ entries: [] });
  });

  it('lists a name that is no UTF-8, and says that no path leads there', async () => {
    const scene = makeScene();
    writeFileSync(Buffer.concat([Buffer.from(`${scene.root}/caf`), Buffer.from([0xe9])]), 'x');
    mkdirSync(Buffer.concat([Buffer.from(`${scene.root}/dir`), Buffer.from([0xff])]));
    const note = 'the name is not UTF-8, so that no path leads here';
    expect(await scene.call('list_files', { depth: 3 })).toEqual({
      entries: [
        { path: 'caf\uFFFD', type: 'file', note },
        { path: 'dir\uFFFD', type: 'folder', note },
      ],
    });
  });

  it('goes on past a folder that it may not read', async () => {
    const scene = makeScene();
    scene.write('closed/x', 'x');
    scene.write('open/y', 'y');
    chmodSync(join(scene.root, 'closed'), 0);
    const { entries } = await listAll(scene, { depth: 3 });
    chmodSync(join(scene.root, 'closed'), 0o700);
    // The superuser may read everything.
    if (process.getuid?.() !== 0) expect(entries[0]).toMatchObject({ note: 'cannot be read (unreadable)' });
    expect(entries.map(({ path }) => path)).toContain('open/y');
  });

  it('pages through any tree without a gap or a repeat', async () => {
    // Names where one is the beginning of another: the separator must not take part in their order.
    const names = ['', '-', '.', ' ', '0', 'a', 'B', 'é'].map((end) => `${'n'.repeat(70)}${end}`);
    const pairs = names.flatMap((first) => [[first], ...names.map((second) => [first, second])]);
    const tree = [...pairs, ...pairs.flatMap((pair) => names.map((third) => [...pair, third]))];
    const paths = fc.subarray(tree, { minLength: 250, maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(paths, async (tree) => {
        const scene = makeScene();
        for (const parts of tree) mkdirSync(join(scene.root, ...parts), { recursive: true });
        const { entries, pages } = await listAll(scene, { depth: 9 });
        expect(pages).toBeGreaterThan(1);
        const all = new Set(tree.flatMap((parts) => parts.map((_, index) => parts.slice(0, index + 1).join('/'))));
        expect(new Set(entries.map(({ path }) => path))).toEqual(all);
        expect(entries.length).toBe(all.size);
      }),
      { numRuns: 4 },
    );
  }, 30_000);

  it('stays small, and stops when it is aborted', async () => {
    const scene = makeScene();
    for (let index = 0; index < 600; index += 1) scene.write(`${'x'.repeat(60)}${index}`, '');
    const page = await scene.call('list_files');
    expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(32 * 1024);
    expect(page['next']).toBeDefined();
    await expect(scene.call('list_files', {}, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
  });
});

describe('read_file', () => {
  it('reads a small file whole', async () => {
    const scene = makeScene();
    scene.write('a/b.txt', 'one\ntwo\n');
    expect(await scene.call('read_file', { path: './a//b.txt' })).toEqual({
      path: 'a/b.txt',
      sizeBytes: 8,
      text: 'one\ntwo\n',
      line: 1,
    });
    scene.write('empty', '');
    expect(await scene.call('read_file', { path: 'empty' })).toMatchObject({ text: '', sizeBytes: 0 });
  });

  it('pages by line', async () => {
    const scene = makeScene();
    scene.write('lines', Array.from({ length: 9 }, (_, index) => `line ${index + 1}\n`).join(''));
    const page = await scene.call('read_file', { path: 'lines', line: 4, maxLines: 2 });
    expect(page).toMatchObject({ text: 'line 4\nline 5\n', line: 4, next: { offset: 35, line: 6 } });
    expect(await scene.call('read_file', { path: 'lines', line: 10 })).toMatchObject({ text: '' });
    expect((await scene.refusal('read_file', { path: 'lines', line: 11 })).data).toEqual({ reason: 'past_the_end' });
    expect((await scene.refusal('read_file', { path: 'lines', offset: 64 })).data).toEqual({ reason: 'past_the_end' });
    expect((await scene.refusal('read_file', { path: 'lines', offset: 1, line: 1 })).data).toEqual({
      reason: 'line_and_offset',
    });
  });

  it('refuses binary and huge files', async () => {
    const scene = makeScene();
    scene.write('image', Buffer.from([0x89, 0x50, 0, 1]));
    scene.write('huge', Buffer.alloc(16 * 1024 * 1024 + 1, 'a'));
    expect((await scene.refusal('read_file', { path: 'image' })).data).toEqual({ reason: 'binary' });
    const huge = await scene.refusal('read_file', { path: 'huge' });
    expect(huge.data).toEqual({ reason: 'too_large' });
    expect(huge.message).toContain('16777217 bytes');
  });

  it('gives back any text, page after page, each small enough', async () => {
    const scene = makeScene();
    const piece = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }).map((text) => text.toWellFormed()),
      fc.constantFrom('\n', '€'.repeat(900), '😀'.repeat(3000), '\u0001'.repeat(9000), 'x'.repeat(40_000), '"\\\n'),
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => `${' '.repeat(8192)}${pieces.join('')}`);
    await fc.assert(
      fc.asyncProperty(text, async (content) => {
        scene.write('any', content);
        let read = '';
        for (let offset = 0; ; ) {
          const page = await scene.call('read_file', { path: 'any', offset });
          expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(32 * 1024);
          expect(page['line']).toBe(read.split('\n').length);
          read += page['text'];
          const next = page['next'] as { offset: number } | undefined;
          if (next === undefined) break;
          expect(next.offset).toBeGreaterThan(offset);
          offset = next.offset;
        }
        expect(read).toBe(content);
      }),
      { numRuns: 15 },
    );
  });

  it('shows bytes that are no UTF-8 with a mark', async () => {
    const scene = makeScene();
    scene.write('latin', Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]));
    expect(await scene.call('read_file', { path: 'latin' })).toMatchObject({ text: 'caf\uFFFD\n', sizeBytes: 5 });
    scene.write('broken', Buffer.alloc(60_000, 0x80));
    expect((await scene.call('read_file', { path: 'broken' }))['next']).toBeDefined();
  });
});
