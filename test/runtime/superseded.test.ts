/** Questions that nobody has answered when the goal changes, or when the user writes: they are withdrawn, and a later answer is refused. */
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject, Planner } from '#core';
import { memoryJournal } from '#journal';
import { type Run, sendControl } from '#runtime';
import { agent, agentTool, type Tool } from '#tools';
import { asks, call, finish, named, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, hasEnded, innerState, observations, pausesOf, send } from '../kit/run-record.ts';
import { awaits, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

interface Till {
  readonly tool: Tool;
  readonly paid: Json[];
}

function till(more: Partial<Tool> = {}): Till {
  const paid: Json[] = [];
  const run = (args: JsonObject): string => {
    paid.push(args);
    return 'paid';
  };
  return { paid, tool: make('pay', run, { effect: 'once', needsApproval: true, ...more }) };
}

async function tokenOf(run: Run): Promise<string> {
  const [first] = await pausesOf(run);
  return first?.token ?? '';
}

const SUPERSEDED = { code: 'superseded', message: expect.stringContaining('withdrawn') };

describe('a question at which the goal changes', () => {
  it('is withdrawn: the call is not made, the planner is told, and a later answer is refused', async () => {
    const { tool, paid } = till();
    const planner = watched(script(call('pay', { sum: 5 })));
    const made = world({ planner, tools: [tool] });
    const run = await start(made);
    const token = await tokenOf(run);
    await run.steer('REDIRECT', { goal: 'do not refund anything' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    await expect(run.approve(token)).rejects.toMatchObject(SUPERSEDED);
    expect(paid).toEqual([]);
    const [step] = (await run.state()).steps;
    expect(step?.calls[0]).toMatchObject({
      outcome: {
        kind: 'skipped',
        error: { code: 'superseded', message: expect.stringContaining('the goal was changed') },
      },
      attempts: 0,
    });
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'superseded' } }]);
    expect(planner.views[1]?.goal).toBe('do not refund anything');
    expect(only(await collect(run), 'pause.resumed')).toMatchObject([
      { token, verdict: 'superseded', payload: { control: 'REDIRECT' } },
    ]);
    expect(made.faults).toEqual([]);
  });

  it('is refused without a token too, and in a process that knew nothing of it', async () => {
    const { tool, paid } = till();
    const journal = memoryJournal();
    const planner = script(call('pay'), pause);
    const run = await start(world({ planner, tools: [tool], journal }));
    const token = await tokenOf(run);
    await run.steer('REDIRECT', { goal: 'another' }, { until: 'applied' });
    expect(await pausesOf(run)).toMatchObject([{ reason: 'external_event' }]);
    const elsewhere = world({ planner, tools: [tool], journal }).runtime.run(run.id);
    for (const answer of [() => elsewhere.approve(token), () => elsewhere.reject(token), () => run.approve(token)]) {
      await expect(answer()).rejects.toMatchObject(SUPERSEDED);
    }
    await elsewhere.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(paid).toEqual([]);
  });

  it('the order in which they were accepted decides, whoever takes them', async () => {
    const { tool, paid } = till();
    const goal = { id: 'goal', type: 'REDIRECT', payload: { goal: 'another' } } as const;
    const yes = (token: string) => ({ id: 'yes', type: 'APPROVE', payload: { token } }) as const;
    for (const [first, wins] of [
      ['goal', false],
      ['yes', true],
    ] as const) {
      paid.length = 0;
      const journal = memoryJournal();
      const planner = script(call('pay'));
      const asking = world({ planner, tools: [tool], journal });
      const run = await start(asking);
      const token = await tokenOf(run);
      await asking.runtime.close();
      const said = first === 'goal' ? [goal, yes(token)] : [yes(token), goal];
      for (const control of said) await send(journal, run, control);
      const heir = world({ planner, tools: [tool], journal });
      await heir.runtime.run(run.id).resume();
      expect(await heir.runtime.run(run.id).result()).toMatchObject({ status: 'finished' });
      expect(paid).toHaveLength(wins ? 1 : 0);
      const taken = await entriesOf(journal, run, 'control');
      expect(taken.map(({ control, error }) => [control.id, error?.code])).toEqual(
        wins
          ? [
              ['yes', undefined],
              ['goal', undefined],
            ]
          : [
              ['goal', undefined],
              ['yes', 'superseded'],
            ],
      );
    }
  });

  it('PX-20 of several beside a call at work, each is withdrawn at once, and the call at work is heard out', async () => {
    const { tool, paid } = till();
    const { tool: hold, entered, release } = holding();
    const made = world({ planner: script(parallel(named('pay', 'hold', 'pay'))), tools: [tool, hold] });
    const run = await start(made);
    await entered;
    await until(async () => (await run.state()).pauses.length === 2);
    const tokens = (await run.state()).pauses.map(({ token }) => token);
    await run.steer('REDIRECT', { goal: 'another' });
    for (const token of tokens) await expect(run.approve(token)).rejects.toMatchObject(SUPERSEDED);
    expect((await run.state()).pauses).toEqual([]);
    expect((await run.state()).ending).toBeNull();
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const [step] = (await run.state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome.kind)).toEqual(['skipped', 'value', 'skipped']);
    expect(paid).toEqual([]);
    expect(await entriesOf(made.journal, run, 'resumed')).toHaveLength(2);
  });

  it('is withdrawn also when it is asked after the new goal was heard, in a step of the old one', async () => {
    const { tool, paid } = till();
    const late = gate();
    const asks = make('asks', () => paid.push('asks'), { needsApproval: () => late.opened.then(() => true) });
    const made = world({ planner: script(parallel(named('pay', 'asks'))), tools: [tool, asks] });
    const run = await start(made);
    await until(async () => (await run.state()).pauses.length === 1);
    await run.steer('REDIRECT', { goal: 'another' }, { until: 'applied' });
    late.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const [step] = (await run.state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome.kind)).toEqual(['skipped', 'skipped']);
    expect(paid).toEqual([]);
  });

  it('that the planner has asked itself is closed, and the planner is told', async () => {
    const planner = watched(script({ kind: 'request_pause', reason: 'approval_required', payload: { ask: 'may I?' } }));
    const run = await start(world({ planner }));
    const token = await tokenOf(run);
    await run.steer('REDIRECT', { goal: 'another' });
    await run.result();
    await expect(run.approve(token)).rejects.toMatchObject(SUPERSEDED);
    expect(observations(await run.state())).toMatchObject([{ decision: 'superseded' }]);
  });

  it('a call in doubt, an operator’s pause and a limit stay', async () => {
    const doubt = make('pay', () => new Promise(() => {}), { effect: 'once', timeoutMs: 5 });
    const made = world({ planner: script(call('pay')), tools: [doubt] });
    const unsure = await start(made);
    await until(async () => {
      made.clock.advance(10);
      return (await made.journal.get(unsure.id))?.status === 'paused';
    });
    await unsure.steer('REDIRECT', { goal: 'another' }, { until: 'applied' });
    expect(await pausesOf(unsure)).toMatchObject([{ reason: 'in_doubt' }]);
    await unsure.settle(await tokenOf(unsure), { happened: true, value: 'paid' });
    expect(await unsure.result()).toMatchObject({ status: 'finished' });

    const held = await start(world({ planner: script(call('echo'), call('echo')), tools: [echo] }), {
      limits: { steps: 1, onCeiling: 'pause' },
    });
    await held.result();
    await held.steer('REDIRECT', { goal: 'another' }, { until: 'applied' });
    expect(await pausesOf(held)).toMatchObject([{ reason: 'constraints_conflict' }]);
  });
});

describe('a question at which the user writes', () => {
  it('is withdrawn too, and the planner hears the message', async () => {
    const { tool, paid } = till();
    const planner = watched(script(call('pay')));
    const run = await start(world({ planner, tools: [tool] }));
    const token = await tokenOf(run);
    await run.steer('USER_MESSAGE', { message: 'wait, how much is it?' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await expect(run.approve(token)).rejects.toMatchObject(SUPERSEDED);
    expect(paid).toEqual([]);
    expect(planner.views[1]?.controls.map(({ type }) => type)).toContain('USER_MESSAGE');
  });

  it('context that is added withdraws nothing', async () => {
    const { tool, paid } = till();
    const run = await start(world({ planner: script(call('pay')), tools: [tool] }));
    const token = await tokenOf(run);
    await run.steer('INJECT_CONTEXT', { note: 'it rains' }, { until: 'applied' });
    expect(await tokenOf(run)).toBe(token);
    await run.approve(token);
    await run.result();
    expect(paid).toHaveLength(1);
  });

  it('that waits for words of the user is answered by them', async () => {
    const planner = watched(script(asks));
    const run = await start(world({ planner }));
    await run.result();
    await run.steer('USER_MESSAGE', { message: 'the blue one' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(planner.views[1]?.controls).toMatchObject([{ type: 'USER_MESSAGE', payload: { message: 'the blue one' } }]);
    expect(observations(await run.state())).toEqual([{ decision: 'resume', payload: { message: 'the blue one' } }]);
  });

  it('stays where the run was started to keep it, in another process as well; the message comes after the answer', async () => {
    const { tool, paid } = till();
    const journal = memoryJournal();
    const planner = watched(script(call('pay')));
    const run = await start(world({ planner, tools: [tool], journal }), { whileAsked: 'keep' });
    const token = await tokenOf(run);
    const elsewhere = world({ planner, tools: [tool], journal }).runtime.run(run.id);
    await elsewhere.steer('USER_MESSAGE', { message: 'hurry' }, { until: 'applied' });
    expect(await tokenOf(run)).toBe(token);
    await elsewhere.approve(token);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(paid).toHaveLength(1);
    expect(planner.views[1]?.controls.map(({ type }) => type)).toEqual(['USER_MESSAGE', 'APPROVE']);
    // A new goal is no message.
    const again = await start(world({ planner: script(call('pay')), tools: [tool] }), { whileAsked: 'keep' });
    const second = await tokenOf(again);
    await again.steer('REDIRECT', { goal: 'another' });
    await again.result();
    await expect(again.approve(second)).rejects.toMatchObject(SUPERSEDED);
  });

  it('stays where the planner reads no messages, unless the run says otherwise', async () => {
    const { tool } = till();
    const planner: Planner = { name: 'deaf', whileAsked: 'keep', next: script(call('pay')) };
    const made = world({ planner, tools: [tool] });
    for (const [whileAsked, status] of [
      [undefined, 'paused'],
      ['withdraw', 'finished'],
    ] as const) {
      const run = await start(made, whileAsked === undefined ? {} : { whileAsked });
      await run.result();
      await run.steer('USER_MESSAGE', { message: 'hello' }, { until: 'applied' });
      expect(await run.result()).toMatchObject({ status });
    }
    await expect(start(made, { whileAsked: 'ignore' as never })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('withdraw, keep'),
    });
    expect(() => world({ planner: { ...planner, whileAsked: 'ignore' as never } })).toThrow('withdraw, keep');
  });
});

describe('a question of a task', () => {
  it('is withdrawn by a new goal of the run that waits for it, through whichever run it is answered later', async () => {
    const { tool, paid } = till();
    const child = watched(script(call('pay'), pause));
    const owner = watched(thenTell(spawns('child', { task: 'foreground' })));
    const made = world({ planner: plays({ q: owner, child }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    const token = await tokenOf(run);
    await run.steer('REDIRECT', { goal: 'do not refund anything' });
    const task = made.runtime.run('p.0.0');
    await expect(run.approve(token)).rejects.toMatchObject(SUPERSEDED);
    await expect(task.approve(token)).rejects.toMatchObject(SUPERSEDED);
    await until(async () => child.views.length > 1);
    expect(paid).toEqual([]);
    expect(child.views[1]?.controls).toMatchObject([
      { type: 'INJECT_CONTEXT', payload: { goal: 'do not refund anything', told_to_the_run_above: 'p' } },
    ]);
    expect(child.views[1]?.goal).toBe('child');
    expect(made.faults).toEqual([]);
  });

  it('is withdrawn for the call that it carries out, two levels down, by a message', async () => {
    const { tool, paid } = till();
    const teller = agent({ name: 'teller', planner: thenTell(call('pay')), tools: [tool] });
    const clerk = agent({
      name: 'clerk',
      planner: thenTell(call('teller', { input: 'pay' })),
      tools: [agentTool(teller, { description: 'pays' })],
    });
    const desk = watched(thenTell(call('clerk', { input: 'pay' })));
    const made = world({ planner: desk, tools: [agentTool(clerk, { description: 'sees to it' })] });
    const run = await start(made, { identity: PARENT });
    const token = await tokenOf(run);
    await run.steer('USER_MESSAGE', { message: 'stop' });
    await until(() => hasEnded(made, 'p'));
    await expect(run.approve(token)).rejects.toMatchObject(SUPERSEDED);
    expect(paid).toEqual([]);
    const state = await innerState(made.journal, made.runtime.run('p.0.0.0.0'));
    expect(state.steering.map(({ control }) => control.withdraws)).toEqual(['USER_MESSAGE']);
  });

  it('stays where nobody waits for the task; its own new goal withdraws it', async () => {
    const { tool, paid } = till();
    const made = world({
      planner: plays({ q: script(spawns('child'), pause), child: script(call('pay')) }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await until(async () => (await made.journal.get('p.0.0'))?.status === 'paused');
    await run.steer('REDIRECT', { goal: 'another' });
    const task = made.runtime.run('p.0.0');
    expect(await pausesOf(task)).toMatchObject([{ reason: 'approval_required' }]);
    const token = await tokenOf(task);
    await task.steer('REDIRECT', { goal: 'another' });
    await task.result();
    await expect(task.approve(token)).rejects.toMatchObject(SUPERSEDED);
    expect(paid).toEqual([]);
  });

  it('keeps to what its owner keeps to', async () => {
    const { tool } = till();
    const made = world({
      planner: plays({
        q: script(parallel([spawning('child', { kind: 'foreground' })]), awaits('p.0.0')),
        child: script(call('pay')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT, whileAsked: 'keep' });
    const token = await tokenOf(run);
    await run.steer('USER_MESSAGE', { message: 'hello' }, { until: 'applied' });
    await made.runtime.run('p.0.0').steer('USER_MESSAGE', { message: 'hello' }, { until: 'applied' });
    expect(await pausesOf(made.runtime.run('p.0.0'))).toMatchObject([{ token }]);
  });

  it('nobody withdraws it but the runtime: a sender’s own word is dropped', async () => {
    const { tool } = till();
    const made = world({ planner: script(call('pay'), finish()), tools: [tool] });
    const run = await start(made);
    const token = await tokenOf(run);
    await sendControl(made.journal, run.id, { id: 'c', type: 'INJECT_CONTEXT', withdraws: 'REDIRECT' });
    await run.steer('INJECT_CONTEXT', {}, { until: 'applied' });
    expect(await tokenOf(run)).toBe(token);
  });
});

describe('a process without the tools of the run', () => {
  it('stores what is said, and refuses an answer to what was withdrawn by it', async () => {
    const { tool, paid } = till();
    const journal = memoryJournal();
    const planner = { name: 'payer', next: script(call('pay', { sum: 5 })) };
    const first = world({ planner, tools: [tool], journal });
    const run = await start(first);
    const token = await tokenOf(run);
    const desk = world({ planner: { name: 'desk', next: script() }, journal }).runtime.run(run.id);
    await first.runtime.close();
    await desk.steer('REDIRECT', { goal: 'do not pay' }, { until: 'applied' });
    for (const answer of [() => desk.approve(token), () => desk.reject(token)]) {
      await expect(answer()).rejects.toMatchObject(SUPERSEDED);
    }
    expect((await journal.inbox(run.id)).map(({ message }) => message.type)).toEqual(['REDIRECT']);
    await desk.cancel();
    for await (const _ of desk.events({ overPauses: true }));
    expect(await desk.result()).toMatchObject({ reason: 'cancelled' });
    expect(paid).toEqual([]);
  });
});
