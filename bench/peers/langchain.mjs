/** LangChain's `createAgent`, which runs on LangGraph; no checkpointer, tracing off. */
import { createAgent } from 'langchain';
import { QUERY } from '../workload.ts';
import { langchainTool, ScriptedChatModel } from './langchain-model.mjs';
import { servePeer } from './peer.mjs';

await servePeer((steps) => {
  let calls = 0;
  const tools = [
    langchainTool(() => {
      calls += 1;
    }),
  ];
  const agent = createAgent({ model: new ScriptedChatModel(steps), tools });
  return async () => {
    calls = 0;
    await agent.invoke({ messages: [{ role: 'user', content: QUERY }] }, { recursionLimit: 2 * steps + 10 });
    return calls;
  };
});
