/**
 * A tool that asks a model itself: what that uses counts against the limits of the run, and a request that does not fit is not made. A scripted
 * server on loopback answers. In a project of your own, import from 'pilotage' and its 'journal/memory', 'openai-compatible' and 'planners/graph'.
 */
import { generateText } from 'ai';
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { graph } from '../src/planners/graph/index.ts';
import { openaiServer } from '../src/testing/index.ts';

const server = await openaiServer(() => ({
  text: 'In short: it rains.',
  usage: { inputTokens: 60, outputTokens: 20 },
}));
const small = openaiCompatible({ baseUrl: server.url, model: 'small' });

const summarise = tool({
  name: 'summarise',
  description: 'A summary of a text.',
  effect: 'read',
  inputSchema: z.object({ text: z.string() }),
  execute: async ({ text }, context) => {
    const model = context.model({ model: small, prices: { input: 0.1, output: 0.4 } });
    const { text: summary } = await generateText({ model, prompt: `Summarise: ${text}` });
    return summary;
  },
});

const step = (id: string, text: string) => ({ id, type: 'tool' as const, toolId: 'summarise', input: { text } });
const planner = graph({ plan: { steps: [step('oslo', 'Rain in Oslo.'), step('rome', 'Rain in Rome.')] } });
const runtime = createRuntime({ planner, tools: [summarise], journal: memoryJournal() });
for (const tokens of [1_000, 85]) {
  const run = await runtime.start('the weather', { identity: local('ana'), limits: { tokens } });
  for await (const event of run.events()) {
    if (event.type === 'tool.spent') console.log(event.model, event.usage.inputTokens, event.usage.outputTokens);
  }
  const result = await run.result();
  console.log(result.status, result.usage.inputTokens + result.usage.outputTokens, 'tokens of', tokens);
  if (result.status === 'failed') console.log(result.error.message);
}
await runtime.close();
await server.close();
