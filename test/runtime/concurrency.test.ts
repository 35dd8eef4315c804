/** Many runs on one runtime, and what is left when they are over. */
import { describe, expect, it } from 'vitest';
import { type Clock, local, systemClock } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { observations } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, gate, quiet, turn, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const COUNT = 128;

/** Echoes its run's own identity through a tool three times, says what it saw, and finishes with it. */
const mirror = make('mirror', async ({ from }, { identity }) => {
  await turn();
  return { from, run: identity.run, user: identity.user };
});

describe('128 runs at once', () => {
  it('CR-01, CR-02, RL-22 have their own identity, messages, budgets and results', async () => {
    const made = world({
      planner: async (run) => {
        const { identity, query, trajectory } = run;
        await null;
        expect(query).toBe(`query of ${identity.run}`);
        expect(run.budget.stepsLeft).toBe(10 + Number(identity.user) - trajectory.count);
        expect(run.history).toEqual([{ role: 'user', text: identity.run }]);
        for (const step of trajectory.steps) {
          expect(step.calls[0]?.outcome).toEqual({
            kind: 'value',
            value: { from: identity.run, run: identity.run, user: identity.user },
          });
        }
        return trajectory.count < 3 ? call('mirror', { from: identity.run }) : finish({ run: identity.run });
      },
      tools: [mirror],
    });
    const runs = await Promise.all(
      Array.from({ length: COUNT }, (_, index) => {
        const run = `run${index}`;
        return made.runtime.start(`query of ${run}`, {
          identity: { tenant: `t${index % 3}`, user: String(index), session: `s${index % 5}`, run },
          limits: { steps: 10 + index },
          history: [{ role: 'user', text: run }],
        });
      }),
    );
    const streams = runs.map((run) => collect(run));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results).toEqual(
      runs.map((run) => expect.objectContaining({ status: 'finished', reason: 'goal', payload: { run: run.id } })),
    );
    for (const [index, events] of (await Promise.all(streams)).entries()) {
      expect(new Set(events.map((event) => event.identity.run))).toEqual(new Set([`run${index}`]));
    }
  });

  it('ID-05 keep apart two tenants that use the same session and artifacts of the same bytes', async () => {
    const made = world({
      planner: ({ trajectory }) => {
        const outcome = trajectory.step(0)?.calls[0]?.outcome;
        if (outcome?.kind !== 'value') return call('big');
        return trajectory.count === 1 ? call('artifact_fetch', { ref: outcome.artifact?.artifactRef ?? '' }) : finish();
      },
      tools: [make('big', (_, { identity }) => `${identity.tenant}`.repeat(20_000))],
    });
    const runs = await Promise.all(
      ['aa', 'bb'].map((tenant) =>
        start(made, { identity: { tenant, user: 'u', session: 's', run: `run ${tenant}` } }),
      ),
    );
    for (const run of runs) {
      await run.result();
      expect(observations(await run.state())[1]).toMatchObject({ found: true });
    }
    const ref =
      JSON.stringify(observations(await (runs[0] as (typeof runs)[0]).state())[1]).match(/art_\w+/)?.[0] ?? '';
    expect(await made.journal.artifacts.get({ tenant: 'bb', user: 'u', session: 's' }, ref)).toBeUndefined();
  });

  it('CR-03 cancelling half leaves the rest', async () => {
    const held = gate();
    let entered = 0;
    const made = world({
      planner: script(call('hold'), call('echo')),
      tools: [
        echo,
        make('hold', async (_, { signal }) => {
          entered += 1;
          await Promise.race([held.opened, aborted(signal)]);
        }),
      ],
    });
    const runs = await Promise.all(Array.from({ length: COUNT }, () => start(made)));
    await until(() => entered === COUNT);
    await Promise.all(runs.map((run, index) => (index % 2 === 0 ? run.cancel() : undefined)));
    held.open();
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.map((result) => result.status === 'finished' && result.reason)).toEqual(
      runs.map((_, index) => (index % 2 === 0 ? 'cancelled' : 'goal')),
    );
  });
});

describe('what is left', () => {
  it('CR-04 no timer, listener or open handle after a storm of runs, readers, pauses and cancels', async () => {
    const before = Map.groupBy(process.getActiveResourcesInfo(), (kind) => kind);
    /** What is open now and was not before. The test runner's own timer may end meanwhile. */
    const added = (): string[] =>
      [...Map.groupBy(process.getActiveResourcesInfo(), (kind) => kind)].flatMap(([kind, open]) =>
        kind === 'Immediate' || open.length <= (before.get(kind)?.length ?? 0) ? [] : [kind],
      );
    let timers = 0;
    const clock: Clock = {
      now: () => systemClock.now(),
      after(delayMs, wake, options) {
        // The look for what other processes park keeps no process alive.
        if (options?.holds === false) return systemClock.after(delayMs, wake, options);
        timers += 1;
        let open = true;
        const end = (): void => {
          if (open) timers -= 1;
          open = false;
        };
        const cancel = systemClock.after(delayMs, () => {
          end();
          wake();
        });
        return () => {
          end();
          cancel();
        };
      },
    };
    const listeners = process.eventNames().map((name) => [name, process.listenerCount(name)]);
    const watching = new Map<string, number>();
    const base = memoryJournal();
    const journal = new Proxy(base, {
      get(target, key) {
        const own: unknown = Reflect.get(target, key);
        if (key === 'watch') {
          return (run: string, wake: () => void) => {
            const stop = target.watch(run, wake);
            watching.set(run, (watching.get(run) ?? 0) + 1);
            return () => {
              watching.set(run, (watching.get(run) ?? 0) - 1);
              stop();
            };
          };
        }
        return typeof own === 'function' ? own.bind(target) : own;
      },
    });
    const runtime = createRuntime({
      planner: script(call('echo'), pause, call('echo')),
      tools: [{ ...echo, timeoutMs: 1_000_000 }],
      journal,
      clock,
    });
    const runs = await Promise.all(
      Array.from({ length: COUNT }, (_, index) => start({ runtime }, { identity: local(`u${index}`) })),
    );
    const streams = runs.map((run) => collect(run));
    for (const run of runs) run.events();
    await Promise.all(runs.map((run) => run.result()));
    await Promise.all(streams);
    await Promise.all(runs.map((run, index) => (index % 2 === 0 ? run.approve() : run.cancel())));
    await Promise.all(runs.map((run) => run.result()));
    await until(() => timers === 0);
    expect(added()).toEqual([]);
    expect([...watching.values()].every((count) => count === 0)).toBe(true);
    await runtime.close();
    expect(added()).toEqual([]);
    expect(timers).toBe(0);
    expect(process.eventNames().map((name) => [name, process.listenerCount(name)])).toEqual(listeners);
  });

  it('CR-04 nothing on the clock after joins, time limits, retries and abandoned calls', async () => {
    const late = gate();
    const made = world({
      planner: script(
        {
          kind: 'call_parallel',
          branches: [
            { tool: 'echo', args: {} },
            { tool: 'deaf', args: {} },
          ],
          join: { kind: 'first_success' },
        },
        call('flaky'),
      ),
      tools: [
        echo,
        make('deaf', () => late.opened),
        make('flaky', () => {
          throw Object.assign(new Error('busy'), { status: 503 });
        }),
      ],
    });
    const run = await start(made);
    while ((await run.state()).ending === null) {
      made.clock.advance(250);
      await quiet();
    }
    await until(() => made.clock.pending === 0);
    late.open();
    await quiet();
    expect(made.clock.pending).toBe(0);
    expect(made.faults).toEqual([]);
  });

  it('CR-05 one signal for a planner of 1000 steps; it gathers no listeners', async () => {
    const signals = new Set<AbortSignal>();
    let adds = 0;
    const made = world({
      planner: (run, signal) => {
        if (!signals.has(signal)) {
          const add = signal.addEventListener.bind(signal);
          signal.addEventListener = (...args: Parameters<typeof add>) => {
            adds += 1;
            add(...args);
          };
        }
        signals.add(signal);
        return run.trajectory.count < 1_000 ? call('echo') : finish();
      },
      tools: [echo],
    });
    const run = await start(made, { limits: { steps: 2_000 } });
    expect(await run.result()).toMatchObject({ usage: { steps: 1_000 } });
    expect(signals.size).toBe(1);
    expect(adds).toBe(0);
  });
});
