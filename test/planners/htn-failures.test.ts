/** What the htn planner does when an action fails, or does not come to what it was to. */
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { type HtnState, type HtnTask, htn, htnDomain } from '#planners/htn';
import { failure, value } from '../kit/steps.ts';
import { BOTH, type Changes, callsOf, play, playByHand } from './parcels.ts';

function set(state: HtnState, key: string, to: Json): boolean {
  state.set('k', key, to);
  return true;
}

describe('AG-37 an action that fails', () => {
  it('AG-37 only its own task is planned anew; what is done is not done again, and what is behind it stays', async () => {
    const { result, calls, plans } = await play({}, ['drive p1']);
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    // The train goes to the station, from where nothing can be dropped.
    expect(calls).toEqual(['pick p1', 'drive p1', 'walk p1', 'drop p1', 'pick p2', 'drive p2', 'drop p2']);
    expect(plans).toEqual([BOTH, ['walk p1', 'drop p1', 'pick p2', 'drive p2', 'drop p2'], []]);
  });

  it('AG-37 the same action in another place is tried there', async () => {
    const { calls } = await play({}, ['drive p2']);
    expect(calls).toEqual([...BOTH.slice(0, 5), 'walk p2', 'drop p2']);
  });

  it('AG-37 what has failed is not tried again in its place, also when another failure follows', async () => {
    const { result, calls } = await play({}, ['drive p1', 'walk p1']);
    expect(result).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['pick p1', 'drive p1', 'walk p1', 'post p1', 'pick p2', 'drive p2', 'drop p2']);
  });

  it('AG-37 when its task has no other way, the task above is planned anew, and so on', async () => {
    const { result, calls } = await play({}, ['drop p1']);
    expect(result).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['pick p1', 'drive p1', 'drop p1', 'post p1', 'pick p2', 'drive p2', 'drop p2']);
  });

  it('AG-37 when what is behind it does not apply any more, the rest of the list is planned anew, and no more', async () => {
    const on = (value: string, needed?: string) => (state: HtnState) =>
      (needed === undefined || state.get('k', 'way') === needed) && set(state, 'way', value);
    const domain = htnDomain({
      operators: { start: on('none'), x: on('x'), x2: on('x'), y: on('y'), v: on('end', 'x'), w: on('end', 'y') },
      tasks: {
        go: { x: () => [['x']], x2: () => [['x2']], y: () => [['y']] },
        end: { v: () => [['v']], w: () => [['w']] },
      },
    });
    const planner = htn({
      domain,
      state: () => ({ k: [] }),
      todo: () => [['start'], ['go'], ['end']],
      step: ([name]) => ({ type: 'tool', toolId: 'act', input: { args: [name] } }),
    });
    const { moves } = await playByHand(planner, (call) =>
      call.startsWith('act x') ? failure('tool_failed', 'no') : value('done'),
    );
    expect(moves.map(({ decision }) => callsOf(decision))).toEqual([
      ['act start', 'act x', 'act v'],
      ['act x2', 'act v'],
      ['act y', 'act w'],
      [],
    ]);
  });

  it('AG-37 fails with what was in the way when nothing is left', async () => {
    const { result, calls } = await play({}, ['drop p1', 'post p1']);
    expect(calls).toEqual(['pick p1', 'drive p1', 'drop p1', 'post p1']);
    expect(result).toMatchObject({
      status: 'failed',
      error: {
        code: 'plan_failed',
        data: {
          failed: ['a7'],
          errors: { a7: { code: 'tool_failed' } },
          reasons: expect.arrayContaining(['post(p1): it has failed before']),
        },
      },
    });
  });

  it('AG-37 the ids of later plans are new ones, and all results are in the end', async () => {
    const { result } = await play({ todo: () => [['deliver', 'p1']] }, ['drive p1']);
    expect(result).toMatchObject({
      payload: { results: { a1: 'pick p1: done', a4: 'walk p1: done', a5: 'drop p1: done' } },
    });
  });

  it('a goal whose action fails is come to by its next method, and checked again', async () => {
    const domain = htnDomain({
      operators: {
        a: (state) => set(state, 'x', 1),
        b: (state) => set(state, 'x', 1),
        c: (state) => state.get('k', 'x') === 1,
      },
      goals: { k: { a: () => [['a']], b: () => [['b'], ['c']] } },
    });
    const act = ([name]: HtnTask) => ({ type: 'tool', toolId: 'act', input: { args: [name] } }) as const;
    const planner = htn({ domain, state: () => ({ k: [] }), todo: () => [['goal', 'k', 'x', 1], ['c']], step: act });
    const { moves } = await playByHand(planner, (call) =>
      call === 'act a' ? failure('tool_failed', 'no') : value('done'),
    );
    expect(moves.map(({ decision }) => callsOf(decision))).toEqual([
      ['act a', 'act c'],
      ['act b', 'act c', 'act c'],
      [],
    ]);
  });

  it.each([false, true])('a goal that a method did not come to is tried by the next one (lazy: %s)', async (lazy) => {
    const domain = htnDomain({
      operators: { a: (state) => set(state, 'x', 1), b: (state) => set(state, 'x', 1) },
      goals: { k: { a: () => [['a']], b: () => [['b']] } },
    });
    const planner = htn({
      domain,
      lazy,
      state: () => ({ k: [] }),
      todo: () => [
        ['goal', 'k', 'x', 1],
        ['goal', 'k', 'x', 1],
      ],
      step: ([name]) => ({ type: 'tool', toolId: 'act', input: { args: [name] } }),
      // What `a` does turns out to be nothing.
      observe: (state, { action }) => {
        if (action[0] === 'a') state.table('k').delete('x');
      },
    });
    const { moves } = await playByHand(planner);
    expect(moves.map(({ decision }) => callsOf(decision))).toEqual([['act a'], ['act b'], []]);
  });

  it('a result may contradict the state, and is then what is gone by', async () => {
    // The train takes the parcel into the town after all.
    const trains: Changes = {
      observe: (state, { action: [, parcel], value: seen }) => {
        if (String(seen).startsWith('train')) state.set('at', String(parcel), 'town');
      },
    };
    const { calls } = await play({ ...trains, lazy: true }, ['drive p1', 'drive p2']);
    expect(calls).toEqual(['pick p1', 'drive p1', 'train p1', 'drop p1', 'pick p2', 'drive p2', 'train p2', 'drop p2']);
  });
});
