/** How many calls of a step run at once: all of them up to 50, or fewer by the word of a tool, a planner or a runtime, which is told. */
import { describe, expect, it } from 'vitest';
import { EventLines, PlanSeen } from '#cli';
import type { CallParallel } from '#core';
import { pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { innerState } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { type Gate, gate, quiet, until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const fan = (calls: number, more: Partial<CallParallel> = {}): CallParallel => ({
  kind: 'call_parallel',
  branches: Array.from({ length: calls }, (_, id) => ({ tool: 'work', args: { id } })),
  ...more,
});

interface Working {
  readonly running: () => number;
  readonly most: () => number;
  readonly open: Gate;
  readonly tool: ReturnType<typeof make>;
}

function working(concurrency?: number): Working {
  let running = 0;
  let most = 0;
  const open = gate();
  const tool = make(
    'work',
    async () => {
      running += 1;
      most = Math.max(most, running);
      await open.opened;
      running -= 1;
      return null;
    },
    concurrency === undefined ? {} : { concurrency },
  );
  return { running: () => running, most: () => most, open, tool };
}

async function ran(work: Working, options: WorldOptions): Promise<{ most: number; held: unknown[]; text: string }> {
  const made = world(options);
  const run = await start(made);
  await until(() => work.running() > 0);
  await quiet();
  work.open.open();
  expect(await run.result()).toMatchObject({ status: 'finished' });
  const told = only(await collect(run), 'tool.held_back');
  const lines = new EventLines({ texts: true, plan: new PlanSeen() });
  const text = told.flatMap((event) => lines.of(event).map((line) => line.text)).join('\n');
  const held = told.map(({ by, tool, limit, calls }) => ({
    by,
    limit,
    calls,
    ...(tool === undefined ? {} : { tool }),
  }));
  return { most: work.most(), held, text };
}

describe('PX-22 calls of a parallel step', () => {
  it('run all at once up to 50, and nothing is said of what is not held back', async () => {
    const work = working();
    expect(await ran(work, { planner: script(fan(50)), tools: [work.tool] })).toMatchObject({ most: 50, held: [] });
  });

  it('beyond 50 the others wait, which is told', async () => {
    const work = working();
    const { most, held, text } = await ran(work, { planner: script(fan(60, { plan: 'p' })), tools: [work.tool] });
    expect({ most, held }).toEqual({ most: 50, held: [{ by: 'cap', limit: 50, calls: 60 }] });
    expect(text).toContain('50 of 60 calls at once');
  });

  it('first_success has its first although twenty that never end stand before it', async () => {
    const stuck = make(
      'stuck',
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    const quick = make('quick', () => 'done');
    const branches = [...Array.from({ length: 20 }, () => ({ tool: 'stuck', args: {} })), { tool: 'quick', args: {} }];
    const made = world({
      planner: script({ kind: 'call_parallel', branches, join: { kind: 'first_success' } }),
      tools: [stuck, quick],
    });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it.each([
    [
      'the runtime',
      { parallelCalls: 3 },
      undefined,
      {},
      { by: 'runtime', limit: 3, calls: 7 },
      'the runtime lets no more',
    ],
    ['the decision', {}, undefined, { concurrency: 2 }, { by: 'decision', limit: 2, calls: 7 }, 'the planner says so'],
    ['the tool', {}, 4, {}, { by: 'tool', tool: 'work', limit: 4, calls: 7 }, '4 of 7 calls of work at once'],
    [
      'the smaller one',
      { parallelCalls: 3 },
      undefined,
      { concurrency: 5 },
      { by: 'runtime', limit: 3, calls: 7 },
      '3 of 7',
    ],
  ] as const)('%s may set less, which is told, also when it is read again', async (_, options, ofTool, how, told, text) => {
    const work = working(ofTool);
    const seen = await ran(work, { ...options, planner: script(fan(7, how)), tools: [work.tool] });
    expect(seen).toMatchObject({ most: told.limit, held: [told] });
    expect(seen.text).toContain(text);
  });

  it('the entry of a planner may set less than the runtime, and never more', async () => {
    for (const [own, limit, by] of [
      [2, 2, 'agent'],
      [9, 4, 'runtime'],
    ] as const) {
      const work = working();
      const planner = { name: 'agent', next: script(fan(7)) };
      const seen = await ran(work, {
        parallelCalls: 4,
        agents: [{ name: 'agent', planner, tools: [work.tool], parallelCalls: own }],
      });
      expect(seen).toMatchObject({ most: limit, held: [{ by, limit, calls: 7 }] });
    }
  });

  it('calls that wait for each other are not held back by a limit that they never meet', async () => {
    const work = working();
    const chain = fan(4).branches.map((branch, at) => ({
      ...branch,
      id: `n${at}`,
      ...(at === 0 ? {} : { after: [`n${at - 1}`] }),
    }));
    const planner = script({ kind: 'call_parallel', branches: chain });
    expect(await ran(work, { parallelCalls: 1, planner, tools: [work.tool] })).toMatchObject({ most: 1, held: [] });
  });

  it('the limit under which a step began holds for whoever goes on with it', async () => {
    const gated = make('work', () => null, { needsApproval: true });
    const planner = script({ ...fan(3), concurrency: 3 }, pause);
    const first = world({ parallelCalls: 2, planner, tools: [gated] });
    const run = await start(first);
    await run.result();
    expect((await innerState(first.journal, run)).open?.move.atOnce).toEqual({ calls: 2, by: 'runtime' });
  });

  it.each([0, 51, 1.5, Number.NaN])('%s is refused, of the runtime and of a planner', (parallelCalls) => {
    const planner = script();
    expect(() => world({ planner, parallelCalls })).toThrow(/parallelCalls is .*1 to 50/);
    const entry = { name: 'p', planner: { name: 'p', next: planner }, tools: [], parallelCalls };
    expect(() => world({ agents: [entry] })).toThrow(/parallelCalls of the agent "p" is/);
  });
});
