/** A schedule: a run at nine in Berlin on each working day, begun once, however many processes look, and over the change to summer time. */
import { createRuntime, type Planner } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { VirtualClock } from '../src/testing/index.ts';

const clock = new VirtualClock(Date.UTC(2026, 2, 26, 12));
const journal = memoryJournal({ clock });
const report: Planner = { name: 'report', next: () => ({ kind: 'finish', reason: 'goal', payload: 'sent' }) };
const open = () => createRuntime({ planner: report, journal, clock });
const processes = [open(), open()] as const;
const [{ schedules }, other] = processes;

// Each start of the program puts it: the same definition again changes nothing.
for (const { schedules: each } of processes) {
  await each.put({
    id: 'morning',
    cron: '0 9 * * 1-5',
    timezone: 'Europe/Berlin',
    query: 'Send the report',
    labels: { of: 'sales' },
  });
}

const passing = async (hours: number): Promise<void> => {
  for (let hour = 0; hour < hours; hour += 1) {
    clock.advance(3_600_000);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
};
await passing(5 * 24);
await schedules.pause('morning');
await passing(24);
await schedules.resume('morning');
await (await schedules.trigger('morning')).result();

for (const { schedule, status } of await other.list({ schedule: 'morning' })) {
  console.log(new Date(schedule?.at ?? 0).toISOString(), status, schedule?.triggered === true ? 'triggered' : '');
}
console.log((await other.list({ labels: { of: 'sales' }, text: 'REPORT' })).length, 'runs of sales');
for (const runtime of processes) await runtime.close();
