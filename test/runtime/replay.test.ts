/** Replay: what a planner would decide today, on what was recorded then, and nothing is done about it. */
import { describe, expect, it } from 'vitest';
import {
  asPlanner,
  type Decision,
  type Entry,
  type Move,
  PilotageError,
  type Planner,
  type PlannerFunction,
  type RunView,
} from '#core';
import { type ReplayReport, type ReplayRequest, replayRun } from '#runtime';
import { foldEntries } from '#state';
import { createCatalogue, type Tool } from '#tools';
import { call, finish, named, parallel, pause, sayingHello, script, watched } from '../kit/decisions.ts';
import { echo, make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const THREE = script(call('echo', { n: 1 }), parallel(named('echo', 'echo')), call('echo', { n: 3 }));

/** The journal of a run to its end, or its pause. */
async function recorded(
  planner: Planner | PlannerFunction,
  tools: readonly Tool[] = [echo],
  options: Parameters<typeof start>[1] = {},
): Promise<Entry[]> {
  const made = world({ planner, tools });
  const run = await start(made, options);
  await run.result();
  await made.runtime.close();
  return made.journal.read(run.id);
}

function replay(
  entries: readonly Entry[],
  planner: Planner | PlannerFunction,
  more: Partial<ReplayRequest> & { tools?: readonly Tool[] } = {},
): Promise<ReplayReport> {
  const { tools = [echo], ...rest } = more;
  const catalogue = createCatalogue([...tools], []);
  const toolsOf = (scopes: readonly string[], found: readonly string[]) => catalogue.view(scopes, found);
  return replayRun({ entries, planner: asPlanner(planner), toolsOf, ...rest });
}

/** Decides as the other does, but for one step. */
const otherwise =
  (at: number, decision: Decision): PlannerFunction =>
  (run, signal) =>
    run.trajectory.count === at ? decision : THREE(run, signal);

describe('replayRun', () => {
  it('asks for every decision, with the one that ended the run, and finds the same planner unchanged', async () => {
    const entries = await recorded(THREE);
    const { identity } = foldEntries(entries);
    expect(await replay(entries, THREE)).toEqual({ run: identity.run, from: 0, compared: 4 });
  });

  it('shows the planner what it was shown then', async () => {
    const planner = watched(THREE);
    const entries = await recorded(planner);
    const then = planner.views.splice(0);
    await replay(entries, planner);
    const seen = ({ tools: _, trajectory: { steps, steering }, ...rest }: RunView): unknown => ({
      ...rest,
      steps,
      steering,
    });
    expect(planner.views.map(seen)).toEqual(then.map(seen));
  });

  it('names the first step that is decided otherwise, and asks no further', async () => {
    const entries = await recorded(THREE);
    const planner = watched(otherwise(1, call('other')));
    const report = await replay(entries, planner);
    expect(report).toMatchObject({ compared: 2, divergence: { step: 1, now: { decision: call('other') } } });
    expect(report.divergence?.recorded.decision).toMatchObject({ kind: 'call_parallel' });
    expect(planner.views).toHaveLength(2);
  });

  it('takes another ending for a divergence', async () => {
    const entries = await recorded(THREE);
    const report = await replay(entries, otherwise(3, finish('else')));
    expect(report.divergence).toMatchObject({
      step: 3,
      recorded: { decision: { payload: 'done' } },
      now: { decision: { payload: 'else' } },
    });
  });

  it('does not mind call ids, the order of keys, or how the move comes', async () => {
    let ids = 0;
    const withIds: PlannerFunction = (run) => {
      ids += 1;
      const decision =
        run.trajectory.count === 0 ? { ...call('echo', { a: 1, b: 2 }), callId: `call_${ids}` } : finish();
      return decision as Decision;
    };
    const entries = await recorded(withIds);
    expect(await replay(entries, withIds)).not.toHaveProperty('divergence');
    const streaming: PlannerFunction = async function* (run) {
      yield { type: 'text', text: 'so' };
      yield { type: 'reset' };
      return run.trajectory.count === 0 ? { decision: call('echo', { b: 2, a: 1 }), text: 'so' } : finish();
    };
    expect(await replay(entries, streaming)).not.toHaveProperty('divergence');
  });

  it('takes a planner that fails, or gives no decision, for one that decides otherwise', async () => {
    const entries = await recorded(THREE);
    const failing: PlannerFunction = () => {
      throw new Error('no key');
    };
    const first = async (planner: PlannerFunction) => (await replay(entries, planner)).divergence;
    expect(await first(failing)).toMatchObject({
      step: 0,
      now: { error: { code: 'planner_failed', message: 'no key' } },
    });
    expect(await first(() => null as never)).toMatchObject({ now: { error: { code: 'planner_failed' } } });
    expect(await first(() => ({ kind: 'nothing' }) as never)).toMatchObject({
      now: { error: { code: 'invalid_decision' } },
    });
    expect(await first(() => call('', 1n as never))).toMatchObject({ now: { error: { code: 'invalid_decision' } } });
  });

  it('compares moves that came to nothing by their decision and the code of their error', async () => {
    const fault = (code: string): Move => ({ decision: finish('giving up'), fault: { code, message: code } });
    const moves = (code: string): Planner => ({
      name: 'model',
      modelDriven: true,
      next: ({ trajectory: { count } }) => [call(''), fault(code), finish('done')][count] as Decision | Move,
    });
    const entries = await recorded(moves('empty'));
    expect(foldEntries(entries).steps.map(({ error }) => error?.code)).toEqual(['invalid_decision', 'empty']);
    expect(await replay(entries, moves('empty'))).toMatchObject({ compared: 3 });
    expect(await replay(entries, moves('empty'))).not.toHaveProperty('divergence');
    expect((await replay(entries, moves('unreadable'))).divergence).toMatchObject({
      step: 1,
      recorded: { error: { code: 'empty' } },
      now: { error: { code: 'unreadable' } },
    });
    // The same words, meant this time.
    const meant: PlannerFunction = ({ trajectory: { count } }) => (count === 0 ? call('') : finish('giving up'));
    expect((await replay(entries, meant)).divergence).toMatchObject({ step: 1 });
  });

  it('asks for the step at which the planner failed, which ended the run', async () => {
    const failures: readonly PlannerFunction[] = [
      () => {
        throw new Error('no key');
      },
      async function* () {
        yield { type: 'text', text: 'so' };
        throw new Error('no key');
      },
      () => null as never,
      () => ({ kind: 'nothing' }) as never,
    ];
    for (const [index, fails] of failures.entries()) {
      const planner: PlannerFunction = (run, signal) =>
        run.trajectory.count === 0 ? call('echo') : fails(run, signal);
      for (const onFail of ['keep', 'undo'] as const) {
        const entries = await recorded(planner, [echo], { onFail });
        expect(foldEntries(entries).ending?.kind).toBe('failed');
        const same = await replay(entries, planner);
        expect([index, same.compared, same.divergence]).toEqual([index, 2, undefined]);
        expect((await replay(entries, script(call('echo')))).divergence).toMatchObject({
          step: 1,
          recorded: { error: { code: index === 3 ? 'invalid_decision' : 'planner_failed' } },
          now: { decision: finish('done') },
        });
      }
    }
  });

  it('asks for no step that nobody has decided: it was cancelled while its planner spoke', async () => {
    const { planner, begun, more } = sayingHello();
    const made = world({ planner });
    const run = await start(made);
    await begun.opened;
    await run.cancel();
    more.open();
    await run.result();
    await made.runtime.close();
    const entries = await made.journal.read(run.id);
    expect(entries.map(({ kind }) => kind)).toContain('moved');
    expect(await replay(entries, planner)).toEqual({ run: run.id, from: 0, compared: 0 });
  });

  it('takes the last move of a run at its limit for what the planner gave, whatever was left of it', async () => {
    const last =
      (move: PlannerFunction): PlannerFunction =>
      (run, signal) =>
        run.lastMove === undefined ? call('echo', { n: run.trajectory.count }) : move(run, signal);
    const fails = last(() => {
      throw new Error('no key');
    });
    const answers = last(() => finish('so far'));
    for (const planner of [last(() => call('echo')), last(() => pause), fails, answers]) {
      const entries = await recorded(planner, [echo], { limits: { steps: 2, onCeiling: 'answer' } });
      const { run } = foldEntries(entries).identity;
      expect(await replay(entries, planner)).toEqual({ run, from: 0, compared: 2 });
      if (planner === answers) continue;
      expect((await replay(entries, answers)).divergence).toMatchObject({ step: 1 });
    }
  });

  it('a model that refuses ends the run by that today, too', async () => {
    const next: PlannerFunction = () => {
      throw new PilotageError('model_refused', 'It will not.', { data: { model: 'm' } });
    };
    const planner: Planner = { name: 'model', next };
    const entries = await recorded(planner);
    expect(foldEntries(entries).ending).toMatchObject({ reason: 'refused' });
    expect(await replay(entries, planner)).toMatchObject({ compared: 1 });
    expect(await replay(entries, planner)).not.toHaveProperty('divergence');
  });

  it('replays a run that waits as far as it has come', async () => {
    const entries = await recorded(script(call('echo'), pause));
    expect(await replay(entries, script(call('echo'), pause))).toMatchObject({ compared: 2 });
    expect(await replay(entries, script(call('echo'), pause, call('x')))).not.toHaveProperty('divergence');
  });

  it('stops when it is aborted, also in a planner that does not listen', async () => {
    const entries = await recorded(THREE);
    const stop = new AbortController();
    const deaf: PlannerFunction = () => {
      queueMicrotask(() => stop.abort(new Error('enough')));
      return new Promise<Decision>(() => {});
    };
    await expect(replay(entries, deaf, { signal: stop.signal })).rejects.toThrow('enough');
    const asked = watched(THREE);
    await expect(replay(entries, asked, { signal: stop.signal })).rejects.toThrow('enough');
    expect(asked.views).toEqual([]);
  });

  it('refuses what is no journal', async () => {
    await expect(replay([], THREE)).rejects.toMatchObject({ code: 'journal_corrupt' });
  });
});

describe('what is not done again on replay', () => {
  it('clock and approval rule re-evaluated on replay: the recorded answers hold, and the difference is named', async () => {
    let now = 9;
    const asked: number[] = [];
    let made = 0;
    const mail = make(
      'mail',
      () => {
        made += 1;
        return 'sent';
      },
      {
        effect: 'once',
        needsApproval: () => {
          asked.push(now);
          return now < 12;
        },
      },
    );
    // What no planner should do: it reads a clock.
    const planner: PlannerFunction = ({ trajectory: { count } }) => {
      if (count > 0) return finish(now < 12 ? 'before noon' : 'after noon');
      return call('mail');
    };
    const { runtime, journal } = world({ planner, tools: [mail] });
    const run = await start({ runtime });
    expect((await run.result()).status).toBe('paused');
    await run.approve();
    expect((await run.result()).status).toBe('finished');
    const entries = await journal.read(run.id);
    now = 15;
    const report = await replay(entries, planner, { tools: [mail] });
    expect(report).toMatchObject({
      compared: 2,
      divergence: {
        step: 1,
        recorded: { decision: { payload: 'before noon' } },
        now: { decision: { payload: 'after noon' } },
      },
    });
    expect([asked, made]).toEqual([[9], 1]);
    expect(await journal.read(run.id)).toEqual(entries);
    await runtime.close();
  });

  it('no tool is called, whatever today’s planner wants', async () => {
    const calls: unknown[] = [];
    const spy = make('spy', (args) => {
      calls.push(args);
      return null;
    });
    const entries = await recorded(script(call('spy', { n: 1 })), [spy]);
    expect(calls).toHaveLength(1);
    const report = await replay(entries, script(call('spy', { n: 2 })), { tools: [spy] });
    expect(report.divergence).toMatchObject({ step: 0 });
    expect(calls).toHaveLength(1);
  });

  it('a compaction is the recorded one: the planner is not asked to shorten', async () => {
    const summary = { goals: ['g'], facts: [], pending: [], lastOutputDigest: '', note: '' };
    let shortened = 0;
    const planner: Planner = {
      name: 'short',
      next: (run) =>
        run.trajectory.count < 2 ? call('echo', { n: run.trajectory.compaction?.before ?? -1 }) : finish(),
      compact: async (run) => {
        shortened += 1;
        return run.trajectory.count === 1 ? { compaction: { summary, before: 1, tokenEstimate: 9 } } : undefined;
      },
    };
    const entries = await recorded(planner);
    const before = shortened;
    expect(entries.map(({ kind }) => kind)).toContain('compacted');
    expect(await replay(entries, planner)).not.toHaveProperty('divergence');
    expect(shortened).toBe(before);
  });
});
