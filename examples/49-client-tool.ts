/** A tool that the page carries out which the user looks at: its call waits, another process shows it, and what the page says is its value. */
import { z } from 'zod';
import { clientTool, createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { clientCalls } from '../src/messages/index.ts';

const pickColor = clientTool({
  name: 'pick_color',
  description: 'Has the user pick a colour.',
  inputSchema: z.object({ from: z.array(z.string()) }),
  outputSchema: z.object({ color: z.string() }),
  timeoutMs: 600_000,
});
const colors = { from: ['red', 'blue'] };
const planner = (run: { trajectory: { count: number } }) =>
  [
    { kind: 'call_tool', tool: 'pick_color', args: colors, callId: 'call_1' } as const,
    { kind: 'call_tool', tool: 'scroll_to', args: { id: 'wall' }, callId: 'call_2' } as const,
  ][run.trajectory.count] ?? ({ kind: 'finish', reason: 'goal' } as const);
// What only this page can do comes with its request.
const scrollTo = { name: 'scroll_to', description: 'Scrolls.', inputSchema: { type: 'object' } };

const journal = memoryJournal();
const first = createRuntime({ planner, tools: [pickColor], journal });
const { id } = await first.start('Paint the wall.', { identity: local('ana'), clientTools: [scrollTo] });
await first.run(id).result();
await first.close();

const run = createRuntime({ planner, tools: [pickColor], journal }).run(id);
const [pick] = clientCalls(await run.state());
console.log(pick?.toolCallId, pick?.toolName, JSON.stringify(pick?.input));
await run.answer(pick?.token, { kind: 'answer', value: 'red' }).catch((error) => console.log(error.code));
await run.answer(pick?.token, { kind: 'answer', value: { color: 'red' } });
await run.result();
const error = { code: 'no_wall', message: 'The page has no wall.' };
await run.settle(clientCalls(await run.state())[0]?.token, { happened: true, error });
await run.result();
for (const { calls } of (await run.state()).steps) console.log(JSON.stringify(calls[0]?.outcome));
