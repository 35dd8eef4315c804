/** The AI SDK's `generateText` with the scripted model itself. */
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { INPUT_SCHEMA, keepNote, QUERY, scriptedModel, TOOL_DESCRIPTION, TOOL_NAME } from '../workload.ts';
import { servePeer } from './peer.mjs';
import { ajvValidate } from './validate.mjs';

await servePeer((steps) => {
  const model = scriptedModel(steps);
  let calls = 0;
  const tools = {
    [TOOL_NAME]: tool({
      description: TOOL_DESCRIPTION,
      inputSchema: jsonSchema(INPUT_SCHEMA, { validate: ajvValidate }),
      execute: (note) => {
        calls += 1;
        return keepNote(note);
      },
    }),
  };
  return async () => {
    calls = 0;
    await generateText({ model, tools, prompt: QUERY, stopWhen: stepCountIs(steps + 1) });
    return calls;
  };
});
