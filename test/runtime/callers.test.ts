/** Who may steer a run: scopes, foreign senders, and who approves what. */
import { describe, expect, it } from 'vitest';
import {
  type Caller,
  CONTROL_SCOPES,
  CONTROL_TYPES,
  type Control,
  type Json,
  LEAST_SCOPE,
  local,
  type PilotageError,
} from '#core';
import { memoryJournal } from '#journal';
import { type Run, sendControl } from '#runtime';
import { VirtualClock } from '#testing';
import { call, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { busy, start, world } from '../kit/world.ts';

const ana = local('ana');

/** Somebody of the run's own tenant, user and session, unless said otherwise. */
function caller(scope: Caller['scope'], more: Partial<Caller> = {}): Caller {
  const { tenant, user, session } = ana;
  return { tenant, user, session, scope, ...more };
}

const PAYLOADS: Partial<Record<Control['type'], Record<string, Json>>> = {
  USER_MESSAGE: { message: 'hello' },
  REDIRECT: { goal: 'another' },
  PRIORITIZE: { priority: 3 },
  ANSWER: { value: 7 },
  SETTLE: { happened: false },
  REVOKE: { rule: 'rule:r:1' },
  CANCEL_CALL: { step: 0, call: 0 },
};

function control(type: Control['type'], from: Caller, id = `${type} of ${from.scope}`): Control {
  const payload = PAYLOADS[type];
  return payload === undefined ? { id, type, from } : { id, type, from, payload };
}

async function codeOf(sent: Promise<unknown>): Promise<string | undefined> {
  try {
    await sent;
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('scopes', () => {
  const pairs = CONTROL_TYPES.flatMap((type) => CONTROL_SCOPES.map((scope) => [type, scope] as const));

  it.each(pairs)('SP-02 %s of a %s', async (type, scope) => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    const isEnough = CONTROL_SCOPES.indexOf(scope) >= CONTROL_SCOPES.indexOf(LEAST_SCOPE[type]);
    const code = await codeOf(sendControl(made.journal, run.id, control(type, caller(scope))));
    // Nothing is called here, so that there is nothing to settle, and no value to give.
    const fits = type !== 'ANSWER' && type !== 'SETTLE';
    expect(code).toBe(!isEnough ? 'scope_mismatch' : fits ? undefined : 'payload_invalid');
    expect(await made.journal.inbox(run.id)).toHaveLength(isEnough && fits ? 1 : 0);
  });

  it('SP-02 least: messages are for anybody of the session, priorities for an admin, the rest for the owner', () => {
    expect(LEAST_SCOPE).toEqual({
      INJECT_CONTEXT: 'session_user',
      USER_MESSAGE: 'session_user',
      REDIRECT: 'owner_user',
      CANCEL: 'owner_user',
      CANCEL_CALL: 'owner_user',
      PAUSE: 'owner_user',
      RESUME: 'owner_user',
      APPROVE: 'owner_user',
      REJECT: 'owner_user',
      ANSWER: 'owner_user',
      SETTLE: 'owner_user',
      REVOKE: 'owner_user',
      PRIORITIZE: 'admin',
    });
    expect(CONTROL_SCOPES).toEqual(['session_user', 'owner_user', 'admin']);
  });

  it('SP-02 an unknown scope is refused, and nothing is stored', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    const from = caller('root' as never);
    expect(await codeOf(sendControl(made.journal, run.id, control('PAUSE', from)))).toBe('scope_invalid');
    expect(await made.journal.inbox(run.id)).toEqual([]);
  });

  it('SP-14 a refusal at the edge names its reason: type, payload, scope and identity are told apart', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    const send = (given: Partial<Control>): Promise<string | undefined> =>
      codeOf(sendControl(made.journal, run.id, { id: 'c', type: 'PAUSE', ...given } as Control));
    expect(await send({ type: 'STOP' as never })).toBe('unknown_control_type');
    expect(await send({ type: 'REDIRECT', payload: { goal: 1 } })).toBe('payload_invalid');
    expect(await send({ from: caller('session_user') })).toBe('scope_mismatch');
    expect(await send({ from: caller('admin', { user: ' ' }) })).toBe('identity_required');
    expect(await made.journal.inbox(run.id)).toEqual([]);
    expect(await entriesOf(made.journal, run, 'control')).toEqual([]);
  });
});

describe('payloads', () => {
  it.each([
    ['PRIORITIZE', { priority: 3.5 }, 'payload_invalid'],
    ['PRIORITIZE', { priority: '3' }, 'payload_invalid'],
    ['PRIORITIZE', { priority: 1_001 }, 'payload_invalid'],
    ['PRIORITIZE', {}, 'payload_invalid'],
    ['CANCEL', { hard: 'yes' }, 'payload_invalid'],
    ['CANCEL', { reason: 7 }, 'payload_invalid'],
    ['APPROVE', { token: 7 }, 'payload_invalid'],
    ['REJECT', { reason: ['no'] }, 'payload_invalid'],
    ['RESUME', { limits: 5 }, 'payload_invalid'],
    ['USER_MESSAGE', { message: 7 }, 'payload_invalid'],
  ] as const)('SP-08 %s with %o is refused before it is stored', async (type, payload, code) => {
    const { run, journal, go } = await busy();
    expect(await codeOf(sendControl(journal, run.id, { id: 'c', type, payload: payload as never }))).toBe(code);
    expect(await journal.inbox(run.id)).toEqual([]);
    go();
    await run.result();
  });

  it('SP-08 a priority of 3.0 is 3, and the run has it', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    await sendControl(made.journal, run.id, { id: 'c', type: 'PRIORITIZE', payload: JSON.parse('{"priority":3.0}') });
    expect((await made.journal.get(run.id))?.priority).toBe(3);
  });

  it('SP-08 of the sender’s own keys nothing is lost', async () => {
    const { run, planner, go } = await busy();
    await run.steer('USER_MESSAGE', { message: 'also B', attachment: { id: 7 } });
    go();
    await run.result();
    expect(planner.views[1]?.controls[0]?.payload).toEqual({ message: 'also B', attachment: { id: 7 } });
  });
});

describe('senders from elsewhere', () => {
  const others: readonly [string, Partial<Caller>][] = [
    ['tenant', { tenant: 'other' }],
    ['user', { user: 'ben' }],
    ['session', { session: 'another' }],
  ];

  it.each(others)('SP-03, SP-25, ID-03 of another %s are refused in every scope but admin', async (_, difference) => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    const [first] = await pausesOf(run);
    for (const scope of ['session_user', 'owner_user'] as const) {
      const handle = made.runtime.run(run.id, { as: caller(scope, difference) });
      await expect(handle.steer('USER_MESSAGE', { message: 'hi' })).rejects.toMatchObject({ code: 'scope_mismatch' });
      await expect(handle.resume()).rejects.toMatchObject({ code: 'scope_mismatch' });
      await expect(handle.approve(first?.token)).rejects.toMatchObject({ code: 'scope_mismatch' });
    }
    expect(await entriesOf(made.journal, run, 'control')).toEqual([]);
    expect(await pausesOf(run)).toMatchObject([{ token: first?.token }]);

    const admin = caller('admin', difference);
    await made.runtime.run(run.id, { as: admin }).approve(first?.token);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    // Who it was is on record, in the control and in the answer.
    expect(await entriesOf(made.journal, run, 'control')).toMatchObject([{ applied: true, control: { from: admin } }]);
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'approve', by: admin }]);
    expect(only(await collect(run), 'pause.resumed')).toMatchObject([{ by: admin }]);
  });

  it('SP-25, ID-03 from another run of the same three is accepted', async () => {
    const made = world({ planner: script(pause) });
    const [one, two] = [await start(made), await start(made)];
    await Promise.all([one.result(), two.result()]);
    // A caller names no run: whoever speaks for the session may answer any of its runs.
    await made.runtime.run(two.id, { as: caller('owner_user') }).approve();
    expect(await two.result()).toMatchObject({ status: 'finished' });
    expect(await one.result()).toMatchObject({ status: 'paused' });
  });

  it('who forks a run speaks to the fork as the caller that it is, and not as the program', async () => {
    const made = world({ planner: script(call('echo'), pause) });
    const run = await start(made);
    await run.result();
    const fork = await made.runtime.run(run.id, { as: caller('owner_user') }).fork({ step: 1 });
    await expect(fork.steer('PRIORITIZE', { priority: 3 })).rejects.toMatchObject({ code: 'scope_mismatch' });
    await fork.result();
    await fork.resume();
    expect(await fork.result()).toMatchObject({ status: 'finished' });
    expect(await entriesOf(made.journal, fork, 'resumed')).toMatchObject([{ by: { scope: 'owner_user' } }]);
  });

  it('SP-04 with an incomplete identity are refused, and nothing is stored', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    for (const part of ['tenant', 'user', 'session'] as const) {
      for (const scope of CONTROL_SCOPES) {
        const handle = made.runtime.run(run.id, { as: caller(scope, { [part]: '' }) });
        await expect(handle.steer('INJECT_CONTEXT')).rejects.toMatchObject({ code: 'identity_required' });
      }
    }
    expect(await made.journal.inbox(run.id)).toEqual([]);
  });

  it('SP-04 a control for one run changes no other, though they share a journal and a runtime', async () => {
    const made = world({ planner: script(pause) });
    const [one, two] = [await start(made), await start(made)];
    const [[first], [second]] = [await pausesOf(one), await pausesOf(two)];
    await expect(one.approve(second?.token)).rejects.toMatchObject({ code: 'pause_not_found' });
    await expect(two.approve(first?.token)).rejects.toMatchObject({ code: 'pause_not_found' });
    expect(await entriesOf(made.journal, one, 'resumed')).toEqual([]);
    expect(await entriesOf(made.journal, two, 'resumed')).toEqual([]);
  });

  it('ID-03 the planner is told who sent a control', async () => {
    const { run, runtime, planner, go } = await busy();
    const from = caller('session_user');
    await runtime.run(run.id, { as: from }).steer('USER_MESSAGE', { message: 'from the session' });
    go();
    await run.result();
    expect(planner.views[1]?.controls).toMatchObject([{ type: 'USER_MESSAGE', from }]);
  });
});

describe('the approver', () => {
  const gated = (approver: 'anyone' | 'another'): Parameters<typeof world>[0] & { readonly paid: unknown[] } => {
    const paid: unknown[] = [];
    const pay = make('pay', (args) => paid.push(args), { effect: 'once', needsApproval: { approver } });
    return { paid, planner: watched(script(call('pay', { sum: 5 }))), tools: [pay] };
  };
  const ben = caller('admin', { user: 'ben', session: 'desk' });

  it('TL-16, W06b is another person where the gate asks for one: nobody approves what they asked for', async () => {
    const { paid, ...options } = gated('another');
    const made = world(options);
    const run = await start(made);
    const [open] = await pausesOf(run);
    expect(open).toMatchObject({ approver: 'another' });
    for (const scope of ['owner_user', 'admin'] as const) {
      const own = made.runtime.run(run.id, { as: caller(scope) });
      await expect(own.approve(open?.token)).rejects.toMatchObject({ code: 'approver_refused' });
      // The same person elsewhere is the same person.
      const elsewhere = made.runtime.run(run.id, { as: caller('admin', { session: 'phone' }) });
      await expect(elsewhere.approve(open?.token)).rejects.toMatchObject({ code: 'approver_refused' });
    }
    expect(await pausesOf(run)).toMatchObject([{ token: open?.token }]);
    expect(paid).toEqual([]);
    await made.runtime.run(run.id, { as: ben }).approve(open?.token);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(paid).toEqual([{ sum: 5 }]);
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ by: ben }]);
  });

  it('TL-16 may take back what they asked for: a rejection needs nobody else', async () => {
    const { paid, ...options } = gated('another');
    const made = world(options);
    const run = await start(made);
    await run.result();
    await made.runtime.run(run.id, { as: caller('owner_user') }).reject();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(paid).toEqual([]);
  });

  it('TL-16 is anyone who may steer the run, where the gate says nothing', async () => {
    const { paid, ...options } = gated('anyone');
    const made = world(options);
    const run = await start(made);
    await run.result();
    await made.runtime.run(run.id, { as: caller('owner_user') }).approve();
    await run.result();
    expect(paid).toEqual([{ sum: 5 }]);
  });

  it('TL-16 somebody of the same name in another tenant is another person', async () => {
    const { paid, ...options } = gated('another');
    const made = world(options);
    const run = await start(made);
    await run.result();
    await made.runtime.run(run.id, { as: caller('admin', { tenant: 'other' }) }).approve();
    await run.result();
    expect(paid).toHaveLength(1);
  });

  it('TL-16 holds for an answer that another process stored while nobody drove the run', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { paid, ...options } = gated('another');
    const first = world({ ...options, journal, clock });
    const { id } = await start(first);
    await first.runtime.run(id).result();
    await first.runtime.close();
    await sendControl(journal, id, { id: 'own', type: 'APPROVE', from: caller('owner_user') });
    const second = world({ ...options, journal, clock });
    const run = second.runtime.run(id);
    await run.resume();
    expect(await pausesOf(run)).toHaveLength(1);
    expect(await entriesOf(journal, run, 'control')).toMatchObject([
      { applied: false, error: { code: 'approver_refused' } },
    ]);
    expect(paid).toEqual([]);
  });
});

describe('events of a control', () => {
  it('SP-14 received when it is taken, and then what became of it; both with who sent it', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    const from = caller('owner_user');
    const handle = made.runtime.run(run.id, { as: from });
    await expect(handle.approve('pause_other')).rejects.toMatchObject({ code: 'pause_not_found' });
    await handle.approve();
    await run.result();
    const events = (await collect(run)).filter(({ type }) => type.startsWith('control.'));
    expect(events).toMatchObject([
      { type: 'control.received', control: { type: 'APPROVE', from } },
      { type: 'control.rejected', control: { type: 'APPROVE', from }, error: { code: 'pause_not_found' } },
      { type: 'control.received', control: { type: 'APPROVE', from } },
      { type: 'control.applied', control: { type: 'APPROVE', from } },
    ]);
    expect(events[0]?.seq).toBe(events[1]?.seq);
  });

  it('SP-15 the history of a run keeps every control, refused ones too, and of no other run', async () => {
    const made = world({ planner: script(pause) });
    const [one, two] = [await start(made), await start(made)];
    await Promise.all([one.result(), two.result()]);
    for (let index = 0; index < 300; index += 1) await one.steer('INJECT_CONTEXT', { index }, { until: 'applied' });
    await expect(one.approve('pause_other')).rejects.toMatchObject({ code: 'pause_not_found' });
    const kept = await entriesOf(made.journal, one, 'control');
    expect(kept).toHaveLength(301);
    expect(kept.map(({ control: { payload } }) => payload?.['index'])).toEqual([...Array(300).keys(), undefined]);
    expect(await entriesOf(made.journal, two, 'control')).toEqual([]);
    // A read is nobody's to change.
    expect(Object.isFrozen(kept[0]?.control)).toBe(true);
  });
});

describe('who may read a run', () => {
  const readings: readonly (readonly [string, (run: Run) => Promise<unknown>])[] = [
    ['its state', (run) => run.state()],
    ['its result', (run) => run.result()],
    ['its payload', (run) => run.payload()],
    ['its events', (run) => collect(run)],
  ];

  it.each(readings)('ID-02 %s: a run of somebody else is one that there is not, word for word', async (_, read) => {
    const made = world({ planner: script(pause) });
    const run = await start(made);
    await run.result();
    const as = (more: Partial<Caller>, id: string) => read(made.runtime.run(id, { as: caller('owner_user', more) }));
    const unknown = await as({}, 'run_x').catch(({ code, message }: PilotageError) => [code, message]);
    expect(unknown).toEqual(['run_not_found', "This journal has no run run_x. Check the id and the journal's path."]);
    for (const foreign of [{ tenant: 'other' }, { user: 'bo' }, { session: 'other' }]) {
      const told = await as(foreign, run.id).catch(({ code, message }: PilotageError) => [code, message]);
      expect(told).toEqual([
        'run_not_found',
        `This journal has no run ${run.id}. Check the id and the journal's path.`,
      ]);
    }
    await as({}, run.id);
    await as({ tenant: 'other', scope: 'admin' }, run.id);
    await expect(as({ user: ' ' }, run.id)).rejects.toMatchObject({ code: 'identity_required' });
    // The program itself reads everything.
    await read(made.runtime.run(run.id));
  });

  it('ID-02 also while it is driven here, and its tasks', async () => {
    const { run, runtime, go } = await busy();
    const foreign = runtime.run(run.id, { as: caller('owner_user', { user: 'bo' }) });
    await expect(foreign.result()).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(collect(foreign)).rejects.toMatchObject({ code: 'run_not_found' });
    expect(await runtime.tasks.get({ tenant: 'local', user: 'bo', session: 'default' }, run.id)).toBeUndefined();
    go();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });
});
