/**
 * A flow that goes on after a failure and after a no: each has an edge of its own, to a node that gets the error or the rejection.
 * In a project of your own, import from 'pilotage' and its 'flow' and 'journal/memory'.
 */
import { z } from 'zod';
import { edge, type FlowFailure, flow, node } from '../src/flow/index.ts';
import { createRuntime, local, ToolFailure } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const cards = ['blocked', 'valid'];

const apologise = node('apologise', {
  effect: 'keyed',
  execute: ({ node: name, code }: FlowFailure) => `sorry: ${name} ${code}`,
});
const otherCard = node('other_card', {
  effect: 'pure',
  allowCycle: true,
  execute: ({ code }: FlowFailure) => {
    console.log('other_card after', code);
    return { card: 'valid' };
  },
});
const pay = node('pay', {
  effect: 'once',
  needsApproval: true,
  allowCycle: true,
  onError: otherCard,
  onRejected: apologise,
  execute: ({ card }: { card: string }) => {
    if (card === 'valid') return `paid with the ${card} card`;
    throw new ToolFailure('The bank says no.', { code: 'card_refused' });
  },
});

const checkout = flow({
  name: 'checkout',
  inputSchema: z.object({ card: z.enum(cards) }),
  budget: { hops: 20 },
  entry: pay,
  exit: [pay, apologise],
  edges: [edge(otherCard, pay)],
});

const runtime = createRuntime({ agents: [checkout], journal: memoryJournal() });

const paid = await checkout.start(runtime, { card: 'blocked' }, { identity: local('ana') });
for (let result = await paid.result(); result.status === 'paused'; result = await paid.result()) await paid.approve();
console.log(await paid.payload());

const refused = await checkout.start(runtime, { card: 'valid' }, { identity: local('bo') });
await refused.result();
await refused.reject(undefined, { reason: 'Not today.' });
await refused.result();
console.log(await refused.payload());
await runtime.close();
