/** Watchers: each gets exactly one last word, whatever ends or pauses the run, and from whichever process. */
import { describe, expect, it } from 'vitest';
import type { PlannerFunction, RunEvent } from '#core';
import { memoryJournal } from '#journal';
import type { Run, StartOptions } from '#runtime';
import { VirtualClock } from '#testing';
import { LoginRequired, type Tool } from '#tools';
import { call, named, parallel, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { aborted, advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const LAST_WORDS = ['planner.finish', 'planner.error', 'run.paused'] as const;

/** The events of a stream that end it. */
function lastWords(events: readonly RunEvent[]): RunEvent[] {
  return events.filter(({ type }) => (LAST_WORDS as readonly string[]).includes(type));
}

interface Way {
  readonly options: Omit<WorldOptions, 'journal' | 'clock'>;
  readonly start?: Partial<StartOptions>;
  /** Brings it about, from outside, once the run is under way. */
  readonly act?: (run: Run, world: World) => Promise<unknown>;
  readonly last: unknown;
}

const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
const login = make('login', () => {
  throw new LoginRequired('https://login.example');
});
const hold = (): Tool => make('hold', (_, { signal }) => aborted(signal));
const deaf = (): Tool => make('deaf', () => new Promise(() => {}), { timeoutMs: 3_600_000 });

const invalid: PlannerFunction = () => ({ kind: 'call_tool', tool: 'echo' }) as never;
const throwing: PlannerFunction = () => {
  throw new Error('no idea');
};

const WAYS: Readonly<Record<string, () => Way>> = {
  'it finishes': () => ({ options: { planner: script() }, last: { type: 'planner.finish', reason: 'goal' } }),
  'its planner throws': () => ({
    options: { planner: throwing },
    last: { type: 'planner.error', error: { code: 'planner_failed' } },
  }),
  'its decision is invalid': () => ({
    options: { planner: invalid },
    last: { type: 'planner.error', error: { code: 'invalid_decision' } },
  }),
  'every tool of a step fails, and then it ends': () => ({
    options: { planner: script(parallel(named('nobody', 'nothing'))) },
    last: { type: 'planner.finish', reason: 'goal' },
  }),
  'it has no steps left': () => ({
    options: { planner: () => call('echo'), tools: [echo] },
    start: { limits: { steps: 2 } },
    last: { type: 'planner.finish', reason: 'max_steps' },
  }),
  'it is cancelled inside a tool': () => ({
    options: { planner: script(call('hold')), tools: [hold()] },
    act: (run) => run.cancel(),
    last: { type: 'planner.finish', reason: 'cancelled' },
  }),
  'it is cancelled inside a tool that does not listen': () => ({
    options: { planner: script(call('deaf')), tools: [deaf()] },
    act: async (run, { clock }) => {
      const cancelled = run.cancel();
      await advanceUntil(clock, async () => (await run.state()).ending !== null);
      await cancelled;
    },
    last: { type: 'planner.finish', reason: 'cancelled' },
  }),
  'it is cancelled while its planner thinks': () => ({
    options: { planner: (_, signal) => aborted(signal) },
    act: (run) => run.cancel(),
    last: { type: 'planner.finish', reason: 'cancelled' },
  }),
  'its time is up': () => ({
    options: { planner: script(call('hold')), tools: [hold()] },
    start: { limits: { deadlineAt: Date.UTC(2026, 0, 1) + 5_000 } },
    act: (run, { clock }) => advanceUntil(clock, async () => (await run.state()).ending !== null),
    last: { type: 'planner.finish', reason: 'deadline_exceeded' },
  }),
  'somebody rejects a call that ends it, while another is under way': () => ({
    options: {
      planner: script(parallel(named('pay', 'hold'))),
      tools: [{ ...pay, needsApproval: { onReject: 'end' } } as Tool, hold()],
    },
    act: async (run) => {
      await until(async () => (await run.state()).pauses.length === 1);
      await run.reject();
    },
    last: { type: 'planner.finish', reason: 'constraints_conflict', metadata: { rejected_by: 'steering' } },
  }),
  'it goes round in circles': () => ({
    options: { planner: () => call('echo'), tools: [echo], progress: { action: 'end' } },
    last: { type: 'planner.finish', reason: 'no_path', metadata: { no_progress: true } },
  }),
  'its planner pauses it': () => ({
    options: { planner: script(pause) },
    last: { type: 'run.paused', pauses: [{ reason: 'external_event' }] },
  }),
  'a call of it waits for an approval': () => ({
    options: { planner: script(call('pay')), tools: [pay] },
    last: { type: 'run.paused', pauses: [{ reason: 'approval_required' }] },
  }),
  'several of its calls wait': () => ({
    options: { planner: script(parallel(named('pay', 'echo', 'login', 'pay'))), tools: [pay, echo, login] },
    last: {
      type: 'run.paused',
      pauses: expect.toSatisfy((pauses: unknown[]) => pauses.length === 3),
    },
  }),
  'a call of it needs a login': () => ({
    options: { planner: script(call('login')), tools: [login] },
    last: { type: 'run.paused', pauses: [{ reason: 'external_event' }] },
  }),
  'an operator pauses it': () => ({
    options: { planner: script(call('hold'), call('hold')), tools: [make('hold', async () => quiet())] },
    act: (run) => run.pause(),
    last: { type: 'run.paused', pauses: [{ payload: { by: 'operator' } }] },
  }),
  'a limit pauses it': () => ({
    options: { planner: () => call('echo'), tools: [echo] },
    start: { limits: { steps: 2, onCeiling: 'pause' } },
    last: { type: 'run.paused', pauses: [{ reason: 'constraints_conflict' }] },
  }),
  'it is paused for want of progress': () => ({
    options: { planner: () => call('echo'), tools: [echo], progress: { action: 'pause' } },
    last: { type: 'run.paused', pauses: [{ payload: { no_progress: true } }] },
  }),
};

describe('every watcher gets exactly one last word', () => {
  it.each(Object.keys(WAYS))('EV-04 when %s', async (name) => {
    const way = WAYS[name]?.() as Way;
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const made = world({ ...way.options, journal, clock });
    const elsewhere = world({ ...way.options, journal, clock });
    const run = await start(made, way.start);
    const watching = [
      collect(run),
      collect(made.runtime.run(run.id)),
      collect(made.runtime.run(run.id), { from: 2 }),
      // Another process that never drives it.
      collect(elsewhere.runtime.run(run.id)),
      collect(elsewhere.runtime.run(run.id)),
    ];
    const results = Promise.all([run.result(), elsewhere.runtime.run(run.id).result()]);
    await quiet();
    await way.act?.(run, made);
    const seen = await Promise.all(watching);
    for (const events of seen) {
      expect(lastWords(events)).toHaveLength(1);
      expect(events.at(-1)).toMatchObject(way.last as object);
      // Nothing passes by twice: one fact is one event.
      const facts = events.map((event) => JSON.stringify(event));
      expect(new Set(facts).size).toBe(facts.length);
    }
    // Whoever comes later is told the same.
    expect((await collect(elsewhere.runtime.run(run.id))).at(-1)).toMatchObject((await collect(run)).at(-1) as object);
    const [own, foreign] = await results;
    expect(foreign).toEqual(own);
    expect(await entriesOf(journal, run, 'finished').then((all) => all.length)).toBeLessThanOrEqual(1);
    await Promise.all([made.runtime.close(), elsewhere.runtime.close()]);
  });

  it('EV-04 of 50 watchers that come at 50 moments, each', async () => {
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('echo'), call('hold'), call('echo'), pause), tools: [tool, echo] });
    const run = await start(made);
    const watching: Promise<RunEvent[]>[] = [];
    const watch = (): void =>
      void watching.push(collect(made.runtime.run(run.id), { from: 1 + (watching.length % 5) }));
    while (watching.length < 25) {
      watch();
      await null;
    }
    await entered;
    release();
    while (watching.length < 50) {
      watch();
      await null;
    }
    for (const events of await Promise.all(watching)) {
      expect(lastWords(events)).toMatchObject([{ type: 'run.paused' }]);
      expect(events.at(-1)?.type).toBe('run.paused');
    }
  });

  it('EV-04 once a pause: after the answer a new reading goes on to the next last word', async () => {
    const made = world({ planner: script(pause, call('echo'), pause), tools: [echo] });
    const run = await start(made);
    const first = await collect(run);
    const { seq } = first.at(-1) as RunEvent;
    await run.resume();
    const second = await collect(run, { from: seq + 1 });
    await run.resume();
    const third = await collect(run, { from: (second.at(-1)?.seq ?? 0) + 1 });
    expect([first, second, third].map((events) => lastWords(events).map(({ type }) => type))).toEqual([
      ['run.paused'],
      ['run.paused'],
      ['planner.finish'],
    ]);
    // One after another they are the run, without a gap and without a repetition.
    const recorded = [first, second, third].flat().filter(({ type }) => type !== 'run.paused');
    expect(recorded).toEqual((await collect(run)).filter(({ type }) => type !== 'run.paused'));
  });

  it('EV-04 a run that only waits has no last word: one of its calls waits, another is under way', async () => {
    const { tool, entered, release } = holding();
    const run = await start(world({ planner: script(parallel(named('pay', 'hold'))), tools: [pay, tool] }));
    const watching = collect(run);
    let over = false;
    void watching.then(() => {
      over = true;
    });
    await entered;
    await until(async () => (await run.state()).pauses.length === 1);
    await quiet();
    expect(over).toBe(false);
    release();
    expect(lastWords(await watching)).toMatchObject([
      { type: 'run.paused', pauses: [{ reason: 'approval_required' }] },
    ]);
  });

  it('EV-04 a result and the stream never disagree', async () => {
    const made = world({ planner: script(call('pay'), pause), tools: [pay] });
    const run = await start(made);
    for (;;) {
      const [result, events] = await Promise.all([run.result(), collect(run)]);
      const last = events.at(-1);
      if (result.status !== 'paused') {
        expect(last).toMatchObject({ type: 'planner.finish' });
        break;
      }
      expect(last).toMatchObject({ type: 'run.paused', pauses: result.pauses.map(({ token }) => ({ token })) });
      await run.approve(result.pauses[0]?.token);
    }
  });
});

describe('a watcher that fails', () => {
  it('SP-16, EV-12 harms neither the run nor the others: its control is applied all the same', async () => {
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold'), pause), tools: [tool] });
    const run = await start(made);
    const broken = (async () => {
      for await (const _ of run.events({
        redact: (text) => {
          if (text === 'boom') throw new Error('no redaction');
          return text;
        },
      }));
    })();
    const rejected = expect(broken).rejects.toThrow('no redaction');
    const leaving = (async () => {
      for await (const { type } of run.events()) if (type === 'planner.decision') return type;
      return 'nothing';
    })();
    const whole = collect(run);
    await entered;
    expect(await leaving).toBe('planner.decision');
    await run.steer('USER_MESSAGE', { message: 'boom' });
    release();
    await rejected;
    expect(await pausesOf(run)).toHaveLength(1);
    const events = await whole;
    expect(only(events, 'control.applied')).toMatchObject([{ control: { payload: { message: 'boom' } } }]);
    expect(lastWords(events)).toHaveLength(1);
    expect(made.faults).toEqual([]);
  });

  it('SP-38 a pause that the store refuses is no pause: watchers hear why, and the run can go on later', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const refusing = changed(journal, {
      append: async (request) => {
        if (request.entries.some(({ kind }) => kind === 'paused')) throw new Error('the disk is read-only');
        await journal.append(request);
      },
    });
    const made = world({ planner: script(pause), journal: refusing, clock });
    const run = await start(made);
    const watching = expect(collect(run)).rejects.toThrow('the disk is read-only');
    await expect(run.result()).rejects.toThrow('the disk is read-only');
    await watching;
    expect((await journal.read(run.id)).map(({ kind }) => kind)).toEqual(['started']);
    expect((await journal.get(run.id))?.status).toBe('running');
    const other = world({ planner: script(pause), journal, clock });
    await other.runtime.run(run.id).resume();
    expect(await pausesOf(other.runtime.run(run.id))).toHaveLength(1);
  });

  it('is told when its runtime is closed, in place of waiting for ever', async () => {
    const { tool, entered } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool] });
    const run = await start(made);
    const watching = expect(collect(run)).rejects.toMatchObject({ code: 'runtime_closed' });
    await entered;
    await made.runtime.close();
    await watching;
  });
});
