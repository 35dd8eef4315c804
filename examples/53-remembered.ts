/** A yes that holds for questions to come, and is taken back. In a project of your own, import from 'pilotage' and its 'journal/memory'. */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const mail = tool({
  name: 'mail',
  description: 'Sends a mail.',
  effect: 'keyed',
  inputSchema: z.object({ to: z.string() }),
  needsApproval: true,
  execute: ({ to }) => `sent to ${to}`,
});
const runtime = createRuntime({
  planner: ({ query, trajectory: { count } }) =>
    count === 0 ? { kind: 'call_tool', tool: 'mail', args: { to: query } } : { kind: 'finish', reason: 'goal' },
  tools: [mail],
  journal: memoryJournal(),
});
const write = (run: string, to: string) => runtime.start(to, { identity: local('ana', { session: 'letters', run }) });

const first = await write('first', 'bo@example.org');
const { status } = await first.result();
console.log(status);
const as = { tenant: 'local', user: 'ana', session: 'letters', scope: 'owner_user' } as const;
const match = { type: 'object', properties: { to: { pattern: '@example\\.org$' } }, required: ['to'] };
const remember = { scope: 'session', match, expiresInMs: 3_600_000 } as const;
if (status === 'paused') await runtime.run(first.id, { as }).approve(undefined, { remember });
await first.result();

const second = await write('second', 'cy@example.org');
console.log((await second.result()).status, 'and nobody was asked');
for await (const event of second.events())
  if (event.type === 'rule.applied') console.log(event.tool, event.verdict, 'by a rule of', event.rules[0]?.by?.user);
console.log((await (await write('third', 'di@elsewhere.org')).result()).status, 'for another address');

const [rule] = await runtime.rules.list({ tenant: 'local', user: 'ana' });
if (rule) await runtime.rules.revoke(rule.id);
console.log((await (await write('fourth', 'cy@example.org')).result()).status, 'since the rule was revoked');
await runtime.close();
