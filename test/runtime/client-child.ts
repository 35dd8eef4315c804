/** Parks a call of a client tool, and a call beside it that has an effect, and waits to be killed. `node client-child.ts <file>` */
import { appendFileSync } from 'node:fs';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { clientTool } from '#tools';
import { named, parallel, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

const [, , path = ''] = process.argv;
const book = make('book', () => appendFileSync(`${path}-effects`, 'book\n'), { effect: 'once' });
const pick = clientTool({ name: 'pick', description: 'Picks.', inputSchema: { type: 'object' } });
const runtime = createRuntime({
  planner: script(parallel(named('book', 'pick', 'shown'))),
  tools: [book, pick],
  journal: sqliteJournal({ path }),
});
const shown = { name: 'shown', description: 'Shows.', inputSchema: { type: 'object' } };
const run = await runtime.start('q', { identity: local('ana', { run: 'r' }), clientTools: [shown] });
const { status } = await run.result();
console.log(status);
setInterval(() => {}, 1_000);
