/** A birthday card: friends are asked whether they come, each answers by a link, and on the day the card goes out. */
import { z } from 'zod';
import { flow, node } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

// In the place of models and of a mail server.
const model = async (prompt: string) => `[${prompt}]`;
const mail = (to: string, text: string) => console.log(`to ${to}: ${text}`);

const inputSchema = z.object({ theme: z.string(), to: z.string(), friends: z.string().array(), on: z.string() });
const make = node('make', {
  effect: 'keyed',
  execute: async ({ theme, to, friends, on }: z.infer<typeof inputSchema>, context) => {
    const parts = ['A picture of', 'A greeting about'];
    const [image, text] = await Promise.all(parts.map((part) => context.once(part, () => model(`${part} ${theme}`))));
    const link = (friend: string) => `${context.identity.run}/${friend}`;
    for (const friend of friends)
      await context.once(`ask ${friend}`, () => mail(friend, `Do you come? ${link(friend)}`));
    const schema = z.object({ reply: z.enum(['yes', 'no']) });
    const replies = await Promise.all(friends.map((friend) => context.event({ key: link(friend), schema })));
    await context.sleep({ until: on });
    const guests = friends.filter((_, index) => replies[index]?.reply === 'yes').join(' and ');
    await context.once('send', () => mail(to, `${text} ${image} from ${guests}`));
    return { image, text, guests };
  },
});
const card = flow({ name: 'card', inputSchema, entry: make, exit: make });

const runtime = createRuntime({ agents: [card], journal: memoryJournal() });
const friends = ['bo', 'cy', 'di'];
const wanted = { theme: 'cats', to: 'eva', friends, on: '2025-01-31T08:00:00Z' };
const run = await card.start(runtime, wanted, { identity: local('ana', { run: 'card-7' }) });
for (const friend of friends)
  await runtime.signal(`card-7/${friend}`, { reply: friend === 'cy' ? 'no' : 'yes' }, { id: friend });
console.log(await run.payload());
await runtime.close();
