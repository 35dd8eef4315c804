/** Collects a stream of signals in one call, in a process that may be killed. `node signal-stream-child.js <folder> <count>` */
import { join } from 'node:path';
import { type Json, local } from '#core';
import { createRuntime } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

const [, , folder = '', count = '0'] = process.argv;

const cards = make(
  'cards',
  async (_, context) => {
    const names: Json[] = [];
    while (names.length < Number(count)) names.push((await context.event({ key: 'card' })) as Json);
    return names;
  },
  { effect: 'pure' },
);
const runtime = createRuntime({
  planner: { name: 'stream', next: script(call('cards')) },
  tools: [cards],
  journal: join(folder, 'journal.db'),
  leaseMs: 300,
  takeoverGraceMs: 0,
});
const run = await runtime.start('q', { identity: local('ana', { run: 'stream' }) });
runtime.work();
for await (const event of run.events()) {
  if (event.type === 'call.waiting' || event.type === 'call.waited') console.log(event.type);
}
console.log('ended');
await runtime.close();
