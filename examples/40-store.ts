/** Long-term memory of tools: what a run has noted is found by its meaning, and a call that fails has noted nothing. */
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

// In place of `embedMany({ model, values: texts })`: how much a text is about drinks, about animals, and the rest.
const subjects = [/tea|coffee|drink/gi, /cat|dog|pet/gi];
const embed = async (texts: string[]) =>
  texts.map((text) => [...subjects.map((words) => text.match(words)?.length ?? 0), 0.1]);

const note = tool({
  name: 'note',
  description: 'Keeps a note.',
  effect: 'keyed',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  execute: async ({ text = '' }, { store }) => {
    const notes = await store.list(['notes']);
    await store.put(['notes'], `note ${notes.length}`, { text });
    if (text === 'Half of a no') throw new Error('The pen is empty.');
  },
});

const texts = ['She drinks green tea.', 'Half of a no', 'Her cat is called Momo.'];
const runtime = createRuntime({
  planner: ({ trajectory: { count } }) => {
    const text = texts[count];
    return text === undefined
      ? { kind: 'finish', reason: 'goal' }
      : { kind: 'call_tool', tool: 'note', args: { text } };
  },
  tools: [note],
  journal: memoryJournal(),
  store: { index: { embed, fields: ['text'] } },
});
await (await runtime.start('Take notes', { identity: local('ann') })).result();
const ann = runtime.store.of(local('ann'));
for (const { key, value, source } of await ann.list(['notes'])) console.log(key, 'of step', source?.step, value);
const [hit] = await ann.search(['notes'], 'Which pet does she have?');
console.log('found', hit?.value);
console.log('of Ben', await runtime.store.of(local('ben')).list([]));
await runtime.close();
