/** A kit that cannot fail proves nothing: everything here is broken on purpose, and must be found. */
import { describe, expect, it } from 'vitest';
import type { EntryBody } from '#core';
import { type Append, memoryJournal } from '#journal';
import type { Journal } from '#pilotage/journal';
import type { Decision } from '#pilotage/planner';
import type { Entry, RunState } from '#pilotage/state';
import { foldEntries } from '#state';
import {
  assertCrashProof,
  CrashRecord,
  type CrashReport,
  type CrashScenario,
  crashEverywhere,
  endingProblems,
  foldProblems,
  lostEntries,
  taskProblems,
  unknownProblems,
} from '#testing';
import { NotSent } from '#tools';
import { ordered, outcomes, worker } from './scenarios.ts';

type OpenJournal = NonNullable<CrashScenario['journal']>;

const twoCalls: CrashScenario = {
  name: 'two calls',
  query: 'go',
  tools: (world) => [worker(world, 'once', { effect: 'once' }), worker(world, 'keyed', { effect: 'keyed' })],
  planner: ordered(
    [
      { kind: 'call_tool', tool: 'once', args: { n: 0 } },
      { kind: 'call_tool', tool: 'keyed', args: { n: 1 } },
    ],
    outcomes,
  ),
};

const parentAndChild: CrashScenario = {
  name: 'a run and its task',
  query: 'parent',
  tools: (world) => [worker(world, 'once')],
  planner: (run) =>
    ordered(
      run.query === 'parent'
        ? [{ kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'child' } }]
        : [{ kind: 'call_tool', tool: 'once', args: {} }],
      outcomes,
    )(run),
};

/** A `once` call whose first attempt sends nothing, and is put off. @param isLying its effect happens all the same. */
const unsent = (isLying: boolean): CrashScenario => ({
  name: 'a call that is not sent at first',
  query: 'go',
  tools: (world) => [
    {
      ...worker(world, 'once', { effect: 'once' }),
      execute: async (_, context) => {
        if (context.attempt > 1 || isLying) await world.effect(context);
        if (context.attempt === 1) throw new NotSent('No line.', { retryAfterMs: 5_000 });
        return 'sent';
      },
    },
  ],
  planner: ordered([{ kind: 'call_tool', tool: 'once', args: {} }], outcomes),
});

/** What was found in runs that crashed; the run without a crash found nothing. */
function found(report: CrashReport): string {
  expect(report.violations.filter(({ at }) => at.length === 0)).toEqual([]);
  expect(() => assertCrashProof(report)).toThrow(report.violations[0]?.what ?? 'no violation');
  return report.violations.map(({ what }) => what).join('\n');
}

/** A journal that outlives its processes, with some of its members replaced each time it is opened. */
function broken(change: (kept: Journal, openings: number) => Partial<Journal>): OpenJournal {
  const stores = new Map<string, { readonly kept: Journal; openings: number }>();
  return (clock, store) => {
    const opened = stores.get(store) ?? { kept: memoryJournal({ clock }), openings: 0 };
    stores.set(store, opened);
    const { kept } = opened;
    opened.openings += 1;
    const changed: Partial<Journal> = { close: async () => {}, ...change(kept, opened.openings) };
    return new Proxy(kept, {
      get: (target, name) => {
        const member: unknown = Reflect.get(name in changed ? changed : target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  };
}

describe('crashEverywhere finds', () => {
  it('nothing in a once call that is put off because nothing was sent, and a tool that says so wrongly', async () => {
    const report = await crashEverywhere(unsent(false));
    assertCrashProof(report);
    expect(report.points.some((point) => point.includes('append call_away'))).toBe(true);
    const { violations } = await crashEverywhere(unsent(true));
    expect(violations.map(({ what }) => what)).toContain('once threw NotSent, but its effect had happened.');
  });

  it('nothing in an agent that is right', async () => {
    const report = await crashEverywhere(twoCalls);
    assertCrashProof(report);
    expect(report.points.map((point) => point.replace(/^\d+: /, ''))).toEqual([
      'before create',
      'after create',
      'before append moved at 2',
      'after append moved at 2',
      'before append call_began at 3',
      'after append call_began at 3',
      'before once',
      'before an effect',
      'after an effect',
      'after once',
      'before append call_ended at 4',
      'after append call_ended at 4',
      'before append moved at 5',
      'after append moved at 5',
      'before keyed',
      'before an effect',
      'after an effect',
      'after keyed',
      'before append call_ended at 6',
      'after append call_ended at 6',
      'before append moved + finished at 7',
      'after append moved + finished at 7',
    ]);
  });

  it('a journal that says that an append is durable before it is', async () => {
    const journal = broken((kept) => {
      let held: Append | undefined;
      return {
        append: async (append) => {
          if (held !== undefined) await kept.append(held);
          held = append.entries[0]?.kind === 'call_began' ? append : undefined;
          if (held === undefined) await kept.append(append);
        },
      };
    });
    const what = found(await crashEverywhere({ ...twoCalls, journal }));
    expect(what).toContain('Entry 3 (call_began) was acknowledged and is lost.');
    expect(what).toContain('once, a once tool, was run 2 times');
    expect(what).toContain('The effect of once, a once tool, happened 2 times');
  });

  it('a journal that gives back another identity, and with it other keys', async () => {
    const journal = broken((kept, openings) => ({
      read: async (run, from, limit) => {
        const entries = await kept.read(run, from, limit);
        return entries.map((entry): Entry => {
          if (entry.kind !== 'started') return entry;
          return { ...entry, identity: { ...entry.identity, session: `session ${openings}` } };
        });
      },
    }));
    // Without a crash nothing is read back before the end, so only the last reading is wrong.
    const report = await crashEverywhere({ ...twoCalls, journal: pastTheCleanRun(journal) });
    const what = found(report);
    expect(what).toContain('Entry 1 (started) is not what was acknowledged.');
    expect(what).toContain('1 calls of keyed with the same arguments had 2 keys.');
    expect(what).toContain('the planner was shown another state than the entries give');
  });

  it('a tool that says that nothing happened when it did', async () => {
    const scenario: CrashScenario = {
      ...twoCalls,
      tools: (world) => [
        worker(world, 'once', { reconcile: () => ({ status: 'not_done' }) }),
        worker(world, 'keyed', { effect: 'keyed' }),
      ],
    };
    expect(found(await crashEverywhere(scenario))).toContain('The effect of once, a once tool, happened 2 times');
  });

  it('a tool that does its thing under a key of its own', async () => {
    const scenario: CrashScenario = {
      ...twoCalls,
      tools: (world) => [
        worker(world, 'once', { effect: 'once' }),
        worker(world, 'keyed', {
          effect: 'keyed',
          execute: async () => {
            await world.effect({ idempotencyKey: crypto.randomUUID() });
            return 'done';
          },
        }),
      ],
    };
    const report = await crashEverywhere(scenario);
    expect(report.points).toEqual([]);
    expect(report.violations).toEqual([{ at: [], what: expect.stringContaining('which no call has') }]);
  });

  it('a planner that remembers outside of the run', async () => {
    const remembered = new Map<string, number>();
    const scenario: CrashScenario = {
      ...twoCalls,
      planner: (run) => {
        const asked = (remembered.get(run.identity.run) ?? 0) + 1;
        remembered.set(run.identity.run, asked);
        return ordered([{ kind: 'call_tool', tool: 'keyed', args: {} }], () => asked)(run);
      },
    };
    expect(found(await crashEverywhere(scenario))).toMatch(/The run ended with .*; the clean run with/);
  });

  it('a planner that does not go on after a crash', async () => {
    const seen = new Map<string, number>();
    const scenario: CrashScenario = {
      ...twoCalls,
      planner: (run) => {
        const steps = seen.get(run.identity.run) ?? -1;
        seen.set(run.identity.run, run.trajectory.count);
        if (steps === run.trajectory.count) throw new Error('been here');
        return ordered([], () => null)(run);
      },
    };
    expect(found(await crashEverywhere(scenario, { doubles: 0 }))).toContain('{"code":"planner_failed"}');
  });

  it('a run that never ends', async () => {
    const scenario: CrashScenario = { ...twoCalls, planner: () => new Promise(() => {}) };
    const report = await crashEverywhere(scenario);
    expect(report.violations[0]?.what).toContain('nothing happened in it any more');
  });

  it('a pause that is never answered, and a check of the scenario that fails', async () => {
    const planner = ordered([{ kind: 'request_pause', reason: 'await_input' }], outcomes);
    const ignored = await crashEverywhere({ ...twoCalls, planner, answer: async () => {} });
    expect(ignored.violations[0]?.what).toContain('is open after it was answered');
    const checked = await crashEverywhere({ ...twoCalls, check: (state) => [`It used ${state.totals.steps} steps.`] });
    expect(checked.violations).toEqual([{ at: [], what: 'It used 2 steps.' }]);
  });

  it('a journal that tells a run twice that its task has ended', async () => {
    const journal = broken((kept) => ({
      append: (append) => {
        const { tells = [] } = append;
        const again = tells.map((told) => ({ ...told, message: { ...told.message, id: `${told.message.id} again` } }));
        return kept.append({ ...append, tells: [...tells, ...again] });
      },
    }));
    const report = await crashEverywhere({ ...parentAndChild, journal });
    expect(report.violations[0]?.what).toBe('The end of the task crash.0.0 came twice.');
  });

  it('a journal that gives another process another task result', async () => {
    const journal = broken((kept, openings) => ({
      read: async (run, from, limit) =>
        (await kept.read(run, from, limit)).map((entry) =>
          entry.kind === 'task_ended' && openings > 1 ? { ...entry, result: 'another' } : entry,
        ),
    }));
    const what = found(await crashEverywhere({ ...parentAndChild, journal: pastTheCleanRun(journal) }, { doubles: 0 }));
    expect(what).toContain('(task_ended) is not what was acknowledged.');
    expect(what).toContain('The task crash.0.0 is said to be complete, and is complete, or has another result.');
  });

  it('a task that does its thing twice', async () => {
    const scenario: CrashScenario = {
      ...parentAndChild,
      tools: (world) => [worker(world, 'once', { reconcile: () => ({ status: 'not_done' }) })],
    };
    expect(found(await crashEverywhere(scenario))).toMatch(
      /The effect of once, a once tool, happened 2 times under .*crash\.0\.0/,
    );
  });

  it('a report without crash points', () => {
    const report = { scenario: 'empty', points: [], doubles: 0, seed: 1, violations: [] };
    expect(() => assertCrashProof(report)).toThrow('empty: no crash point was reached.');
  });
});

/** Opens a sound journal for the run without a crash, and `journal` for all others. */
function pastTheCleanRun(journal: OpenJournal): OpenJournal {
  const sound = broken(() => ({}));
  let first: string | undefined;
  return (clock, store) => {
    first ??= store;
    return store === first ? sound(clock, store) : journal(clock, store);
  };
}

const started: Entry = {
  seq: 1,
  at: 1,
  kind: 'started',
  identity: { tenant: 't', user: 'u', session: 's', run: 'r' },
  query: 'go',
  agent: 'p',
  limits: {},
  scopes: [],
};
const moved: Entry = {
  seq: 2,
  at: 2,
  kind: 'moved',
  step: 0,
  decision: { kind: 'call_tool', tool: 'pay', args: {} },
  startedAt: 2,
};
const began: Entry = { seq: 3, at: 3, kind: 'call_began', step: 0, call: 0 };
const ended: Entry = {
  seq: 4,
  at: 4,
  kind: 'call_ended',
  step: 0,
  call: 0,
  attempts: 1,
  outcome: { kind: 'cancelled', error: { code: 'cancelled', message: 'stopped' } },
};
const finished: Entry = { seq: 5, at: 5, kind: 'finished', reason: 'goal' };
const whole = [started, moved, began, ended, finished];

function journalOf(...bodies: readonly EntryBody[]): Entry[] {
  return [started, ...bodies.map((body, index): Entry => ({ ...body, seq: index + 2, at: index + 2 }))];
}

describe('the checks of a journal', () => {
  it('refuse gaps, and entries that do not fold', () => {
    expect(foldProblems(whole)).toEqual([]);
    expect(foldProblems([])).toEqual(['The journal of the run is empty.']);
    expect(foldProblems([started, began])).toEqual(['Entry 2 has seq 3.']);
    expect(foldProblems([started, { ...began, seq: 2 }])[0]).toContain('do not fold');
  });

  it('refuse an entry that is lost or another one', () => {
    expect(lostEntries(whole, whole)).toEqual([]);
    expect(lostEntries(whole, whole.slice(0, 4))).toEqual(['Entry 5 (finished) was acknowledged and is lost.']);
    expect(lostEntries(whole, [started, { ...moved, step: 1 }, ...whole.slice(2)])).toEqual([
      'Entry 2 (moved) is not what was acknowledged.',
    ]);
  });

  it('refuse a run without exactly one ending', () => {
    const record = {
      identity: started.identity,
      query: 'go',
      priority: 0,
      agent: 'p',
      createdAt: 1,
      updatedAt: 5,
      readAt: 5,
      head: 5,
    };
    expect(endingProblems(whole, { ...record, status: 'finished', wakeAt: null })).toEqual([]);
    expect(endingProblems(whole, { ...record, status: 'running' })[0]).toContain('its record says running');
    expect(endingProblems(whole.slice(0, 4), undefined)[0]).toContain('0 endings');
    expect(endingProblems([...whole, finished], undefined)[0]).toContain('2 endings');
  });

  it('refuse a call that was cut off and is called anything but unknown', () => {
    const state: RunState = foldEntries(whole);
    const record = new CrashRecord(() => undefined);
    expect(unknownProblems(record, state, state)).toEqual([]);
    record.interrupted.add('0.0');
    expect(unknownProblems(record, state, state)[0]).toContain('may have happened; its outcome says cancelled');
  });

  it('refuse a task that nobody has, one that nobody spawned, and news that is not true', () => {
    const task = 'r.0.0';
    const origin = {
      parent: 'r',
      root: 'r',
      depth: 1,
      kind: 'background',
      description: 'd',
      group: 'g',
      onCancel: 'cascade',
    };
    const usage = { steps: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
    const spawn: Decision = { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q' } };
    const owner = journalOf(
      { kind: 'moved', step: 0, decision: spawn, startedAt: 2 },
      {
        kind: 'spawned',
        step: 0,
        call: 0,
        task,
        group: 'g',
        taskKind: 'background',
        description: 'd',
        onCancel: 'cascade',
        retained: false,
        reserved: {},
        seal: true,
      },
      { kind: 'task_ended', task, status: 'complete', usage },
      { kind: 'group_ended', group: 'g', status: 'completed' },
    );
    const child = foldEntries([
      { ...started, identity: { ...started.identity, run: task }, task: origin } as Entry,
      { ...finished, seq: 2 },
    ]);
    const state = foldEntries(owner);
    expect(taskProblems(owner, state, [state, child])).toEqual([]);
    expect(taskProblems(owner, state, [state])).toEqual([
      `The task ${task} was spawned and is not there.`,
      `The task ${task} is said to have ended, and has not.`,
    ]);
    expect(taskProblems([], child, [child])).toEqual([
      `The run ${task} is there, and no journal says that it was spawned.`,
    ]);
    const twice = [...owner, ...owner.slice(-2)];
    expect(taskProblems(twice, state, [state, child])).toEqual([
      `The end of the task ${task} came twice.`,
      'The group g ended twice.',
    ]);
    const failed: Entry[] = owner.map((entry) =>
      entry.kind === 'task_ended' ? { ...entry, status: 'failed' } : entry,
    );
    expect(taskProblems(failed, state, [state, child])).toEqual([
      `The task ${task} is said to be failed, and is complete, or has another result.`,
    ]);
  });

  it('refuse a once tool that starts before the journal knows', () => {
    const record = new CrashRecord(() => undefined);
    record.acknowledge('r', [started, moved]);
    record.attempt({ run: 'r', tool: 'pay', effect: 'once', key: 'k', args: '{}' });
    expect(record.faults).toEqual(['pay, a once tool, was started before the journal had that its call began.']);
  });

  it('refuse a call that is run after its end was recorded', () => {
    const record = new CrashRecord(() => undefined);
    record.acknowledge('r', whole);
    record.attempt({ run: 'r', tool: 'read', effect: 'read', key: 'local/r/0.0', args: '{}' });
    expect(record.faults).toEqual(['read was run after the journal had that its call has ended.']);
  });
});
