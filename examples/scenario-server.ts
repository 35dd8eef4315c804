/**
 * One agent on all protocols, for trying clients: `npm run scenario -- --port 4111 --journal scenario.db`. It needs no model, says the same each time,
 * and goes on where it was when it is started again on the same journal. Visitors come with `authorization: Bearer good`.
 */
import { parseArgs } from 'node:util';
import { createRuntime } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { a2a } from '../src/server/a2a/index.ts';
import { agUi } from '../src/server/ag-ui/index.ts';
import { aiSdk } from '../src/server/ai-sdk/index.ts';
import { api, createHandler, type Part, problem, RequestRefused, serve, webhooks } from '../src/server/index.ts';
import { mcp } from '../src/server/mcp/index.ts';
import { Effects, effectsFileOf, scenarioAgent } from './scenario-agent.ts';

const { values } = parseArgs({
  options: { port: { type: 'string', default: '4111' }, journal: { type: 'string' } },
});
/** In a server of your own: from the surroundings, and the same in all its processes. */
const SECRET = 'a secret of this example that everybody knows';
/** How many runs a list has at most. */
const PAGE = 200;
const effects = new Effects(values.journal === undefined ? undefined : effectsFileOf(values.journal));
const runtime = createRuntime({
  agents: [scenarioAgent(effects)],
  journal: values.journal ?? memoryJournal(),
  // All visitors are one.
  maxLiveRuns: 1_000,
  maxLiveRunsPerTenant: 1_000,
});
// Receivers of push notifications are on this machine.
const hooks = webhooks({ runtime, allowHosts: ['localhost', '127.0.0.1'] });

/** How many runs are alive: they wait for their turn, are carried out, or wait for a time or a result. One that is paused waits for a person. */
async function underWay(): Promise<number> {
  for (let count = 0, after: string | undefined; ; ) {
    const found = await runtime.list({
      status: ['pending', 'running', 'waiting'],
      limit: PAGE,
      ...(after && { after }),
    });
    count += found.length;
    after = found.at(-1)?.identity.run;
    if (found.length < PAGE) return count;
  }
}

/** What really happened, and what is under way: for whoever tries a client, without being let in. */
const counters: Part = {
  name: 'counters',
  open: ['/effects', '/active'],
  routes: (app) => {
    app.get('/effects', ({ json }) => json({ weather: effects.count('weather'), refund: effects.count('refund') }));
    app.get('/active', async ({ json }) => {
      return json({ active: await underWay() });
    });
  },
};

const handler = createHandler({
  runtime,
  // Pages that are tried out have servers of their own.
  origins: ['http://localhost:*', 'http://127.0.0.1:*'],
  maxStreamsPerUser: 2_000,
  parts: [api(), aiSdk(), agUi(), a2a({ agent: 'scenario', webhooks: hooks }), mcp({ secret: SECRET }), counters],
  authenticate: (request) =>
    request.headers.get('authorization') === 'Bearer good'
      ? { identity: { tenant: 'scenario', user: 'ana' } }
      : problem(new RequestRefused('unauthenticated', 'Say authorization: Bearer good.')),
});
// Runs that an earlier process has left go on at once.
runtime.work();
hooks.work();
const served = await serve(handler, { port: Number(values.port) });
console.log(`Listening at ${served.url}`);
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, async () => {
    await served.close();
    await runtime.close();
  });
