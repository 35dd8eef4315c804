/** Breakpoints: a run stops before a tool begins, somebody looks, and it goes on call by call. */
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const plan = ['measure', 'cut', 'glue', 'paint'];
const tools = plan.map((name) =>
  tool({
    name,
    description: `Does: ${name}.`,
    effect: 'keyed',
    inputSchema: { type: 'object' },
    execute: async () => console.log(name),
  }),
);
const runtime = createRuntime({
  planner: ({ trajectory: { count } }) => {
    if (count === 0) return { kind: 'request_pause', reason: 'external_event' };
    const next = plan[count - 1];
    return next === undefined ? { kind: 'finish', reason: 'goal' } : { kind: 'call_tool', tool: next, args: {} };
  },
  tools,
  journal: memoryJournal(),
});
const run = await runtime.start('Build a box', { identity: local('ann', { run: 'box' }) });
for (let result = await run.result(); result.status === 'paused'; result = await run.result()) {
  const at = result.pauses[0]?.payload;
  if (at === undefined) {
    await run.pause({ before: { tool: 'cut' }, until: 'applied' });
    await run.resume();
  } else {
    console.log('stands before', at['tool']);
    await run.resume({ until: 'next' });
  }
}
await runtime.close();
