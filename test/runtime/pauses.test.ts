/** Pauses: who asks, who answers, and what the planner sees of it. */
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, kindsOf, observations, outcomes, send } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, turn, until } from '../kit/waiting.ts';
import { busy, start, world } from '../kit/world.ts';

describe('the planner’s pauses', () => {
  it('SP-35 opens one pause, and does not ask the planner until it is answered', async () => {
    const planner = watched(script(pause));
    const made = world({ planner });
    const run = await start(made);
    const result = await run.result();
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'external_event', token: expect.stringMatching(/^pause_/) }],
    });
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    expect(made.clock.pending).toBe(0);
    await quiet();
    expect(planner.views).toHaveLength(1);
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved', 'paused']);
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'paused', wakeAt: null });
  });

  it.each([
    ['approve', (run: Run) => run.approve(undefined, { payload: { by: 'ana' } }), 'approve'],
    ['reject', (run: Run) => run.reject(undefined, { payload: { by: 'ana' } }), 'reject'],
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
            : {
                decision: { ...pause, kind: 'request_pause', reason: 'approval_required', payload: { sum: 5 } },
                text: 'May I?',
              },
      }),
    );
    const first = await run.result();
    expect(first).toMatchObject({
      pauses: [{ reason: 'approval_required', payload: { sum: 5 }, text: 'May I?', step: 0 }],
    });
    await run.approve();
    const second = await run.result();
    if (first.status !== 'paused' || second.status !== 'paused') throw new Error('not paused');
    expect(first.pauses[0]?.token).not.toBe(second.pauses[0]?.token);
  });

  it('SP-26, SP-45 of 100 racing answers exactly one wins', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    const paused = await run.result();
    const token = paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '';
    const answers = Array.from({ length: 100 }, (_, index) => run.approve(token, { payload: { index } }));
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
    const answers = [one, two].map(({ runtime }) => runtime.run(id).approve(token));
    const settled = Promise.allSettled(answers);
    await advanceUntil(clock, async () => (await one.runtime.run(id).state()).ending !== null);
    expect((await settled).filter((answer) => answer.status === 'fulfilled')).toHaveLength(1);
    expect(planner.views).toHaveLength(2);
  });

  it('SP-27, SP-42 an unknown token resumes nothing', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    await expect(run.approve('pause_other')).rejects.toMatchObject({ code: 'pause_not_found' });
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
    const planner = watched(script({ ...pause, reason: 'external_event' } as never));
    const run = await start(world({ planner }));
    await run.result();
    await run.steer('USER_MESSAGE', { message: 'early' });
    await run.steer('INJECT_CONTEXT', { note: 'late' });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.resume();
    await run.result();
    expect(planner.views[1]?.controls.map((control) => control.type)).toEqual([
      'USER_MESSAGE',
      'INJECT_CONTEXT',
      'RESUME',
    ]);
  });

  it('SP-43 costs no steps: 70 messages during a pause, and a limit of 64', async () => {
    const planner = watched(script({ ...pause, reason: 'external_event' } as never));
    const run = await start(world({ planner }));
    await run.result();
    for (let index = 0; index < 70; index += 1)
      await run.steer('USER_MESSAGE', { message: `m${index}` }, { until: 'applied' });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 1 } });
    expect(planner.views[1]?.controls).toHaveLength(71);
  });

  it('SP-44 is answered with timeout when its time has passed, by a worker', async () => {
    const planner = watched(script({ ...pause, expiresInMs: 3_600_000 } as never));
    const made = world({ planner });
    made.runtime.work();
    const run = await start(made);
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ expiresAt: made.clock.now() + 3_600_000 }],
    });
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
    await expect(run.approve()).rejects.toMatchObject({ code: 'pause_expired' });
    await run.result();
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'timeout' }]);
  });

  it('SP-29 tells readers when it is asked and how it was answered', async () => {
    const run = await start(world({ planner: script({ ...pause, reason: 'external_event' } as never) }));
    const before = await collect(run);
    const requested = { reason: 'external_event', token: expect.any(String) };
    expect(before.slice(-2)).toMatchObject([
      { type: 'pause.requested', ...requested },
      { type: 'run.paused', pauses: [{ run: run.id, ...requested }] },
    ]);
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
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'external_event', payload: { by: 'operator' } }],
    });
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
