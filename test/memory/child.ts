/**
 * The process that is killed: `node child.ts <folder> <life>` has a run with one call of a tool that reads a counter, writes it, and says
 * `wrote`. In the life `first` it then waits for ever; in a later one the call ends.
 */
import { join } from 'node:path';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { tool } from '#tools';
import { call, script } from '../kit/decisions.ts';

const [folder = '', life = ''] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const count = tool({
  name: 'count',
  description: 'Counts.',
  effect: 'keyed',
  inputSchema: { type: 'object' },
  execute: async (_, { store }) => {
    const before = Number((await store.get([], 'count'))?.value ?? 0);
    await store.put([], 'count', before + 1);
    say(`wrote ${(await store.get([], 'count'))?.value}`);
    if (life === 'first') await new Promise<never>(() => {});
    return before + 1;
  },
});
const runtime = createRuntime({ planner: script(call('count')), tools: [count], journal, leaseMs: 500 });
const identity = local('ann', { run: 'counting' });
if (life === 'first') await runtime.start('q', { identity });
const run = runtime.run('counting');
if (life !== 'first') await run.resume();
say(`ended ${(await run.result()).status}`);
say(`stored ${(await runtime.store.of(identity).get([], 'count'))?.value}`);
await runtime.close();
await journal.close();
