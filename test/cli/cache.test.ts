/** How much of each request came out of the provider's cache is told at each step, and of the whole run. */
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { makeFolder } from './command.ts';

const CONFIG = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';
const usage = [
  { inputTokens: 1000, cacheWriteInputTokens: 1000, outputTokens: 10 },
  { inputTokens: 9000, cachedInputTokens: 8000, cacheWriteInputTokens: 900, outputTokens: 10 },
  { inputTokens: 50, outputTokens: 10 },
];
export default defineConfig({
  planner: ({ trajectory: { count } }) => ({
    decision: count < 2 ? { kind: 'call_tool', tool: 'nothing', args: {} } : { kind: 'finish', reason: 'goal', payload: 'done' },
    usage: usage[count],
  }),
  tools: [],
});
`;

describe('pilotage inspect', () => {
  it('tells the share that was read from the cache, and what was written to it', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const ran = await folder.run(['run', 'q']);
    const { stdout } = await folder.run(['inspect', /run_\w+/.exec(ran.stderr)?.[0] ?? '']);
    const told = stdout.match(/[\d,]+ tokens in.*, 10 out/g);
    expect(told).toEqual([
      '1,000 tokens in (1,000 written to the cache), 10 out',
      '9,000 tokens in (8,000 cached, 88 %; 900 written to the cache), 10 out',
      '50 tokens in, 10 out',
    ]);
    expect(stdout).toMatch(/totals .* 10,050 tokens in \(8,000 cached, 79 %; 1,900 written to the cache\), 30 out/);
  });
});
