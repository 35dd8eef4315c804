import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { graphLines, planLines, treeLines } from '#cli';
import type { Json } from '#core';
import type { PlanNodeStatus, PlanNodeView, PlanView } from '#state';

type Given = Partial<PlanNodeView> & Pick<PlanNodeView, 'id'>;

function plan(...nodes: readonly Given[]): PlanView {
  return {
    plan: 'refund',
    step: 0,
    growing: false,
    held: [],
    nodes: nodes.map((node, call) => ({ call, tool: 'look_up', args: {}, after: [], status: 'waiting', ...node })),
  };
}

const text = (lines: readonly string[]): string => `\n${lines.join('\n')}\n`;

const refund = plan(
  { id: 'order', args: { order: 'A-17' }, status: 'done' },
  {
    id: 'courier',
    tool: 'ask_courier',
    args: { order: 'A-17' },
    status: 'failed',
    error: { code: 'busy', message: '' },
  },
  { id: 'check', after: ['order'], args: { amount: { $from: 'order', path: '/amount' } }, status: 'running' },
  { id: 'pay', tool: 'refund', after: ['order', 'check'], args: { amount: 'x'.repeat(90) }, status: 'paused' },
  { id: 'say', tool: '_message', after: ['pay'], args: 'Paid.', when: { branch: 'check', equals: true } },
  {
    id: 'photo',
    after: ['courier'],
    status: 'skipped',
    error: { code: 'branch_not_started', message: 'The branch needs branch 1.', data: { branch: 1 } },
  },
  { id: 'end', tool: '_finish', after: ['say', 'photo'] },
);

describe('a plan as a tree', () => {
  it('has each node under the last of those that it comes after, and names the others', () => {
    expect(text(treeLines(refund))).toBe(`
plan refund: 7 nodes (1 done, 1 failed, 1 running, 1 paused, 2 waiting, 1 skipped)
├─ ✓ order  look_up {"order":"A-17"}  done
│  └─ ▶ check  look_up {"amount":{"$from":"order","path":"/amount"}}  running
│     └─ ‖ pay  refund {"amount":"xxxxxxxxxxxxxxxxxxxxxx…  (after order)  paused
│        └─ · say  message "Paid."  (if check is true)  waiting
│           └─ · end  finish  (after photo)  waiting
└─ ✗ courier  ask_courier {"order":"A-17"}  failed: busy
   └─ – photo  look_up  skipped: courier failed
`);
  });

  it('says why a node was skipped: what it needs, its condition, or a person', () => {
    const skipped = (message: string, data?: { branch: number }) => ({
      status: 'skipped' as const,
      error: { code: 'branch_not_started', message, ...(data && { data }) },
    });
    const lines = treeLines(
      plan(
        { id: 'a', status: 'done' },
        { id: 'b', after: ['a'], when: { branch: 'a', equals: 'yes' }, ...skipped('It does not hold.', { branch: 0 }) },
        { id: 'c', after: ['b'], ...skipped('The branch needs branch 1.', { branch: 1 }) },
        { id: 'd', ...skipped('Somebody took it out of the plan.') },
        { id: 'e', status: 'unknown', error: { code: 'outcome_unknown', message: 'It may have happened.' } },
        { id: 'f', status: 'cancelled', error: { code: 'cancelled', message: 'The plan has ended.' } },
      ),
    );
    expect(text(lines.slice(1))).toBe(`
├─ ✓ a  look_up  done
│  └─ – b  look_up  (if a is "yes")  skipped: a is something else
│     └─ – c  look_up  skipped: b skipped
├─ – d  look_up  skipped: Somebody took it out of the plan.
├─ ? e  look_up  unknown
└─ ⊘ f  look_up  cancelled
`);
  });

  it('names the ways to a node, and its arguments when it is known which way it goes', () => {
    const when = (equals: Json) => ({ when: { branch: 'by', equals } });
    const from = (id: string) => ({ args: { got: { $from: id } } });
    const lines = treeLines(
      plan(
        { id: 'by', status: 'done' },
        { id: 'a', after: ['by'], args: { x: 1 }, ...when('a'), status: 'done' },
        { id: 'merge', after: ['a', 'by'], args: null, routes: [from('a'), { args: {}, ...when('b') }] },
        { id: 'reply', after: ['a'], args: { got: 1 }, routes: [from('a'), { args: {} }], status: 'ready' },
        {
          id: 'none',
          after: ['by'],
          args: null,
          routes: ['c', 'd', 'e', 'f'].map((equals) => ({ args: {}, ...when(equals) })),
          status: 'skipped',
          error: { code: 'branch_not_started', message: 'm', data: { branch: 0 } },
        },
      ),
    );
    expect(text(lines.slice(1))).toBe(`
└─ ✓ by  look_up  done
   ├─ ✓ a  look_up {"x":1}  (if by is "a")  done
   │  ├─ · merge  look_up  (after a, or if by is "b")  waiting
   │  └─ ○ reply  look_up {"got":1}  (after a, or at once)  ready
   └─ – none  look_up  (if by is "c", or if by is "d", or if by is "e", or 1 more way)  skipped: by is something else
`);
  });

  it('keeps to the width of a terminal: deep nodes are drawn at one depth, and name what they are under', () => {
    const chain = Array.from({ length: 12 }, (_, index) => ({
      id: `n${index}`,
      after: index === 0 ? [] : [`n${index - 1}`],
    }));
    expect(text(treeLines(plan(...chain)).slice(8))).toBe(`
                     └─ · n7  look_up  waiting
                        └─ · n8  look_up  waiting
                           …  · n9  look_up  (after n8)  waiting
                           …  · n10  look_up  (after n9)  waiting
                           …  · n11  look_up  (after n10)  waiting
`);
  });

  it('says that more is to come of a plan that grows', () => {
    expect(treeLines({ ...plan({ id: 'a' }), growing: true })[0]).toBe(
      'plan refund: 1 node, and more to come (1 waiting)',
    );
  });
});

describe('a plan as a graph', () => {
  it('has a row for each level, and who waits for whom', () => {
    expect(text(graphLines(refund))).toBe(`
1  ✓ order done   ✗ courier failed
   order ──▶ check, pay
   courier ──▶ photo
2  ▶ check running   – photo skipped
   check ──▶ pay
   photo ──▶ end
3  ‖ pay paused
   pay ──▶ say
4  · say waiting
   say ──▶ end
5  · end waiting
`);
  });

  it('tells nodes before the same ones together, wraps, and cuts long lists short', () => {
    const many = Array.from({ length: 12 }, (_, index) => ({ id: `part-${index}`, after: ['start'] }));
    const end = { id: 'end', after: many.map(({ id }) => id) };
    expect(text(graphLines(plan({ id: 'start', status: 'ready' }, ...many, end)))).toBe(`
1  ○ start ready
   start ──▶ part-0, part-1, part-2, part-3, part-4, part-5, part-6, part-7,
   … 4 more
2  · part-0 waiting   · part-1 waiting   · part-2 waiting   · part-3 waiting
   · part-4 waiting   · part-5 waiting   · part-6 waiting   · part-7 waiting
   · part-8 waiting   · part-9 waiting   · part-10 waiting   · part-11 waiting
   part-0, part-1, part-2, part-3, part-4, part-5, part-6, part-7, … 4 more ──▶
   end
3  · end waiting
`);
  });
});

describe('the text of any plan', () => {
  const STATUSES: readonly PlanNodeStatus[] = ['waiting', 'ready', 'running', 'paused', 'done', 'failed', 'skipped'];
  /** Each node comes after some of those before it. */
  const graphs = fc.array(
    fc.record({
      needs: fc.array(fc.nat(30), { maxLength: 4 }),
      status: fc.constantFrom(...STATUSES),
      args: fc.jsonValue({ maxDepth: 1 }).map((value) => value as Json),
    }),
    { minLength: 1, maxLength: 30 },
  );

  it('has every node once in the tree, below one that it comes after, and in the graph a level below each of them', () => {
    fc.assert(
      fc.property(graphs, (given) => {
        const nodes = given.map(({ needs, status, args }, index) => ({
          id: `<${index}>`,
          status,
          args,
          after: [...new Set(needs)].filter((need) => need < index).map((need) => `<${need}>`),
        }));
        const view = plan(...nodes);
        const tree = treeLines(view).slice(1);
        const graph = graphLines(view);
        const rowOf = (id: string): number => graph.findIndex((line) => line.includes(` ${id} ${statusOf(id)}`));
        const lineOf = (id: string): number => tree.findIndex((each) => each.includes(` ${id}  look_up`));
        const statusOf = (id: string): string => nodes.find((each) => each.id === id)?.status ?? '';
        expect(tree).toHaveLength(nodes.length);
        for (const { id, after } of nodes) {
          const line = lineOf(id);
          expect(line).not.toBe(-1);
          if (after.length > 0) expect(Math.min(...after.map(lineOf))).toBeLessThan(line);
          for (const need of after) expect(rowOf(need)).toBeLessThan(rowOf(id));
        }
      }),
    );
  });

  it('lets nothing that a plan says command the terminal', () => {
    const evil = '\u001b[31m\u202e\r\n\u0007';
    const view = {
      ...plan(
        { id: `a${evil}`, tool: evil, args: { [evil]: evil }, status: 'failed', error: { code: evil, message: evil } },
        { id: evil, after: [`a${evil}`], when: { branch: `a${evil}`, equals: evil } },
        { id: 'c', status: 'skipped', error: { code: 'x', message: evil } },
      ),
      plan: evil,
    };
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(planLines(view).join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
  });

  it('of 10,000 nodes in a row draws the first, and counts the rest', () => {
    const chain = Array.from({ length: 10_000 }, (_, index) => ({
      id: `n${index}`,
      after: index === 0 ? [] : [`n${index - 1}`],
    }));
    const view = plan(...chain);
    expect(treeLines(view)).toHaveLength(1_002);
    expect(treeLines(view).at(-1)).toBe('… 9,000 more nodes; --json has all of them');
    expect(graphLines(view).at(-1)).toBe('… 9,000 more nodes; --json has all of them');
  });
});
