/** One call with several questions: it asks again until the answer is an age. */
import { z } from 'zod';
import { edge, flow, node } from '../src/flow/index.ts';
import { createRuntime, local, type ToolContext } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

async function askAge(question: string, { ask }: ToolContext): Promise<number> {
  for (let words = question; ; words = `That is no age. ${question}`) {
    const said = await ask({ question: words, schema: z.string() });
    if (/^\d+$/.test(said)) return Number(said);
  }
}
const age = node('age', { effect: 'pure', execute: askAge });
const report = node('report', { effect: 'pure', execute: (years: number) => `${years} years old` });
const form = flow({ name: 'form', inputSchema: z.string(), entry: age, exit: report, edges: [edge(age, report)] });

const runtime = createRuntime({ agents: [form], journal: memoryJournal() });
const run = await form.start(runtime, 'How old are you?', { identity: local('ana', { run: 'form' }) });
for (const words of ['not a number', '-10', '25']) {
  const asked = await run.result();
  if (asked.status !== 'paused') break;
  console.log(asked.pauses[0]?.payload?.['message']);
  await run.send(words);
}
console.log(await run.payload());
await runtime.close();
