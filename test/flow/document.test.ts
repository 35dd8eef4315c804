import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { Json, JsonObject } from '#core';
import { edge, type Flow, flow, join, map, node, predicateRouter, unionRouter } from '#flow';
import { type DocumentFault, type FlowFromOptions, flowFrom } from '#flow/document';
import { memoryJournal } from '#journal';
import { createRuntime, local, PilotageError } from '#pilotage';
import { withoutPackage } from '../kit/missing-package.ts';

const Mail = z.object({ topic: z.string(), kind: z.string(), words: z.array(z.string()) });
type Mail = z.infer<typeof Mail>;

const FUNCTIONS = {
  classify: (mail: Mail) => mail,
  isRefund: (mail: Mail) => mail.topic === 'refund',
  wordsOf: ({ words }: Mail) => words,
  longest: (words: readonly string[]) => words.reduce((a, b) => (b.length > a.length ? b : a), ''),
  lengthOf: (word: string) => word.length,
  merge: ({ facts, scores }: { facts: string; scores: readonly number[] }) => ({ facts, scores }),
  reply: (about: unknown) => ({ reply: about }),
  refuse: ({ topic }: Mail) => ({ refused: topic }),
  isDone: (text: string) => text.length >= 4,
  more: (text: string) => `${text}x`,
};

const pay = node('pay', { inputSchema: Mail, effect: 'pure', execute: ({ words }) => ({ paid: words.length }) });
const refunds = flow({ name: 'refunds', inputSchema: Mail, entry: pay, exit: pay, edges: [] });

/** The same as `SUPPORT`, as a program says it. */
function supportOfProgram(): Flow<Mail, unknown> {
  const classify = node('classify', { inputSchema: Mail, effect: 'pure', execute: FUNCTIONS.classify });
  const refund = refunds.asNode('refund');
  const words = node('words', { inputSchema: Mail, effect: 'pure', execute: FUNCTIONS.wordsOf });
  const facts = node('facts', { inputSchema: z.array(z.string()), effect: 'read', execute: FUNCTIONS.longest });
  const scores = map('scores', { itemSchema: z.string(), execute: FUNCTIONS.lengthOf, concurrency: 2, effect: 'pure' });
  const merged = join('merged', { of: [facts, scores], execute: FUNCTIONS.merge, effect: 'pure' });
  const reply = node('reply', { inputSchema: {}, effect: 'pure', execute: FUNCTIONS.reply });
  const refused = node('refused', { inputSchema: Mail, effect: 'pure', execute: FUNCTIONS.refuse });
  const byKind = unionRouter({ select: 'kind', branches: { spam: refused, fan: words }, default: refused });
  const kind = byKind.asNode('by_kind');
  const byTopic = predicateRouter({
    branches: [
      { when: FUNCTIONS.isRefund, to: refund },
      { when: ({ topic }: Mail) => topic === 'question', to: words },
    ],
    default: kind,
  }).asNode('by_topic');
  return flow({
    name: 'support',
    description: 'Answers a mail.',
    inputSchema: Mail,
    budget: { hops: 40, deadlineMs: 60_000 },
    entry: classify,
    exit: [reply, refused],
    edges: [edge(classify, byTopic), edge(words, facts), edge(words, scores), edge(refund, reply), edge(merged, reply)],
  });
}

const SUPPORT = `
name: support
description: Answers a mail.
inputSchema: Mail
budget: { hops: 40, deadlineMs: 60000 }
entry: classify
exit: [reply, refused]
nodes:
  classify: { execute: classify, inputSchema: &mail Mail, effect: pure }
  by_topic:
    router:
      branches:
        - { when: isRefund, to: refund }
        - when: { path: /topic, equals: question }
          to: words
      default: by_kind
  by_kind:
    router:
      select: /kind
      branches: { spam: refused, fan: words }
      default: refused
  refund: { flow: refunds }
  words: { execute: wordsOf, inputSchema: *mail, effect: pure }
  facts:
    execute: longest
    inputSchema: { type: array, items: { type: string } }
    effect: read
  scores: { map: lengthOf, itemSchema: { type: string }, concurrency: 2, effect: pure }
  merged: { join: [facts, scores], execute: merge, effect: pure }
  reply: { execute: reply, inputSchema: {}, effect: pure }
  refused: { execute: refuse, inputSchema: *mail, effect: pure }
edges:
  - [classify, by_topic]
  - [words, facts]
  - [words, scores]
  - [refund, reply]
  - [merged, reply]
`;

const OPTIONS: FlowFromOptions = { functions: FUNCTIONS, flows: { refunds }, schemas: { Mail }, file: 'support.yaml' };

/** Writes until there are four letters: a cycle, and a router that comes before its target. */
const DRAFTS = `
name: drafts
inputSchema: { type: string }
budget: { hops: 20 }
entry: draft
exit: done
nodes:
  check:
    router:
      branches: [{ when: isDone, to: done }]
      default: draft
    allowCycle: true
  draft: { execute: more, inputSchema: { type: string }, effect: pure, allowCycle: true }
  done: { execute: reply, inputSchema: {}, effect: pure }
edges: [[draft, check]]
`;

function faultsOf(document: unknown, options: FlowFromOptions = OPTIONS): readonly DocumentFault[] {
  const error = refusalOf(document, options);
  return (error.data as unknown as { faults: readonly DocumentFault[] }).faults;
}

function refusalOf(document: unknown, options: FlowFromOptions = OPTIONS): PilotageError {
  try {
    flowFrom(document as string, options);
  } catch (thrown) {
    if (!PilotageError.is(thrown, 'flow_invalid')) throw thrown;
    return thrown;
  }
  throw new Error('It was taken.');
}

/** `code line:column path` of each. */
function placesOf(document: unknown, options: FlowFromOptions = OPTIONS): readonly string[] {
  return faultsOf(document, options).map(({ code, line, column, path }) => `${code} ${line}:${column} ${path}`);
}

/** The document with a line in the place of another. */
function changed(from: string, to: string, text = SUPPORT): string {
  expect(text.split(from)).toHaveLength(2);
  return text.replace(from, to);
}

describe('where the package yaml is not installed', () => {
  it('a text is refused with an error that names the package', () => {
    const refused = withoutPackage('yaml', () => thrownBy(() => flowFrom(SUPPORT, OPTIONS)));
    expect(refused).toMatchObject({ code: 'package_missing', data: { package: 'yaml' } });
    expect(refused).toHaveProperty('message', expect.stringContaining('npm install yaml'));
    // JSON is read as YAML, so that faults have their places.
    expect(withoutPackage('yaml', () => thrownBy(() => flowFrom('{}', OPTIONS)))).toMatchObject({
      code: 'package_missing',
    });
  });

  it('a document that is given as an object is read all the same', () => {
    const document = parse(SUPPORT) as JsonObject;
    expect(withoutPackage('yaml', () => flowFrom<Mail>(document, OPTIONS)).name).toBe('support');
  });
});

function thrownBy(attempt: () => unknown): unknown {
  try {
    return attempt();
  } catch (thrown) {
    return thrown;
  }
}

describe('a flow from a document', () => {
  const forms: readonly (readonly [string, () => Flow<Mail, unknown>])[] = [
    ['YAML', () => flowFrom<Mail>(SUPPORT, OPTIONS)],
    ['JSON', () => flowFrom<Mail>(JSON.stringify(parse(SUPPORT), null, '\t'), OPTIONS)],
    ['an object', () => flowFrom<Mail>(parse(SUPPORT) as JsonObject, OPTIONS)],
  ];

  for (const [form, make] of forms) {
    it(`RT-26 as ${form} is the flow that a program builds: the same graph, the same results`, async () => {
      const [own, read] = [supportOfProgram(), make()];
      expect(read.topology()).toEqual(own.topology());
      expect(read.mermaid()).toBe(own.mermaid());
      expect(read.planner.version).toBe(own.planner.version);
      expect(read.limits).toEqual(own.limits);
      for (const [mail, expected] of MAILS) {
        expect(await resultOf(own, mail)).toEqual(expected);
        expect(await resultOf(read, mail)).toEqual(expected);
      }
    });
  }

  it('RT-26 may name nodes before they stand there, and go round in a cycle', async () => {
    const read = flowFrom(DRAFTS, { functions: FUNCTIONS });
    expect(read.topology().edges).toContainEqual({ from: 'check', to: 'draft', back: true });
    expect(await resultOf(read, 'a')).toEqual({ reply: 'axxx' });
  });

  it('RT-26 takes a node with everything that it may have', () => {
    const node_ = `{ execute: classify, inputSchema: Mail, outputSchema: Mail, description: Sorts., effect: keyed, timeoutMs: 5, retries: 2,
      backoff: { baseMs: 1, multiplier: 1.5, maxMs: 9 }, costUsd: 0.003, reconcile: reply, allowCycle: false,
      needsApproval: { when: isRefund, reason: Look., approver: another, onReject: end, expiresInMs: 1000 } }`;
    const read = flowFrom(
      changed('{ execute: classify, inputSchema: &mail Mail, effect: pure }', node_.replace('Mail', '&mail Mail')),
      OPTIONS,
    );
    const made = read.tools.find(({ name }) => name === 'classify');
    expect(made).toMatchObject({
      description: 'Sorts.',
      effect: 'keyed',
      timeoutMs: 5,
      retries: 2,
      backoff: { baseMs: 1, multiplier: 1.5, maxMs: 9 },
      costUsd: 0.003,
      needsApproval: { reason: 'Look.', approver: 'another', onReject: 'end', expiresInMs: 1000 },
    });
    const always = flowFrom(changed('effect: read', 'needsApproval: true'), OPTIONS);
    expect(always.tools.find(({ name }) => name === 'facts')).toMatchObject({ needsApproval: true });
  });
});

const MAILS: readonly (readonly [Mail, Json])[] = [
  [{ topic: 'refund', kind: '', words: ['a', 'b'] }, { reply: { paid: 2 } }],
  [{ topic: 'question', kind: 'spam', words: ['to', 'be', 'sure'] }, { reply: { facts: 'sure', scores: [2, 2, 4] } }],
  [{ topic: 'other', kind: 'fan', words: ['hi'] }, { reply: { facts: 'hi', scores: [2] } }],
  [{ topic: 'other', kind: 'spam', words: [] }, { refused: 'other' }],
  [{ topic: 'other', kind: 'unheard of', words: [] }, { refused: 'other' }],
];

async function resultOf<In>(made: Flow<In, unknown>, input: In): Promise<unknown> {
  const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
  try {
    return await made.run(runtime, input, { identity: local('tests') });
  } finally {
    await runtime.close();
  }
}

describe('a document that is wrong', () => {
  it('RT-26 is refused with file, line, column, path, what is wrong and what to do', () => {
    const error = refusalOf(changed('execute: longest', 'execute: longst'));
    expect(error.message).toBe(
      'The flow document is wrong.\n' +
        'support.yaml:25:14 /nodes/facts/execute: There is no function "longst" in `functions`. Did you mean "longest"?',
    );
    expect(error.data).toEqual({
      faults: [
        {
          code: 'unknown_function',
          message: 'There is no function "longst" in `functions`. Did you mean "longest"?',
          path: '/nodes/facts/execute',
          line: 25,
          column: 14,
        },
      ],
    });
  });

  it('RT-26 names the document when there is no file, and a path alone for an object', () => {
    const { file: _, ...options } = OPTIONS;
    expect(refusalOf(changed('execute: longest', 'execute: longst'), options).message).toContain(
      '\ndocument:25:14 /nodes/facts/execute: ',
    );
    const document = parse(changed('execute: longest', 'execute: longst')) as JsonObject;
    expect(refusalOf(document, options).message).toContain('\ndocument /nodes/facts/execute: There is no function');
    expect(faultsOf(document)).toEqual([
      expect.not.objectContaining({ line: expect.anything(), column: expect.anything() }),
    ]);
  });

  const one: readonly (readonly [what: string, from: string, to: string, fault: string, says: string])[] = [
    ['an unknown key', 'effect: read', 'efect: read', 'unknown_key 27:5 /nodes/facts/efect', 'Did you mean effect?'],
    ['an unknown key at the top', 'description:', 'describe:', 'unknown_key 3:1 /describe', 'The keys here are "name"'],
    [
      'a key of another kind of node',
      '{ flow: refunds }',
      '{ flow: refunds, retries: 1 }',
      'unknown_key 22:28 /nodes/refund/retries',
      '"flow", "allowCycle"',
    ],
    [
      'an unknown flow',
      'flow: refunds',
      'flow: refnds',
      'unknown_flow 22:19 /nodes/refund/flow',
      'Did you mean "refunds"?',
    ],
    [
      'an unknown schema',
      'inputSchema: Mail\nbudget',
      'inputSchema: Post\nbudget',
      'unknown_schema 4:14 /inputSchema',
      'The schemas are "Mail".',
    ],
    [
      'a name that every object has',
      'when: isRefund',
      'when: toString',
      'unknown_function 13:19 /nodes/by_topic/router/branches/0/when',
      'no function "toString"',
    ],
    [
      'an unknown target (RT-07)',
      'to: refund }',
      'to: refnd }',
      'unknown_node 13:33 /nodes/by_topic/router/branches/0/to',
      'Did you mean "refund"?',
    ],
    [
      'an unknown default (RT-07)',
      'default: by_kind',
      'default: elsewhere',
      'unknown_node 16:16 /nodes/by_topic/router/default',
      'There is no node "elsewhere"',
    ],
    [
      'an unknown tag target (RT-07)',
      'spam: refused',
      'spam: refuse',
      'unknown_node 20:25 /nodes/by_kind/router/branches/spam',
      'Did you mean "refused"?',
    ],
    [
      'an unknown parent',
      'join: [facts, scores]',
      'join: [facts, score]',
      'unknown_node 29:27 /nodes/merged/join/1',
      'Did you mean "scores"?',
    ],
    [
      'an unknown node in an edge',
      '[words, facts]',
      '[word, facts]',
      'unknown_node 34:6 /edges/1/0',
      'Did you mean "words"?',
    ],
    ['an unknown entry', 'entry: classify', 'entry: clasify', 'unknown_node 6:8 /entry', 'Did you mean "classify"?'],
    [
      'an unknown exit',
      'exit: [reply, refused]',
      'exit: [reply, refusal]',
      'unknown_node 7:15 /exit/1',
      'Did you mean "refused"?',
    ],
    [
      'an effect that is none',
      'effect: read',
      'effect: reads',
      'wrong_type 27:13 /nodes/facts/effect',
      'give one of "pure", "read"',
    ],
    [
      'a text for a number',
      'hops: 40',
      'hops: forty',
      'wrong_type 5:17 /budget/hops',
      'This is a text; give a whole number from 1.',
    ],
    ['a number that is not whole', 'hops: 40', 'hops: 1.5', 'wrong_type 5:17 /budget/hops', 'This is the number 1.5'],
    [
      'a negative budget',
      'deadlineMs: 60000',
      'deadlineMs: -1',
      'wrong_type 5:33 /budget/deadlineMs',
      'a whole number from 1',
    ],
    ['nothing where something is needed', 'entry: classify', 'entry:', 'wrong_type 6:7 /entry', 'This is empty'],
    [
      'a list for an object',
      'budget: { hops: 40, deadlineMs: 60000 }',
      'budget: [40]',
      'wrong_type 5:9 /budget',
      'This is a list; give an object.',
    ],
    [
      'an edge with three ends',
      '[words, facts]',
      '[words, facts, scores]',
      'wrong_type 34:5 /edges/1',
      'two nodes: [from, to]',
    ],
    [
      'a pointer that is none',
      'path: /topic',
      'path: topic',
      'wrong_type 14:25 /nodes/by_topic/router/branches/1/when/path',
      'JSON Pointer',
    ],
    [
      'a comparison without its value',
      '{ path: /topic, equals: question }',
      '{ path: /topic }',
      'missing_key 14:17 /nodes/by_topic/router/branches/1/when',
      'needs "equals"',
    ],
    [
      'a branch without a predicate',
      '{ when: isRefund, to: refund }',
      '{ to: refund }',
      'missing_key 13:11 /nodes/by_topic/router/branches/0',
      'needs "when"',
    ],
    [
      'a list of tags',
      'branches: { spam: refused, fan: words }',
      'branches: [refused]',
      'wrong_type 20:17 /nodes/by_kind/router/branches',
      'from each tag',
    ],
    [
      'tags without a select',
      '      select: /kind\n',
      '',
      'wrong_type 19:17 /nodes/by_kind/router/branches',
      'needs "select"',
    ],
    [
      'a router without branches',
      '      branches: { spam: refused, fan: words }\n',
      '',
      'missing_key 19:7 /nodes/by_kind/router',
      'A router needs "branches".',
    ],
    [
      'a node of two kinds',
      '{ flow: refunds }',
      '{ flow: refunds, execute: reply }',
      'node_kind 22:11 /nodes/refund',
      'This node has "execute" and "flow".',
    ],
    [
      'a node of no kind',
      '{ flow: refunds }',
      '{ allowCycle: true }',
      'node_kind 22:11 /nodes/refund',
      'exactly one of',
    ],
    ['a join without a function', ', execute: merge', '', 'missing_key 29:11 /nodes/merged', 'needs "execute"'],
    [
      'a JSON Schema that is none',
      'items: { type: string }',
      'items: { type: strin }',
      'schema_invalid 26:18 /nodes/facts/inputSchema',
      'invalid JSON Schema',
    ],
    [
      'a schema that is a number',
      'itemSchema: { type: string }',
      'itemSchema: 3',
      'wrong_type 28:40 /nodes/scores/itemSchema',
      'the name of a schema or a JSON Schema',
    ],
    [
      'a gate that is a word',
      'effect: read',
      'needsApproval: never',
      'wrong_type 27:20 /nodes/facts/needsApproval',
      'true, false or an object',
    ],
    [
      'a duplicate key',
      'entry: classify',
      'entry: classify\nentry: words',
      'duplicate_key 7:1 /entry',
      'for the second time',
    ],
    [
      'a duplicate node',
      '  refund: { flow',
      '  words: { execute: wordsOf, inputSchema: Mail }\n  refund: { flow',
      'duplicate_key 24:3 /nodes/words',
      'for the second time',
    ],
    [
      'an alias of nothing',
      'inputSchema: *mail, effect: pure }\n  facts',
      'inputSchema: *mial, effect: pure }\n  facts',
      'syntax 23:43 /nodes/words/inputSchema',
      '"&mial"',
    ],
    [
      'a number that is not JSON',
      'equals: question',
      'equals: .nan',
      'not_json 14:41 /nodes/by_topic/router/branches/1/when/equals',
      'NaN',
    ],
    ['a tag', 'equals: question', 'equals: !!js/function x', 'tag_refused 14:41 ', 'write the value without a tag'],
    [
      'a node that nothing leads to',
      'edges:\n',
      '  idle: { execute: reply, inputSchema: {} }\nedges:\n',
      'node_unused 32:3 /nodes/idle',
      'Nothing leads to the node "idle"',
    ],
  ];
  for (const [what, from, to, place, says] of one) {
    it(`RT-26 tells of ${what}`, () => {
      const [fault, ...others] = faultsOf(changed(from, to));
      expect([`${fault?.code} ${fault?.line}:${fault?.column} ${fault?.path}`, others]).toEqual([place, []]);
      expect(fault?.message).toContain(says);
    });
  }

  it('RT-26 tells of all that is missing', () => {
    expect(placesOf('{}')).toEqual(['name', 'inputSchema', 'nodes', 'entry', 'exit'].map(() => 'missing_key 1:1 '));
    expect(placesOf('')).toEqual(['wrong_type 1:1 ']);
    expect(placesOf('just words')).toEqual(['wrong_type 1:1 ']);
    expect(faultsOf([] as never)).toHaveLength(1);
    expect(faultsOf(undefined)).toHaveLength(1);
  });

  it('RT-26 tells of all faults at once, in the order of the lines', () => {
    const text = SUPPORT.replace('hops: 40', 'hops: 0')
      .replace('to: refund }', 'to: refnd }')
      .replace('execute: longest', 'execute: longst')
      .replace('effect: read', 'efect: read')
      .replace('[words, facts]', '[word, facts]');
    expect(placesOf(text)).toEqual([
      'wrong_type 5:17 /budget/hops',
      'unknown_node 13:33 /nodes/by_topic/router/branches/0/to',
      'unknown_function 25:14 /nodes/facts/execute',
      'unknown_key 27:5 /nodes/facts/efect',
      'unknown_node 34:6 /edges/1/0',
    ]);
  });

  it('RT-26 tells of every fault of the syntax', () => {
    expect(placesOf('name: [a, b\nentry: "x\nexit: y')).toEqual(['syntax 2:1 ', 'syntax 3:8 ']);
    expect(placesOf('{"name": "a" "entry": "b"}')).toEqual(['syntax 1:10 ', 'syntax 1:14 ']);
    expect(placesOf('name: a\n---\nname: b')).toEqual(['syntax 2:1 ']);
    expect(placesOf('%YAML 1.1\n---\nname: yes')).toEqual(['syntax 1:1 ']);
    expect(placesOf('? [a]\n: b')).toEqual(['syntax 1:3 ']);
  });
});

describe('graph faults of a document', () => {
  const graph: readonly (readonly [what: string, text: string, places: readonly string[]])[] = [
    [
      'a way that ends at no exit',
      SUPPORT.replace('  - [refund, reply]\n', ''),
      ['no_exit_reached 22:3 /nodes/refund'],
    ],
    ['a cycle without hops', DRAFTS.replace('budget: { hops: 20 }\n', ''), ['cycle_without_hops 2:1 ']],
    ['a budget without hops', DRAFTS.replace('hops: 20', 'tokens: 20'), ['cycle_without_hops 4:9 /budget']],
    ['a bad name of a flow', SUPPORT.replace('name: support', 'name: my flow'), ['bad_name 2:7 /name']],
    [
      'a bad name of a node',
      SUPPORT.replace('  refused: {', '  "re fused": {').replaceAll(/(: |, )refused/g, '$1re fused'),
      ['bad_name 31:3 /nodes/re fused'],
    ],
    ['a bound of a map', SUPPORT.replace('concurrency: 2', 'concurrency: 99'), ['bad_concurrency 28:3 /nodes/scores']],
    ['no exit', SUPPORT.replace('exit: [reply, refused]', 'exit: []'), ['no_exit 7:7 /exit']],
    [
      'a router as a parent',
      SUPPORT.replace('join: [facts, scores]', 'join: [facts, by_kind]'),
      ['router_as_parent 29:3 /nodes/merged'],
    ],
    [
      'a join that never runs',
      SUPPORT.replace('join: [facts, scores]', 'join: [facts, refused]'),
      ['join_never_runs 29:3 /nodes/merged'],
    ],
  ];
  for (const [what, text, places] of graph) {
    it(`RT-26 stand at the node that they name: ${what}`, () => {
      expect(placesOf(text)).toEqual(places);
    });
  }

  it('RT-26 are told together with those of values, and a wrong value brings no other fault', () => {
    const text = changed('concurrency: 2', 'concurrency: 99').replace('execute: wordsOf', 'execute: wordOf');
    expect(placesOf(text)).toEqual([
      'unknown_function 23:21 /nodes/words/execute',
      'bad_concurrency 28:3 /nodes/scores',
    ]);
    expect(placesOf(changed('hops: 20', 'hops: many', DRAFTS))).toEqual(['wrong_type 4:17 /budget/hops']);
    const effect = changed('effect: read', 'effect: reed\n    retries: 2');
    expect(placesOf(effect)).toEqual(['wrong_type 27:13 /nodes/facts/effect']);
  });

  it('RT-26 have the lines of a JSON text', () => {
    const text = changed('concurrency: 2', 'concurrency: 99').replace('hops: 40', 'hops: 0');
    const json = JSON.stringify(parse(text), null, 2);
    const lines = json.split('\n');
    const lineOf = (start: string): number => lines.findIndex((line) => line.startsWith(start)) + 1;
    expect(placesOf(json)).toEqual([
      `wrong_type ${lineOf('    "hops": 0')}:13 /budget/hops`,
      `bad_concurrency ${lineOf('    "scores": {')}:5 /nodes/scores`,
    ]);
  });

  it('RT-26 name a cycle of routers alone, which would never end', () => {
    const text = changed('default: refused', 'default: by_topic');
    const [fault, ...others] = faultsOf(text);
    expect([fault?.code, fault?.line, fault?.column, fault?.path, others]).toEqual([
      'cycle_without_node',
      10,
      3,
      '/nodes/by_topic',
      [],
    ]);
    expect(fault?.message).toContain('"by_topic" -> "by_kind" -> "by_topic"');
  });
});

describe('a document from a stranger', () => {
  it('RT-26 has bounds of size, depth, values and aliases', () => {
    const codeOf = (document: unknown): unknown => faultsOf(document).map(({ code }) => code);
    expect(codeOf('x'.repeat(600_000))).toEqual(['too_large']);
    for (const deep of ['[', '- ', '{a: ', '? ', '{"a":']) expect(codeOf(deep.repeat(50_000))).toEqual(['too_large']);
    expect(codeOf(JSON.parse(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`))).toEqual(['too_large']);
    expect(codeOf(`[${'1,'.repeat(60_000)}]`)).toEqual(['too_large']);
    const tenfold = (name: string, of: string): string => `${name}: &${name} [${Array(10).fill(of).join(', ')}]\n`;
    expect(codeOf(tenfold('a', '1') + tenfold('b', '*a') + tenfold('c', '*b') + tenfold('d', '*c'))).toEqual([
      'too_large',
    ]);
    expect(codeOf('a: &a [*a]')).toEqual(['too_large']);
  });

  it('RT-26 tells 50 faults and counts the others', () => {
    const keys = Array.from({ length: 70 }, (_, index) => `unheard${index}: 1`).join('\n');
    const error = refusalOf(`${SUPPORT}\n${keys}`);
    expect(error.message.split('\n')).toHaveLength(52);
    expect(error.message).toContain('\nAnd 20 more.');
    expect((error.data?.['faults'] as unknown[]).length).toBe(50);
  });

  it('RT-26 property: whatever is changed, it is a flow or it is refused, and no function is called', () => {
    const calls: string[] = [];
    const functions = Object.fromEntries(Object.keys(FUNCTIONS).map((name) => [name, () => calls.push(name)]));
    const options = { ...OPTIONS, functions };
    const taken = { flows: 0, refused: 0 };
    const tryIt = (document: string | JsonObject): void => {
      try {
        flowFrom(document, options);
        taken.flows += 1;
      } catch (thrown) {
        if (!PilotageError.is(thrown, 'flow_invalid')) throw thrown;
        expect((thrown.data?.['faults'] as unknown[]).length).toBeGreaterThan(0);
        taken.refused += 1;
      }
    };
    fc.assert(fc.property(changedDocument, tryIt), { numRuns: 300 });
    fc.assert(fc.property(changedText, tryIt), { numRuns: 200 });
    expect(calls).toEqual([]);
    // Both ways are gone: the property is not about refusals alone.
    expect(Math.min(taken.flows, taken.refused)).toBeGreaterThan(5);
  }, 30_000);
});

type Keyed = Record<string, unknown>;

/** The places of a document, as the keys that lead there. */
function placesIn(value: unknown, at: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...at]];
  return [[...at], ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...at, key]))];
}

const BASES = [SUPPORT, DRAFTS].map((text) => parse(text) as JsonObject);
const WORDS = [
  'classify',
  'by_topic',
  'reply',
  'refused',
  'merged',
  'draft',
  'Mail',
  '/kind',
  '',
  '__proto__',
  'toString',
];
const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(...WORDS),
  fc.jsonValue({ maxDepth: 2 }),
  fc.integer({ min: -2, max: 60 }),
  fc.constantFrom<unknown>(
    true,
    null,
    {},
    [],
    { execute: 'reply' },
    { join: ['classify'], execute: 'reply' },
    { flow: 'refunds' },
  ),
);
const change = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replace', 'remove', 'rename', 'add'),
  value: anyValue,
  key: fc.constantFrom(...WORDS, 'execute', 'router', 'allowCycle', 'default', 'edges'),
});

/** One of the good documents with a few places changed. */
const changedDocument: fc.Arbitrary<JsonObject> = fc
  .record({ base: fc.constantFrom(...BASES), changes: fc.array(change, { minLength: 1, maxLength: 3 }) })
  .map(({ base, changes }) => {
    const document = structuredClone(base) as Keyed;
    for (const { at, how, value: drawn, key } of changes) {
      // A constant is one object for all draws: as a copy it cannot come to lie within itself.
      const value = structuredClone(drawn);
      const places = placesIn(document).slice(1);
      const place = places[at % Math.max(places.length, 1)];
      if (place === undefined) continue;
      const last = place.at(-1) ?? '';
      const owner = place.slice(0, -1).reduce((inner, each) => inner[each] as Keyed, document);
      const before = owner[last];
      if (how === 'replace') owner[last] = value;
      else if (how === 'add' && typeof before === 'object' && before !== null) (before as Keyed)[key] = value;
      else if (!Array.isArray(owner)) {
        delete owner[last];
        if (how === 'rename') owner[key] = before;
      }
    }
    return document as JsonObject;
  });

/** A good text with pieces taken out, put in or doubled. */
const changedText: fc.Arbitrary<string> = fc
  .record({
    base: fc.constantFrom(SUPPORT, DRAFTS, JSON.stringify(BASES[0]), stringify(BASES[1])),
    cuts: fc.array(
      fc.record({
        at: fc.nat(),
        length: fc.nat(12),
        put: fc.oneof(
          fc.constantFrom('', '\n', '  ', '[', '}', '"', '*mail', '&a ', '!!set ', '- ', ': ', '#'),
          fc.string(),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  })
  .map(({ base, cuts }) =>
    cuts.reduce((text, { at, length, put }) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + put + text.slice(from + length);
    }, base),
  );
