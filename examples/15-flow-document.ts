/**
 * A flow as a document: the graph is YAML (or JSON), and says by name which functions of the program its nodes run. A second text
 * shows what a wrong document is told. In a project of your own, import from 'pilotage' and its 'flow/document' and 'journal/memory'.
 */
import { flowFrom } from '../src/flow/document/flow-from.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const text = `name: support
inputSchema:
  type: object
  required: [text]
  properties: { text: { type: string } }
outputSchema: { type: string }
entry: classify
exit: [refund, answer]
nodes:
  classify: { execute: classify, effect: read, timeoutMs: 5000, retries: 2 }
  by_kind:
    router:
      select: /kind
      branches: { refund: refund, question: answer }
      default: answer
  refund: { execute: refund, effect: keyed }
  answer: { execute: answer, effect: pure }
edges:
  - [classify, by_kind]
`;

interface Mail {
  readonly kind: string;
  readonly text: string;
}

const functions = {
  classify: ({ text }: { text: string }): Mail => ({ kind: /money back/i.test(text) ? 'refund' : 'question', text }),
  refund: ({ text }: Mail) => `Paid back: ${text}`,
  answer: ({ text }: Mail) => `Thank you for your mail: ${text}`,
};

const support = flowFrom<{ text: string }, string>(text, { functions, file: 'support.yaml' });
const runtime = createRuntime({ agents: [support], journal: memoryJournal() });
for (const text of ['Where is my lamp?', 'I want my money back.']) {
  console.log(await support.run(runtime, { text }, { identity: local('ana') }));
}
await runtime.close();

const wrong = text
  .replace('execute: classify', 'execute: clasify')
  .replace('effect: pure', 'effects: pure')
  .replace('[classify, by_kind]', '[classify, by_topic]');
try {
  flowFrom(wrong, { functions, file: 'support.yaml' });
} catch (error) {
  console.log(error instanceof Error ? error.message : error);
}
