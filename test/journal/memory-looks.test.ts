/** How many runs a journal in memory looks at for what is asked: those that it is about, and not all that are stored. */
import { describe, expect, it } from 'vitest';
import { type Journal, memoryJournal, type RunQuery } from '#journal';
import { createWaiting, eventWait, identity, newRun, newTask, startedEntry, step } from '#testing';

const RUNS = 300;

async function filled(): Promise<Journal> {
  const journal = memoryJournal();
  for (let run = 0; run < RUNS; run += 1) {
    const of = identity(`run_${run}`, { session: `s${run % 100}` });
    await journal.create({ ...newRun(`run_${run}`), identity: of, entries: [startedEntry(of)] });
  }
  for (const task of ['task_1', 'task_2']) await journal.create(newTask(task, 'run_7'));
  return journal;
}

/** Each run that is looked at is asked for its labels: these are none, and count how often they are read. */
async function looksOf(journal: Journal, query: RunQuery): Promise<{ looks: number; found: string[] }> {
  let looks = 0;
  const count = (): string[] => {
    looks += 1;
    return [];
  };
  const found = await journal.list({ ...query, labels: new Proxy({}, { ownKeys: count }) });
  return { looks, found: found.map(({ identity: { run } }) => run) };
}

describe('a list of a journal in memory', () => {
  const { tenant, user } = identity('run_1');
  it.each([
    ['the tasks of a run', { parent: 'run_7' }, ['task_2', 'task_1']],
    ['the tasks of a run without any', { parent: 'run_8' }, []],
    ['a session', { tenant, user, session: 's8' }, ['run_208', 'run_108', 'run_8']],
    ['a session behind a run', { tenant, user, session: 's8', after: 'run_208' }, ['run_108', 'run_8']],
    ['a page of all, behind a run', { limit: 2, after: 'run_100' }, ['run_99', 'run_98']],
  ] as const)('looks at %s, and at no other run', async (_, query, runs) => {
    const { looks, found } = await looksOf(await filled(), query);
    expect(found).toEqual(runs);
    expect(looks).toBe(runs.length);
  });

  it('has no runs that were deleted, and all others in their order', async () => {
    const journal = await filled();
    for (let session = 0; session < 90; session += 1)
      await journal.sessions.delete({ tenant, user, session: `s${session}` });
    const { looks, found } = await looksOf(journal, { parent: null, limit: 5, after: 'run_292' });
    expect(found).toEqual(['run_291', 'run_290', 'run_199', 'run_198', 'run_197']);
    expect(looks).toBe(5);
  });
});

it('a page of what waits is read from its beginning on, and is in order also where a wait was told anew', async () => {
  const journal = memoryJournal();
  const waits = Array.from({ length: RUNS }, (_, wait) => eventWait(wait, `key ${wait}`));
  const claim = await createWaiting(journal, 'run_1', ...waits);
  await journal.append(step(claim, 2, { waits: { adds: [eventWait(0, 'another key')] } }));
  let looks = 0;
  const { tenant } = identity('run_1');
  const counting = {
    limit: 5,
    get tenant() {
      looks += 1;
      return tenant;
    },
  };
  const page = await journal.waits.list(counting);
  expect(page.map(({ key }) => key)).toEqual(['another key', 'key 1', 'key 2', 'key 3', 'key 4']);
  expect(looks).toBeLessThan(15);
});

describe('what a journal in memory remembers', () => {
  const place = (item: number) => ({ namespace: ['acme', `ana ${item % 10}`], key: `key ${1_000 + item}` });

  it.each([
    ['the first page of a namespace', ['acme', 'ana 7'], undefined, [7, 17]],
    ['a page behind an item', ['acme', 'ana 7'], 127, [137, 147]],
    ['a page of what lies below, over its ends', ['acme'], 291, [2, 12]],
  ] as const)('is read as %s, with a look at what stands there alone', async (_, namespace, after, items) => {
    const { store } = memoryJournal();
    await store.write(Array.from({ length: RUNS }, (_item, item) => ({ ...place(item), value: item })));
    let looks = 0;
    const count = (): string[] => {
      looks += 1;
      return [];
    };
    const query = { namespace, limit: 2, filter: new Proxy({}, { ownKeys: count }) };
    const found = await store.list(query, after === undefined ? undefined : place(after));
    expect(found.map(({ value }) => value)).toEqual(items);
    // The one behind the page may be looked at.
    expect(looks).toBeLessThanOrEqual(3);
  });
});
