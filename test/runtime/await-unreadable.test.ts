import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, PilotageError, type Planner } from '#pilotage';

const awaits: Planner = {
  name: 'awaits',
  next: ({ query, trajectory }) =>
    query === 'wait' && trajectory.count === 0
      ? { kind: 'await_task', taskId: 'other' }
      : { kind: 'finish', reason: 'goal' },
};

it('a run that awaits one which this version cannot read is told so, and goes on', async () => {
  const journal = memoryJournal();
  const { read } = journal;
  journal.read = async (run, from, limit) => {
    if (run === 'other') {
      throw new PilotageError('journal_entry_unknown', 'Entry 3 is of the unknown kind "later".', { data: { run } });
    }
    return read.call(journal, run, from, limit);
  };
  const scope = { tenant: 't', user: 'u', session: 's' };
  const faults: unknown[] = [];
  const runtime = createRuntime({ planner: awaits, journal, onFault: (error) => void faults.push(error) });
  await runtime.start('be', { identity: { ...scope, run: 'other' } });
  const run = await runtime.start('wait', { identity: { ...scope, run: 'own' } });
  expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  const ended = (await journal.read('own')).find((entry) => entry.kind === 'call_ended');
  expect(ended).toMatchObject({ outcome: { kind: 'error', error: { code: 'journal_entry_unknown' } } });
  await runtime.close();
});
