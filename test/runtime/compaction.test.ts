/** Shortening a run's history: asked for once a step, recorded beside the steps, and lost to no crash. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type Compaction,
  type CompactionAttempt,
  type CompactionErrorCode,
  PilotageError,
  type Planner,
  type PlannerFunction,
  type RunView,
} from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { foldEntries } from '#state';
import { VirtualClock } from '#testing';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, innerState, kindsOf } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-compaction-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const usage = { inputTokens: 900, outputTokens: 40, costMicroUsd: 7 };
const summaryOf = (note: string) => ({ goals: ['g'], facts: ['f'], pending: ['p'], lastOutputDigest: 'd', note });
const compactionOf = (before: number): Compaction => ({
  summary: summaryOf(`up to ${before}`),
  before,
  tokenEstimate: 5_000 + before,
});
const failure = (code: CompactionErrorCode, message = 'no'): CompactionAttempt => ({
  failure: { code, message },
  tokenEstimate: code === 'estimator_error' ? 0 : 5_000,
});

type Compact = NonNullable<Planner['compact']>;

/** A planner that also shortens; `asked` has what it was asked, in order: `compact 0`, `next 0`, … */
function shortening(compact: Compact, next: PlannerFunction = script(...[0, 1, 2].map((n) => call('echo', { n })))) {
  const asked: string[] = [];
  const views: RunView[] = [];
  const planner: Planner = {
    name: 'shortening',
    compact: (run, signal) => {
      asked.push(`compact ${run.trajectory.count}`);
      return compact(run, signal);
    },
    next: (run, signal) => {
      asked.push(`next ${run.trajectory.count}`);
      views.push(run);
      return next(run, signal);
    },
  };
  return { planner, asked, views };
}

/** Shortens before the given steps. */
const at =
  (...steps: number[]): Compact =>
  async ({ trajectory: { count } }) =>
    steps.includes(count) ? { compaction: compactionOf(count - 1), usage } : undefined;

async function played(compact: Compact, next?: PlannerFunction, options: Omit<WorldOptions, 'planner'> = {}) {
  const made = shortening(compact, next);
  const scene = world({ tools: [echo], ...options, planner: made.planner });
  const run = await start(scene);
  const events = await collect(run);
  const entries = await scene.journal.read(run.id);
  return {
    ...scene,
    ...made,
    run,
    events,
    entries,
    result: await run.result(),
    state: await innerState(scene.journal, run),
  };
}

describe('a history that is shortened', () => {
  it('CP-01 RL-15 is asked about once at each step boundary, before the move, with what the planner will see', async () => {
    const { asked, entries } = await played(async () => undefined);
    expect(asked).toEqual([0, 1, 2, 3].flatMap((step) => [`compact ${step}`, `next ${step}`]));
    expect(entries.filter(({ kind }) => kind.startsWith('compact'))).toEqual([]);
  });

  it('CP-01 is recorded first, with a position of its own, told after that, and then the move is asked for', async () => {
    const { asked, entries, events } = await played(at(2));
    expect(asked).toEqual(['compact 0', 'next 0', 'compact 1', 'next 1', 'compact 2', 'next 2', 'compact 3', 'next 3']);
    expect(entries.map(({ kind }) => kind)).toEqual([
      'started',
      'moved',
      'call_ended',
      'moved',
      'call_ended',
      'compacted',
      'moved',
      'call_ended',
      'moved',
      'finished',
    ]);
    expect(entries[5]).toEqual({
      kind: 'compacted',
      seq: 6,
      at: expect.any(Number),
      step: 2,
      ...compactionOf(1),
      usage,
    });
    const told = events.filter(({ seq }) => seq === 6);
    expect(told).toMatchObject([
      { type: 'trajectory.compressed', identity: { user: 'ana' }, stepsBefore: 2, stepsAfter: 2, tokenEstimate: 5_001 },
    ]);
    expect(only(events, 'trajectory.compressed')).toHaveLength(1);
    expect(events.findIndex(({ type }) => type === 'trajectory.compressed')).toBeLessThan(
      events.findIndex((event) => event.type === 'planner.decision' && event.step === 2),
    );
  });

  it('CP-19 the next move is asked for with the summary, and every step is still there, as it was', async () => {
    const { views, state, entries } = await played(at(2));
    expect(views.map(({ trajectory }) => trajectory.compaction)).toEqual([
      undefined,
      undefined,
      compactionOf(1),
      compactionOf(1),
    ]);
    expect(Object.hasOwn(views[0]?.trajectory ?? {}, 'compaction')).toBe(false);
    for (const [index, { trajectory }] of views.entries()) {
      expect(trajectory.count).toBe(index);
      expect(trajectory.steps).toEqual(state.steps.slice(0, index));
      for (let step = 0; step < index; step += 1) expect(trajectory.step(step)).toBe(trajectory.steps[step]);
    }
    expect(() => Object.assign(views[2]?.trajectory.compaction?.summary ?? {}, { note: 'mine' })).toThrow(TypeError);
    const plain = await played(async () => undefined);
    expect(state.steps.map(({ decision, calls }) => [decision, calls[0]?.outcome])).toEqual(
      plain.state.steps.map(({ decision, calls }) => [decision, calls[0]?.outcome]),
    );
    expect(foldEntries(entries)).toEqual(state);
  });

  it('what it used counts in the totals, in the budget that the planner sees, and against the limits', async () => {
    const { state, views } = await played(at(1), undefined, { limits: { tokens: 10_000 } });
    expect(state.totals).toMatchObject({ inputTokens: 900, outputTokens: 40, costMicroUsd: 7, steps: 3 });
    expect(views.map(({ budget }) => budget.tokensLeft)).toEqual([10_000, 9_060, 9_060, 9_060]);
    const bound = await played(at(1), undefined, { limits: { tokens: 940 } });
    expect(bound.result).toMatchObject({ reason: 'max_tokens', metadata: { budget: 'tokens' } });
    expect(bound.asked.at(-1)).toBe('compact 1');
    expect(bound.entries.map(({ kind }) => kind).slice(-2)).toEqual(['compacted', 'finished']);
  });

  it('is shortened again at later steps: the last summary counts, and each is in the journal', async () => {
    const { views, events, run, journal, asked } = await played(at(1, 2, 3));
    expect(views.map(({ trajectory }) => trajectory.compaction?.before)).toEqual([undefined, 0, 1, 2]);
    expect(only(events, 'trajectory.compressed').map(({ stepsAfter }) => stepsAfter)).toEqual([1, 2, 3]);
    expect((await entriesOf(journal, run, 'compacted')).map(({ before }) => before)).toEqual([0, 1, 2]);
    expect(asked.filter((what) => what.startsWith('compact'))).toHaveLength(4);
  });

  it('the planner is asked again after a move at fault, which is a step like any other', async () => {
    const fault = { code: 'empty_reply', message: 'm' };
    const { asked } = await played(at(1), (run) =>
      run.trajectory.count === 0 ? { decision: finish(), fault } : finish('done'),
    );
    expect(asked).toEqual(['compact 0', 'next 0', 'compact 1', 'next 1']);
  });

  it('EV-14 reads back as the same events, also from a file that another process opens', async () => {
    const clock = new VirtualClock();
    const path = join(folder, 'again.db');
    const journal = sqliteJournal({ path, clock });
    const attempts = [undefined, { compaction: compactionOf(1), usage }, failure('empty_summary')];
    const { events, run, state } = await played(async ({ trajectory }) => attempts[trajectory.count], undefined, {
      journal,
      clock,
    });
    expect(events.map(({ type }) => type)).toContain('trajectory.compressed');
    expect(events.map(({ type }) => type)).toContain('trajectory.compression_failed');
    await journal.close();
    const opened = sqliteJournal({ path, clock });
    const reader = world({ planner: script(), journal: opened, clock }).runtime.run(run.id);
    expect(await collect(reader)).toEqual(events);
    expect(await innerState(opened, reader)).toEqual(state);
    await opened.close();
  });
});

describe('a history that could not be shortened', () => {
  it.each<[string, CompactionErrorCode]>([
    ['CP-05', 'summariser_error'],
    ['CP-06', 'empty_summary'],
    ['CP-07', 'estimator_error'],
  ])('%s EV-03 is recorded and told as %s, with no summary, and the run goes on', async (_, code) => {
    const attempt = failure(code, 'The reason.');
    const { result, events, run, journal, views, asked } = await played(async ({ trajectory }) =>
      trajectory.count === 1 ? attempt : undefined,
    );
    expect(result).toMatchObject({ status: 'finished', answer: 'done' });
    const [failed] = await entriesOf(journal, run, 'compaction_failed');
    const tokenEstimate = code === 'estimator_error' ? 0 : 5_000;
    expect(failed).toEqual({
      kind: 'compaction_failed',
      seq: 4,
      at: expect.any(Number),
      step: 1,
      error: { code, message: 'The reason.' },
      tokenEstimate,
    });
    expect(events.filter(({ seq }) => seq === 4)).toMatchObject([
      {
        type: 'trajectory.compression_failed',
        stepsObserved: 1,
        tokenEstimate,
        errorCode: code,
        errorMessage: 'The reason.',
      },
    ]);
    expect(only(events, 'trajectory.compressed')).toEqual([]);
    expect(views.map(({ trajectory }) => trajectory.compaction)).toEqual(Array(4).fill(undefined));
    expect(asked.filter((what) => what === 'compact 1')).toHaveLength(1);
  });

  it('CP-08 a message of 1,024 characters is told with 256, and kept whole in the journal', async () => {
    const message = 'x'.repeat(1_024);
    const { events, run, journal } = await played(async ({ trajectory }) =>
      trajectory.count === 0 ? failure('summariser_error', message) : undefined,
    );
    const [told] = only(events, 'trajectory.compression_failed');
    expect(told?.errorMessage).toBe(`${'x'.repeat(253)}...`);
    expect((await entriesOf(journal, run, 'compaction_failed'))[0]?.error.message).toBe(message);
  });

  it('CP-17 is tried again at a later step, once at each, until it works; what the tries used counts', async () => {
    const { asked, views, state, events } = await played(async ({ trajectory: { count } }) =>
      count < 2 ? { ...failure('summariser_error'), usage } : { compaction: compactionOf(count), usage },
    );
    expect(asked).toEqual([0, 1, 2, 3].flatMap((step) => [`compact ${step}`, `next ${step}`]));
    expect(views.map(({ trajectory }) => trajectory.compaction?.before)).toEqual([undefined, undefined, 2, 3]);
    expect(only(events, 'trajectory.compression_failed').map(({ stepsObserved }) => stepsObserved)).toEqual([0, 1]);
    expect(state.totals).toMatchObject({ inputTokens: 4 * 900, costMicroUsd: 4 * 7 });
  });

  it('keeps the summary that there was', async () => {
    const { views } = await played(async (run, signal) =>
      run.trajectory.count === 2 ? failure('summariser_error') : at(1)(run, signal),
    );
    expect(views.map(({ trajectory }) => trajectory.compaction?.before)).toEqual([undefined, 0, 0, 0]);
  });
});

describe('a planner that fails at it', () => {
  const throwing = (error: unknown) => (): never => {
    throw error;
  };

  it.each<[string, Compact]>([
    ['at once', throwing(new TypeError('no counter'))],
    ['later', async () => throwing(new TypeError('no counter'))()],
  ])('ER-03 ends the run as planner_failed, with the step and the cause (%s)', async (_, compact) => {
    const { result, asked, entries } = await played((run, signal) =>
      run.trajectory.count === 1 ? compact(run, signal) : Promise.resolve(undefined),
    );
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', data: { step: 1, cause: { message: 'no counter' } } },
    });
    expect(asked.at(-1)).toBe('compact 1');
    expect(entries.at(-1)?.kind).toBe('failed');
  });

  it('ER-03 keeps a code that ends runs', async () => {
    const tooLong = new PilotageError('context_window_exceeded', 'It does not fit.', { data: { share: 97 } });
    const { result } = await played(async () => throwing(tooLong)());
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'context_window_exceeded', data: { share: 97, step: 0 } },
    });
  });

  const odd = (made: unknown): Compact => (async (run) => (run.trajectory.count === 1 ? made : undefined)) as Compact;
  it.each<[string, unknown]>([
    ['null', null],
    ['text', 'shorter'],
    ['an empty object', {}],
    ['a summary of steps that have not been', { compaction: compactionOf(9) }],
    ['a summary of less than no step', { compaction: compactionOf(-1) }],
    ['a summary of half a step', { compaction: { ...compactionOf(0), before: 0.5 } }],
    ['a summary that is not JSON', { compaction: { ...compactionOf(0), summary: { ...summaryOf(''), n: 1n } } }],
    ['a usage that is not JSON', { compaction: compactionOf(0), usage: { inputTokens: 1n } }],
    ['a failure without an error', { failure: undefined, tokenEstimate: 1 }],
  ])('PC-03 that gives %s fails its run; the journal can be read', async (_, made) => {
    const { planner } = shortening(odd(made));
    const scene = world({ planner, tools: [echo] });
    const run = await start(scene);
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', data: { step: 1 } },
    });
    expect((await run.state()).steps).toHaveLength(1);
    expect(await entriesOf(scene.journal, run, 'compacted')).toEqual([]);
  });

  it('what is recorded cannot be changed through what was given, and holds nothing but JSON', async () => {
    const given = { ...compactionOf(0), summary: { ...summaryOf('n'), at: new Date(0), none: undefined } };
    const { views, journal, run } = await played(async (run) =>
      run.trajectory.count === 1 ? { compaction: given } : undefined,
    );
    const [compacted] = await entriesOf(journal, run, 'compacted');
    expect(compacted?.summary).toStrictEqual({ ...summaryOf('n'), at: '1970-01-01T00:00:00.000Z' });
    expect(views[1]?.trajectory.compaction?.summary).toStrictEqual(compacted?.summary);
    expect(Object.isFrozen(given.summary)).toBe(false);
  });
});

describe('stopping while the history is shortened', () => {
  /** A run that is inside `compact` before its second step. */
  async function inside(behave: (signal: AbortSignal) => Promise<CompactionAttempt | undefined>, more: object = {}) {
    const entered = gate();
    const made = shortening(async (run, signal) => {
      if (run.trajectory.count !== 1) return undefined;
      entered.open();
      return behave(signal);
    });
    const scene = world({ planner: made.planner, tools: [echo], ...more });
    const run = await start(scene);
    await entered.opened;
    return { ...scene, ...made, run };
  }

  it.each<[string, (signal: AbortSignal) => Promise<CompactionAttempt | undefined>]>([
    ['throws the reason', aborted],
    [
      'gives its summary all the same',
      (signal) => aborted(signal).catch(() => ({ compaction: compactionOf(0), usage })),
    ],
    ['says that nothing is to be done', (signal) => aborted(signal).catch(() => undefined)],
    ['reports a failure', (signal) => aborted(signal).catch(() => failure('summariser_error'))],
  ])('CP-01 a hard cancel drops it, whether it %s', async (_, behave) => {
    const { run, journal, asked } = await inside(behave);
    await run.cancel({ reason: 'enough' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'control', 'finished']);
    expect(asked.at(-1)).toBe('compact 1');
    expect(await innerState(journal, run)).toMatchObject({
      compaction: null,
      compactedAt: -1,
      totals: { inputTokens: 0 },
    });
  });

  it('a deadline drops it, and ends one that ignores its signal after the grace time', async () => {
    const clock = new VirtualClock();
    const { run, journal } = await inside(() => new Promise(() => {}), {
      clock,
      journal: memoryJournal({ clock }),
      limits: { deadlineAt: clock.now() + 5_000 },
    });
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'finished']);
  });

  it('a runtime that is closed drops it, and the next one does it, once', async () => {
    const { run, runtime, journal, clock } = await inside(aborted);
    await runtime.close();
    const second = shortening(at(1));
    const again = world({ planner: second.planner, tools: [echo], journal, clock }).runtime.run(run.id);
    await again.resume();
    expect(await again.result()).toMatchObject({ status: 'finished', answer: 'done' });
    expect(second.asked.slice(0, 2)).toEqual(['compact 1', 'next 1']);
    expect(await entriesOf(journal, run, 'compacted')).toHaveLength(1);
  });

  it('RL-15 a cancel that is there already comes first: nothing is shortened for it', async () => {
    const scene = shortening(at(1));
    const held = gate();
    const entered = gate();
    const made = world({
      planner: scene.planner,
      tools: [
        {
          ...echo,
          execute: async () => {
            entered.open();
            await held.opened;
          },
        },
      ],
    });
    const run = await start(made);
    await entered.opened;
    const cancelled = run.cancel({ hard: false });
    await until(async () => (await made.journal.inbox(run.id)).length > 0);
    held.open();
    await cancelled;
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(scene.asked).toEqual(['compact 0', 'next 0']);
  });
});

describe('a crash after the history was shortened', () => {
  it.each<[string, Compact, Compaction | undefined]>([
    ['with a summary', at(1), compactionOf(0)],
    [
      'without one',
      async ({ trajectory }) => (trajectory.count === 1 ? failure('empty_summary') : undefined),
      undefined,
    ],
  ])('CP-19 and before the move: the next process goes on from there, and does not do it again (%s)', async (_, compact, known) => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { journal: mortal, cut } = cutJournal(journal);
    const died = gate();
    const first = shortening(compact, (run) => {
      if (run.trajectory.count === 0) return call('echo');
      cut();
      died.open();
      return new Promise<never>(() => {});
    });
    const run = await start(world({ planner: first.planner, tools: [echo], journal: mortal, clock }));
    await died.opened;
    await quiet();
    const before = await journal.read(run.id);
    expect(before.at(-1)?.kind).toBe(known === undefined ? 'compaction_failed' : 'compacted');

    const second = shortening(at(1, 2));
    const { runtime } = world({ planner: second.planner, tools: [echo], journal, clock });
    runtime.work();
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
    await runtime.close();
    expect(second.asked.slice(0, 3)).toEqual(['next 1', 'compact 2', 'next 2']);
    expect(second.views[0]?.trajectory.compaction).toEqual(known);
    const after = await journal.read(run.id);
    expect(after.slice(0, before.length)).toEqual(before);
  });

  it('a pause in between changes nothing: the summary is there when the run goes on elsewhere', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const first = world({
      planner: shortening(at(1), script(call('echo'), pause)).planner,
      tools: [echo],
      journal,
      clock,
    });
    const run = await start(first);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await first.runtime.close();
    const watching = watched(script(call('echo'), pause));
    const { views } = watching;
    const planner = { name: 'shortening', next: watching, views };
    const second = world({ planner, tools: [echo], journal, clock });
    await second.runtime.run(run.id).resume();
    expect(await second.runtime.run(run.id).result()).toMatchObject({ status: 'finished' });
    expect(planner.views[0]?.trajectory.compaction).toEqual(compactionOf(0));
    expect(planner.views[0]?.trajectory.count).toBe(2);
  });
});
