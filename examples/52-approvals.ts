/** A policy that denies, allows and asks: the third refund needs two people. In a project of your own, import from 'pilotage' and its 'journal/memory'. */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const refund = tool({
  name: 'refund',
  description: 'Pays money back.',
  effect: 'keyed',
  inputSchema: z.object({ order: z.string(), euros: z.number() }),
  execute: ({ order, euros }) => `${euros} euros for ${order}`,
});
const sums = [40, 60, 900, 50];
const small = z.object({ euros: z.number().max(500) });

const runtime = createRuntime({
  planner: ({ trajectory: { count } }) =>
    count < sums.length
      ? { kind: 'call_tool', tool: 'refund', args: { order: `A-${count}`, euros: sums[count] ?? 0 } }
      : { kind: 'finish', reason: 'goal' },
  tools: [refund],
  journal: memoryJournal(),
  policy: ({ tool, args }, { calls }) => {
    if (!small.safeParse(args).success) return { deny: 'At most 500 euros.' };
    const made = calls.filter((call) => call.tool === tool && call.outcome === 'value');
    return made.length < 2 ? 'allow' : { ask: 'The third refund.', approver: 'another', approvals: 2 };
  },
});
const run = await runtime.start('Pay back', { identity: local('ana', { run: 'refunds' }) });
const asked = await run.result();
if (asked.status === 'paused') console.log(asked.pauses[0]?.payload?.['reason'], asked.pauses[0]?.missing, 'people');
for (const user of ['bea', 'bea', 'cem']) {
  const as = { tenant: 'local', user, session: 'office', scope: 'admin' } as const;
  const said = runtime.run(run.id, { as }).approve();
  console.log(await said.then(() => `${user} says yes`).catch(({ message }) => message));
}
await run.result();
for (const { calls } of (await run.state()).steps) console.log(JSON.stringify(calls[0]?.outcome));
await runtime.close();
