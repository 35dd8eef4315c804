/** Old state, new code: a run goes on with the code it was started with, or says what is different. */
import { describe, expect, it } from 'vitest';
import { type Caller, local, type Planner, type PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import type { Migrate } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { call, named, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { entriesOf, kindsOf, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const SUM = { type: 'object', properties: { sum: { type: 'number' } }, additionalProperties: false } as const;

interface Code {
  readonly name?: string;
  readonly version?: string;
  readonly next?: PlannerFunction;
  readonly tools?: readonly Tool[];
  readonly migrate?: Migrate;
}

const paid: unknown[] = [];
const pay = make('pay', (args) => paid.push(args) && 'paid', { effect: 'once', needsApproval: true, inputSchema: SUM });
const never = new AbortController().signal;
const gatedStep = script(call('pay', { sum: 5 }));

/** A process with this code on a journal. */
function deployed(journal: Journal, clock: VirtualClock, code: Code = {}): World {
  const { name = 'payer', version, next = gatedStep, tools = [pay, echo], migrate } = code;
  const planner: Planner = { name, next, ...(version === undefined ? {} : { version }) };
  return world({ planner, tools: [...tools], journal, clock, ...(migrate === undefined ? {} : { migrate }) });
}

interface Parked {
  readonly id: string;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  /** The entries as the first version left them. */
  readonly before: string;
}

/** A run that version 1 has left paused. */
async function parked(code: Code = { version: '1' }): Promise<Parked> {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const first = deployed(journal, clock, code);
  const run = await start(first);
  await run.result();
  await first.runtime.close();
  paid.length = 0;
  return { id: run.id, journal, clock, before: JSON.stringify(await journal.read(run.id)) };
}

async function refusalOf(
  sent: Promise<unknown>,
): Promise<{ code: string; message: string; data: { changes: unknown[] } }> {
  return sent.then(
    () => {
      throw new Error('It was not refused.');
    },
    (error) => error,
  );
}

const other = (name: string, more: Partial<Tool> = {}): Tool => make(name, () => 'x', more);

describe('a paused run under changed code', () => {
  const changes: readonly [string, Code, readonly unknown[], readonly string[]][] = [
    [
      'another planner',
      { name: 'other', version: '1' },
      [{ what: 'agent', was: 'payer', now: 'other' }],
      ['agent: payer → other'],
    ],
    [
      'another version of it',
      { version: '2' },
      [{ what: 'planner version', was: '1', now: '2' }],
      ['planner version: 1 → 2'],
    ],
    ['no version', {}, [{ what: 'planner version', was: '1', now: 'none' }], ['planner version: 1 → none']],
    [
      'a tool that is gone',
      { version: '1', tools: [echo] },
      [{ what: 'tool pay', was: expect.any(String) }],
      ['tool pay is gone'],
    ],
    [
      'a schema that has changed',
      { version: '1', tools: [{ ...pay, inputSchema: ANY } as Tool, echo] },
      [{ what: 'tool pay', was: expect.any(String), now: expect.any(String) }],
      ['tool pay: '],
    ],
    [
      'an effect that has changed',
      { version: '1', tools: [{ ...pay, effect: 'pure' } as Tool, echo] },
      [{ what: 'tool pay', was: expect.any(String), now: expect.any(String) }],
      ['tool pay: '],
    ],
    [
      'all of it',
      { version: '2', tools: [{ ...echo, effect: 'once' } as Tool] },
      [
        { what: 'planner version', was: '1', now: '2' },
        { what: 'tool pay', was: expect.any(String) },
        { what: 'tool echo', was: expect.any(String), now: expect.any(String) },
      ],
      ['planner version: 1 → 2', 'tool pay is gone', 'tool echo: '],
    ],
  ];

  it.each(changes)('%s: run_changed names the difference, and nothing is lost', async (_, code, differences, words) => {
    const { id, journal, clock, before } = await parked();
    const second = deployed(journal, clock, code);
    const run = second.runtime.run(id);
    const [open] = await pausesOf(run);
    await run.approve(open?.token, { args: { sum: 4 } });
    await expect(run.reject(open?.token)).rejects.toMatchObject({
      code: 'pause_not_found',
      message: expect.stringContaining('stored already (APPROVE)'),
    });
    const refusal = await refusalOf(run.resume());
    expect(refusal).toMatchObject({ code: 'run_changed', data: { run: id } });
    expect(refusal.data.changes.toSorted(byWhat)).toEqual(differences.toSorted(byWhat));
    for (const word of words) expect(refusal.message).toContain(word);
    // The answer is stored and waits; the run is as it was, and nobody holds it.
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    expect(await journal.inbox(id)).toMatchObject([{ message: { type: 'APPROVE', payload: { token: open?.token } } }]);
    expect((await journal.get(id))?.lease).toBeUndefined();
    expect((await journal.get(id))?.status).toBe('paused');
    await second.runtime.close();

    // The code as it was takes the answer.
    const third = deployed(journal, clock, { version: '1' });
    await third.runtime.run(id).resume();
    expect(await third.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(paid).toEqual([{ sum: 4 }]);
    expect(await entriesOf(journal, run, 'repinned')).toEqual([]);
  });

  it('goes on with acceptChanges; what was accepted is on record, and is not asked for again', async () => {
    const { id, journal, clock } = await parked();
    const second = deployed(journal, clock, { version: '2' });
    const run = second.runtime.run(id);
    await refusalOf(run.resume());
    await run.resume({ acceptChanges: true });
    // It was accepted, and still waits for its approval.
    const [open] = await pausesOf(run);
    expect(open).toMatchObject({ reason: 'approval_required' });
    expect(await entriesOf(journal, run, 'repinned')).toMatchObject([{ agent: 'payer', pin: { version: '2' } }]);
    await run.approve(open?.token);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(paid).toEqual([{ sum: 5 }]);
    expect(only(await collect(run), 'run.repinned')).toMatchObject([{ agent: 'payer' }]);
    expect(await entriesOf(journal, run, 'repinned')).toHaveLength(1);
    expect(second.faults).toEqual([]);
  });

  it('an answer that came meanwhile is taken when the changes are accepted', async () => {
    const { id, journal, clock } = await parked();
    const second = deployed(journal, clock, { name: 'other', tools: [{ ...pay, effect: 'keyed' } as Tool, echo] });
    const run = second.runtime.run(id);
    await run.approve();
    await run.resume({ acceptChanges: true });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(paid).toEqual([{ sum: 5 }]);
    expect((await run.state()).agent).toBe('other');
    expect((await kindsOf(journal, run)).slice(2, 6)).toEqual(['paused', 'repinned', 'control', 'resumed']);
  });

  it('what was accepted holds when the run has to wait for its turn', async () => {
    const { id, journal, clock } = await parked();
    const { tool: hold, entered, release } = holding();
    const second = world({
      planner: {
        name: 'payer',
        version: '2',
        next: (run) => (run.query === 'busy' ? script(call('hold'))(run, never) : gatedStep(run, never)),
      },
      tools: [pay, echo, hold],
      journal,
      clock,
      maxLiveRuns: 1,
    });
    const busy = await start(second, { query: 'busy' });
    await entered;
    const run = second.runtime.run(id);
    await run.resume({ acceptChanges: true });
    expect(await entriesOf(journal, run, 'repinned')).toEqual([]);
    release();
    await busy.result();
    await until(async () => second.faults.length > 0 || (await entriesOf(journal, run, 'repinned')).length > 0);
    expect(second.faults).toEqual([]);
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });

  it('a tool that is gone, accepted: its call is an outcome that the planner sees', async () => {
    const { id, journal, clock } = await parked();
    const second = deployed(journal, clock, { version: '1', tools: [echo] });
    const run = second.runtime.run(id);
    await run.resume({ acceptChanges: true });
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_not_found' } });
  });

  it('a planner’s own pause is answered in the same call that accepts the changes', async () => {
    const { id, journal, clock } = await parked({ version: '1', next: script(pause) });
    const planner = watched(script(pause));
    const second = deployed(journal, clock, { version: '2', next: planner });
    const run = second.runtime.run(id);
    await run.resume({ acceptChanges: true, payload: { note: 'go on' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())).toEqual([{ decision: 'resume', payload: { note: 'go on' } }]);
    expect(planner.views).toHaveLength(1);
  });

  it('what is given with the acceptance counts, also when the run was told something before', async () => {
    const { id, journal, clock } = await parked({ version: '1', next: script(pause) });
    const second = deployed(journal, clock, { version: '2', next: script(pause) });
    const run = second.runtime.run(id);
    await run.steer('INJECT_CONTEXT', { message: 'The shop is closed.' });
    await run.resume({ acceptChanges: true, payload: { note: 'go on' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())).toContainEqual({ decision: 'resume', payload: { note: 'go on' } });
  });

  it.each<[string, Code]>([
    ['added tools', { version: '1', tools: [other('new'), pay, echo, other('newer', { effect: 'once' })] }],
    [
      'another description, gate, time limit and order',
      {
        version: '1',
        tools: [echo, { ...pay, description: 'Pays.', timeoutMs: 9, needsApproval: () => true } as Tool],
      },
    ],
    [
      'a tool that the run’s user may not use',
      { version: '1', tools: [pay, echo, other('secret', { scopes: ['root'] })] },
    ],
  ])('%s are no change', async (_, code) => {
    const { id, journal, clock } = await parked();
    const second = deployed(journal, clock, code);
    await second.runtime.run(id).approve();
    expect(await second.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await entriesOf(journal, second.runtime.run(id), 'repinned')).toEqual([]);
  });

  it('a run that has ended is read and listed under any code', async () => {
    const { id, journal, clock } = await parked();
    const first = deployed(journal, clock, { version: '1' });
    await first.runtime.run(id).approve();
    await first.runtime.run(id).result();
    const second = deployed(journal, clock, { name: 'other', tools: [] });
    expect(await second.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await collect(second.runtime.run(id))).at(-1)).toMatchObject({ type: 'planner.finish' });
    await expect(second.runtime.run(id).resume({ acceptChanges: true })).rejects.toMatchObject({ code: 'run_ended' });
  });

  it('ID-03 nobody who may not resume the run accepts the changes for it', async () => {
    const { id, journal, clock, before } = await parked();
    const second = deployed(journal, clock, { version: '2' });
    const foreign: Caller = { tenant: 'other', user: 'eve', session: 's', scope: 'owner_user' };
    const guest: Caller = { ...scopeOf(), scope: 'session_user' };
    for (const as of [foreign, guest]) {
      await expect(second.runtime.run(id, { as }).resume({ acceptChanges: true })).rejects.toMatchObject({
        code: 'scope_mismatch',
      });
    }
    await quiet();
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    const owner: Caller = { ...guest, scope: 'owner_user' };
    await second.runtime.run(id, { as: owner }).resume({ acceptChanges: true });
    expect(await entriesOf(journal, { id } as never, 'repinned')).toHaveLength(1);
  });
});

function scopeOf(): Pick<Caller, 'tenant' | 'user' | 'session'> {
  const { tenant, user, session } = local('ana');
  return { tenant, user, session };
}

function byWhat(left: unknown, right: unknown): number {
  return JSON.stringify((left as { what: string }).what) < JSON.stringify((right as { what: string }).what) ? -1 : 1;
}

describe('the migrate hook', () => {
  const renames: Migrate = ({ changes }) =>
    changes.every(({ what }) => what === 'tool pay' || what === 'planner version')
      ? { renamedTools: { pay: 'transfer' } }
      : undefined;
  const moved: unknown[] = [];
  const transfer = make('transfer', (args) => moved.push(args) && 'moved', { effect: 'once', inputSchema: SUM });

  it('carries out a parked call under its tool’s new name', async () => {
    const { id, journal, clock } = await parked();
    moved.length = 0;
    const asked: unknown[] = [];
    const second = deployed(journal, clock, {
      version: '2',
      tools: [transfer, echo],
      migrate: (run) => {
        asked.push(run.changes.map(({ what }) => what).toSorted(), run.state.pauses.length);
        return renames(run);
      },
    });
    const run = second.runtime.run(id);
    await run.approve(undefined, { args: { sum: 4 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect([moved, paid]).toEqual([[{ sum: 4 }], []]);
    expect(asked).toEqual([['planner version', 'tool pay'], 1]);
    expect(await entriesOf(journal, run, 'repinned')).toMatchObject([{ renamedTools: { pay: 'transfer' } }]);
    expect(only(await collect(run), 'run.repinned')).toMatchObject([{ renamedTools: { pay: 'transfer' } }]);
  });

  it('checks edited arguments against the tool of the new name', async () => {
    const { id, journal, clock } = await parked();
    const strict = make('transfer', () => 'moved', {
      effect: 'once',
      inputSchema: { type: 'object', properties: { sum: { type: 'number', maximum: 10 } } },
    });
    const second = deployed(journal, clock, { version: '1', tools: [strict, echo], migrate: renames });
    const run = second.runtime.run(id);
    await expect(run.approve(undefined, { args: { sum: 11 } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.approve(undefined, { args: { sum: 10 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(outcomes(await run.state())).toEqual(['value']);
  });

  it('of a batch carries out what is parked, and what had not begun, under the new name', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    moved.length = 0;
    const branches = [
      { id: 'first', tool: 'pay', args: { sum: 1 } },
      { id: 'second', tool: 'pay', args: { sum: 2 }, after: ['first'] },
    ];
    const next = script(parallel(branches));
    const first = deployed(journal, clock, { version: '1', next });
    const { id } = await start(first);
    await first.runtime.run(id).result();
    await first.runtime.close();
    const code = { version: '1', next, tools: [transfer, echo], migrate: renames };
    const second = deployed(journal, clock, code);
    await second.runtime.run(id).approve();
    expect(await second.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(moved).toEqual([{ sum: 1 }, { sum: 2 }]);
  });

  it('of a batch that nothing of has begun is set up under the new name', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    moved.length = 0;
    const next = script(parallel([{ tool: 'pay', args: { sum: 1 } }, ...named('echo')]));
    const ready = make('pay', () => 'x', { effect: 'once', inputSchema: SUM });
    // The first process decided, and was stopped before it could set anything up.
    const { journal: dying, cut } = cutJournal(
      changed(journal, {
        append: async (request) => {
          await journal.append(request);
          if (request.entries.at(-1)?.kind === 'moved') cut();
        },
      }),
    );
    const first = deployed(dying, clock, { version: '1', next, tools: [ready, echo] });
    const { id } = await start(first);
    await until(async () => (await journal.read(id)).at(-1)?.kind === 'moved');
    clock.advance(6_000);
    const second = deployed(journal, clock, { version: '1', next, tools: [transfer, echo], migrate: renames });
    await second.runtime.run(id).resume();
    expect(await second.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(outcomes(await second.runtime.run(id).state())).toEqual(['value', 'value']);
    expect(moved).toEqual([{ sum: 1 }]);
  });

  it('that says nothing leaves the run as it is; one that accepts all is not asked twice', async () => {
    const { id, journal, clock, before } = await parked();
    const strict = deployed(journal, clock, { version: '3', migrate: () => undefined });
    expect((await refusalOf(strict.runtime.run(id).resume())).code).toBe('run_changed');
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    await strict.runtime.close();
    let asked = 0;
    const open = deployed(journal, clock, {
      version: '2',
      migrate: () => {
        asked += 1;
        return {};
      },
    });
    await open.runtime.run(id).approve();
    expect(await open.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(asked).toBe(1);
  });

  it('that throws leaves the run as it was, and free for others', async () => {
    const { id, journal, clock, before } = await parked();
    const second = deployed(journal, clock, {
      version: '2',
      migrate: () => {
        throw new Error('the hook is broken');
      },
    });
    await expect(second.runtime.run(id).resume()).rejects.toThrow('the hook is broken');
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    expect((await journal.get(id))?.lease).toBeUndefined();
    const third = deployed(journal, clock, { version: '1' });
    await third.runtime.run(id).approve();
    expect(await third.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });
});

describe('a worker', () => {
  it('does not loop on a run whose code has changed: it leaves it to others, says so once when there are none, and drives the rest', async () => {
    const { id, journal, clock, before } = await parked();
    await journal.signal(id, { id: 'a', type: 'APPROVE' });
    let claims = 0;
    const counting = changed(journal, {
      claimDue: async (request) => {
        const claimed = await journal.claimDue(request);
        claims += claimed.filter(({ claim }) => claim.run === id).length;
        return claimed;
      },
    });
    const second = deployed(counting, clock, { version: '2', next: script() });
    second.runtime.work();
    const run = await start(second);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await until(() => claims > 0);
    await quiet();
    // Others may be able to go on with it.
    expect(second.faults).toEqual([]);
    const left = await journal.get(id);
    expect(left).toMatchObject({ status: 'paused', problem: { code: 'run_changed' } });
    expect(left?.wakeAt).toBeUndefined();
    for (let second1 = 0; second1 < 120; second1 += 1) {
      clock.advance(1_000);
      await quiet();
    }
    // At 0, 2, 6, 14, 30 and 62 s, and so on: it takes part of no game of catch.
    expect(claims).toBeLessThanOrEqual(7);
    expect(second.faults).toMatchObject([{ code: 'run_changed', data: { run: id } }]);
    expect(JSON.stringify(await journal.read(id))).toBe(before);
    expect(await journal.inbox(id)).toHaveLength(1);
    await second.runtime.close();
    // The answer is still there for the code that fits.
    const third = deployed(journal, clock, { version: '1' });
    await third.runtime.run(id).resume();
    expect(await third.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(paid).toHaveLength(1);
  });

  it('with a migrate hook takes it over by itself', async () => {
    const { id, journal, clock } = await parked();
    await journal.signal(id, { id: 'a', type: 'APPROVE' });
    const second = deployed(journal, clock, { version: '2', migrate: () => ({}) });
    second.runtime.work();
    await advanceUntil(clock, async () => (await second.runtime.run(id).state()).ending !== null);
    expect(paid).toHaveLength(1);
    expect(second.faults).toEqual([]);
    await second.runtime.close();
  });

  it('of another planner passes the run over without a word', async () => {
    const { id, journal, clock } = await parked();
    await journal.signal(id, { id: 'a', type: 'APPROVE' });
    const second = deployed(journal, clock, { name: 'other' });
    second.runtime.work();
    for (let sweep = 0; sweep < 5; sweep += 1) {
      clock.advance(1_000);
      await quiet();
    }
    expect(second.faults).toEqual([]);
    expect(await journal.get(id)).toMatchObject({ status: 'paused' });
    await second.runtime.close();
  });
});

describe('a process that has not the agent of a run', () => {
  const desk: Code = { name: 'desk', next: script(), tools: [] };

  it('stores what is said to the run, and notes nothing on it', async () => {
    const { id, journal, clock } = await parked();
    const office = deployed(journal, clock, desk);
    await office.runtime.run(id).approve();
    await quiet();
    expect(await office.runtime.run(id).record()).not.toHaveProperty('problem');
    await expect(office.runtime.run(id).approve()).rejects.toMatchObject({ code: 'pause_not_found' });
    expect(await office.runtime.run(id).record()).not.toHaveProperty('problem');
    await office.runtime.close();
    const own = deployed(journal, clock, { version: '1' });
    await own.runtime.run(id).resume();
    expect(await own.runtime.run(id).result()).toMatchObject({ status: 'finished' });
    expect(paid).toEqual([{ sum: 5 }]);
  });

  it('ends a run that it cancels, and says why it cannot go on with one', async () => {
    const { id, journal, clock } = await parked();
    const office = deployed(journal, clock, desk).runtime.run(id);
    await expect(office.resume()).rejects.toMatchObject({ code: 'run_changed' });
    await office.cancel();
    expect(await office.result()).toMatchObject({ reason: 'cancelled' });
  });
});
