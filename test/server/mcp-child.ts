/** A server of MCP that is killed: `mcp-child.ts <folder> <port>` serves the scenario agent on the journal of the folder, and goes on with its runs. */
import { join } from 'node:path';
import { createRuntime } from '#runtime';
import { createHandler, serve } from '#server';
import { mcp } from '#server/mcp';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

const [, , folder = '', port = '0'] = process.argv;
const effects = new Effects(join(folder, 'effects'));
const runtime = createRuntime({
  agents: [scenarioAgent(effects)],
  journal: join(folder, 'journal.db'),
  leaseMs: 1_000,
});
const handler = createHandler({ runtime, parts: [mcp({ secret: 'a secret of the tests, long enough' })] });
const served = await serve(handler, { port: Number(port) });
runtime.work();
process.stdout.write(`${served.port}\n`);
