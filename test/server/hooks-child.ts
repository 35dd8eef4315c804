/** A process that posts webhooks, on the journal in a folder or in Postgres: `node hooks-child.ts FOLDER HOST-OF-HOOKS [URL SCHEMA]`. */
import { join } from 'node:path';
import { postgresJournal } from '#journal/postgres';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { webhooks } from '#server';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

const [folder = '.', host = '', url, schema = ''] = process.argv.slice(2);
const journal =
  url === undefined
    ? sqliteJournal({ path: join(folder, 'journal.db'), watchIntervalMs: 10 })
    : postgresJournal({ url }, { schema, maxConnections: 4 });
const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal });
webhooks({ runtime, allowHosts: [host], pollMs: 3_600_000, leaseMs: 1_000, backoff: { baseMs: 10, maxMs: 50 } }).work();
// It lives until it is killed.
setInterval(() => {}, 60_000);
console.log('port 0');
