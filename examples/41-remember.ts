/** An agent that remembers its user: a profile, facts, and a later run that is told of both. */
import { createRuntime, local, react } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const model = scriptedModel([
  { calls: [{ tool: 'remember', args: { facts: ['Ann likes green tea.'], profile: { city: 'Ulm' } } }] },
  { text: 'I will keep that in mind.' },
  { text: 'Green tea, as ever?' },
]);
const profile = { type: 'object', properties: { city: { type: 'string' }, language: { type: 'string' } } };
const runtime = createRuntime({ planner: react({ model, memory: { profile, recall: 5 } }), journal: memoryJournal() });

for (const query of ['I live in Ulm and like green tea.', 'Bring me some tea.']) {
  const run = await runtime.start(query, { identity: local('ann') });
  const result = await run.result();
  console.log(result.status === 'finished' ? result.answer : result);
}
const told = model.calls[2]?.prompt.find(({ role }) => role === 'user')?.content;
console.log(Array.isArray(told) && told[0]?.type === 'text' ? told[0].text : told);

const ann = runtime.store.of(local('ann'));
for (const { key, value } of await ann.list(['memory'])) console.log(key, value);
await ann.put(['memory'], 'profile', { city: 'Bern' });
await runtime.close();
