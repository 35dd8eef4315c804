/**
 * The process that is killed: `node session-child.ts <folder> <url> <life>` has a turn of a session that ends, and in the life `first` a second one,
 * whose call says `entered` and never ends. The life `second` goes on with it to its end.
 */
import { join } from 'node:path';
import { createAnthropic } from '@ai-sdk/anthropic';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { tool } from '#tools';

const [folder = '', url = '', life = ''] = process.argv.slice(2);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const book = tool({
  name: 'book',
  description: 'Books something.',
  effect: 'read',
  inputSchema: { type: 'object', properties: { what: { type: 'string' } } },
  execute: ({ what }) => {
    if (what !== 'B' || life !== 'first') return { booking: `bk-${String(what)}` };
    process.stdout.write('entered\n');
    return new Promise<never>(() => {});
  },
});
const model = createAnthropic({ apiKey: 'k', baseURL: url })('claude-sonnet-4-5');
const runtime = createRuntime({ planner: react({ model }), tools: [book], memory: { strategy: 'window' }, journal });
const identity = (run: string) => local('ana', { session: 's', run });
if (life === 'first') {
  await (await runtime.start('book A', { identity: identity('one') })).result();
  await (await runtime.start('book B', { identity: identity('two') })).result();
} else {
  const run = runtime.run('two');
  await run.resume();
  const result = await run.result();
  process.stdout.write(`${result.status}\n`);
}
await runtime.close();
await journal.close();
