/** What a runtime keeps of runs that it has driven or read, and what others find in the store: no turn folds a whole journal again. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, type Entry, local, type Planner, type RunEvent, type RunView } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type Run, type Runtime } from '#runtime';
import { FOLD_VERSION, foldEntries, packState, snapshotOf } from '#state';
import { scriptedModel } from '#testing';
import { call } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';

/** After so many turns there is a snapshot: a turn has four entries. */
const MANY_TURNS = 140;

function chatRuntime(journal: Journal): Runtime {
  const model = scriptedModel(() => ({ text: 'And now?' }));
  const runtime = createRuntime({ planner: react({ model, converse: true }), journal, onFault: () => {} });
  onTestFinished(() => runtime.close());
  return runtime;
}

async function startChat(runtime: Runtime, turns: number): Promise<Run> {
  const run = await runtime.start('hello', { identity: local('ana', { run: 'r' }) });
  await run.result();
  for (let turn = 1; turn <= turns; turn += 1) await say(run, `words ${turn}`);
  return run;
}

async function say(run: Run, message: string): Promise<void> {
  await run.steer('USER_MESSAGE', { message });
  expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'await_input' }] });
}

/** The journal, and how many entries were read of it. */
function counted(journal: Journal): { readonly journal: Journal; readonly read: { entries: number; most: number } } {
  const read = { entries: 0, most: 0 };
  const counting: Journal['read'] = async (...of) => {
    const entries = await journal.read(...of);
    read.entries += entries.length;
    read.most = Math.max(read.most, entries.length);
    return entries;
  };
  return { journal: changed(journal, { read: counting }), read };
}

async function expectAsFolded(run: Run, journal: Journal): Promise<void> {
  const folded = snapshotOf(foldEntries(await journal.read(run.id)));
  expect(JSON.parse(JSON.stringify(await run.state()))).toEqual(JSON.parse(JSON.stringify(folded)));
}

/** The events that stand in the journal, and how it is over. */
async function recorded(run: Run, from = 1): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events({ from })) if (event.type !== 'token') events.push(event);
  return events;
}

async function eventsFrom(run: Run, from: number): Promise<string> {
  return JSON.stringify(await recorded(run, from));
}

describe.each([
  ['memory', () => memoryJournal()],
  ['SQLite', () => openJournal(temporaryFile(), { synchronous: 'normal' })],
])('a conversation in one run, in %s', (_, open) => {
  it('reads at its fortieth turn as little of its journal as at its tenth', async () => {
    const { journal, read } = counted(open());
    const run = await startChat(chatRuntime(journal), 9);
    const costs: number[] = [];
    for (let turn = 10; turn <= 40; turn += 1) {
      read.entries = 0;
      await say(run, `words ${turn}`);
      costs.push(read.entries);
    }
    expect(costs.at(-1)).toBe(costs[0]);
    expect(costs[0]).toBeLessThan(40);
    await expectAsFolded(run, journal);
  });

  it('answers to a pause read no more, and neither do readers of its events from where they were', async () => {
    const { journal, read } = counted(open());
    const run = await startChat(chatRuntime(journal), 40);
    const { head } = await run.state();
    read.most = 0;
    await run.resume({ payload: { message: 'and now' } });
    const events = await recorded(run, head + 1);
    expect(read.most).toBeLessThan(20);
    expect(events[0]?.seq).toBe(head + 1);
    const whole = await recorded(run);
    expect(events).toEqual(whole.filter((event) => event.seq > head));
    for (const from of [2, 3, head - 1, head, head + 2, head + 100]) {
      const late = (await recorded(run, from)).filter((event) => event.type !== 'run.paused');
      expect(late).toEqual(whole.filter((event) => event.seq >= from && event.type !== 'run.paused'));
    }
  });

  it('is opened by another process without its first entries, and goes on there', async () => {
    const stored = open();
    await (await startChat(chatRuntime(stored), MANY_TURNS)).result();
    const kept = await stored.snapshots.newest('r', FOLD_VERSION);
    expect(kept?.head).toBeGreaterThan(400);
    const { journal, read } = counted(stored);
    const run = chatRuntime(journal).run('r');
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect((await run.state()).head).toBe(1 + 2 + MANY_TURNS * 4);
    expect(read.most).toBeLessThan(200);
    await say(run, 'elsewhere');
    expect(read.most).toBeLessThan(200);
    await expectAsFolded(run, stored);
    expect((await run.state()).steps).toHaveLength(MANY_TURNS + 1);
  });

  it('is the same for two processes that take turns at it', async () => {
    const journal = open();
    const one = await startChat(chatRuntime(journal), 3);
    const other = chatRuntime(journal).run('r');
    for (let turn = 0; turn < 6; turn += 1) {
      await say(turn % 2 === 0 ? other : one, `turn ${turn}`);
      await expectAsFolded(one, journal);
      await expectAsFolded(other, journal);
      expect(await eventsFrom(one, 4)).toBe(await eventsFrom(other, 4));
    }
  });

  it('what a reader was given does not change while the run goes on', async () => {
    const run = await startChat(chatRuntime(open()), 3);
    const early = await run.state();
    const before = JSON.stringify(early);
    await say(run, 'more');
    const late = await run.state();
    await say(run, 'and more');
    expect(JSON.stringify(early)).toBe(before);
    expect(late.steps).toHaveLength(4);
  });

  it('is folded from its entries where its snapshot is of other code, or damaged, and has a good one again later', async () => {
    const stored = open();
    await startChat(chatRuntime(stored), MANY_TURNS);
    const kept = await stored.snapshots.newest('r', FOLD_VERSION);
    if (kept === undefined) throw new Error('There is no snapshot.');
    const body = kept.body.with(kept.body.length - 1, (kept.body.at(-1) ?? 0) ^ 1);
    for (const newest of [async () => ({ ...kept, body }), async () => undefined]) {
      const { journal, read } = counted(
        changed(stored, {
          snapshots: {
            newest,
            keep: (made) => stored.snapshots.keep(made),
            forget: (run) => stored.snapshots.forget(run),
          },
        }),
      );
      const runtime = chatRuntime(journal);
      await say(runtime.run('r'), 'go on');
      await runtime.close();
      expect(read.most).toBeGreaterThan(500);
      await expectAsFolded(chatRuntime(stored).run('r'), stored);
    }
    expect((await stored.snapshots.newest('r', FOLD_VERSION))?.head).toBeGreaterThan(kept.head);
  });

  it('a snapshot that does not go with the entries is not believed', async () => {
    const stored = open();
    await startChat(chatRuntime(stored), MANY_TURNS);
    // Entries of another run of the same name, such as one that was begun again after it was deleted.
    const shifted: Journal['read'] = async (...of) =>
      (await stored.read(...of)).map((entry): Entry => ({ ...entry, at: entry.at + 1 }));
    const run = chatRuntime(changed(stored, { read: shifted })).run('r');
    const folded = foldEntries(await shifted('r'));
    expect((await run.state()).updatedAt).toBe(folded.updatedAt);
    expect((await run.state()).startedAt).toBe(folded.startedAt);
  });
});

it('a run that another process has set right is read anew by those who know it', async () => {
  const path = temporaryFile();
  const journal = openJournal(path);
  const run = await startChat(chatRuntime(journal), 4);
  await run.steer('REDIRECT', { goal: 'another goal' });
  await run.result();
  expect(await run.state()).toMatchObject({ goal: 'another goal' });
  withDatabase(path, (db) => {
    const [{ id }] = db.prepare("SELECT id FROM entries WHERE body LIKE '%another goal%' ORDER BY id").all() as [
      { id: number },
    ];
    db.prepare('UPDATE entries SET body = ? WHERE id = ?').run('{"kind":"unheard_of"}', id);
  });
  const other = chatRuntime(openJournal(path)).run('r');
  await expect(other.state()).rejects.toMatchObject({ code: 'journal_newer' });
  expect(await other.repair({ by: 'olga' })).toMatchObject({ run: 'r' });
  await expectAsFolded(other, journal);
  await expectAsFolded(run, journal);
  expect(await run.state()).toMatchObject({ goal: 'hello' });
  const paused = (await recorded(run)).at(-1);
  expect(paused).toMatchObject({ type: 'run.paused', pauses: [{}, { payload: { by: 'repair' } }] });
});

it('a snapshot that says something else than the entries is found, and thrown away by a repair', async () => {
  const journal = memoryJournal();
  const run = await startChat(chatRuntime(journal), MANY_TURNS);
  expect(await run.diagnose()).toBeUndefined();
  const kept = await journal.snapshots.newest('r', FOLD_VERSION);
  const state = foldEntries(await journal.read('r', 1, kept?.head));
  const { body, blocks } = packState({ ...state, goal: 'another goal' }, 0);
  const snapshots: Journal['snapshots'] = {
    newest: async (id, version) => {
      const stored = await journal.snapshots.newest(id, version);
      return stored && { ...stored, body, blocks };
    },
    keep: (made) => journal.snapshots.keep(made),
    forget: (id) => journal.snapshots.forget(id),
  };
  const other = chatRuntime(changed(journal, { snapshots })).run('r');
  expect(await other.diagnose()).toMatchObject({ refused: [], messages: [], snapshot: kept?.head });
  const before = await journal.read('r');
  expect(await other.repair({ by: 'olga' })).toMatchObject({ snapshot: kept?.head });
  expect(await journal.snapshots.newest('r', FOLD_VERSION)).toBeUndefined();
  expect(await other.diagnose()).toBeUndefined();
  expect(await journal.read('r')).toEqual(before);
});

it('a snapshot that a process keeps of a run while it is looked at is not taken for a wrong one', async () => {
  const journal = memoryJournal();
  const driven = await startChat(chatRuntime(journal), MANY_TURNS);
  const before = await journal.snapshots.newest('r', FOLD_VERSION);
  const read: Journal['read'] = async (...of) => {
    const entries = await journal.read(...of);
    while ((await journal.snapshots.newest('r', FOLD_VERSION))?.head === before?.head) await say(driven, 'and on');
    return entries;
  };
  const other = chatRuntime(changed(journal, { read })).run('r');
  expect(await other.diagnose()).toBeUndefined();
  expect((await journal.snapshots.newest('r', FOLD_VERSION))?.head).toBeGreaterThan(before?.head ?? 0);
});

it('a failed run that somebody repaired meanwhile goes on from its entries, also where it was read before', async () => {
  const path = temporaryFile();
  let isMended = false;
  const planner: Planner = {
    name: 'twice',
    next: async (view) => {
      if (view.trajectory.steps.length === 0) return call('note');
      if (isMended) return { kind: 'finish', reason: 'goal', payload: JSON.stringify(view).includes('hear me') };
      throw new Error('Out of order.');
    },
  };
  const note = make('note', async () => {
    await driven.steer('USER_MESSAGE', { message: 'hear me' });
    return 'noted';
  });
  const open = (): Runtime => {
    const runtime = createRuntime({ planner, tools: [note], journal: openJournal(path), onFault: () => {} });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  const one = open();
  const driven = one.run('r');
  await one.start('go', { identity: local('ana', { run: 'r' }) });
  expect(await driven.result()).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('Out of order') },
  });
  expect((await driven.state()).head).toBeGreaterThan(4);

  withDatabase(path, (db) => db.exec(`UPDATE entries SET body = '{' WHERE body LIKE '%hear me%'`));
  const found = await open().run('r').repair({ by: 'olga' });
  expect(found?.refused).toHaveLength(1);
  isMended = true;
  await driven.resume();
  expect(await driven.result()).toMatchObject({ status: 'finished', payload: false });
  await expectAsFolded(driven, openJournal(path));
});

it('a run that goes on and on has a snapshot long before it ends, and one that ends soon has none', async () => {
  const journal = memoryJournal();
  const echo = make('echo', ({ n }) => n as number, { effect: 'read' });
  const next = ({ trajectory: { count }, query }: RunView): Decision =>
    count < Number(query)
      ? { kind: 'call_tool', tool: 'echo', args: { n: count } }
      : { kind: 'finish', reason: 'goal' };
  const runtime = createRuntime({ planner: { name: 'counts', next }, tools: [echo], journal });
  onTestFinished(() => runtime.close());
  const snapshotOfRun = async (run: string, steps: number): Promise<number | undefined> => {
    const limits = { steps: steps + 1 };
    await (await runtime.start(String(steps), { identity: local('ana', { run }), limits })).result();
    return (await journal.snapshots.newest(run, FOLD_VERSION))?.head;
  };
  expect(await snapshotOfRun('short', 300)).toBeUndefined();
  const head = (await snapshotOfRun('long', 2_150)) ?? 0;
  expect(head).toBeGreaterThanOrEqual(4_000);
  expect(head).toBeLessThan(4_200);
  const other = createRuntime({ planner: { name: 'counts', next }, tools: [echo], journal });
  onTestFinished(() => other.close());
  await expectAsFolded(other.run('long'), journal);
  expect(await other.run('long').result()).toMatchObject({ status: 'finished', usage: { steps: 2_150, calls: 2_150 } });
});

it('readers of a long run that has ended go through it page by page, and each entry is folded once for each of them', async () => {
  const { journal, read } = counted(memoryJournal());
  const echo = make('echo', ({ n }) => n as number, { effect: 'read' });
  const next = ({ trajectory: { count } }: RunView): Decision =>
    count < 2_100 ? { kind: 'call_tool', tool: 'echo', args: { n: count } } : { kind: 'finish', reason: 'goal' };
  const runtime = createRuntime({ planner: { name: 'counts', next }, tools: [echo], journal });
  onTestFinished(() => runtime.close());
  const run = await runtime.start('q', { identity: local('ana'), limits: { steps: 2_101 } });
  await run.result();
  read.entries = 0;
  const places = [1, 2_000, 3_500];
  const told = new Set<number>();
  for (let isMore = true; isMore; ) {
    isMore = false;
    for (const [reader, from] of places.entries()) {
      const page = await run.recorded({ from, limit: 100 });
      for (const { seq } of page.events) told.add(seq);
      isMore ||= page.next > from;
      places[reader] = page.next;
    }
  }
  const head = (await run.state()).head;
  expect(told.size).toBe(head);
  // Each reads its pages, and the fold comes behind it: the first one reads twice what there is.
  expect(read.entries).toBeLessThan(8 * head);
});
