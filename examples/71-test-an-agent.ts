/** An agent under test: its model is recorded once, replayed for nothing, and tried with another prompt. */
import { z } from 'zod';
import { agent, createRuntime, local, type ReactOptions, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { recordingModel, scriptedModel } from '../src/testing/index.ts';

const inputSchema = z.object({ order: z.string() });
const lookUp = tool({ name: 'look_up', description: 'An order.', effect: 'read', inputSchema, execute: () => 42 });
const desk = (model: ReactOptions['model'], systemPrompt: string) =>
  agent({ name: 'desk', planner: react({ model, systemPrompt }), tools: [lookUp] });

// Once, with a provider; here it is one that is kind when it is told to be.
const provider = scriptedModel(({ prompt }) => {
  if (prompt.at(-1)?.role !== 'tool') return { calls: [{ tool: 'look_up', args: { order: 'A-17' } }] };
  return { text: JSON.stringify(prompt[0]).includes('kind') ? 'Dear Ana, it was 42.' : '42.' };
});
const recorded = recordingModel(provider);
const journal = memoryJournal();
const first = createRuntime({ agents: [desk(recorded, 'Be brief.')], journal });
const { id } = await first.start('What was A-17?', { identity: local('ana') });
await first.run(id).result();
const replies = recorded.calls.map(({ reply }) => reply); // JSON: keep it beside the test

// In each build: would the code of today decide the same, given the same replies?
const script = scriptedModel(replies);
const today = createRuntime({ agents: [desk(script, 'Be brief.')], journal });
const { compared, divergence } = await today.run(id).replay();
script.assertConsumed(); // it was asked as often as then
console.log(compared, 'decisions', divergence ?? 'agree');

// The same run with another prompt, from its first step on.
const kinder = createRuntime({ agents: [desk(provider, 'Be kind.')], journal });
const fork = await (await kinder.run(id).fork({ step: 0 })).result();
console.log(fork.status === 'finished' && fork.answer);
await Promise.all([first, today, kinder].map((runtime) => runtime.close()));
