/**
 * One side of the measure of flows: the bare promise chain, a flow of ours, or LangGraph on the same graph, without a
 * checkpointer or with its saver in memory, which keeps what our journal in memory keeps.
 */
import { Annotation, END, MemorySaver, START, StateGraph } from '@langchain/langgraph';
import { addOne, addUp, FAN, floor, HEAD, isEven, TAIL } from '../flow-graph.ts';
import { ourFlow } from '../flow-ours.ts';
import { serveSamples } from '../sides.ts';

const SIDES = {
  floor: () => floor,
  ours: ourFlow,
  langgraph: () => langGraph(),
  'langgraph-saved': () => langGraph(new MemorySaver()),
};

function langGraph(checkpointer) {
  const State = Annotation.Root({
    value: Annotation({ reducer: (_, next) => next, default: () => 0 }),
    parts: Annotation({ reducer: (all, more) => [...all, ...more], default: () => [] }),
  });
  const graph = new StateGraph(State);
  const plain = async ({ value }) => ({ value: await addOne(value) });
  for (const name of [...HEAD, 'even', 'odd', ...TAIL]) graph.addNode(name, plain);
  for (const name of FAN) graph.addNode(name, async ({ value }) => ({ parts: [await addOne(value)] }));
  graph.addNode('join', async ({ parts }) => ({ value: await addUp(parts) }));
  graph.addEdge(START, HEAD[0]);
  for (const [index, name] of HEAD.entries()) if (index > 0) graph.addEdge(HEAD[index - 1], name);
  for (const name of FAN) graph.addEdge(HEAD.at(-1), name);
  graph.addEdge([...FAN], 'join');
  graph.addConditionalEdges('join', ({ value }) => (isEven(value) ? 'even' : 'odd'), ['even', 'odd']);
  graph.addEdge('even', TAIL[0]);
  graph.addEdge('odd', TAIL[0]);
  for (const [index, name] of TAIL.entries()) if (index > 0) graph.addEdge(TAIL[index - 1], name);
  graph.addEdge(TAIL.at(-1), END);
  const app = graph.compile(checkpointer === undefined ? {} : { checkpointer });
  let runs = 0;
  return async (input) => {
    runs += 1;
    const config = { recursionLimit: 100, configurable: { thread_id: String(runs) } };
    const { value } = await app.invoke({ value: input }, config);
    return value;
  };
}

const side = SIDES[process.argv[2]];
const got = await side()(1);
const wanted = await floor(1);
if (got !== wanted) throw new Error(`${process.argv[2]} came to ${got}, not ${wanted}.`);
await serveSamples(() => {
  const run = side();
  return () => run(1);
});
