import assert from 'node:assert/strict';
import { type Json, LARGE_VALUE_BYTES, type StoreItem, type StoreWrite } from '#core';
import { createClaimed, expectCode, type JournalCase, LEASE_MS, present, step } from './kit.ts';

const ANN = ['acme', 'ann'];

function note(key: string, value: Json, more: Partial<StoreWrite> = {}): StoreWrite {
  return { namespace: ANN, key, value, ...more };
}

function keysOf(items: readonly Pick<StoreItem, 'key'>[]): string[] {
  return items.map(({ key }) => key);
}

export const storeCases: readonly JournalCase[] = [
  {
    name: 'an item of the store is read as it was written last, until it is deleted',
    async run({ journal: { store }, clock }) {
      const createdAt = clock.now();
      assert.equal(await store.get(ANN, 'colour'), undefined);
      await store.write([note('colour', { name: 'blue' })]);
      clock.advance(10);
      const source = { run: 'r1', step: 2, call: 0 };
      await store.write([note('colour', { name: 'red' }, { source })]);
      const item = present(await store.get(ANN, 'colour'));
      assert.deepEqual(item, {
        namespace: ANN,
        key: 'colour',
        value: { name: 'red' },
        createdAt,
        updatedAt: createdAt + 10,
        source,
      });
      assert.ok(Object.isFrozen(item.value));
      await store.write([
        { namespace: ANN, key: 'colour' },
        { namespace: ANN, key: 'never there' },
      ]);
      assert.equal(await store.get(ANN, 'colour'), undefined);
      assert.deepEqual(await store.list({ namespace: ANN, limit: 10 }), []);
      // Nothing of a deleted item stays.
      await store.write([note('colour', null)]);
      const again = present(await store.get(ANN, 'colour'));
      assert.deepEqual([again.value, again.createdAt], [null, createdAt + 10]);
    },
  },
  {
    name: 'an item is written only as long as it is as it was seen, and of many who see the same one writes',
    async run({ journal: { store }, clock }) {
      const seen = { namespace: ANN, key: 'lease' };
      const takes = (owner: number, more: { value?: Json } = {}) =>
        store.writeIf({ ...seen, ...more }, [note('lease', { owner }, { ttlMs: 100 }), note(`by ${owner}`, true)]);
      const taken = await Promise.all([1, 2, 3, 4].map((owner) => takes(owner)));
      assert.equal(taken.filter((each) => each).length, 1);
      const first = taken.indexOf(true) + 1;
      assert.deepEqual(keysOf(await store.list({ namespace: ANN, limit: 10 })), [`by ${first}`, 'lease']);
      assert.equal(await takes(9, { value: { owner: 0 } }), false);
      assert.equal(await takes(first, { value: { owner: first } }), true);
      assert.equal(await takes(9), false);
      clock.advance(101);
      assert.equal(await takes(first, { value: { owner: first } }), false);
      assert.equal(await takes(9), true);
      assert.equal(await store.writeIf({ ...seen, value: { owner: 9 } }, [{ ...seen }]), true);
      assert.equal(await store.get(ANN, 'lease'), undefined);
    },
  },
  {
    name: 'ID-04 namespaces of the same letters, split otherwise, do not meet, and neither do those that look like paths or patterns',
    async run({ journal: { store } }) {
      const namespaces = [
        ['a', 'bc'],
        ['ab', 'c'],
        ['a'],
        ['a/bc'],
        ['a,bc'],
        ['a","bc'],
        ['a%'],
        ['A'],
        ['..', 'a'],
        ['__proto__'],
        ['constructor', 'prototype'],
        ['a\\', 'b'],
        ['ä'],
        ['a\u0308'],
        ['\u{1f600}'],
      ];
      await store.write(namespaces.map((namespace, index) => ({ namespace, key: '__proto__', value: index })));
      for (const [index, namespace] of namespaces.entries()) {
        assert.equal((await store.get(namespace, '__proto__'))?.value, index);
        const within = await store.list({ namespace, limit: 50 });
        const below = namespaces.filter((other) => namespace.every((part, at) => other[at] === part));
        assert.deepEqual(
          within.map((item) => item.value).toSorted(),
          below.map((other) => namespaces.indexOf(other)).toSorted(),
        );
      }
      const everything = await store.list({ namespace: [], limit: 50 });
      assert.equal(everything.length, namespaces.length);
    },
  },
  {
    name: 'what no store can keep is refused before anything is written',
    async run({ journal: { store } }) {
      const withBad = (write: Partial<StoreWrite>): Promise<void> =>
        store.write([note('good', 1), note('bad', 1, write)]);
      for (const namespace of [
        [],
        [''],
        ['a', ''],
        ['\ud800'],
        ['a\0b'],
        ['x'.repeat(257)],
        Array(17).fill('a'),
        'acme',
      ]) {
        await expectCode(withBad({ namespace: namespace as string[] }), 'store_refused');
      }
      for (const key of ['', '\udfff', 'a\0', 'x'.repeat(513)]) await expectCode(withBad({ key }), 'store_refused');
      await expectCode(withBad({ value: 'x'.repeat(LARGE_VALUE_BYTES) }), 'store_refused');
      for (const ttlMs of [0, -1, 1.5, Number.NaN]) await expectCode(withBad({ ttlMs }), 'store_refused');
      assert.deepEqual(await store.list({ namespace: [], limit: 10 }), []);
      const fits = 'x'.repeat(LARGE_VALUE_BYTES - 3);
      await store.write([note('fits', fits)]);
      assert.equal((await store.get(ANN, 'fits'))?.value, fits);
    },
  },
  {
    name: 'an item that has expired by the clock of the store is not read, and does not come back',
    async run({ journal: { store }, clock }) {
      await store.write([
        note('short', 'word', { ttlMs: 100 }),
        note('long', 'word', { ttlMs: 200 }),
        note('ever', 'word'),
      ]);
      const createdAt = clock.now();
      clock.advance(99);
      assert.equal((await store.get(ANN, 'short'))?.expiresAt, createdAt + 100);
      clock.advance(1);
      assert.equal(await store.get(ANN, 'short'), undefined);
      assert.deepEqual(keysOf(await store.list({ namespace: ANN, limit: 10 })), ['ever', 'long']);
      assert.deepEqual(keysOf(await store.search({ namespace: ANN, limit: 10 }, { words: ['word'] })), [
        'ever',
        'long',
      ]);
      assert.deepEqual(keysOf(await store.unindexed(ANN, 'i', 10)), ['ever', 'long']);
      await store.write([note('short', 'again')]);
      const again = present(await store.get(ANN, 'short'));
      assert.deepEqual([again.createdAt, again.expiresAt], [createdAt + 100, undefined]);
      // Written anew without a time, it stays.
      await store.write([note('long', 'word')]);
      clock.advance(1_000);
      assert.deepEqual(keysOf(await store.list({ namespace: ANN, limit: 10 })), ['ever', 'long', 'short']);
    },
  },
  {
    name: "the runtime's own namespaces are found by whoever names them, and by nothing that asks for everything",
    async run({ journal: { store } }) {
      const rules = ['pilotage:rules', 'acme', 'ann'];
      await store.write([
        { namespace: rules, key: 'rule', value: { text: 'word' } },
        { namespace: ['pilotage'], key: 'near', value: { text: 'word' } },
        { namespace: ['pilotage;'], key: 'nearer', value: { text: 'word' } },
        note('own', { text: 'word' }),
      ]);
      const own = ['near', 'nearer', 'own'];
      const everything = { namespace: [], limit: 10 };
      assert.deepEqual(keysOf(await store.list(everything)).toSorted(), own);
      assert.deepEqual(keysOf(await store.search(everything, { words: ['word'] })).toSorted(), own);
      assert.deepEqual(keysOf(await store.unindexed([], 'one', 10)).toSorted(), own);
      for (const namespace of [rules, ['pilotage:rules', 'acme'], ['pilotage:rules']]) {
        assert.deepEqual(keysOf(await store.list({ namespace, limit: 10 })), ['rule']);
      }
      assert.equal((await store.get(rules, 'rule'))?.key, 'rule');
      await store.write([{ namespace: rules, key: 'rule' }]);
      assert.deepEqual(await store.list({ namespace: ['pilotage:rules'], limit: 10 }), []);
    },
  },
  {
    name: 'items are listed page by page in the order of their bytes, those below a namespace too',
    async run({ journal: { store } }) {
      const keys = ['\u{1f600}', '\uff5e', 'b', 'a', 'ä', 'B'];
      await store.write(keys.map((key) => note(key, key)));
      await store.write([
        { namespace: [...ANN, 'notes'], key: 'deep', value: 1 },
        { namespace: ['acme', 'anna'], key: 'other', value: 1 },
      ]);
      const sorted = keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
      const all = await store.list({ namespace: ANN, limit: 50 });
      assert.deepEqual(keysOf(all), [...sorted, 'deep']);
      const paged: StoreItem[] = [];
      for (;;) {
        const page = await store.list({ namespace: ANN, limit: 2 }, paged.at(-1));
        paged.push(...page);
        if (page.length < 2) break;
      }
      assert.deepEqual(paged, all);
      await expectCode(store.list({ namespace: ANN, limit: -1 }), 'invalid_config');
    },
  },
  {
    name: 'a filter compares fields of the value, and finds none that only every object has',
    async run({ journal: { store } }) {
      const values: Record<string, Json> = {
        a: { age: 17, city: { name: 'Ulm' }, open: true },
        b: { age: 18, city: { name: 'Zug' }, open: false, left: null },
        c: { age: '18', toString: 'own' },
        d: 'a text',
        e: [1, 2],
      };
      await store.write(Object.entries(values).map(([key, value]) => note(key, value)));
      const found = async (filter: object): Promise<string[]> =>
        keysOf(await store.list({ namespace: ANN, filter: filter as never, limit: 10 }));
      assert.deepEqual(await found({}), ['a', 'b', 'c', 'd', 'e']);
      assert.deepEqual(await found({ age: 18 }), ['b']);
      assert.deepEqual(await found({ age: { gte: 17, lt: 18 } }), ['a']);
      assert.deepEqual(await found({ age: { gt: '17' } }), ['c']);
      assert.deepEqual(await found({ 'city.name': { lte: 'Ulm' }, open: true }), ['a']);
      assert.deepEqual(await found({ open: { ne: true } }), ['b', 'c', 'd', 'e']);
      assert.deepEqual(await found({ left: null }), ['b']);
      for (const path of ['constructor', '__proto__', 'constructor.name', 'length', '0']) {
        assert.deepEqual(await found({ [path]: { ne: 'x', gte: '' } }), []);
      }
      assert.deepEqual(await found({ toString: 'own' }), ['c']);
      const words = await store.search({ namespace: ANN, filter: { age: 18 }, limit: 9 }, { words: ['ulm', 'zug'] });
      assert.deepEqual(keysOf(words), ['b']);
    },
  },
  {
    name: 'items are found by the share of the words that they have, in the fields that are named',
    async run({ journal: { store } }) {
      await store.write([
        note('1', { text: 'Ann drinks green tea', by: 'coffee' }),
        note('2', { text: 'COFFEE, black; and TEA' }),
        note('3', { text: ['teapot', { kind: 'iron' }] }),
        note('4', { text: 'nothing' }),
      ]);
      const hits = await store.search({ namespace: ANN, limit: 10 }, { words: ['tea', 'coffee'], fields: ['text'] });
      assert.deepEqual(
        hits.map(({ key, score }) => [key, score]),
        [
          ['2', 1],
          ['1', 0.5],
          ['3', 0.25],
        ],
      );
      const anywhere = await store.search({ namespace: ANN, limit: 1 }, { words: ['tea', 'coffee'] });
      assert.deepEqual(keysOf(anywhere), ['1']);
      assert.deepEqual(await store.search({ namespace: ANN, limit: 10 }, { words: [] }), []);
      assert.deepEqual(await store.search({ namespace: ['acme', 'ben'], limit: 10 }, { words: ['tea'] }), []);
    },
  },
  {
    name: 'items are found by the cosine of their vectors, which belong to what was written',
    async run({ journal: { store } }) {
      const vector = (...numbers: number[]): Float32Array => Float32Array.from(numbers);
      await store.write(['east', 'north', 'west', 'unknown'].map((key) => note(key, { key, at: 1 })));
      const waiting = await store.unindexed(ANN, 'i', 10);
      const revisions = new Map(waiting.map(({ key, revision }) => [key, revision]));
      const set = (key: string, given: Float32Array, index: string = 'i'): Promise<void> =>
        store.setVectors(index, [{ revision: present(revisions.get(key)), vector: given }]);
      await set('east', vector(2, 0));
      await set('north', vector(0, 1));
      await set('west', vector(-1, 0));
      assert.deepEqual(keysOf(await store.unindexed(ANN, 'i', 10)), ['unknown']);
      const find = async (index: string = 'i'): Promise<[string, number][]> =>
        (await store.search({ namespace: ANN, limit: 9 }, { index, vector: vector(3, 4) })).map((hit) => [
          hit.key,
          Math.round(hit.score * 1_000) / 1_000,
        ]);
      assert.deepEqual(await find(), [
        ['north', 0.8],
        ['east', 0.6],
        ['west', -0.6],
      ]);
      assert.deepEqual(await find('other'), []);
      // What was written since has no vector, and the old one is given to nobody.
      await store.write([note('east', { key: 'east', at: 2 })]);
      await set('east', vector(1, 1));
      assert.deepEqual(keysOf(await store.unindexed(ANN, 'i', 10)), ['east', 'unknown']);
      await set('north', vector(1, 2, 3));
      await set('west', vector(6, 8), 'other');
      assert.deepEqual(await find(), []);
      assert.deepEqual(await find('other'), [['west', 1]]);
    },
  },
  {
    name: 'what calls write is in the store when their entry is, and not when the append is refused',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1, { writes: [note('a', 1), note('b', 1), { namespace: ANN, key: 'b' }] }));
      assert.deepEqual(keysOf(await journal.store.list({ namespace: ANN, limit: 9 })), ['a']);
      await expectCode(journal.append(step(claim, 1, { writes: [note('a', 2)] })), 'journal_conflict');
      await expectCode(journal.append(step(claim, 2, { writes: [note('a', 2), note('', 2)] })), 'store_refused');
      clock.advance(LEASE_MS + 1);
      present(await journal.claim({ owner: 'ben', leaseMs: LEASE_MS, run: 'r1' }));
      await expectCode(journal.append(step(claim, 2, { writes: [note('a', 2)] })), 'lease_lost');
      assert.equal((await journal.store.get(ANN, 'a'))?.value, 1);
      assert.equal((await journal.read('r1')).length, 2);
    },
  },
];
