/** A session: a conversation that one can talk to, whose turns are runs one after another. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { PlannerFunction, Turn } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Session, SessionEvent } from '#runtime';
import { asks, call, finish, sayingHello, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { type WorldOptions, world } from '../kit/world.ts';

/** Does what the message says, and answers `re <message>`. */
const obeying: PlannerFunction = ({ query, trajectory: { count, steering } }) => {
  if (query.startsWith('hold') && count === 0) return call('hold');
  if (query.startsWith('wait') && count === 0) return asks;
  const heard = steering.flatMap(({ control }) =>
    control.payload?.['message'] === undefined ? [] : [control.payload['message']],
  );
  return finish([`re ${query}`, ...heard].join(' + '));
};

const words = (turns: readonly Turn[] | undefined): string[] =>
  (turns ?? []).flatMap(({ role, text }) => (text === '' ? [] : [`${role}: ${text}`]));

const STORES = {
  memory: () => memoryJournal(),
  sqlite: () => sqliteJournal({ path: temporaryFile() }),
};

describe.each(Object.entries(STORES))('a session in %s', (_name, open) => {
  function talk(options: Partial<WorldOptions> = {}) {
    const planner = watched(obeying);
    const held = holding();
    const journal = open();
    const made = world({ planner, tools: [echo, held.tool], journal, ...options });
    const session: Session = made.runtime.session('talk');
    /** What the run of the last view was told. */
    const told = (): string[] => words(planner.views.at(-1)?.history);
    return { ...made, planner, held, session, told };
  }

  it('answers message after message, and each turn knows the turns before it', async () => {
    const { session, told } = talk();
    expect(await (await session.send('one')).result()).toMatchObject({ status: 'finished', answer: 're one' });
    expect(await (await session.send('two')).result()).toMatchObject({ answer: 're two' });
    await (await session.send('three')).result();
    expect(told()).toEqual(['user: one', 'assistant: re one', 'user: two', 'assistant: re two']);
    expect((await session.turns()).map(({ number, exchanges }) => [number, exchanges])).toEqual([
      [1, [{ user: 'one', assistant: 're one' }]],
      [2, [{ user: 'two', assistant: 're two' }]],
      [3, [{ user: 'three', assistant: 're three' }]],
    ]);
    expect(await session.result()).toMatchObject({ answer: 're three' });
  });

  it('stores the first message and the beginning of its turn at once; of two that come at once, one is the first', async () => {
    const { session, journal, told } = talk();
    const send = vi.spyOn(journal, 'send');
    const turns = await Promise.all([session.send('one'), session.send('two')]);
    await Promise.all(turns.map((turn) => turn.result()));
    const stored = await Promise.all(turns.map(({ turn }) => journal.read(turn, 1, 2)));
    const began = stored.map(([, second]) => second?.kind === 'turn_started' && second.continues.runs.length);
    expect(began.toSorted()).toEqual([0, 1]);
    expect(told()).toEqual([
      expect.stringMatching(/^user: (one|two)$/),
      expect.stringMatching(/^assistant: re (one|two)$/),
    ]);
    const kinds = send.mock.calls.map(([{ starts }]) => starts?.entries.map(({ kind }) => kind));
    expect(kinds[0]).toEqual(['started', 'turn_started']);
    expect(kinds.at(-1)).toEqual(['started']);
  });

  it('queues what comes while a turn is under way, in the order of acceptance, and one turn is live', async () => {
    const { session, held, told, runtime } = talk();
    const first = await session.send('hold one');
    await held.entered;
    const second = await session.send('two');
    const third = await session.send('three');
    expect([first.as, second.as, third.as]).toEqual(['started', 'queued', 'queued']);
    expect(await runtime.sessions.get({ tenant: 'local', user: 'local', session: 'talk' })).toMatchObject({
      turns: 3,
      waiting: 2,
      live: { run: first.turn },
    });
    held.release();
    expect(await third.result()).toMatchObject({ answer: 're three' });
    expect(told()).toEqual(['user: hold one', 'assistant: re hold one', 'user: two', 'assistant: re two']);
  });

  it('steers the turn that is under way, which hears the message', async () => {
    const { session, held } = talk();
    const first = await session.send('hold one');
    await held.entered;
    const second = await session.send('also this', { busy: 'steer' });
    expect(second).toMatchObject({ as: 'steered', turn: first.turn });
    held.release();
    expect(await second.result()).toMatchObject({ answer: 're hold one + also this' });
    const [turn] = await session.turns();
    expect(turn?.messages.map(({ id }) => id)).toEqual([first.id, second.id]);
  });

  it('a message to a turn that asks its user is the answer, and the next one waits', async () => {
    const { session } = talk();
    const first = await session.send('wait');
    expect(await first.result()).toMatchObject({ status: 'paused' });
    const answer = await session.send('blue');
    expect(answer).toMatchObject({ as: 'steered', turn: first.turn });
    expect(await answer.result()).toMatchObject({ answer: 're wait' });
  });

  it('interrupts the turn under way, and the next one has the messages of both, before those that wait', async () => {
    const { session, held } = talk();
    const first = await session.send('hold one');
    await held.entered;
    const queued = await session.send('later');
    const second = await session.send('no, two', { busy: 'interrupt' });
    expect(second.as).toBe('interrupts');
    held.release();
    expect(await second.result()).toMatchObject({ answer: 're hold one\n\nno, two' });
    expect(await queued.result()).toMatchObject({ answer: 're later' });
    const turns = await session.turns();
    expect(turns.map(({ messages }) => messages.map(({ id }) => id))).toEqual([[first.id, second.id], [queued.id]]);
    expect(turns[0]).toMatchObject({ turn: second.turn, interrupts: [first.turn] });
  });

  it('rejects when it is told to', async () => {
    const { session, held } = talk();
    await session.send('hold one');
    await held.entered;
    await expect(session.send('two', { busy: 'reject' })).rejects.toMatchObject({ code: 'session_busy' });
    held.release();
    await session.result();
    expect(await session.turns()).toHaveLength(1);
  });

  it('takes a message once, however often it is sent', async () => {
    const { session, held } = talk();
    const sent = await Promise.all(Array.from({ length: 5 }, () => session.send('hold', { id: 'm1' })));
    expect(new Set(sent.map(({ turn }) => turn)).size).toBe(1);
    await held.entered;
    const steered = await session.send('x', { id: 'm2', busy: 'steer' });
    expect(await session.send('x', { id: 'm2', busy: 'queue' })).toMatchObject({ turn: steered.turn, as: 'known' });
    held.release();
    await session.result();
    expect(await session.turns()).toHaveLength(1);
  });

  it('a steered message that comes while its turn ends begins the next turn, before those that wait', async () => {
    const asked = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const planner: PlannerFunction = async ({ query }) => {
      if (query === 'slow') {
        asked.resolve();
        await go.promise;
      }
      return finish(`re ${query}`);
    };
    const { session } = talk({ planner });
    await session.send('slow');
    await asked.promise;
    const queued = await session.send('queued');
    const steered = [await session.send('late 1', { busy: 'steer' }), await session.send('late 2', { busy: 'steer' })];
    go.resolve();
    expect(await queued.result()).toMatchObject({ answer: 're queued' });
    expect(await steered[1]?.result()).toMatchObject({ answer: 're late 2' });
    expect((await session.turns()).map(({ exchanges }) => exchanges[0]?.user)).toEqual([
      'slow',
      'late 1',
      'late 2',
      'queued',
    ]);
  });

  it('shows every reader the same events, from any position on', async () => {
    const { session, held } = talk();
    const stop = new AbortController();
    const read = async (from: number, count: number): Promise<SessionEvent[]> => {
      const seen: SessionEvent[] = [];
      for await (const event of session.events({ from, signal: stop.signal })) {
        seen.push(event);
        if (seen.length === count) break;
      }
      return seen;
    };
    const early = read(0, 14);
    await session.send('hold one');
    await held.entered;
    await session.send('wait');
    held.release();
    await until(async () => (await session.result())?.status === 'paused');
    await session.send('blue');
    await session.result();
    const all = await early;
    expect(all.map(({ type }) => type)).toContain('pause.resumed');
    expect(await read(0, 14)).toEqual(all);
    const middle = all[5]?.position ?? 0;
    expect(await read(middle, 3)).toEqual(all.filter(({ position }) => position >= middle).slice(0, 3));
    expect(all.map(({ position }) => position)).toEqual(all.map(({ position }) => position).toSorted((a, b) => a - b));
    stop.abort();
  });

  it('edits and regenerates on branches of their own, and goes back', async () => {
    const { session, told } = talk();
    const one = await session.send('one');
    await one.result();
    const two = await session.send('two');
    await two.result();
    await (await session.send('three')).result();
    const other = await session.edit(two.turn, 'other two');
    expect(await other.result()).toMatchObject({ answer: 're other two' });
    expect(told()).toEqual(['user: one', 'assistant: re one']);
    await (await session.send('on')).result();
    expect(told()).toEqual(['user: one', 'assistant: re one', 'user: other two', 'assistant: re other two']);
    const branches = await session.branches();
    expect(branches).toHaveLength(2);
    expect(branches.map(({ active }) => active)).toEqual([false, true]);
    await session.switchTo(branches[0]?.turn ?? '');
    expect((await session.turns()).map(({ exchanges }) => exchanges[0]?.user)).toEqual(['one', 'two', 'three']);
    await (await session.send('four')).result();
    expect(told().at(-2)).toBe('user: three');
    const again = await session.regenerate(one.turn);
    expect(await again.result()).toMatchObject({ answer: 're one' });
    expect(told()).toEqual([]);
    expect(await session.branches()).toHaveLength(3);
  });

  it('a branch does not repeat what a replaced turn has done, unless a person says so', async () => {
    let paid = 0;
    const pay = make('pay', () => (paid += 1), { effect: 'once' });
    const planner: PlannerFunction = ({ query, trajectory: { count } }) =>
      count === 0 ? call('pay', { to: query === 'pay bob' ? 'bob' : 'ana' }) : finish(`re ${query}`);
    const { session, runtime } = talk({ planner, tools: [pay] });
    const first = await session.send('pay');
    await first.result();
    const second = await session.edit(first.turn, 'pay, please');
    const asked = await second.result();
    expect(asked).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'approval_required', payload: { tool: 'pay', made_in: first.turn } }],
    });
    expect(paid).toBe(1);
    await runtime.run(second.turn).reject(undefined, { reason: 'once is enough' });
    expect(await second.result()).toMatchObject({ answer: 're pay, please' });
    expect(await (await session.edit(second.turn, 'pay bob')).result()).toMatchObject({ answer: 're pay bob' });
    expect(paid).toBe(2);
    const again = await session.send('and again');
    expect(await again.result()).toMatchObject({ status: 'paused' });
    await runtime.run(again.turn).approve();
    expect(await again.result()).toMatchObject({ answer: 're and again' });
    expect(paid).toBe(3);
  });

  it('cancels what is under way, and what waits when it is told to', async () => {
    const { session, held } = talk();
    const first = await session.send('hold one');
    await held.entered;
    const second = await session.send('two');
    await session.cancel({ waiting: true });
    expect(await first.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(await second.result()).toMatchObject({ reason: 'cancelled' });
    expect(await (await session.send('three')).result()).toMatchObject({ answer: 're three' });
  });

  it('is listed, found, titled and deleted', async () => {
    const { runtime, held } = talk();
    const of = (user: string, session: string) => runtime.session(session, { identity: { tenant: 't', user } });
    for (const [user, session] of [
      ['ana', 'a'],
      ['ana', 'b'],
      ['bob', 'a'],
    ] as const) {
      await (await of(user, session).send('hi')).result();
    }
    const ana = { tenant: 't', user: 'ana' };
    await runtime.sessions.setTitle({ ...ana, session: 'a' }, 'Trip to Rome');
    const names = async (query: object) =>
      (await runtime.sessions.list({ tenant: 't', ...query })).map(({ user, session }) => `${user}/${session}`).sort();
    expect(await names({})).toEqual(['ana/a', 'ana/b', 'bob/a']);
    expect(await names({ user: 'ana' })).toEqual(['ana/a', 'ana/b']);
    expect(await names({ text: 'rome' })).toEqual(['ana/a']);
    const page = await runtime.sessions.list({ tenant: 't', limit: 2 });
    expect(page).toHaveLength(2);
    expect(await runtime.sessions.list({ tenant: 't', limit: 2, ...(page[1] ? { after: page[1] } : {}) })).toHaveLength(
      1,
    );
    expect(await runtime.sessions.delete({ ...ana, session: 'a' })).toBe(1);
    expect(await names({ user: 'ana' })).toEqual(['ana/b']);
    await of('ana', 'b').send('hold');
    await held.entered;
    await expect(runtime.sessions.delete({ ...ana, session: 'b' })).rejects.toMatchObject({ code: 'session_busy' });
    held.release();
  });
});

it('a reader that comes back in the middle of an answer hears tokens at the position where it was', async () => {
  const { planner, begun, more } = sayingHello();
  const made = world({ planner });
  onTestFinished(async () => {
    more.open();
    await made.runtime.close();
  });
  const session = made.runtime.session('talk');
  await session.send('hello');
  const firstToken = async (from: number) => {
    for await (const event of session.events({ from })) if (event.type === 'token') return event.position;
    return undefined;
  };
  const position = (await firstToken(0)) ?? 0;
  await begun.opened;
  expect(position).toBe(await session.position());
  expect(await firstToken(position + 1)).toBe(position);
  more.open();
  const behind: string[] = [];
  for await (const event of session.events({ from: position + 1 })) {
    if (event.type !== 'token') behind.push(event.type);
    expect(event.position).toBeGreaterThanOrEqual(position);
    if (event.type === 'planner.finish') break;
  }
  expect(behind).toEqual(['planner.decision', 'planner.finish']);
});
