/** Code of a run that waits for other runs: its slot is lent to what it waits for, so that nobody starves. On SQLite. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, local, type PlannerFunction } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Run, type Runtime } from '#runtime';
import type { AnyTool } from '#tools';
import { call, finish, named, parallel, pause, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { make } from '../kit/tools.ts';
import { gate, quiet, until } from '../kit/waiting.ts';

interface Asked {
  readonly planners: Readonly<Record<string, PlannerFunction>>;
  readonly tools: readonly AnyTool[];
  readonly maxLiveRuns?: number;
}

/** A runtime with an agent for each planner, the first of which is the default, and its slots. */
function runtimeOf({ planners, tools, maxLiveRuns }: Asked): Runtime {
  const journal = sqliteJournal({ path: temporaryFile() });
  const agents = Object.entries(planners).map(([name, next]) => ({ name, planner: { name, next }, tools }));
  const limits = maxLiveRuns === undefined ? {} : { maxLiveRuns };
  const runtime = createRuntime({ agents, journal, ...limits });
  onTestFinished(async () => {
    await runtime.close();
    await journal.close();
  });
  return runtime;
}

const payloadOf = async (run: Run): Promise<unknown> => {
  const result = await run.result();
  return result.status === 'finished' ? result.payload : result.status;
};

const pendingIn = async (runtime: Runtime): Promise<readonly string[]> =>
  (await runtime.list({ status: ['pending'] })).map(({ identity }) => identity.run);

/** What the last call came to. */
const tell: PlannerFunction = (run) => {
  const outcome = run.trajectory.step(run.trajectory.count - 1)?.calls[0]?.outcome;
  return finish(outcome?.kind === 'value' ? outcome.value : null);
};

const thenTell =
  (first: ReturnType<typeof call>): PlannerFunction =>
  (run, signal) =>
    run.trajectory.count === 0 ? first : tell(run, signal);

/** How many run at once, and the most that ever did. */
function counter(): { readonly most: () => number; during<T>(work: () => Promise<T>): Promise<T> } {
  let live = 0;
  let most = 0;
  return {
    most: () => most,
    during: async (work) => {
      live += 1;
      most = Math.max(most, live);
      try {
        return await work();
      } finally {
        live -= 1;
      }
    },
  };
}

describe('a tool that waits for a run of the same runtime', () => {
  it('gets its result, in thirty runs at once, with the default limits', async () => {
    const inner = counter();
    const runtime = runtimeOf({
      planners: { outer: thenTell(call('ask')), inner: thenTell(call('work')) },
      tools: [
        make('ask', async (_, { identity }) => {
          const run = await runtime.start('inner', { agent: 'inner', identity: local('ana') });
          return { of: identity.run, said: (await payloadOf(run)) as string };
        }),
        make('work', () => inner.during(() => quiet().then(() => 'done'))),
      ],
    });
    const runs = await Promise.all(Array.from({ length: 30 }, () => runtime.start('outer')));
    const payloads = await Promise.all(runs.map(payloadOf));
    expect(payloads).toEqual(runs.map(({ id }) => ({ of: id, said: 'done' })));
    expect(inner.most()).toBeLessThanOrEqual(10);
  });

  it('lends the slot on, however deep, with one slot', async () => {
    const level: PlannerFunction = (run, signal) =>
      run.query === '0' ? finish('bottom') : thenTell(call('down', { to: String(Number(run.query) - 1) }))(run, signal);
    const runtime = runtimeOf({
      planners: { level },
      tools: [make('down', async ({ to }) => (await payloadOf(await runtime.start(to as string))) as string)],
      maxLiveRuns: 1,
    });
    expect(await payloadOf(await runtime.start('6'))).toBe('bottom');
  });

  it('lends it to one run at a time, when calls beside each other wait', async () => {
    const inner = counter();
    const runtime = runtimeOf({
      planners: { outer: script(parallel(named('ask', 'ask', 'ask', 'ask'))), inner: thenTell(call('work')) },
      tools: [
        make('ask', async () => (await payloadOf(await runtime.start('q', { agent: 'inner' }))) as string),
        make('work', () => inner.during(() => quiet().then(() => 'done'))),
      ],
      maxLiveRuns: 1,
    });
    const run = await runtime.start('outer');
    expect(await payloadOf(run)).toBe('done');
    const [step] = (await run.trajectory()).steps;
    expect(step?.calls.map(({ outcome }) => outcome)).toEqual(Array(4).fill({ kind: 'value', value: 'done' }));
    expect(inner.most()).toBe(1);
  });

  it('lends it to the tasks of the run that it waits for, and to one that goes on after a pause', async () => {
    const helper = { name: 'helper', planner: { name: 'helper', next: () => finish('helped') }, tools: [] };
    const help = { name: 'help', description: 'help', inputSchema: { type: 'object' as const }, agent: helper };
    const inner: PlannerFunction = (run, signal) =>
      run.trajectory.count === 0 ? pause : run.trajectory.count === 1 ? call('help') : tell(run, signal);
    const runtime = runtimeOf({
      planners: { outer: thenTell(call('ask')), inner },
      tools: [
        help,
        make('ask', async () => {
          const run = await runtime.start('q', { agent: 'inner' });
          expect((await run.result()).status).toBe('paused');
          await run.approve();
          return (await payloadOf(run)) as string;
        }),
      ],
      maxLiveRuns: 1,
    });
    expect(await payloadOf(await runtime.start('outer'))).toBe('helped');
  });

  it('lends it to the task that it waits for, and not to another one that has waited longer', async () => {
    const done: string[] = [];
    const spawn = (query: string): Decision => ({
      kind: 'spawn_task',
      task: 'background',
      spec: { description: query, query },
    });
    const outer = script(spawn('other'), spawn('wanted'), call('ask'));
    const runtime = runtimeOf({
      planners: { all: (run, signal) => (run.query === 'outer' ? outer : thenTell(call('work')))(run, signal) },
      tools: [
        make('ask', async (_, { identity }) => {
          const { status } = await runtime.run(`${identity.run}.1.0`).result();
          done.push('asked');
          return status;
        }),
        make('work', (_, { identity }) => {
          done.push(identity.run);
          return null;
        }),
      ],
      maxLiveRuns: 1,
    });
    const { id } = await runtime.start('outer');
    await until(() => done.length === 3);
    expect(done).toEqual([`${id}.1.0`, 'asked', `${id}.0.0`]);
  });

  it('lends it to a run whose events it reads, and to one that it did not start', async () => {
    const runtime = runtimeOf({
      planners: { outer: thenTell(call('read')), inner: () => finish('told') },
      tools: [
        make('read', async () => {
          for await (const event of runtime.run('known').events())
            if (event.type === 'planner.finish') return event.type;
          return null;
        }),
      ],
      maxLiveRuns: 1,
    });
    const outer = await runtime.start('outer');
    await runtime.start('inner', { agent: 'inner', identity: local('ana', { run: 'known' }) });
    expect(await payloadOf(outer)).toBe('planner.finish');
  });

  it('has a slot of its own again when it stops waiting: the limit holds for what comes then', async () => {
    const held = gate();
    const goes = gate();
    const hold = gate();
    const live = counter();
    const runtime = runtimeOf({
      planners: { outer: script(call('give_up'), call('go_on')), inner: script(call('hold')), other: script() },
      tools: [
        make('give_up', async () => {
          const run = await runtime.start('q', { agent: 'inner' });
          await Promise.race([run.result(), held.opened]);
          return 'given up';
        }),
        make('hold', () => {
          held.open();
          return live.during(() => hold.opened.then(() => 'held'));
        }),
        make('go_on', () => live.during(() => goes.opened.then(() => 'went on'))),
      ],
      maxLiveRuns: 1,
    });
    const outer = await runtime.start('outer');
    await until(() => live.most() === 2);
    const other = await runtime.start('other', { agent: 'other' });
    // The first of the two that end leaves one, which is what the limit allows.
    hold.open();
    await quiet();
    expect(await pendingIn(runtime)).toEqual([other.id]);
    goes.open();
    expect(await payloadOf(outer)).toBe('done');
    expect(await payloadOf(other)).toBe('done');
  });
});

describe('a planner that waits for a run of the same runtime', () => {
  it('lends its slot like a tool', async () => {
    const runtime = runtimeOf({
      planners: {
        outer: async () => finish((await payloadOf(await runtime.start('q', { agent: 'inner' }))) as string),
        inner: () => finish('found'),
      },
      tools: [],
      maxLiveRuns: 1,
    });
    expect(await payloadOf(await runtime.start('outer'))).toBe('found');
  });
});

describe('a run that nobody waits for', () => {
  it('has no slot but its own, though a tool has started it', async () => {
    const goes = gate();
    const begun: string[] = [];
    const runtime = runtimeOf({
      planners: {
        outer: script(call('start'), call('work')),
        inner: () => {
          begun.push('inner');
          return finish();
        },
      },
      tools: [
        make('start', async () => (await runtime.start('q', { agent: 'inner' })).id),
        make('work', async () => {
          begun.push('outer');
          await goes.opened;
        }),
      ],
      maxLiveRuns: 1,
    });
    const outer = await runtime.start('outer');
    await until(() => begun.length > 0);
    await quiet();
    expect(begun).toEqual(['outer']);
    goes.open();
    await outer.result();
    await until(() => begun.length === 2);
  });

  it('is not lent a slot by a program that waits outside of every run', async () => {
    const goes = gate();
    let begun = 0;
    const runtime = runtimeOf({
      planners: { outer: script(call('work')), other: script() },
      tools: [
        make('work', async () => {
          begun += 1;
          await goes.opened;
        }),
      ],
      maxLiveRuns: 1,
    });
    const outer = await runtime.start('outer');
    await until(() => begun === 1);
    const other = await runtime.start('q', { agent: 'other' });
    const waiting = other.result();
    await quiet();
    expect(await pendingIn(runtime)).toEqual([other.id]);
    goes.open();
    expect((await outer.result()).status).toBe('finished');
    expect((await waiting).status).toBe('finished');
  });
});
