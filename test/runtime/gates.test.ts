/** Calls that wait for somebody's approval: one call waits, the rest of the run goes on. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { local } from '#core';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import { agent, agentTool, type Tool, ToolFailure } from '#tools';
import { call, finish, named, parallel, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, kindsOf, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

interface Counted {
  readonly tool: Tool;
  /** The arguments of each time it was made. */
  readonly made: unknown[];
}

/** Pays, and notes what it was asked for. */
function pays(name = 'pay', more: Partial<Tool> = {}): Counted {
  const made: unknown[] = [];
  const run = (args: Record<string, unknown>): string => {
    made.push(args);
    return `${name} ${String(args['sum'] ?? '')}`.trim();
  };
  const input = { type: 'object', properties: { sum: { type: 'number' } }, additionalProperties: false } as const;
  return { made, tool: make(name, run, { inputSchema: input, effect: 'once', needsApproval: true, ...more }) };
}

async function tokenOf(run: Run): Promise<string> {
  const [first] = await pausesOf(run);
  return first?.token ?? '';
}

describe('a call that needs an approval', () => {
  it('SP-47, SP-48, W06 is parked with its arguments; APPROVE makes it, without asking the planner', async () => {
    const { tool, made } = pays();
    const planner = watched(script(call('pay', { sum: 5 })));
    const { runtime, journal, clock, faults } = world({ planner, tools: [tool] });
    const run = await start({ runtime });
    expect(await pausesOf(run)).toMatchObject([
      {
        run: run.id,
        reason: 'approval_required',
        step: 0,
        call: 0,
        payload: { tool: 'pay', args: { sum: 5 } },
        token: expect.stringMatching(/^pause_/),
      },
    ]);
    await until(async () => (await journal.get(run.id))?.lease === undefined);
    expect(await journal.get(run.id)).toMatchObject({ status: 'paused', wakeAt: null });
    expect((await runtime.list({ status: ['paused'] })).map(({ identity }) => identity.run)).toEqual([run.id]);
    expect(await runtime.tasks.get(local('ana'), run.id)).toMatchObject({ status: 'paused' });
    // A run that waits for somebody costs rows only.
    expect(clock.pending).toBe(0);
    expect([made, planner.views.length]).toEqual([[], 1]);

    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{ sum: 5 }]);
    expect(observations(await run.state())).toEqual(['pay 5']);
    expect(planner.views).toHaveLength(2);
    expect(await kindsOf(journal, run)).toEqual([
      'started',
      'moved',
      'paused',
      'control',
      'resumed',
      'call_began',
      'call_ended',
      'moved',
      'finished',
    ]);
    expect(faults).toEqual([]);
  });

  it('SP-47 edited arguments take the place of its own, once they fit; a misfit leaves the pause open', async () => {
    const { tool, made } = pays();
    const run = await start(world({ planner: script(call('pay', { sum: 500 })), tools: [tool] }));
    const token = await tokenOf(run);
    await expect(run.approve(token, { args: { sum: 'five' } })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('edited arguments'),
    });
    await expect(run.approve(token, { args: { amount: 5 } })).rejects.toMatchObject({ code: 'payload_invalid' });
    expect(await tokenOf(run)).toBe(token);
    expect(made).toEqual([]);
    await run.approve(token, { args: { sum: 5 }, reason: 'within the budget' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{ sum: 5 }]);
    const events = await collect(run);
    expect(only(events, 'pause.resumed')).toMatchObject([
      { token, verdict: 'approve', args: { sum: 5 }, payload: { reason: 'within the budget' } },
    ]);
    // What the planner decided stays as it was.
    expect((await run.state()).steps[0]?.decision).toMatchObject({ args: { sum: 500 } });
  });

  it('SP-47, W10 REJECT tells the planner, and why; the run goes on', async () => {
    const { tool, made } = pays();
    const planner = watched(script(call('pay', { sum: 5 }), call('echo', { after: true })));
    const run = await start(world({ planner, tools: [tool, echo] }));
    await run.reject(await tokenOf(run), { reason: 'too much' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 2 } });
    expect(made).toEqual([]);
    const [step] = (await run.state()).steps;
    expect(step?.calls[0]).toMatchObject({
      outcome: { kind: 'error', error: { code: 'tool_rejected', message: expect.stringContaining('too much') } },
      attempts: 0,
    });
    expect(planner.views).toHaveLength(3);
  });

  it('SP-36, SP-47, W10 REJECT ends the run where the gate says so, and stops what is in flight', async () => {
    const { tool, made } = pays('pay', { needsApproval: { onReject: 'end' } });
    const { tool: hold, entered } = holding();
    const world1 = world({ planner: script(parallel(named('hold', 'pay'))), tools: [hold, tool] });
    const run = await start(world1);
    await entered;
    await until(async () => (await run.state()).pauses.length === 1);
    const [pause] = (await run.state()).pauses;
    await run.reject(pause?.token);
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'constraints_conflict',
      metadata: { rejected_by: 'steering', token: pause?.token },
    });
    expect(outcomes(await run.state())).toEqual(['cancelled', 'error']);
    expect(await entriesOf(world1.journal, run, 'resumed')).toMatchObject([{ verdict: 'reject' }]);
    expect(await entriesOf(world1.journal, run, 'finished')).toHaveLength(1);
    expect(made).toEqual([]);
  });

  it('SP-44, W13 expires as approval_timeout, by a worker; a later answer is refused', async () => {
    const { tool, made } = pays('pay', { needsApproval: { expiresInMs: 60_000 } });
    const planner = watched(script(call('pay')));
    const made1 = world({ planner, tools: [tool] });
    made1.runtime.work();
    const run = await start(made1);
    expect(await pausesOf(run)).toMatchObject([{ expiresAt: made1.clock.now() + 60_000 }]);
    const token = await tokenOf(run);
    made1.clock.advance(59_000);
    await quiet();
    expect(planner.views).toHaveLength(1);
    await advanceUntil(made1.clock, async () => (await run.state()).ending !== null);
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'approval_timeout' } });
    await expect(run.approve(token)).rejects.toMatchObject({ code: 'run_ended' });
    expect(made).toEqual([]);
    await made1.runtime.close();
  });

  it('SP-44 expires for whoever answers too late: the call is not made', async () => {
    const { tool, made } = pays('pay', { needsApproval: { expiresInMs: 1_000 } });
    const made1 = world({ planner: script(call('pay')), tools: [tool] });
    const run = await start(made1);
    const token = await tokenOf(run);
    made1.clock.advance(1_000);
    await expect(run.approve(token)).rejects.toMatchObject({ code: 'pause_expired' });
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'approval_timeout' } });
    expect(made).toEqual([]);
  });

  it('SP-41, TL-15 a second answer to it is refused, whichever it is', async () => {
    const { tool, made } = pays();
    const run = await start(
      world({ planner: script(call('pay'), { kind: 'request_pause', reason: 'await_input' }), tools: [tool] }),
    );
    const token = await tokenOf(run);
    await run.approve(token);
    await run.result();
    await expect(run.approve(token)).rejects.toMatchObject({ code: 'pause_not_found' });
    await expect(run.reject(token)).rejects.toMatchObject({ code: 'pause_not_found' });
    expect(made).toHaveLength(1);
  });

  it('SP-26 of 100 racing answers one wins, and the call is made at most once', async () => {
    const { tool, made } = pays();
    const made1 = world({ planner: script(call('pay')), tools: [tool] });
    const run = await start(made1);
    const token = await tokenOf(run);
    const answers = Array.from({ length: 100 }, (_, sum) =>
      sum % 3 === 0 ? run.reject(token) : run.approve(token, { args: { sum } }),
    );
    const settled = await Promise.allSettled(answers);
    const won = settled.flatMap((answer, index) => (answer.status === 'fulfilled' ? [index] : []));
    expect(won).toHaveLength(1);
    await run.result();
    expect(made).toEqual((won[0] as number) % 3 === 0 ? [] : [{ sum: won[0] }]);
    expect(await entriesOf(made1.journal, run, 'resumed')).toHaveLength(1);
  });

  it('is not resumed by RESUME: that is no answer to “may I?”', async () => {
    const { tool, made } = pays();
    const run = await start(world({ planner: script(call('pay')), tools: [tool] }));
    const token = await tokenOf(run);
    await expect(run.resume()).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.resume({ token, payload: { ok: true } })).rejects.toMatchObject({ code: 'payload_invalid' });
    expect(await tokenOf(run)).toBe(token);
    expect(made).toEqual([]);
  });

  it('SP-37, TL-15 is cancelled with the run, and is not made', async () => {
    const { tool, made } = pays();
    const made1 = world({ planner: script(call('pay')), tools: [tool] });
    const run = await start(made1);
    await run.result();
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled', metadata: { cancel_while_paused: true } });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
    expect(made).toEqual([]);
    expect(await made1.journal.get(run.id)).toMatchObject({ status: 'cancelled', wakeAt: null });
  });

  it('ends with the run’s deadline', async () => {
    const { tool, made } = pays();
    const made1 = world({ planner: script(call('pay')), tools: [tool] });
    const run = await start(made1, { limits: { deadlineAt: made1.clock.now() + 10_000 } });
    await run.result();
    made1.runtime.work();
    await advanceUntil(made1.clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
    expect(made).toEqual([]);
    await made1.runtime.close();
  });

  it('SP-43, W01 costs no steps while it waits: 70 messages, and a limit of one step', async () => {
    const { tool } = pays();
    const planner = watched(script(call('pay')));
    const run = await start(world({ planner, tools: [tool] }), {
      limits: { steps: 2 },
      whileAsked: 'keep',
    });
    const token = await tokenOf(run);
    for (let index = 0; index < 70; index += 1) await run.steer('USER_MESSAGE', { message: `m${index}` });
    expect(await tokenOf(run)).toBe(token);
    await run.approve(token);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 1 } });
    expect(planner.views[1]?.controls).toHaveLength(71);
  });

  it.each([
    ['5,000 characters', 'x'.repeat(5_000)],
    ['100,000 characters, which the journal does not hold', 'é'.repeat(100_000)],
  ])('W14 shows the arguments whole, whoever asks and in whichever process: %s', async (_, body) => {
    const { tool, made } = pays('note', { inputSchema: { type: 'object' } });
    const journal = memoryJournal();
    const run = await start(world({ planner: script(call('note', { body })), tools: [tool], journal }));
    const elsewhere = world({ planner: script(), tools: [tool], journal }).runtime.run(run.id);
    for (const handle of [run, elsewhere]) {
      const [pause] = await pausesOf(handle);
      expect(pause?.payload).toEqual({ tool: 'note', args: { body }, digest: expect.stringMatching(/^[\w-]{43}$/) });
    }
    const [recorded] = await entriesOf(journal, run, 'paused');
    expect(JSON.stringify(recorded).length).toBeLessThan(33_000);
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made).toEqual([{ body }]);
  });

  it('shows what a task asks whole, too', async () => {
    const body = 'x'.repeat(50_000);
    const { tool } = pays('note', { inputSchema: { type: 'object' } });
    const inner = agent({ name: 'inner', planner: script(call('note', { body })), tools: [tool] });
    const tools = [agentTool(inner, { description: 'd' })];
    const made = world({ planner: { name: 'outer', next: script(call('inner', { input: 'x' })) }, tools });
    const run = await start(made);
    expect(await pausesOf(run)).toMatchObject([{ run: `${run.id}.0.0`, payload: { tool: 'note', args: { body } } }]);
  });

  it('an approval that names what was shown is refused for anything else', async () => {
    const { tool, made } = pays();
    const journal = memoryJournal();
    const run = await start(world({ planner: script(call('pay', { sum: 5 })), tools: [tool], journal }));
    const [pause] = await pausesOf(run);
    const digest = String(pause?.payload?.['digest']);
    const other = 'A'.repeat(43);
    await expect(run.approve(pause?.token, { digest: other })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('Look at the pause again'),
    });
    expect(made).toEqual([]);
    await run.approve(pause?.token, { digest });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made).toEqual([{ sum: 5 }]);
    const said = (await entriesOf(journal, run, 'control')).map(({ control }) => control.payload?.['digest']);
    expect(said).toEqual([other, digest]);
    expect(await entriesOf(journal, run, 'resumed')).not.toMatchObject([{ payload: expect.anything() }]);
  });

  it('shows what the tool gets, where its schema fills in or changes something', async () => {
    const inputSchema = z.object({
      to: z.string().transform((name) => name.toLowerCase()),
      amount: z.number().default(9_999),
    });
    const { tool, made } = pays('pay', { inputSchema });
    const plain = pays('plain', { inputSchema });
    const odd = pays('odd', { inputSchema: z.object({ at: z.string().transform(() => ({ noon: BigInt(1) })) }) });
    const all = [tool, plain.tool, odd.tool];
    const asked = parallel([
      { tool: 'pay', args: { to: 'ANA' } },
      { tool: 'plain', args: { to: 'ana', amount: 1 } },
      { tool: 'odd', args: { at: 'noon' } },
    ]);
    const run = await start(world({ planner: script(asked), tools: all }));
    const shown = new Map((await pausesOf(run)).map(({ payload, token }) => [payload?.['tool'], { payload, token }]));
    expect(shown.get('pay')?.payload).toMatchObject({
      args: { to: 'ANA' },
      checked_args: { to: 'ana', amount: 9_999 },
    });
    for (const name of ['plain', 'odd']) expect(shown.get(name)?.payload).not.toHaveProperty('checked_args');
    for (const { token } of shown.values()) await run.approve(token);
    await run.result();
    expect(made).toEqual([{ to: 'ana', amount: 9_999 }]);
  });

  it('two questions about the same arguments have one digest, in whichever order their keys are', async () => {
    const { tool } = pays('note', { inputSchema: { type: 'object' } });
    const twice = parallel([
      { tool: 'note', args: { a: 1, b: 2 } },
      { tool: 'note', args: { b: 2, a: 1 } },
    ]);
    const run = await start(world({ planner: script(twice), tools: [tool] }));
    const digests = (await pausesOf(run)).map(({ payload }) => payload?.['digest']);
    expect(new Set(digests).size).toBe(1);
    expect(digests).toHaveLength(2);
  });
});

describe('an approval rule', () => {
  it('TL-14 is asked with the arguments that the tool would get; what needs nobody is made with the same ones', async () => {
    const asked: unknown[] = [];
    const { tool, made } = pays('pay', {
      needsApproval: async (args, { identity }) => {
        asked.push([args, identity.user]);
        return (args as { sum: number }).sum > 100;
      },
    });
    const run = await start(
      world({ planner: script(call('pay', { sum: 5 }), call('pay', { sum: 500 })), tools: [tool] }),
    );
    expect(await pausesOf(run)).toMatchObject([{ step: 1, payload: { args: { sum: 500 } } }]);
    expect(made).toEqual([{ sum: 5 }]);
    expect(asked).toEqual([
      [{ sum: 5 }, 'ana'],
      [{ sum: 500 }, 'ana'],
    ]);
    await run.reject();
    await run.result();
    expect(asked).toHaveLength(2);
  });

  it('TL-14 that throws refuses the call: it is not made, and nobody is asked', async () => {
    const { tool, made } = pays('pay', {
      needsApproval: () => {
        throw new Error('no rule for Tuesdays');
      },
    });
    const run = await start(world({ planner: script(call('pay')), tools: [tool] }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      kind: 'error',
      error: { code: 'approval_failed', message: expect.stringContaining('no rule for Tuesdays') },
    });
    expect(made).toEqual([]);
  });

  it('TL-12 stands outside the retries: a call that fails and is tried again asks nobody again', async () => {
    let [rules, attempts] = [0, 0];
    const flaky = make(
      'flaky',
      () => {
        attempts += 1;
        if (attempts < 3) throw new ToolFailure('not yet', { retryable: true });
        return 'at last';
      },
      {
        effect: 'keyed',
        needsApproval: () => {
          rules += 1;
          return true;
        },
      },
    );
    const made = world({ planner: script(call('flaky')), tools: [flaky] });
    const run = await start(made);
    await run.approve(await tokenOf(run));
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(observations(await run.state())).toEqual(['at last']);
    expect([rules, attempts]).toEqual([1, 3]);
    expect(await entriesOf(made.journal, run, 'paused')).toHaveLength(1);
  });

  it('TL-13 is named, or a function; a gate that is none is refused when the tool is registered', () => {
    const planner = script();
    for (const approve of [
      { approver: 'nobody' },
      { onReject: 'shrug' },
      { expiresInMs: Number.NaN },
      { expiresInMs: -1 },
      'deny-all',
    ]) {
      const tools = [make('pay', () => 1, { needsApproval: approve as never })];
      expect(() => world({ planner, tools }), JSON.stringify(approve)).toThrow(
        expect.objectContaining({ code: 'invalid_config' }),
      );
    }
  });

  it('TL-12 a rule’s answer holds after a restart: an approved call is made, and nobody is asked again', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    let rules = 0;
    const { tool, made } = pays('pay', {
      needsApproval: () => {
        rules += 1;
        return true;
      },
    });
    const first = world({ planner: script(call('pay')), tools: [tool], journal, clock });
    const { id } = await start(first);
    await first.runtime.run(id).result();
    await first.runtime.close();
    // The answer is stored while nobody drives the run, and the rule would say no now.
    const second = world({ planner: script(call('pay')), tools: [tool], journal, clock });
    await second.runtime.run(id).approve();
    expect(await second.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect([rules, made.length]).toEqual([1, 1]);
  });
});

describe('events of a gate', () => {
  it('TL-15, SP-29 a reader is told that it is asked, and how it was answered', async () => {
    const { tool } = pays();
    const run = await start(
      world({ planner: script(call('pay', { sum: 1 }), call('pay', { sum: 2 })), tools: [tool] }),
    );
    const asked = await collect(run);
    const token = await tokenOf(run);
    expect(asked.slice(-3)).toMatchObject([
      { type: 'pause.requested', token, reason: 'approval_required' },
      { type: 'tool.approval_requested', token, tool: 'pay', step: 0, call: 0, payload: { args: { sum: 1 } } },
      { type: 'run.paused', pauses: [{ run: run.id, token }] },
    ]);
    await run.approve(token);
    await run.result();
    const second = await tokenOf(run);
    await run.reject(second);
    await run.result();
    const events = await collect(run);
    expect(only(events, 'tool.approved')).toMatchObject([{ token, tool: 'pay', step: 0, call: 0 }]);
    expect(only(events, 'tool.rejected')).toMatchObject([{ token: second, tool: 'pay', step: 1, call: 0 }]);
    expect(only(events, 'pause.resumed')).toMatchObject([{ verdict: 'approve' }, { verdict: 'reject' }]);
    expect(second).not.toBe(token);
  });
});

describe('a gated branch beside others', () => {
  it('PX-20, W11 waits alone: the others run to the end, one pause is open, and only it runs on approval', async () => {
    const { tool, made } = pays();
    const seen: string[] = [];
    const see = (name: string): Tool => make(name, () => seen.push(name), { effect: 'once' });
    const planner = watched(script(parallel(named('one', 'pay', 'two'))));
    const made1 = world({ planner, tools: [see('one'), tool, see('two')] });
    const run = await start(made1);
    expect(await pausesOf(run)).toMatchObject([{ call: 1, payload: { tool: 'pay' } }]);
    expect(seen.toSorted()).toEqual(['one', 'two']);
    expect(made).toEqual([]);
    expect((await run.state()).open?.calls.map((record) => record !== null)).toEqual([true, false, true]);
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect([seen.toSorted(), made.length, planner.views.length]).toEqual([['one', 'two'], 1, 2]);
    expect(outcomes(await run.state())).toEqual(['value', 'value', 'value']);
  });

  it('W06 is heard while the others are still running: its answer does not wait for them', async () => {
    const { tool, made } = pays();
    const { tool: hold, entered, release } = holding();
    const made1 = world({ planner: script(parallel(named('hold', 'pay'))), tools: [hold, tool] });
    const run = await start(made1);
    await entered;
    await until(async () => (await run.state()).pauses.length === 1);
    // It goes on: nobody is told that it is paused.
    expect(await made1.journal.get(run.id)).toMatchObject({ status: 'running' });
    const [pause] = (await run.state()).pauses;
    await run.approve(pause?.token, { args: { sum: 3 } });
    await until(() => made.length === 1);
    expect((await run.state()).open?.calls[0]).toBeNull();
    release();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{ sum: 3 }]);
    expect(outcomes(await run.state())).toEqual(['value', 'value']);
  });

  it('W06b several are answered in any order, each by its own token; without one nothing is answered', async () => {
    const { tool, made } = pays();
    const branches = [1, 2, 3].map((sum) => ({ tool: 'pay', args: { sum } }));
    const made1 = world({ planner: script(parallel(branches)), tools: [tool] });
    const run = await start(made1);
    const pauses = await pausesOf(run);
    expect(pauses.map(({ call }) => call).toSorted()).toEqual([0, 1, 2]);
    const tokenFor = (at: number): string => pauses.find(({ call }) => call === at)?.token ?? '';
    await expect(run.approve()).rejects.toMatchObject({ code: 'pause_not_found' });
    await run.approve(tokenFor(2), { args: { sum: 30 } });
    expect((await pausesOf(run)).map(({ call }) => call).toSorted()).toEqual([0, 1]);
    await run.reject(tokenFor(0));
    expect((await pausesOf(run)).map(({ call }) => call)).toEqual([1]);
    await run.approve(tokenFor(1));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{ sum: 30 }, { sum: 2 }]);
    expect((await run.state()).steps[0]?.calls.map(({ outcome }) => outcome)).toMatchObject([
      { kind: 'error', error: { code: 'tool_rejected' } },
      { kind: 'value', value: 'pay 2' },
      { kind: 'value', value: 'pay 30' },
    ]);
  });

  it('that needs another gets its approval when that has ended; those that need it wait, or are skipped', async () => {
    const { tool, made } = pays('pay', { inputSchema: { type: 'object' } });
    const branches = [
      { id: 'quote', tool: 'echo', args: { sum: 7 } },
      { id: 'pay', tool: 'pay', args: { sum: { $from: 'quote', path: '/sum' } } },
      { id: 'note', tool: 'echo', args: { paid: true }, after: ['pay'] },
    ];
    const made1 = world({ planner: script(parallel(branches), parallel(branches)), tools: [echo, tool] });
    const run = await start(made1);
    expect(await pausesOf(run)).toMatchObject([{ call: 1, payload: { args: { sum: 7 } } }]);
    await run.approve();
    expect(await pausesOf(run)).toMatchObject([{ step: 1, call: 1 }]);
    await run.reject();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const state = await run.state();
    expect([outcomes(state, 0), outcomes(state, 1)]).toEqual([
      ['value', 'value', 'value'],
      ['value', 'error', 'skipped'],
    ]);
    expect(made).toEqual([{ sum: 7 }]);
  });

  it('is given up when the join has what it needs: its pause is closed, and cannot be answered', async () => {
    const { tool, made } = pays();
    const { tool: hold, entered, release } = holding();
    const made1 = world({
      planner: script(parallel(named('pay', 'hold'), { join: { kind: 'first_success' } }), {
        kind: 'request_pause',
        reason: 'await_input',
      }),
      tools: [tool, hold],
    });
    const run = await start(made1);
    await entered;
    await until(async () => (await run.state()).pauses.length === 1);
    const [pause] = (await run.state()).pauses;
    release();
    expect(await pausesOf(run)).toMatchObject([{ step: 1, reason: 'await_input' }]);
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
    await expect(run.approve(pause?.token)).rejects.toMatchObject({ code: 'superseded' });
    expect(made).toEqual([]);
  });

  it('SP-17 an operator’s pause beside it holds the run when it is approved; both are answered by their own', async () => {
    const { tool, made } = pays();
    const made1 = world({ planner: script(call('pay', { sum: 1 })), tools: [tool] });
    const run = await start(made1);
    const gateToken = await tokenOf(run);
    await run.pause();
    const pauses = await pausesOf(run);
    expect(pauses.map(({ reason }) => reason)).toEqual(['approval_required', 'external_event']);
    await run.approve(gateToken);
    expect(made).toEqual([]);
    expect(await pausesOf(run)).toMatchObject([{ reason: 'external_event', payload: { by: 'operator' } }]);
    await until(async () => (await made1.journal.get(run.id))?.lease === undefined);
    expect(await made1.journal.get(run.id)).toMatchObject({ status: 'paused' });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{ sum: 1 }]);
  });

  it('SP-44, W13 expires while others are still running, and leaves them alone', async () => {
    const { tool, made } = pays('pay', { needsApproval: { expiresInMs: 60_000 } });
    const quick = gate();
    const { tool: hold, entered, release } = holding();
    const tools = [
      tool,
      make('quick', () => quick.opened, { timeoutMs: 3_600_000 }),
      { ...hold, timeoutMs: 3_600_000 },
    ];
    const made1 = world({ planner: script(parallel(named('pay', 'quick', 'hold'))), tools });
    const run = await start(made1);
    await entered;
    await until(async () => (await run.state()).pauses.length === 1);
    // Beats meanwhile renew the lease.
    for (let second = 0; second < 61; second += 1) {
      made1.clock.advance(1_000);
      await quiet();
    }
    expect((await run.state()).open?.calls[0]?.outcome).toMatchObject({ error: { code: 'approval_timeout' } });
    quick.open();
    await until(async () => (await run.state()).open?.calls[1] !== null);
    await quiet();
    expect((await run.state()).open?.calls[2]).toBeNull();
    release();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(outcomes(await run.state())).toEqual(['error', 'value', 'value']);
    expect(made).toEqual([]);
  });

  it('keeps the run paused when nothing but it is left, and finishes what it was asked for', async () => {
    const { tool } = pays();
    const planner = watched((view) => (view.trajectory.count === 0 ? parallel(named('pay', 'pay')) : finish('done')));
    const made = world({ planner, tools: [tool] });
    const run = await start(made);
    for (let left = 2; left > 0; left -= 1) {
      const pauses = await pausesOf(run);
      expect(pauses).toHaveLength(left);
      expect(await made.journal.get(run.id)).toMatchObject({ status: 'paused' });
      await run.approve(pauses[0]?.token);
    }
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
    expect(planner.views).toHaveLength(2);
  });
});
