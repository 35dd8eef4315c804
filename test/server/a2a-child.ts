/** A server of its own process, on the journal in a folder: `node a2a-child.ts FOLDER PORT HOST-OF-HOOKS`. */
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { createHandler, serve, webhooks } from '#server';
import { a2a } from '#server/a2a';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

const [folder = '.', port = '0', host = ''] = process.argv.slice(2);
const journal = sqliteJournal({ path: join(folder, 'journal.db'), watchIntervalMs: 10 });
const agents = [scenarioAgent(new Effects(join(folder, 'effects')))];
const runtime = createRuntime({ agents, journal, leaseMs: 1_000, takeoverGraceMs: 0 });
const hooks = webhooks({ runtime, allowHosts: [host], pollMs: 20, leaseMs: 1_000, backoff: { baseMs: 10, maxMs: 50 } });
runtime.work();
hooks.work();
const handler = createHandler({ runtime, parts: [a2a({ webhooks: hooks })] });
const served = await serve(handler, { port: Number(port) });
console.log(`port ${served.port}`);
