/** Times that are further off than a date can be: whoever gives one means "never", and nothing that is stored becomes unreadable by it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Decision } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { sleep } from '#pilotage/tools';
import { later, type Tool } from '#tools';
import { call, pause, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-far-times-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FAR = Number.MAX_SAFE_INTEGER;
const tool = (run: Parameters<typeof make>[1], more: Partial<Tool> = {}): Tool =>
  make('far', run, { effect: 'once', ...more });
const waiting: Record<string, { readonly tools: readonly Tool[]; readonly decision?: Decision }> = {
  'a sleep of a call': { tools: [tool((_, context) => context.sleep({ forMs: FAR }))] },
  'a sleep of the model': { tools: [sleep], decision: call('sleep', { seconds: 1e13 }) },
  'a question of a call': { tools: [tool((_, context) => context.ask({ question: 'Well?', expiresInMs: FAR }))] },
  'an event of a call': { tools: [tool((_, context) => context.event({ key: 'k', timeoutMs: FAR }))] },
  'a value that comes later': { tools: [tool(() => later({ key: 'k', expiresInMs: FAR }))] },
  'an approval': { tools: [tool(() => 1, { needsApproval: { expiresInMs: FAR } })] },
  'a pause of the planner': { tools: [], decision: { ...pause, expiresInMs: FAR } as Decision },
};

describe.each(['memory', 'SQLite'])('in %s', (kind) => {
  it.each(Object.entries(waiting))('%s that lasts too long waits, and others are found beside it', async (_, far) => {
    const path = join(folder, `${crypto.randomUUID()}.db`);
    const journal = kind === 'memory' ? memoryJournal() : sqliteJournal({ path });
    const { decision = call('far'), tools } = far;
    const { runtime, faults } = world({ planner: script(decision), tools, journal });
    const run = await start({ runtime });
    await until(async () => ['waiting', 'paused'].includes((await journal.get(run.id))?.status ?? ''));
    expect(await runtime.list()).toHaveLength(1);
    for (const { until: ends } of await runtime.waiting()) expect(ends ?? 0).toBeLessThanOrEqual(8.64e15);
    const other = await start({ runtime });
    await until(async () => ['waiting', 'paused'].includes((await journal.get(other.id))?.status ?? ''));
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(faults).toEqual([]);
    await runtime.close();
    await journal.close();
  });
});
