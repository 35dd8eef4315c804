/** OpenAI Agents, with a model object of our own; tracing off. */
import { Agent, Runner, setTracingDisabled, tool } from '@openai/agents';
import {
  argumentText,
  callId,
  INPUT_SCHEMA,
  keepNote,
  QUERY,
  stepAfter,
  TOOL_DESCRIPTION,
  TOOL_NAME,
} from '../workload.ts';
import { servePeer } from './peer.mjs';

setTracingDisabled(true);

const USAGE = { requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 };

function scriptedAgentsModel(steps) {
  return {
    async getResponse({ input }) {
      const last = typeof input === 'string' ? undefined : input.at(-1);
      const step = stepAfter(last?.type === 'function_call_result' ? last.callId : undefined);
      return { usage: USAGE, output: [step > steps ? answer() : call(step)] };
    },
    getStreamedResponse() {
      throw new Error('This run does not stream.');
    },
  };
}

function call(step) {
  return {
    type: 'function_call',
    callId: callId(step),
    name: TOOL_NAME,
    arguments: argumentText(step),
    status: 'completed',
  };
}

function answer() {
  return {
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Done.' }],
  };
}

await servePeer((steps) => {
  let calls = 0;
  const note = tool({
    name: TOOL_NAME,
    description: TOOL_DESCRIPTION,
    parameters: INPUT_SCHEMA,
    strict: true,
    execute: (args) => {
      calls += 1;
      return keepNote(args);
    },
  });
  const agent = new Agent({ name: 'bench', instructions: '', tools: [note], model: scriptedAgentsModel(steps) });
  const runner = new Runner({ tracingDisabled: true });
  return async () => {
    calls = 0;
    await runner.run(agent, QUERY, { maxTurns: steps + 2 });
    return calls;
  };
});
