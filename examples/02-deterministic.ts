/** A list of steps as planner. In a project of your own, import from 'pilotage', its 'journal/memory' and 'planners/deterministic'. */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { deterministic, lastResult, lastStep } from '../src/planners/deterministic/index.ts';

const lookUp = tool({
  name: 'look_up_person',
  description: 'What the contract says.',
  effect: 'read',
  inputSchema: z.object({ name: z.string() }),
  execute: ({ name }) => ({ remote: name === 'Bo' }),
});
const create = tool({
  name: 'create_account',
  description: 'Creates an account.',
  effect: 'keyed',
  inputSchema: z.object({ name: z.string(), system: z.enum(['mail', 'wiki']) }),
  execute: ({ name, system }) => `${name.toLowerCase()}@${system}`,
});
const sendLaptop = tool({
  name: 'send_laptop',
  description: 'Has a laptop sent home.',
  effect: 'keyed',
  inputSchema: z.object({ name: z.string() }),
  execute: ({ name }) => `parcel for ${name}`,
});

const planner = deterministic({
  name: 'first-day',
  steps: [
    { do: 'call', tool: 'look_up_person', args: ({ query }) => ({ name: query }), once: true },
    {
      do: 'parallel',
      branches: ({ query }) => [
        { tool: 'create_account', args: { name: query, system: 'mail' } },
        { tool: 'create_account', args: { name: query, system: 'wiki' } },
      ],
      once: true,
    },
    {
      do: 'call',
      tool: 'send_laptop',
      when: (run) => z.object({ remote: z.boolean() }).parse(lastResult(run, 'look_up_person')).remote,
      args: ({ query }) => ({ name: query }),
      once: true,
    },
    { do: 'finish', reason: 'goal', payload: (run) => (lastStep(run, 'send_laptop') ? 'Ready, at home.' : 'Ready.') },
  ],
});

const runtime = createRuntime({ planner, tools: [lookUp, create, sendLaptop], journal: memoryJournal() });
for (const name of ['Ana', 'Bo']) {
  const run = await runtime.start(name, { identity: local('hr') });
  for await (const event of run.events()) if ('outcome' in event) console.log(name, JSON.stringify(event.outcome));
  const result = await run.result();
  if (result.status === 'finished') console.log(name, result.answer);
}
await runtime.close();
