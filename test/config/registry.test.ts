import { describe, expect, it } from 'vitest';
import type { Planner } from '#pilotage';
import { type PlannerFactory, plannerRegistry, shippedPlanners } from '#pilotage/config';
import { finish } from '#planners/finish';
import { scriptedModel } from '#testing';

const done: PlannerFactory = () => finish();

describe('a planner registry', () => {
  it.each(['', '  ', undefined as unknown as string])('RG-01 refuses the name %j', (name) => {
    expect(() => plannerRegistry().register(name, done)).toThrow(
      expect.objectContaining({ code: 'driver_empty_name' }),
    );
  });

  it('RG-02 refuses a missing factory', () => {
    expect(() => plannerRegistry().register('house', undefined as unknown as PlannerFactory)).toThrow(
      expect.objectContaining({ code: 'driver_nil_factory', message: expect.stringContaining('"house"') }),
    );
  });

  it('RG-03 refuses a name a second time, naming it; the first factory stays', async () => {
    const registry = plannerRegistry();
    const first = finish();
    registry.register('house', () => first);
    expect(() => registry.register('house', done)).toThrow(
      expect.objectContaining({ code: 'driver_duplicate', message: expect.stringContaining('"house"') }),
    );
    expect(await registry.resolve('house')).toBe(first);
  });

  it('RG-04 names an unknown driver, and those that are registered', async () => {
    const registry = plannerRegistry();
    const textOf = (name: string): Promise<string> =>
      registry.resolve(name).then(
        () => 'resolved',
        ({ code, message }) => `${code}: ${message}`,
      );
    expect(await textOf('ract')).toBe('driver_unknown: There is no planner driver "ract"; registered: <none>.');
    registry.register('z', done);
    registry.register('a', done);
    expect(await textOf('ract')).toBe('driver_unknown: There is no planner driver "ract"; registered: a, z.');
    expect(await textOf('')).toBe('driver_unknown: The name of the planner driver is empty; registered: a, z.');
  });

  it('RG-05 lists its names in order', () => {
    const registry = plannerRegistry();
    for (const name of ['z', 'a', 'm']) registry.register(name, done);
    expect(registry.list()).toEqual(['a', 'm', 'z']);
  });

  it('RG-06 looks at the signal before anything else', async () => {
    const registry = plannerRegistry();
    let made = 0;
    registry.register('house', () => {
      made += 1;
      return finish();
    });
    const reason = new Error('nobody waits');
    await expect(registry.resolve('house', {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    await expect(registry.resolve('unknown', {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(made).toBe(0);
  });

  it('RG-07 gives the very instance that the factory gave, and the factory what it was given', async () => {
    const registry = plannerRegistry();
    const planner: Planner = { name: 'house', next: () => ({ kind: 'finish', reason: 'goal' }) };
    const seen: unknown[] = [];
    registry.register('now', (...given) => {
      seen.push(...given);
      return planner;
    });
    registry.register('later', async () => planner);
    const options = { rules: 3 };
    const { signal } = new AbortController();
    expect(await registry.resolve('now', options, signal)).toBe(planner);
    expect(seen).toEqual([options, signal]);
    expect(seen[0]).toBe(options);
    expect(await registry.resolve('later')).toBe(planner);
  });

  it('passes on what a factory throws', async () => {
    const registry = plannerRegistry();
    const thrown = new Error('no rules');
    registry.register('house', () => {
      throw thrown;
    });
    await expect(registry.resolve('house')).rejects.toBe(thrown);
  });

  it('RG-19 is a value: another one sees nothing of it, also of the shipped planners', async () => {
    const [one, other] = [shippedPlanners(), shippedPlanners()];
    one.register('house', done);
    expect(one.list()).toEqual(['deterministic', 'finish', 'graph', 'house', 'pipeline', 'react']);
    expect(other.list()).toEqual(['deterministic', 'finish', 'graph', 'pipeline', 'react']);
    await expect(other.resolve('house')).rejects.toMatchObject({ code: 'driver_unknown' });
    expect(plannerRegistry().list()).toEqual([]);
    other.register('house', done);
  });

  it('RG-20 every shipped planner is made of its options, with what it needs passed in', async () => {
    const registry = shippedPlanners({ model: scriptedModel([]) });
    const options: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      deterministic: { steps: [{ do: 'finish', reason: 'goal' }] },
      finish: {},
      graph: { plan: { planId: 'p', steps: [{ id: 'end', type: 'finish' }] } },
      pipeline: {},
      react: {},
    };
    expect(Object.keys(options)).toEqual(registry.list());
    const names = await Promise.all(registry.list().map(async (name) => registry.resolve(name, options[name])));
    expect(names.map(({ name }) => name)).toEqual(registry.list());
  });
});
