/** A server with the scenario agent on a file, for tests that kill it: `node ai-sdk-child.ts <folder>`. It says where it listens. */
import { join } from 'node:path';
import { sqliteJournal } from '../../src/journal/sqlite.ts';
import { createRuntime } from '../../src/index.ts';
import { aiSdk } from '../../src/server/ai-sdk/index.ts';
import { createHandler, serve } from '../../src/server/index.ts';
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
