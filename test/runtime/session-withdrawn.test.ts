/** A turn that waits for the turns before it, and is cancelled: it ends, whoever has said so and whatever becomes of them, and is never begun. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Control, Entry, PlannerFunction } from '#core';
import { type Claim, type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { call, finish, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { echo, holding } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { type World, world } from '../kit/world.ts';

const planner: PlannerFunction = ({ query, trajectory: { count } }) =>
  query.startsWith('hold') && count === 0 ? call('hold') : finish(`re ${query}`);

const STORES = {
  memory: (clock: World['clock']) => memoryJournal({ clock }),
  sqlite: (clock: World['clock']) => sqliteJournal({ path: temporaryFile(), clock }),
};

const CANCEL: Control = { id: 'c1', type: 'CANCEL', payload: { hard: true } };
const GHOST = { owner: 'somebody else', leaseMs: 1_000 };

async function claimedBy(journal: Journal, run: string): Promise<Claim> {
  const claim = await journal.claim({ ...GHOST, run });
  if (claim === undefined) throw new Error(`${run} could not be claimed.`);
  return claim;
}

describe.each(Object.entries(STORES))('a turn that waits in %s, and is cancelled', (_name, open) => {
  /** A session with a turn under way, and one that waits. @param through what the process that was sent the messages has of the journal. */
  async function talk(through: (journal: Journal) => Journal = (journal) => journal) {
    const clock = world({ planner }).clock;
    const journal = open(clock);
    const held = holding();
    const seen = watched(planner);
    const made = world({ planner: seen, tools: [echo, held.tool], journal: through(journal), clock });
    const other = world({ planner: seen, tools: [echo, held.tool], journal, clock });
    onTestFinished(async () => {
      await Promise.all([made.runtime.close(), other.runtime.close()]);
      await journal.close();
    });
    const session = made.runtime.session('talk');
    const first = await session.send('hold one');
    await held.entered;
    const { turn } = await session.send('two');
    // Whoever sent it has looked whether its turn has come.
    await quiet();
    const status = async (run = turn) => (await journal.get(run))?.status;
    const asked = () => seen.views.map(({ query }) => query);
    return { ...made, journal, other, held, session, first, turn, status, asked };
  }

  it('ends also when the runtime is closed in the middle of it', async () => {
    const reached = gate();
    const goesOn = gate();
    let waiting = '';
    const through = (journal: Journal): Journal =>
      changed(journal, {
        inbox: async (run) => {
          if (run === waiting) {
            reached.open();
            await goesOn.opened;
          }
          return journal.inbox(run);
        },
      });
    const { runtime, turn, status, asked } = await talk(through);
    waiting = turn;
    const cancelled = runtime.run(turn).cancel();
    await reached.opened;
    const closed = runtime.close({ graceMs: 0 });
    goesOn.open();
    await Promise.allSettled([cancelled, closed]);
    expect(await status()).toBe('cancelled');
    expect(asked()).toEqual(['hold one']);
  });

  it('is ended by a process that has sent a message, when whoever has cancelled it is gone', async () => {
    const { journal, turn, status, first } = await talk();
    await journal.signal(turn, CANCEL);
    await until(async () => (await status()) === 'cancelled');
    expect(await status(first.turn)).toBe('running');
  });

  it('is ended by whoever works, when a process dies between the cancel and the end', async () => {
    const { journal, clock, other, turn, status, asked, first } = await talk();
    const { fence, head } = await claimedBy(journal, turn);
    const entry: Entry = { kind: 'control', control: CANCEL, applied: true, seq: head + 1, at: clock.now() };
    await journal.append({ run: turn, fence, expected: head, entries: [entry], status: 'running' });
    other.runtime.work();
    await advanceUntil(clock, async () => (await status()) === 'cancelled');
    expect(await status(first.turn)).toBe('running');
    expect(asked()).toEqual(['hold one']);
  });

  it('is not begun before its turn when the cancel is refused, and is pending as before', async () => {
    const { runtime, journal, held, turn, status, asked } = await talk();
    const lost = { artifactRef: 'art_gone', mime: 'application/json', sizeBytes: 1 };
    await journal.signal(turn, { ...CANCEL, payload: { hard: false }, stored: lost });
    await runtime.run(turn).steer('USER_MESSAGE', { message: 'and me' });
    await until(async () => (await journal.inbox(turn)).length === 0);
    await quiet();
    expect(await status()).toBe('pending');
    expect(asked()).toEqual(['hold one']);
    held.release();
    expect(await runtime.run(turn).result()).toMatchObject({ answer: 're two' });
  });

  it('is pending again when a process that only looked at it dies', async () => {
    const { journal, clock, other, turn, status } = await talk();
    await claimedBy(journal, turn);
    expect(await status()).toBe('running');
    other.runtime.work();
    await advanceUntil(clock, async () => (await status()) === 'pending');
    expect((await journal.get(turn))?.wakeAt).toBe(null);
  });
});
