/**
 * Tasks, and the ways in which each is done: a parcel is delivered. When the van breaks down, only the way there is planned anew.
 * In a project of your own, import from 'pilotage' and its 'journal/memory' and 'planners/htn'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { htn, htnDomain } from '../src/planners/htn/index.ts';

const domain = htnDomain({
  operators: {
    load: () => true,
    drive(state, _vehicle: string, to: string) {
      state.set('at', 'courier', to);
      return true;
    },
    hand_over: (state, _parcel: string, to: string) => state.get('at', 'courier') === to,
  },
  tasks: {
    deliver: (_state, parcel: string, to: string) => [
      ['load', parcel],
      ['go', to],
      ['hand_over', parcel, to],
    ],
    // Tried in this order. An empty list of tasks: nothing has to be done.
    go: {
      stay: (state, to: string) => state.get('at', 'courier') === to && [],
      by_van: (_state, to: string) => [['drive', 'van', to]],
      by_bike: (_state, to: string) => [['drive', 'bike', to]],
    },
  },
});

const planner = htn({
  domain,
  state: () => ({ at: [['courier', 'depot']] }),
  todo: ({ goal }) => [['deliver', goal, 'Mill Street']],
  step: ([does, ...args]) => ({ type: 'tool', toolId: 'courier', input: { does, args } }),
});

const courier = tool({
  name: 'courier',
  description: 'Has the courier do something.',
  effect: 'keyed',
  inputSchema: z.object({ does: z.string(), args: z.array(z.string()) }),
  execute: ({ does, args }) => {
    if (args[0] === 'van') throw new Error('The van does not start.');
    return [does, ...args].join(' ');
  },
});

const runtime = createRuntime({ planner, tools: [courier], journal: memoryJournal() });
const run = await runtime.start('parcel 7', { identity: local('ana') });
for await (const event of run.events()) if ('outcome' in event) console.log(JSON.stringify(event.outcome));
const result = await run.result();
console.log(result.status === 'finished' && result.reason);
await runtime.close();
