/** A conversation in a session: messages while busy, an edit on a branch, and a reader of everything from any position. */
import { createRuntime, react } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const model = scriptedModel(({ prompt }) => {
  const said = prompt.filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content));
  return { text: `I have heard ${said.length}: ${/lamp|chair/.exec(said.at(-1) ?? '')?.[0] ?? 'nothing new'}.` };
});
const runtime = createRuntime({ planner: react({ model }), journal: memoryJournal() });
const session = runtime.session('shopping', { identity: { tenant: 'shop', user: 'ana' } });

const first = await session.send('I want a lamp.', { id: 'm1' });
// It waits until the turn before it has ended, and knows what was said in it.
const second = await session.send('And a chair.', { id: 'm2' });
console.log(first.as, second.as);
await second.result();
// The same message once more changes nothing.
console.log((await session.send('And a chair.', { id: 'm2' })).as);

const edited = await session.edit(first.turn, 'I want a chair.');
const result = await edited.result();
if (result.status === 'finished') console.log(result.answer);
for (const { number, exchanges } of await session.turns()) console.log('turn', number, exchanges[0]?.user);
const [before] = await session.branches();
if (before !== undefined) await session.switchTo(before.turn);
for (const { number, exchanges } of await session.turns()) console.log('turn', number, exchanges[0]?.assistant);

for await (const event of session.events()) {
  if (event.type === 'turn.started') console.log(event.position, event.messages.length, event.query);
  if (event.type === 'turn.started' && event.replaces !== undefined) break;
}
await runtime.sessions.setTitle({ tenant: 'shop', user: 'ana', session: 'shopping' }, 'Furniture');
const [found] = await runtime.sessions.list({ tenant: 'shop', text: 'furn' });
console.log(found?.title, found?.turns);
await runtime.close();
