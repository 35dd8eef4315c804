import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  allReferencesIn,
  type Json,
  literal,
  mapReferences,
  PilotageError,
  referenceFault,
  referencesIn,
  resolveReferences,
  unescaped,
} from '#core';

const results: Record<string, Json> = {
  s1: { items: [{ id: 7 }, { id: 8 }], 'a/b': { 'm~n': 'escaped' }, empty: null },
  text: 'plain',
};
const resolve = (args: Json): Json => resolveReferences(args, ({ $from }) => results[$from]);

describe('references in arguments', () => {
  it.each<[Json, Json]>([
    [{ $from: 'text' }, 'plain'],
    [{ $from: 's1', path: '/items/0/id' }, 7],
    [{ $from: 's1', path: '' }, results['s1'] as Json],
    [{ $from: 's1', path: '/a~1b/m~0n' }, 'escaped'],
    [{ $from: 's1', path: '/empty' }, null],
    [
      { ids: [{ $from: 's1', path: '/items/1/id' }, 9], deep: { er: [{ $from: 'text' }] } },
      { ids: [8, 9], deep: { er: ['plain'] } },
    ],
  ])('%j', (args, resolved) => {
    expect(resolve(args)).toEqual(resolved);
  });

  it.each<[string, Json]>([
    ['nothing at the path', { $from: 's1', path: '/items/2' }],
    ['a path without a slash', { $from: 's1', path: 'items' }],
    ['a branch without a value', { $from: 'gone' }],
    ['a field that every object inherits', { $from: 's1', path: '/toString' }],
  ])('is refused: %s', (_, args) => {
    expect(() => resolve([args])).toThrow(expect.objectContaining({ code: 'reference_unresolved' }));
  });

  it('ER-07 the refusal names the path and the branch, and no value', () => {
    try {
      resolve({ $from: 's1', path: '/items/0/secret' });
      expect.unreachable();
    } catch (error) {
      expect(PilotageError.is(error) && error.message).toBe(
        'Nothing is at "/items/0/secret" in the result of branch "s1".',
      );
    }
  });

  it.each<[string, Json]>([
    ['a key too many', { $from: 's1', path: '/items', note: 1 }],
    ['a path that is no text', { $from: 's1', path: 5 }],
    ['a $from that is no text', { $from: 5 }],
    ['no $from of its own', { path: '/items' }],
    ['a step below 0', { $from: 's1', step: -1 }],
    ['half a step', { $from: 's1', step: 0.5 }],
    ['a step that is text', { $from: 's1', step: '0' }],
  ])('is no reference with %s', (_, args) => {
    expect(referencesIn(args)).toEqual(new Set());
    expect(resolve(args)).toEqual(args);
  });

  it.each<[Json, string]>([
    [{ $from: 's1', path: '/items', note: 1 }, 'write {"$literal": …} around'],
    [{ $from: 's1', path: 5 }, 'is not a reference'],
    [{ a: [{ $from: 5 }] }, '{"$from":5} is not a reference'],
    [{ $from: 's1', step: -1 }, 'is not a reference'],
    [{ $literal: 1, more: 2 }, 'the only key of its object'],
    [{ $from: 's1', path: 'hits.0' }, 'the path "hits.0" is not a JSON Pointer; write "/hits/0"'],
    [{ $from: 's1', path: 'hits' }, 'write "/hits"'],
    [{ $from: 's1', path: '$.hits[0].id' }, 'write "/hits/0/id"'],
    [{ $from: 's1', path: "hits['a b']" }, 'write "/hits/a b"'],
    [{ $from: 's1', path: '#/hits/0' }, 'write "/hits/0"'],
    [{ $from: 's1', path: '/a~b' }, 'write "/a~0b"'],
    [{ $from: 's1', path: 'a/b' }, 'write "/a/b"'],
  ])('what only looks like a reference is a fault that says what to write: %j', (args, said) => {
    expect(referenceFault(args)).toContain(said);
    expect(referenceFault({ deep: [args] })).toContain(said);
    expect(referenceFault(literal(args))).toBeUndefined();
  });

  it.each<Json>([
    { $from: 's1' },
    { $from: 's1', path: '' },
    { $from: 's1', path: '/a~1b/~0/', step: 0 },
    { path: 'hits.0' },
    [{ $literal: { $from: 5, path: 'x' } }],
  ])('is none: %j', (args) => {
    expect(referenceFault(args)).toBeUndefined();
  });

  /** JSON of any depth in which the keys of references and escapes are common. */
  const hostile = fc.letrec<{ node: Json }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<Json>('s1', '/items/0/id', 'hits.0', 0, null),
      fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>,
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('$from', '$literal', 'path', 'step', 'x', '__proto__'), tie('node')),
    ),
  })).node;

  it('a literal is the value that was put in, whatever that is, at any depth and however often', () => {
    const fail = (): never => expect.unreachable();
    fc.assert(
      fc.property(hostile, fc.nat(3), (value, times) => {
        let args: Json = value;
        for (let time = 0; time <= times; time += 1) args = literal(args);
        expect(referencesIn(args)).toEqual(new Set());
        expect(referenceFault(args)).toBeUndefined();
        for (let time = 0; time <= times; time += 1) args = resolveReferences(args, fail);
        expect(args).toEqual(value);
        // Within arguments of the plan's own, beside a reference.
        const whole = { body: [literal(value)], of: { $from: 's1', path: '/items/0/id' } };
        expect(resolve(whole)).toEqual({ body: [value], of: 7 });
        expect(unescaped(whole)).toEqual({ body: [value], of: whole.of });
        expect(mapReferences(whole, (reference) => ({ ...reference, step: 3 }))).toEqual({
          body: [literal(value)],
          of: { ...whole.of, step: 3 },
        });
      }),
      { numRuns: 500 },
    );
  });

  it("a tool's value that looks like a reference is data: it is not followed", () => {
    const planted = { $from: 'text' };
    expect(resolveReferences({ a: { $from: 'evil' } }, ({ $from }) => ($from === 'evil' ? planted : 'secret'))).toEqual(
      {
        a: planted,
      },
    );
  });

  it('one to an earlier step is to no branch of the same call, and is looked up by its step', () => {
    const args: Json = [{ $from: 'a', step: 0 }, { $from: 'a', step: 1, path: '/x' }, { b: { $from: 'a' } }];
    expect(referencesIn(args)).toEqual(new Set(['a']));
    expect(referencesIn(args.slice(0, 2))).toEqual(new Set());
    expect(allReferencesIn(args)).toHaveLength(3);
    const resolved = resolveReferences(args, ({ $from, step = 'now' }) => ({ x: `${$from} of ${step}` }));
    expect(resolved).toEqual([{ x: 'a of 0' }, 'a of 1', { b: { x: 'a of now' } }]);
  });

  it('the refusal names the step too', () => {
    expect(() => resolveReferences({ $from: 'a', step: 4, path: '/x' }, () => ({}))).toThrow(
      'Nothing is at "/x" in the result of branch "a" of step 4.',
    );
  });

  it('an own "__proto__" key of the arguments stays data', () => {
    const args = JSON.parse('{"__proto__":{"x":{"$from":"text"}}}') as Json;
    expect(referencesIn(args)).toEqual(new Set(['text']));
    expect(JSON.stringify(resolve(args))).toBe('{"__proto__":{"x":"plain"}}');
  });

  it('finds every planted reference and replaces it, and leaves everything else', () => {
    const leaf = fc.oneof(
      fc.record({ ref: fc.nat({ max: 4 }) }),
      fc.jsonValue({ maxDepth: 1 }).filter((value) => !JSON.stringify(value).includes('"ref"')),
    );
    const tree = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('node')), fc.dictionary(fc.string(), tie('node'))),
    })).node;
    fc.assert(
      fc.property(tree, (value) => {
        const wanted = new Set<string>();
        const swap = (at: unknown, write: (id: string) => unknown): unknown => {
          if (typeof at !== 'object' || at === null) return at;
          if (
            Object.hasOwn(at, 'ref') &&
            Object.keys(at).length === 1 &&
            typeof (at as { ref: unknown }).ref === 'number'
          ) {
            return write(`b${(at as { ref: number }).ref}`);
          }
          if (Array.isArray(at)) return at.map((item) => swap(item, write));
          return Object.fromEntries(Object.entries(at).map(([key, part]) => [key, swap(part, write)]));
        };
        const args = swap(value, (id) => {
          wanted.add(id);
          return { $from: id };
        }) as Json;
        const oracle = swap(value, (id) => `value of ${id}`) as Json;
        expect(referencesIn(args)).toEqual(wanted);
        expect(resolveReferences(args, ({ $from }) => `value of ${$from}`)).toEqual(oracle);
      }),
    );
  });
});
