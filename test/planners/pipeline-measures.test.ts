import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createModelRegistry, type MeasuresData, type ModelCallResult, rankModels } from '#model';
import { fileMeasures, keepMeasures, type MeasuresFailure, type MeasuresStore } from '#planners/pipeline';
import { scriptedModel, VirtualClock } from '#testing';

const a = scriptedModel([], { modelId: 'a' });
const b = scriptedModel([], { modelId: 'b' });
const well: ModelCallResult = { parsed: true, valid: true, succeeded: true, latencyMs: 100 };
const unreadable: ModelCallResult = { parsed: false, succeeded: false, latencyMs: 100 };
const silent = (failure: MeasuresFailure): never => {
  throw new Error(`No failure was to be: ${failure.doing} ${String(failure.error)}`);
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'measures-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** A store in memory of which each save ends when the test says so. */
function slowStore(): MeasuresStore & { saves: MeasuresData[]; endOne(): void; load(): Promise<undefined> } {
  const ends: (() => void)[] = [];
  const saves: MeasuresData[] = [];
  return {
    saves,
    endOne: () => ends.shift()?.(),
    load: async () => undefined,
    save: (data) => {
      saves.push(data);
      return new Promise((resolve) => ends.push(resolve));
    },
  };
}

describe('measures that are kept', () => {
  it('AG-15 ten calls with two that could not be read show 0.2, also in the next process', async () => {
    const clock = new VirtualClock();
    const store = fileMeasures(join(folder, 'measures.json'));
    const registry = createModelRegistry([a, b], { clock });
    const kept = keepMeasures(registry, store, silent);
    await kept.ready();
    for (let call = 0; call < 10; call += 1) kept.record('a', call % 5 === 3 ? unreadable : well);
    await kept.saved();
    const next = createModelRegistry([b, a], { clock });
    await keepMeasures(next, store, silent).ready();
    expect(next.measures('a')).toEqual({
      parseFailRate: 0.2,
      validationFailRate: 0,
      successRate: 0.8,
      avgLatencyMs: 100,
      calls: 10,
    });
    expect(next.measures('a')).toEqual(registry.measures('a'));
  });

  it('AG-15 they are up to date after each call', () => {
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    const kept = keepMeasures(registry, slowStore(), silent);
    for (let call = 1; call <= 10; call += 1) {
      kept.record('a', call <= 5 ? unreadable : well);
      expect(registry.measures('a').calls).toBe(call);
    }
    expect(registry.measures('a').parseFailRate).toBe(0.5);
  });

  it('AG-16 AG-17 what is stored decides which model is asked first, and fades', async () => {
    const clock = new VirtualClock();
    const store = fileMeasures(join(folder, 'measures.json'));
    const before = keepMeasures(createModelRegistry([a, b], { clock }), store, silent);
    for (let call = 0; call < 20; call += 1) before.record('a', unreadable);
    await before.saved();
    const registry = createModelRegistry([a, b], { clock });
    expect(rankModels(registry).map(({ name }) => name)).toEqual(['a', 'b']);
    await keepMeasures(registry, store, silent).ready();
    expect(rankModels(registry).map(({ name }) => name)).toEqual(['b', 'a']);
    clock.advance(6 * 3_600_000);
    expect(registry.measures('a').successRate).toBeCloseTo(registry.measures('b').successRate, 3);
  });

  it('they are loaded once, and what was measured meanwhile stays', async () => {
    const clock = new VirtualClock();
    const stored: MeasuresData = { a: [{ ...unreadable, at: clock.now() }], b: [{ ...unreadable, at: clock.now() }] };
    let loads = 0;
    const store: MeasuresStore = {
      load: async () => {
        loads += 1;
        return stored;
      },
      save: async () => undefined,
    };
    const registry = createModelRegistry([a, b], { clock });
    const kept = keepMeasures(registry, store, silent);
    const ready = kept.ready();
    kept.record('a', well);
    kept.record('a', well);
    await Promise.all([ready, kept.ready(), kept.saved()]);
    expect(loads).toBe(1);
    expect(registry.export()).toEqual({
      a: [
        { ...well, at: clock.now() },
        { ...well, at: clock.now() },
      ],
      b: stored['b'],
    });
  });

  it('one save runs at a time, and the last state wins', async () => {
    const store = slowStore();
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    const kept = keepMeasures(registry, store, silent);
    await kept.ready();
    for (let call = 0; call < 5; call += 1) kept.record('a', well);
    const saved = kept.saved();
    await until(() => store.saves.length === 1);
    kept.record('a', well);
    kept.record('a', unreadable);
    expect(store.saves).toHaveLength(1);
    store.endOne();
    await until(() => store.saves.length === 2);
    expect(store.saves.map(({ a: calls }) => calls?.length)).toEqual([5, 7]);
    store.endOne();
    await saved;
    await kept.saved();
    expect(store.saves).toHaveLength(2);
  });

  it('a store that fails is told of, and is not fatal; a later save brings all', async () => {
    const failures: MeasuresFailure[] = [];
    const saves: MeasuresData[] = [];
    let isDown = true;
    const store: MeasuresStore = {
      load: () => Promise.reject(new Error('cannot read')),
      save: async (data) => {
        if (isDown) throw new Error('cannot write');
        saves.push(data);
      },
    };
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    const kept = keepMeasures(registry, store, (failure) => failures.push(failure));
    await kept.ready();
    kept.record('a', well);
    await kept.saved();
    expect(failures).toEqual([
      { doing: 'load', error: new Error('cannot read') },
      { doing: 'save', error: new Error('cannot write') },
    ]);
    isDown = false;
    kept.record('a', well);
    await kept.saved();
    expect(saves.map(({ a: calls }) => calls?.length)).toEqual([2]);
  });

  it('a call of a model that is not in the pool is the fault of the caller', () => {
    const kept = keepMeasures(createModelRegistry([a]), slowStore(), silent);
    expect(() => kept.record('b', well)).toThrow('"b"');
  });
});

describe('measures in a file', () => {
  it('are none when there is no file yet', async () => {
    expect(await fileMeasures(join(folder, 'none.json')).load()).toBeUndefined();
  });

  it('are replaced as a whole, and nothing is left beside them', async () => {
    const path = join(folder, 'measures.json');
    const store = fileMeasures(path);
    await store.save({ a: [{ ...well, at: 1 }] });
    await store.save({ a: [{ ...well, at: 2 }] });
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ a: [{ ...well, at: 2 }] });
    expect(await store.load()).toEqual({ a: [{ ...well, at: 2 }] });
    expect(await readdir(folder)).toEqual(['measures.json']);
  });

  it('many writers at once leave the state of one of them', async () => {
    const path = join(folder, 'measures.json');
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => fileMeasures(path).save({ a: Array(at + 1).fill({ ...well, at }) })),
    );
    const calls = (await fileMeasures(path).load())?.['a'] ?? [];
    expect(calls).toHaveLength((calls[0]?.at ?? -1) + 1);
    expect(await readdir(folder)).toEqual(['measures.json']);
  });

  it('a save that fails leaves nothing behind', async () => {
    await expect(fileMeasures(folder).save({})).rejects.toThrow();
    expect(await readdir(folder)).toEqual([]);
    await expect(fileMeasures(join(folder, 'no', 'measures.json')).save({})).rejects.toThrow('ENOENT');
  });

  it.each([
    '',
    '{"a":',
    '[]',
    '"text"',
    '{"a":5}',
    '{"a":[5]}',
    '{"a":[{"at":"x","succeeded":true}]}',
    '{"a":[{"at":1}]}',
  ])('a file that holds %j is told of, and written anew', async (text) => {
    const path = join(folder, 'measures.json');
    await writeFile(path, text);
    const failures: MeasuresFailure[] = [];
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    const kept = keepMeasures(registry, fileMeasures(path), (failure) => failures.push(failure));
    await kept.ready();
    expect(failures.map(({ doing }) => doing)).toEqual(['load']);
    expect(registry.measures('a').calls).toBe(0);
    kept.record('a', well);
    await kept.saved();
    expect((await fileMeasures(path).load())?.['a']).toHaveLength(1);
  });
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
