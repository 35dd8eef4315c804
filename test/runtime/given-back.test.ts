import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type Planner } from '#pilotage';
import { VirtualClock } from '#testing';

const asks = (version: string): Planner => ({
  name: 'asks',
  version,
  next: ({ trajectory }) =>
    trajectory.count === 0
      ? { kind: 'request_pause', reason: 'await_input' }
      : { kind: 'finish', reason: 'goal', payload: version },
});

it('a run that this version cannot go on with stays due for others when it was answered just before it was claimed', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
  const first = createRuntime({ planner: asks('1'), journal, clock });
  const paused = await (await first.start('ask', { identity })).result();
  if (paused.status !== 'paused') throw new Error(`It is ${paused.status}.`);
  const [pause] = paused.pauses;
  const { claim } = journal;
  let answered = false;
  journal.claim = async (request) => {
    if (!answered) await journal.signal('r', { id: 'yes', type: 'RESUME', payload: { token: pause?.token ?? '' } });
    answered = true;
    return claim.call(journal, request);
  };
  const { release } = journal;
  const given = Promise.withResolvers<void>();
  journal.release = async (lease, park) => {
    const parked = await release.call(journal, lease, park);
    given.resolve();
    return parked;
  };
  const other = createRuntime({ planner: asks('2'), journal, clock, onFault: () => {} });
  await other.start('ask', { identity });
  await given.promise;
  expect((await journal.inbox('r')).length).toBe(1);
  // It is due now.
  expect((await journal.get('r'))?.wakeAt).toBeUndefined();
  await Promise.all([first.close(), other.close()]);
});
