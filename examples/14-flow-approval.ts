/**
 * A flow that waits for a person: it goes round until a draft is short enough, and what it sends has to be approved, by the handle
 * of its run. In a project of your own, import from 'pilotage' and its 'flow' and 'journal/memory'.
 */
import { z } from 'zod';
import { edge, flow, node, predicateRouter } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

interface Letter {
  readonly to: string;
  readonly text: string;
}

const write = node('write', {
  effect: 'read',
  execute: ({ to }: { to: string }): Letter => ({ to, text: 'We are sorry. Truly. A new lamp is on its way.' }),
});
const shorten = node('shorten', {
  effect: 'pure',
  allowCycle: true,
  execute: ({ to, text }: Letter): Letter => ({ to, text: text.replace(/\. [^.]*\./, '.') }),
});
const send = node('send', {
  effect: 'once',
  needsApproval: { reason: 'a letter goes to a customer', expiresInMs: 24 * 3_600_000 },
  inputSchema: z.object({ to: z.email(), text: z.string().max(40) }),
  execute: ({ to, text }) => `sent to ${to}: ${text}`,
});
const byLength = predicateRouter<Letter>({
  branches: [{ when: ({ text }) => text.length > 40, to: shorten }],
  default: send,
}).asNode('by_length', { allowCycle: true });

const apologise = flow({
  name: 'apologise',
  inputSchema: z.object({ to: z.email() }),
  budget: { hops: 20 },
  entry: write,
  exit: send,
  edges: [edge(write, byLength), edge(shorten, byLength)],
});

const runtime = createRuntime({ agents: [apologise], journal: memoryJournal() });
const run = await apologise.start(runtime, { to: 'bo@example.org' }, { identity: local('ana') });

const first = await run.result();
if (first.status === 'paused')
  console.log(first.status, first.pauses[0]?.reason, JSON.stringify(first.pauses[0]?.payload));
// With other arguments than the node was handed. They are checked as these were.
await run.approve(undefined, {
  args: { to: 'bo@example.org', text: 'A new lamp is on its way.' },
  reason: 'No pleading.',
});

const result = await run.result();
if (result.status === 'finished') console.log(result.reason, result.payload);
for await (const event of run.events()) if ('outcome' in event) console.log(event.step, event.tool, event.type);
await runtime.close();
