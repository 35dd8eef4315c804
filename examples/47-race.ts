/** A person is asked, and a rule decides when nobody answers in time; a film is rendered elsewhere, and asked for until it is there. */
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { askUser, later } from '../src/tools/index.ts';

const inputSchema = { type: 'object' } as const;
const rule = tool({
  name: 'rule',
  description: 'Decides by the rule when nobody has answered in time.',
  effect: 'pure',
  inputSchema,
  execute: async (_, context) => {
    await context.sleep({ forMs: 20 });
    return 'no: nobody has answered';
  },
});
let polls = 0;
const render = tool({
  name: 'render',
  description: 'Renders a film.',
  effect: 'keyed',
  inputSchema,
  execute: (_, { idempotencyKey: key }) => later({ key, pollEveryMs: 20, expiresInMs: 3_600_000 }),
  poll: () => (++polls < 3 ? undefined : { film: 'oslo.mp4' }),
});
const branches = ['ask_user', 'rule'].map((name) => ({
  tool: name,
  args: name === 'rule' ? {} : { question: 'May it be made?' },
}));
const race = { kind: 'call_parallel', branches, join: { kind: 'first_success' } } as const;
const decisions = [race, { kind: 'call_tool', tool: 'render', args: {} }] as const;
const planner = (run: { trajectory: { count: number } }) =>
  decisions[run.trajectory.count] ?? ({ kind: 'finish', reason: 'goal' } as const);
const runtime = createRuntime({ planner, tools: [askUser, rule, render], journal: memoryJournal() });
const run = await runtime.start('A film of Oslo', { identity: local('ana', { run: 'oslo' }) });
for await (const event of run.events({ overPauses: true })) {
  if (event.type === 'call.waiting') console.log(event.tool, 'waits for', event.waits.map((wait) => wait.for).join());
  if (event.type === 'tool.completed') console.log(event.tool, JSON.stringify(event.outcome));
}
await runtime.close();
