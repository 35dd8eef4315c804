/** A start under a key of the caller's own: once, whatever comes back lost. */
import { describe, expect, it } from 'vitest';
import { script } from '../kit/decisions.ts';
import { world } from '../kit/world.ts';

const identity = { tenant: 'acme', user: 'ana', session: 's', run: 'not_used' };

describe('start with an idempotency key', () => {
  it('gives the run of the first request, also when it has ended, and refuses another one', async () => {
    const { runtime } = world({ planner: script() });
    const asked = { identity, idempotencyKey: 'order-17', labels: { order: '17' } };
    const first = await runtime.start('refund', asked);
    await first.result();
    expect((await runtime.start('refund', asked)).id).toBe(first.id);
    const other = { ...asked, labels: { order: '18' } };
    await expect(runtime.start('refund', other)).rejects.toMatchObject({ code: 'idempotency_conflict' });
    const elsewhere = { ...asked, identity: { ...identity, session: 'other' } };
    await expect(runtime.start('refund', elsewhere)).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(await runtime.list()).toHaveLength(1);
  });

  it('is one of its user', async () => {
    const { runtime } = world({ planner: script() });
    const of = (user: string) => runtime.start('q', { identity: { ...identity, user }, idempotencyKey: 'k' });
    expect((await of('ana')).id).not.toBe((await of('ben')).id);
  });

  it('starts one run for requests that come at once', async () => {
    const { runtime } = world({ planner: script() });
    const runs = await Promise.all([1, 2, 3].map(() => runtime.start('q', { identity, idempotencyKey: 'k' })));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
  });

  it('does not go together with what says itself which run it is', async () => {
    const { runtime } = world({ planner: script() });
    const both = { identity, idempotencyKey: 'k', singleton: { key: 'one' } };
    await expect(runtime.start('q', both)).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe('what a reader waits for', () => {
  it('is given up by a signal, and the run goes on', async () => {
    const { runtime } = world({ planner: script({ kind: 'request_pause', reason: 'external_event' }) });
    const run = await runtime.start('q', { identity });
    await run.result();
    const later = await runtime.start('q', { identity: { ...identity, run: 'later' }, at: Date.now() + 1e9 });
    const left = new AbortController();
    const waits = later.result({ signal: left.signal });
    left.abort(new Error('enough'));
    await expect(waits).rejects.toThrow('enough');
    await expect(later.result({ signal: left.signal })).rejects.toThrow('enough');
  });

  it('ends with what is recorded when it does not follow', async () => {
    const { runtime } = world({ planner: script({ kind: 'request_pause', reason: 'external_event' }) });
    const run = await runtime.start('q', { identity });
    await run.result();
    const types: string[] = [];
    for await (const { type } of run.events({ follow: false, tasks: true })) types.push(type);
    expect(types).toContain('pause.requested');
    expect(types).not.toContain('run.paused');
    const later = await runtime.start('q', { identity: { ...identity, run: 'later' }, at: Date.now() + 1e9 });
    const seen: string[] = [];
    for await (const { type } of later.events({ follow: false })) seen.push(type);
    expect(seen).toEqual(['run.started']);
  });
});
