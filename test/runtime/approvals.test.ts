/** What a policy may answer, approvals by several people, reminders and escalation. */
import { describe, expect, it } from 'vitest';
import { type Caller, local, type PlannerFunction, type PolicyView, type ToolPolicy } from '#core';
import type { Tool } from '#tools';
import { call, named, parallel, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, kindsOf, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const SUM = { type: 'object', properties: { sum: { type: 'number' } }, additionalProperties: false } as const;

function pays(more: Partial<Tool> = {}): { readonly tool: Tool; readonly made: unknown[] } {
  const made: unknown[] = [];
  const tool = make(
    'pay',
    (args) => {
      made.push(args);
      return `paid ${String(args['sum'])}`;
    },
    {
      inputSchema: SUM,
      effect: 'once',
      ...more,
    },
  );
  return { tool, made };
}

const IDENTITY = local('ana', { session: 's' });
const admin = (user: string): Caller => ({ tenant: 'local', user, session: 'office', scope: 'admin' });
const own: Caller = { tenant: 'local', user: 'ana', session: 's', scope: 'owner_user' };

async function paused(policy: ToolPolicy | undefined, more: Partial<Tool> = {}, options: Partial<WorldOptions> = {}) {
  const { tool, made } = pays(more);
  const planner = watched(script(call('pay', { sum: 5 })));
  const here = world({ planner, tools: [tool], ...(policy === undefined ? {} : { policy }), ...options });
  const run = await start(here, { identity: { ...IDENTITY, run: `run_${crypto.randomUUID()}` } });
  const result = await run.result();
  const pauses = result.status === 'paused' ? result.pauses : [];
  return {
    ...here,
    planner,
    run,
    made,
    pauses,
    token: pauses[0]?.token ?? '',
    as: (who: Caller) => here.runtime.run(run.id, { as: who }),
  };
}

describe('a policy that asks', () => {
  it('has the call wait for an approval, as a gate of the tool does', async () => {
    const here = await paused(() => ({ ask: 'It is a lot.', approver: 'another', expiresInMs: 60_000 }));
    expect(here.pauses).toMatchObject([
      {
        reason: 'approval_required',
        approver: 'another',
        payload: { tool: 'pay', args: { sum: 5 }, reason: 'It is a lot.', digest: expect.any(String) },
        expiresAt: here.clock.now() + 60_000,
      },
    ]);
    await expect(here.as(own).approve(here.token)).rejects.toMatchObject({ code: 'approver_refused' });
    await here.as(admin('bea')).approve(here.token);
    expect(await here.run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(here.made).toEqual([{ sum: 5 }]);
    expect(here.faults).toEqual([]);
  });

  it('asks once with a gate, with both reasons, on the stricter terms', async () => {
    const here = await paused(() => ({ ask: 'It is a lot.', expiresInMs: 9_000 }), {
      needsApproval: { reason: 'Money leaves.', approver: 'another', expiresInMs: 70_000, onReject: 'end' },
    });
    expect(here.pauses).toMatchObject([
      { approver: 'another', onReject: 'end', payload: { reason: 'It is a lot. Money leaves.' } },
    ]);
    expect(here.pauses[0]?.expiresAt).toBe(here.clock.now() + 9_000);
    await here.run.approve(here.token);
    await here.run.result();
    expect(await entriesOf(here.journal, here.run, 'paused')).toHaveLength(1);
    expect(here.made).toHaveLength(1);
  });

  it('is asked again about arguments that an approver gave, and may ask for more', async () => {
    const policy: ToolPolicy = ({ args }) =>
      Number((args as { sum: number }).sum) > 100 ? { ask: 'Over 100.', approver: 'another' } : 'allow';
    const here = await paused(policy, { needsApproval: true });
    await here.as(own).approve(here.token, { args: { sum: 1_000 } });
    const [again] = await pausesOf(here.run);
    expect(again).toMatchObject({ approver: 'another', payload: { args: { sum: 1_000 }, reason: 'Over 100.' } });
    expect(here.made).toEqual([]);
    await expect(here.as(own).approve(again?.token)).rejects.toMatchObject({ code: 'approver_refused' });
    await here.as(admin('bea')).approve(again?.token);
    await here.run.result();
    expect(here.made).toEqual([{ sum: 1_000 }]);
  });

  it('a denial bothers nobody, though its tool has a gate', async () => {
    const here = await paused(() => ({ deny: 'never' }), { needsApproval: true });
    expect(here.pauses).toEqual([]);
    expect(observations(await here.run.state())).toMatchObject([{ error: { code: 'policy_refused' } }]);
    expect(here.made).toEqual([]);
  });

  it.each([
    ['true', true],
    ['a text', 'yes'],
    ['nothing', undefined],
    ['an empty reason', { ask: '' }],
    ['a long reason', { ask: 'x'.repeat(1_001) }],
    ['a reason and a denial', { ask: 'a', deny: 'b' }],
    ['an unknown option', { ask: 'a', approver: 'another', quorum: 2 }],
    ['a wrong approver', { ask: 'a', approver: 'nobody' }],
    ['no approval', { ask: 'a', approvals: 0 }],
    ['too short a reminder', { ask: 'a', remindAfterMs: 1 }],
    ['half an escalation', { ask: 'a', escalate: { afterMs: 5_000 } }],
  ])('%s allows nothing', async (_, answer) => {
    const here = await paused(() => answer as never);
    expect(here.pauses).toEqual([]);
    expect(observations(await here.run.state())).toMatchObject([
      { error: { code: 'policy_refused', message: expect.stringContaining('answer') } },
    ]);
    expect(here.made).toEqual([]);
  });

  it('sees the run: agent, identity, meta, goal, steps and the calls before', async () => {
    const seen: PolicyView[] = [];
    const { tool, made } = pays({ effect: 'read' });
    const third: ToolPolicy = ({ tool: name }, view) => {
      seen.push(view);
      return view.calls.filter((one) => one.tool === name).length < 2 ? 'allow' : { ask: 'The third asks.' };
    };
    const planner = script(
      call('pay', { sum: 1 }),
      parallel([
        { tool: 'pay', args: { sum: 2 } },
        { tool: 'pay', args: { sum: 3 } },
      ]),
    );
    const here = world({ planner, tools: [tool], policy: third });
    const run = await start(here, { identity: IDENTITY, context: { meta: { tier: 'gold' } }, query: 'refund' });
    expect(await pausesOf(run)).toMatchObject([{ call: 1, payload: { args: { sum: 3 }, reason: 'The third asks.' } }]);
    expect(made).toEqual([{ sum: 1 }, { sum: 2 }]);
    const last = seen.find((view) => view.calls.length === 2);
    expect(last).toMatchObject({
      agent: 'function',
      identity: { user: 'ana' },
      meta: { tier: 'gold' },
      goal: 'refund',
    });
    expect(last?.steps).toHaveLength(1);
    expect(last?.calls).toMatchObject([
      { step: 0, call: 0, tool: 'pay', args: { sum: 1 }, outcome: 'value' },
      { step: 1, call: 0, tool: 'pay', args: { sum: 2 }, outcome: expect.stringMatching(/open|value/) },
    ]);
    await run.approve();
    await run.result();
    expect(made).toHaveLength(3);
  });
});

describe('several people have to approve', () => {
  const two = { needsApproval: { approvals: 2, approver: 'another' } } as const;

  it('each yes is recorded, and the call is made with the last', async () => {
    const here = await paused(undefined, two);
    expect(here.pauses).toMatchObject([{ approvals: 2 }]);
    await here.as(admin('bea')).approve(here.token, { reason: 'fine' });
    expect(await here.run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ token: here.token, approvals: 2, approved: [{ by: { user: 'bea' } }], missing: 1 }],
    });
    expect(here.made).toEqual([]);
    await here.as(admin('cem')).approve(here.token);
    expect(await here.run.result()).toMatchObject({ status: 'finished' });
    expect(here.made).toEqual([{ sum: 5 }]);
    const events = await collect(here.run);
    expect(only(events, 'approval.given')).toMatchObject([{ token: here.token, missing: 1, by: { user: 'bea' } }]);
    expect(await kindsOf(here.journal, here.run)).toEqual([
      'started',
      'moved',
      'paused',
      'control',
      'approved',
      'control',
      'resumed',
      'call_began',
      'call_ended',
      'moved',
      'finished',
    ]);
  });

  it('one person counts once, the run’s own user not where another has to, and one no rejects', async () => {
    const here = await paused(undefined, two);
    await here.as(admin('bea')).approve(here.token);
    await expect(here.as({ ...admin('bea'), session: 'home' }).approve(here.token)).rejects.toMatchObject({
      code: 'approver_refused',
      message: expect.stringContaining('1 more must'),
    });
    await expect(here.as(own).approve(here.token)).rejects.toMatchObject({ code: 'approver_refused' });
    expect(here.made).toEqual([]);
    await here.as(admin('cem')).reject(here.token, { reason: 'no' });
    await here.run.result();
    expect(observations(await here.run.state())).toMatchObject([{ error: { code: 'tool_rejected' } }]);
    expect(here.made).toEqual([]);
  });

  it('the program is one person', async () => {
    const here = await paused(undefined, { needsApproval: { approvals: 2 } });
    await here.run.approve(here.token);
    await expect(here.run.approve(here.token)).rejects.toMatchObject({
      code: 'approver_refused',
      message: expect.stringContaining('{ as }'),
    });
    await here.as(own).approve(here.token);
    await here.run.result();
    expect(here.made).toHaveLength(1);
  });

  it('other arguments are counted anew, and only with the digest of what was seen', async () => {
    const here = await paused(undefined, { needsApproval: { approvals: 2 } });
    await here.as(admin('bea')).approve(here.token);
    await here.as(admin('cem')).approve(here.token, { args: { sum: 3 } });
    const [edited] = await pausesOf(here.run);
    expect(edited).toMatchObject({ payload: { args: { sum: 3 } }, missing: 1, approved: [{ by: { user: 'cem' } }] });
    const first = String(here.pauses[0]?.payload?.['digest']);
    const now = String(edited?.payload?.['digest']);
    expect(now).not.toBe(first);
    await expect(here.as(admin('bea')).approve(here.token)).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(here.as(admin('bea')).approve(here.token, { digest: first })).rejects.toMatchObject({
      code: 'payload_invalid',
    });
    await here.as(admin('bea')).approve(here.token, { digest: now });
    await here.run.result();
    expect(here.made).toEqual([{ sum: 3 }]);
  });

  it('of a hundred who answer at once, two are taken', async () => {
    const here = await paused(undefined, { needsApproval: { approvals: 2 } });
    const answers = Array.from({ length: 100 }, (_, n) => here.as(admin(`u${n}`)).approve(here.token));
    const settled = await Promise.allSettled(answers);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    await here.run.result();
    expect(here.made).toHaveLength(1);
  });

  it('also of a task, answered through the run above', async () => {
    const { tool, made } = pays({ needsApproval: { approvals: 2 } });
    const top = script({ kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'go' } });
    const below = script(call('pay', { sum: 1 }));
    const planner: PlannerFunction = (view, signal) => (view.task === undefined ? top : below)(view, signal);
    const here = world({ planner, tools: [tool] });
    const run = await start(here, { identity: IDENTITY });
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ missing: 2 });
    await here.runtime.run(run.id, { as: admin('bea') }).approve(pause?.token);
    await until(async () => (await pausesOf(run))[0]?.missing === 1);
    await here.runtime.run(run.id, { as: admin('cem') }).approve(pause?.token);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made).toHaveLength(1);
  });
});

describe('a question that waits for long', () => {
  it('is told again and again, ten times, and escalated once', async () => {
    const here = await paused(undefined, {
      needsApproval: { remindAfterMs: 60_000, escalate: { afterMs: 150_000, to: 'managers', approver: 'another' } },
    });
    here.runtime.work();
    const reminders = async (): Promise<number> => (await entriesOf(here.journal, here.run, 'reminded')).length;
    for (let minute = 1; minute <= 3; minute += 1) {
      here.clock.advance(60_000);
      await advanceUntil(here.clock, async () => (await reminders()) >= minute);
    }
    expect(await entriesOf(here.journal, here.run, 'escalated')).toMatchObject([
      { to: 'managers', approver: 'another' },
    ]);
    await expect(here.as(own).approve(here.token)).rejects.toMatchObject({ code: 'approver_refused' });
    for (let more = 4; more <= 14; more += 1) {
      here.clock.advance(61_000);
      await quiet();
      await quiet();
    }
    await advanceUntil(here.clock, async () => (await reminders()) >= 10);
    here.clock.advance(600_000);
    await quiet();
    expect(await reminders()).toBe(10);
    expect(await entriesOf(here.journal, here.run, 'escalated')).toHaveLength(1);
    await here.as(admin('bea')).approve(here.token);
    await here.run.result();
    const events = await collect(here.run);
    expect(only(events, 'approval.reminder').map(({ times }) => times)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(only(events, 'approval.escalated')).toMatchObject([{ to: 'managers', payload: { tool: 'pay' } }]);
    expect(here.made).toHaveLength(1);
    await here.runtime.close();
  });

  it('a gate that lets anyone approve from then on is heard, and beside a policy that wants somebody else it is not', async () => {
    const needsApproval = { approver: 'another', escalate: { afterMs: 5_000, to: 'all', approver: 'anyone' } } as const;
    const alone = await paused(undefined, { needsApproval });
    await expect(alone.as(own).approve(alone.token)).rejects.toMatchObject({ code: 'approver_refused' });
    alone.runtime.work();
    await advanceUntil(alone.clock, async () => (await entriesOf(alone.journal, alone.run, 'escalated')).length === 1);
    await alone.as(own).approve(alone.token);
    expect(await alone.run.result()).toMatchObject({ status: 'finished' });
    expect(alone.made).toHaveLength(1);
    await alone.runtime.close();

    const beside = await paused(() => ({ ask: 'Not you.', approver: 'another' }), { needsApproval });
    beside.runtime.work();
    await advanceUntil(
      beside.clock,
      async () => (await entriesOf(beside.journal, beside.run, 'escalated')).length === 1,
    );
    await expect(beside.as(own).approve(beside.token)).rejects.toMatchObject({ code: 'approver_refused' });
    await beside.runtime.close();
  });

  it('without a gate that says so, an escalation changes nobody’s rights', async () => {
    const here = await paused(undefined, { needsApproval: { escalate: { afterMs: 5_000, to: 'managers' } } });
    here.runtime.work();
    await advanceUntil(here.clock, async () => (await entriesOf(here.journal, here.run, 'escalated')).length === 1);
    await here.as(own).approve(here.token);
    await here.run.result();
    expect(here.made).toHaveLength(1);
    await here.runtime.close();
  });

  it('is told while other calls of the step go on, and not after it was answered', async () => {
    const { tool, made } = pays({ needsApproval: { remindAfterMs: 5_000 } });
    const look = make('look', () => 'seen');
    const here = world({
      planner: script(parallel([{ tool: 'pay', args: { sum: 1 } }, ...named('look')])),
      tools: [tool, look],
    });
    const run = await start(here);
    await run.result();
    await run.approve();
    await run.result();
    here.clock.advance(60_000);
    await quiet();
    expect(await entriesOf(here.journal, run, 'reminded')).toEqual([]);
    expect([made.length, outcomes(await run.state())]).toEqual([1, ['value', 'value']]);
  });
});
