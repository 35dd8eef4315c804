/**
 * `npm run chat-example -- --port 4112 --journal chat.db`: bundles the page, and serves it beside the chats of an agent that needs no model. Say
 * `slow 100`, `refund A-17 and B-18`, `weather in Oslo`, `data` or `fail` to it. It goes on where it was when it is started again on the same journal.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'rolldown';
import { createRuntime } from '../../src/index.ts';
import { aiSdk } from '../../src/server/ai-sdk/index.ts';
import { createHandler, type Part, serve } from '../../src/server/index.ts';
import { Effects, scenarioAgent } from '../scenario-agent.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '4112' },
    journal: { type: 'string', default: '.pilotage/chat.db' },
  },
});
const fileAt = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const [html, bundle] = await Promise.all([
  readFile(fileAt('index.html'), 'utf8'),
  build({
    input: fileAt('page.tsx'),
    platform: 'browser',
    // Packages that are made for servers too mark their files for a bundler that makes both.
    checks: { moduleLevelDirective: false },
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    output: { minify: true, codeSplitting: false },
    write: false,
  }),
]);

const page: Part = {
  name: 'page',
  open: ['/', '/page.js'],
  routes: (app) => {
    app.get('/', (context) => context.html(html));
    app.get('/page.js', (context) => context.body(bundle.output[0].code, 200, { 'content-type': 'text/javascript' }));
  },
};

const runtime = createRuntime({
  agents: [scenarioAgent(new Effects(`${values.journal}.effects`))],
  journal: values.journal,
});
// Runs that an earlier process has left go on at once.
runtime.work();
const served = await serve(createHandler({ runtime, parts: [page, aiSdk()] }), { port: Number(values.port) });
console.log(`Listening at ${served.url}`);
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, async () => {
    await served.close();
    await runtime.close();
  });
