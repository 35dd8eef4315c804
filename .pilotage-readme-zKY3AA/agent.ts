import { createRuntime, local, react, tool } from '../src/index.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { z } from 'zod';

const weather = tool({
  name: 'weather', description: 'Current weather in a city', effect: 'read', inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: 'clear', celsius: 4 }),
});
const model = openaiCompatible({ baseUrl: process.env.OPENAI_BASE_URL ?? 'http://localhost:11434/v1', model: 'qwen3' });
const runtime = createRuntime({ planner: react({ model }), tools: [weather] }); // durable: .pilotage/pilotage.db
const run = await runtime.start('What should I pack for Oslo?', { identity: local('ana') });
for await (const event of run.events()) if (event.type === 'token') process.stdout.write(event.text);
const result = await run.result(); // { status: 'finished', reason: 'goal', answer, usage }, failed with error, or paused with pauses
console.log(result.status === 'paused' ? result.pauses[0]?.payload?.['message'] : result);
process.exitCode = result.status === 'finished' ? 0 : 1; // without a model server: the line that says so, and 1
