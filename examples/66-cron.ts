/** A reminder every ten seconds: its schedule is put, paused, fired by hand, and goes on. */
import { z } from 'zod';
import { edge, flow, node } from '../src/flow/index.ts';
import { createRuntime } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const store = node('store', { effect: 'keyed', execute: (text: string) => `${text} (stored)` });
const notify = node('notify', { effect: 'keyed', execute: (text: string) => console.log(text) });
const edges = [edge(store, notify)];
const reminder = flow({ name: 'reminder', inputSchema: z.string(), entry: store, exit: notify, edges });

const runtime = createRuntime({ agents: [reminder], journal: memoryJournal() });
const { schedules } = runtime;
await schedules.put({
  id: 'recycling',
  cron: '*/10 * * * * *',
  overlap: 'parallel',
  query: 'Remind me',
  input: 'Take out the recycling tonight.',
});
await schedules.pause('recycling');
const run = await schedules.trigger('recycling');
await run.result();
console.log((await schedules.resume('recycling')).status, (await runtime.list({ schedule: 'recycling' })).length);
await runtime.close();
