/** A plan as one parallel call: what runs beside what, what a failure, a crash, a limit or its end does to the rest of it. */
import { describe, expect, it } from 'vitest';
import { type Branch, type CallParallel, type Decision, errorOf, type Json } from '#core';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { assertCrashProof, type CrashScenario, crashEverywhere, VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { RANDOM_GRAPHS } from '../../bench/dag-graphs.ts';
import { script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, type Gate, gate, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const plan = (branches: readonly Branch[], more: Partial<CallParallel> = {}): Decision => ({
  kind: 'call_parallel',
  plan: 'p',
  branches,
  onInvalid: 'per_branch',
  ...more,
});

const node = (id: string, after: string[] = [], more: Partial<Branch> = {}): Branch => ({
  id,
  tool: 'work',
  args: { id },
  after,
  ...more,
});

/** A tool whose calls wait until the test ends them, by the `id` among their arguments. */
function works(more: Partial<Tool> = {}) {
  const begun: string[] = [];
  const stopped: string[] = [];
  const gates = new Map<string, Gate<'ok' | 'bad'>>();
  const gateOf = (id: string): Gate<'ok' | 'bad'> => {
    const made = gates.get(id) ?? gate<'ok' | 'bad'>();
    gates.set(id, made);
    return made;
  };
  const run: Tool['execute'] = async (args, { signal }) => {
    const id = String((args as { id: Json }).id);
    begun.push(id);
    const stop = aborted(signal).catch((reason) => {
      stopped.push(id);
      throw reason;
    });
    if ((await Promise.race([gateOf(id).opened, stop])) === 'bad') throw new Error(`${id} failed`);
    return { id };
  };
  return {
    tool: make('work', run as Parameters<typeof make>[1], more),
    begun,
    stopped,
    end: (...ids: string[]) => {
      for (const id of ids) gateOf(id).open('ok');
    },
    fail: (id: string) => gateOf(id).open('bad'),
  };
}

/** Until so many calls have their outcome in the journal. */
async function ended({ journal }: World, run: Run, count: number): Promise<void> {
  await until(async () => (await entriesOf(journal, run, 'call_ended')).length >= count);
  await quiet();
}

async function started(branches: readonly Branch[], more: Partial<CallParallel> = {}, tools: readonly Tool[] = []) {
  const work = works();
  const here = world({ planner: watched(script(plan(branches, more))), tools: [work.tool, echo, ...tools] });
  const run = await start(here);
  await quiet();
  return { ...work, here, run };
}

/** What became of each node, by its id: its outcome's kind. */
async function ends(run: Run): Promise<Record<string, string>> {
  const state = await run.state();
  const { decision } = state.steps[0] ?? {};
  const ids = decision?.kind === 'call_parallel' ? decision.branches.map(({ id }) => id ?? '') : [];
  return Object.fromEntries(outcomes(state).map((kind, index) => [ids[index], kind]));
}

describe('AG-40 the order of a plan', () => {
  it('runs a, then b and c together, then d when both have ended', async () => {
    const { run, here, begun, end } = await started([
      node('d', ['b', 'c']),
      node('c', ['a']),
      node('b', ['a']),
      node('a'),
    ]);
    expect(begun).toEqual(['a']);
    end('a');
    await ended(here, run, 1);
    expect(begun).toEqual(['a', 'c', 'b']);
    end('b');
    await ended(here, run, 2);
    expect(begun).toHaveLength(3);
    end('c');
    await ended(here, run, 3);
    expect(begun).toEqual(['a', 'c', 'b', 'd']);
    end('d');
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await ends(run)).toEqual({ a: 'value', b: 'value', c: 'value', d: 'value' });
  });

  it('is paused, and given back, also when all that is left stands behind a step that was passed over and one that waits for an approval', async () => {
    const branches: Branch[] = [
      node('first', [], { tool: 'read', args: { n: 1 } }),
      node('other', [], { tool: 'read', args: { n: 2 }, when: { branch: 'first', equals: 'something else' } }),
      node('asked', [], { tool: 'pay', args: {} }),
      { id: 'last', tool: 'read', args: { n: 3 }, behind: ['other', 'asked'] },
    ];
    const tools = [make('read', ({ n }) => n), make('pay', () => 'paid', { effect: 'once', needsApproval: true })];
    const { runtime, journal } = world({ planner: script(plan(branches)), tools });
    const run = await start({ runtime });
    expect(await pausesOf(run)).toMatchObject([{ reason: 'approval_required', call: 2 }]);
    await until(async () => (await journal.get(run.id))?.lease === undefined);
    expect((await journal.get(run.id))?.status).toBe('paused');
    await run.approve();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('carries out a graph of 10,000 nodes, each once and behind what it needs', async () => {
    const graph = RANDOM_GRAPHS.find(({ name }) => name === 'wide 10k');
    const { branches = [], needs = [] } = graph ?? {};
    const done = new Set<number>();
    let early = 0;
    const work = make('work', async (args) => {
      const index = Number(args['index']);
      if (done.has(index) || needs[index]?.some((need) => !done.has(need))) early += 1;
      await null;
      done.add(index);
    });
    const indexed = branches.map((branch, index): Branch => ({ ...branch, args: { index } }));
    const here = world({ planner: script(plan(indexed, { concurrency: 50 })), tools: [work] });
    const run = await start(here);
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { calls: 10_000 } });
    expect([done.size, early]).toEqual([10_000, 0]);
  });
});

describe('AG-41 a process that dies in the middle of a plan', () => {
  it('leaves finished nodes finished: another process runs the one that was under way, and the rest', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const branches = [node('a'), node('b', ['a']), node('c', ['a']), node('d', ['b', 'c'])];
    const before = works();
    const first = world({ planner: script(plan(branches)), tools: [before.tool], journal: dying.journal, clock });
    const { id } = await start(first);
    before.end('a', 'b');
    await ended({ ...first, journal: shared }, first.runtime.run(id), 2);
    expect(before.begun).toEqual(['a', 'b', 'c']);
    dying.cut();
    clock.advance(5_001);
    const after = works();
    after.end('c', 'd');
    const second = world({ planner: script(plan(branches)), tools: [after.tool], journal: shared, clock });
    const run = second.runtime.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(after.begun).toEqual(['c', 'd']);
    expect(await ends(run)).toEqual({ a: 'value', b: 'value', c: 'value', d: 'value' });
  });

  it('loses and repeats nothing, at whatever moment it dies: failures, references, a message, a finish', async () => {
    const branches: Branch[] = [
      { id: 'find', tool: 'read', args: { n: 1 } },
      { id: 'pay', tool: 'once', args: { n: { $from: 'find', path: '/n' } } },
      { id: 'book', tool: 'keyed', args: { n: 2 }, after: ['find'] },
      { id: 'fail', tool: 'fails', args: {} },
      { id: 'never', tool: 'once', args: { n: 3 }, after: ['fail', 'book'] },
      { id: 'behind', tool: 'read', args: { n: 4 }, after: ['never'] },
      { id: 'say', tool: '_message', args: { paid: { $from: 'pay' } }, after: ['book'] },
      { id: 'end', tool: '_finish', args: { booked: { $from: 'book', path: '/n' } }, after: ['say', 'fail_not'] },
      { id: 'fail_not', tool: 'pure', args: { n: 5 } },
    ];
    const scenario: CrashScenario = {
      name: 'a plan',
      query: 'go',
      tools: (crashes) => [
        ...(['pure', 'read', 'keyed', 'once'] as const).map((effect) =>
          make(
            effect,
            async (args, context) => {
              await crashes.effect(context);
              return args;
            },
            { effect },
          ),
        ),
        make('fails', () => {
          throw new Error('no');
        }),
      ],
      planner: (run) =>
        run.trajectory.count === 0
          ? plan(branches, { concurrency: 3 })
          : { kind: 'finish', reason: 'goal', payload: run.trajectory.step(0)?.calls.at(-1)?.outcome.kind ?? null },
      check: (state) => {
        const said = errorOf(state.steps[0]?.calls[5]?.outcome ?? { kind: 'value', value: null })?.data?.['branch'];
        return said === undefined || said === 4 ? [] : [`behind names the branch ${said}`];
      },
    };
    const report = await crashEverywhere(scenario, { doubles: 5 });
    assertCrashProof(report);
    expect(report.points.length).toBeGreaterThan(30);
  });
});

describe('AG-42 a node that fails', () => {
  it('keeps what depends on it from running, and says why; what hangs on others runs', async () => {
    const { run, here, end, fail, begun } = await started([
      node('a'),
      node('b'),
      node('c', ['a']),
      node('d', ['b', 'c']),
      node('e', ['b']),
      node('f', ['d']),
    ]);
    end('a', 'b', 'e');
    await ended(here, run, 3);
    fail('c');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await ends(run)).toEqual({ a: 'value', b: 'value', c: 'error', d: 'skipped', e: 'value', f: 'skipped' });
    expect(begun.sort()).toEqual(['a', 'b', 'c', 'e']);
    const calls = (await run.state()).steps[0]?.calls.map(({ outcome }) => errorOf(outcome));
    expect(calls?.[3]).toMatchObject({ code: 'branch_not_started', data: { branch: 2 } });
    expect(calls?.[5]).toMatchObject({ code: 'branch_not_started', data: { branch: 3 } });
    expect((await run.state()).steps[0]?.error).toBeUndefined();
    // One commit for all that follows from a failure.
    const skips = (await entriesOf(here.journal, run, 'call_ended')).filter(
      ({ outcome }) => outcome.kind === 'skipped',
    );
    expect(skips.map(({ at, call }) => [at, call])).toEqual([
      [skips[0]?.at, 3],
      [skips[0]?.at, 5],
    ]);
  });
});

describe('AG-43 the output of an earlier node', () => {
  it('goes into the arguments of a later one, which waits for it without being told to', async () => {
    const { run } = await started([
      { id: 'b', tool: 'echo', args: { got: { $from: 'a', path: '/list/1' } } },
      { id: 'a', tool: 'echo', args: { list: [1, 2] } },
    ]);
    await run.result();
    expect(observations(await run.state())[0]).toMatchObject([{ value: { got: 2 } }, { value: { list: [1, 2] } }]);
  });

  it.each<[string, Branch[], RegExp]>([
    ['to a node that is not there', [node('a', [], { args: { x: { $from: 'b' } } })], /"b", which does not exist/],
    ['in a ring', [node('a', [], { args: { x: { $from: 'b' } } }), node('b', ['a'])], /0, 1 wait for each other/],
  ])('a reference %s is refused before anything runs', async (_, branches, message) => {
    const { run, begun } = await started(branches);
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_decision', message: expect.stringMatching(message) },
    });
    expect(begun).toEqual([]);
  });
});

describe('AG-44 limits over the whole plan', () => {
  const many = Array.from({ length: 120 }, (_, index) => node(`n${index}`));

  it.each([
    [undefined, 50],
    [3, 3],
    [50, 50],
    [100, 50],
  ])('of %s at once at most %i run', async (concurrency, most) => {
    const { run, here, begun, end } = await started(many, concurrency === undefined ? {} : { concurrency });
    expect(begun).toHaveLength(most);
    end('n0');
    await ended(here, run, 1);
    expect(begun).toHaveLength(most + 1);
    end(...many.map(({ id }) => id ?? ''));
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { calls: 120 } });
  });

  it('a tool has its own limit beside that of the plan', async () => {
    const work = works({ concurrency: 2 });
    const branches = [node('a'), node('b'), node('c'), node('d'), node('e', [], { tool: 'echo' })];
    const here = world({ planner: script(plan(branches)), tools: [work.tool, echo] });
    const run = await start(here);
    await ended(here, run, 1);
    expect(work.begun).toEqual(['a', 'b']);
    work.end('b');
    await ended(here, run, 2);
    expect(work.begun).toEqual(['a', 'b', 'c']);
    work.end('a', 'c', 'd');
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('at the deadline all that runs is stopped, nothing more is started, and every node has an outcome', async () => {
    const work = works();
    const here = world({
      planner: script(plan([...many.slice(0, 20), node('z', ['n0'])], { concurrency: 8 })),
      tools: [work.tool],
    });
    const run = await start(here, { limits: { deadlineAt: here.clock.now() + 1_000 } });
    await quiet();
    here.clock.advance(1_000);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(work.begun).toHaveLength(8);
    expect(work.stopped.sort()).toEqual([...work.begun].sort());
    expect(Object.values(await ends(run))).toEqual(Array(21).fill('cancelled'));
  });

  it('a cancel stops all that runs', async () => {
    const { run, begun, stopped } = await started(many.slice(0, 20));
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(stopped.sort()).toEqual(begun.sort());
    expect(Object.values(await ends(run))).toEqual(Array(20).fill('cancelled'));
  });

  it('money is set aside for each node before it begins: those for which there is none are not made', async () => {
    let made = 0;
    const priced = make('priced', () => (made += 1), { costUsd: 0.0003 });
    const branches = many.slice(0, 20).map((branch) => ({ ...branch, tool: 'priced' }));
    const here = world({ planner: script(plan(branches)), tools: [priced] });
    const run = await start(here, { limits: { costUsd: 0.001 } });
    await run.result();
    expect(made).toBe(3);
    expect((await run.state()).totals.costMicroUsd).toBe(900);
    const codes = (await run.state()).steps[0]?.calls.map(({ outcome }) => errorOf(outcome)?.code);
    expect(codes?.filter((code) => code === 'budget_exceeded')).toHaveLength(17);
  });
});

describe('AG-45 messages and the end of a plan', () => {
  const say: Branch = { id: 'say', tool: '_message', args: { text: { $from: 'a', path: '/id' } } };

  it('a message is its arguments, said once, without a tool; what needs it goes on with it', async () => {
    const { run, end } = await started([
      node('a'),
      say,
      { id: 'b', tool: 'echo', args: { said: { $from: 'say', path: '/text' } } },
    ]);
    const events = collect(run);
    end('a');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[1]).toMatchObject({
      outcome: { kind: 'value', value: { text: 'a' } },
      attempts: 1,
    });
    expect(observations(await run.state())[0]).toMatchObject([{}, {}, { value: { said: 'a' } }]);
    expect(only(await events, 'message')).toMatchObject([{ step: 0, call: 1, message: { text: 'a' } }]);
  });

  it('is said once, also when the run is taken up by another process after it', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const branches = [say, node('a'), node('c', ['say'])];
    const before = works();
    const first = world({ planner: script(plan(branches)), tools: [before.tool], journal: dying.journal, clock });
    const { id } = await start(first);
    before.end('a');
    await ended({ ...first, journal: shared }, first.runtime.run(id), 2);
    dying.cut();
    clock.advance(5_001);
    const after = works();
    after.end('c');
    const second = world({ planner: script(plan(branches)), tools: [after.tool], journal: shared, clock });
    const run = second.runtime.run(id);
    await run.resume();
    await run.result();
    expect(only(await collect(run), 'message')).toHaveLength(1);
    expect(after.begun).toEqual(['c']);
  });

  it('a finish stops what runs, and leaves out the rest; the planner has its value', async () => {
    const { run, here, begun, stopped, end } = await started([
      node('a'),
      node('slow'),
      node('slower'),
      node('never', ['slow']),
      { id: 'end', tool: '_finish', args: { answer: { $from: 'a', path: '/id' } } },
    ]);
    end('a');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(stopped.sort()).toEqual(['slow', 'slower']);
    expect(begun.sort()).toEqual(['a', 'slow', 'slower']);
    expect(await ends(run)).toEqual({
      a: 'value',
      slow: 'cancelled',
      slower: 'cancelled',
      never: 'cancelled',
      end: 'value',
    });
    expect(observations(await run.state())[0]).toMatchObject([{}, {}, {}, {}, { value: { answer: 'a' } }]);
    expect(here.faults).toEqual([]);
  });

  it('a finish that fails ends nothing: what it refers to is not there', async () => {
    const { run, end } = await started([
      node('a'),
      { id: 'end', tool: '_finish', args: { answer: { $from: 'a', path: '/nothing' } } },
      node('b', ['a']),
    ]);
    end('a', 'b');
    await run.result();
    expect(await ends(run)).toEqual({ a: 'value', end: 'error', b: 'value' });
  });

  it('a finish ends also a plan of which the only other node waits for an approval', async () => {
    const asks = make('asks', () => 1, { needsApproval: true });
    const { run, end } = await started(
      [node('ask', [], { tool: 'asks' }), node('a'), { id: 'end', tool: '_finish', args: null, after: ['a'] }],
      {},
      [asks],
    );
    end('a');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await ends(run)).toEqual({ ask: 'cancelled', a: 'value', end: 'value' });
  });

  it('a large result is stored beside the journal, and a later node has the whole of it', async () => {
    const big = Array.from({ length: 4_000 }, (_, index) => ({ index, text: 'xxxxxxxxxx' }));
    const { run } = await started([
      { id: 'say', tool: '_message', args: { big } },
      { id: 'b', tool: 'echo', args: { last: { $from: 'say', path: '/big/3999/index' } } },
    ]);
    await run.result();
    expect(observations(await run.state())[0]).toMatchObject([
      { value: { truncated: true } },
      { value: { last: 3_999 } },
    ]);
  });

  it('nobody else can call them: without a plan they are no tools', async () => {
    for (const tool of ['_message', '_finish']) {
      const alone = await start(world({ planner: script({ kind: 'call_tool', tool, args: {} }), tools: [echo] }));
      await alone.result();
      expect(errorOf((await alone.state()).steps[0]?.calls[0]?.outcome as never)?.code).toBe('tool_not_found');
      const beside = { kind: 'call_parallel' as const, branches: [{ tool, args: {} }] };
      const run = await start(world({ planner: script(beside), tools: [echo] }));
      expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
    }
  });
});

describe('SP-47, PX-20 a node that waits for an approval', () => {
  it('takes no place; what hangs on others goes on, and what hangs on it follows the answer', async () => {
    const asks = make('asks', ({ id }) => id, { needsApproval: true });
    const { run, here, end } = await started(
      [
        node('yes', [], { tool: 'asks' }),
        node('no', [], { tool: 'asks' }),
        node('b', ['yes']),
        node('c', ['no']),
        node('a'),
        node('d', ['a']),
      ],
      { concurrency: 2 },
      [asks],
    );
    end('a', 'b', 'd');
    const pauses = await pausesOf(run);
    expect(pauses).toHaveLength(2);
    await ended(here, run, 2);
    const tokenOf = (call: number): string => pauses[call]?.token ?? '';
    await run.reject(tokenOf(1));
    await run.approve(tokenOf(0));
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await ends(run)).toEqual({ yes: 'value', no: 'error', b: 'value', c: 'skipped', a: 'value', d: 'value' });
  });

  it('is withdrawn when the goal is changed; what has not begun is left out', async () => {
    const asks = make('asks', ({ id }) => id, { needsApproval: true });
    const { run, here, end } = await started(
      [node('ask', [], { tool: 'asks' }), node('b', ['ask']), node('a'), node('c', ['a'])],
      {},
      [asks],
    );
    await until(async () => (await entriesOf(here.journal, run, 'paused')).length === 1);
    await run.steer('REDIRECT', { goal: 'another' });
    await until(async () => (await entriesOf(here.journal, run, 'control')).length === 1);
    end('a');
    await until(async () => (await run.state()).steps.length > 0);
    const [step] = (await run.state()).steps;
    const codes = step?.calls.map(({ outcome }) => errorOf(outcome)?.code ?? 'value');
    expect(codes).toEqual(['superseded', expect.any(String), 'value', 'plan_redirected']);
  });
});
