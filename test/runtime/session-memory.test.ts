import { describe, expect, it } from 'vitest';
import { local, PilotageError, type PlannerFunction, type Turn } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type MemoryOptions } from '#runtime';
import { foldEntries, toldRun } from '#state';
import { CrashProcess, CrashRecord, FaultyJournal, VirtualClock } from '#testing';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf } from '../kit/run-record.ts';
import { echo, holding } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const WINDOW: MemoryOptions = { strategy: 'window' };
const session = (name: string, user = 'ana'): ReturnType<typeof local> => local(user, { session: name });

/** Answers `re <query>`, and fails when it is asked to. */
const answering: PlannerFunction = ({ query }) => {
  if (query === 'crash') throw new Error('no planner any more');
  if (query === 'give up') return { kind: 'finish', reason: 'no_path', payload: 'I do not know.' };
  return finish(`re ${query}`);
};

async function ask(made: World, query: string, more: Parameters<typeof start>[1] = {}): Promise<void> {
  const run = await start(made, { identity: session('s'), ...more, query });
  await run.result();
}

/** What the runs of a session said, in the order in which they were started. */
async function remembered(journal: Journal, name = 's', user = 'ana', more: { readonly tenant?: string } = {}) {
  const { tenant, session: its } = { ...session(name, user), ...more };
  const records = await journal.list({ tenant, user, session: its, parent: null, limit: 200 });
  const runs = records.filter(({ conversation }) => conversation !== false).reverse();
  const turns = runs.map(async ({ identity: { run } }) => {
    const { query, answer } = toldRun(foldEntries(await journal.read(run)));
    return { run, user: query, assistant: answer?.payload ?? null };
  });
  return { turns: await Promise.all(turns), count: runs.length };
}

const words = (turns: readonly Turn[] | undefined): string[] =>
  (turns ?? []).map(({ role, text }) => `${role}: ${text}`);

describe('the memory of a session', () => {
  it('gives a run the earlier turns as its history, and records them with its start', async () => {
    const planner = watched(answering);
    const made = world({ planner, memory: WINDOW });
    await ask(made, 'What is the weather in Oslo?');
    await ask(made, 'and tomorrow?');
    const run = await start(made, { identity: session('s'), query: 'and then?' });
    await run.result();
    const expected = [
      'user: What is the weather in Oslo?',
      'assistant: re What is the weather in Oslo?',
      'user: and tomorrow?',
      'assistant: re and tomorrow?',
    ];
    expect(planner.views.map((view) => words(view.history))).toEqual([[], expected.slice(0, 2), expected]);
    const [started] = await entriesOf(made.journal, run, 'started');
    expect(started?.history).toBeUndefined();
    expect(started?.continues?.runs).toHaveLength(2);
    expect(JSON.stringify(started)).not.toContain('Oslo');
    expect(started?.context).toBeUndefined();
  });

  it('is off by default, and may be replaced for one run', async () => {
    const planner = watched(answering);
    const plain = world({ planner });
    await ask(plain, 'one');
    const made = world({ planner, memory: WINDOW, journal: plain.journal, clock: plain.clock });
    await ask(made, 'two', { history: [{ role: 'user', text: 'said elsewhere' }] });
    await ask(made, 'three', { history: [] });
    await ask(made, 'four');
    expect(planner.views.map((view) => words(view.history))).toEqual([
      [],
      ['user: said elsewhere'],
      [],
      ['one', 'two', 'three'].flatMap((said) => [`user: ${said}`, `assistant: re ${said}`]),
    ]);
  });

  it('MS-08 is that of the tenant, user and session alone', async () => {
    const planner = watched(answering);
    const made = world({ planner, memory: WINDOW });
    await ask(made, 'secret');
    const others = [session('t'), session('s', 'ben'), { ...session('s'), tenant: 'other' }];
    for (const identity of others) await ask(made, 'What did I say?', { identity });
    expect(planner.views.map((view) => view.history)).toEqual([[], [], [], []]);
    for (const { tenant, user, session: name } of others)
      expect((await remembered(made.journal, name, user, { tenant })).count).toBe(1);
  });

  it('MS-09 MS-10 RL-19 has a turn of every ending; what was not answered is marked', async () => {
    const planner = watched(answering);
    const { tool, entered } = holding();
    const holds: PlannerFunction = (view, signal) =>
      view.query === 'stop me' && view.trajectory.count === 0 ? call('hold') : planner(view, signal);
    const made = world({ planner: holds, tools: [tool], memory: WINDOW });
    await ask(made, 'fine');
    await ask(made, 'crash');
    await ask(made, 'give up');
    const run = await start(made, { identity: session('s'), query: 'stop me' });
    await entered;
    await run.cancel();
    await run.result();
    await ask(made, 'spent', { limits: { steps: 0 } });
    const { turns } = await remembered(made.journal);
    expect(turns.map(({ user, assistant }) => [user, assistant])).toEqual([
      ['fine', 're fine'],
      ['crash', null],
      ['give up', null],
      ['stop me', null],
      ['spent', null],
    ]);
    await ask(made, 'go on');
    const history = words(planner.views.at(-1)?.history);
    expect(history.slice(0, 4)).toEqual([
      'user: fine',
      'assistant: re fine',
      'user: crash',
      'assistant: (There is no answer.)',
    ]);
    const roles = (one: string): string[] =>
      one === 'stop me' ? ['user', 'assistant', 'tool', 'assistant'] : ['user', 'assistant'];
    expect(planner.views.at(-1)?.history.map(({ role }) => role)).toEqual(turns.flatMap(({ user }) => roles(user)));
  });

  it('MS-11 has no turn of a run that nobody began by hand, and tells it nothing', async () => {
    const planner = watched(answering);
    const made = world({ planner, memory: WINDOW });
    await ask(made, 'one');
    const task = await start(made, { identity: session('s'), query: 'a task', conversation: false });
    expect(await task.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(planner.views.at(-1)?.history).toEqual([]);
    expect((await remembered(made.journal)).turns.map(({ user }) => user)).toEqual(['one']);
  });

  it('MS-11 leaves a task out also when another process ends it', async () => {
    const journal = memoryJournal();
    const { tool, entered } = holding();
    const first = world({ planner: answering, tools: [tool], memory: WINDOW, journal, maxLiveRuns: 1 });
    const blocked = world({ planner: script(call('hold')), tools: [tool], journal, maxLiveRuns: 1, memory: WINDOW });
    const held = await start(blocked, { identity: session('other') });
    await entered;
    // They wait in line there, and are driven here.
    const task = await start(blocked, { identity: session('s'), query: 'a task', conversation: false });
    const turn = await start(blocked, { identity: session('s'), query: 'a turn' });
    for (const { id } of [task, turn]) await first.runtime.run(id).resume();
    await first.runtime.run(task.id).result();
    await first.runtime.run(turn.id).result();
    expect((await remembered(journal)).turns.map(({ user }) => user)).toEqual(['a turn']);
    await held.cancel();
    await blocked.runtime.close();
  });

  it('has at most the turns of the window: when it is full, older ones leave until half of it is told', async () => {
    const planner = watched(answering);
    const made = world({ planner, memory: { strategy: 'window', turns: 4 } });
    for (let query = 1; query <= 8; query += 1) await ask(made, String(query));
    const told = planner.views.map(({ history }) =>
      history.flatMap(({ role, text }) => (role === 'user' ? [text] : [])),
    );
    expect(told.map((texts) => texts.join(' '))).toEqual([
      '',
      '1',
      '1 2',
      '1 2 3',
      '1 2 3 4',
      '4 5',
      '4 5 6',
      '4 5 6 7',
    ]);
    expect((await remembered(made.journal)).count).toBe(8);
  });

  it('has every text whole', async () => {
    const planner = watched(({ query }) =>
      finish(query.startsWith('q') ? 'x'.repeat(20_000) : `${'y'.repeat(40_000)}€`),
    );
    const made = world({ planner, memory: WINDOW });
    await ask(made, 'q'.repeat(20_000));
    await ask(made, 'large');
    await ask(made, 'last');
    expect(planner.views.at(-1)?.history.map(({ text }) => text)).toEqual([
      'q'.repeat(20_000),
      'x'.repeat(20_000),
      'large',
      `${'y'.repeat(40_000)}€`,
    ]);
  });

  it('is not read twice: a run that goes on elsewhere has the history of its start', async () => {
    const journal = memoryJournal();
    const planner = watched((view) => (view.trajectory.count === 0 ? call('echo') : finish('done')));
    const made = world({ planner, tools: [echo], memory: WINDOW, journal });
    await ask(made, 'one');
    const paused = await start(made, { identity: session('s'), query: 'two' });
    await paused.pause();
    await paused.result();
    await ask(made, 'three');
    await made.runtime.close();
    const later = world({ planner, tools: [echo], memory: WINDOW, journal });
    const run = later.runtime.run(paused.id);
    await run.resume();
    await run.result();
    expect(words(planner.views.at(-1)?.history)).toEqual(['user: one', 'assistant: ', 'tool: ', 'assistant: done']);
    expect((await remembered(journal)).turns.map(({ user }) => user)).toEqual(['one', 'two', 'three']);
  });

  it('RL-18 starts nothing when it cannot be read', async () => {
    const base = memoryJournal();
    const list = () => Promise.reject(new PilotageError('journal_corrupt', 'Damaged.'));
    const made = world({ planner: answering, memory: WINDOW, journal: changed(base, { list }) });
    await expect(start(made)).rejects.toMatchObject({ code: 'journal_corrupt' });
    expect(await base.list({})).toEqual([]);
  });

  it.each([
    [{ strategy: 'window', turns: 0 }, 'memory.turns is 0'],
    [{ strategy: 'window', turns: 1.5 }, 'memory.turns is 1.5'],
    [{ strategy: 'summary' }, 'memory.strategy must be none or window'],
    [{ strategy: 'all' }, 'memory.strategy must be'],
  ])('refuses %j', (memory, message) => {
    expect(() => createRuntime({ planner: answering, memory: memory as MemoryOptions })).toThrow(message);
  });
});

describe('a crash around the ending', () => {
  it('leaves the turn exactly when it leaves the ending, and a run that goes on leaves it once', async () => {
    const points = await playCrash(undefined);
    expect(points).toContainEqual(expect.stringContaining('after append moved + finished'));
    for (const index of points.keys()) await playCrash(index);
  });

  /** Runs until the process dies at that point, looks at what is stored, and lets another process go on. */
  async function playCrash(dieAt: number | undefined): Promise<readonly string[]> {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const record = new CrashRecord(() => undefined);
    const process = new CrashProcess(dieAt);
    const planner = script(call('echo'));
    const options = { planner, tools: [echo], memory: WINDOW };
    const made = world({ ...options, journal: new FaultyJournal(journal, process, record), clock });
    const identity = session('s');
    const play = start(made, { identity, query: 'one' }).then((run) => run.result());
    await Promise.race([play, process.died]);
    await process.settle();
    const ended = (await journal.get(identity.run))?.status === 'finished';
    const answers = (await remembered(journal)).turns.map(({ assistant }) => assistant);
    if (answers.length > 0) expect(answers).toEqual([ended ? 'done' : null]);
    if (process.alive) {
      await made.runtime.close();
      return process.points;
    }
    const heir = world({ ...options, journal: new FaultyJournal(journal, new CrashProcess(), record), clock });
    const run = await heir.runtime.start('one', { identity });
    await run.result();
    const { turns } = await remembered(journal);
    expect(turns).toMatchObject([{ run: identity.run, user: 'one', assistant: 'done' }]);
    await heir.runtime.close();
    return process.points;
  }

  it('an ending that was written twice, because its answer was lost, leaves one turn', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let lost = false;
    const journal = changed(base, {
      append: async (append) => {
        await base.append(append);
        if (append.status !== 'finished' || lost) return;
        lost = true;
        throw new PilotageError('journal_busy', 'Nobody knows what became of it.');
      },
    });
    const made = world({ planner: answering, memory: WINDOW, journal, clock });
    const run = await start(made, { identity: session('s'), query: 'one' });
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(lost).toBe(true);
    expect((await remembered(base)).turns).toMatchObject([{ user: 'one', assistant: 're one' }]);
  });
});
