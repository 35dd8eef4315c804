/** pi's agent loop, through its `runAgentLoop` and a stream function that has its message ready. */
import { runAgentLoop } from '@earendil-works/pi-agent-core';
import { createAssistantMessageEventStream } from '@earendil-works/pi-ai';
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

const MODEL = {
  id: 'scripted',
  name: 'scripted',
  api: 'openai-completions',
  provider: 'bench',
  baseUrl: 'http://127.0.0.1:9',
  reasoning: false,
  input: ['text'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1_000_000,
  maxTokens: 1000,
};
const USAGE = {
  input: 10,
  output: 5,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 15,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

function streamScript(steps) {
  return (_model, context) => {
    const last = context.messages.at(-1);
    const step = stepAfter(last?.role === 'toolResult' ? last.toolCallId : undefined);
    const stream = createAssistantMessageEventStream();
    stream.push({ type: 'done', reason: step > steps ? 'stop' : 'toolUse', message: replyOf(step, steps) });
    return stream;
  };
}

function replyOf(step, steps) {
  // A provider of pi's parses the arguments' text; so does this one.
  const content =
    step > steps
      ? [{ type: 'text', text: 'Done.' }]
      : [{ type: 'toolCall', id: callId(step), name: TOOL_NAME, arguments: JSON.parse(argumentText(step)) }];
  return {
    role: 'assistant',
    content,
    api: MODEL.api,
    provider: MODEL.provider,
    model: MODEL.id,
    usage: USAGE,
    stopReason: step > steps ? 'stop' : 'toolUse',
    timestamp: Date.now(),
  };
}

await servePeer((steps) => {
  const streamFn = streamScript(steps);
  let calls = 0;
  const tool = {
    name: TOOL_NAME,
    label: TOOL_NAME,
    description: TOOL_DESCRIPTION,
    parameters: INPUT_SCHEMA,
    async execute(_id, note) {
      calls += 1;
      const value = await keepNote(note);
      return { content: [{ type: 'text', text: JSON.stringify(value) }], details: value };
    },
  };
  const config = { model: MODEL, convertToLlm: (messages) => messages };
  return async () => {
    calls = 0;
    const prompt = { role: 'user', content: [{ type: 'text', text: QUERY }], timestamp: Date.now() };
    await runAgentLoop([prompt], { messages: [], tools: [tool] }, config, () => {}, undefined, streamFn);
    return calls;
  };
});
