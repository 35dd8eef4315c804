/** What happens to a session when its senders, and those who drive it, meet at the worst moments. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { PilotageError, type PlannerFunction } from '#core';
import { type Append, type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Session } from '#runtime';
import { agent } from '#tools';
import { asks, call, finish, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { echo, holding } from '../kit/tools.ts';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { type WorldOptions, world } from '../kit/world.ts';

const planner: PlannerFunction = ({ query, trajectory: { count } }) => {
  if (query.startsWith('hold') && count === 0) return call('hold');
  if (query.startsWith('wait') && count === 0) return asks;
  if (query.startsWith('fail')) throw new Error('no');
  return finish(`re ${query}`);
};

const STORES = {
  memory: () => memoryJournal(),
  sqlite: () => sqliteJournal({ path: temporaryFile() }),
};

describe.each(Object.entries(STORES))('a session in %s', (_name, open) => {
  function talk(options: Partial<WorldOptions> = {}) {
    const held = holding();
    const seen = watched(planner);
    const made = world({ planner: seen, tools: [echo, held.tool], journal: open(), ...options });
    const session: Session = made.runtime.session('talk');
    onTestFinished(async () => {
      await made.runtime.close();
      await made.journal.close();
    });
    return { ...made, held, session, seen };
  }

  /** A talk that counts how often something was sent, also in vain. */
  function counted() {
    const journal = open();
    let sent = 0;
    const send: Journal['send'] = (sending) => {
      sent += 1;
      return journal.send(sending);
    };
    return { ...talk({ journal: changed(journal, { send }) }), sent: () => sent };
  }

  const messagesOf = async (session: Session): Promise<string[][]> =>
    (await session.turns()).map(({ messages }) => messages.map(({ id }) => id));

  it('the second interruption interrupts the first one, and the last turn has all the words in order', async () => {
    const { session, held } = talk();
    await session.send('hold one', { id: 'm1' });
    await held.entered;
    const queued = await session.send('later', { id: 'm2' });
    const sent = await Promise.all(
      ['m3', 'm4', 'm5'].map((id) => session.send(`say ${id}`, { id, busy: 'interrupt' })),
    );
    expect(sent.map(({ as }) => as)).toEqual(['interrupts', 'interrupts', 'interrupts']);
    held.release();
    await queued.result();
    const [first, second] = await session.turns();
    expect([first?.messages.map(({ id }) => id), second?.messages.map(({ id }) => id)]).toEqual([
      ['m1', expect.any(String), expect.any(String), expect.any(String)],
      ['m2'],
    ]);
    const order = first?.messages.slice(1).map(({ id }) => `say ${id}`) ?? [];
    expect(first?.exchanges.at(-1)?.user).toBe(['hold one', ...order].join('\n\n'));
    expect(new Set(order).size).toBe(3);
  });

  it('many who send at once come one after another, none of whom has to try again because of another', async () => {
    const { session, held, sent } = counted();
    const ids = Array.from({ length: 40 }, (_, number) => `m${number}`);
    const each = await Promise.all(ids.map((id, number) => session.send(number === 0 ? 'hold' : 'say', { id })));
    expect(sent()).toBe(ids.length);
    held.release();
    await each.at(-1)?.result();
    expect(await messagesOf(session)).toEqual(ids.map((id) => [id]));
  });

  it('many who interrupt at once interrupt each other in turn, none of whom has to try again because of another', async () => {
    const { session, held, sent } = counted();
    await session.send('hold one');
    await held.entered;
    const before = sent();
    const words = Array.from({ length: 40 }, (_, number) => `say ${number}`);
    const each = await Promise.all(words.map((text) => session.send(text, { busy: 'interrupt' })));
    // A turn that has come meanwhile, and is interrupted, makes one of them begin again.
    expect(sent() - before).toBeLessThanOrEqual(2 * words.length);
    held.release();
    await each.at(-1)?.result();
    const [first] = await session.turns();
    expect(first?.exchanges.at(-1)?.user).toBe(['hold one', ...words].join('\n\n'));
  });

  it('an edit of a turn that asks its user is no answer: the question is withdrawn', async () => {
    const { session } = talk();
    const first = await session.send('wait', { id: 'm1' });
    await until(async () => (await first.result()).status === 'paused');
    const edited = await session.edit(first.turn, 'other', { id: 'm2' });
    expect(edited.as).toBe('interrupts');
    expect(await edited.result()).toMatchObject({ answer: 're other' });
    expect(await messagesOf(session)).toEqual([['m2']]);
    await expect(session.edit(first.turn, 'x', { busy: 'steer' })).rejects.toMatchObject({ code: 'invalid_config' });
  });

  it('cancels all that wait, also behind some that were cancelled before', async () => {
    const { session, held, runtime } = talk();
    await session.send('hold one');
    await held.entered;
    const waiting = [];
    for (let count = 0; count < 60; count += 1) waiting.push(await session.send(`say ${count}`));
    await runtime.run(waiting.at(-1)?.turn ?? '').cancel();
    await runtime.run(waiting.at(-2)?.turn ?? '').cancel();
    await session.cancel({ waiting: true });
    for (const { result } of waiting) expect(await result()).toMatchObject({ reason: 'cancelled' });
    expect(await session.result()).toMatchObject({ reason: 'cancelled' });
  });

  it('a failed turn is not resumed beside another one, and can be when that one has ended', async () => {
    const { session, held, runtime } = talk({ planner: { name: 'p', next: failing() } });
    const first = await session.send('fail');
    await expect(first.result()).resolves.toMatchObject({ status: 'failed' });
    const second = await session.send('hold two');
    await held.entered;
    const run = runtime.run(first.turn);
    await expect(run.resume()).rejects.toMatchObject({ code: 'session_busy', data: { run: second.turn } });
    held.release();
    await second.result();
    await run.resume();
    expect(await run.result()).toMatchObject({ answer: 're fail' });
  });

  it('a run that was started beside the conversation goes before the turns that wait', async () => {
    const { session, held, runtime } = talk();
    const first = await session.send('hold one');
    await held.entered;
    const queued = await session.send('two');
    const beside = await runtime.start('beside', {
      identity: { tenant: 'local', user: 'local', session: 'talk', run: 'beside' },
    });
    expect(await beside.result()).toMatchObject({ answer: 're beside' });
    expect((await runtime.list({ session: 'talk', status: ['pending'] })).map(({ identity }) => identity.run)).toEqual([
      queued.turn,
    ]);
    held.release();
    await queued.result();
    expect((await session.turns()).map(({ turn }) => turn)).toEqual([first.turn, 'beside', queued.turn]);
  });

  it('refuses ids of messages that are empty, long or no text, and takes odd ones', async () => {
    const { session } = talk();
    for (const id of ['', ' ', 'x'.repeat(501), '\ud800']) {
      await expect(session.send('x', { id })).rejects.toMatchObject({ code: 'invalid_config' });
    }
    const odd = ['%', '_', "'; DROP TABLE runs; --", 'a\nb', '\u0000', '__proto__', '../..', 'x'.repeat(500)];
    for (const id of odd) await (await session.send('x', { id })).result();
    for (const id of odd) expect((await session.send('x', { id })).as).toBe('known');
    expect(await messagesOf(session)).toEqual(odd.map((id) => [id]));
  });

  it('sessions of others have their own messages, turns and branches, whatever they are called', async () => {
    const { runtime } = talk();
    const own = runtime.session('s', { identity: { tenant: 't', user: 'u' } });
    const others = [
      runtime.session('s', { identity: { tenant: 't', user: 'v' } }),
      runtime.session('s', { identity: { tenant: 'w', user: 'u' } }),
      runtime.session('u/s', { identity: { tenant: 't', user: 'u' } }),
      runtime.session('S', { identity: { tenant: 't', user: 'u' } }),
      runtime.session('s ', { identity: { tenant: 't', user: 'u' } }),
      runtime.session('s', { identity: { tenant: 't/u', user: 'u' } }),
      runtime.session('%', { identity: { tenant: '%', user: '%' } }),
    ];
    const mine = await own.send('mine', { id: 'm' });
    await mine.result();
    for (const other of others) {
      expect(await other.turns()).toEqual([]);
      expect(await other.result()).toBeUndefined();
      const theirs = await other.send('theirs', { id: 'm' });
      expect(theirs.as).toBe('started');
      await theirs.result();
      for (const act of [
        () => other.edit(mine.turn, 'x'),
        () => other.regenerate(mine.turn),
        () => other.switchTo(mine.turn),
        () => own.edit(theirs.turn, 'x'),
        () => own.switchTo(theirs.turn),
      ])
        await expect(act()).rejects.toMatchObject({ code: 'run_not_found' });
      expect(await messagesOf(other)).toEqual([['m']]);
    }
    expect(await messagesOf(own)).toEqual([['m']]);
  });

  it('a message that is refused while a turn is under way is known when it was accepted before', async () => {
    const { session, held } = talk();
    const sent = await session.send('hold', { id: 'm1', busy: 'reject' });
    await held.entered;
    // Its sender has not heard of that, and its own turn is under way.
    expect(await session.send('hold', { id: 'm1', busy: 'reject' })).toMatchObject({ as: 'known', turn: sent.turn });
    await expect(session.send('another', { id: 'm2', busy: 'reject' })).rejects.toMatchObject({
      code: 'session_busy',
      data: { run: sent.turn },
    });
    held.release();
    await sent.result();
    expect(await messagesOf(session)).toEqual([['m1']]);
    expect((await session.send('another', { id: 'm2', busy: 'reject' })).as).toBe('started');
  });

  it('turns that wait and are gone with their session are no fault of whoever waited for them', async () => {
    const { runtime, session, clock, faults } = talk({ maxLiveRuns: 1 });
    const asks = await session.send('wait');
    expect((await asks.result()).status).toBe('paused');
    await runtime.schedules.put({ id: 'c', everyMs: 1_000, query: 'later', session: 'talk' });
    const { id: queued } = await runtime.schedules.trigger('c');
    await runtime.schedules.delete('c');
    await runtime.sessions.delete({ tenant: 'local', user: 'local', session: 'talk' });
    await expect(runtime.run(queued).result()).rejects.toMatchObject({ code: 'run_not_found' });
    await clock.advance(60_000);
    expect(faults).toEqual([]);
    expect((await session.send('hello')).as).toBe('started');
  });

  it('words that come too late for the turn of a schedule are no fire of it', async () => {
    const [asked, go] = [gate(), gate()];
    const metas: unknown[] = [];
    const next: PlannerFunction = async ({ query, context: { meta } }) => {
      metas.push(meta);
      if (query === 'tick') {
        asked.open();
        await go.opened;
      }
      return finish(`re ${query}`);
    };
    const { runtime, session } = talk({ planner: { name: 'p', next } });
    // It fires as soon as it is there, and is not there any more then.
    await runtime.schedules.put({ id: 'c', everyMs: 366 * 86_400_000, query: 'tick', session: 'talk', input: 1 });
    await asked.opened;
    await runtime.schedules.delete('c');
    const late = await session.send('late', { id: 'm1', busy: 'steer' });
    expect(late.as).toBe('steered');
    go.open();
    expect(await late.result()).toMatchObject({ answer: 're late' });
    expect(metas).toEqual([{ schedule: 'c', fire_time: expect.any(String) }, {}]);
    expect((await runtime.list({ schedule: 'c' })).length).toBe(1);
  });

  it('a control that a user gives the id of a message swallows no message of another', async () => {
    const { runtime, session, held, journal } = talk();
    const theirs = runtime.session('talk', { identity: { tenant: 'local', user: 'mallory' } });
    const first = await theirs.send('hold');
    await held.entered;
    const probe = await runtime.session('talk').send('x', { id: 'm' });
    await probe.result();
    await runtime.sessions.delete({ tenant: 'local', user: 'local', session: 'talk' });
    const id = probe.turn.replace('run_', 'message_');
    await journal.signal(first.turn, { id, type: 'USER_MESSAGE', payload: { message: 'mine now' } });
    expect(await session.send('x', { id: 'm' })).toMatchObject({ as: 'started', turn: probe.turn });
    held.release();
  });

  it('readers end when their session is deleted, wherever they are', async () => {
    const { session, runtime } = talk();
    const types: string[][] = [[], []];
    const read = async (index: number, from: number): Promise<void> => {
      for await (const { type } of session.events({ from })) types[index]?.push(type);
    };
    const first = await session.send('wait');
    await first.result();
    const inTurn = read(0, 0);
    const behind = read(1, 2 ** 33);
    await until(() => types[0]?.includes('pause.requested') === true);
    await runtime.sessions.delete({ tenant: 'local', user: 'local', session: 'talk' });
    await Promise.all([inTurn, behind]);
    expect(types[1]).toEqual([]);
  });

  it('a turn whose time is over before it has come ends, and lets the next one go on', async () => {
    const { session, held, clock, runtime } = talk();
    await session.send('hold one');
    await held.entered;
    const short = await runtime.session('talk', { limits: { deadlineAt: clock.now() + 1_000 } }).send('two');
    const third = await session.send('three');
    clock.advance(2_000);
    held.release();
    expect(await short.result()).toMatchObject({ status: 'finished' });
    expect(await third.result()).toMatchObject({ answer: 're three' });
  });

  it('says inbox_full when a turn under way hears nothing, and loses nothing that was accepted', async () => {
    const { session, held } = talk();
    await session.send('hold one', { id: 'm' });
    await held.entered;
    const sent = [];
    for (let count = 0; count < 256; count += 1) sent.push(await session.send(`s${count}`, { busy: 'steer' }));
    await expect(session.send('one more', { busy: 'steer' })).rejects.toMatchObject({ code: 'inbox_full' });
    expect((await session.send('queued', { id: 'q' })).as).toBe('queued');
    held.release();
    await session.result();
    expect(await messagesOf(session)).toEqual([['m', ...sent.map(({ id }) => id)], ['q']]);
  });

  it('a message that is sent again drives its turn when nobody does', async () => {
    const journal: Journal = open();
    const first = talk({ journal, maxLiveRuns: 1 });
    const busy = await first.session.send('hold one', { id: 'm1' });
    await first.held.entered;
    await first.session.send('two', { id: 'm2' });
    await first.runtime.close();
    const second = talk({ journal });
    second.held.release();
    const again = await second.session.send('two', { id: 'm2' });
    expect(again.as).toBe('known');
    expect(await again.result()).toMatchObject({ answer: 're two' });
    expect(await second.runtime.run(busy.turn).result()).toMatchObject({ answer: 're hold one' });
  });

  it('a steered message begins one turn also when nobody knows whether the end was written that began it', async () => {
    const stored = open();
    let isUnsure = true;
    const journal: Journal = new Proxy(stored, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (name !== 'append') return typeof value === 'function' ? value.bind(target) : value;
        return async (append: Append): Promise<void> => {
          await target.append(append);
          if (append.starts === undefined || !isUnsure) return;
          isUnsure = false;
          throw new PilotageError('journal_unavailable', 'the answer was lost');
        };
      },
    });
    const thinking = gate();
    const go = gate();
    const next: PlannerFunction = async ({ query }) => {
      if (query === 'slow') {
        thinking.open();
        await go.opened;
      }
      return finish(`re ${query}`);
    };
    const { session, clock } = talk({ journal, planner: { name: 'p', next } });
    await session.send('slow', { id: 'm1' });
    await thinking.opened;
    await session.send('queued', { id: 'm3' });
    const late = await session.send('late', { id: 'm2', busy: 'steer' });
    go.open();
    const isOver = async (): Promise<boolean> => (await session.turns()).every(({ status }) => status === 'finished');
    await advanceUntil(clock, isOver);
    expect(await late.result()).toMatchObject({ answer: 're late' });
    expect(isUnsure).toBe(false);
    expect(await messagesOf(session)).toEqual([['m1'], ['m2'], ['m3']]);
  });

  it('a fork leaves its turn, and is none', async () => {
    const { session, runtime, held } = talk();
    const first = await session.send('hold one', { id: 'm1' });
    await held.entered;
    const second = await session.send('two', { id: 'm2' });
    const fork = await runtime.run(second.turn).fork();
    expect(await fork.result()).toMatchObject({ answer: 're two' });
    held.release();
    await second.result();
    const other = await runtime.run(first.turn).fork({ goal: 'three' });
    expect(await other.result()).toMatchObject({ status: 'finished' });
    expect(await messagesOf(session)).toEqual([['m1'], ['m2']]);
    expect((await session.send('two', { id: 'm2' })).turn).toBe(second.turn);
  });

  it('names of the turns on other branches those that have done something', async () => {
    const { session, held, journal } = talk();
    const asideOf = async (run: string): Promise<readonly string[] | undefined> => {
      const begun = (await journal.read(run)).find((entry) => entry.kind === 'turn_started');
      return begun?.continues.aside?.map((turn) => turn.run);
    };
    held.release();
    const first = await session.send('one');
    await first.result();
    await (await session.send('two')).result();
    const worked = await session.send('hold three');
    await worked.result();
    const other = await session.edit(first.turn, 'other');
    await other.result();
    const on = await session.send('on');
    await on.result();
    expect([await asideOf(other.turn), await asideOf(on.turn)]).toEqual([[worked.turn], [worked.turn]]);
  });

  it('remembers nothing of a session that was deleted, also when the same ids come again', async () => {
    const { session, runtime, seen } = talk();
    for (const word of ['old', 'new']) {
      await (await session.send(`${word} one`, { id: 'm1' })).result();
      await (await session.send(`${word} two`, { id: 'm2' })).result();
      const told = seen.views.at(-1)?.history.map(({ text }) => text);
      expect(told).toEqual([`${word} one`, `re ${word} one`]);
      expect((await session.turns()).map(({ exchanges }) => exchanges[0]?.user)).toEqual([
        `${word} one`,
        `${word} two`,
      ]);
      await runtime.sessions.delete({ tenant: 'local', user: 'local', session: 'talk' });
    }
  });

  it.each(['edit', 'regenerate'] as const)('%s stores nothing of a session that is deleted meanwhile', async (way) => {
    const kept = open();
    let isToGo = false;
    const journal = changed(kept, {
      send: async (sending) => {
        if (isToGo) await kept.sessions.delete(sending.scope);
        return kept.send(sending);
      },
    });
    const { session, runtime } = talk({ journal });
    const first = await session.send('secret', { id: 'm1' });
    await first.result();
    isToGo = true;
    const again = way === 'edit' ? session.edit(first.turn, 'other') : session.regenerate(first.turn);
    await expect(again).rejects.toMatchObject({ code: 'run_not_found' });
    expect(await session.turns()).toEqual([]);
    expect(await runtime.list()).toEqual([]);
  });

  it('says that the runtime is closed, and stores nothing', async () => {
    const journal = open();
    const { runtime } = talk({ journal });
    const other = talk({ journal });
    const session = runtime.session('talk');
    await runtime.close();
    await expect(session.send('x')).rejects.toMatchObject({ code: 'runtime_closed' });
    expect(await other.session.turns()).toEqual([]);
  });

  it('reads on from any position, also behind the last event', async () => {
    const { session, runtime } = talk();
    await (await session.send('one')).result();
    const [record] = await runtime.list({ session: 'talk' });
    const end = 2 ** 32 + (record?.head ?? 0);
    await (await session.send('two')).result();
    for await (const event of session.events({ from: end + 1 })) {
      expect(event.position).toBe(2 * 2 ** 32 + 1);
      break;
    }
  });
});

/** Fails the first time, and then does what it is told. */
function failing(): PlannerFunction {
  let failed = false;
  return (view, signal) => {
    if (view.query !== 'fail' || failed) return view.query === 'fail' ? finish('re fail') : planner(view, signal);
    failed = true;
    throw new Error('once');
  };
}

it('a message that was accepted just before its session was deleted is no error', async () => {
  const base = memoryJournal();
  const first = world({ planner, journal: base });
  const asked = await first.runtime.session('s').send('wait');
  expect((await asked.result()).status).toBe('paused');
  await first.runtime.close();
  const journal = changed(base, {
    send: async (sending) => {
      const sent = await base.send(sending);
      await base.sessions.delete(sending.scope);
      return sent;
    },
  });
  const second = world({ planner, journal });
  expect(await second.runtime.session('s').send('two')).toMatchObject({ as: 'steered', turn: asked.turn });
  expect(second.faults).toEqual([]);
  await second.runtime.close();
});

it('the time that an agent gives its runs is counted from when the turn has come, however long it waited', async () => {
  const stops: PlannerFunction = ({ query, trajectory: { count } }) =>
    query === 'stop' && count === 0 ? { kind: 'request_pause', reason: 'external_event' } : finish(`re ${query}`);
  const quick = agent({
    name: 'quick',
    planner: { name: 'stops', next: stops },
    tools: [],
    limits: { deadlineMs: 60_000 },
  });
  const made = world({ agents: [quick] });
  const { runtime, clock } = made;
  onTestFinished(() => runtime.close());
  const session = runtime.session('s');
  const first = await session.send('stop');
  await first.result();
  const second = await session.send('two');
  clock.advance(100_000);
  await runtime.run(first.turn).resume();
  expect(await first.result()).not.toMatchObject({ answer: 're stop' });
  expect(await second.result()).toMatchObject({ status: 'finished', answer: 're two' });
  const { limits } = await runtime.run(second.turn).state();
  expect(limits.deadlineAt).toBe(clock.now() + 60_000);
  clock.advance(100_000);
  expect(await (await runtime.run(second.turn).fork({ step: 0 })).result()).toMatchObject({ answer: 're two' });
});

it.each([
  ['of its agent', undefined, 60_000],
  ['of the run that ends, when that is shorter', 30_000, 30_000],
])('a message that comes too late begins a turn with the time %s', async (_, ownMs, lastsMs) => {
  const [before, thinking, go] = [gate(), gate(), gate()];
  const next: PlannerFunction = async ({ query }) => {
    if (query === 'before') await before.opened;
    if (query === 'slow') {
      thinking.open();
      await go.opened;
    }
    return finish(`re ${query}`);
  };
  const slow = agent({ name: 'slow', planner: { name: 'p', next }, tools: [], limits: { deadlineMs: 60_000 } });
  const { runtime, clock } = world({ agents: [slow] });
  onTestFinished(() => runtime.close());
  const limits = ownMs === undefined ? {} : { deadlineAt: clock.now() + ownMs };
  const session = runtime.session('s', { limits });
  await session.send('before');
  await session.send('slow');
  clock.advance(20_000);
  before.open();
  await thinking.opened;
  const late = await session.send('late', { busy: 'steer' });
  clock.advance(5_000);
  go.open();
  expect(await late.result()).toMatchObject({ answer: 're late' });
  const begun = (await session.turns()).find(({ number }) => number === 3);
  const { limits: given } = await runtime.run(begun?.turn ?? '').state();
  expect(given.deadlineAt).toBe(clock.now() + lastsMs);
});

it('a turn whose caller gives it less time than its agent keeps back no more than a part of that for its last move', async () => {
  const next: PlannerFunction = ({ trajectory: { count }, lastMove }) =>
    lastMove === undefined && count === 0 ? call('echo') : finish(lastMove === undefined ? 'in time' : 'too late');
  const limits = { deadlineMs: 3_600_000 };
  const patient = agent({ name: 'patient', planner: { name: 'p', next }, tools: [echo], limits });
  const { runtime, clock } = world({ agents: [patient] });
  onTestFinished(() => runtime.close());
  const own = { deadlineAt: clock.now() + 10_000, onCeiling: 'answer' } as const;
  const sent = await runtime.session('s', { limits: own }).send('q');
  expect(await sent.result()).toMatchObject({ reason: 'goal', answer: 'in time' });
});
