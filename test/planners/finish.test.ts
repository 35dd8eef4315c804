import { describe, expect, it } from 'vitest';
import { type Identity, local, resolveWakeMode } from '#core';
import { finish } from '#planners/finish';
import { runView } from '#testing';
import { ask } from '../kit/ask.ts';

const view = runView({ identity: local('ana', { run: 'r1' }) });

describe('finish', () => {
  it('PC-13 gives its payload, and its metadata with the run id; what it was given is unchanged', async () => {
    const metadata = { source: 'test' };
    const planner = finish({ payload: { n: 1 }, metadata });
    const decision = { kind: 'finish', reason: 'goal', payload: { n: 1 }, metadata: { source: 'test', run_id: 'r1' } };
    expect((await ask(planner, view)).decision).toEqual(decision);
    expect((await ask(planner, view)).decision).toEqual(decision);
    expect(metadata).toEqual({ source: 'test' });
    expect(resolveWakeMode(planner)).toBe('push');
  });

  it('ends with another reason and without a payload', async () => {
    const { decision } = await ask(finish({ reason: 'no_path' }), view);
    expect(decision).toEqual({ kind: 'finish', reason: 'no_path', metadata: { run_id: 'r1' } });
  });

  it('PC-07, PC-08 throws the reason of an aborted signal, and fails closed without an identity', async () => {
    const reason = new Error('stop');
    await expect(ask(finish(), view, AbortSignal.abort(reason))).rejects.toBe(reason);
    const stranger = { ...view, identity: { ...view.identity, tenant: '' } as Identity };
    await expect(ask(finish(), stranger)).rejects.toMatchObject({ code: 'identity_required' });
  });

  it('refuses at construction what is not JSON', () => {
    expect(() => finish({ payload: Number.NaN })).toThrow(/payload/);
  });
});
