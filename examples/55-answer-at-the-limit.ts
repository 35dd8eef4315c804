/** A model that would search for ever. At its limit it has one more move, without calls, to say what it has found. */
import { createRuntime, local, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const search = tool({
  name: 'search',
  description: 'Searches for offers.',
  effect: 'read',
  inputSchema: { type: 'object', properties: { page: { type: 'number' } } },
  execute: ({ page }) => `Offer ${String(page)}: ${100 - Number(page)} euros`,
});
const model = scriptedModel(({ toolChoice, prompt }) => {
  const pages = prompt.filter(({ role }) => role === 'tool').map((page) => JSON.stringify(page));
  if (toolChoice?.type !== 'none') return { calls: [{ tool: 'search', args: { page: pages.length + 1 } }] };
  return { text: `The best offer so far: ${/\d+ euros/.exec(pages.at(-1) ?? '')?.[0]}. There are more pages.` };
});
const runtime = createRuntime({
  planner: react({ model }),
  tools: [search],
  journal: memoryJournal(),
  limits: { steps: 4, onCeiling: 'answer' },
});
const run = await runtime.start('Find a cheap hotel', { identity: local('ana', { run: 'hotels' }) });
const result = await run.result();
if (result.status === 'finished') console.log(result.reason, '|', result.answer);
console.log('steps', (await run.state()).totals.steps, 'calls', (await run.state()).totals.calls);
await runtime.close();
