/** A stream: rows that a tool writes while it works, read from any row on; one slow call is cancelled, and its run goes on. */
import { setTimeout } from 'node:timers/promises';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const crawl = tool({
  name: 'crawl',
  description: 'Reads a site, page by page.',
  effect: 'read',
  inputSchema: { type: 'object', properties: { site: { type: 'string' }, pages: { type: 'number' } } },
  idleMs: 10_000,
  execute: async ({ site, pages = 0 }, { stream, signal }) => {
    const log = stream('pages');
    for (let page = 1; page <= Number(pages); page += 1) {
      await log.write({ site, page });
      await setTimeout(1, undefined, { signal });
    }
    return `${site} was read`;
  },
});
const runtime = createRuntime({
  planner: ({ trajectory }) =>
    trajectory.count === 0
      ? {
          kind: 'call_parallel',
          branches: [
            { id: 'small', tool: 'crawl', args: { site: 'small.example', pages: 3 } },
            { id: 'endless', tool: 'crawl', args: { site: 'endless.example', pages: 1e9 } },
          ],
        }
      : { kind: 'finish', reason: 'goal', payload: trajectory.step(0)?.calls.map(({ outcome }) => outcome.kind) ?? [] },
  tools: [crawl],
  journal: memoryJournal(),
});
const run = await runtime.start('Read both', { identity: local('ann', { run: 'sites' }) });
for await (const { index } of run.stream('pages')) if (index === 8) break;
await run.cancelCall('endless', { reason: 'that is enough' }).catch(({ code }) => console.log(code));
console.log(await run.payload());
for await (const { index, value } of run.stream('pages', { from: 2 })) if (index < 4) console.log(index, value);
await runtime.close();
