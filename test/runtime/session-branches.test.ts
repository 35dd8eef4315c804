/** Edits and regenerations as clients send them: with ids, again, while a turn asks its user, and far back. */
import { describe, expect, it } from 'vitest';
import type { PlannerFunction, Turn } from '#core';
import { asks, finish, watched } from '../kit/decisions.ts';
import { until } from '../kit/waiting.ts';
import { type WorldOptions, world } from '../kit/world.ts';

const answering: PlannerFunction = ({ query, trajectory: { count } }) =>
  query.startsWith('ask') && count === 0 ? asks : finish(`re ${query}`);

function talk(options: Partial<WorldOptions> = {}) {
  const planner = watched(answering);
  const { runtime } = world({ planner, ...options });
  const told = (): string[] => (planner.views.at(-1)?.history ?? []).map(({ text }: Turn) => text);
  return { runtime, told, session: runtime.session('talk') };
}

describe('a branch', () => {
  it('is begun once by an edit under the id of its message, and again by the edit of the edit', async () => {
    const { session } = talk();
    const first = await session.send('one', { id: 'm1' });
    await first.result();
    const edits = [
      await session.edit(first.turn, 'two', { id: 'm1' }),
      await session.edit(first.turn, 'two', { id: 'm1' }),
    ];
    expect(edits.map(({ as }) => as)).toEqual(['started', 'known']);
    expect(await edits[0]?.result()).toMatchObject({ answer: 're two' });
    const third = await session.edit(edits[0]?.turn ?? '', 'three', { id: 'm1' });
    expect(await third.result()).toMatchObject({ answer: 're three' });
    const again = await session.regenerate(third.turn, { id: 'click' });
    expect((await session.regenerate(third.turn, { id: 'click' })).turn).toBe(again.turn);
    await again.result();
    expect((await session.turns()).map(({ turn, messages }) => [turn, messages])).toEqual([
      [again.turn, [{ id: 'm1' }]],
    ]);
    expect(await session.branches()).toHaveLength(4);
  });

  it('is begun once, also when the turn that its turn has interrupted ends between the two requests', async () => {
    const asked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const slow: PlannerFunction = async ({ query }) => {
      if (query !== 'slow') return finish(`re ${query}`);
      asked.resolve();
      await goOn.promise;
      return finish('late');
    };
    const { session } = talk({ planner: slow, patienceMs: 1 });
    await session.send('slow');
    await asked.promise;
    const cutting = await session.send('no', { busy: 'interrupt' });
    const edited = await session.edit(cutting.turn, 'yes', { id: 'm1' });
    goOn.resolve();
    await edited.result();
    expect(await session.edit(cutting.turn, 'yes', { id: 'm1' })).toMatchObject({ as: 'known', turn: edited.turn });
  });

  it('in the place of a turn that waits goes on from the turn before that one, and has what it interrupts', async () => {
    const asked = Promise.withResolvers<void>();
    const slow = watched(async ({ query }, signal) => {
      if (query !== 'slow') return finish(`re ${query}`);
      asked.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return finish('late');
    });
    const { session } = talk({ planner: slow });
    await (await session.send('zero')).result();
    await session.send('slow');
    await asked.promise;
    const waiting = await session.send('two');
    const edited = await session.edit(waiting.turn, 'TWO', { busy: 'interrupt' });
    expect(await edited.result()).toMatchObject({ answer: 're slow\n\nTWO' });
    expect(slow.views.at(-1)?.history.map(({ text }) => text)).toEqual(['zero', 're zero']);
  });

  it('has the turn in whose place it is named by a text', async () => {
    const { session } = talk();
    const named = { code: 'invalid_config', message: expect.stringContaining('A turn is named by its id') };
    for (const refused of [
      session.edit(undefined as never, 'two'),
      session.regenerate({} as never),
      session.switchTo(undefined as never),
    ]) {
      await expect(refused).rejects.toMatchObject(named);
    }
  });

  it('that answers once more has all that was said in the turn, with the ids', async () => {
    const { session } = talk();
    const asking = await session.send('ask', { id: 'm1' });
    await asking.result();
    await (await session.send('blue', { id: 'm2' })).result();
    const again = await session.regenerate(asking.turn, { id: 'click' });
    expect(await again.result()).toMatchObject({ status: 'paused' });
    expect((await session.turns())[0]?.messages).toMatchObject([{ id: 'm1' }, { id: 'm2' }]);
    expect((await session.turns())[0]?.exchanges[0]?.user).toBe('ask\n\nblue');
  });

  it('that answers an interrupting message once more has the interrupted one, too', async () => {
    const asked = Promise.withResolvers<void>();
    const slow: PlannerFunction = async ({ query }, signal) => {
      if (query !== 'slow') return finish(`re ${query}`);
      asked.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return finish('late');
    };
    const { session } = talk({ planner: slow });
    await session.send('slow', { id: 'm1' });
    await asked.promise;
    const cutting = await session.send('two', { id: 'm2', busy: 'interrupt' });
    await cutting.result();
    const again = await session.regenerate(cutting.turn);
    expect(await again.result()).toMatchObject({ answer: 're slow\n\ntwo' });
    expect((await session.turns()).map(({ messages }) => messages)).toEqual([[{ id: 'm1' }, { id: 'm2' }]]);
  });

  it('that has stopped a turn behind the one that it replaces has none of its words, also when it is replaced in turn', async () => {
    let asked = 0;
    const slow: PlannerFunction = async ({ query }, signal) => {
      if (query !== 'slow') return finish(`re ${query}`);
      asked += 1;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return finish('late');
    };
    const { session } = talk({ planner: slow });
    // A turn before it that was cancelled is not one that it has interrupted.
    const cancelled = await session.send('slow', { id: 'm0' });
    await until(() => asked === 1);
    await session.cancel();
    await cancelled.result();
    const first = await session.send('one', { id: 'm1' });
    await first.result();
    await session.send('slow', { id: 'm2' });
    await until(() => asked === 2);
    const stopping = await session.regenerate(first.turn, { busy: 'interrupt' });
    await stopping.result();
    expect((await session.turns()).map(({ interrupts }) => interrupts)).toEqual([undefined, undefined]);
    const again = await session.regenerate(stopping.turn);
    expect(await again.result()).toMatchObject({ answer: 're one' });
    const edited = await session.edit(stopping.turn, 'ONE', { id: 'm1' });
    await edited.result();
    expect((await session.turns()).map(({ turn, messages }) => [turn, messages])).toEqual([
      [cancelled.turn, [{ id: 'm0' }]],
      [edited.turn, [{ id: 'm1' }]],
    ]);
  });

  it('is no answer to a turn that asks its user, which is cancelled, and cannot be steered', async () => {
    const { session, runtime } = talk();
    const asking = await session.send('ask');
    expect(await asking.result()).toMatchObject({ status: 'paused' });
    await expect(session.edit(asking.turn, 'x', { busy: 'steer' })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining("busy: 'queue'"),
    });
    const edited = await session.edit(asking.turn, 'say');
    expect(await edited.result()).toMatchObject({ answer: 're say' });
    expect(await runtime.run(asking.turn).result()).toMatchObject({ reason: 'cancelled' });
    expect((await session.turns()).map(({ exchanges }) => exchanges)).toEqual([[{ user: 'say', assistant: 're say' }]]);
  });

  it('is told of the turns before it, however far back it begins', async () => {
    const { session, told } = talk({ memory: { strategy: 'window', turns: 2 } });
    const turns: string[] = [];
    for (let number = 1; number <= 12; number += 1) {
      const sent = await session.send(`m${number}`);
      await sent.result();
      turns.push(sent.turn);
    }
    await (await session.edit(turns[3] ?? '', 'other')).result();
    expect(told().slice(-2)).toEqual(['m3', 're m3']);
    await session.switchTo(turns[4] ?? '');
    await (await session.send('on')).result();
    expect(told().slice(-2)).toEqual(['m5', 're m5']);
  });

  it('has its last turns whole, also when one has interrupted more runs than are asked for', async () => {
    const { session } = talk({ planner: () => new Promise(() => {}) });
    for (const id of ['m0', 'm1', 'm2', 'm3']) {
      const { turn } = await session.send(id, { id, busy: 'interrupt' });
      await until(async () => (await session.turns()).at(-1)?.turn === turn && (await session.turns()).length === 1);
    }
    const all = await session.turns();
    expect(all.map(({ messages }) => messages.map(({ id }) => id))).toEqual([['m0', 'm1', 'm2', 'm3']]);
    for (const limit of [1, 2, 3]) expect(await session.turns({ limit })).toEqual(all);
  });

  it('has its last turns, as many as are asked for, also when many of another branch stand between them', async () => {
    const { session } = talk();
    const turns: string[] = [];
    for (let number = 1; number <= 6; number += 1) {
      const sent = await session.send(`m${number}`);
      await sent.result();
      turns.push(sent.turn);
    }
    await (await session.edit(turns[2] ?? '', 'other')).result();
    const said = async (limit: number): Promise<readonly (string | undefined)[]> =>
      (await session.turns({ limit })).map(({ exchanges }) => exchanges[0]?.user);
    expect(await said(1)).toEqual(['other']);
    expect(await said(2)).toEqual(['m2', 'other']);
    expect(await said(3)).toEqual(['m1', 'm2', 'other']);
    expect(await said(100)).toEqual(['m1', 'm2', 'other']);
  });
});
