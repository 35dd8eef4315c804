/** What happens to a runtime while it claims runs, and has set slots aside for them. */
import { expect, it } from 'vitest';
import { local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { asks as asksFor, finish, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { startedEntry } from '../kit/run-record.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

it('a cancel that comes while a run is being claimed stops it, however long its planner thinks', async () => {
  const clock = new VirtualClock();
  const base = memoryJournal({ clock });
  await base.create({ identity: local('ana', { run: 'r' }), priority: 0, entries: [startedEntry('r', 0)] });
  const [claimed, told] = [gate(), gate()];
  const journal = changed(base, {
    claimDue: async (request) => {
      const found = await base.claimDue(request);
      claimed.open();
      await told.opened;
      return found;
    },
  });
  const thinks: PlannerFunction = async (_, signal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return finish();
  };
  const made = world({ planner: thinks, journal, clock });
  made.runtime.work();
  await claimed.opened;
  const cancelled = made.runtime.run('r').cancel();
  await until(async () => (await base.inbox('r')).length === 1);
  told.open();
  // No time passes: nothing but the word itself is heard.
  await until(async () => (await base.get('r'))?.status === 'cancelled');
  await cancelled;
  await made.runtime.close();
});

it('a run that is started while parked runs are claimed begins when the claim is over', async () => {
  const clock = new VirtualClock();
  const base = memoryJournal({ clock });
  const [asked, answered] = [gate(), gate()];
  const journal = changed(base, {
    nextDue: async () => 0,
    claimParked: async () => {
      asked.open();
      await answered.opened;
      return [];
    },
  });
  const made = world({ planner: script(), journal, clock, maxLiveRuns: 1 });
  await made.runtime.session('other').turns();
  clock.advance(5);
  await asked.opened;
  const run = await start(made);
  expect((await base.get(run.id))?.status).toBe('pending');
  answered.open();
  expect(await run.result()).toMatchObject({ status: 'finished' });
  await made.runtime.close();
});

it('a run that is resumed while this process claims it for itself goes on with what it is resumed with, before resume is over', async () => {
  const clock = new VirtualClock();
  const base = memoryJournal({ clock });
  const asks = world({ planner: { name: 'p', version: '1', next: script(asksFor) }, journal: base, clock });
  const { id } = await start(asks);
  await asks.runtime.run(id).result();
  await asks.runtime.close();
  let isClaimed = false;
  const told = gate();
  const journal = changed(base, {
    nextDue: async () => 0,
    claimParked: async (request) => {
      const found = await base.claimParked(request);
      if (found.length === 0) return found;
      isClaimed = true;
      await told.opened;
      return found;
    },
  });
  // Its code is other code: what it claims by itself is given back, and only whoever resumes it accepts that.
  const made = world({
    planner: { name: 'p', version: '2', next: script(finish('no'), finish('yes')) },
    journal,
    clock,
  });
  const speaker = world({ planner: { name: 'q', next: script() }, journal: base, clock });
  await speaker.runtime.run(id).send('well');
  await speaker.runtime.close();
  await made.runtime.run(id).state();
  await advanceUntil(clock, () => isClaimed);
  const resumed = made.runtime.run(id).resume({ acceptChanges: true });
  await quiet();
  told.open();
  await resumed;
  expect(await made.runtime.run(id).result()).toMatchObject({ status: 'finished', answer: 'yes' });
  await made.runtime.close();
});
