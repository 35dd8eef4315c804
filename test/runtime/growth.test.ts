/** A plan that is carried out while the rest of it is made. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Branch, CallParallel, Decision, Delta, Move, Planner, RunView } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { LoginRequired, type Tool } from '#tools';
import { changed } from '../kit/journals.ts';
import { entriesOf } from '../kit/run-record.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const node = (id: string, more: Partial<Branch> = {}): Branch => ({ id, tool: 'work', args: { id }, ...more });
const plan = (branches: readonly Branch[], more: Partial<CallParallel> = {}): CallParallel => ({
  kind: 'call_parallel',
  plan: 'p',
  branches,
  onInvalid: 'per_branch',
  ...more,
});
const branches = (...given: Branch[]): Delta => ({ type: 'branches', plan: 'p', branches: given });
const done: Decision = { kind: 'finish', reason: 'goal', payload: 'done' };

/** A gate that the test opens: nothing waits for time. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** Notes which nodes ran. `ran(id)` waits until that one has. */
function worker(): { readonly tool: Tool; readonly ids: string[]; ran(id: string): Promise<void> } {
  const ids: string[] = [];
  const gates = new Map<string, ReturnType<typeof gate>>();
  const gateOf = (id: string) => {
    const known = gates.get(id) ?? gate();
    gates.set(id, known);
    return known;
  };
  const tool: Tool = {
    name: 'work',
    description: 'd',
    effect: 'read',
    retries: 0,
    inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
    execute: (args) => {
      const { id } = args as { id: string };
      if (id === 'bad') throw new Error('it is bad');
      ids.push(id);
      gateOf(id).open();
      return { id };
    },
  };
  return { tool, ids, ran: (id) => gateOf(id).opened };
}

type Stream = AsyncGenerator<Delta, Decision | Move>;
/** Asked once for the plan, and then for the end. */
const planner = (grow: (run: RunView) => Stream, after: (run: RunView) => Decision = () => done): Planner => ({
  name: 'p',
  async *next(run) {
    return run.trajectory.count === 0 ? yield* grow(run) : after(run);
  },
});

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close();
});

function runs(made: Planner, tools: readonly Tool[], more: Partial<Parameters<typeof world>[0]> = {}) {
  const made_ = world({ planner: made, tools, ...more });
  open.push(made_.runtime);
  return made_;
}

describe('a plan that grows', () => {
  it('runs a node before the next one is known', async () => {
    const work = worker();
    const here = runs(
      planner(async function* () {
        yield branches(node('a'));
        await work.ran('a');
        yield branches(node('b', { args: { id: 'b', from: { $from: 'a', path: '/id' } } }));
        await work.ran('b');
        return {
          decision: plan([node('a'), node('b', { args: { id: 'b', from: { $from: 'a', path: '/id' } } }), node('c')]),
          text: 'three',
        };
      }),
      [work.tool],
    );
    const run = await start(here);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(work.ids).toEqual(['a', 'b', 'c']);
    const entries = await here.journal.read(run.id);
    expect(entries.map(({ kind }) => kind)).toEqual([
      'started',
      'moved',
      'call_ended',
      'plan_grown',
      'call_ended',
      'plan_grown',
      'call_ended',
      'moved',
      'finished',
    ]);
    expect(entries[5]).toMatchObject({ done: true, text: 'three', branches: [{ id: 'c' }] });
  });

  it('is one step of the trajectory, with the notes of its end', async () => {
    const work = worker();
    let seen: RunView | undefined;
    const here = runs(
      planner(
        async function* () {
          yield branches(node('a'));
          return { decision: plan([node('a'), node('b')]), usage: { inputTokens: 5, outputTokens: 2 } };
        },
        (run) => {
          seen = run;
          return done;
        },
      ),
      [work.tool],
    );
    await (await start(here)).result();
    expect(seen?.trajectory.count).toBe(1);
    const step = seen?.trajectory.step(0);
    expect(step?.decision).toEqual(plan([node('a'), node('b')]));
    expect(step?.calls.map(({ outcome }) => outcome.kind)).toEqual(['value', 'value']);
    expect(step?.usage).toEqual({ inputTokens: 5, outputTokens: 2 });
    expect(step?.error).toBeUndefined();
  });

  it('costs something itself: a call of it begins only when that is known and leaves room (seed 310015473)', async () => {
    const work = worker();
    const [isMade, mayBegin] = [gate(), gate()];
    const inMemory = memoryJournal();
    const here = runs(
      planner(async function* () {
        yield branches(node('a'));
        await isMade.opened;
        return { decision: plan([node('a')]), usage: { inputTokens: 5, outputTokens: 2, costMicroUsd: 950 } };
      }),
      [{ ...work.tool, costUsd: 0.0001 }],
      {
        journal: changed(inMemory, {
          append: async (request) => {
            // What the plan has cost is being written, and only then does its call take its place.
            if (request.entries.some(({ kind }) => kind === 'plan_grown')) {
              mayBegin.open();
              await quiet();
            }
            return inMemory.append(request);
          },
        }),
        policy: async () => {
          isMade.open();
          await mayBegin.opened;
          return 'allow' as const;
        },
      },
    );
    const run = await start(here, { limits: { costUsd: 0.001 } });
    await run.result();
    expect(work.ids).toEqual([]);
    expect((await run.state()).totals.costMicroUsd).toBe(950);
    expect(await entriesOf(here.journal, run, 'call_began')).toEqual([]);
  });

  it('keeps what it has when the planner fails, and tells the planner', async () => {
    const work = worker();
    let error: unknown;
    const here = runs(
      planner(
        async function* () {
          yield branches(node('a'), node('b', { after: ['a'] }));
          throw new Error('the model is gone');
        },
        (run) => {
          error = run.trajectory.step(0)?.error;
          return done;
        },
      ),
      [work.tool],
    );
    expect(await (await start(here)).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(work.ids).toEqual(['a', 'b']);
    expect(error).toMatchObject({ message: 'the model is gone' });
  });

  it.each<[string, () => Stream]>([
    [
      'another plan',
      async function* () {
        yield branches(node('a'));
        yield { type: 'branches', plan: 'q', branches: [node('b')] };
        return done;
      },
    ],
    [
      'an id that is there',
      async function* () {
        yield branches(node('a'));
        yield branches(node('a'));
        return done;
      },
    ],
    [
      'a reference to nothing',
      async function* () {
        yield branches(node('a'));
        yield branches(node('b', { after: ['nobody'] }));
        return done;
      },
    ],
    [
      'an end that is no plan',
      async function* () {
        yield branches(node('a'));
        return done;
      },
    ],
    [
      'an end without what it gave',
      async function* () {
        yield branches(node('a'));
        return plan([node('b')]);
      },
    ],
  ])('closes a plan that goes wrong: %s', async (_, grow) => {
    const work = worker();
    let error: unknown;
    const here = runs(
      planner(grow, (run) => {
        error = run.trajectory.step(0)?.error;
        return done;
      }),
      [work.tool],
    );
    expect(await (await start(here)).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(work.ids).toContain('a');
    expect(error).toMatchObject({ code: 'invalid_decision' });
  });

  it('fails the run when its very first nodes are none', async () => {
    const here = runs(
      planner(async function* () {
        yield branches(node('a', { after: ['b'] }), node('b', { after: ['a'] }));
        return done;
      }),
      [worker().tool],
    );
    expect(await (await start(here)).result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
  });

  it('stops with the run: the planner is aborted, and nothing new starts', async () => {
    const work = worker();
    const aborted = gate();
    const here = runs(
      {
        name: 'p',
        async *next(_, signal) {
          yield branches(node('a'));
          signal.addEventListener('abort', () => aborted.open());
          await aborted.opened;
          yield branches(node('b'));
          return done;
        },
      },
      [work.tool],
    );
    const run = await start(here);
    await work.ran('a');
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    await aborted.opened;
    expect(work.ids).toEqual(['a']);
  });

  it('is closed as it stands by whoever takes the run over, and finished nodes do not run again', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const work = worker();
    const never = gate();
    const first = runs(
      planner(async function* () {
        yield branches(node('a'));
        await never.opened;
        return done;
      }),
      [work.tool],
      { journal, clock },
    );
    const run = await start(first);
    await work.ran('a');
    const closing = first.runtime.close();
    never.open();
    await closing;
    let error: unknown;
    const second = runs(
      planner(
        () => {
          throw new Error('the plan is there already');
        },
        (view) => {
          error = view.trajectory.step(0)?.error;
          return done;
        },
      ),
      [work.tool],
      { journal, clock },
    );
    const resumed = second.runtime.run(run.id);
    await resumed.resume();
    expect(await resumed.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(error).toMatchObject({ code: 'plan_interrupted' });
    expect(work.ids).toEqual(['a']);
  });

  it('is told to a reader as it grows, and reads the same again', async () => {
    const work = worker();
    const here = runs(
      planner(async function* () {
        yield branches(node('a'));
        await work.ran('a');
        return plan([node('a'), node('b')]);
      }),
      [work.tool],
    );
    const run = await start(here);
    const told: string[] = [];
    for await (const event of run.events()) told.push(`${event.seq} ${event.type}`);
    const again: string[] = [];
    for await (const event of run.events()) again.push(`${event.seq} ${event.type}`);
    expect(told).toEqual(again);
    expect(told.filter((line) => /plan.grown|invoked|completed/.test(line)).map((line) => line.split(' ')[1])).toEqual([
      'tool.invoked',
      'tool.completed',
      'plan.grown',
      'tool.invoked',
      'tool.completed',
    ]);
  });

  it('replays to the same plan', async () => {
    const work = worker();
    const grow = async function* (): Stream {
      yield branches(node('a'));
      return plan([node('a'), node('b')]);
    };
    const here = runs(planner(grow), [work.tool]);
    const run = await start(here);
    await run.result();
    expect(await here.runtime.run(run.id).replay()).toMatchObject({ compared: 2 });
    expect((await here.runtime.run(run.id).replay()).divergence).toBeUndefined();
  });
});

describe('a plan that grows while one of its calls waits for a login', () => {
  /** The login is asked for until somebody says that it is done. */
  function waitsForLogin() {
    const more = gate();
    let isLoggedIn = false;
    const door: Tool = {
      name: 'door',
      description: 'd',
      effect: 'read',
      inputSchema: { type: 'object' },
      execute: () => {
        if (!isLoggedIn) throw new LoginRequired('https://login.example/');
        return 'inside';
      },
    };
    const locked = node('locked', { tool: 'door', args: {} });
    const here = runs(
      planner(async function* () {
        yield branches(locked);
        await more.opened;
        yield branches(node('late'));
        return { decision: plan([locked, node('late')]) };
      }),
      [door, worker().tool],
    );
    const logIn = (): void => {
      isLoggedIn = true;
    };
    return { here, more, logIn };
  }

  /** More of the plan and the answer are there when the run looks next. */
  function growsAtTheAnswer(
    { journal }: ReturnType<typeof runs>,
    more: { open(): void },
    allSaid: Promise<void> = Promise.resolve(),
  ): void {
    const inbox = journal.inbox.bind(journal);
    journal.inbox = async (id) => {
      if ((await inbox(id)).length > 0) {
        await allSaid;
        more.open();
        await quiet();
      }
      return inbox(id);
    };
  }

  async function endedCalls({ journal }: ReturnType<typeof runs>, run: { readonly id: string }) {
    return (await journal.read(run.id)).flatMap((entry) => (entry.kind === 'call_ended' ? [entry.call] : []));
  }

  it.each([
    ['reject', ['error', 'value'], [1]],
    ['approve', ['value', 'value'], [0, 1]],
  ] as const)('takes more branches and the answer %s at once: every call ends once', async (verdict, kinds, calls) => {
    const { here, more, logIn } = waitsForLogin();
    const run = await start(here);
    await until(async () => (await run.state()).pauses.length > 0);
    growsAtTheAnswer(here, more);
    logIn();
    await run[verdict]();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await endedCalls(here, run)).toSorted()).toEqual(calls);
    expect((await run.state()).steps[0]?.calls.map(({ outcome }) => outcome.kind)).toEqual(kinds);
  });

  it.each([
    'reject',
    'approve',
  ] as const)('and %s is followed by a new goal: the answer stands, every call ends once, and the planner hears both', async (verdict) => {
    const { here, more, logIn } = waitsForLogin();
    const run = await start(here);
    await until(async () => (await run.state()).pauses.length > 0);
    // The run reads the answer together with the new goal.
    const said = gate();
    growsAtTheAnswer(here, more, said.opened);
    logIn();
    const [{ token = '' } = {}] = (await run.state()).pauses;
    await here.journal.signal(run.id, {
      id: 'answer',
      type: verdict === 'approve' ? 'APPROVE' : 'REJECT',
      payload: { token },
    });
    await here.journal.signal(run.id, { id: 'goal', type: 'REDIRECT', payload: { goal: 'another' } });
    said.open();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const ended = await endedCalls(here, run);
    expect(new Set(ended).size).toBe(ended.length);
    const { steps, goal } = await run.state();
    expect(goal).toBe('another');
    expect(steps[0]?.calls).toHaveLength(2);
    expect((await here.journal.read(run.id)).filter(({ kind }) => kind === 'resumed')).toMatchObject([{ verdict }]);
  });

  it.each([
    'reject',
    'approve',
  ] as const)('whose goal is changed first, refuses %s, and every call ends once', async (verdict) => {
    const { here, more, logIn } = waitsForLogin();
    const run = await start(here);
    await until(async () => (await run.state()).pauses.length > 0);
    growsAtTheAnswer(here, more);
    await run.steer('REDIRECT', { goal: 'another' });
    logIn();
    await expect(run[verdict]()).rejects.toMatchObject({ code: 'superseded' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const ended = await endedCalls(here, run);
    expect(new Set(ended).size).toBe(ended.length);
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      kind: 'skipped',
      error: { code: 'superseded' },
    });
  });
});

describe('a plan that grows in a run that another process cancels', () => {
  /** The cancel comes between what the run wrote last and its next look at what was said. */
  function cancelledAtALook() {
    const journal = memoryJournal();
    const inbox = journal.inbox.bind(journal);
    let isDue = false;
    const listened = changed(journal, {
      inbox: async (id) => {
        if (isDue) await journal.signal(id, { id: 'cancel', type: 'CANCEL' });
        isDue = false;
        return inbox(id);
      },
    });
    const cancelNow = (): void => {
      isDue = true;
    };
    return { journal: listened, cancelNow };
  }

  it('is its last: the planner is not asked again when the step ends', async () => {
    const [more, { journal, cancelNow }, work] = [gate(), cancelledAtALook(), worker()];
    let asked = 0;
    const made = planner(
      async function* () {
        asked += 1;
        yield branches(node('a'));
        await more.opened;
        return plan([node('a')]);
      },
      () => {
        asked += 1;
        return { kind: 'call_tool', tool: 'work', args: { id: 'after' } };
      },
    );
    const here = runs(made, [work.tool], { journal });
    const run = await start(here);
    await work.ran('a');
    await quiet();
    await run.steer('USER_MESSAGE', { message: 'hear this when the plan is over' });
    await quiet();
    cancelNow();
    more.open();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect([asked, work.ids]).toEqual([1, ['a']]);
  });
});
