/** What a generator returns, and what `poll` says: each is heard as what a plain function gives. */
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { later } from '#pilotage/tools';
import type { RunSnapshot } from '#state';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const outcomeOf = ({ steps }: RunSnapshot) => steps[0]?.calls[0]?.outcome;

it('later({ pollEveryMs }) of a tool without poll is told of, and a signal still brings the value', async () => {
  const tools = [make('render', () => later({ key: 'film', pollEveryMs: 1_000 }))];
  const { runtime, journal, faults } = world({ planner: script(call('render')), tools, journal: memoryJournal() });
  const run = await start({ runtime });
  await until(async () => (await journal.get(run.id))?.status === 'waiting');
  expect(faults).toMatchObject([{ code: 'invalid_config', data: { tool: 'render', key: 'film', run: run.id } }]);
  await runtime.signal('film', 'oslo.mp4');
  await run.result();
  expect(outcomeOf(await run.state())).toEqual({ kind: 'value', value: 'oslo.mp4' });
  expect(faults).toHaveLength(1);
});

describe('a generator', () => {
  it('that returns later({ … }) is waited for, behind its pieces and without any', async () => {
    for (const pieces of [['started'], []]) {
      const render = make('render', async function* () {
        yield* pieces;
        return later({ key: 'film' });
      });
      const { runtime, journal } = world({
        planner: script(call('render')),
        tools: [render],
        journal: memoryJournal(),
      });
      const run = await start({ runtime });
      await until(async () => (await journal.get(run.id))?.status === 'waiting');
      expect(await runtime.signal('film', 'oslo.mp4')).toMatchObject({ isNew: true });
      await run.result();
      expect(outcomeOf(await run.state())).toEqual({ kind: 'value', value: 'oslo.mp4' });
    }
  });

  it('gives what it returns; the last piece counts when it returns nothing', async () => {
    const tools = [
      make('sums', async function* () {
        yield 1;
        return { sum: 2 };
      }),
      make('empties', async function* () {
        yield 1;
        return null;
      }),
      make('yields', async function* () {
        yield 1;
        yield 2;
      }),
    ];
    const calls = tools.map(({ name }) => call(name));
    const { runtime } = world({ planner: script(...calls), tools });
    const run = await start({ runtime });
    await run.result();
    expect((await run.state()).steps.map(({ calls }) => calls[0]?.outcome)).toEqual(
      [{ sum: 2 }, null, 2].map((value) => ({ kind: 'value', value })),
    );
  });

  it('that yields later({ … }) is closed, and told to return it', async () => {
    let closed = 0;
    const render = make('render', async function* () {
      try {
        yield later({ key: 'film' });
      } finally {
        closed += 1;
      }
    });
    const { runtime } = world({ planner: script(call('render')), tools: [render] });
    const run = await start({ runtime });
    await run.result();
    const message = expect.stringContaining('Return it: return later({ key })');
    expect(outcomeOf(await run.state())).toMatchObject({ kind: 'error', error: { code: 'invalid_config', message } });
    expect(closed).toBe(1);
  });
});

describe('poll', () => {
  it('that gives later({ … }) says what is waited for from now on', async () => {
    const asked: string[] = [];
    const build = make('build', () => later({ key: 'queued', pollEveryMs: 100, expiresInMs: 1_000 }), {
      poll: (key) => {
        asked.push(key);
        if (key === 'queued') return later({ key: 'job-7', pollEveryMs: 1_000 });
        return asked.length < 4 ? undefined : 'built';
      },
    });
    const made = world({ planner: script(call('build')), tools: [build], journal: memoryJournal() });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(outcomeOf(await run.state())).toEqual({ kind: 'value', value: 'built' });
    expect(asked).toEqual(['queued', 'job-7', 'job-7', 'job-7']);
  });
});
