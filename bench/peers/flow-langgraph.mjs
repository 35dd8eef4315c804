/**
 * LangGraph on the graph of 20 nodes, and a flow of ours beside it in the same process, each over the bare promise chain.
 * LangGraph without a checkpointer, and with its saver in memory, which keeps what our journal in memory keeps.
 */
import { Annotation, END, MemorySaver, START, StateGraph } from '@langchain/langgraph';
import { addOne, addUp, FAN, floor, HEAD, isEven, RUN_NODES, TAIL } from '../flow-graph.ts';
import { ourFlow } from '../flow-ours.ts';
import { cpuUs, median, short, times, warmUp } from '../measure.ts';
import { versionOf } from './peer.mjs';

const SAMPLE_MS = 100;
const WARM_UP_MS = 1_500;
const ROUNDS = 15;

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
    const { value } = await app.invoke(
      { value: input },
      { recursionLimit: 100, configurable: { thread_id: String(runs) } },
    );
    return value;
  };
}

const flow = ourFlow();
const sides = {
  floor,
  ours: flow.run,
  langgraph: langGraph(),
  langgraphSaved: langGraph(new MemorySaver()),
};

const runs = {};
for (const [name, run] of Object.entries(sides)) {
  const got = await run(1);
  const wanted = await floor(1);
  if (got !== wanted) throw new Error(`${name} came to ${got}, not ${wanted}.`);
  runs[name] = await warmUp(() => run(1), WARM_UP_MS, SAMPLE_MS);
}

const samples = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, run] of Object.entries(sides)) {
    samples[name].push((await cpuUs(() => times(runs[name], () => run(1)))) / runs[name] / RUN_NODES);
  }
}
await flow.close();

const over = (name) => samples[name].map((us, round) => us - samples.floor[round]);
const ratio = (name) => short(median(over(name).map((us, round) => us / over('ours')[round])));
console.log(
  JSON.stringify({
    version: versionOf('@langchain/langgraph'),
    floorUs: short(median(samples.floor)),
    nodeUs: short(median(over('ours'))),
    langgraphUs: short(median(over('langgraph'))),
    langgraphSavedUs: short(median(over('langgraphSaved'))),
    ratio: ratio('langgraph'),
    ratioSaved: ratio('langgraphSaved'),
  }),
);
