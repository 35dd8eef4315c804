/** Two agents at the same question: the first answer is taken, and the other agent is stopped. */
import { agent, agentTool, createRuntime, local, react } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const thinker = (name: string, systemPrompt: string, stall: boolean) => {
  const model = scriptedModel(() => ({ text: `${name} answer`, stall }));
  return agentTool(agent({ name, planner: react({ model, systemPrompt }) }), { description: systemPrompt });
};
const tools = [thinker('quick', 'Answer at once.', false), thinker('thorough', 'Analyse it thoroughly.', true)];
const runtime = createRuntime({
  planner: ({ query, trajectory }) => {
    const branches = tools.map(({ name }) => ({ tool: name, args: { input: query } }));
    if (trajectory.count === 0) return { kind: 'call_parallel', branches, join: { kind: 'first_success' } };
    const won = trajectory.step(0)?.calls.find(({ outcome }) => outcome.kind === 'value')?.outcome;
    return { kind: 'finish', reason: 'goal', payload: won?.kind === 'value' ? won.value : null };
  },
  tools,
  journal: memoryJournal(),
});
const run = await runtime.start('How does one learn to sail?', { identity: local('ana', { run: 'race' }) });
console.log(await run.payload());
await runtime.close();
