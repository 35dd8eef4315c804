import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assertIdentity, type Identity, local, newRunId, scopeKey } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { finish } from '#planners/finish';
import { type ToolContext, tool } from '#tools';
import { call } from '../kit/decisions.ts';
import { record } from '../kit/recorded.ts';

const whole: Identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
const PARTS = ['tenant', 'user', 'session', 'run'] as const;
const INCOMPLETE: [string, Partial<Record<keyof Identity, unknown>> | undefined, string[]][] = [
  ...PARTS.map((part) => [`no ${part}`, { ...whole, [part]: undefined }, [part]] as never),
  ...PARTS.map((part) => [`a blank ${part}`, { ...whole, [part]: ' \t\n' }, [part]] as never),
  ['a run that is a number', { ...whole, run: 5 }, ['run']],
  ['a user that is half a surrogate pair', { ...whole, user: 'a\ud800' }, ['user']],
  ['none of them', {}, [...PARTS]],
  ['nothing', undefined, [...PARTS]],
];

describe('an identity', () => {
  it.each(INCOMPLETE)('ID-01 with %s fails closed, and is told what is missing', (_, identity, missing) => {
    expect(() => assertIdentity(identity as Identity)).toThrow(
      expect.objectContaining({ code: 'identity_required', data: { missing } }),
    );
  });

  it.each(
    INCOMPLETE,
  )('ID-01 with %s starts no run: the planner is not asked, nothing is written', async (_, identity) => {
    let asked = 0;
    const journal = memoryJournal();
    const planner = (): { kind: 'finish'; reason: 'goal' } => {
      asked += 1;
      return { kind: 'finish', reason: 'goal' };
    };
    const runtime = createRuntime({ planner, journal });
    await expect(runtime.start('q', { identity: identity as Identity })).rejects.toMatchObject({
      code: 'identity_required',
    });
    expect(await journal.list({})).toEqual([]);
    expect(asked).toBe(0);
    await runtime.close();
  });

  it('ID-01 is needed by a planner too', async () => {
    const view = { identity: { ...whole, tenant: ' ' } } as never;
    expect(() => finish().next(view, new AbortController().signal)).toThrow(
      expect.objectContaining({ code: 'identity_required' }),
    );
  });

  it('local() makes a whole one, with a fresh run each time', () => {
    const ids = Array.from({ length: 1_000 }, () => local('ana'));
    for (const identity of ids) assertIdentity(identity);
    expect(new Set(ids.map(({ run }) => run)).size).toBe(1_000);
    expect(local('ana', { session: 's', run: 'r' })).toEqual({ tenant: 'local', user: 'ana', session: 's', run: 'r' });
    expect(newRunId()).toMatch(/^run_[a-z0-9]+$/);
  });
});

describe('keys', () => {
  it('ID-04 the same letters split otherwise make another key', () => {
    expect(scopeKey({ tenant: 'a', user: 'bc', session: 's' })).not.toBe(
      scopeKey({ tenant: 'ab', user: 'c', session: 's' }),
    );
    expect(scopeKey({ tenant: 'a/b', user: 'c', session: 's' })).not.toBe(
      scopeKey({ tenant: 'a', user: 'b/c', session: 's' }),
    );
    expect(scopeKey({ tenant: 'a%2Fb', user: 'c', session: 's' })).not.toBe(
      scopeKey({ tenant: 'a/b', user: 'c', session: 's' }),
    );
  });

  it('ID-04 two scopes have one key exactly when they are the same', () => {
    const part = fc.string({
      unit: fc.constantFrom('a', 'b', '/', '%', '2', 'F', ' ', 'ü', '|'),
      minLength: 1,
      maxLength: 4,
    });
    const scope = fc.record({ tenant: part, user: part, session: part });
    fc.assert(
      fc.property(scope, scope, (left, right) => {
        const same = left.tenant === right.tenant && left.user === right.user && left.session === right.session;
        expect(scopeKey(left) === scopeKey(right)).toBe(same);
      }),
      { numRuns: 2_000 },
    );
  });

  /** The contexts that a tool got in one run of this identity. */
  async function contexts(identity: Identity, calls = 1): Promise<ToolContext[]> {
    const seen: ToolContext[] = [];
    const spy = tool({
      name: 'spy',
      description: 'd',
      inputSchema: { type: 'object' },
      execute: (_, context) => {
        seen.push(context);
        return 1;
      },
    });
    await record(Array(calls).fill(call('spy')), { tools: [spy], identity });
    return seen;
  }

  it('ID-05 two tenants with the same session and run have other idempotency keys', async () => {
    const keys = await Promise.all(
      [whole, { ...whole, tenant: 'other' }, { ...whole, user: 'other' }].map(
        async (identity) => (await contexts(identity))[0]?.idempotencyKey,
      ),
    );
    expect(new Set(keys).size).toBe(3);
  });

  it('ID-04 nor do keys meet that are made of the same letters', async () => {
    const [left] = await contexts({ ...whole, session: 's/r', run: 'x' });
    const [right] = await contexts({ ...whole, session: 's', run: 'r/x' });
    expect(left?.idempotencyKey).not.toBe(right?.idempotencyKey);
  });

  it('ID-05 every call of a run has a key of its own', async () => {
    const keys = (await contexts(whole, 12)).map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(12);
  });

  it('ID-05 artifacts of one scope are not in another', async () => {
    const journal = memoryJournal();
    const bytes = Buffer.from('secret of t');
    const { artifactRef } = await journal.artifacts.put(whole, bytes, { mime: 'text/plain' });
    for (const part of ['tenant', 'user', 'session'] as const) {
      expect(await journal.artifacts.get({ ...whole, [part]: 'other' }, artifactRef)).toBeUndefined();
    }
    expect(await journal.artifacts.get(whole, artifactRef)).toMatchObject({ bytes: new Uint8Array(bytes) });
  });
});

describe('who a run belongs to', () => {
  it('ID-07 ID-08 the identity is in the view, in every event and in the context of a tool, and nobody can set it', async () => {
    let changed: unknown;
    let seen: unknown;
    const thief = tool({
      name: 'thief',
      description: 'd',
      inputSchema: { type: 'object' },
      execute: (_, { identity }) => {
        seen = { ...identity };
        try {
          (identity as { tenant: string }).tenant = 'other';
        } catch (error) {
          changed = error;
        }
        return { identity: { tenant: 'from the model' } };
      },
    });
    const { events, views } = await record([call('thief', { tenant: 'from the model' })], {
      tools: [thief],
      identity: whole,
    });
    expect(seen).toEqual(whole);
    expect(changed).toBeInstanceOf(TypeError);
    for (const { identity } of [...views, ...events]) expect(identity).toEqual(whole);
    expect(events.length).toBeGreaterThan(4);
    expect(views).toHaveLength(2);
  });

  it("ID-07 the caller's object is copied: changing it later changes nothing", async () => {
    const identity = { ...whole };
    const { views } = await record(
      [
        () => {
          identity.tenant = 'other';
          return call('none');
        },
      ],
      { identity },
    );
    expect(views.map((view) => view.identity.tenant)).toEqual(['t', 't']);
  });

  it("ID-02 another owner's run id is never handed out, nor its state", async () => {
    const journal = memoryJournal();
    const runtime = createRuntime({ planner: finish({ payload: 'secret' }), journal });
    await (await runtime.start('q', { identity: whole })).result();
    const refused = runtime.start('q', { identity: { ...whole, tenant: 'other' } });
    await expect(refused).rejects.toMatchObject({
      code: 'scope_mismatch',
      message: expect.not.stringContaining('secret'),
    });
    await runtime.close();
  });
});
