/** Controls: when they are heard, what they change, and when they are refused. */
import { describe, expect, it } from 'vitest';
import { CONTROL_TYPES, type Control, INBOX_CAP } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, kindsOf, observations, outcomes, send } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, gate, quiet } from '../kit/waiting.ts';
import { busy, start, world } from '../kit/world.ts';

describe('controls', () => {
  it('RL-07, SP-05 are taken at the next boundary, in order, once, and never during a call', async () => {
    const { run, planner, journal, go } = await busy();
    const sent = [
      run.steer('USER_MESSAGE', { message: 'one' }),
      run.steer('INJECT_CONTEXT', { note: 'two' }),
      run.steer('USER_MESSAGE', { message: 'three' }),
    ];
    await quiet();
    expect(await entriesOf(journal, run, 'control')).toEqual([]);
    go();
    await Promise.all(sent);
    await run.result();
    expect(planner.views.map((view) => view.controls.map((control) => control.payload))).toEqual([
      [],
      [{ message: 'one' }, { note: 'two' }, { message: 'three' }],
      [],
    ]);
    expect(await journal.inbox(run.id)).toEqual([]);
    expect(await kindsOf(journal, run)).toEqual([
      'started',
      'moved',
      'call_ended',
      'control',
      'control',
      'control',
      'moved',
      'call_ended',
      'moved',
      'finished',
    ]);
  });

  it('SP-07 takes five that came before one boundary together', async () => {
    const { run, journal, go } = await busy();
    for (let index = 0; index < 5; index += 1) {
      await send(journal, run, { id: `c${index}`, type: 'USER_MESSAGE', payload: { message: String(index) } });
    }
    const last = run.steer('USER_MESSAGE', { message: 'last' });
    go();
    await last;
    await run.result();
    const taken = await entriesOf(journal, run, 'control');
    expect(taken.map((entry) => entry.control.payload?.['message'])).toEqual(['0', '1', '2', '3', '4', 'last']);
    // One commit.
    expect(new Set(taken.map((entry) => entry.seq - taken.indexOf(entry))).size).toBe(1);
  });

  it('SP-06 are refused when the run has ended, and when nobody knows it', async () => {
    const { run, runtime, go } = await busy();
    go();
    await run.result();
    await expect(run.steer('PAUSE')).rejects.toMatchObject({ code: 'run_ended' });
    await expect(run.resume()).rejects.toMatchObject({ code: 'run_ended' });
    await expect(runtime.run('nobody').steer('PAUSE')).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(runtime.run('nobody').result()).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(runtime.run('nobody').resume()).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(collect(runtime.run('nobody'))).rejects.toMatchObject({ code: 'run_not_found' });
  });

  it('SP-01, SP-10 are refused at the edge when the type is unknown or the payload too large', async () => {
    const { run, journal, go } = await busy();
    await expect(run.steer('STOP' as never)).rejects.toMatchObject({ code: 'unknown_control_type' });
    await expect(run.steer('USER_MESSAGE', { message: 'x'.repeat(4_000_000) })).rejects.toMatchObject({
      code: 'unserializable',
    });
    await expect(run.steer('INJECT_CONTEXT', { f: (() => 1) as never })).rejects.toMatchObject({
      code: 'unserializable',
    });
    expect(await journal.inbox(run.id)).toEqual([]);
    go();
    await run.result();
  });

  it.each([
    ['REDIRECT', undefined],
    ['REDIRECT', { goal: 7 }],
    ['USER_MESSAGE', {}],
    ['PRIORITIZE', undefined],
    ['PRIORITIZE', { priority: 3.5 }],
    ['PRIORITIZE', { priority: 1_001 }],
    ['CANCEL', { hard: 'yes' }],
    ['APPROVE', { token: 7 }],
    ['REJECT', { reason: false }],
  ] as const)('SP-08, SP-13 %s with %o is refused as payload_invalid, and nothing is stored', async (type, payload) => {
    const { run, journal, go } = await busy();
    await expect(run.steer(type, payload)).rejects.toMatchObject({ code: 'payload_invalid' });
    expect(await journal.inbox(run.id)).toEqual([]);
    go();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });

  it.each([
    ['APPROVE', undefined, 'pause_not_found'],
    ['REJECT', undefined, 'pause_not_found'],
    ['RESUME', undefined, 'pause_not_found'],
  ] as const)('SP-41 %s with %o is refused as %s, and the run lives on', async (type, payload, code) => {
    const { run, go } = await busy();
    const events = collect(run);
    const refused = expect(run.steer(type, payload)).rejects.toMatchObject({ code });
    await quiet();
    go();
    await refused;
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(only(await events, 'control.rejected')).toMatchObject([{ control: { type }, error: { code } }]);
  });

  it('SP-09 a bare PAUSE and CANCEL need no payload', async () => {
    const paused = await busy();
    const done = paused.run.steer('PAUSE');
    paused.go();
    await done;
    expect(await paused.run.result()).toMatchObject({ status: 'paused' });
    const cancelled = await busy();
    await cancelled.run.steer('CANCEL');
    expect(await cancelled.run.result()).toMatchObject({ reason: 'cancelled' });
  });

  it('SP-11, PC-18 the last REDIRECT sets the goal; the query stays', async () => {
    const { run, planner, go } = await busy();
    const sent = [run.steer('REDIRECT', { goal: 'first' }), run.steer('REDIRECT', { goal: 'second' })];
    await quiet();
    go();
    await Promise.all(sent);
    await run.result();
    expect(planner.views.map(({ goal, query }) => [goal, query])).toEqual([
      ['q', 'q'],
      ['second', 'q'],
      ['second', 'q'],
    ]);
    expect(planner.views[2]?.trajectory.steering.map(({ atStep, control }) => [atStep, control.type])).toEqual([
      [1, 'REDIRECT'],
      [1, 'REDIRECT'],
    ]);
  });

  it('W05 the same control id is one control', async () => {
    const { run, journal, go } = await busy();
    const control: Control = { id: 'c', type: 'USER_MESSAGE', payload: { message: 'once' } };
    expect(await send(journal, run, control)).toBe(true);
    expect(await send(journal, run, control)).toBe(false);
    const last = run.steer('INJECT_CONTEXT');
    go();
    await last;
    expect(await send(journal, run, control)).toBe(false);
    await run.result();
    expect((await entriesOf(journal, run, 'control')).filter((entry) => entry.control.id === 'c')).toHaveLength(1);
  });

  it('SP-20 are refused beyond the cap of the inbox', async () => {
    const { run, journal, clock, go } = await busy();
    for (let index = 0; index < INBOX_CAP; index += 1) {
      await send(journal, run, { id: `c${index}`, type: 'INJECT_CONTEXT' });
    }
    await expect(run.steer('INJECT_CONTEXT')).rejects.toMatchObject({ code: 'inbox_full' });
    // The beat hears of what others put there.
    clock.advance(2_000);
    await quiet();
    go();
    await run.result();
    expect(await entriesOf(journal, run, 'control')).toHaveLength(INBOX_CAP);
  });

  it('are nine, one that settles calls in doubt, one that gives the value of a call, one that revokes a rule, and one that cancels a call', () => {
    expect(CONTROL_TYPES).toHaveLength(13);
  });
});

describe('cancel', () => {
  it('SP-18 hard: the tool’s signal aborts at once', async () => {
    const { run, journal } = await busy();
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'control', 'finished']);
  });

  it('SP-18 soft: the tool finishes, and the run ends at the boundary', async () => {
    const { run, planner, go } = await busy();
    const cancelled = run.cancel({ hard: false });
    await quiet();
    expect((await run.state()).ending).toBeNull();
    go();
    await cancelled;
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(observations(await run.state())).toEqual(['run 1']);
    expect(planner.views).toHaveLength(1);
  });

  it('SP-37 ends a paused run as cancelled', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    await run.cancel();
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'cancelled',
      metadata: { cancel_while_paused: true, steering: 'cancelled' },
    });
  });

  it('is heard by a run that another process left in the middle of a call, before the call runs again', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    let runs = 0;
    const entered = gate();
    const tool = make('act', (_, { signal }) => {
      runs += 1;
      entered.open();
      return aborted(signal);
    });
    const first = world({ planner: script(call('act')), tools: [tool], journal, clock });
    const { id } = await start(first);
    await entered.opened;
    await first.runtime.close();
    const second = world({ planner: script(call('act')), tools: [tool], journal, clock });
    await second.runtime.run(id).cancel();
    expect(await second.runtime.run(id).result()).toMatchObject({ reason: 'cancelled' });
    expect(runs).toBe(1);
  });

  it('twice is one ending', async () => {
    const { run, journal } = await busy();
    const results = await Promise.allSettled([run.cancel(), run.cancel(), run.cancel()]);
    expect(results.some((result) => result.status === 'fulfilled')).toBe(true);
    await run.result();
    expect(await entriesOf(journal, run, 'finished')).toHaveLength(1);
  });
});

describe('a signal that comes just when the run ends', () => {
  it.each(
    Array.from({ length: 30 }, (_, index) => index),
  )('is not taken after the ending (%i microtasks)', async (ticks) => {
    const opened = gate();
    const made = world({
      planner: async () => {
        await opened.opened;
        return finish();
      },
    });
    const run = await start(made);
    await quiet();
    opened.open();
    for (let tick = 0; tick < ticks; tick += 1) await null;
    await run.steer('USER_MESSAGE', { message: 'late' }).catch((error) => expect(error.code).toBe('run_ended'));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await run.state()).ending).not.toBeNull();
    expect((await kindsOf(made.journal, run)).at(-1)).toBe('finished');
    expect((await made.journal.get(run.id))?.status).toBe('finished');
  });
});
