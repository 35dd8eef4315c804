/**
 * A plan that a program writes, as a graph: what does not wait for anything runs at the same time, and values go from step to
 * step. In a project of your own, import from 'pilotage' and its 'journal/memory' and 'planners/graph'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { graph } from '../src/planners/graph/index.ts';

const find = tool({
  name: 'find_flight',
  description: 'The best flight of a day.',
  effect: 'read',
  inputSchema: z.object({ to: z.string(), day: z.string() }),
  execute: ({ to, day }) => ({ flight: 'SK 803', to, lands: `${day}T18:40` }),
});
const book = tool({
  name: 'book_hotel',
  description: 'Books a room for a night.',
  effect: 'keyed',
  inputSchema: z.object({ city: z.string(), from: z.string() }),
  execute: ({ city, from }) => {
    if (city === 'Bergen') throw new Error('No room is left.');
    return { hotel: `Grand Hotel ${city}`, from };
  },
});
const weather = tool({
  name: 'weather',
  description: 'The forecast.',
  effect: 'read',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => ({ city, sky: 'rain' }),
});

const planner = graph({
  name: 'trip',
  plan: ({ goal: city }) => ({
    steps: [
      { id: 'flight', type: 'tool', toolId: 'find_flight', input: { to: city, day: '2026-11-30' } },
      { id: 'sky', type: 'tool', toolId: 'weather', input: { city }, after: [] },
      { id: 'hotel', type: 'tool', toolId: 'book_hotel', input: { city, from: { $from: 'flight', path: '/lands' } } },
      { id: 'coat', type: 'message', input: 'Take a coat.', after: ['sky'] },
      { id: 'done', type: 'finish', input: { flight: { $from: 'flight' }, hotel: { $from: 'hotel' } } },
    ],
  }),
});

const runtime = createRuntime({ planner, tools: [find, book, weather], journal: memoryJournal() });
for (const city of ['Oslo', 'Bergen']) {
  const run = await runtime.start(city, { identity: local('ana') });
  for await (const event of run.events()) {
    if (event.type === 'message') console.log(city, event.message);
    if (event.type === 'tool.failed' || event.type === 'tool.skipped') console.log(city, event.type, event.tool);
    if (event.type === 'planner.finish') console.log(city, event.reason, event.payload);
  }
  const result = await run.result();
  if (result.status === 'failed') console.log(city, result.error.code, result.error.data);
}
await runtime.close();
