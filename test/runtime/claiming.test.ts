/** What happens to a runtime while it claims runs, and has set slots aside for them. */
import { expect, it } from 'vitest';
import { local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { finish, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { startedEntry } from '../kit/run-record.ts';
import { gate, until } from '../kit/waiting.ts';
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
