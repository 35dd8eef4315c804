/** Answers that hold for questions to come: rules of a run, of a session, of a user. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  type ApprovalRule,
  type Caller,
  local,
  type Remember,
  ruleWrite,
  type StoreWrite,
  type ToolPolicy,
} from '#core';
import { memoryJournal } from '#journal';
import type { Run, Runtime } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, kindsOf, observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const SUM = { type: 'object', properties: { sum: { type: 'number' } } } as const;
const admin = (user: string): Caller => ({ tenant: 'local', user, session: 'office', scope: 'admin' });
const own: Caller = { tenant: 'local', user: 'ana', session: 's', scope: 'owner_user' };

function place(more: Partial<Tool> = {}, options: Partial<WorldOptions> = {}) {
  const made: unknown[] = [];
  const tool = make(
    'pay',
    (args) => {
      made.push(args);
      return 'paid';
    },
    {
      inputSchema: SUM,
      effect: 'once',
      needsApproval: true,
      ...more,
    },
  );
  const clock = options.clock ?? new VirtualClock();
  const journal = options.journal ?? memoryJournal({ clock });
  const sums = (...given: readonly object[]): Promise<{ run: Run; runtime: Runtime; faults: unknown[] }> =>
    inSession('s', ...given);
  async function inSession(session: string, ...given: readonly object[]) {
    const planner = script(...given.map((args) => call('pay', { ...args })));
    const here = world({ planner, tools: [tool], ...options, clock, journal });
    const run = await start(here, { identity: local('ana', { session }) });
    await run.result();
    return { run, ...here };
  }
  return { made, journal, clock, sums, inSession };
}

async function isAsked(run: Run): Promise<boolean> {
  return (await run.result()).status === 'paused';
}

async function remember(run: Run, remembered: Remember, as?: { runtime: Runtime; who: Caller }): Promise<void> {
  const handle = as === undefined ? run : as.runtime.run(run.id, { as: as.who });
  await handle.approve(undefined, { remember: remembered });
}

const ALL: { readonly tenant: string; readonly user: string } = { tenant: 'local', user: 'ana' };

describe('a rule of the run', () => {
  it('answers the same question of this run, and the record names it', async () => {
    const { made, sums, journal } = place();
    const { run, runtime, faults } = await sums({ sum: 5 }, { sum: 5 }, { sum: 6 });
    await remember(run, { scope: 'run' }, { runtime, who: own });
    expect(await pausesOf(run)).toMatchObject([{ payload: { args: { sum: 6 } } }]);
    expect(made).toEqual([{ sum: 5 }, { sum: 5 }]);
    const [rule] = await runtime.rules.list({ ...ALL, run: run.id });
    expect(rule).toMatchObject({
      scope: 'run',
      verdict: 'approve',
      tool: 'pay',
      by: { user: 'ana' },
      id: expect.stringContaining(run.id),
    });
    const [ruled] = await entriesOf(journal, run, 'ruled');
    expect(ruled).toMatchObject({
      step: 1,
      call: 0,
      verdict: 'approve',
      rules: [{ id: rule?.id, by: { user: 'ana' }, setAt: rule?.setAt }],
    });
    expect((await kindsOf(journal, run)).slice(-6)).toEqual([
      'moved',
      'ruled',
      'call_began',
      'call_ended',
      'moved',
      'paused',
    ]);
    await run.approve();
    const events = await collect(run);
    expect(only(events, 'rule.set')).toMatchObject([{ rule: { id: rule?.id } }]);
    expect(only(events, 'rule.applied')).toMatchObject([{ tool: 'pay', rules: [{ id: rule?.id }] }]);
    expect(faults).toEqual([]);
    // Another run of the same session is asked.
    expect(await isAsked((await sums({ sum: 5 })).run)).toBe(true);
  });

  it('is revoked by a control, which the run records', async () => {
    const { made, sums, journal } = place();
    const { run, runtime } = await sums({ sum: 5 }, { sum: 5 }, { sum: 6 }, { sum: 5 });
    await remember(run, { scope: 'run' });
    await run.result();
    const [rule] = await runtime.rules.list({ ...ALL, run: run.id });
    await runtime.rules.revoke(rule?.id ?? '');
    expect(await runtime.rules.list({ ...ALL, run: run.id })).toEqual([]);
    await run.approve();
    expect(await pausesOf(run)).toMatchObject([{ payload: { args: { sum: 5 } } }]);
    expect(made).toHaveLength(3);
    expect((await entriesOf(journal, run, 'control')).map(({ control }) => control.type)).toEqual([
      'APPROVE',
      'REVOKE',
      'APPROVE',
    ]);
    await expect(runtime.rules.revoke(rule?.id ?? '')).rejects.toMatchObject({ code: 'payload_invalid' });
  });

  it('is not the rule of a fork, and what it let pass stays as it was recorded', async () => {
    const { made, sums, journal } = place();
    const { run, runtime } = await sums({ sum: 5 }, { sum: 5 }, { sum: 5 });
    await remember(run, { scope: 'run' });
    await run.result();
    expect(made).toHaveLength(3);
    const fork = await run.fork({ step: 2, effects: 'allowed' });
    expect(await isAsked(fork)).toBe(true);
    expect(await runtime.rules.list({ ...ALL, run: fork.id })).toEqual([]);
    expect((await entriesOf(journal, fork, 'ruled')).length).toBe(1);
    expect((await run.replay()).divergence).toBeUndefined();
    expect(made).toHaveLength(3);
  });
});

describe('a rule of a session, or of a user', () => {
  it.each(['session', 'user'] as const)('holds in other runs and processes: %s', async (scope) => {
    const { made, sums, inSession } = place();
    const { run, runtime } = await sums({ sum: 5 });
    await remember(run, { scope, match: 'tool' }, { runtime, who: own });
    const [rule] = await runtime.rules.list(ALL);
    expect(rule).toMatchObject({ scope, match: 'tool', by: { user: 'ana' } });
    await run.result();
    await runtime.close();
    const next = await sums({ sum: 7 });
    expect(await isAsked(next.run)).toBe(false);
    expect(made).toEqual([{ sum: 5 }, { sum: 7 }]);
    const elsewhere = await inSession('other', { sum: 7 });
    expect(await isAsked(elsewhere.run)).toBe(scope === 'session');
    expect(await next.runtime.rules.list({ ...ALL, session: 'other' })).toHaveLength(scope === 'session' ? 0 : 1);
    await next.runtime.rules.revoke(rule?.id ?? '');
    expect(await next.runtime.rules.list(ALL)).toEqual([]);
    expect(await isAsked((await sums({ sum: 7 })).run)).toBe(true);
  });

  it('a no is remembered, too: nobody is bothered, and the record says whose no it was', async () => {
    const { made, sums } = place();
    const { run, runtime } = await sums({ sum: 5 });
    await runtime.run(run.id, { as: own }).reject(undefined, { remember: { scope: 'user', match: 'tool' } });
    const [rule] = await runtime.rules.list(ALL);
    const next = await sums({ sum: 7 });
    expect(await isAsked(next.run)).toBe(false);
    expect((await next.run.state()).steps[0]?.calls.map(({ outcome }) => outcome)).toMatchObject([
      { error: { code: 'tool_rejected', message: expect.stringContaining('rule of ana'), data: { rule: rule?.id } } },
    ]);
    expect(made).toEqual([]);
  });

  it('a no ends the run where the gate says so', async () => {
    const { made, sums } = place({ needsApproval: { onReject: 'end' } });
    const { run } = await sums({ sum: 5 });
    await run.reject(undefined, { remember: { scope: 'user', match: 'tool' } });
    const next = await sums({ sum: 7 });
    expect(await next.run.result()).toMatchObject({ status: 'finished', reason: 'constraints_conflict' });
    expect(made).toEqual([]);
  });

  it('a schema says which arguments: as they are given, and as the tool gets them', async () => {
    const { made, sums } = place({ inputSchema: z.object({ sum: z.number().default(1_000) }) });
    const { run } = await sums({ sum: 5 });
    await remember(run, { scope: 'user', match: { type: 'object', properties: { sum: { maximum: 100 } } } });
    expect(await isAsked((await sums({ sum: 100 })).run)).toBe(false);
    expect(await isAsked((await sums({ sum: 101 })).run)).toBe(true);
    // The schema of the tool makes 1,000 of it.
    const filled = await sums({});
    expect(await pausesOf(filled.run)).toMatchObject([{ payload: { args: {}, checked_args: { sum: 1_000 } } }]);
    expect(made).toEqual([{ sum: 5 }, { sum: 100 }]);
  });

  it('ends with its time, by the clock', async () => {
    const { sums, clock } = place();
    const { run } = await sums({ sum: 5 });
    await remember(run, { scope: 'user', expiresInMs: 60_000 });
    expect(await isAsked((await sums({ sum: 5 })).run)).toBe(false);
    clock.advance(60_000);
    const last = await sums({ sum: 5 });
    expect(await isAsked(last.run)).toBe(true);
    expect(await last.runtime.rules.list(ALL)).toEqual([]);
  });

  it('of edited arguments is about these', async () => {
    const { sums } = place();
    const { run } = await sums({ sum: 500 });
    await run.approve(undefined, { args: { sum: 5 }, remember: { scope: 'user' } });
    expect(await isAsked((await sums({ sum: 500 })).run)).toBe(true);
    expect(await isAsked((await sums({ sum: 5 })).run)).toBe(false);
  });

  it('a denial of the policy beats it, and what the policy asks it answers', async () => {
    let policy: ToolPolicy = () => ({ ask: 'May it?' });
    const { made, sums } = place({ needsApproval: false }, { policy: (...asked) => policy(...asked) });
    const { run } = await sums({ sum: 5 });
    await remember(run, { scope: 'user', match: 'tool' });
    expect(await isAsked((await sums({ sum: 6 })).run)).toBe(false);
    expect(made).toHaveLength(2);
    policy = () => ({ deny: 'not today' });
    const denied = await sums({ sum: 6 });
    expect(observations(await denied.run.state())).toMatchObject([{ error: { code: 'policy_refused' } }]);
    expect(made).toHaveLength(2);
  });

  it('the run’s own user cannot set one for a question that another has to answer', async () => {
    let needsAnother = false;
    const policy: ToolPolicy = () => (needsAnother ? { ask: 'Another.', approver: 'another' } : { ask: 'Anyone.' });
    const { sums } = place({ needsApproval: false }, { policy });
    const { run, runtime } = await sums({ sum: 5 });
    await remember(run, { scope: 'user', match: 'tool' }, { runtime, who: own });
    expect(await isAsked((await sums({ sum: 5 })).run)).toBe(false);
    needsAnother = true;
    const asked = await sums({ sum: 5 });
    expect(await isAsked(asked.run)).toBe(true);
    await remember(asked.run, { scope: 'user', match: 'tool' }, { runtime: asked.runtime, who: admin('bea') });
    expect(await isAsked((await sums({ sum: 5 })).run)).toBe(false);
  });

  it('counts as the yes of who set it: two people have to remember it', async () => {
    const { made, sums } = place({ needsApproval: { approvals: 2 } });
    const first = await sums({ sum: 5 });
    await remember(first.run, { scope: 'user', match: 'tool' }, { runtime: first.runtime, who: admin('bea') });
    await first.runtime.run(first.run.id, { as: admin('cem') }).approve();
    await first.run.result();
    const second = await sums({ sum: 6 });
    expect(await isAsked(second.run)).toBe(true);
    await second.runtime.run(second.run.id, { as: admin('dan') }).approve();
    await remember(second.run, { scope: 'user', match: 'tool' }, { runtime: second.runtime, who: admin('eva') });
    const third = await sums({ sum: 7 });
    expect(await isAsked(third.run)).toBe(false);
    expect(
      only(await collect(third.run), 'rule.applied')[0]
        ?.rules.map(({ by }) => by?.user)
        .sort(),
    ).toEqual(['bea', 'eva']);
    expect(made).toHaveLength(3);
  });

  it('goes with its session, and with its user', async () => {
    const { sums, inSession } = place();
    const one = await sums({ sum: 5 });
    await remember(one.run, { scope: 'session', match: 'tool' });
    await one.run.result();
    const two = await inSession('other', { sum: 5 });
    await remember(two.run, { scope: 'user', match: 'tool' });
    await two.run.result();
    expect(await two.runtime.rules.list(ALL)).toHaveLength(2);
    await two.runtime.sessions.delete({ ...ALL, session: 's' });
    const left = await two.runtime.rules.list(ALL);
    expect(left).toMatchObject([{ scope: 'user' }] satisfies Partial<ApprovalRule>[]);
    expect(await two.runtime.erase(ALL)).toMatchObject({ items: 1, left: [] });
    expect(await two.runtime.rules.list(ALL)).toEqual([]);
  });
});

describe('the store of rules', () => {
  it('is out of reach of tools and of the program, and is not found by what asks for everything', async () => {
    const errors: string[] = [];
    const pokes = make('poke', async (_, { store }) => {
      for (const namespace of [['pilotage:rules'], ['pilotage:rules', 'local', 'ana']]) {
        await store.put(namespace, 'k', 1).catch((error: { code: string }) => errors.push(error.code));
      }
      return (await store.list([])).length;
    });
    const { sums, journal } = place();
    const { run, runtime } = await sums({ sum: 5 });
    await remember(run, { scope: 'user', match: 'tool' });
    await run.result();
    for (const namespace of [['pilotage:rules'], ['pilotage:rules', 'local', 'ana'], ['pilotage:x']]) {
      await expect(runtime.store.put(namespace, 'k', 1)).rejects.toMatchObject({ code: 'store_refused' });
      await expect(runtime.store.list(namespace)).rejects.toMatchObject({ code: 'store_refused' });
      await expect(runtime.store.delete(namespace, 'k')).rejects.toMatchObject({ code: 'store_refused' });
    }
    expect(await runtime.store.list([])).toEqual([]);
    expect(await runtime.store.search([], 'approve pay')).toEqual([]);
    const reserved = { store: { namespace: () => ['pilotage:rules', 'local', 'ana'] } };
    for (const options of [{}, reserved]) {
      const here = world({ planner: script(call('poke')), tools: [pokes], journal, ...options });
      const poked = await start(here);
      await poked.result();
    }
    // Below a user's own root such names are as good as any other; where the program puts the root into the rules, nothing is written.
    expect(errors).toEqual(['store_refused', 'store_refused']);
    expect(await runtime.rules.list(ALL)).toHaveLength(1);
  });
});

describe('what cannot be remembered', () => {
  const wrong: readonly (readonly [string, object])[] = [
    ['another scope', { scope: 'tenant' }],
    ['no scope', { match: 'tool' }],
    ['somebody else', { scope: 'user', user: 'bob' }],
    ['another word', { scope: 'run', match: 'all' }],
    ['a schema that is none', { scope: 'run', match: { type: 'nonsense' } }],
    ['a list', { scope: 'run', match: ['tool'] }],
    ['a schema too large', { scope: 'run', match: { enum: ['x'.repeat(9_000)] } }],
    ['no time', { scope: 'run', expiresInMs: 0 }],
    ['half a millisecond', { scope: 'run', expiresInMs: 1.5 }],
  ];

  it.each(wrong)('%s: the answer is refused whole, and the question stays', async (_, given) => {
    const { made, sums } = place();
    const { run, runtime } = await sums({ sum: 5 });
    await expect(run.approve(undefined, { remember: given as Remember })).rejects.toMatchObject({
      code: 'payload_invalid',
    });
    await expect(run.reject(undefined, { remember: given as Remember })).rejects.toMatchObject({
      code: 'payload_invalid',
    });
    expect(await isAsked(run)).toBe(true);
    expect(made).toEqual([]);
    expect(await runtime.rules.list({ ...ALL, run: run.id })).toEqual([]);
  });

  it('somebody who may not approve sets no rule', async () => {
    const { sums } = place();
    const { run, runtime } = await sums({ sum: 5 });
    const guest: Caller = { ...own, scope: 'session_user' };
    const stranger: Caller = { ...own, user: 'bob' };
    await expect(remember(run, { scope: 'user' }, { runtime, who: guest })).rejects.toMatchObject({
      code: 'scope_mismatch',
    });
    await expect(remember(run, { scope: 'user' }, { runtime, who: stranger })).rejects.toMatchObject({
      code: expect.stringMatching(/scope_mismatch|run_not_found/),
    });
    expect(await runtime.rules.list(ALL)).toEqual([]);
  });

  it('a question that is no gate', async () => {
    const here = world({ planner: script({ kind: 'request_pause', reason: 'approval_required' }) });
    const run = await start(here);
    await run.result();
    await expect(run.approve(undefined, { remember: { scope: 'run' } })).rejects.toMatchObject({
      code: 'payload_invalid',
    });
    expect(await isAsked(run)).toBe(true);
  });

  it('only who may approve revokes', async () => {
    const { sums } = place();
    const { run, runtime } = await sums({ sum: 5 });
    await remember(run, { scope: 'user' });
    const [rule] = await runtime.rules.list(ALL);
    const id = rule?.id ?? '';
    for (const as of [
      { ...own, scope: 'session_user' },
      { ...own, user: 'bob' },
    ] as Caller[]) {
      await expect(runtime.rules.revoke(id, { as })).rejects.toMatchObject({ code: 'scope_mismatch' });
    }
    await runtime.rules.revoke(id, { as: admin('bea') });
    await expect(runtime.rules.revoke('nonsense')).rejects.toMatchObject({ code: 'payload_invalid' });
  });
});

describe('rules of others', () => {
  const SESSIONS = 300;

  /** A journal in which each of many sessions of the user has a rule, and how many items were read of it. */
  async function crowded() {
    const journal = memoryJournal();
    const rules = Array.from({ length: SESSIONS }, (_, of): StoreWrite => {
      const identity = { ...local('ana', { session: `other ${of}` }), run: `run_${of}` };
      const said = { id: `rule:run_${of}:3`, tool: 'pay', match: 'tool', verdict: 'approve', setAt: of } as const;
      return ruleWrite({ ...said, scope: 'session' }, identity, undefined) as StoreWrite;
    });
    await journal.store.write(rules);
    const read = { items: 0 };
    const store = changed(journal.store, {
      list: async (...query) => {
        const found = await journal.store.list(...query);
        read.items += found.length;
        return found;
      },
    });
    return { journal: changed(journal, { store }), read };
  }

  it('are not read for a call, though they are of other sessions of its user', async () => {
    const { journal, read } = await crowded();
    const { run } = await place({}, { journal }).sums({ sum: 1 });
    expect(await isAsked(run)).toBe(true);
    expect(read.items).toBeLessThan(SESSIONS / 2);
  });

  it('are not read to take one back', async () => {
    const { journal, read } = await crowded();
    const { sums } = place({}, { journal });
    const { run, runtime } = await sums({ sum: 1 }, { sum: 1 });
    await remember(run, { scope: 'user' });
    const [set] = (await runtime.rules.list(ALL)).filter(({ scope }) => scope === 'user');
    read.items = 0;
    await runtime.rules.revoke(set?.id ?? '');
    expect(read.items).toBe(0);
    expect((await runtime.rules.list(ALL)).map(({ scope }) => scope)).not.toContain('user');
  });

  it('are taken back also when the run that set them is gone', async () => {
    const { journal } = await crowded();
    const { runtime } = await place({}, { journal }).sums({ sum: 1 });
    await runtime.rules.revoke('rule:run_7:3');
    expect(await runtime.rules.list({ ...ALL, session: 'other 7' })).toEqual([]);
    expect(await runtime.rules.list({ ...ALL, session: 'other 8' })).toHaveLength(1);
  });
});
