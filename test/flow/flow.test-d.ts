import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import {
  edge,
  type Flow,
  type FlowRuntime,
  flow,
  type InOf,
  join,
  map,
  type Node,
  node,
  type OutOf,
  predicateRouter,
  race,
  unionRouter,
} from '#flow';
import { createRuntime, handle, type Identity, type Json, type Run, type ToolContext, tool } from '#pilotage';
import { askUser, later } from '#pilotage/tools';

const text = z.object({ text: z.string() });
const count = node('count', { inputSchema: text, effect: 'pure', execute: (args) => args.text.length });
const show = node('show', { inputSchema: z.number(), execute: (n) => ({ shown: String(n) }) });
const shout = node('shout', { inputSchema: text, execute: async (args) => ({ text: args.text.toUpperCase() }) });

describe('nodes', () => {
  it('know what they take and give', () => {
    expectTypeOf(count).toEqualTypeOf<Node<'count', { text: string }, number>>();
    expectTypeOf(shout).toEqualTypeOf<Node<'shout', { text: string }, { text: string }>>();
    expectTypeOf(show.name).toEqualTypeOf<'show'>();
  });

  it('take what their schema takes, and run with what it puts out', () => {
    const plan = node('plan', {
      inputSchema: z.object({ days: z.number().default(1), at: z.string().transform((at) => new Date(at)) }),
      execute: (args, context) => {
        expectTypeOf(args).toEqualTypeOf<{ days: number; at: Date }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return args.at;
      },
      needsApproval: (args) => args.days > 3,
      reconcile: (args) => ({ status: 'done', value: args.at }),
    });
    expectTypeOf<InOf<typeof plan>>().toEqualTypeOf<{ days?: number | undefined; at: string }>();
    // A date is text for the next node.
    expectTypeOf<OutOf<typeof plan>>().toEqualTypeOf<string>();
  });

  it('made from tools take and give what these do', () => {
    const length = tool({
      name: 'length',
      description: 'Counts.',
      inputSchema: text,
      execute: (args) => args.text.length,
    });
    expectTypeOf(node('length', length)).toEqualTypeOf<Node<'length', { text: string }, number>>();
    expectTypeOf(node('ask', askUser)).toEqualTypeOf<Node<'ask', unknown, Json>>();
    expectTypeOf(map('lengths', length)).toEqualTypeOf<Node<'lengths', readonly { text: string }[], number[]>>();
    expectTypeOf(map('asks', askUser)).toEqualTypeOf<Node<'asks', readonly unknown[], Json[]>>();
  });

  it('that give a value later are of the type of the value', () => {
    const render = node('render', { execute: () => later({ key: 'film' }), poll: (film) => ({ film }) });
    expectTypeOf<OutOf<typeof render>>().toEqualTypeOf<{ film: string }>();
  });

  it('give their values as JSON, with the words of a union kept', () => {
    const sort = node('sort', {
      inputSchema: text,
      execute: (args) =>
        args.text === ''
          ? { kind: 'empty', seen: new Set<string>() }
          : { kind: 'full', list: [1, 2], gone: undefined as undefined | string },
    });
    expectTypeOf<OutOf<typeof sort>['kind']>().toEqualTypeOf<'empty' | 'full'>();
    expectTypeOf<OutOf<typeof count>>().toEqualTypeOf<number>();
    expectTypeOf<OutOf<ReturnType<typeof nothing>>>().toEqualTypeOf<null>();
    const nothing = () => node('nothing', { inputSchema: text, execute: () => {} });
  });

  it('without a schema take what the function says, or JSON', () => {
    const typed = node('typed', { execute: (mail: { id: string }) => mail.id });
    expectTypeOf<InOf<typeof typed>>().toEqualTypeOf<{ id: string }>();
    const plain = node('plain', {
      inputSchema: { type: 'object' },
      execute: (args) => expectTypeOf(args).toEqualTypeOf<Json>(),
    });
    expectTypeOf<InOf<typeof plain>>().toEqualTypeOf<Json>();
  });

  it('may give any JSON', () => {
    const loose = node('loose', { execute: (given): Json => given });
    expectTypeOf<OutOf<typeof loose>>().toEqualTypeOf<Json>();
    edge(loose, node('next', { execute: (given: Json) => given }));
    const fields = node('fields', { execute: (given: Json): Record<string, Json> => ({ given }) });
    expectTypeOf<OutOf<typeof fields>>().toEqualTypeOf<Record<string, Json>>();
    const unsaid = node('unsaid', { execute: (given: unknown): unknown => given });
    expectTypeOf<OutOf<typeof unsaid>>().toEqualTypeOf<unknown>();
    // @ts-expect-error nobody knows what it gives
    edge(unsaid, count);
  });

  it('give what their output schema takes', () => {
    const output = z.object({ kind: z.enum(['a', 'b']) });
    const fits = node('fits', { inputSchema: text, outputSchema: output, execute: () => ({ kind: 'a' }) });
    expectTypeOf<OutOf<typeof fits>>().toExtend<{ kind: 'a' | 'b' }>();
    // @ts-expect-error the value does not fit the schema
    node('misfit', { inputSchema: text, outputSchema: output, execute: () => ({ kind: 3 }) });
  });

  it('refuse what no node has', () => {
    // @ts-expect-error there is no such field
    node('a', { inputSchema: text, execute: (args) => args.txt });
    // @ts-expect-error the effect is none
    node('a', { inputSchema: text, effect: 'maybe', execute: () => 1 });
    // @ts-expect-error retries are part of the policy
    node('a', { inputSchema: text, execute: () => 1, retries: 3 });
    // @ts-expect-error there is no function
    node('a', { inputSchema: text });
  });
});

describe('waits and races', () => {
  const reply = node('reply', { event: { key: (args: { id: string }) => args.id, schema: text } });
  const asked = node('asked', { ask: { question: 'Well?', schema: z.boolean() } });
  const late = node('late', { sleep: { forMs: 1_000 } });

  it('give what is waited for', () => {
    expectTypeOf(reply).toEqualTypeOf<Node<'reply', { id: string }, { text: string }>>();
    expectTypeOf(asked).toEqualTypeOf<Node<'asked', unknown, boolean>>();
    expectTypeOf(late).toEqualTypeOf<Node<'late', unknown, null>>();
    expectTypeOf(node('any', { event: { key: 'k' } })).toEqualTypeOf<Node<'any', unknown, Json>>();
    // @ts-expect-error a node waits for one thing
    node('two', { sleep: { forMs: 1 }, event: { key: 'k' } });
    // @ts-expect-error a time or a duration
    node('two', { sleep: { forMs: 1, until: 2 } });
  });

  it('give the value with the name of its branch, and take what all branches take', () => {
    const first = race('first', { of: [count, reply, late] });
    type Winner =
      | { branch: 'count'; value: number }
      | { branch: 'reply'; value: { text: string } }
      | { branch: 'late'; value: null };
    expectTypeOf<OutOf<typeof first>>().toEqualTypeOf<Winner>();
    expectTypeOf<InOf<typeof first>>().toExtend<{ text: string; id: string }>();
    const several = race('several', { of: [count, late], need: 2 });
    expectTypeOf<OutOf<typeof several>>().toEqualTypeOf<
      ({ branch: 'count'; value: number } | { branch: 'late'; value: null })[]
    >();
    const shown = node('shown', { execute: ({ value }: { value: number }) => value });
    unionRouter({ select: 'branch', branches: { count: shown } });
    // @ts-expect-error the value of the branch is no number
    edge(first, unionRouter({ select: 'branch', branches: { count: shown, reply: shown, late: shown } }).asNode('by'));
    // @ts-expect-error the race takes an id too
    edge(shout, first);
  });
});

describe('live handles', () => {
  const count = handle({ name: 'count', open: async () => 1, close: () => {} });

  it('are typed for nodes, joins and the items of maps', () => {
    const read = node('read', {
      handles: { n: count },
      execute: (text: string, { handles, signal }) => {
        expectTypeOf(handles).toEqualTypeOf<{ readonly n: number }>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        return text.length + handles.n;
      },
    });
    expectTypeOf(read).toEqualTypeOf<Node<'read', string, number>>();
    map('each', {
      handles: { n: count },
      execute: (item: number, { handles }) => {
        expectTypeOf(handles.n).toEqualTypeOf<number>();
        return item;
      },
    });
    join('both', {
      of: [read],
      handles: { n: count },
      execute: (given, { handles }) => {
        expectTypeOf(given.read).toEqualTypeOf<number>();
        expectTypeOf(handles.n).toEqualTypeOf<number>();
        return 1;
      },
    });
    // @ts-expect-error the node has named no handle
    node('none', { execute: (_: string, { handles }) => handles.n });
  });
});

describe('edges', () => {
  it('connect what fits', () => {
    edge(count, show);
    edge(shout, count);
    edge(shout, shout);
  });

  it('do not connect what does not fit', () => {
    // @ts-expect-error it gives a number, and text is needed
    edge(count, shout);
    // @ts-expect-error it gives { shown }, and { text } is needed
    edge(show, count);
    const maybe = node('maybe', { inputSchema: text, execute: (args): string | undefined => args.text });
    const takesText = node('takes_text', { inputSchema: z.string(), execute: (given) => given });
    // @ts-expect-error nothing becomes null
    edge(maybe, takesText);
    const when = node('when', { inputSchema: text, execute: () => new Date(0) });
    const takesDate = node('takes_date', { inputSchema: z.date(), execute: (date) => date });
    edge(when, takesText);
    // @ts-expect-error a date does not stay one on its way
    edge(when, takesDate);
  });
});

describe('joins', () => {
  it('get what their parents give, by their names', () => {
    const both = join('both', {
      of: [count, shout],
      execute: (input, context) => {
        expectTypeOf(input).toEqualTypeOf<{ count: number; shout: { text: string } }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return input.shout.text.repeat(input.count);
      },
    });
    expectTypeOf<OutOf<typeof both>>().toEqualTypeOf<string>();
    join('both', { of: [count, shout], execute: ({ count: n, shout: { text: said } }) => [n, said] });
    // @ts-expect-error there is no such parent
    join('both', { of: [count], execute: ({ shout }) => shout });
    // @ts-expect-error the parent gives a number
    join('both', { of: [count], execute: (input) => input.count.length });
  });

  it('are led to by their parents alone', () => {
    const both = join('both', { of: [count, shout], execute: (input) => input });
    // @ts-expect-error an edge cannot make up the input of a join
    edge(count, both);
    const toJoin = predicateRouter({ branches: [{ when: (n: number) => n > 1, to: both }] }).asNode('to_join');
    // @ts-expect-error nor can a router hand it over
    edge(count, toJoin);
    // @ts-expect-error nor the input of the flow
    flow({ name: 'f', inputSchema: text, entry: both, exit: both });
  });
});

describe('maps', () => {
  const lengths = map('lengths', { itemSchema: z.string(), execute: (item) => item.length, concurrency: 3 });

  it('take a list of items and give a list of values', () => {
    expectTypeOf(lengths).toEqualTypeOf<Node<'lengths', readonly string[], number[]>>();
    const halves = map('halves', { execute: async (item: { n: number }) => ({ half: item.n / 2 }) });
    expectTypeOf<InOf<typeof halves>>().toEqualTypeOf<readonly { n: number }[]>();
    expectTypeOf<OutOf<typeof halves>>().toEqualTypeOf<{ half: number }[]>();
  });

  it('refuse lists of something else', () => {
    const words = node('words', { inputSchema: text, execute: (args) => args.text.split(' ') });
    const letters = node('letters', { inputSchema: z.array(z.string()), execute: (all) => all.join('') });
    edge(words, lengths);
    edge(words, letters);
    // @ts-expect-error it gives numbers, and texts are needed
    edge(lengths, letters);
    // @ts-expect-error it gives one thing, and a list is needed
    edge(shout, lengths);
    // @ts-expect-error an item is text
    map('a', { itemSchema: z.string(), execute: (item) => item.toFixed() });
  });
});

const mail = z.object({ topic: z.string(), order: z.string() });
const refund = node('refund', { inputSchema: mail, execute: ({ order }) => ({ refunded: order }) });
const answer = node('answer', {
  inputSchema: z.object({ topic: z.string() }),
  execute: ({ topic }) => ({ about: topic }),
});

describe('predicate routers', () => {
  it('hand the payload that their targets need to each predicate', () => {
    const byTopic = predicateRouter({
      branches: [
        {
          when: (payload) => {
            expectTypeOf(payload).toEqualTypeOf<{ topic: string; order: string }>();
            return payload.topic === 'refund';
          },
          to: refund,
        },
      ],
      default: answer,
    }).asNode('by_topic');
    expectTypeOf<InOf<typeof byTopic>>().toEqualTypeOf<{ topic: string; order: string }>();
    const read = node('read', { execute: (given: string) => ({ topic: given, order: 'o1' }) });
    edge(read, byTopic);
    // @ts-expect-error a target needs the order
    edge(answer, byTopic);
    edge(byTopic, answer);
    // @ts-expect-error the payload that it hands on has no text
    edge(byTopic, count);
  });

  it('refuse targets and predicates that do not fit the payload', () => {
    predicateRouter({ branches: [{ when: (n: number) => n > 1, to: show }] });
    // @ts-expect-error the target takes text
    predicateRouter({ branches: [{ when: (n: number) => n > 1, to: count }] });
    // @ts-expect-error the default takes text
    predicateRouter({ branches: [{ when: (n: number) => n > 1, to: show }], default: count });
    // @ts-expect-error no payload fits both targets
    predicateRouter({ branches: [{ when: () => true, to: show }], default: count });
    // @ts-expect-error there is no such field
    predicateRouter({ branches: [{ when: (payload) => payload.subject === '', to: refund }] });
    // @ts-expect-error a predicate says true or false
    predicateRouter({ branches: [{ when: () => 'yes', to: refund }] });
    // @ts-expect-error and says it at once
    predicateRouter({ branches: [{ when: async () => true, to: refund }] });
  });
});

describe('union routers', () => {
  const paid = node('paid', {
    inputSchema: z.object({ kind: z.literal('paid'), amount: z.number() }),
    execute: (it) => it.amount,
  });
  const open = node('open', {
    inputSchema: z.object({ kind: z.literal('open'), due: z.string() }),
    execute: (it) => it.due,
  });
  const other = node('other', {
    inputSchema: z.object({ kind: z.string(), note: z.string() }),
    execute: (it) => it.note,
  });
  const look = node('look', {
    inputSchema: text,
    execute: (args) => (args.text === '' ? { kind: 'paid', amount: 3 } : { kind: 'open', due: args.text }),
  });

  it('take the union of what their branches take, each with its tag', () => {
    const byKind = unionRouter({ select: 'kind', branches: { paid, open } }).asNode('by_kind');
    expectTypeOf<InOf<typeof byKind>>().toExtend<{ kind: 'paid'; amount: number } | { kind: 'open'; due: string }>();
    edge(look, byKind);
    const wider = node('wider', { inputSchema: text, execute: () => ({ kind: 'refused', why: '' }) });
    // @ts-expect-error no branch has this tag
    edge(wider, byKind);
    const lacking = node('lacking', { inputSchema: text, execute: () => ({ kind: 'paid' }) });
    // @ts-expect-error the branch of this tag needs an amount
    edge(lacking, byKind);
    // @ts-expect-error it has no tag
    edge(shout, byKind);
  });

  it('take what the default takes', () => {
    const byKind = unionRouter({ select: 'kind', branches: { paid }, default: other }).asNode('by_kind');
    const noted = node('noted', { inputSchema: text, execute: () => ({ kind: 'noted', note: '' }) });
    edge(noted, byKind);
    // @ts-expect-error neither the branch nor the default takes it
    edge(shout, byKind);
  });

  it('tag a target that does not look at the tag', () => {
    const byKind = unionRouter({ select: 'kind', branches: { text: count } }).asNode('by_kind');
    const made = node('made', { inputSchema: text, execute: () => ({ kind: 'text', text: 'a' }) });
    edge(made, byKind);
    // @ts-expect-error it leads nowhere
    edge(shout, byKind);
  });

  it('may ask a function for the tag', () => {
    const byAmount = unionRouter({
      select: (payload) => {
        expectTypeOf(payload.kind).toEqualTypeOf<'paid' | 'open'>();
        return payload.kind;
      },
      branches: { paid, open },
    }).asNode('by_amount');
    edge(look, byAmount);
    // @ts-expect-error no branch takes it
    edge(shout, byAmount);
    // @ts-expect-error a tag is text
    unionRouter({ select: () => 3, branches: { paid } });
  });
});

declare const identity: Identity;
declare const support: Flow<{ text: string }, { shown: string }>;

describe('flows', () => {
  it('know what they take and give', () => {
    const sized = flow({ name: 'sized', inputSchema: text, entry: count, exit: show, edges: [edge(count, show)] });
    expectTypeOf(sized).toEqualTypeOf<Flow<{ text: string }, { shown: string }>>();
    const either = flow({ name: 'either', inputSchema: mail, entry: refund, exit: [refund, answer] });
    expectTypeOf(either).toEqualTypeOf<
      Flow<{ topic: string; order: string }, { refunded: string } | { about: string }>
    >();
  });

  it('give their entry what their schema puts out', () => {
    const input = z.object({ text: z.string().default('') });
    const made = flow({ name: 'made', inputSchema: input, entry: count, exit: count });
    expectTypeOf(made).toEqualTypeOf<Flow<{ text?: string | undefined }, number>>();
    // @ts-expect-error the entry takes text
    flow({ name: 'a', inputSchema: z.object({ n: z.number() }), entry: count, exit: count });
    flow({ name: 'a', inputSchema: { type: 'object' }, entry: count, exit: count });
  });

  it('check their exits against their output schema', () => {
    const output = z.object({ shown: z.string() });
    const made = flow({ name: 'a', inputSchema: z.number(), outputSchema: output, entry: show, exit: show });
    expectTypeOf(made).toEqualTypeOf<Flow<number, { shown: string }>>();
    const read = flow({
      name: 'a',
      inputSchema: z.number(),
      outputSchema: output.transform((o) => o.shown),
      entry: show,
      exit: show,
    });
    expectTypeOf(read).toEqualTypeOf<Flow<number, { shown: string }, string>>();
    // @ts-expect-error the exit gives no number
    flow({ name: 'a', inputSchema: z.number(), outputSchema: z.number(), entry: show, exit: show });
    flow({
      name: 'a',
      inputSchema: text,
      outputSchema: z.object({ text: z.string() }),
      entry: shout,
      // @ts-expect-error one of the exits gives a number
      exit: [shout, count],
    });
  });

  it('are nodes of other flows', () => {
    const part = support.asNode('part');
    expectTypeOf(part).toEqualTypeOf<Node<'part', { text: string }, { shown: string }>>();
    edge(shout, part);
    // @ts-expect-error the flow takes text
    edge(count, part);
    // @ts-expect-error what it gives is no number
    edge(part, show);
    join('both', { of: [part, count], execute: (input) => expectTypeOf(input.part.shown).toEqualTypeOf<string>() });
    const flows: Readonly<Record<string, Flow>> = { support };
    expectTypeOf(flows).toBeObject();
  });

  it('are run with what they take, and give what their exit gives', () => {
    const runtime = createRuntime({ planner: support.planner, tools: support.tools });
    expectTypeOf(() => support.start(runtime, { text: 'a' }, { identity })).returns.resolves.toEqualTypeOf<Run>();
    expectTypeOf(() => support.run(runtime, { text: 'a' }, { identity })).returns.resolves.toEqualTypeOf<{
      shown: string;
    }>();
    expectTypeOf(runtime).toExtend<FlowRuntime<Run>>();
    // @ts-expect-error the flow takes text
    expectTypeOf(() => support.run(runtime, { txt: 'a' }, { identity })).toBeFunction();
    // @ts-expect-error every run has an identity
    expectTypeOf(() => support.run(runtime, { text: 'a' }, {})).toBeFunction();
  });

  it('are tools and planners of a runtime', () => {
    expectTypeOf(() => createRuntime({ planner: support.planner, tools: [support.asTool()] })).toBeFunction();
    expectTypeOf(() => createRuntime({ planner: support.planner, agents: [support] })).toBeFunction();
  });
});
