/** Long-term memory as programs and tools use it, on both journals. */
import { dirname } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Identity, type Json, local, type Store } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Runtime, type RuntimeOptions } from '#runtime';
import { VirtualClock } from '#testing';
import { ToolFailure } from '#tools';
import { builtFile } from '../kit/built.ts';
import { call, named, parallel, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { bear } from '../kit/lives.ts';
import { entriesOf, innerState, observations } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { make, type Runs } from '../kit/tools.ts';
import { gate } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const ANN: Identity = local('ann');

/** By how often it has the letters a, e and o. */
const letters = (text: string): number[] => ['a', 'e', 'o'].map((letter) => text.split(letter).length - 1 + 0.01);
const embed = async (texts: string[]): Promise<number[][]> => texts.map(letters);

const runtimes: Runtime[] = [];
afterAll(() => Promise.all(runtimes.map((runtime) => runtime.close())));

type CallOptions = Pick<RuntimeOptions, 'store' | 'redact'> & { journal: Journal; identity?: Identity };

/** Runs one call of a tool of Ann's, and gives the runtime, the journal and the run. */
async function called(run: Runs, options: CallOptions) {
  const { identity = local('ann'), ...more } = options;
  const made = world({ planner: script(call('t')), tools: [make('t', run, { retries: 0 })], ...more });
  const started = await start(made, { identity });
  await started.result();
  return { ...made, run: started };
}

describe.each(['memory', 'SQLite'])('the store of a runtime on a journal in %s', (kind) => {
  const clock = new VirtualClock();
  const journal = (): Journal =>
    kind === 'memory' ? memoryJournal({ clock }) : openJournal(temporaryFile(), { clock });
  const runtimeOn = (on: Journal, options: Partial<RuntimeOptions> = {}): Runtime => {
    const runtime = createRuntime({ planner: script(), journal: on, clock, ...options });
    runtimes.push(runtime);
    return runtime;
  };

  it('keeps JSON by namespace and key, and the part of one user is inside their tenant and user', async () => {
    const { store } = runtimeOn(journal());
    const ann = store.of(ANN);
    await ann.put(['notes'], 'tea', { text: 'Ann likes green tea', at: new Date(0) });
    expect(await ann.get(['notes'], 'tea')).toMatchObject({
      namespace: ['notes'],
      value: { text: 'Ann likes green tea', at: '1970-01-01T00:00:00.000Z' },
    });
    expect((await store.get(['local', 'ann', 'notes'], 'tea'))?.namespace).toEqual(['local', 'ann', 'notes']);
    expect(await store.of(local('ben')).list([])).toEqual([]);
    expect(await ann.get([], 'tea')).toBeUndefined();
    expect((await ann.list([], { filter: { text: { gte: 'Ann' } } })).map(({ key }) => key)).toEqual(['tea']);
    await ann.delete(['notes'], 'tea');
    await ann.delete(['notes'], 'tea');
    expect(await ann.list([])).toEqual([]);
  });

  it('refuses what no store takes with the reason', async () => {
    const { store } = runtimeOn(journal());
    const ann = store.of(ANN);
    const refused = { code: 'store_refused' };
    await expect(store.put([], 'k', 1)).rejects.toMatchObject(refused);
    await expect(ann.put(['a', ''], 'k', 1)).rejects.toMatchObject(refused);
    await expect(ann.put('notes' as never, 'k', 1)).rejects.toMatchObject(refused);
    await expect(ann.put([], '', 1)).rejects.toMatchObject(refused);
    await expect(ann.put([], 'k', 'x'.repeat(40_000))).rejects.toThrow(/Store it as an artifact/);
    await expect(ann.put([], 'k', new Map())).rejects.toMatchObject({ code: 'unserializable' });
    await expect(ann.put([], 'k', 1, { ttl: 5 } as never)).rejects.toThrow(/ttlMs/);
    await expect(ann.list([], { filter: { a: { like: 'x' } as never } })).rejects.toThrow(/eq, ne, gt/);
    await expect(ann.list([], { limit: 0 })).rejects.toMatchObject(refused);
    await expect(ann.search([], 5 as never)).rejects.toMatchObject(refused);
    expect(() => store.of({ tenant: 'local', user: ' ' })).toThrow(/lacks user/);
    expect(await store.list([])).toEqual([]);
  });

  it('keeps data with the names of prototypes as data', async () => {
    const { store } = runtimeOn(journal());
    const value = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":1}}') as Json;
    await store.put(['__proto__', 'constructor'], 'toString', value);
    const item = await store.get(['__proto__', 'constructor'], 'toString');
    expect(JSON.stringify(item?.value)).toBe(JSON.stringify(value));
    expect((item?.value as { admin?: boolean }).admin).toBeUndefined();
    expect(await store.list(['__proto__'], { filter: { '__proto__.admin': true } })).toHaveLength(1);
    expect(await store.get(['__proto__'], 'constructor')).toBeUndefined();
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('finds by words without an index, and by meaning with one, also what was written without it', async () => {
    const on = journal();
    const plain = runtimeOn(on).store.of(ANN);
    await plain.put(['facts'], '1', { text: 'banana and papaya', by: 'oooo' });
    await plain.put(['facts'], '2', { text: 'cheese' });
    await plain.put(['facts'], '3', { text: 'foo', ttl: true }, { ttlMs: 1_000 });
    await plain.put(['facts'], '4', { other: 1 });
    expect((await plain.search([], 'Which CHEESE?')).map(({ key, score }) => [key, score])).toEqual([['2', 0.5]]);
    const asked: string[][] = [];
    const noting = (texts: string[]): Promise<number[][]> => {
      asked.push(texts);
      return embed(texts);
    };
    const index = { embed: noting, fields: ['text'] };
    const { store } = runtimeOn(on, { store: { index } });
    const found = async (query: string): Promise<string[]> =>
      (await store.of(ANN).search(['facts'], query)).map(({ key }) => key);
    expect(await found('a')).toEqual(['1', '3', '2']);
    expect(await found('o')).toEqual(['3', '2', '1']);
    // Each text was given once.
    expect(asked.flat().toSorted()).toEqual(['a', 'banana and papaya', 'cheese', 'foo', 'o']);
    await store.of(ANN).put(['facts'], '1', { text: 'oh no' });
    clock.advance(1_000);
    expect(await found('o')).toEqual(['1', '2']);
    expect(await found('  ')).toEqual([]);
    expect(await store.of(local('ben')).search([], 'o')).toEqual([]);
  });

  it('says what was wrong with an embedding function', async () => {
    const on = journal();
    await runtimeOn(on).store.put(['a'], 'k', 'text');
    const fails = async (given: unknown, said: RegExp): Promise<void> => {
      const { store } = runtimeOn(on, { store: { index: { embed: async () => given as never } } });
      const error = await store.search(['a'], 'q').catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'embedding_failed' });
      expect(String(error)).toMatch(said);
    };
    await fails([], /1 lists of numbers/);
    await fails([[]], /1 lists of numbers/);
    await fails([[1, Number.NaN]], /1 lists/);
    await fails({ embeddings: [[1]] }, /1 lists/);
    const down = runtimeOn(on, { store: { index: { embed: () => Promise.reject(new Error('no network')) } } });
    await expect(down.store.search(['a'], 'q')).rejects.toThrow(/no network/);
    expect(() => runtimeOn(on, { store: { index: { fields: ['a'] } as never } })).toThrow(/embed/);
    expect(() => runtimeOn(on, { store: { index: { embed, fields: [1] as never } } })).toThrow(/fields/);
  });

  it('gives a tool the memory of its own user, reads what it wrote itself, and lands it with its value', async () => {
    const on = journal();
    const during: unknown[] = [];
    const { runtime, run } = await called(
      async (_, { store }) => {
        const before = await store.get(['facts'], 'tea');
        await store.put(['facts'], 'tea', 'green');
        await store.put(['facts'], 'gone', 1);
        await store.delete(['facts'], 'gone');
        during.push(await on.store.list({ namespace: [], limit: 9 }));
        const all = await store.list([]);
        const hits = await store.search(['facts'], 'green');
        return [
          before ?? null,
          all.map(({ key, value }) => [key, value]),
          hits.map(({ namespace }) => namespace),
        ] as Json;
      },
      { journal: on },
    );
    expect(observations(await innerState(on, run))[0]).toEqual([null, [['tea', 'green']], [['facts']]]);
    expect(during).toEqual([[]]);
    const item = await runtime.store.get(['local', 'ann', 'facts'], 'tea');
    expect(item).toMatchObject({ value: 'green', source: { run: run.id, step: 0, call: 0 } });
    const [ended] = await entriesOf(on, run, 'call_ended');
    const root = ['local', 'ann', 'facts'];
    expect(ended?.store).toEqual({
      reads: [
        { op: 'get', namespace: root, key: 'tea', found: [] },
        { op: 'list', namespace: ['local', 'ann'], found: [{ namespace: root, key: 'tea', value: 'green' }] },
        {
          op: 'search',
          namespace: root,
          query: 'green',
          found: [{ namespace: root, key: 'tea', value: 'green', score: 1 }],
        },
      ],
      writes: [
        { namespace: root, key: 'tea', value: 'green', source: { run: run.id, step: 0, call: 0 } },
        { namespace: root, key: 'gone', value: 1, source: { run: run.id, step: 0, call: 0 } },
        { namespace: root, key: 'gone', source: { run: run.id, step: 0, call: 0 } },
      ],
    });
  });

  it('writes nothing of a call that fails, and of one that is tried again only what its last attempt wrote', async () => {
    const on = journal();
    const { runtime, run } = await called(
      async (_, { store }) => {
        await store.put([], 'lost', 1);
        await store.get([], 'lost');
        throw new Error('after all');
      },
      { journal: on },
    );
    expect(await runtime.store.list([])).toEqual([]);
    const [failed] = await entriesOf(on, run, 'call_ended');
    expect(failed?.store?.writes).toBeUndefined();
    expect(failed?.store?.reads).toMatchObject([{ op: 'get', key: 'lost' }]);

    const twice = make(
      't',
      async (_, { store, attempt }) => {
        await store.put([], `attempt ${attempt}`, attempt);
        if (attempt === 1) throw new ToolFailure('again', { retryable: true });
        return 'done';
      },
      { backoff: { baseMs: 0 } },
    );
    const again = createRuntime({ planner: script(call('t')), tools: [twice], journal: on });
    runtimes.push(again);
    await (await again.start('q', { identity: local('ann') })).result();
    expect((await runtime.store.list([])).map(({ key }) => key)).toEqual(['attempt 2']);
  });

  it('refuses a tool that writes after its call has ended', async () => {
    const on = journal();
    let late: Store | undefined;
    const { runtime } = await called(
      (_, { store }) => {
        late = store;
      },
      { journal: on },
    );
    await expect(late?.put([], 'k', 1)).rejects.toMatchObject({ code: 'cancelled' });
    await expect(late?.get([], 'k')).rejects.toMatchObject({ code: 'cancelled' });
    expect(await runtime.store.list([])).toEqual([]);
  });

  it('leads no tool out of the memory of its user, whatever a model asks for', async () => {
    const on = journal();
    await runtimeOn(on).store.of(local('ben')).put([], 'secret', 'of Ben');
    const hostile: string[][] = [['..', 'ben'], ['..'], ['local', 'ben'], ['ben'], ['', 'ben'], ['ann"],["ben']];
    const { run } = await called(
      async (_, { store }) => {
        const seen: Json[] = [];
        for (const namespace of hostile) {
          const asked = async (): Promise<Json> => [
            (await store.get(namespace, 'secret'))?.value ?? null,
            (await store.list(namespace)).length,
            (await store.search(namespace, 'Ben')).length,
          ];
          seen.push(await asked().catch((error: { code: string }) => error.code));
        }
        await store.put(['..', 'ben'], 'secret', 'mine');
        return [...seen, (await store.list([])).length];
      },
      { journal: on },
    );
    const nothing = [null, 0, 0];
    const refused = 'store_refused';
    expect(observations(await innerState(on, run))[0]).toEqual([...Array(4).fill(nothing), refused, nothing, 1]);
    expect((await on.store.get(['local', 'ben'], 'secret'))?.value).toBe('of Ben');
  });

  it('shares a memory where the program says so', async () => {
    const on = journal();
    const store = { namespace: ({ tenant }: { tenant: string }) => [tenant, 'all'] };
    await called((_, context) => context.store.put([], 'k', context.identity.user), { journal: on, store });
    const { run } = await called(async (_, context) => (await context.store.get([], 'k'))?.value, {
      journal: on,
      store,
      identity: local('ben'),
    });
    expect(observations(await innerState(on, run))[0]).toBe('ann');
    const wrong = await called(async (_, context) => context.store.put([], 'k', 1), {
      journal: on,
      store: { namespace: () => [] },
    });
    expect(observations(await innerState(on, wrong.run))[0]).toMatchObject({ error: { code: 'store_refused' } });
  });

  it('keeps the list of what a call has read in an artifact when it is long', async () => {
    const on = journal();
    const { store } = runtimeOn(on);
    for (const key of ['1', '2', '3']) await store.of(ANN).put([], key, key.repeat(15_000));
    const { run } = await called(async (_, context) => (await context.store.list([])).length, { journal: on });
    const [ended] = await entriesOf(on, run, 'call_ended');
    expect(ended?.store?.reads).toBeUndefined();
    const ref = ended?.store?.readsStored?.artifactRef ?? '';
    const { identity } = await innerState(on, run);
    const stored = await on.artifacts.get(identity, ref);
    expect(JSON.parse(Buffer.from(stored?.bytes ?? []).toString())).toMatchObject([
      { op: 'list', found: [{ key: '1', value: '1'.repeat(15_000) }, { key: '2' }, { key: '3' }] },
    ]);
  });

  it('refuses more than one call may write', async () => {
    const on = journal();
    const { run, runtime } = await called(
      async (_, { store }) => {
        for (let at = 0; at < 20; at += 1) await store.put([], `${at}`, 'x'.repeat(20_000));
      },
      { journal: on },
    );
    expect(observations(await innerState(on, run))[0]).toMatchObject({ error: { message: /262144 bytes/ } });
    expect(await runtime.store.list([])).toEqual([]);
  });

  it('keeps secrets out of what is written', async () => {
    const on = journal();
    const secret = 'sesame-open-sesame';
    const { runtime, run } = await called(
      async (_, { store }) => {
        await store.put([], 'note', { text: `the word is ${secret}` });
        await store.put([], secret, 1).catch(() => {});
      },
      { journal: on, redact: { rules: [secret] } },
    );
    await runtime.store.put(['a'], 'note', secret);
    expect(JSON.stringify([await runtime.store.list([]), await on.read(run.id)])).not.toContain(secret);
    expect((await runtime.store.list([])).map(({ value }) => value)).toEqual([
      '[redacted:secret]',
      { text: 'the word is [redacted:secret]' },
    ]);
  });

  it('has calls side by side read what was there before, and the last of them to end counts', async () => {
    const on = journal();
    const first = gate();
    const tools = [
      make('a', async (_, { store }) => {
        await store.put([], 'who', 'a');
        first.open();
        return (await store.get([], 'who'))?.value;
      }),
      make('b', async (_, { store }) => {
        await first.opened;
        const seen = await on.store.get(['local', 'ann'], 'who');
        await store.put([], 'who', 'b');
        return [seen?.value ?? null, (await store.get([], 'who'))?.value];
      }),
    ];
    const made = world({ planner: script(parallel(named('a', 'b'))), tools, journal: on });
    await (await start(made, { identity: local('ann') })).result();
    expect((await made.runtime.store.list([])).length).toBe(1);
  });

  it('gives a fork a layer of its own over the store', async () => {
    const on = journal();
    const tools = [
      make('write', async ({ value }, { store }) => {
        await store.put(['n'], 'k', value);
        await store.put(['n'], 'short', value, { ttlMs: 1 });
        await store.delete(['n'], 'base');
      }),
      make('read', async (_, { store }) => {
        const listed = await store.list([], { limit: 3 });
        const found = await store.search(['n'], 'forked plain');
        return [listed.map(({ key, value }) => [key, value]), found.map(({ key, score }) => [key, score])] as Json;
      }),
    ];
    const planner = script(call('write', { value: 'plain' }), call('read'));
    const forked = script(call('write', { value: 'plain' }), call('write', { value: 'forked' }), call('read'));
    const made = world({ planner, tools, journal: on, clock });
    const ann = made.runtime.store.of(ANN);
    await ann.put(['n'], 'base', 'plain');
    const run = await start(made, { identity: local('ann') });
    await run.result();
    await ann.put(['n'], 'base', 'plain again');
    await ann.put(['n'], 'z', 'forked');
    const other = world({ planner: forked, tools, journal: on, clock });
    clock.advance(10);
    const fork = await other.runtime.run(run.id).fork({ step: 1 });
    await fork.result();
    // What it wrote before it was forked off lies over the store too, and what expired does not show what is below.
    expect(observations(await innerState(on, fork))[2]).toEqual([
      [
        ['k', 'forked'],
        ['short', 'forked'],
        ['z', 'forked'],
      ],
      [
        ['k', 0.5],
        ['short', 0.5],
        ['z', 0.5],
      ],
    ]);
    expect((await ann.list([])).map(({ key, value }) => [key, value])).toEqual([
      ['base', 'plain again'],
      ['k', 'plain'],
      ['z', 'forked'],
    ]);
    const writes = (await entriesOf(on, fork, 'call_ended')).map(({ store }) => store?.writes?.length);
    expect(writes).toEqual([3, 3, undefined]);
  });

  it('replays without a look at the store', async () => {
    const on = journal();
    const { runtime, run } = await called(async (_, { store }) => store.put([], 'k', 1), { journal: on });
    await runtime.store.of(ANN).delete([], 'k');
    expect(await run.replay()).toMatchObject({ compared: 2 });
    expect((await run.replay()).divergence).toBeUndefined();
    expect(await runtime.store.list([])).toEqual([]);
  });
});

describe('the store of several processes', () => {
  const program = builtFile('test/memory/child.ts');

  it('has nothing of a call whose process is killed between its read and its end, and all of it once', async () => {
    const folder = dirname(temporaryFile());
    const lines: string[] = [];
    const first = bear({ program, folder, args: ['first'] }, (line) => {
      lines.push(line);
      if (line.startsWith('wrote')) first.child.kill('SIGKILL');
    });
    expect(await first.end).toBe(true);
    const journal = openJournal(`${folder}/pilotage.db`);
    expect(await journal.store.list({ namespace: [], limit: 9 })).toEqual([]);
    const second = bear({ program, folder, args: ['second'] }, (line) => lines.push(line));
    expect(await second.end).toBe(false);
    expect(lines).toEqual(['wrote 1', 'wrote 1', 'ended finished', 'stored 1']);
    // What the other process wrote is here at once.
    expect((await journal.store.get(['local', 'ann'], 'count'))?.value).toBe(1);
    await journal.close();
  });
});
