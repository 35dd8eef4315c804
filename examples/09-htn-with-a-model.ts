/**
 * Tasks and methods as before, with a model where judgement is needed: it chooses among the methods that apply, and solves a leaf.
 * It takes the server of OPENAI_BASE_URL and the model of OPENAI_MODEL; without them a scripted server on loopback answers. In a
 * project of your own, import from 'pilotage' and its 'journal/memory', 'openai-compatible', 'planners/htn-model' and
 * 'planners/htn'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { htn, htnDomain } from '../src/planners/htn/index.ts';
import { chooseWith, fillWith } from '../src/planners/htn-model/htn-model.ts';
import { openaiServer } from '../src/testing/index.ts';

const server = await openaiServer([
  { text: '{"method":"replace"}' },
  { text: '{"steps":[{"type":"message","input":"We are sorry. A new lamp is on its way."}]}' },
]);
const { OPENAI_BASE_URL: baseUrl = server.url, OPENAI_MODEL: name = 'scripted' } = process.env;
const model = openaiCompatible({ baseUrl, model: name });

const planner = htn({
  domain: htnDomain({
    operators: { pay_back: () => true, send_again: () => true },
    tasks: {
      settle: [() => [['make_good'], ['write_reply']]],
      make_good: { refund: () => [['pay_back']], replace: () => [['send_again']], explain: () => [] },
      // No methods: a leaf, for `fill`.
      write_reply: [],
    },
  }),
  state: () => ({}),
  todo: () => [['settle']],
  step: ([action]) => ({ type: 'tool', toolId: action }),
  choose: chooseWith(model, { describe: { explain: 'Nothing is sent: it was no fault of ours.' } }),
  fill: fillWith(model, { describe: { write_reply: 'One kind sentence to the customer, as a message.' } }),
});

const tools = ['pay_back', 'send_again'].map((name) =>
  tool({ name, description: name, effect: 'keyed', inputSchema: z.object({}), execute: () => 'done' }),
);
const runtime = createRuntime({ planner, tools, journal: memoryJournal() });
const run = await runtime.start('The lamp arrived in two pieces.', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'tool.completed') console.log(event.tool);
  if (event.type === 'message') console.log(event.message);
}
await runtime.close();
await server.close();
