/** A machine whose clock is wrong: times that its process writes down are by the clock of the database, which judges them. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Entry, type Json, local } from '#core';
import { postgresJournal } from '#journal/postgres';
import { createRuntime } from '#pilotage';
import { call, parallel, script } from '../kit/decisions.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const sleep = make('sleep', async (_, context) => (await context.sleep({ forMs: MINUTE_MS })) as unknown as Json);
const wait = make('wait', async (_, context) => (await context.event({ key: 'paid', timeoutMs: MINUTE_MS })) as Json);
const ask = make('ask', async (_, context) => {
  return (await context.ask({ question: 'Which room?', expiresInMs: MINUTE_MS })) as Json;
});

describe('a clock that is wrong', async () => {
  const url = await postgresUrl();
  const rightNow = Date.now.bind(Date);
  const setClock = (byMs: number): void => void vi.spyOn(Date, 'now').mockImplementation(() => rightNow() + byMs);
  afterEach(() => vi.restoreAllMocks());

  it.each([HOUR_MS, -HOUR_MS])('by %d ms makes no wait longer or shorter', async (byMs) => {
    setClock(byMs);
    const journal = postgresJournal({ url }, { schema: `clock${byMs}` });
    const branches = [sleep, wait, ask].map(({ name }) => ({ tool: name, args: {} }));
    const runtime = createRuntime({ planner: script(parallel(branches)), tools: [sleep, wait, ask], journal });
    await runtime.start('q', { identity: local('ana', { run: 'run' }) });
    await until(async () => (await runtime.waiting()).length === 3);
    const { createdAt = 0 } = (await journal.get('run')) ?? {};
    const ends = endsIn(await journal.read('run')).map((end) => end - createdAt);
    expect(ends).toHaveLength(3);
    for (const end of ends) expect(end - MINUTE_MS).toSatisfy((late: number) => late >= -1_000 && late < MINUTE_MS);
    await runtime.close();
    await journal.close();
  });

  it('that is set while the process works is noticed with its next commit', async () => {
    const journal = postgresJournal({ url }, { schema: 'set' });
    const planner = script(call('sleep', {}), call('sleep', {}));
    const runtime = createRuntime({ planner, tools: [sleep], journal });
    await runtime.start('q', { identity: local('ana', { run: 'first' }) });
    setClock(HOUR_MS);
    const { createdAt = 0 } = (await journal.get('first')) ?? {};
    await runtime.signal('anything', null, { tenant: 'local', id: 'i' });
    expect((journal.now?.() ?? Number.NaN) - createdAt).toBeLessThan(MINUTE_MS);
    await runtime.close();
    await journal.close();
  });
});

function endsIn(entries: readonly Entry[]): number[] {
  return entries
    .flatMap((entry) => (entry.kind === 'call_waits' ? entry.waits : []))
    .flatMap(({ until }) => until ?? []);
}
