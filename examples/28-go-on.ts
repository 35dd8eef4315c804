/** A conversation that goes on in another agent, and a program that keeps the messages in a table of its own. */
import { agent, createRuntime, handoff, react } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { toModelMessages } from '../src/messages/index.ts';
import type { GivenTurn } from '../src/runtime/sessions-index.ts';
import { scriptedModel } from '../src/testing/index.ts';

const clerk = scriptedModel([{ text: 'Order A-17 is paid back.' }, { text: 'To your card.' }]);
const model = scriptedModel([{ calls: [{ tool: 'transfer_to_refunds', args: {} }] }]);

const refunds = agent({ name: 'refunds', planner: react({ model: clerk }) });
const tools = [handoff(refunds, { description: 'For whoever wants money back.' })];
const desk = agent({ name: 'desk', planner: react({ model }), tools });

const table: GivenTurn[] = [];
const runtime = createRuntime({
  agents: [desk, refunds],
  journal: memoryJournal(),
  history: {
    // The turns before a turn, when it begins: what is given is recorded with it.
    load: ({ identity }) => (identity.session === 'boots' ? [...table] : []),
    // What was said and done in a turn that has ended.
    save: ({ turns }) => {
      table.push(...toModelMessages(turns));
    },
  },
});

const session = runtime.session('boots');
for (const message of ['I want my money back for order A-17.', 'Where does it go?']) {
  const result = await (await session.send(message)).result();
  if (result.status === 'finished') console.log(`${result.answer}`);
}
for (const { agent: by, exchanges } of await session.turns()) console.log(`${by}: ${exchanges[0]?.user}`);
await runtime.close();
console.log(table.map(({ role }) => role).join(' '));
