/** LangChain on LangGraph with its SQLite saver, each checkpoint written before the next step begins. */
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import Database from 'better-sqlite3';
import { createAgent } from 'langchain';
import { QUERY } from '../workload.ts';
import { measureDurablePeer } from './durable-peer.mjs';
import { langchainTool, ScriptedChatModel } from './langchain-model.mjs';

await measureDurablePeer('LangGraph, SqliteSaver', '@langchain/langgraph-checkpoint-sqlite', (path, steps) => {
  const db = new Database(path);
  // As our journal has it; the saver itself leaves SQLite's default.
  db.pragma('synchronous = FULL');
  let runs = 0;
  let calls = 0;
  const tools = [
    langchainTool(() => {
      calls += 1;
    }),
  ];
  const agent = createAgent({ model: new ScriptedChatModel(steps), tools, checkpointer: new SqliteSaver(db) });
  return {
    async run() {
      runs += 1;
      calls = 0;
      const config = { recursionLimit: 2 * steps + 10, durability: 'sync', configurable: { thread_id: String(runs) } };
      await agent.invoke({ messages: [{ role: 'user', content: QUERY }] }, config);
      if (calls !== steps) throw new Error(`The peer carried out ${calls} calls of ${steps}.`);
    },
    close: () => db.close(),
  };
});
