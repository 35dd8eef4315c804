import { describe, expect, it } from 'vitest';
import { createModelRegistry, type ModelCallResult, type ModelRegistry, type Needs, rankModels } from '#model';
import { scriptedModel, VirtualClock } from '#testing';

const HOUR_MS = 3_600_000;
const a = scriptedModel([], { modelId: 'a' });
const b = scriptedModel([], { modelId: 'b' });
const well: ModelCallResult = { parsed: true, valid: true, succeeded: true, latencyMs: 100 };
const down: ModelCallResult = { succeeded: false };

function record(registry: ModelRegistry, name: string, count: number, result: ModelCallResult): void {
  for (let call = 0; call < count; call += 1) registry.record(name, result);
}

const names = (registry: ModelRegistry, needs?: Needs): string[] =>
  rankModels(registry, needs).map((model) => model.name);

describe('the measures of a model', () => {
  it('AG-15 ten calls with two that could not be read give 0.2', () => {
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    record(registry, 'a', 8, well);
    record(registry, 'a', 2, { parsed: false, succeeded: false, latencyMs: 600 });
    expect(registry.measures('a')).toEqual({
      parseFailRate: 0.2,
      validationFailRate: 0,
      successRate: 0.8,
      avgLatencyMs: 200,
      calls: 10,
    });
  });

  it('AG-15 ten calls that are spread over some minutes give it to two places', () => {
    const clock = new VirtualClock();
    const registry = createModelRegistry([a], { clock });
    for (let call = 0; call < 10; call += 1) {
      registry.record('a', { ...well, parsed: call % 5 !== 2 });
      clock.advance(30_000);
    }
    expect(registry.measures('a').parseFailRate).toBeCloseTo(0.2, 2);
  });

  it('AG-17 a model that nobody has asked is neither perfect nor failing', () => {
    const { parseFailRate, validationFailRate, successRate, calls, avgLatencyMs } = createModelRegistry([a]).measures(
      'a',
    );
    expect([parseFailRate, validationFailRate, successRate]).toEqual([0.05, 0.05, 0.95]);
    expect([calls, avgLatencyMs]).toEqual([0, undefined]);
  });

  it('AG-17 one failure is not a model that always fails', () => {
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    record(registry, 'a', 1, down);
    expect(registry.measures('a').successRate).toBeCloseTo(0.76, 9);
  });

  it('AG-17 an outage fades, with and without calls after it', () => {
    const clock = new VirtualClock();
    const registry = createModelRegistry([a, b], { clock });
    for (const name of ['a', 'b']) record(registry, name, 40, down);
    expect(registry.measures('a').successRate).toBe(0);
    clock.advance(HOUR_MS);
    record(registry, 'b', 10, well);
    const after = [registry.measures('a').successRate, registry.measures('b').successRate];
    expect(after[0]).toBeCloseTo(0.475, 9);
    expect(after[1]).toBeCloseTo(0.8, 9);
    clock.advance(5 * HOUR_MS);
    expect(registry.measures('a').successRate).toBeCloseTo(0.95, 3);
    expect(registry.measures('b').successRate).toBeCloseTo(0.95, 3);
  });

  it('only the last calls count', () => {
    const registry = createModelRegistry([a], { clock: new VirtualClock(), windowCalls: 10 });
    record(registry, 'a', 10, down);
    record(registry, 'a', 10, well);
    expect(registry.measures('a')).toMatchObject({ successRate: 1, calls: 10 });
  });

  it('a stage that was not reached does not count in its rate', () => {
    const registry = createModelRegistry([a], { clock: new VirtualClock() });
    record(registry, 'a', 10, { parsed: false, succeeded: false });
    record(registry, 'a', 10, { parsed: true, valid: true, succeeded: true });
    expect(registry.measures('a')).toMatchObject({ parseFailRate: 0.5, validationFailRate: 0, successRate: 0.5 });
  });

  it('go out as JSON and come in again, for the models that are still there', () => {
    const clock = new VirtualClock();
    const registry = createModelRegistry([a, b], { clock });
    record(registry, 'a', 3, well);
    record(registry, 'b', 5, down);
    const data = JSON.parse(JSON.stringify(registry.export()));
    const next = createModelRegistry([b, { model: a, name: 'new' }], { clock });
    next.import(data);
    expect(next.measures('b')).toEqual(registry.measures('b'));
    expect(next.measures('new').calls).toBe(0);
    record(next, 'b', 5, well);
    expect(registry.measures('b').calls).toBe(5);
  });

  it('refuses names that are not in the pool, and bad options', () => {
    const registry = createModelRegistry([a]);
    expect(() => registry.record('x', well)).toThrow('"x"');
    expect(() => registry.measures('x')).toThrow('"x"');
    expect(() => createModelRegistry([a, a])).toThrow('"a"');
    expect(() => createModelRegistry([a], { windowCalls: 0 })).toThrow('windowCalls');
    expect(() => createModelRegistry([a], { halfLifeMs: Number.NaN })).toThrow('halfLifeMs');
  });
});

describe('which model is asked first', () => {
  const structured = { model: b, structuredOutput: 'json_schema' as const };
  const textual = { model: a, structuredOutput: 'text' as const };

  function measured(
    entries: Parameters<typeof createModelRegistry>[0],
    failing: Record<string, number>,
  ): ModelRegistry {
    const registry = createModelRegistry(entries, { clock: new VirtualClock(), windowCalls: 100 });
    for (const [name, count] of Object.entries(failing)) {
      record(registry, name, 100 - count, well);
      record(registry, name, count, { parsed: true, valid: false, succeeded: true });
    }
    return registry;
  }

  it('AG-16 structured output counts more than one failure in a hundred', () => {
    const registry = measured([textual, structured], { a: 1, b: 2 });
    expect(names(registry)).toEqual(['b', 'a']);
    expect(names(registry, { needs: 'structured' })).toEqual(['b', 'a']);
  });

  it('AG-16 what is not needed does not count', () => {
    expect(names(measured([textual, structured], { a: 1, b: 2 }), { needs: 'calls' })).toEqual(['a', 'b']);
  });

  it('AG-16 native calls count where calls are needed', () => {
    const registry = measured([{ model: a, toolCalls: 'text' }, b], { a: 1, b: 2 });
    expect(names(registry, { needs: 'calls' })).toEqual(['b', 'a']);
    expect(names(registry, { needs: 'structured' })).toEqual(['a', 'b']);
  });

  it('AG-16 equal ones keep the order listed', () => {
    expect(names(createModelRegistry([b, a]))).toEqual(['b', 'a']);
    expect(names(measured([a, b], { a: 2, b: 2 }))).toEqual(['a', 'b']);
    expect(names(measured([b, a], { a: 2, b: 2 }))).toEqual(['b', 'a']);
  });

  it('AG-17 a model that nobody has asked stands between a good one and a bad one', () => {
    const c = scriptedModel([], { modelId: 'c' });
    expect(names(measured([a, b, c], { a: 30, c: 1 }))).toEqual(['c', 'b', 'a']);
  });

  it('a model that can, but is down, comes after one that cannot', () => {
    expect(names(measured([structured, textual], { a: 1, b: 60 }))).toEqual(['a', 'b']);
  });
});
