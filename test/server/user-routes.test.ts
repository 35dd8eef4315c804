/** Over the API: rules of answers, what is remembered of a user, erasing all of it, and setting a broken run right; and who may. */
import { describe, expect, it } from 'vitest';
import type { Entry } from '#core';
import type { Access } from '#server';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { world } from '../kit/world.ts';
import { bearer, serveApi } from './api-kit.ts';

const ANA = { tenant: 'acme', user: 'ana' };
const ONE_SESSION = 'acme/ana/one-session';

async function served(options: Pick<Access, 'may'> = {}) {
  const calls = Array.from({ length: 2 }, (_, index) => call('pay', { to: index }));
  const pay = make('pay', () => 1, { needsApproval: true });
  const made = world({ planner: script(...calls, finish('done')), tools: [pay] });
  const authenticate = async (request: Request): Promise<Access | Response> => {
    const access = await bearer(request);
    if (access instanceof Response) return access;
    if (request.headers.get('authorization') === `Bearer ${ONE_SESSION}`) return { identity: { ...ANA, session: 's' } };
    return { ...access, ...options };
  };
  return { ...made, ...(await serveApi(made, {}, { authenticate })) };
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  );

describe('rules', () => {
  async function ruled(scope: 'run' | 'session' | 'user', more: Parameters<typeof served>[0] = {}) {
    const made = await served(more);
    const client = made.as('acme/ana');
    const run = await client.runs.start('q', { session: 's' });
    await run.result();
    await run.approve(undefined, { remember: { scope, match: 'exact' } });
    await run.result();
    const [rule] = await client.rules.list(scope === 'run' ? { run: run.id } : {});
    return { ...made, client, run, id: rule?.id ?? '', rule };
  }

  it.each(['run', 'session', 'user'] as const)('of a %s are listed and taken back, by nobody else', async (scope) => {
    const { client, run, id, rule, as } = await ruled(scope);
    expect(rule).toMatchObject({ scope, verdict: 'approve', tool: 'pay', by: ANA });
    expect(await client.rules.list({ run: run.id })).toEqual([rule]);
    expect(await client.rules.list({ session: 'other' })).toEqual(scope === 'user' ? [rule] : []);
    const ben = as('acme/ben');
    expect(await ben.rules.list()).toEqual([]);
    expect(await codeOf(ben.rules.list({ user: 'ana' }))).toBe('run_not_found');
    expect(await codeOf(ben.rules.list({ run: run.id }))).toBe('run_not_found');
    // One of somebody else is refused in the words for one that never was.
    const never = await codeOf(ben.rules.revoke('rule:run_never:3'));
    expect([await codeOf(ben.rules.revoke(id)), await codeOf(as('other/ana').rules.revoke(id))]).toEqual([
      never,
      never,
    ]);
    expect(await codeOf(as('acme/ana/session_user').rules.revoke(id))).toBe('scope_mismatch');
    expect(await client.rules.list({ run: run.id })).toEqual([rule]);
    await client.rules.revoke(id);
    expect(await client.rules.list({ run: run.id })).toEqual([]);
    expect(await codeOf(client.rules.revoke(id))).toBe('payload_invalid');
  });

  it('are for an admin of whomever they name', async () => {
    const { as, id, rule } = await ruled('session');
    const boss = as('other/boss/admin');
    expect(await boss.rules.list()).toEqual([]);
    expect(await boss.rules.list(ANA)).toEqual([rule]);
    await boss.rules.revoke(id, ANA);
    expect(await boss.rules.list(ANA)).toEqual([]);
  });

  it('are for a visitor of one session those that hold there, and none that holds elsewhere too is theirs to take back', async () => {
    const user = await ruled('user');
    const [one, other] = [user.as(ONE_SESSION), user.client];
    expect(await one.rules.list()).toEqual([user.rule]);
    expect(await codeOf(one.rules.revoke(user.id))).toBe('forbidden');
    await other.rules.revoke(user.id);
    const session = await ruled('session');
    await session.as(ONE_SESSION).rules.revoke(session.id);
    expect(await session.client.rules.list()).toEqual([]);
  });

  it('of a run that may not be read are not shown, and may is asked before one is taken back', async () => {
    let allowed = ['read', 'start', 'answer', 'control'];
    const { client, run, id } = await ruled('run', { may: (action) => allowed.includes(action) });
    allowed = ['read'];
    expect(await codeOf(client.rules.revoke(id))).toBe('forbidden');
    allowed = ['answer'];
    expect(await codeOf(client.rules.list({ run: run.id }))).toBe('forbidden');
  });
});

describe('memory', () => {
  const FACTS = ['memory', 'facts'];

  it('is listed in pages, read and forgotten, and nobody finds that of others', async () => {
    const { runtime, as } = await served();
    const store = runtime.store.of(ANA);
    for (const key of ['a', 'b/c?', 'd']) await store.put(FACTS, key, { text: key, code: 'x', message: 'y' });
    await store.put([], 'top', 1);
    await runtime.store.of({ tenant: 'acme', user: 'ben' }).put(FACTS, 'secret', 1);
    const ana = as('acme/ana');
    const keys: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await ana.memory.list([], { limit: 1, ...(after === undefined ? {} : { after }) });
      keys.push(...page.items.map(({ key }) => key));
      if (page.next === undefined) break;
      after = page.next;
    }
    expect(keys.sort()).toEqual(['a', 'b/c?', 'd', 'top']);
    expect((await ana.memory.list(FACTS)).items.map(({ key }) => key)).toEqual(['a', 'b/c?', 'd']);
    const item = { namespace: FACTS, key: 'b/c?', value: { text: 'b/c?', code: 'x', message: 'y' } };
    expect(await ana.memory.get(FACTS, 'b/c?')).toMatchObject(item);
    expect(await ana.memory.get([], 'top')).toMatchObject({ namespace: [], value: 1 });
    expect(await ana.memory.get(FACTS, 'secret')).toBeUndefined();
    const ben = { user: 'ben' };
    for (const work of [ana.memory.list([], ben), ana.memory.get(FACTS, 'a', ben), ana.memory.delete(FACTS, 'a', ben)])
      expect(await codeOf(work)).toBe('run_not_found');
    await ana.memory.delete(FACTS, 'b/c?');
    await ana.memory.delete(FACTS, 'b/c?');
    expect(await ana.memory.get(FACTS, 'b/c?')).toBeUndefined();
    expect((await as('other/boss/admin').memory.list([], { tenant: 'acme', user: 'ben' })).items).toHaveLength(1);
    expect(await codeOf(ana.memory.list([], { after: 'x' }))).toBe('request_invalid');
    expect(await codeOf(ana.memory.list(['pilotage:rules']))).toBe('done');
  });

  it('is read by who only says things, and forgotten by who may manage; a visitor of one session has no part in it', async () => {
    const { runtime, as } = await served();
    await runtime.store.of(ANA).put(FACTS, 'a', 1);
    const guest = as('acme/ana/session_user');
    expect((await guest.memory.list()).items).toHaveLength(1);
    expect(await codeOf(guest.memory.delete(FACTS, 'a'))).toBe('forbidden');
    expect(await codeOf(as(ONE_SESSION).memory.list())).toBe('forbidden');
    const careful = (await served({ may: (action) => action !== 'manage' })).as('acme/ana');
    expect(await codeOf(careful.memory.delete(FACTS, 'a'))).toBe('forbidden');
  });
});

describe('erase', () => {
  it('takes all content of a user, for an admin alone, and may be asked again', async () => {
    const { runtime, as } = await served();
    const ana = as('acme/ana');
    const run = await ana.runs.start('a secret');
    await run.result();
    await runtime.store.of(ANA).put(['memory'], 'a', 1);
    for (const who of ['acme/ana', 'acme/ana/session_user', 'acme/ben'])
      expect(await codeOf(as(who).erase({ user: 'ana' }))).toBe('forbidden');
    expect(await as('other/boss/admin').erase({ user: 'ana' })).toMatchObject({ runs: 0 });
    const boss = as('acme/boss/admin');
    expect(await boss.erase({ user: 'ana' })).toEqual({ runs: 1, artifacts: 0, items: 1, schedules: 0, left: [] });
    expect(await boss.erase({ user: 'ana', tenant: 'acme' })).toMatchObject({ runs: 0, items: 0 });
    expect(JSON.stringify(await run.state())).not.toContain('a secret');
    expect((await run.record()).status).toBe('cancelled');
    expect((await ana.memory.list()).items).toEqual([]);
  });
});

describe('a run with an entry that cannot stand', () => {
  it('is looked into and set right by an admin, whose name is recorded', async () => {
    const made = world({ planner: script(call('echo'), pause), tools: [make('echo', () => 1)] });
    const { as, faults } = await serveApi(made);
    const { journal } = made;
    const run = await as('acme/ana').runs.start('q');
    await run.result();
    const claim = await journal.claim({ run: run.id, owner: 'test', leaseMs: 1_000 });
    if (claim === undefined) throw new Error('The run has an owner.');
    const outcome = { kind: 'value', value: 1 };
    const twice = { kind: 'call_ended', step: 0, call: 0, outcome, attempts: 1, seq: claim.head + 1, at: 1 };
    const entries = [twice as Entry];
    await journal.append({ run: run.id, fence: claim.fence, expected: claim.head, entries });
    await journal.release(claim, { seenSignals: claim.signals });
    expect(await codeOf(run.diagnose())).toBe('forbidden');
    expect(await codeOf(run.repair())).toBe('forbidden');
    expect(await codeOf(as('acme/ben').run(run.id).repair())).toBe('run_not_found');
    const boss = as('acme/boss/admin').run(run.id);
    const found = await boss.diagnose();
    expect(found).toMatchObject({
      goodUpTo: claim.head,
      refused: [{ seq: twice.seq, problem: { code: 'journal_corrupt' } }],
    });
    expect(await boss.repair({ reason: 'It was written twice.' })).toEqual(found);
    expect(await boss.diagnose()).toBeUndefined();
    expect(await boss.repair()).toBeUndefined();
    expect(await journal.read(run.id)).toContainEqual(
      expect.objectContaining({ kind: 'repaired', by: 'acme/boss', reason: 'It was written twice.' }),
    );
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(faults).toEqual([]);
  });
});
