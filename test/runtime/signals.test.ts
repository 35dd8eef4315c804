/** What comes from outside finds whoever waits for it, whether it comes before, while or after they wait. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Json } from '#core';
import { local } from '#core';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { call, finish, parallel, script } from '../kit/decisions.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const branch = (tool: string, args: Json = {}) => ({ tool, args });
const order = z.object({ order: z.int() });
const wait = make('wait', async (args, context) => {
  const { key = 'order-17', timeoutMs } = args as { key?: string; timeoutMs?: number };
  return (await context.event({ key, ...(timeoutMs === undefined ? {} : { timeoutMs }) })) as Json;
});
const typed = make('typed', async (_, context) => (await context.event({ key: 'order-17', schema: order })) as Json);
const waits = async ({ runtime }: Pick<World, 'runtime'>, count = 1): Promise<void> =>
  until(async () => (await runtime.waiting({ for: 'event' })).length === count);
const values = async (run: Run): Promise<unknown[]> => {
  await until(async () => (await run.state()).ending !== null);
  return [...observations(await run.state())];
};

describe('a signal', () => {
  it('goes to the run that waits, which goes on at once', async () => {
    const made = world({ planner: script(call('wait')), tools: [wait] });
    const run = await start(made);
    await waits(made);
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    const told = await made.runtime.signal('order-17', { paid: true }, { id: 'hook-1' });
    expect(told).toMatchObject({ id: 'hook-1', isNew: true, runs: [run.id], kept: false });
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await values(run)).toEqual([{ paid: true }]);
    expect(await made.runtime.signal('order-17', { paid: true }, { id: 'hook-1' })).toMatchObject({ isNew: false });
    expect(await made.runtime.waiting()).toEqual([]);
    expect(made.faults).toEqual([]);
  });

  it('by a process without the agent is heard by whoever follows the run, and has it', async () => {
    const made = world({ planner: script(call('wait')), tools: [wait], goesOn: false });
    const run = await start(made);
    const result = run.result();
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    const other = world({ planner: { name: 'other', next: () => finish() }, journal: made.journal, clock: made.clock });
    await other.runtime.signal('order-17', 'paid');
    expect(await result).toMatchObject({ status: 'finished' });
    expect(await values(run)).toEqual(['paid']);
  });

  it('that comes before anybody waits is kept for the run that does, and its driver goes straight on', async () => {
    const made = world({ planner: script(call('wait'), call('wait')), tools: [wait] });
    expect(await made.runtime.signal('order-17', 1)).toMatchObject({ isNew: true, runs: [], kept: true });
    await made.runtime.signal('order-17', 2);
    const run = await start(made);
    expect(await values(run)).toEqual([1, 2]);
    expect(await entriesOf(made.journal, run, 'wait_ended')).toMatchObject([{ payload: 1 }, { payload: 2 }]);
    expect(await made.journal.events.list({ tenant: 'local' })).toEqual([]);
  });

  it.each([
    ['comes while they wait', false],
    ['was kept', true],
  ])('that %s moves its call beside others that are under way', async (_, isKept) => {
    const busy = make('busy', (_, { signal }) => new Promise((_, stop) => signal.addEventListener('abort', stop)), {
      effect: 'pure',
    });
    const race = parallel([branch('busy'), branch('wait')], { join: { kind: 'first_success' } });
    const made = world({ planner: script(race), tools: [busy, wait] });
    if (isKept) await made.runtime.signal('order-17', 'paid');
    const run = await start(made);
    if (!isKept) {
      await waits(made);
      await made.runtime.signal('order-17', 'paid');
    }
    expect((await values(run))[0]).toEqual([{ tool: 'wait', index: 1, value: 'paid' }]);
    expect(made.faults).toEqual([]);
  });

  it('has a fresh id when it is given none', async () => {
    const { runtime } = world({ planner: script() });
    const one = await runtime.signal('k');
    const two = await runtime.signal('k');
    expect([one.isNew, two.isNew, one.id === two.id]).toEqual([true, true, false]);
  });

  it('is one of a stream that a call takes payload by payload, in order', async () => {
    const cards = make('cards', async (_, context) => {
      const names: Json[] = [];
      for (let count = 0; count < 5; count += 1) names.push((await context.event({ key: 'card' })) as Json);
      return names;
    });
    const made = world({ planner: script(call('cards')), tools: [cards] });
    const run = await start(made);
    await waits(made);
    for (const name of ['ana', 'ben', 'eva', 'tom', 'zoe']) await made.runtime.signal('card', name);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await values(run)).toEqual([['ana', 'ben', 'eva', 'tom', 'zoe']]);
  });

  it('reaches every run of the tenant that waits, and nobody else', async () => {
    const made = world({ planner: script(call('wait')), tools: [wait] });
    const runs = [await start(made), await start(made)];
    const other = await start(made, { identity: { ...local('eva'), tenant: 'other' } });
    await waits(made, 3);
    const told = await made.runtime.signal('order-17', 'now');
    expect(told.runs.toSorted()).toEqual(runs.map(({ id }) => id).toSorted());
    for (const run of runs) await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect((await made.runtime.waiting()).map(({ run }) => run)).toEqual([other.id]);
    await made.runtime.signal('order-17', 'later', { tenant: 'other' });
    await advanceUntil(made.clock, async () => (await other.state()).ending !== null);
    expect(await values(other)).toEqual(['later']);
  });

  it('whose payload fits nobody who waits is refused at the door, and nothing is stored', async () => {
    const made = world({ planner: script(call('typed')), tools: [typed] });
    const run = await start(made);
    await waits(made);
    await expect(made.runtime.signal('order-17', { order: 'x' }, { id: 'a' })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('order'),
    });
    expect(await made.journal.inbox(run.id)).toEqual([]);
    expect(await made.runtime.signal('order-17', { order: 17 }, { id: 'a' })).toMatchObject({ isNew: true });
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await values(run)).toEqual([{ order: 17 }]);
  });

  it('that was kept and does not fit is passed over, on record, and the call waits for the next one', async () => {
    const made = world({ planner: script(call('typed')), tools: [typed] });
    await made.runtime.signal('order-17', 'what?');
    const run = await start(made);
    await until(async () => (await entriesOf(made.journal, run, 'event_passed')).length === 1);
    expect(await entriesOf(made.journal, run, 'event_passed')).toMatchObject([{ error: { code: 'payload_invalid' } }]);
    await waits(made);
    await made.runtime.signal('order-17', { order: 1 });
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await values(run)).toEqual([{ order: 1 }]);
  });

  it('that comes for a wait that was over goes to the next one that waits for its key', async () => {
    const race = parallel([branch('wait'), branch('quick')], { join: { kind: 'first_success' } });
    const { promise, resolve } = Promise.withResolvers<void>();
    const quick = make('quick', async () => {
      await promise;
      return 'quick';
    });
    const made = world({ planner: script(race, call('wait')), tools: [wait, quick] });
    const run = await start(made);
    await waits(made);
    // The run hears of both in one turn.
    resolve();
    await made.runtime.signal('order-17', 'late or not');
    await advanceUntil(made.clock, async () => {
      if ((await run.state()).ending !== null) return true;
      const [open] = await made.runtime.waiting({ for: 'event' });
      if (open?.step === 1) await made.runtime.signal('order-17', 'late or not', { id: 'again' });
      return false;
    });
    const ends = await entriesOf(made.journal, run, 'wait_ended');
    const taken = ends.filter((entry) => 'signal' in entry).map((entry) => 'signal' in entry && entry.signal);
    expect(new Set(taken).size).toBe(taken.length);
    expect((await values(run)).at(-1)).toBe('late or not');
  });

  it('from another process is heard where a runtime is open that knows the agent', async () => {
    const journal = memoryJournal();
    const made = world({ planner: script(call('wait')), tools: [wait], journal });
    const run = await start(made);
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    // It has another agent, and only accepts what comes.
    const door = world({ planner: { name: 'door', next: () => ({ kind: 'finish', reason: 'goal' }) }, journal });
    expect(await door.runtime.signal('order-17', 'ding')).toMatchObject({ runs: [run.id] });
    await quiet();
    expect((await run.state()).ending).toBe(null);
    made.clock.advance(2_000);
    expect(await values(run)).toEqual(['ding']);
  });

  it('has its secrets taken out before it is stored', async () => {
    const made = world({
      planner: script(),
      redact: { rules: ['hunter-two-2'] },
    });
    await made.runtime.signal('k', { said: 'my word is hunter-two-2' });
    expect(JSON.stringify(await made.journal.events.list({ tenant: 'local' }))).not.toContain('hunter-two-2');
  });

  it('refuses options and values that nothing can be', async () => {
    const { runtime } = world({ planner: script() });
    await expect(runtime.signal('')).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(runtime.signal('k', (() => 1) as never)).rejects.toMatchObject({ code: 'unserializable' });
    await expect(runtime.signal('k', 1, { keep: 1 } as never)).rejects.toMatchObject({ code: 'invalid_config' });
    await expect(runtime.waiting({ for: 'money' } as never)).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe('what waits', () => {
  const ask = make('ask', async (_, context) => (await context.ask({ question: 'Which room?' })) as Json);
  const pay = make('pay', () => 'paid', { needsApproval: true });
  const nap = make('nap', async (_, context) => {
    await context.sleep({ forMs: 60_000 });
    return 'slept';
  });

  it('is listed with all that a page needs to show and to answer it, and answering takes it away', async () => {
    const planner = script(parallel([branch('ask'), branch('pay', { amount: 90 }), branch('nap'), branch('wait')]));
    const made = world({ planner, tools: [ask, pay, nap, wait] });
    const run = await start(made);
    await until(async () => (await made.runtime.waiting()).length === 4);
    const rows = await made.runtime.waiting({ run: run.id });
    const byTool = Object.fromEntries(rows.map((row) => [row.tool, row]));
    const [question, gate] = [byTool['ask'], byTool['pay']];
    const whose = { run: run.id, tenant: 'local', user: 'ana', session: 'default', agent: 'function', step: 0 };
    expect(question).toMatchObject({
      ...whose,
      ...{ for: 'answer', reason: 'await_input', question: 'Which room?', kinds: ['answer', 'reject'], wait: 1 },
    });
    expect(gate).toMatchObject({
      ...whose,
      reason: 'approval_required',
      kinds: ['approve', 'reject', 'answer'],
      call: 1,
    });
    expect(byTool['nap']).toMatchObject({ for: 'time', until: made.clock.now() + 60_000, id: '0.2.1' });
    expect(byTool['wait']).toMatchObject({ for: 'event', key: 'order-17', id: '0.3.1' });
    await made.runtime.run(question?.run ?? '').answer(question?.token, { kind: 'answer', value: 'the blue one' });
    await made.runtime.run(gate?.run ?? '').approve(gate?.token ?? '');
    await until(async () => (await made.runtime.waiting()).length === 2);
    await made.runtime.signal('order-17', 'came');
    made.clock.advance(60_000);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    const [step] = (await run.state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome.kind === 'value' && outcome.value)).toEqual([
      ...['the blue one', 'paid', 'slept', 'came'],
    ]);
    expect(await made.runtime.waiting()).toEqual([]);
  });

  it('is what a caller may see: their own session, or all for an admin', async () => {
    const made = world({ planner: script(call('ask')), tools: [ask] });
    const ana = await start(made, { identity: local('ana') });
    const ben = await start(made, { identity: local('ben') });
    await until(async () => (await made.runtime.waiting()).length === 2);
    const as = { tenant: 'local', user: 'ana', session: 'default', scope: 'session_user' } as const;
    const seen = async (query: Parameters<typeof made.runtime.waiting>[0]): Promise<string[]> =>
      (await made.runtime.waiting(query)).map(({ run }) => run);
    expect(await seen({ as })).toEqual([ana.id]);
    expect(await seen({ as, user: 'ben' })).toEqual([]);
    expect(await seen({ as: { ...as, scope: 'admin' } })).toEqual([ana.id, ben.id]);
    await expect(made.runtime.waiting({ as: { ...as, scope: 'god' } as never })).rejects.toMatchObject({
      code: 'scope_invalid',
    });
  });

  it('is nothing when the run was cancelled', async () => {
    const made = world({ planner: script(call('ask')), tools: [ask] });
    const run = await start(made);
    await pausesOf(run);
    await run.cancel();
    await until(async () => (await run.state()).ending !== null);
    expect(await made.runtime.waiting()).toEqual([]);
  });
});
