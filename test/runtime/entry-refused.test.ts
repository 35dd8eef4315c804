/** A fault of ours that would write an entry which cannot stand: the run ends here with the error, and its journal is whole. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { graph } from '#planners/graph';
import { Schedule, takeMessages } from '#runtime';
import { foldEntries } from '#state';
import { parallel, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { kindsOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const stores: readonly [string, () => Journal][] = [
  ['memory', () => memoryJournal()],
  ['sqlite', () => sqliteJournal({ path: temporaryFile() })],
];
const skipped = { kind: 'skipped', error: { code: 'x', message: 'planted' } } as const;

describe.each(stores)('an entry that cannot follow (%s)', (_, open) => {
  it.each([
    ['twice in one append', [0, 0]],
    ['of a call that the step does not have', [1, 2]],
  ])('is not written: a call ends %s; the run can be read, and resumed', async (_what, ends) => {
    const made = world({
      planner: script(
        parallel([
          { tool: 'echo', args: { n: 1 } },
          { tool: 'echo', args: { n: 2 } },
        ]),
      ),
      tools: [echo],
      journal: open(),
    });
    vi.spyOn(Schedule.prototype, 'takeSettled').mockImplementationOnce(() =>
      ends.map((call) => ({ call, outcome: skipped })),
    );
    const run = await start(made);
    await expect(run.result()).rejects.toMatchObject({
      code: 'entry_refused',
      data: { run: run.id, kind: 'call_ended', head: 2 },
    });
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved']);
    expect((await run.state()).open?.calls).toEqual([null, null]);
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'running' });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await run.state()).steps[0]?.calls.map(({ outcome }) => outcome.kind)).toEqual(['value', 'value']);
    await made.runtime.close();
  });

  it('is told to whoever watches, and to `onFault` when nobody does', async () => {
    const made = world({ planner: script(parallel([{ tool: 'echo', args: {} }])), tools: [echo], journal: open() });
    vi.spyOn(Schedule.prototype, 'takeSettled').mockImplementationOnce(() => [{ call: 7, outcome: skipped }]);
    const run = await start(made);
    await until(() => made.faults.length > 0);
    expect(made.faults).toMatchObject([{ code: 'entry_refused' }]);
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved']);
    await made.runtime.close();
  });
});

it('refuses the control that such an entry would follow from, and takes those beside it', async () => {
  const broken = make('broken', () => {
    throw new Error('broken');
  });
  const plan = { steps: [{ id: 'a', type: 'tool' as const, toolId: 'broken' }] };
  const made = world({ planner: graph({ plan, onFailedPlan: 'pause' }), tools: [broken] });
  const run = await start(made);
  await run.result();
  const state = foldEntries(await made.journal.read(run.id));
  const { token } = state.pauses[0] ?? {};
  const taken = await takeMessages(
    state,
    [
      { message: { id: 'r', type: 'RESUME', payload: { token: token ?? '' } }, storedAt: 1 },
      { message: { id: 'c', type: 'CANCEL' }, storedAt: 2 },
    ],
    { retries: async () => ({ step: 0, calls: [] }), now: 3 } as never,
  );
  expect(taken.entries).toMatchObject([
    { kind: 'control', control: { id: 'r' }, applied: false, error: { code: 'entry_refused' } },
    { kind: 'control', control: { id: 'c' }, applied: true },
  ]);
  expect(taken.status).toBe('paused');
});
