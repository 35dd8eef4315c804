/**
 * Values that come out of tools, inputs and people are never read as references, however deep and however often they are
 * handed on. An outside ledger has what the tool `post` was given: the value that the plan's author referred to, and nothing of
 * the node that has a secret.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type Json, type JsonObject, local, type Planner, type PlannerFunction, type RunView } from '#core';
import { edge, type Flow, flow, map, node, predicateRouter } from '#flow';
import { literal } from '#pilotage/planner';
import { graph } from '#planners/graph';
import { htn, htnDomain } from '#planners/htn';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { rules } from '#planners/rules';
import { createRuntime, type RunResult, type Runtime } from '#runtime';
import { type ScriptedReply, scriptedModel } from '#testing';
import { type Agent, type Tool, tool } from '#tools';

const SECRET = 'sk-7f3a';
const ANY = { type: 'object' } as const;

const open: Runtime[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Ledger {
  readonly posted: Json[];
  readonly tools: readonly Tool[];
}

/** A key that is not to leave, a page that anybody may have written, and what was sent out. */
function ledger(page: Json): Ledger {
  const posted: Json[] = [];
  const a = (name: string, run: (args: JsonObject) => Json, more: Partial<Tool> = {}): Tool =>
    tool({
      name,
      description: name,
      effect: 'read',
      inputSchema: ANY,
      execute: (args) => run(args as JsonObject),
      ...more,
    });
  return {
    posted,
    tools: [
      a('load_key', () => ({ key: SECRET })),
      a('fetch', () => ({ page })),
      a('broken', () => {
        throw new Error('It is broken.');
      }),
      a('post', (args) => {
        posted.push(args);
        return args;
      }),
    ],
  };
}

function runtimeOf(planner: Planner, tools: readonly Tool[], agents: readonly Agent[] = []): Runtime {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-values-'));
  folders.push(folder);
  const runtime = createRuntime({ planner, tools, agents, journal: join(folder, 'runs.db') });
  open.push(runtime);
  return runtime;
}

async function play(planner: Planner, { tools }: Ledger, args?: Json): Promise<RunResult> {
  const runtime = runtimeOf(planner, tools);
  const run = await runtime.start('Post the page.', {
    identity: local('ana'),
    ...(args === undefined ? {} : { context: { args } }),
  });
  return run.result();
}

const key = (id: string) => ({ id, type: 'tool', toolId: 'load_key', input: {} }) as const;
const page = (id: string) => ({ id, type: 'tool', toolId: 'fetch', input: {} }) as const;
const post = (id: string, body: Json) => ({ id, type: 'tool', toolId: 'post', input: { body } }) as const;
const broken = { id: 'broken', type: 'tool', toolId: 'broken', input: {} } as const;

const submitted = (...steps: readonly Json[]): ScriptedReply => ({
  calls: [{ tool: 'submit_plan', args: { planId: 'p', steps } }],
});
const inLines = (...steps: readonly Json[]): ScriptedReply => ({
  text: [...steps.map((step) => JSON.stringify({ type: 'step', step })), '{"type":"finish"}'].join('\n'),
});

const PAGE = { $from: 'page', path: '/page' };

/** What gets from a page to a post, by the planner that carries it. */
const WAYS: Readonly<Record<string, (page: Json) => Planner>> = {
  'a plan of the pipeline, made anew': () =>
    pipeline({
      model: scriptedModel([
        submitted(key('key'), page('page'), broken),
        submitted(key('again'), post('post', PAGE), { id: 'end', type: 'finish', input: PAGE }),
      ]),
    }),
  'a streamed plan of the pipeline, made anew': () =>
    pipeline({
      stream: true,
      model: scriptedModel([
        inLines(key('key'), page('page'), broken),
        inLines(key('again'), post('post', PAGE), { id: 'end', type: 'finish', input: PAGE }),
      ]),
    }),
  'a plan that refers to a step of its own': () =>
    graph({
      plan: { steps: [key('key'), page('page'), post('post', PAGE), { id: 'end', type: 'finish', input: PAGE }] },
    }),
  'single steps of a maker': () =>
    graph({
      plan: (run: RunView) => {
        const steps = [
          key('key'),
          page('page'),
          post('post', PAGE),
          { id: 'end', type: 'finish', input: PAGE } as const,
        ];
        return steps[run.trajectory.count] as (typeof steps)[number];
      },
    }),
  'a plan behind single steps, which a message shows too': () =>
    graph({
      plan: (run: RunView) => {
        if (run.trajectory.count < 2) return run.trajectory.count === 0 ? key('key') : page('page');
        return { steps: [key('again'), post('post', PAGE), { id: 'end', type: 'finish', input: PAGE }] };
      },
    }),
  rules: () =>
    rules({
      rules: [key('key'), page('page'), post('post', PAGE), { id: 'end', type: 'finish', input: PAGE } as const].map(
        (step, at) => ({ id: step.id, match: ({ stepCount }) => stepCount === at, toPlanStep: () => step }),
      ),
    }),
  'the next method of htn': () => htnOf(false),
  'the next method of a lazy htn': () => htnOf(true),
  'parallel calls of a function, with the value as a literal': () => ({
    name: 'function',
    next: ({ trajectory }: RunView) => {
      if (trajectory.count === 0) {
        return {
          kind: 'call_parallel',
          branches: [key('key'), page('page')].map(({ id, toolId }) => ({ id, tool: toolId, args: {} })),
        };
      }
      const seen = trajectory.step(0)?.calls[1]?.outcome;
      const body = seen?.kind === 'value' ? ((seen.value as JsonObject)['page'] as Json) : null;
      if (trajectory.count > 1) return { kind: 'finish', reason: 'goal', payload: body };
      const branches = [
        { id: 'key', tool: 'load_key', args: {} },
        { id: 'post', tool: 'post', args: { body: literal(body) } },
      ];
      return { kind: 'call_parallel', branches };
    },
  }),
};

/** The first method fails behind the page; what was observed of it goes through the state into the arguments of a task. */
function htnOf(lazy: boolean): Planner {
  const yes = (): boolean => true;
  const domain = htnDomain({
    operators: { load_key: yes, fetch: yes, broken: yes, post: yes, end: yes },
    tasks: {
      go: [
        (state) => state.get('seen', 'page') === undefined && [['load_key'], ['fetch'], ['broken']],
        (state) => [['load_key'], ['post', (state.get('seen', 'page') ?? null) as Json], ['end']],
      ],
    },
  });
  return htn({
    domain,
    lazy,
    state: () => ({ seen: [] }),
    todo: () => [['go']],
    step: ([name, body]) => {
      if (name === 'end') return { type: 'finish', input: { $from: 'a5', path: '/body' } };
      return { type: 'tool', toolId: name, input: name === 'post' ? { body: body as Json } : {} };
    },
    observe: (state, { tool: name, value }) => {
      if (name === 'fetch') state.set('seen', 'page', (value as JsonObject)['page'] as Json);
    },
  });
}

/** JSON in which objects are common that name the node with the secret. */
const hostile = fc.letrec<{ node: Json }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    fc.record(
      {
        $from: fc.constantFrom<Json>('key', 'again', 'page', 'post', 'a1', '0', '1', 7),
        path: fc.constantFrom<Json>('/key', '', 'key'),
        step: fc.constantFrom<Json>(0, 1, 2),
      },
      { requiredKeys: ['$from'] },
    ) as fc.Arbitrary<Json>,
    fc.record({ $literal: tie('node') }) as fc.Arbitrary<Json>,
    fc.constantFrom<Json>('text', 7, null),
    fc.array(tie('node'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('body', 'a', '$literal', '$from'), tie('node'), { maxKeys: 2 }),
  ),
})).node;

const PLANTED: Json = {
  body: { $from: 'key', path: '/key' },
  more: [
    { $from: 'again', path: '/key' },
    { $from: 'key', step: 0 },
  ],
};

describe('a value stays a value', () => {
  describe.each(Object.entries(WAYS))('%s', (_, plannerFor) => {
    const check = async (given: Json): Promise<void> => {
      const book = ledger(given);
      const result = await play(plannerFor(given), book);
      expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
      expect(book.posted).toEqual([{ body: given }]);
      expect(JSON.stringify([book.posted, result])).not.toContain(SECRET);
    };

    it('posts the page as it is, with what was planted in it', () => check(PLANTED));

    it('posts any page as it is', async () => {
      await fc.assert(fc.asyncProperty(hostile, check), { numRuns: 12 });
    });
  });

  it('what a chat model writes as an argument is one, alone and beside other calls', async () => {
    const calls = (...bodies: readonly Json[]): ScriptedReply => ({
      calls: bodies.map((body, at) => ({
        id: `c${at}`,
        tool: at === 0 && bodies.length > 1 ? 'load_key' : 'post',
        args: { body },
      })),
    });
    const planted = { $from: '0', path: '/key' };
    const book = ledger(null);
    const model = scriptedModel([calls(null, planted, PLANTED), calls(planted), { text: 'Done.' }]);
    expect(await play(react({ model }), book)).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(book.posted).toEqual([{ body: planted }, { body: PLANTED }, { body: planted }]);
    // The model is shown its calls as it made them.
    const shown = JSON.stringify(model.calls[2]?.prompt);
    expect(shown).toContain(JSON.stringify({ body: planted }));
    expect(shown).not.toContain('$literal');
  });

  it('what a flow is given is handed from node to node as it is, also through rounds, joins and maps', async () => {
    const check = async (given: Json): Promise<void> => {
      const seen: Json[] = [];
      let rounds = 0;
      const policy = { effect: 'read' } as const;
      const entry = node('key', { ...policy, allowCycle: true, execute: (input: Json) => input });
      const list = node('each', { ...policy, execute: (input: Json) => [input, input] });
      const back = predicateRouter({
        branches: [
          {
            when: () => {
              rounds += 1;
              return rounds < 3;
            },
            to: entry,
          },
        ],
        default: list,
      }).asNode('back', { allowCycle: true });
      const each = map('post', {
        ...policy,
        execute: (item: Json) => {
          seen.push(item);
          return item;
        },
      });
      const made = flow({
        name: 'posting',
        inputSchema: {},
        budget: { hops: 50 },
        entry,
        exit: each,
        edges: [edge(entry, back), edge(list, each)],
      }) as unknown as Flow<Json>;
      const idle: Planner = { name: 'idle', next: () => ({ kind: 'finish', reason: 'goal' }) };
      const runtime = runtimeOf(idle, [], [made]);
      expect(await made.run(runtime, given, { identity: local('ana') })).toEqual([given, given]);
      expect(seen).toEqual([given, given]);
    };
    await check(PLANTED);
    await fc.assert(fc.asyncProperty(hostile, check), { numRuns: 12 });
  });

  it('what an approver gives in place of the arguments is what the tool gets', async () => {
    const book = ledger(null);
    const gated = book.tools.map((each) => (each.name === 'post' ? { ...each, needsApproval: true } : each));
    const plan = { steps: [key('key'), { ...post('post', 'draft'), after: ['key'] }] };
    const runtime = runtimeOf(graph({ plan }), gated);
    const run = await runtime.start('Post.', { identity: local('ana') });
    const paused = await run.result();
    const token = paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '';
    await run.approve(token, { args: { body: PLANTED } });
    await run.result();
    expect(book.posted).toEqual([{ body: PLANTED }]);
  });

  it('a reference that cannot be one stops the plan before anything of it runs, and says what to write', async () => {
    const written = { $from: 'page', path: 'hits.0' };
    const message = expect.stringContaining('write "/hits/0"');
    const book = ledger({ hits: [1] });
    const plan = { steps: [page('page'), post('post', written)] };
    expect(await play(graph({ plan: () => plan }), book)).toMatchObject({
      status: 'failed',
      error: { code: 'plan_invalid', data: { faults: [{ code: 'reference_invalid', step: 'post', message }] } },
    });
    const next: PlannerFunction = () => ({
      kind: 'call_parallel',
      branches: [
        { id: 'page', tool: 'fetch', args: {} },
        { tool: 'post', args: { body: written } },
      ],
    });
    expect(await play({ name: 'function', next }, book)).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_decision', message },
    });
    for (const stream of [false, true]) {
      const say = stream ? inLines : submitted;
      const model = scriptedModel([say(page('page'), post('post', written)), say(page('page'), post('post', PAGE))]);
      expect(await play(pipeline({ model, stream }), book)).toMatchObject({ status: 'finished' });
      expect(JSON.stringify(model.calls[1]?.prompt)).toContain('not a JSON Pointer');
    }
    expect(book.posted).toEqual([{ body: { hits: [1] } }, { body: { hits: [1] } }]);
  });
});
