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
const identity = local('ana', { run: 'wall' });
const first = createRuntime({ planner, tools: [pickColor], journal });
await (await first.start('Paint the wall.', { identity, clientTools: [scrollTo] })).result();
await first.close();

const run = createRuntime({ planner, tools: [pickColor], journal }).run('wall');
while ((await run.result()).status === 'paused') {
  for (const { token, toolCallId, toolName, input } of clientCalls(await run.state())) {
    console.log(toolCallId, toolName, JSON.stringify(input));
    if (toolName === 'pick_color') {
      await run.answer(token, { kind: 'answer', value: 'red' }).catch((error) => console.log(error.code));
      await run.answer(token, { kind: 'answer', value: { color: 'red' } });
    } else await run.settle(token, { happened: true, error: { code: 'no_wall', message: 'There is no wall.' } });
  }
}
for (const { calls } of (await run.state()).steps) console.log(JSON.stringify(calls[0]?.outcome));
