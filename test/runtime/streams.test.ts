/** Streams of a run: rows that its tools write, in the order of their numbers, for whoever reads them and wherever. */
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PilotageError } from '#core';
import { type Journal, memoryJournal, type StreamAppend } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Run } from '#runtime';
import { crashEverywhere, VirtualClock } from '#testing';
import { ToolFailure } from '#tools';
import { builtFile } from '../kit/built.ts';
import { call, parallel, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { bear } from '../kit/lives.ts';
import { observations } from '../kit/run-record.ts';
import { PARENT, plays, spawns } from '../kit/tasks.ts';
import { echo, make, type Runs } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

async function valuesOf(run: Pick<Run, 'stream'>, name = 'log', from = 1): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { index, value } of run.stream(name, { from })) found.push([index, value]);
  return found;
}

/** A run with one call of a tool that writes, on a journal of each kind. */
const STORES = {
  memory: (clock: VirtualClock): Journal => memoryJournal({ clock }),
  SQLite: (clock: VirtualClock): Journal => sqliteJournal({ path: temporaryFile(), clock, watchIntervalMs: 5 }),
};

const writesSecret: Runs = async (_, { stream }) => {
  await stream('log').write('secret');
  return 'value';
};

async function streaming(
  writes: Runs,
  more: Partial<WorldOptions> & { readonly tool?: Parameters<typeof make>[2] } = {},
): Promise<World & { readonly run: Run }> {
  const { tool, ...options } = more;
  const made = world({ planner: script(call('writes')), tools: [make('writes', writes, tool)], ...options });
  onTestFinished(() => made.runtime.close());
  return { run: await start(made), ...made };
}

describe.each(Object.entries(STORES))('the streams of a run (%s)', (_, open) => {
  const on = (): Pick<World, 'clock' | 'journal'> => {
    const clock = new VirtualClock();
    const journal = open(clock);
    onTestFinished(() => journal.close());
    return { clock, journal };
  };

  it('have all rows of a call when it has ended, numbered in the order of writing, also when the tool waited for none', async () => {
    const { run } = await streaming((_, { stream }) => {
      const [log, other] = [stream('log'), stream('other')];
      void log.write('a');
      void other.write({ n: 1 });
      void log.write(['b']);
      return 'value';
    }, on());
    await run.result();
    expect(await valuesOf(run)).toEqual([
      [1, 'a'],
      [2, ['b']],
    ]);
    expect(await valuesOf(run, 'log', 2)).toEqual([[2, ['b']]]);
    expect(await valuesOf(run, 'other')).toEqual([[1, { n: 1 }]]);
    expect(await valuesOf(run, 'nothing')).toEqual([]);
    expect(await run.streams()).toEqual([
      { name: 'log', rows: 2, closed: false },
      { name: 'other', rows: 1, closed: false },
    ]);
  });

  it('are read while the call writes, and end when the run does', async () => {
    const go = gate();
    const made = await streaming(async (_, { stream }) => {
      await stream('log').write('early');
      await go.opened;
      await stream('log').write('late');
      return 'value';
    }, on());
    const rows = made.run.stream('log');
    const first = rows.next();
    let has = false;
    void first.then(() => (has = true));
    await advanceUntil(made.clock, () => has);
    expect(await first).toMatchObject({ value: { index: 1, value: 'early', step: 0, call: 0, attempt: 1 } });
    expect((await made.run.state()).open).not.toBeNull();
    go.open();
    expect(await rows.next()).toMatchObject({ value: { index: 2, value: 'late' } });
    expect(await rows.next()).toEqual({ done: true, value: undefined });
  });

  it('end for their readers when they are closed, and go on for whoever asks again when somebody writes after that', async () => {
    const entered = gate();
    const go = gate();
    const { run } = await streaming(async (_, { stream }) => {
      await stream('log').write(1);
      await stream('log').close();
      // As many rows as are stored without a wait.
      for (let n = 0; n < 1_000; n += 1) await stream('other').write(n);
      entered.open();
      await go.opened;
      await stream('log').write(2);
      return 'value';
    }, on());
    await entered.opened;
    expect(await valuesOf(run)).toEqual([[1, 1]]);
    expect((await run.streams())[0]).toEqual({ name: 'log', rows: 1, closed: true });
    go.open();
    await run.result();
    expect(await valuesOf(run, 'log', 2)).toEqual([[2, 2]]);
  });

  it('go on behind the rows of an attempt that failed, and each row says of which attempt it is', async () => {
    const { run, clock } = await streaming(
      async (_, { stream, attempt }) => {
        await stream('log').write(`part of ${attempt}`);
        if (attempt < 3) throw new ToolFailure('not yet', { retryable: true });
        return 'value';
      },
      { ...on(), random: () => 0 },
    );
    let isOver = false;
    void run.result().then(() => (isOver = true));
    await advanceUntil(clock, () => isOver);
    const rows = [];
    for await (const { index, value, attempt } of run.stream('log')) rows.push([index, value, attempt]);
    expect(rows).toEqual([
      [1, 'part of 1', 1],
      [2, 'part of 2', 2],
      [3, 'part of 3', 3],
    ]);
  });

  it('take rows of branches side by side, and of tasks into streams of their own', async () => {
    const writes = make('writes', async ({ name }, { stream }) => {
      for (const n of [1, 2, 3]) await stream('log').write(`${String(name)}${n}`);
      return 'value';
    });
    const branches = ['a', 'b'].map((name) => ({ tool: 'writes', args: { name } }));
    const { run } = await streaming(() => null, { ...on(), planner: script(parallel(branches)), tools: [writes] });
    await run.result();
    const rows = (await valuesOf(run)) as [number, string][];
    expect(rows.map(([index]) => index)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const name of ['a', 'b']) {
      const own = rows.filter(([, value]) => value.startsWith(name)).map(([, value]) => value);
      expect(own).toEqual([`${name}1`, `${name}2`, `${name}3`]);
    }
    const planner = plays({
      q: script(spawns('child', { task: 'foreground' })),
      child: script(call('writes', { name: 'c' })),
    });
    const above = world({ planner, tools: [writes], ...on() });
    const parent = await start(above, { identity: PARENT });
    await parent.result();
    const [task] = (await above.runtime.list({ parent: parent.id })) ?? [];
    expect(await valuesOf(parent)).toEqual([]);
    expect(await valuesOf(above.runtime.run(task?.identity.run ?? ''))).toHaveLength(3);
  });

  it('are gone when the person or the session is, and a fork has those of its own calls alone', async () => {
    const { run, runtime, journal } = await streaming(writesSecret, on());
    await run.result();
    const fork = await run.fork({ step: 1 });
    await fork.result();
    expect(await valuesOf(fork)).toEqual([]);
    const again = await run.fork({ step: 0 });
    await again.result();
    expect(await valuesOf(again)).toEqual([[1, 'secret']]);
    expect((await run.replay()).divergence).toBeUndefined();
    expect(await valuesOf(run)).toEqual([[1, 'secret']]);
    await runtime.erase({ tenant: 'local', user: 'ana' });
    expect([await valuesOf(run), await run.streams()]).toEqual([[], []]);
    const { identity } = await run.state();
    await journal.sessions.delete(identity);
    await expect(valuesOf(run)).rejects.toMatchObject({ code: 'run_not_found' });
  });
});

/** A journal that stores no row before `turn` has come. */
function slowed(inner: Journal, turn: () => Promise<void>): Journal {
  const { streams } = inner;
  const append = (rows: StreamAppend): Promise<void> => turn().then(() => streams.append(rows));
  const read: typeof streams.read = (...given) => streams.read(...given);
  return changed(inner, { streams: { append, read, list: (run) => streams.list(run) } });
}

describe('a store that does not answer', () => {
  /** The first append of all lands or not, and whoever asked for it is told that the store is out of reach. */
  function mute(journal: Journal, lands: boolean): Journal {
    const { streams } = journal;
    let isFirst = true;
    const append = async (rows: StreamAppend): Promise<void> => {
      const fails = isFirst;
      isFirst = false;
      if (!fails || lands) await streams.append(rows);
      if (fails) throw new PilotageError('journal_unavailable', 'The store did not answer.');
    };
    const read: typeof streams.read = (...given) => streams.read(...given);
    return changed(journal, { streams: { append, read, list: (run) => streams.list(run) } });
  }

  it.each([true, false])('has each row once all the same, whether it had stored them (%s) or not', async (lands) => {
    const clock = new VirtualClock();
    const writes: Runs = async (args, { stream }) => {
      const log = stream('log');
      for (let n = 1; n <= 3; n += 1) await log.write('tick');
      await stream('other').write(args);
      return 'value';
    };
    const made = world({
      planner: script(
        parallel([
          { tool: 'writes', args: { by: 'a' } },
          { tool: 'writes', args: { by: 'b' } },
        ]),
      ),
      tools: [make('writes', writes)],
      journal: mute(memoryJournal({ clock }), lands),
      clock,
    });
    onTestFinished(() => made.runtime.close());
    const run = await start(made);
    const result = run.result();
    await advanceUntil(clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    await result;
    expect(await valuesOf(run)).toEqual(Array.from({ length: 6 }, (_, index) => [index + 1, 'tick']));
    expect(await valuesOf(run, 'other')).toHaveLength(2);
  });
});

describe('what a stream refuses', () => {
  it.each([
    ['a value that is not JSON', (_, { stream }) => stream('log').write(() => {}), 'stream_refused'],
    ['nothing', (_, { stream }) => stream('log').write(undefined), 'stream_refused'],
    ['a row that is too large', (_, { stream }) => stream('log').write('x'.repeat(40_000)), 'stream_refused'],
    ['a name that is none', (_, { stream }) => stream('').close(), 'stream_refused'],
  ] as [string, Runs, string][])('%s is the error of the call', async (_, writes, code) => {
    const { run } = await streaming(writes);
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ error: { code } }]);
  });

  it('rows that come when the call has ended', async () => {
    const go = gate();
    const late = gate<unknown>();
    const { run } = await streaming((_, { stream }) => {
      void go.opened.then(() => stream('log').write('late')).catch((error: unknown) => late.open(error));
      return 'value';
    });
    await run.result();
    go.open();
    expect(await late.opened).toMatchObject({ code: 'cancelled' });
    expect(await valuesOf(run)).toEqual([]);
  });

  it('more than the store takes, from a tool that does not wait', async () => {
    const held = gate();
    const journal = slowed(memoryJournal(), () => held.opened);
    const { run } = await streaming(
      (_, { stream }) => {
        const text = 'x'.repeat(30_000);
        const written = Array.from({ length: 1_000 }, () => stream('log').write(text));
        held.open();
        return Promise.all(written);
      },
      { journal },
    );
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'stream_refused' } }]);
    expect((await valuesOf(run)).length).toBeGreaterThan(500);
  });

  it('a row, out of a timer of the tool, and tells of it when the tool does not wait', async () => {
    const heard = gate<unknown>();
    const { run, faults } = await streaming(async (_, { stream }) => {
      const log = stream('log');
      setImmediate(() => void log.write(1n));
      setImmediate(() => log.write(() => {}).catch((error: unknown) => heard.open(error)));
      await heard.opened;
      return 'value';
    });
    await run.result();
    expect(observations(await run.state())).toEqual(['value']);
    expect(await heard.opened).toMatchObject({ code: 'stream_refused' });
    expect(faults).toMatchObject([{ code: 'stream_refused' }]);
  });

  it('wrong options of a reader', async () => {
    const { run } = await streaming(() => 'value');
    expect(() => run.stream('log', { from: 0 })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    expect(() => run.stream('log', { form: 1 } as never)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    expect(() => run.stream('')).toThrow(expect.objectContaining({ code: 'stream_refused' }));
  });

  it('a reader who may not know of the run', async () => {
    const { run, runtime } = await streaming(writesSecret);
    await run.result();
    const ben = { tenant: 'local', user: 'ben', session: 'default', scope: 'session_user' } as const;
    const other = runtime.run(run.id, { as: ben });
    await expect(valuesOf(other)).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(other.streams()).rejects.toMatchObject({ code: 'run_not_found' });
  });
});

it('rows leave secrets out', async () => {
  const { run } = await streaming((_, { stream }) => stream('log').write({ key: 'swordfish' }), {
    redact: { rules: ['swordfish'] },
  });
  await run.result();
  expect(JSON.stringify(await valuesOf(run))).not.toContain('swordfish');
});

it('costs no commit a row', async () => {
  let appends = 0;
  const journal = slowed(memoryJournal(), async () => {
    appends += 1;
  });
  const { run } = await streaming(
    async (_, { stream }) => {
      for (let n = 0; n < 3_500; n += 1) await stream('log').write(n);
      return 'value';
    },
    { journal },
  );
  await run.result();
  expect(appends).toBeLessThanOrEqual(4);
  expect((await valuesOf(run)).map((row) => (row as [number])[0])).toEqual(
    Array.from({ length: 3_500 }, (_, n) => n + 1),
  );
});

it('has all rows of a call that has ended, without a gap, wherever the process died', async () => {
  const folder = dirname(temporaryFile());
  const stores = new Set<string>();
  const open = (store: string): string => join(folder, `${store}.db`);
  const report = await crashEverywhere(
    {
      name: 'streams',
      planner: script(call('writes'), call('echo')),
      query: 'q',
      journal: (clock, store) => {
        stores.add(store);
        return sqliteJournal({ path: open(store), clock, synchronous: 'normal' });
      },
      tools: (around) => [
        make('writes', async (_, context) => {
          const log = context.stream('log');
          await log.write('one');
          await around.effect(context);
          await log.write('two');
          return 'value';
        }),
        echo,
      ],
    },
    { doubles: 2 },
  );
  expect(report.violations).toEqual([]);
  expect(stores.size).toBeGreaterThan(10);
  for (const store of stores) {
    const journal = sqliteJournal({ path: open(store) });
    const [record] = await journal.list({});
    const { rows } = await journal.streams.read(record?.identity.run ?? '', 'log', 1, 100);
    expect(rows.map(({ index }) => index)).toEqual(rows.map((_, at) => at + 1));
    expect(rows.slice(-2).map(({ value }) => value)).toEqual(['one', 'two']);
    await journal.close();
  }
});

describe('streams of several processes', () => {
  const program = builtFile('test/runtime/stream-child.ts');

  it('have no gap and no row twice when writers and readers are killed between two rows', async () => {
    const folder = dirname(temporaryFile());
    const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
    onTestFinished(() => journal.close());
    const writer = bear({ program, folder, args: ['first'] }, () => {});
    const countOf = async (): Promise<number> =>
      (await journal.get('streaming')) === undefined ? 0 : ((await journal.streams.list('streaming'))[0]?.rows ?? 0);
    writer.child.stdin.write('one\ntwo\n');
    await until(async () => (await countOf()) === 2);
    const seen: string[] = [];
    const reader = bear({ program, folder, args: ['read'] }, (line) => {
      seen.push(line);
      if (line === '2 two') reader.child.kill('SIGKILL');
    });
    expect(await reader.end).toBe(true);
    writer.child.stdin.write('three\n');
    await until(async () => (await countOf()) === 3);
    writer.child.kill('SIGKILL');
    expect(await writer.end).toBe(true);
    const next = bear({ program, folder, args: ['read', '3'] }, (line) => seen.push(line));
    const second = bear({ program, folder, args: ['again'] }, () => {});
    expect(await second.end).toBe(false);
    expect(await next.end).toBe(false);
    expect(seen).toEqual(['1 one', '2 two', '3 three', '4 end']);
  });
});

it('a process that has lost the run writes no row', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const wrote = gate();
  const made = await streaming(
    async (_, { stream, signal }) => {
      await stream('log').write('of the zombie');
      wrote.open();
      await aborted(signal);
    },
    { clock, journal },
  );
  await wrote.opened;
  const owner = (await journal.get(made.run.id))?.lease?.owner ?? '';
  // Another process takes the run before the row is stored.
  expect(await journal.claim({ owner: 'other', leaseMs: 1_000, run: made.run.id, from: owner })).toBeDefined();
  await made.runtime.close();
  expect(await journal.streams.list(made.run.id)).toEqual([]);
});
