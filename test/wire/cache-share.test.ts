/** What the marks come to: a long run against a cache by the rules that Anthropic publishes. */
import { describe, expect, it } from 'vitest';
import { ourShare } from '../../bench/cache.ts';
import { cachingServer, type MessagesBody, PromptCache } from '../../bench/prompt-cache.ts';

const mark = { cache_control: { type: 'ephemeral' } };
const long = 'x'.repeat(4 * 2_000);
const text = (words: string, marked = false) => ({ type: 'text', text: words, ...(marked ? mark : {}) });
const asks = (...content: readonly object[]): MessagesBody =>
  ({ system: [text(long, true)], messages: [{ role: 'user', content }] }) as MessagesBody;

describe('the cache that is measured against', () => {
  it('reads what was written at a mark, for five minutes from the last read', () => {
    const cache = new PromptCache();
    const written = cache.take(asks(text('a')), 0);
    expect(written).toMatchObject({ read: 0, written: expect.any(Number) });
    expect(cache.take(asks(text('b')), 299_000).read).toBe(written.written);
    expect(cache.take(asks(text('c')), 598_000).read).toBe(written.written);
    expect(cache.take(asks(text('d')), 898_000).read).toBe(0);
  });

  it('looks at 20 blocks from a mark, and writes nothing short', () => {
    const far = (count: number) => [
      ...Array.from({ length: count }, (_, index) => text(`${index}`)),
      text('end', true),
    ];
    for (const [between, isFound] of [
      [18, true],
      [19, false],
    ] as const) {
      const cache = new PromptCache();
      const { system } = asks();
      cache.take({ system: system ?? [], messages: [] }, 0);
      const plain = { system: [text(long)], messages: [{ role: 'user', content: far(between) }] } as MessagesBody;
      expect(cache.take(plain, 1).read > 0).toBe(isFound);
    }
    expect(new PromptCache().take({ messages: [{ role: 'user', content: far(1) }] }, 0).written).toBe(0);
  });

  it('refuses a fifth mark', async () => {
    const server = await cachingServer(() => [text('Done.')], 0);
    try {
      const body = { model: 'm', max_tokens: 9, ...asks(...['a', 'b', 'c', 'd'].map((word) => text(word, true))) };
      const response = await fetch(`${server.url}/messages`, { method: 'POST', body: JSON.stringify(body) });
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('5 marks')]);
    } finally {
      await server.close();
    }
  });
});

describe('a run of 60 steps', () => {
  it('reads nine tenths of its input from the cache, with hints, faults, a compaction and a resume in the middle', async () => {
    expect(await ourShare()).toBeGreaterThan(0.9);
  });
});
