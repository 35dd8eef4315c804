/** Controls and pauses: when they are heard, what they change, and what the planner sees of them. */
import { describe, expect, it } from 'vitest';
import { CONTROL_TYPES, type Control, INBOX_CAP } from '../../src/core/control.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import type { Run } from '../../src/runtime/run.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import {
  aborted,
  advanceUntil,
  call,
  collect,
  echo,
  entriesOf,
  finish,
  gate,
  kindsOf,
  make,
  observations,
  only,
  outcomes,
  pause,
  quiet,
  script,
  start,
  turn,
  until,
  type World,
  watched,
  world,
} from './support.ts';

/** A run that is inside its first tool call until `go`. */
async function busy(...rest: ReturnType<typeof script>[]) {
  const entered = gate();
  const held = gate();
  const planner = watched(rest[0] ?? script(call('hold'), call('echo')));
  const made = world({
    planner,
    tools: [
      echo,
      make('hold', async (_, { signal }) => {
        entered.open();
        await Promise.race([held.opened, aborted(signal)]);
        return 'held';
      }),
    ],
  });
  const run = await start(made);
  await entered.opened;
  return { run, planner, go: () => held.open(), ...made };
}

const send = (journal: World['journal'], run: Run, control: Control) => journal.signal(run.id, control);

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
      'started', 'moved', 'call_ended', 'control', 'control', 'control', 'moved', 'call_ended', 'moved', 'finished',
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
    await expect(run.steer('USER_MESSAGE', { message: 'x'.repeat(4_097) })).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.steer('INJECT_CONTEXT', { f: (() => 1) as never })).rejects.toMatchObject({ code: 'unserializable' });
    expect(await journal.inbox(run.id)).toEqual([]);
    go();
    await run.result();
  });

  it.each([
    ['REDIRECT', undefined, 'payload_invalid'],
    ['REDIRECT', { goal: 7 }, 'payload_invalid'],
    ['USER_MESSAGE', {}, 'payload_invalid'],
    ['PRIORITIZE', { priority: 3 }, 'tasks_unavailable'],
    ['APPROVE', undefined, 'pause_not_found'],
    ['REJECT', undefined, 'pause_not_found'],
    ['RESUME', undefined, 'pause_not_found'],
  ] as const)('SP-08, SP-13, SP-41 %s with %o is refused as %s, and the run lives on', async (type, payload, code) => {
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

  it('are nine', () => {
    expect(CONTROL_TYPES).toHaveLength(9);
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
    expect(observations(await run.state())).toEqual(['held']);
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

describe('the planner’s pauses', () => {
  it('SP-35 opens one pause, and does not ask the planner until it is answered', async () => {
    const planner = watched(script(pause));
    const made = world({ planner });
    const run = await start(made);
    const result = await run.result();
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'await_input', token: expect.stringMatching(/^pause_/) }] });
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    expect(made.clock.pending).toBe(0);
    await quiet();
    expect(planner.views).toHaveLength(1);
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved', 'paused']);
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'paused', wakeAt: null });
  });

  it.each([
    ['approve', (run: Run) => run.approve({ payload: { by: 'ana' } }), 'approve'],
    ['reject', (run: Run) => run.reject({ payload: { by: 'ana' } }), 'reject'],
    ['resume', (run: Run) => run.resume({ payload: { by: 'ana' } }), 'resume'],
  ] as const)('SP-40, W10 %s: the planner sees the verdict and its payload as the step’s outcome', async (_, answer, verdict) => {
    // A planner without any guard: it pauses again only if the pause is not in its trajectory.
    const planner = watched(script(pause));
    const run = await start(world({ planner }));
    await run.result();
    await answer(run);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(planner.views).toHaveLength(2);
    expect(observations(await run.state())).toEqual([{ decision: verdict, payload: { by: 'ana' } }]);
    expect(outcomes(await run.state())).toEqual(['verdict']);
  });

  it('shows what the model said, its payload and its tokens in the notice; two pauses have two tokens', async () => {
    const run = await start(
      world({
        planner: (view) =>
          view.trajectory.count > 1
            ? finish()
            : { decision: { ...pause, kind: 'request_pause', reason: 'approval_required', payload: { sum: 5 } }, text: 'May I?' },
      }),
    );
    const first = await run.result();
    expect(first).toMatchObject({ pauses: [{ reason: 'approval_required', payload: { sum: 5 }, text: 'May I?', step: 0 }] });
    await run.approve();
    const second = await run.result();
    if (first.status !== 'paused' || second.status !== 'paused') throw new Error('not paused');
    expect(first.pauses[0]?.token).not.toBe(second.pauses[0]?.token);
  });

  it('SP-10 fails the run of a program whose pause payload is too large', async () => {
    const run = await start(world({ planner: script({ ...pause, payload: { text: 'x'.repeat(4_097) } } as never) }));
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
  });

  it('SP-26, SP-45 of 100 racing answers exactly one wins', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    const paused = await run.result();
    const token = paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '';
    const answers = Array.from({ length: 100 }, (_, index) => run.approve({ token, payload: { index } }));
    const settled = await Promise.allSettled(answers);
    const won = settled.flatMap((answer, index) => (answer.status === 'fulfilled' ? [index] : []));
    expect(won).toHaveLength(1);
    await run.result();
    expect(observations(await run.state())).toEqual([{ decision: 'approve', payload: { index: won[0] } }]);
    expect(await entriesOf(made.journal, run, 'resumed')).toHaveLength(1);
  });

  it('SP-45 of two runtimes on one journal that answer one token, one wins', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const planner = watched(script(pause));
    const [one, two] = [world({ planner, journal, clock }), world({ planner, journal, clock })];
    const { id, ...rest } = await start(one);
    expect(rest).toBeDefined();
    const paused = await one.runtime.run(id).result();
    const token = paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '';
    const answers = [one, two].map(({ runtime }) => runtime.run(id).approve({ token }));
    const settled = Promise.allSettled(answers);
    await advanceUntil(clock, async () => (await one.runtime.run(id).state()).ending !== null);
    expect((await settled).filter((answer) => answer.status === 'fulfilled')).toHaveLength(1);
    expect(planner.views).toHaveLength(2);
  });

  it('SP-27, SP-42 an unknown token resumes nothing', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    await expect(run.approve({ token: 'pause_other' })).rejects.toMatchObject({ code: 'pause_not_found' });
    await expect(run.resume({ token: 'pause_other' })).rejects.toMatchObject({ code: 'pause_not_found' });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(await entriesOf(made.journal, run, 'resumed')).toEqual([]);
  });

  it('SP-41 an answer twice, also in one drain, is refused the second time and harms nothing', async () => {
    const made = world({ planner: script(pause, call('echo'), pause), tools: [echo] });
    const run = await start(made);
    await run.result();
    await send(made.journal, run, { id: 'a', type: 'APPROVE' });
    await send(made.journal, run, { id: 'b', type: 'APPROVE' });
    await run.steer('INJECT_CONTEXT');
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ step: 2 }] });
    const taken = await entriesOf(made.journal, run, 'control');
    expect(taken.map((entry) => [entry.control.type, entry.applied, entry.error?.code])).toEqual([
      ['APPROVE', true, undefined],
      ['APPROVE', false, 'pause_not_found'],
      ['INJECT_CONTEXT', true, undefined],
    ]);
  });

  it('SP-12 hands on what came during the pause at the first step after it, in order', async () => {
    const planner = watched(script(pause));
    const run = await start(world({ planner }));
    await run.result();
    await run.steer('USER_MESSAGE', { message: 'early' });
    await run.steer('INJECT_CONTEXT', { note: 'late' });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.resume();
    await run.result();
    expect(planner.views[1]?.controls.map((control) => control.type)).toEqual(['USER_MESSAGE', 'INJECT_CONTEXT', 'RESUME']);
  });

  it('SP-43 costs no steps: 70 messages during a pause, and a limit of 64', async () => {
    const planner = watched(script(pause));
    const run = await start(world({ planner }));
    await run.result();
    for (let index = 0; index < 70; index += 1) await run.steer('USER_MESSAGE', { message: `m${index}` });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 1 } });
    expect(planner.views[1]?.controls).toHaveLength(71);
  });

  it('SP-44 is answered with timeout when its time has passed, by a worker', async () => {
    const planner = watched(script({ ...pause, expiresInMs: 3_600_000 } as never));
    const made = world({ planner });
    made.runtime.work();
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ expiresAt: made.clock.now() + 3_600_000 }] });
    made.clock.advance(3_599_000);
    await quiet();
    expect(planner.views).toHaveLength(1);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())).toEqual([{ decision: 'timeout', payload: null }]);
    await made.runtime.close();
  });

  it('SP-44 is answered with timeout by whoever resumes it too late', async () => {
    const made = world({ planner: script({ ...pause, expiresInMs: 1_000 } as never) });
    const run = await start(made);
    await run.result();
    made.clock.advance(1_000);
    await expect(run.approve()).rejects.toMatchObject({ code: 'pause_not_found' });
    await run.result();
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'timeout' }]);
  });

  it('SP-29 tells readers when it is asked and how it was answered', async () => {
    const run = await start(world({ planner: script({ ...pause, reason: 'external_event' } as never) }));
    const before = await collect(run);
    expect(before.at(-1)).toMatchObject({ type: 'pause.requested', reason: 'external_event', token: expect.any(String) });
    await run.approve();
    const after = await collect(run);
    expect(only(after, 'pause.resumed')).toMatchObject([{ reason: 'external_event', verdict: 'approve' }]);
  });
});

describe('an operator’s pause', () => {
  it('SP-17, W09 holds the run at the next boundary whatever the planner is, and costs no step', async () => {
    const { run, planner, go, journal } = await busy();
    const paused = run.pause();
    await quiet();
    go();
    await paused;
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'external_event', payload: { by: 'operator' } }] });
    expect((await journal.get(run.id))?.status).toBe('paused');
    expect(planner.views).toHaveLength(1);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { steps: 2 } });
    expect(planner.views).toHaveLength(3);
  });

  it('adds nothing to a pause that is open', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    await run.pause();
    expect((await run.state()).pauses).toHaveLength(1);
  });

  it('and a resume in one drain leave the run going', async () => {
    const { run, journal, go } = await busy();
    await send(journal, run, { id: 'p', type: 'PAUSE' });
    await send(journal, run, { id: 'r', type: 'RESUME' });
    const last = run.steer('INJECT_CONTEXT');
    go();
    await last;
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await journal.get(run.id)).toMatchObject({ status: 'finished' });
  });
});

describe('a signal that comes just when the run ends', () => {
  it.each(Array.from({ length: 30 }, (_, index) => index))('is not taken after the ending (%i microtasks)', async (ticks) => {
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

describe('a signal that comes just when the run is let go of', () => {
  // The whole stretch from the pause's entry to the end of the driver, one turn of microtasks at a time.
  it.each(Array.from({ length: 40 }, (_, index) => index))('is not lost after %i microtasks', async (ticks) => {
    const made = world({ planner: script(pause) });
    const paused = gate();
    const append = made.journal.append.bind(made.journal);
    made.journal.append = async (request) => {
      await append(request);
      if (request.entries.at(-1)?.kind === 'paused') paused.open();
    };
    const run = await start(made);
    await paused.opened;
    for (let tick = 0; tick < ticks; tick += 1) await null;
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    await until(() => made.clock.pending === 0);
  });

  it('nor while the store is slow to let go', async () => {
    const made = world({ planner: script(pause) });
    const release = made.journal.release.bind(made.journal);
    const before = gate();
    const after = gate();
    made.journal.release = async (lease, park) => {
      before.open();
      const parked = await release(lease, park);
      await after.opened;
      return parked;
    };
    const run = await start(made);
    await before.opened;
    await turn();
    const approved = run.approve();
    await quiet();
    after.open();
    await approved;
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });
});
