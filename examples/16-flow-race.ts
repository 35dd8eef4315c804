/** A claim: a person is asked, the insurer may answer first, and a rule decides when nobody has answered in time. */
import { z } from 'zod';
import { edge, flow, node, race, unionRouter } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const inputSchema = z.object({ id: z.string(), forMs: z.number().default(86_400_000) });
type Claim = z.infer<typeof inputSchema>;

const person = node('person', { ask: { question: ({ id }: Claim) => `Is ${id} to be paid?`, schema: z.boolean() } });
const covers = z.object({ covers: z.number() });
const insurer = node('insurer', { event: { key: ({ id }: Claim) => `insurer/${id}`, schema: covers } });
const late = node('late', { sleep: { forMs: ({ forMs }: Claim) => forMs } });
const answer = race('answer', { of: [person, insurer, late] });

const told = node('told', { effect: 'pure', execute: ({ value }: { value: boolean }) => `The person says ${value}.` });
type Covered = { value: z.infer<typeof covers> };
const covered = node('covered', { effect: 'pure', execute: ({ value }: Covered) => `${value.covers} are covered.` });
const rule = node('rule', { effect: 'pure', execute: () => 'Nobody has answered: it is not paid.' });
const byBranch = unionRouter({
  select: 'branch',
  branches: { person: told, insurer: covered, late: rule },
}).asNode('by_branch');
const exit = [told, covered, rule];
const claims = flow({ name: 'claims', inputSchema, entry: answer, exit, edges: [edge(answer, byBranch)] });

const runtime = createRuntime({ agents: [claims], journal: memoryJournal() });
const claim = (id: string, forMs?: number) =>
  claims.start(runtime, { id, ...(forMs && { forMs }) }, { identity: local('ana', { run: id }) });
const runs = [await claim('claim-1'), await claim('claim-2'), await claim('claim-3', 20)];
await runtime.signal('insurer/claim-1', { covers: 90 }, { id: 'letter' });
const asked = await runs[1]?.result();
if (asked?.status === 'paused') await runs[1]?.answer(undefined, { kind: 'answer', value: false });
for (const run of runs) {
  for await (const event of run.events({ overPauses: true }))
    if (event.type === 'tool.completed' && event.tool === 'answer') console.log(JSON.stringify(event.outcome));
  console.log(await run.payload());
}
await runtime.close();
