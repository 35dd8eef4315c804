/** Slices of runs under a driver: how long they are, and what becomes of a run between two of them. */
import { describe, expect, it, vi } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, local, PilotageError } from '#pilotage';
import type { Advance, Driver } from '#pilotage/engine';
import type { Decision, RunView } from '#pilotage/planner';
import { TestEngine, VirtualClock } from '#testing';
import { holding, make } from '../kit/tools.ts';

/** A driver by hand: it notes what it is asked, and a test calls `advance`. */
class ByHand implements Driver {
  readonly woken: [run: string, at: number | undefined][] = [];
  advance: Advance = async () => ({ next: 'done' });
  isStarted = false;
  /** While it is set, nothing is taken. */
  fault: Error | undefined;

  start(advance: Advance): void {
    this.advance = advance;
    this.isStarted = true;
  }

  async wake(run: string, at?: number): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.woken.push([run, at]);
  }

  async stop(): Promise<void> {}
}

function planner({ query, trajectory }: RunView): Decision {
  const tool = query.split(' ')[trajectory.count];
  return tool === undefined ? { kind: 'finish', reason: 'goal' } : { kind: 'call_tool', tool, args: {} };
}

function bench() {
  const [clock, driver, faults] = [new VirtualClock(), new ByHand(), [] as unknown[]];
  const held = holding();
  const journal = memoryJournal({ clock });
  const step = make('step', () => 'done');
  const sleep = make('sleep', (_, context) => context.sleep({ forMs: 60_000 }), { effect: 'read' });
  const onFault = (error: unknown): void => void faults.push(error);
  const open = (given: Driver = driver) =>
    createRuntime({
      planner,
      tools: [step, sleep, { ...held.tool, name: 'hold' }],
      ...{ journal, clock, onFault, driver: given },
    });
  return { clock, driver, faults, held, journal, open };
}

describe('a slice', () => {
  it('is all of a run that is short, and a run that is started is only handed over', async () => {
    const { driver, open, journal } = bench();
    const runtime = open();
    runtime.work();
    await runtime.start('step step', { identity: local('ana', { run: 'r' }) });
    await expect.poll(() => driver.woken).toContainEqual(['r', undefined]);
    expect(await journal.get('r')).toMatchObject({ status: 'pending', head: 1 });
    expect(await driver.advance('r')).toEqual({ next: 'done' });
    expect(await runtime.run('r').result()).toMatchObject({ status: 'finished' });
    expect(await driver.advance('r')).toEqual({ next: 'done' });
    expect(await driver.advance('nobody')).toEqual({ next: 'done' });
    await runtime.close();
  });

  it('ends after a while with what is under way, and whoever waits for the run waits on', async () => {
    const { clock, driver, held, open } = bench();
    const runtime = open();
    runtime.work();
    const run = await runtime.start('hold step', { identity: local('ana', { run: 'r' }) });
    const result = run.result();
    const first = driver.advance('r');
    await held.entered;
    clock.advance(6_000);
    held.release();
    expect(await first).toEqual({ next: 'again' });
    expect((await run.trajectory()).steps.length).toBe(1);
    expect(await driver.advance('r')).toEqual({ next: 'done' });
    expect(await result).toMatchObject({ status: 'finished' });
    await runtime.close();
  });

  it('of a run that waits says until when, and one of a run that others have says until when they have it', async () => {
    const { clock, driver, held, open } = bench();
    const runtime = open();
    runtime.work();
    await runtime.start('sleep', { identity: local('ana', { run: 'r' }) });
    expect(await driver.advance('r')).toEqual({ next: 'wait', at: clock.now() + 60_000 });
    expect(await driver.advance('r')).toEqual({ next: 'wait', at: clock.now() + 60_000 });

    await runtime.start('hold', { identity: local('ben', { run: 's' }) });
    const [mine, theirs] = [driver.advance('s'), new ByHand()];
    await held.entered;
    const second = open(theirs);
    second.work();
    await expect.poll(() => theirs.isStarted).toBe(true);
    expect(await theirs.advance('s')).toEqual({ next: 'busy', until: clock.now() + 5_000 });
    held.release();
    expect(await mine).toEqual({ next: 'done' });
    await Promise.all([runtime.close(), second.close()]);
  });

  it('of a run with other code is refused, and left to others for a while', async () => {
    const { clock, driver, open, journal } = bench();
    const first = open();
    await first.start('step', { identity: local('ana', { run: 'r' }) });
    await first.close();
    const changed = make('step', () => 'done', { effect: 'read' });
    const second = createRuntime({ planner, tools: [changed], journal, clock, driver, onFault: () => undefined });
    second.work();
    // Its sweep has found the run, and handed it over.
    await expect.poll(() => driver.woken.length).toBe(2);
    expect(await driver.advance('r')).toEqual({ next: 'busy', until: clock.now() + 2_000 });
    expect(await journal.get('r')).toMatchObject({ problem: { code: 'run_changed' } });
    // Who accepts the changes goes on at once.
    await second.run('r').resume({ acceptChanges: true });
    expect(await second.run('r').result()).toMatchObject({ status: 'finished' });
    await second.close();
  });
});

describe('a process under a driver', () => {
  it('that has one slot carries out a run whose tool waits for another one', async () => {
    const engine = new TestEngine();
    const waits = make('waits', async (_, { identity }) => {
      const below = await runtime.start('', { identity: local(`below ${identity.run}`) });
      return (await below.result()).status;
    });
    const runtime = createRuntime({
      ...{ planner, tools: [waits], journal: memoryJournal(), driver: engine.driver(), maxLiveRuns: 1 },
    });
    runtime.work();
    const runs = await Promise.all(
      ['ana', 'ben', 'cem'].map((name) => runtime.start('waits', { identity: local(name) })),
    );
    for (const run of runs) expect(await run.result()).toMatchObject({ status: 'finished' });
    await runtime.close();
    engine.close();
  });

  it('sends the wakes that are under way before it ends', async () => {
    const { driver, open } = bench();
    const client = open();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = vi.spyOn(driver, 'wake').mockImplementation(() => promise);
    await client.start('step', { identity: local('ana', { run: 'r' }) });
    await client.run('r').send('More.');
    let isClosed = false;
    const closed = client.close().then(() => {
      isClosed = true;
    });
    await new Promise((next) => setImmediate(next));
    expect([isClosed, wake.mock.calls.length]).toEqual([false, 1]);
    resolve();
    await closed;
  });

  it('wakes a run once more that was told something while a wake of it was under way', async () => {
    const { driver, open } = bench();
    const client = open();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = vi.spyOn(driver, 'wake').mockImplementation(() => promise);
    await client.start('step', { identity: local('ana', { run: 'r' }) });
    await client.run('r').send('One.');
    await client.run('r').send('Two.');
    expect(wake).toHaveBeenCalledTimes(1);
    resolve();
    await expect.poll(() => wake.mock.calls.length).toBe(2);
    await client.close();
  });
});

describe('without the driver', () => {
  it('those who work go on by themselves, say so once, and hand runs over again when it is back', async () => {
    const { clock, driver, faults, open } = bench();
    const runtime = open();
    runtime.work();
    driver.fault = new Error('gone');
    const run = await runtime.start('step sleep step', { identity: local('ana', { run: 'r' }) });
    await expect.poll(async () => (await run.state()).steps.length).toBeGreaterThan(0);
    await runtime.start('step', { identity: local('ben', { run: 's' }) });
    expect(await runtime.run('s').result()).toMatchObject({ status: 'finished' });
    expect(faults).toEqual([driver.fault]);
    driver.fault = undefined;
    clock.advance(1_100);
    await runtime.start('step', { identity: local('cem', { run: 't' }) });
    await expect.poll(() => driver.woken.map(([woken]) => woken)).toContain('t');
    clock.advance(60_000);
    await expect.poll(() => driver.woken.map(([woken]) => woken)).toContain('r');
    // The sweep may have it in this moment, to hand it over.
    await expect.poll(() => driver.advance('r')).toEqual({ next: 'done' });
    await runtime.close();
  });

  it('a run that the own sweep is about to hand over is asked for again soon, and not after its lease', async () => {
    const { clock, driver, journal, open } = bench();
    const [claimed, given] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { release } = journal;
    vi.spyOn(journal, 'release').mockImplementation(async (lease, park) => {
      claimed.resolve();
      await given.promise;
      return release.call(journal, lease, park);
    });
    // Nobody was told of it: it is found by the sweep.
    driver.wake = async () => {};
    const client = open();
    await client.start('step', { identity: local('ana', { run: 'r' }) });
    const runtime = open();
    runtime.work();
    await claimed.promise;
    const busy = await driver.advance('r');
    expect(busy).toMatchObject({ next: 'busy' });
    expect('until' in busy && (busy.until ?? 0) - clock.now()).toBeLessThanOrEqual(1_000);
    given.resolve();
    await expect.poll(() => driver.advance('r')).toEqual({ next: 'done' });
    for (const each of [runtime, client]) await each.close();
  });

  it('a program that only starts runs leaves them to those who work', async () => {
    const { driver, faults, journal, open } = bench();
    driver.fault = new PilotageError('engine_unavailable', 'gone');
    const client = open();
    await client.start('step', { identity: local('ana', { run: 'r' }) });
    await expect.poll(() => faults.length).toBe(1);
    expect(await journal.get('r')).toMatchObject({ status: 'pending' });
    const worker = open();
    worker.work();
    expect(await client.run('r').result()).toMatchObject({ status: 'finished' });
    await Promise.all([client.close(), worker.close()]);
  });
});
