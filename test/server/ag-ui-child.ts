/** A server of AG-UI as a process of its own, on a journal in a file. `node ag-ui-child.ts <folder>` */
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { createHandler, serve } from '#server';
import { agUi } from '#server/ag-ui';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

const [, , folder = ''] = process.argv;
const effects = new Effects(join(folder, 'effects'));
const runtime = createRuntime({
  agents: [scenarioAgent(effects)],
  journal: sqliteJournal({ path: join(folder, 'journal.db') }),
});
runtime.work();
const { url } = await serve(createHandler({ runtime, parts: [agUi()] }), { port: 0 });
console.log(url);
