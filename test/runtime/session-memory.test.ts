import { describe, expect, it, onTestFinished } from 'vitest';
import { local, PilotageError, type PlannerFunction, type Turn } from '#core';
import { type Journal, memoryJournal, type SessionSummary } from '#journal';
import { createRuntime, type MemoryOptions, type SummaryInput, turnsOfRun } from '#runtime';
import { CrashProcess, CrashRecord, FaultyJournal, VirtualClock } from '#testing';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf } from '../kit/run-record.ts';
import { echo, holding } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
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

/** What the runs of a session said, in the order in which they were started, and how many of them its summary covers. */
async function remembered(journal: Journal, name = 's', user = 'ana', more: { readonly tenant?: string } = {}) {
  const scope = { ...session(name, user), ...more };
  const { tenant, session: its } = scope;
  const records = await journal.list({ tenant, user, session: its, parent: null, limit: 200 });
  const runs = records.filter(({ conversation }) => conversation !== false).reverse();
  const turns = await Promise.all(
    runs.map(({ identity: { run }, head }) => turnsOfRun(run, head, scope, { journal, artifacts: journal.artifacts })),
  );
  const stored = await journal.memory.summary(scope);
  const { through, without = [], ...summary } = stored ?? { through: '' };
  const covers = runs.findIndex(({ identity }) => identity.run === through) + 1 - without.length;
  return { turns: turns.flat(), count: turns.flat().length, summary: stored && { ...summary, covers } };
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
    expect(planner.views.at(-1)?.history.map(({ role }) => role)).toEqual(turns.flatMap(() => ['user', 'assistant']));
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

  it('keeps the last turns of the window only', async () => {
    const planner = watched(answering);
    const made = world({ planner, memory: { strategy: 'window', turns: 2 } });
    for (const query of ['1', '2', '3', '4']) await ask(made, query);
    expect(words(planner.views.at(-1)?.history)).toEqual(['user: 2', 'assistant: re 2', 'user: 3', 'assistant: re 3']);
    expect((await remembered(made.journal)).count).toBe(4);
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
    expect(words(planner.views.at(-1)?.history)).toEqual(['user: one', 'assistant: done']);
    expect((await remembered(journal)).turns.map(({ user }) => user)).toEqual(['one', 'two', 'three']);
  });

  it('RL-18 starts nothing when it cannot be read', async () => {
    const base = memoryJournal();
    const list = () => Promise.reject(new PilotageError('journal_corrupt', 'Damaged.'));
    const made = world({ planner: answering, memory: WINDOW, journal: changed(base, { list }) });
    await expect(start(made)).rejects.toMatchObject({ code: 'journal_corrupt' });
    expect(await base.list({})).toEqual([]);
  });

  const summarise = async (): Promise<string> => 'text';
  it.each([
    [{ strategy: 'window', turns: 0 }, 'memory.turns is 0'],
    [{ strategy: 'summary', turns: 1.5, summarise }, 'memory.turns is 1.5'],
    [{ strategy: 'summary', retries: 0, summarise }, 'memory.retries is 0'],
    [{ strategy: 'summary' }, 'memory.summarise must be a function'],
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

interface Summarised extends World {
  readonly inputs: SummaryInput[];
  readonly planner: ReturnType<typeof watched>;
  summary(): Promise<Awaited<ReturnType<typeof remembered>>['summary']>;
}

/** Keeps two turns, and writes the numbers of the turns that a summary covers. */
function summarised(write: (call: number, signal: AbortSignal) => Promise<void> | void = () => {}): Summarised {
  const inputs: SummaryInput[] = [];
  const planner = watched(answering);
  const made = world({
    planner,
    memory: {
      strategy: 'summary',
      turns: 2,
      summarise: async (input: SummaryInput, signal: AbortSignal): Promise<string> => {
        inputs.push(input);
        await write(inputs.length, signal);
        return [input.previous ?? 'of', ...input.turns.map(({ user }) => user)].join(' ');
      },
    },
  });
  onTestFinished(() => made.runtime.close());
  return { ...made, inputs, planner, summary: async () => (await remembered(made.journal)).summary };
}

const users = (made: Summarised): string[] =>
  (made.planner.views.at(-1)?.history ?? []).flatMap(({ role, text }) => (role === 'user' ? [text] : []));

describe('the summary of a session', () => {
  it('covers what is before the window, and is told beside the history', async () => {
    const made = summarised();
    for (const query of ['1', '2', '3', '4', '5']) {
      await ask(made, query);
      await quiet();
    }
    expect(made.inputs.map(({ previous, turns }) => [previous, turns.map(({ user }) => user)])).toEqual([
      [undefined, ['1']],
      ['of 1', ['2']],
      ['of 1 2', ['3']],
    ]);
    expect(await made.summary()).toMatchObject({ text: 'of 1 2 3', covers: 3, health: 'healthy', failures: 0 });
    const run = await start(made, { identity: session('s'), query: '6' });
    await run.result();
    expect(users(made)).toEqual(['4', '5']);
    const [started] = await entriesOf(made.journal, run, 'started');
    expect(started?.context?.conversationMemory).toEqual({ strategy: 'summary', summary: 'of 1 2 3' });
    expect(made.planner.views.at(-1)?.context.conversationMemory).toEqual(started?.context?.conversationMemory);
  });

  it('gives way to what the caller says of the conversation', async () => {
    const made = summarised();
    for (const query of ['1', '2', '3']) await ask(made, query);
    await until(async () => (await made.summary())?.covers === 1);
    const mine = { note: 'mine' };
    await ask(made, '4', { context: { conversationMemory: mine } });
    expect(made.planner.views.at(-1)?.context.conversationMemory).toEqual(mine);
    expect(Object.isFrozen(mine)).toBe(false);
    expect(users(made)).toEqual(['2', '3']);
  });

  it('holds no result back; until it has caught up the window grows to twice its size', async () => {
    const slow = gate();
    const made = summarised(() => slow.opened);
    const shown: string[][] = [];
    for (const query of ['1', '2', '3', '4', '5', '6']) {
      await ask(made, query);
      shown.push(users(made));
    }
    expect(shown.slice(3)).toEqual([
      ['1', '2', '3'],
      ['1', '2', '3', '4'],
      ['2', '3', '4', '5'],
    ]);
    expect(made.inputs).toHaveLength(1);
    slow.open();
    await until(async () => (await made.summary())?.covers === 4);
    expect(await made.summary()).toMatchObject({ text: 'of 1 2 3 4' });
    expect(made.inputs).toHaveLength(2);
    await ask(made, '7');
    expect(users(made)).toEqual(['5', '6']);
  });

  it('is tried again after a failure, later each time, and told to onFault', async () => {
    const made = summarised((nth) => {
      if (nth <= 2) throw new Error(`down ${nth}`);
    });
    for (const query of ['1', '2', '3']) await ask(made, query);
    await until(async () => (await made.summary())?.failures === 1);
    expect(await made.summary()).toMatchObject({ text: '', covers: 0, health: 'retrying' });
    await ask(made, '4');
    expect(users(made)).toEqual(['1', '2', '3']);
    expect(made.planner.views.at(-1)?.context).toEqual({});
    await advanceUntil(made.clock, async () => (await made.summary())?.health === 'healthy');
    expect(await made.summary()).toMatchObject({ text: 'of 1 2', covers: 2, failures: 0 });
    expect(made.faults.map(String)).toEqual(['Error: down 1', 'Error: down 2']);
  });

  it('that failed too often leaves the window alone, until a later ending brings it back', async () => {
    let down = true;
    const made = summarised(() => {
      if (down) throw new Error('down');
    });
    for (const query of ['1', '2', '3', '4']) await ask(made, query);
    await advanceUntil(made.clock, async () => (await made.summary())?.health === 'degraded');
    expect(made.inputs).toHaveLength(3);
    expect(made.clock.pending).toBe(0);
    await ask(made, '5');
    expect(users(made)).toEqual(['3', '4']);
    await until(() => made.inputs.length === 4);
    await until(async () => (await made.summary())?.failures === 4);
    down = false;
    await ask(made, '6');
    await until(async () => (await made.summary())?.health === 'healthy');
    expect(await made.summary()).toMatchObject({ text: 'of 1 2 3 4', covers: 4, failures: 0 });
    await ask(made, '7');
    expect(users(made)).toEqual(['5', '6']);
  });

  it('is taken in parts when much has to be caught up', async () => {
    const journal = memoryJournal();
    const plain = world({ planner: answering, memory: WINDOW, journal });
    for (let count = 1; count <= 10; count += 1) await ask(plain, String(count));
    const sizes: number[] = [];
    const summarise = async ({ previous = 'of', turns }: SummaryInput): Promise<string> => {
      sizes.push(turns.length);
      return [previous, ...turns.map(({ user }) => user)].join(' ');
    };
    const made = world({ planner: answering, journal, memory: { strategy: 'summary', turns: 2, summarise } });
    await ask(made, '11');
    await until(async () => (await remembered(journal)).summary?.covers === 9);
    expect((await remembered(journal)).summary?.text).toBe('of 1 2 3 4 5 6 7 8 9');
    expect(sizes).toEqual([4, 4, 1]);
    await made.runtime.close();
  });

  it('of another process that was first stays', async () => {
    const slow = gate();
    const made = summarised(() => slow.opened);
    for (const query of ['1', '2', '3']) await ask(made, query);
    await until(() => made.inputs.length === 1);
    const [oldest] = (await made.journal.list({})).slice(-1);
    const through = oldest?.identity.run ?? '';
    const theirs: SessionSummary = {
      text: 'theirs',
      through,
      without: [],
      health: 'healthy',
      failures: 0,
      updatedAt: 1,
    };
    expect(await made.journal.memory.summarise(session('s'), undefined, theirs)).toBe(true);
    slow.open();
    await made.runtime.close();
    expect(await made.journal.memory.summary(session('s'))).toEqual(theirs);
    expect(made.faults).toEqual([]);
  });

  it('must be text', async () => {
    const memory: MemoryOptions = { strategy: 'summary', turns: 1, retries: 1, summarise: async () => ' ' };
    const made = world({ planner: answering, memory });
    for (const query of ['1', '2']) await ask(made, query);
    await until(async () => (await remembered(made.journal)).summary?.health === 'degraded');
    expect(made.faults).toMatchObject([{ code: 'invalid_config' }]);
    await made.runtime.close();
  });

  it('that is being written is waited for at the close', async () => {
    const slow = gate();
    const made = summarised(() => slow.opened);
    for (const query of ['1', '2', '3']) await ask(made, query);
    await until(() => made.inputs.length === 1);
    let closed = false;
    const closing = made.runtime.close().then(() => {
      closed = true;
    });
    await quiet();
    expect(closed).toBe(false);
    slow.open();
    await closing;
    expect(await made.summary()).toMatchObject({ text: 'of 1' });
    expect(made.clock.pending).toBe(0);
  });

  it('that takes too long is aborted at the close, and stores nothing', async () => {
    let aborted = false;
    const late = gate();
    const made = summarised((_, signal) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return late.opened;
    });
    for (const query of ['1', '2', '3']) await ask(made, query);
    await until(() => made.inputs.length === 1);
    const closing = made.runtime.close();
    await quiet();
    made.clock.advance(5_000);
    await closing;
    expect(aborted).toBe(true);
    late.open();
    await quiet();
    expect(await made.summary()).toBeUndefined();
    expect(made.faults).toEqual([]);
  });

  it('waits for no further try at the close', async () => {
    const made = summarised(() => {
      throw new Error('down');
    });
    for (const query of ['1', '2', '3']) await ask(made, query);
    await until(async () => (await made.summary())?.failures === 1);
    await made.runtime.close();
    expect(made.inputs).toHaveLength(1);
    expect(made.clock.pending).toBe(0);
  });

  it('cannot be stored: that is told, and the runs go on', async () => {
    const base = memoryJournal();
    const memory = {
      summary: base.memory.summary.bind(base.memory),
      erase: base.memory.erase.bind(base.memory),
      summarise: () => Promise.reject(new PilotageError('journal_full', 'The disk is full.')),
    };
    const made = world({
      planner: answering,
      journal: changed(base, { memory }),
      memory: { strategy: 'summary', turns: 1, summarise: async () => 'text' },
    });
    for (const query of ['1', '2']) await ask(made, query);
    await until(() => made.faults.length === 1);
    expect(made.faults).toMatchObject([{ code: 'journal_full' }]);
    await made.runtime.close();
  });
});
