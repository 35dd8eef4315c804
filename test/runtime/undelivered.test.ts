/** Controls that come too late: none vanishes without a word. */
import { describe, expect, it } from 'vitest';
import { type Control, type Decision, INBOX_CAP, type PlannerFunction, type RunView } from '#core';
import type { Journal } from '#journal';
import { finish, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, innerState, kindsOf, send } from '../kit/run-record.ts';
import { spawns } from '../kit/tasks.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { busy, start, world } from '../kit/world.ts';

const message = (id: string): Control => ({ id, type: 'USER_MESSAGE', payload: { message: id } });

/** A run whose planner finishes when it is let to, and then tells nobody of what is in the inbox. */
async function ending(journal?: (inner: Journal) => Journal) {
  const [asked, opened] = [gate(), gate()];
  const plain = world({
    planner: async () => {
      asked.open();
      await opened.opened;
      return finish('the answer');
    },
  });
  const made =
    journal === undefined
      ? plain
      : world({ planner: async () => finish('the answer'), journal: journal(plain.journal) });
  const run = await start(made);
  if (journal === undefined) await asked.opened;
  return { ...made, run, go: () => opened.open() };
}

describe('controls left in the inbox when a run ends', () => {
  it('SP-19, W05b are each reported undelivered, in the commit of the ending, before it', async () => {
    const { run, journal, go } = await ending();
    const events = collect(run);
    for (const id of ['one', 'two', 'three']) await send(journal, run, message(id));
    go();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'the answer' });
    const taken = await entriesOf(journal, run, 'control');
    expect(
      taken.map(({ control, applied, undelivered, error }) => [control.id, applied, undelivered, error?.code]),
    ).toEqual(['one', 'two', 'three'].map((id) => [id, false, true, 'run_ended']));
    expect((await kindsOf(journal, run)).slice(-5)).toEqual(['moved', 'control', 'control', 'control', 'finished']);
    expect(await journal.inbox(run.id)).toEqual([]);
    expect((await events).slice(1).map(({ type }) => type)).toEqual([
      'planner.decision',
      'control.received',
      'control.undelivered',
      'control.received',
      'control.undelivered',
      'control.received',
      'control.undelivered',
      'planner.finish',
    ]);
  });

  it('SP-19 whoever waits for one of them is told that the run has ended', async () => {
    const { run, go } = await ending();
    const until = 'applied';
    const sent = [run.steer('REDIRECT', { goal: 'late' }, { until }), run.pause({ until }), run.approve()];
    const settled = Promise.allSettled(sent);
    await quiet();
    go();
    await run.result();
    expect(await settled).toMatchObject(sent.map(() => ({ status: 'rejected', reason: { code: 'run_ended' } })));
  });

  it('SP-19 they change nothing: not the goal, not the steering, not the answer', async () => {
    const { run, journal, go } = await ending();
    await send(journal, run, { id: 'r', type: 'REDIRECT', payload: { goal: 'late' } });
    await send(journal, run, message('late'));
    go();
    await run.result();
    expect(await innerState(journal, run)).toMatchObject({
      goal: 'q',
      steering: [],
      ending: { kind: 'finished', reason: 'goal' },
    });
  });

  it('SP-19 a cancel that was stored before the ending wins over it; the others with it are taken', async () => {
    const { run, journal, go } = await ending();
    await send(journal, run, message('before'));
    await send(journal, run, { id: 'c', type: 'CANCEL', payload: { hard: false } });
    await send(journal, run, message('after'));
    go();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    const taken = await entriesOf(journal, run, 'control');
    expect(taken.map(({ control, applied }) => [control.id, applied])).toEqual([
      ['before', true],
      ['c', true],
      ['after', true],
    ]);
    expect(await entriesOf(journal, run, 'finished')).toHaveLength(1);
    expect(await journal.get(run.id)).toMatchObject({ status: 'cancelled' });
  });

  it('SP-19 one that comes while the ending is on its way to the store is seen, too', async () => {
    const tries: number[] = [];
    const late = (inner: Journal): Journal =>
      changed(inner, {
        append: async (request) => {
          if (request.entries.at(-1)?.kind === 'finished') {
            tries.push(request.entries.length);
            // From another process, at the worst moment: twice.
            if (tries.length < 3) await inner.signal(request.run, message(`late ${tries.length}`));
          }
          await inner.append(request);
        },
      });
    const { run, journal, faults } = await ending(late);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'the answer' });
    const taken = await entriesOf(journal, run, 'control');
    expect(taken.map(({ control, undelivered }) => [control.id, undelivered])).toEqual([
      ['late 1', true],
      ['late 2', true],
    ]);
    expect(tries).toEqual([2, 3, 4]);
    expect(faults).toEqual([]);
  });

  it('SP-19 holds for a cancelled run', async () => {
    const { run, journal } = await busy();
    await send(journal, run, message('before'));
    const cancelled = run.cancel();
    await cancelled;
    await run.result();
    const taken = await entriesOf(journal, run, 'control');
    expect(taken.map(({ control }) => control.type)).toEqual(['USER_MESSAGE', 'CANCEL']);
    expect(await journal.inbox(run.id)).toEqual([]);
  });

  it('SP-06 after the ending nothing is stored any more', async () => {
    const { run, journal, go } = await ending();
    go();
    await run.result();
    await expect(run.steer('INJECT_CONTEXT')).rejects.toMatchObject({ code: 'run_ended' });
    await expect(send(journal, run, message('late'))).rejects.toMatchObject({ code: 'run_ended' });
    expect(await journal.inbox(run.id)).toEqual([]);
  });
});

describe('a full inbox', () => {
  it('SP-20, W05b refuses 9,744 of 10,000 messages, and keeps those that it took', async () => {
    const { run, journal, clock, go } = await busy();
    let refused = 0;
    for (let index = 0; index < 10_000; index += 1) {
      await send(journal, run, message(`m${index}`)).catch((error: { code: string }) => {
        expect(error.code).toBe('inbox_full');
        refused += 1;
      });
    }
    expect(refused).toBe(10_000 - INBOX_CAP);
    clock.advance(2_000);
    await quiet();
    go();
    await run.result();
    expect((await entriesOf(journal, run, 'control')).map(({ control }) => control.id)).toEqual(
      Array.from({ length: INBOX_CAP }, (_, index) => `m${index}`),
    );
  });

  it('SP-20 makes room as soon as the run has taken them', async () => {
    const made = world({ planner: script({ ...pause, reason: 'external_event' } as never) });
    const run = await start(made);
    await run.result();
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    for (let index = 0; index < INBOX_CAP; index += 1) await send(made.journal, run, message(`m${index}`));
    await expect(run.steer('INJECT_CONTEXT')).rejects.toMatchObject({ code: 'inbox_full' });
    made.runtime.work();
    await advanceUntil(made.clock, async () => (await made.journal.inbox(run.id)).length === 0);
    await run.steer('INJECT_CONTEXT');
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(only(await collect(run), 'control.applied')).toHaveLength(INBOX_CAP + 1);
    await made.runtime.close();
  });

  it('SP-20 full of messages takes a cancel all the same', async () => {
    const { run, journal } = await busy();
    for (let index = 0; index < INBOX_CAP; index += 1) await send(journal, run, message(`m${index}`));
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(await entriesOf(journal, run, 'control')).toHaveLength(INBOX_CAP + 1);
  });
});

it('the end of a task that comes while its owner decides the last step stands behind that move: its planner has not seen it', async () => {
  const decides = ({ query, trajectory: { tasks } }: RunView): Decision => {
    const [task] = tasks;
    if (query !== 'q') return finish(query);
    return task === undefined ? spawns('child') : finish(task.end === undefined ? 'did not wait' : 'saw the end');
  };
  const [asked, decided] = [gate(), gate()];
  const slow: PlannerFunction = async (view) => {
    const decision = decides(view);
    if (view.query !== 'q' || decision.kind !== 'finish') return decision;
    asked.open();
    await decided.opened;
    return decision;
  };
  // The task is with another process: its owner has room for one run.
  const owner = world({ planner: { name: 'looks', next: slow }, maxLiveRuns: 1 });
  const { journal, clock } = owner;
  const run = await start(owner);
  await asked.opened;
  const other = world({ planner: { name: 'looks', next: decides }, journal, clock });
  other.runtime.work();
  await until(async () => (await journal.inbox(run.id)).length > 0);
  decided.open();
  expect(await run.result()).toMatchObject({ payload: 'did not wait' });
  expect((await kindsOf(journal, run)).slice(-3)).toEqual(['moved', 'task_ended', 'finished']);
  expect((await other.runtime.run(run.id).replay()).divergence).toBeUndefined();
  await Promise.all([owner.runtime.close(), other.runtime.close()]);
});
