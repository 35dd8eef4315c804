/** A tool says itself how its attempt has ended: nobody knows, or nothing was sent. */
import { describe, expect, it } from 'vitest';
import type { Effect } from '#core';
import { NotSent, OutcomeUnknown, type Reconciled, type Tool } from '#tools';
import { call, named, parallel, script } from '../kit/decisions.ts';
import { entriesOf, kindsOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Throws what the list says, an item an attempt, and works from then on. The run is followed until it has ended or waits for somebody. */
async function played(effect: Effect, thrown: readonly unknown[], more: Partial<Tool> = {}) {
  let tries = 0;
  const act = make(
    'act',
    () => {
      tries += 1;
      if (tries <= thrown.length) throw thrown[tries - 1];
      return 'acted';
    },
    { effect, backoff: { baseMs: 0 }, ...more },
  );
  const made = world({ planner: script(call('act', { n: 1 })), tools: [act] });
  const run = await start(made);
  await advanceUntil(made.clock, async () => {
    const { ending, pauses } = await run.state();
    return ending !== null || pauses.length > 0;
  });
  const state = await run.state();
  return { made, run, state, record: state.steps[0]?.calls[0], result: await run.result(), tries: () => tries };
}

/** As another copy of the package would throw it. */
const copied = (code: string) => Object.assign(new Error('from afar'), { code });

describe('OutcomeUnknown', () => {
  it.each([
    ['ours', new OutcomeUnknown('The line broke.')],
    ['that of another copy of the package', copied('outcome_unknown')],
  ])('%s puts a once call in doubt while its process lives: a person settles it', async (_, thrown) => {
    const { run, result, made, tries } = await played('once', [thrown]);
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [
        { reason: 'in_doubt', payload: { tool: 'act', args: { n: 1 }, why: thrown.message, can_look_up: false } },
      ],
    });
    await run.settle(undefined, { happened: true, value: 'seen' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { kind: 'value', value: 'seen' } });
    expect(tries()).toBe(1);
    expect(await entriesOf(made.journal, run, 'paused')).toHaveLength(1);
  });

  it.each<[string, Reconciled, object]>([
    ['it happened', { status: 'done', value: 7 }, { kind: 'value', value: 7 }],
    [
      'it did not',
      { status: 'not_done' },
      { kind: 'error', error: { code: 'tool_failed', message: 'The line broke. The call did not happen.' } },
    ],
  ])('asks reconcile, which says that %s', async (_, says, outcome) => {
    const { record, tries } = await played('once', [new OutcomeUnknown('The line broke.')], { reconcile: () => says });
    expect(record?.outcome).toEqual(outcome);
    expect(tries()).toBe(1);
  });

  it('is told to the planner when the tool wants that', async () => {
    const { record, tries } = await played('once', [new OutcomeUnknown('The line broke.')], { inDoubt: 'tell' });
    expect(record?.outcome).toMatchObject({ kind: 'unknown', error: { code: 'outcome_unknown' } });
    expect(tries()).toBe(1);
  });

  it.each(['pure', 'read', 'keyed'] as const)('of a %s call is a failure that passes', async (effect) => {
    const { record, tries } = await played(effect, [new OutcomeUnknown()]);
    expect(record).toMatchObject({ outcome: { kind: 'value', value: 'acted' }, attempts: 2 });
    expect(tries()).toBe(2);
    const failed = await played(effect, [new OutcomeUnknown('Gone.')], { retries: 0 });
    const may = effect === 'keyed' ? ' The call may have happened all the same.' : '';
    const error = { code: 'outcome_unknown', message: `Gone.${may}` };
    expect(failed.record?.outcome).toEqual({ kind: 'error', error });
  });
});

describe('NotSent', () => {
  it.each(['pure', 'read', 'keyed', 'once'] as const)('of a %s call is made again', async (effect) => {
    for (const thrown of [new NotSent(), copied('not_sent')]) {
      const { record, made, run } = await played(effect, [thrown, thrown]);
      expect(record).toMatchObject({ outcome: { kind: 'value', value: 'acted' }, attempts: 3 });
      const begins = effect === 'once' ? ['call_began'] : [];
      expect(await kindsOf(made.journal, run)).toEqual([
        'started',
        'moved',
        ...begins,
        'call_ended',
        'moved',
        'finished',
      ]);
    }
  });

  it('is made again as often as the tool says, and is an error then', async () => {
    const thrown = Array.from({ length: 9 }, () => new NotSent('No line.'));
    const { record, tries } = await played('once', thrown, { retries: 2 });
    expect(tries()).toBe(3);
    expect(record?.outcome).toMatchObject({
      kind: 'error',
      error: {
        code: 'tool_retries_exhausted',
        data: { attempts: 3, cause: { code: 'not_sent', message: 'No line.' } },
      },
    });
  });

  it('does not make a once call safe that fails otherwise afterwards', async () => {
    const { record, tries } = await played('once', [new NotSent(), Object.assign(new Error('no'), { status: 503 })]);
    expect(tries()).toBe(2);
    expect(record).toMatchObject({
      outcome: { kind: 'error', error: { message: expect.stringContaining('no') } },
      attempts: 2,
    });
    const doubtful = await played('once', [new NotSent(), new OutcomeUnknown()]);
    expect(doubtful.result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect(doubtful.tries()).toBe(2);
  });

  it('at the time limit or at an abort says that a once call has not happened', async () => {
    let tries = 0;
    const stuck = make(
      'stuck',
      async (_, { signal }) => {
        tries += 1;
        if (tries === 2) return 'through';
        return aborted(signal).catch(() => Promise.reject(new NotSent()));
      },
      { effect: 'once', timeoutMs: 1_000, backoff: { baseMs: 0 } },
    );
    const made = world({ planner: script(call('stuck')), tools: [stuck] });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { value: 'through' }, attempts: 2 });
    const entered = gate();
    const waits = make(
      'waits',
      (_, { signal }) => {
        entered.open();
        return aborted(signal).catch(() => Promise.reject(new NotSent()));
      },
      { effect: 'once', timeoutMs: 60_000 },
    );
    const quick = make('quick', () => entered.opened.then(() => 'first'));
    const decision = parallel(named('waits', 'quick'), { join: { kind: 'first_success' } });
    const other = world({ planner: script(decision), tools: [waits, quick] });
    const second = await start(other);
    await advanceUntil(other.clock, async () => (await second.state()).ending !== null);
    expect((await second.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'cancelled' });
  });
});
