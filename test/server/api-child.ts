/** Serves our own API with the agent for trying clients, until it is killed. `node api-child.ts <journal> <port>` */
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { api, createHandler, serve } from '#server';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { bearer } from './bearer.ts';

const [, , path = '', port = '0'] = process.argv;
const runtime = createRuntime({
  agents: [scenarioAgent(new Effects(`${path}-effects`))],
  journal: sqliteJournal({ path }),
  leaseMs: 400,
});
runtime.work();
const served = await serve(createHandler({ runtime, parts: [api()], authenticate: bearer }), { port: Number(port) });
console.log(served.port);
