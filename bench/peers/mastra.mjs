/** Mastra's Agent with the scripted AI SDK model; no storage, no memory, logger off. */
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { keepNote, QUERY, scriptedModel, TOOL_DESCRIPTION, TOOL_NAME } from '../workload.ts';
import { servePeer } from './peer.mjs';

await servePeer((steps) => {
  let calls = 0;
  const note = createTool({
    id: TOOL_NAME,
    description: TOOL_DESCRIPTION,
    inputSchema: z.strictObject({ id: z.int(), text: z.string() }),
    execute: (input) => {
      calls += 1;
      return keepNote(input);
    },
  });
  const agent = new Agent({
    id: 'bench',
    name: 'bench',
    instructions: 'Make notes.',
    model: scriptedModel(steps),
    tools: { [TOOL_NAME]: note },
  });
  return async () => {
    calls = 0;
    await agent.generate(QUERY, { maxSteps: steps + 1 });
    return calls;
  };
});
