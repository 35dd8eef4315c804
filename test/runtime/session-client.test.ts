/** What a chat's client does with a session: it sends while busy, stops, edits, regenerates, and is loaded anew at any moment. */
import { afterEach, describe, expect, it } from 'vitest';
import type { PlannerFunction } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import type { Runtime, Session, SessionEvent } from '#runtime';
import { ChatClient, shownOf } from '../kit/chat-client.ts';
import { asks, call, finish, sayingHello } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';

/** Does what a message says: `slow …` waits until it is let go, `ask …` waits for words, `fail …` fails. */
function obeying() {
  let held = gate();
  let entered = gate();
  const hold = make('hold', async (_, { signal }) => {
    entered.open();
    await Promise.race([held.opened, aborted(signal)]);
    return 'held';
  });
  const planner: PlannerFunction = ({ query, trajectory: { count, steering } }) => {
    if (query.startsWith('fail')) throw new Error('no way');
    if (query.startsWith('slow') && !query.includes('now') && count === 0) return call('hold');
    if (query.startsWith('ask') && count === 0) return asks;
    const heard = steering.map(({ control }) => control.payload?.['message']);
    return finish([`re ${query}`, ...heard].join(' + '));
  };
  return {
    agent: { planner, tools: [hold] },
    /** A slow turn is under way. */
    entered: () => entered.opened,
    release: () => {
      held.open();
      held = gate();
      entered = gate();
    },
  };
}

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

/** A runtime on a journal that others have open, too. */
function runtimeOn(path: string, { agent }: ReturnType<typeof obeying>): Runtime {
  const journal = sqliteJournal({ path });
  const { runtime } = world({ ...agent, journal });
  opened.push(async () => {
    await runtime.close();
    await journal.close();
  });
  return runtime;
}

async function follow(client: ChatClient, session: Session, signal: AbortSignal, note?: (event: SessionEvent) => void) {
  for await (const event of session.events({ from: client.position + 1, signal })) {
    client.hear(event);
    note?.(event);
  }
}

describe('a client that computes its messages from events', () => {
  it('has the same messages after a reload at any event, in another process', { timeout: 30_000 }, async () => {
    const path = temporaryFile();
    const slow = obeying();
    const session = runtimeOn(path, slow).session('talk');
    const distant = runtimeOn(path, obeying()).session('talk');
    const left = new AbortController();
    const events: SessionEvent[] = [];
    const reloaded: ChatClient[] = [];
    const loads: Promise<void>[] = [];
    const reload = async (): Promise<void> => {
      const client = new ChatClient();
      await client.load(distant);
      reloaded.push(client);
      await follow(client, distant, left.signal);
    };
    const first = new ChatClient();
    const reading = follow(first, session, left.signal, (event) => {
      events.push(event);
      loads.push(reload());
    });

    await (await session.send('one', { id: 'm1' })).result();
    const two = await session.send('slow two', { id: 'm2' });
    await slow.entered();
    await session.send('also', { id: 'm3', busy: 'steer' });
    const later = await session.send('later', { id: 'm4' });
    expect(first.status).toBe('streaming');
    slow.release();
    await later.result();
    await (await session.edit(two.turn, 'other', { id: 'm2', busy: 'interrupt' })).result();
    const other = (await session.turns()).at(-1)?.turn ?? '';
    await (await session.regenerate(other)).result();
    await (await session.send('ask', { id: 'm5' })).result();
    await (await session.send('blue', { id: 'm6' })).result();
    await session.send('slow seven', { id: 'm7' });
    await slow.entered();
    await (await session.send('no, now', { id: 'm8', busy: 'interrupt' })).result();
    slow.release();
    const nine = await session.send('slow nine', { id: 'm9' });
    await slow.entered();
    await session.cancel();
    await nine.result();
    await (await session.send('fail', { id: 'm10' })).result();
    await until(() => first.status === 'error');
    await (await session.send('last', { id: 'm11' })).result();

    const turns = (await session.turns()).map(shownOf);
    expect(turns.map(({ messages, user, status }) => [messages.join(), user, status])).toEqual([
      ['m1', 'one', 'finished'],
      ['m2', 'other', 'finished'],
      ['m5,m6', 'ask\n\nblue', 'finished'],
      ['m7,m8', 'slow seven\n\nno, now', 'finished'],
      ['m9', 'slow nine', 'cancelled'],
      ['m10', 'fail', 'failed'],
      ['m11', 'last', 'finished'],
    ]);
    await until(() => first.turns.at(-1)?.status === 'finished' && first.turns.length === turns.length);
    expect(first.turns).toEqual(turns);
    // One that loses its connection comes again with its position.
    for (let seen = 0; seen <= events.length; seen += 1) {
      const client = new ChatClient();
      for (const event of events.slice(0, seen)) client.hear(event);
      const { position } = client;
      for (const event of events) if (event.position > position) client.hear(event);
      expect(client.turns).toEqual(turns);
    }
    await until(
      () => reloaded.length === events.length && reloaded.every(({ position }) => position === first.position),
    );
    expect(reloaded.length).toBeGreaterThan(40);
    for (const client of reloaded) expect(client.turns).toEqual(turns);
    left.abort();
    await Promise.all([reading, ...loads]);
  });

  it('gets what was said of an answer so far, when it comes while it is said', async () => {
    const { planner, begun, more } = sayingHello();
    const { runtime } = world({ planner });
    const session = runtime.session('talk');
    const left = new AbortController();
    const reading = follow(new ChatClient(), session, left.signal);
    const sent = await session.send('hi');
    await begun.opened;
    // The only reader goes, and comes again from the beginning.
    left.abort();
    await reading;
    const client = new ChatClient();
    await client.load(session);
    const shown: (string | null | undefined)[] = [];
    for await (const event of session.events({ from: client.position + 1 })) {
      client.hear(event);
      shown.push(client.turns.at(-1)?.assistant);
      if (event.type === 'token' && event.text === 'Hel') more.open();
      if (event.type === 'planner.finish') break;
    }
    expect(shown.filter((text, index) => text !== undefined && text !== null && text !== shown[index - 1])).toEqual([
      'Hel',
      'Hello',
    ]);
    expect(await sent.result()).toMatchObject({ answer: 'Hello' });
  });
});
