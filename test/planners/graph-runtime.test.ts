/** Plans of the graph planner in a runtime: in memory, and with a process that dies. */
import { afterEach, describe, expect, it } from 'vitest';
import { isJsonObject, type Json, type RunEvent, type ToolPolicy } from '#core';
import { memoryJournal } from '#journal';
import { type GraphOptions, graph } from '#planners/graph';
import type { Plan, PlanStep, PlanYield } from '#plans';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { collect, only } from '../kit/events.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, type Gate, gate, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const open: World[] = [];
afterEach(async () => {
  for (const { runtime } of open.splice(0)) await runtime.close();
});

const work = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({
  id,
  type: 'tool',
  toolId: 'work',
  input: { id },
  ...more,
});
const say = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'message', input: id, ...more });

const isOf = (args: Json, id: string): boolean => isJsonObject(args) && args['id'] === id;

interface Worker {
  readonly tool: Tool;
  /** The ids of the steps, as they began. */
  readonly begun: string[];
  readonly stopped: string[];
  /** Until the step has begun. */
  has(id: string): Promise<void>;
  /** Lets a step end that waits. */
  release(id: string): void;
}

/** A tool that gives `{ id }`. The steps named in `waiting` wait until they are released, or stopped. */
function worker(...waiting: string[]): Worker {
  const begun: string[] = [];
  const stopped: string[] = [];
  const gates = new Map<string, Gate>(waiting.map((id) => [id, gate()]));
  const tool = make('work', async ({ id }, { signal }) => {
    const name = String(id);
    begun.push(name);
    if (name === 'bad') throw new Error('It is bad.');
    const held = gates.get(name);
    if (held !== undefined) {
      await Promise.race([held.opened, aborted(signal)]).catch((reason: unknown) => {
        stopped.push(name);
        throw reason;
      });
    }
    return { id: name };
  });
  return {
    tool,
    begun,
    stopped,
    has: (id) => until(() => begun.includes(id)),
    release: (id) => gates.get(id)?.open(),
  };
}

function runs(plan: GraphOptions['plan'], worked: Worker, more: Partial<GraphOptions & WorldOptions> = {}): World {
  const { journal, clock, policy, tools = [worked.tool], ...options } = more;
  const here = world({
    planner: graph({ plan, ...options }),
    tools,
    ...(journal === undefined ? {} : { journal }),
    ...(clock === undefined ? {} : { clock }),
    ...(policy === undefined ? {} : { policy }),
  });
  open.push(here);
  return here;
}

const said = (events: readonly RunEvent[]): unknown[] => only(events, 'message').map(({ message }) => message);

describe('a plan in a runtime', () => {
  it('AG-40 AG-06 a, then b and c together, then d, and the answer', async () => {
    const worked = worker('b', 'c');
    const plan: Plan = {
      nodes: {
        a: work('a'),
        b: work('b', { input: { id: 'b', of: { $from: 'a' } } }),
        c: work('c'),
        d: work('d'),
        end: { id: 'end', type: 'finish', input: { last: { $from: 'd', path: '/id' } } },
      },
      edges: { a: ['b', 'c'], b: ['d'], c: ['d'], d: ['end'] },
    };
    const run = await start(runs(plan, worked));
    await until(() => worked.begun.length === 3);
    expect(worked.begun.toSorted()).toEqual(['a', 'b', 'c']);
    worked.release('c');
    worked.release('b');
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: { last: 'd' } });
    expect(worked.begun.at(-1)).toBe('d');
  });

  it('AG-42 a failed node fails what hangs on it, and nothing else; the end names both', async () => {
    const worked = worker();
    const plan: Plan = {
      nodes: { b: work('b'), c: work('c', { input: { id: 'bad' } }), d: work('d'), e: work('e') },
      edges: { b: ['d', 'e'], c: ['d'] },
    };
    expect(await (await start(runs(plan, worked))).result()).toMatchObject({
      status: 'failed',
      error: { code: 'plan_failed', data: { failed: ['c'], skipped: ['d'] } },
    });
    expect(worked.begun.toSorted()).toEqual(['b', 'bad', 'e']);
  });

  it('AG-05 AG-21 nothing of an invalid plan is run: the run fails, with all that is wrong', async () => {
    const worked = worker();
    const plan = () => ({ steps: [work('a'), work('b', { toolId: 'nobody' }), work('c', { after: ['x'] })] });
    expect(await (await start(runs(plan, worked))).result()).toMatchObject({
      status: 'failed',
      error: {
        code: 'plan_invalid',
        data: { faults: [{ code: 'tool_unknown' }, { code: 'edge_unknown' }] },
      },
    });
    expect(worked.begun).toEqual([]);
  });

  it('AG-22 nothing of a plan with a forbidden step is run', async () => {
    const worked = worker();
    const policy: ToolPolicy = ({ args }) => (isOf(args, 'b') ? { deny: 'not b.' } : 'allow');
    const result = await (await start(runs({ steps: [work('a'), work('b')] }, worked, { policy }))).result();
    expect(result).toMatchObject({ status: 'failed', error: { data: { faults: [{ code: 'plan_forbidden' }] } } });
    expect(worked.begun).toEqual([]);
  });

  it('AG-05 a policy that changes in between stops a step when its turn comes', async () => {
    const worked = worker('a');
    let isStrict = false;
    const policy: ToolPolicy = ({ args }) => (isStrict && isOf(args, 'b') ? { deny: 'not b.' } : 'allow');
    const plan = { steps: [work('a'), work('b'), work('c')] };
    const run = await start(runs(plan, worked, { policy }));
    await worked.has('a');
    isStrict = true;
    worked.release('a');
    expect(await run.result()).toMatchObject({ status: 'failed', error: { data: { failed: ['b'], skipped: ['c'] } } });
    expect(worked.begun).toEqual(['a']);
  });

  it('AG-02 W106 an internal step is carried out by its handler', async () => {
    const seen: unknown[] = [];
    const handler = make('handler', (args) => {
      seen.push(args);
      return 'handled';
    });
    const plan: Plan = { steps: [{ id: 'i', type: 'internal', input: { n: 1 }, meta: { why: 'so' } }] };
    const here = runs(plan, worker(), { internal: 'handler', tools: [handler] });
    expect(await (await start(here)).result()).toMatchObject({ payload: { results: { i: 'handled' } } });
    expect(seen).toEqual([{ id: 'i', input: { n: 1 }, meta: { why: 'so' } }]);
  });

  it('AG-44 no more steps at once than it says', async () => {
    const worked = worker('a', 'b', 'c');
    const run = await start(runs({ nodes: { a: work('a'), b: work('b'), c: work('c') } }, worked, { concurrency: 2 }));
    await until(() => worked.begun.length === 2);
    worked.release('a');
    await worked.has('c');
    expect(worked.begun).toEqual(['a', 'b', 'c']);
    worked.release('b');
    worked.release('c');
    expect(await run.result()).toMatchObject({ reason: 'goal' });
  });
});

describe('messages and the end of a plan', () => {
  it('AG-45 a finish step ends the plan: what runs is stopped, what waits is not begun', async () => {
    const worked = worker('slow', 'quick');
    const plan: Plan = {
      nodes: {
        quick: work('quick'),
        slow: work('slow'),
        late: work('late'),
        end: { id: 'end', type: 'finish', input: 'enough' },
      },
      edges: { quick: ['end'], slow: ['late'] },
    };
    const run = await start(runs(plan, worked));
    await until(() => worked.begun.length === 2);
    worked.release('quick');
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: 'enough' });
    expect(worked.stopped).toEqual(['slow']);
    expect(worked.begun).not.toContain('late');
  });

  it('AG-45 a message is shown once, with what it refers to', async () => {
    const plan: Plan = { steps: [work('a'), say('m', { input: { $from: 'a', path: '/id' } }), say('n')] };
    const run = await start(runs(plan, worker()));
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: { results: { a: { id: 'a' } } } });
    expect(said(await collect(run))).toEqual(['a', 'n']);
  });
});

/** Both processes look at one journal; the first is cut off from it. */
interface Crash {
  readonly first: World;
  readonly run: Run;
  /** The first process dies, and another takes the run over. */
  crash(): Promise<Run>;
}

async function crashing(plan: GraphOptions['plan'], worked: Worker, next: Worker): Promise<Crash> {
  const clock = new VirtualClock();
  const shared = memoryJournal({ clock });
  const cut = cutJournal(shared);
  const first = runs(plan, worked, { journal: cut.journal, clock });
  const run = await start(first);
  const crash = async (): Promise<Run> => {
    cut.cut();
    // Nobody closes a process that has died.
    open.splice(open.indexOf(first), 1);
    const second = runs(plan, next, { journal: shared, clock });
    clock.advance(60_000);
    const resumed = second.runtime.run(run.id);
    await resumed.resume();
    return resumed;
  };
  return { first, run, crash };
}

describe('after a crash', () => {
  it('AG-41 AG-45 what was done is not done again, and what was said is not said again', async () => {
    const [before, behind] = [worker('c'), worker()];
    const plan: Plan = {
      nodes: { b: work('b'), m: say('m'), c: work('c'), d: work('d') },
      edges: { b: ['m'], m: ['c'], c: ['d'] },
    };
    const { crash, first, run } = await crashing(plan, before, behind);
    await before.has('c');
    expect(await entriesOf(first.journal, run, 'call_ended')).toHaveLength(2);
    const resumed = await crash();
    expect(await resumed.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(before.begun).toEqual(['b', 'c']);
    expect(behind.begun).toEqual(['c', 'd']);
    expect(said(await collect(resumed))).toEqual(['m']);
  });

  it('AG-41 AG-45 also of a plan that was still being made', async () => {
    const [before, behind] = [worker(), worker()];
    const hold = gate();
    let asked = 0;
    const plan = {
      async *plan(): AsyncGenerator<PlanYield> {
        asked += 1;
        yield work('a');
        yield say('m');
        yield work('b', { input: { id: 'b', of: { $from: 'a', path: '/id' } } });
        if (asked === 1) {
          await before.has('b');
          await hold.opened;
        }
        yield work('c', { input: { id: 'c', of: { $from: 'b', path: '/id' } } });
        yield { finish: { result: [{ $from: 'a' }, { $from: 'c' }] } };
      },
    };
    const { crash, first, run } = await crashing(plan, before, behind);
    await until(async () => (await entriesOf(first.journal, run, 'call_ended')).length === 3);
    const resumed = await crash();
    expect(await resumed.result()).toMatchObject({
      status: 'finished',
      reason: 'goal',
      payload: [{ id: 'a' }, { id: 'c' }],
    });
    hold.open();
    expect(before.begun).toEqual(['a', 'b']);
    expect(behind.begun).toEqual(['c']);
    expect(said(await collect(resumed))).toEqual(['m']);
    expect(asked).toBe(2);
  });
});

describe('a plan that is made on the way', () => {
  it('runs each step as it comes', async () => {
    const worked = worker();
    const plan = {
      async *plan(): AsyncGenerator<PlanYield> {
        yield { partialReasoning: 'First a.' };
        yield work('a');
        await worked.has('a');
        yield work('b');
        await worked.has('b');
        yield { finish: { result: 'both' } };
      },
    };
    const run = await start(runs(plan, worked));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: 'both' });
    expect(worked.begun).toEqual(['a', 'b']);
  });

  it('AG-21 when it goes wrong, what was begun ends, and the run fails', async () => {
    const worked = worker();
    const plan = {
      async *plan(): AsyncGenerator<PlanYield> {
        yield work('a');
        await worked.has('a');
        yield work('b', { toolId: 'nobody' });
      },
    };
    expect(await (await start(runs(plan, worked))).result()).toMatchObject({
      status: 'failed',
      error: { code: 'plan_invalid', data: { faults: [{ code: 'tool_unknown', step: 'b' }] } },
    });
    expect(worked.begun).toEqual(['a']);
  });
});

describe('a person at the plan', () => {
  it('AG-06 a new goal: running steps end, the rest is skipped, the maker is asked again', async () => {
    const worked = worker('a');
    const plan: GraphOptions['plan'] = ({ goal }) =>
      goal === 'q' ? { steps: [work('a'), work('b')] } : { steps: [work('c', { input: { id: goal } })] };
    const here = runs(plan, worked);
    const run = await start(here);
    await worked.has('a');
    await run.steer('REDIRECT', { goal: 'another' });
    await until(async () => (await entriesOf(here.journal, run, 'control')).length === 1);
    worked.release('a');
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: { results: { c: { id: 'another' } } } });
    expect(worked.begun).toEqual(['a', 'another']);
  });

  it('AG-06 a plan that is always the same has none for a new goal', async () => {
    const worked = worker('a');
    const here = runs({ steps: [work('a'), work('b')] }, worked);
    const run = await start(here);
    await worked.has('a');
    await run.steer('REDIRECT', { goal: 'another' });
    await until(async () => (await entriesOf(here.journal, run, 'control')).length === 1);
    worked.release('a');
    expect(await run.result()).toMatchObject({ reason: 'no_path', metadata: { redirected: true } });
    expect(worked.begun).toEqual(['a']);
  });

  it('AG-06 paused between two steps, and taken up again', async () => {
    const worked = worker('a');
    const here = runs({ steps: [work('a'), work('b')] }, worked);
    const run = await start(here);
    await worked.has('a');
    await run.steer('PAUSE');
    await until(async () => (await entriesOf(here.journal, run, 'control')).length === 1);
    worked.release('a');
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(worked.begun).toEqual(['a']);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(worked.begun).toEqual(['a', 'b']);
  });
});

describe('a maker of single steps', () => {
  it('AG-01 AG-06 is asked after each, and its run replays', async () => {
    const worked = worker();
    const plan: GraphOptions['plan'] = {
      async plan({ stepCount, transcript }) {
        if (stepCount < 2) return work(`s${stepCount}`);
        return {
          id: 'end',
          type: 'finish',
          input: transcript.filter(({ role }) => role === 'tool').map(({ text }) => text),
        };
      },
    };
    const run = await start(runs(plan, worked));
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: ['work: {"id":"s0"}', 'work: {"id":"s1"}'] });
    expect((await run.replay()).divergence).toBeUndefined();
  });
});
