/** A server with the scenario agent on a file, for tests that kill it: `node ai-sdk-child.ts <folder>`. It says where it listens. */
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#pilotage';
import { createHandler, serve } from '#server';
import { aiSdk } from '#server/ai-sdk';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

const [, , folder = ''] = process.argv;
const effects = new Effects(join(folder, 'effects'));
const runtime = createRuntime({
  agents: [scenarioAgent(effects)],
  journal: sqliteJournal({ path: join(folder, 'runs.db') }),
});
runtime.work();
const { url } = await serve(createHandler({ runtime, parts: [aiSdk()] }), { port: 0 });
console.log(url);
