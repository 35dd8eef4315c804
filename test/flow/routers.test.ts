import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { flow, node, predicateRouter, routePolicyOf, select, unionRouter } from '#flow';
import type { JsonObject } from '#pilotage';
import type { AnyTool, Tool, ToolContext } from '#tools';
import { thrownBy } from './thrown.ts';

const any = z.any();
const [a, b, c] = (['a', 'b', 'c'] as const).map((name) =>
  node(name, { inputSchema: any, effect: 'pure', execute: (x) => x }),
);
if (a === undefined || b === undefined || c === undefined) throw new Error('three nodes are needed');

/** What a router's tool gives for a payload, called as an executor does. */
function called(tool: AnyTool, payload: unknown, meta: JsonObject = {}): unknown {
  return (tool as Tool).execute(payload as never, { meta } as ToolContext);
}

describe('predicate routers', () => {
  it('RT-01 take the first branch whose predicate holds, and ask no later one', () => {
    const asked = [vi.fn(() => false), vi.fn(() => true), vi.fn(() => true)] as const;
    const router = predicateRouter({
      branches: [
        { when: asked[0], to: a },
        { when: asked[1], to: b },
        { when: asked[2], to: c },
      ],
    }).asNode('by_size');
    expect(select(router, 7)).toBe('b');
    expect(asked.map((when) => when.mock.calls)).toEqual([[[7]], [[7]], []]);
    expect(called(router.tool, 7)).toBe('b');
  });

  it('RT-01 take the default when none holds', () => {
    const router = predicateRouter({ branches: [{ when: () => false, to: a }], default: c }).asNode('by_size');
    expect(select(router, 7)).toBe('c');
  });

  it('RT-01 without a default find no route, and say that it was a predicate router, which one, and why', () => {
    const router = predicateRouter({ branches: [{ when: () => false, to: a }] }).asNode('by_size');
    thrownBy(() => select(router, 7), 'route_not_found', {
      message: 'The predicate router by_size found no route: no branch matched, and it has no default.',
      data: { router: 'by_size', kind: 'predicate' },
    });
  });

  it('RT-08 pass on what a predicate throws, with the branch', () => {
    const cause = new TypeError('no topic');
    const router = predicateRouter({
      branches: [
        { when: () => false, to: a },
        {
          when: () => {
            throw cause;
          },
          to: b,
        },
      ],
      default: c,
    }).asNode('by_topic');
    thrownBy(() => select(router, {}), 'node_exception', {
      message: 'The predicate of branch 1 of the router by_topic threw: no topic',
      data: { router: 'by_topic', branch: 1 },
      cause,
    });
  });

  it.each([
    ['a promise', Promise.resolve(true)],
    ['text', 'yes'],
    ['nothing', undefined],
  ])('refuse a predicate that gives %s', (_what, said) => {
    const router = predicateRouter({ branches: [{ when: () => said as never, to: a }] }).asNode('by_size');
    thrownBy(() => select(router, 7), 'node_exception', {
      message:
        'The predicate of branch 0 of the router by_size gave neither true nor false. It cannot be asynchronous: put a node before it.',
      data: { router: 'by_size', branch: 0 },
    });
  });
});

describe('union routers', () => {
  const branches = { paid: a, open: b };

  it('RT-02 take the branch of the tag in the field that select names', () => {
    const router = unionRouter({ select: 'kind', branches }).asNode('by_kind');
    expect(select(router, { kind: 'open' })).toBe('b');
    expect(called(router.tool, { kind: 'paid' })).toBe('a');
  });

  it('RT-02 take the branch of the tag that select gives', () => {
    const router = unionRouter({ select: (n: number) => (n > 3 ? 'paid' : 'open'), branches }).asNode('by_amount');
    expect([select(router, 4), select(router, 1)]).toEqual(['a', 'b']);
  });

  const tagless = [{ kind: 'lost' }, { kind: '' }, {}, { kind: 3 }, null, 'paid', { kind: 'constructor' }];

  it.each(tagless)('RT-02 take the default for %j, which has no known tag', (payload) => {
    expect(select(unionRouter({ select: 'kind', branches, default: c }).asNode('by_kind'), payload)).toBe('c');
  });

  it('RT-02 without a default find no route, and say that it was a union router, which one, and why', () => {
    const router = unionRouter({ select: 'kind', branches }).asNode('by_kind');
    const data = { router: 'by_kind', kind: 'union' };
    thrownBy(() => select(router, { kind: 'lost' }), 'route_not_found', {
      message:
        'The union router by_kind found no route: the payload has none of its tags (paid, open), and it has no default.',
      data,
    });
    thrownBy(() => select(router, { kind: '' }), 'route_not_found', {
      message: 'The union router by_kind found no route: the payload has no tag, and it has no default.',
      data,
    });
  });

  it('ER-07 say nothing of the payload, whatever it has for a tag', () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`t${index}`, a]));
    for (const router of [
      unionRouter({ select: 'kind', branches }),
      unionRouter({ select: () => 'hunter2', branches: many }),
    ]) {
      const { message } = thrownBy(() => select(router.asNode('by_kind'), { kind: 'hunter2' }), 'route_not_found');
      expect(message).not.toContain('hunter2');
      expect(message.length).toBeLessThan(200);
    }
  });

  it('RT-02 without a select find no route', () => {
    const router = unionRouter({ branches, default: c } as never).asNode('by_kind');
    thrownBy(() => select(router, {}), 'route_not_found', {
      message: 'The union router by_kind found no route: it has no select.',
      data: { router: 'by_kind', kind: 'union' },
    });
  });

  it('RT-08 pass on what select throws', () => {
    const cause = new Error('no kind');
    const throwing = (): string => {
      throw cause;
    };
    const router = unionRouter({ select: throwing, branches, default: c }).asNode('by_kind');
    thrownBy(() => select(router, {}), 'node_exception', {
      message: 'The select of the router by_kind threw: no kind',
      data: { router: 'by_kind' },
      cause,
    });
  });
});

describe('route policies', () => {
  it('RT-04 are read from meta, and are nothing when there is none or something else', () => {
    expect(routePolicyOf({ route_policy: { by_size: 'a' }, other: 1 })).toEqual({ by_size: 'a' });
    expect(routePolicyOf({ route_policy: {} })).toEqual({});
    expect(routePolicyOf(undefined)).toBeUndefined();
    expect(routePolicyOf({})).toBeUndefined();
    for (const other of ['a', 3, null, true, ['a'], { by_size: 1 }, { by_size: { to: 'a' } }]) {
      expect(routePolicyOf({ route_policy: other })).toBeUndefined();
    }
  });

  it('RT-04 beat predicates and tags, which are not asked', () => {
    const when = vi.fn(() => true);
    const byPredicate = predicateRouter({ branches: [{ when, to: a }], default: b }).asNode('by_size');
    expect(select(byPredicate, 7, { route_policy: { by_size: 'b' } })).toBe('b');
    expect(called(byPredicate.tool, 7, { route_policy: { by_size: 'b' } })).toBe('b');
    expect(when).not.toHaveBeenCalled();
    const byTag = unionRouter({ select: 'kind', branches: { paid: a, open: b } }).asNode('by_kind');
    expect(select(byTag, { kind: 'paid' }, { route_policy: { by_kind: 'b' } })).toBe('b');
  });

  it('RT-04 leave routers alone of which they do not speak', () => {
    const router = predicateRouter({ branches: [{ when: () => true, to: a }], default: b }).asNode('by_size');
    for (const policy of [{ other: 'b' }, {}, 'b', { by_size: 3 }]) {
      expect(select(router, 7, { route_policy: policy })).toBe('a');
    }
    const named = predicateRouter({ branches: [{ when: () => true, to: a }] }).asNode('constructor');
    expect(select(named, 7, { route_policy: {} })).toBe('a');
  });

  it('RT-07 that name a node to which no edge leads are refused, naming router and target', () => {
    const router = predicateRouter({ branches: [{ when: () => true, to: a }], default: b }).asNode('by_size');
    const meta = { route_policy: { by_size: 'c' } };
    const message =
      'The route policy sends the router by_size to "c", to which no edge leads from it. Its ways out are a, b.';
    thrownBy(() => select(router, 7, meta), 'route_not_found', { message, data: { router: 'by_size', target: 'c' } });
    thrownBy(() => called(router.tool, 7, meta), 'route_not_found', { message });
  });

  it('RT-07 may name a node to which an edge of the flow leads, beside the targets', () => {
    const router = predicateRouter({ branches: [{ when: () => true, to: a }] }).asNode('by_size');
    const edges = [{ from: router, to: c }];
    const made = flow({ name: 'f', inputSchema: any, entry: router, exit: [a, c], edges });
    const tool = made.tools.find(({ name }) => name === 'by_size') as Tool;
    expect(called(tool, 7, { route_policy: { by_size: 'c' } })).toBe('c');
    expect(called(tool, 7)).toBe('a');
    thrownBy(() => called(tool, 7, { route_policy: { by_size: 'b' } }), 'route_not_found');
  });
});

describe('routers', () => {
  it('RT-03 that are missing find no route', () => {
    thrownBy(() => select(undefined, 7), 'route_not_found', { message: 'There is no router to find a route.' });
  });

  it('RT-05 leave payload and meta as they are', () => {
    const payload = Object.freeze({ kind: 'paid', parts: Object.freeze([1]) });
    const meta = Object.freeze({ trace: 't1', route_policy: Object.freeze({ other: 'x' }) });
    const seen: unknown[] = [];
    const router = predicateRouter({
      branches: [{ when: (given: unknown) => seen.push(given) > 0, to: a }],
    }).asNode('by_kind');
    expect(called(router.tool, payload, meta)).toBe('a');
    expect(seen[0]).toBe(payload);
    expect(payload).toEqual({ kind: 'paid', parts: [1] });
    expect(meta).toEqual({ trace: 't1', route_policy: { other: 'x' } });
  });

  it('are pure tools that take anything, and have each target once', () => {
    const router = predicateRouter({
      branches: [
        { when: () => false, to: b },
        { when: () => false, to: a },
        { when: () => false, to: b },
      ],
      default: a,
    }).asNode('by_size', { allowCycle: true });
    expect(router).toMatchObject({ kind: 'router', effect: 'pure', allowCycle: true });
    expect(router.tool).toMatchObject({ name: 'by_size', effect: 'pure', inputSchema: {}, retries: 0 });
    expect(router.targets).toEqual([b, a]);
  });
});
