/** People and crashes in the middle of a flow. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  type Effect,
  type Identity,
  type Json,
  local,
  type PlannerFunction,
  type PolicyAnswer,
  type PolicyCall,
  type PolicyView,
} from '#core';
import { edge, type Flow, flow, join, map, node, predicateRouter } from '#flow';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Runtime } from '#runtime';
import { VirtualClock } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { placed } from '../kit/flows.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { aborted, type Gate, gate, turn, until } from '../kit/waiting.ts';

const identity = (): Identity => local('ana');

interface Worked {
  readonly calls: string[];
  readonly gates: Record<string, Gate>;
  node<const Name extends string>(
    name: Name,
    more?: { readonly effect?: Effect; readonly allowCycle?: boolean },
  ): ReturnType<typeof node<Name, string, string, string>>;
}

/** Nodes that give what they got with their name behind it; those in `held` wait for their gate. */
function worked(...held: readonly string[]): Worked {
  const calls: string[] = [];
  const gates = Object.fromEntries(held.map((name) => [name, gate()]));
  return {
    calls,
    gates,
    node: (name, { effect = 'read', allowCycle = false } = {}) =>
      node(name, {
        effect,
        allowCycle,
        execute: async (text: string, { signal }) => {
          calls.push(name);
          const held = gates[name];
          if (held !== undefined) await Promise.race([held.opened, aborted(signal)]);
          return `${text}-${name}`;
        },
      }),
  };
}

/** a, b, then by the router to c or d, and the end. */
function routed(w: Worked, pick: (text: string) => boolean = () => true) {
  const [a, b, c, d, end] = [w.node('a'), w.node('b'), w.node('c'), w.node('d'), w.node('end')] as const;
  const router = predicateRouter<string>({ branches: [{ when: pick, to: c }], default: d }).asNode('r');
  return flow({
    name: 'routed',
    inputSchema: z.string(),
    entry: a,
    exit: end,
    edges: [edge(a, b), edge(b, router), edge(c, end), edge(d, end)],
  });
}

/** Goes round until the text is so long. */
function lengthening(w: Worked, chars: number): Flow<string, unknown> {
  const more = w.node('more', { allowCycle: true });
  const end = w.node('end');
  const router = predicateRouter<string>({
    branches: [{ when: (text) => text.length < chars, to: more }],
    default: end,
  });
  const edges = [edge(more, router.asNode('r', { allowCycle: true }))];
  return flow({ name: 'rounds', inputSchema: z.string(), budget: { hops: 40 }, entry: more, exit: end, edges });
}

describe('a person at a flow', () => {
  it('AG-06 paused between two nodes it goes on where it was', async () => {
    const w = worked('a');
    const made = routed(w);
    const runtime = placed([made]);
    const run = await made.start(runtime, 'x', { identity: identity() });
    await until(() => w.calls.length === 1);
    await run.steer('PAUSE');
    w.gates['a']?.open();
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(w.calls).toEqual(['a']);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'x-a-b-c-end' });
  });

  it('whoever resumes it may change what a node is given, also one that several ways lead to, or take one out', async () => {
    const w = worked('a');
    const made = routed(w);
    const runtime = placed([made]);
    const paused = async () => {
      const run = await made.start(runtime, 'x', { identity: identity() });
      await until(() => w.calls.length === 1);
      await run.steer('PAUSE');
      w.gates['a']?.open();
      await run.result();
      return run;
    };
    const run = await paused();
    await run.resume({ nodes: { end: { args: 'edited' } } });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'edited-end' });
    expect(w.calls).toEqual(['a', 'b', 'c', 'end']);
  });

  it('null is an argument like any other: approved, and given to a node that has not begun', async () => {
    const got: unknown[] = [];
    const policy = ({ tool }: PolicyCall, view: PolicyView): PolicyAnswer => {
      if (tool === 'end') got.push(view.calls.find((call) => call.tool === 'pay')?.args);
      return 'allow';
    };
    const held = gate();
    const a = node('a', {
      effect: 'read',
      execute: async (text: string) => {
        got.push('a');
        await held.opened;
        return text;
      },
    });
    const pay = node('pay', {
      effect: 'once',
      inputSchema: z.string().nullable(),
      needsApproval: (text) => text !== null,
      execute: (text) => {
        got.push(text);
        return 'paid';
      },
    });
    const end = node('end', { effect: 'read', execute: (text: string) => text });
    const edges = [edge(a, pay), edge(pay, end)];
    const made = flow({ name: 'paying', inputSchema: z.string(), entry: a, exit: end, edges });
    const runtime = placed([made], { policy });
    const run = await made.start(runtime, 'x', { identity: identity() });
    await until(() => got.length === 1);
    await run.steer('PAUSE');
    held.open();
    await run.result();
    await run.resume({ nodes: { pay: { args: null } } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(got).toEqual(['a', null, null]);
    const other = await made.start(runtime, 'x', { identity: identity() });
    expect(await other.result()).toMatchObject({ status: 'paused' });
    await other.approve(undefined, { args: null });
    expect(await other.result()).toMatchObject({ status: 'finished' });
    expect(got.slice(3)).toEqual(['a', null, null]);
  });

  it('a node that is taken out leaves the flow without its exit, and the error names it', async () => {
    const w = worked('a');
    const made = routed(w);
    const run = await made.start(placed([made]), 'x', { identity: identity() });
    await until(() => w.calls.length === 1);
    await run.steer('PAUSE');
    w.gates['a']?.open();
    await run.result();
    await run.resume({ nodes: { b: { skip: true } } });
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'node_exception', data: { node: 'b', cause: { code: 'node_removed' } } },
    });
    expect(w.calls).toEqual(['a']);
  });

  it('AG-06 a new goal in the middle is nothing to a flow: it goes on with what was not begun', async () => {
    const w = worked('b');
    const made = routed(w, () => false);
    const run = await made.start(placed([made]), 'x', { identity: identity() });
    await until(() => w.calls.includes('b'));
    await run.steer('REDIRECT', { goal: 'another' });
    await until(async () => (await run.state()).goal === 'another');
    w.gates['b']?.open();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'x-a-b-d-end' });
    expect(w.calls).toEqual(['a', 'b', 'd', 'end']);
    expect((await run.replay()).divergence).toBeUndefined();
  });

  it('AG-06 a new goal at a gate withdraws its question; the node is asked for anew, and what comes after it follows', async () => {
    const w = worked();
    const [first, both] = [w.node('first'), w.node('other')];
    const gated = node('gated', { needsApproval: true, effect: 'once', execute: (text: string) => `${text}-gated` });
    const last = join('last', { of: [gated, both], execute: (texts) => Object.values(texts).join('+') });
    const end = w.node('end');
    const made = flow({
      name: 'asking',
      inputSchema: z.string(),
      entry: first,
      exit: end,
      edges: [edge(first, gated), edge(first, both), edge(last, end)],
    });
    const run = await made.start(placed([made]), 'x', { identity: identity() });
    const asked = await pausesOf(run);
    await run.steer('REDIRECT', { goal: 'another' }, { until: 'applied' });
    const again = await pausesOf(run);
    expect(again.map(({ reason }) => reason)).toEqual(['approval_required']);
    expect(again[0]?.token).not.toBe(asked[0]?.token);
    await expect(run.approve(asked[0]?.token)).rejects.toMatchObject({ code: 'superseded' });
    await run.approve(again[0]?.token);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'x-first-gated+x-first-other-end' });
    expect(w.calls).toEqual(['first', 'other', 'end']);
    expect((await run.replay()).divergence).toBeUndefined();
  });

  it('a message to the run above takes no question from a flow, which reads no messages', async () => {
    const gated = node('gated', { needsApproval: true, effect: 'once', execute: (text: string) => `${text}-gated` });
    const made = flow({ name: 'asking', inputSchema: z.string(), entry: gated, exit: gated, edges: [] });
    const tool = made.asTool();
    const planner: PlannerFunction = ({ trajectory: { count } }) =>
      count === 0 ? { kind: 'call_tool', tool: 'asking', args: 'x' } : { kind: 'finish', reason: 'goal' };
    const runtime = createRuntime({ planner, tools: [tool], journal: memoryJournal() });
    const run = await runtime.start('go', { identity: identity() });
    const [asked] = await pausesOf(run);
    await run.steer('USER_MESSAGE', { message: 'look here too' }, { until: 'applied' });
    await run.approve(asked?.token);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'value', value: 'x-gated' });
    await runtime.close();
  });

  it('replays without a divergence, also over rounds', async () => {
    const w = worked();
    const made = lengthening(w, 20);
    const run = await made.start(placed([made]), 'x', { identity: identity() });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'x-more-more-more-more-end' });
    const report = await run.replay();
    expect(report).toMatchObject({ compared: 5 });
    expect(report.divergence).toBeUndefined();
  });

  it('a fork goes on from a round with another value in it', async () => {
    const w = worked();
    const made = lengthening(w, 12);
    const run = await made.start(placed([made]), 'x', { identity: identity() });
    expect(await run.result()).toMatchObject({ payload: 'x-more-more-more-end' });
    const fork = await run.fork({ step: 1, result: { call: 0, value: 'yy' } });
    expect(await fork.result()).toMatchObject({ status: 'finished', payload: 'yy-more-more-end' });
  });

  it('a deploy with another graph is run_changed, and goes on when somebody accepts it', async () => {
    const path = temporaryFile();
    const w = worked();
    const line = (names: readonly ['a', 'b', 'end'] | readonly ['a', 'end']): Flow<string, string> => {
      const a = node('a', { effect: 'once', needsApproval: true, execute: (text: string) => `${text}-a` });
      const end = w.node('end');
      const b = w.node('b');
      const edges = names.length === 3 ? [edge(a, b), edge(b, end)] : [edge(a, end), edge(a, b)];
      return flow({ name: 'line', inputSchema: z.string(), entry: a, exit: end, edges });
    };
    const old = line(['a', 'b', 'end']);
    const first = placed([old], { journal: path });
    const { id } = await old.start(first, 'x', { identity: identity() });
    await first.run(id).result();
    await first.close();
    const changed = line(['a', 'end']);
    const second = placed([changed], { journal: path });
    await expect(second.run(id).resume()).rejects.toMatchObject({ code: 'run_changed' });
    await second.run(id).resume({ acceptChanges: true });
    await second.run(id).approve();
    expect(await second.run(id).result()).toMatchObject({ status: 'finished', payload: 'x-a-b-end' });
  });
});

it('a deploy with another graph of a flow in a flow is run_changed of the run above, and goes on when somebody accepts it there', async () => {
  const path = temporaryFile();
  const outer = (more: { inputSchema?: z.ZodString } = {}): Flow<string, string> => {
    const ask = node('ask', { effect: 'once', needsApproval: true, execute: (text: string) => `${text}-ask` });
    const end = node('end', { effect: 'read', ...more, execute: (text: string) => `${text}-end` });
    const inner = flow({ name: 'inner', inputSchema: z.string(), entry: ask, exit: end, edges: [edge(ask, end)] });
    const sub = inner.asNode('sub');
    return flow({ name: 'outer', inputSchema: z.string(), entry: sub, exit: sub, edges: [] });
  };
  const old = outer();
  const first = placed([old], { journal: path });
  const { id } = await old.start(first, 'x', { identity: identity() });
  await first.run(id).result();
  await first.close();
  const run = placed([outer({ inputSchema: z.string() })], { journal: path, onFault: () => {} }).run(id);
  await run.approve();
  await expect(run.resume()).rejects.toMatchObject({ code: 'run_changed' });
  await run.resume({ acceptChanges: true });
  expect(await run.result()).toMatchObject({ status: 'finished', payload: 'x-ask-end' });
});

/** A process that dies, and one that takes over. */
async function afterCrash<In>(
  make: (calls: string[], isFirst: boolean) => Flow<In, unknown>,
  input: In,
  dies: (calls: readonly string[]) => boolean,
): Promise<{ readonly before: string[]; readonly behind: string[]; readonly result: unknown }> {
  const clock = new VirtualClock();
  const path = temporaryFile();
  const shared = sqliteJournal({ path, clock });
  const [before, behind]: [string[], string[]] = [[], []];
  const cut = cutJournal(shared);
  const here = (made: Flow<In, unknown>, journal: typeof shared): Runtime =>
    createRuntime({ agents: [made], journal, clock });
  const made = make(before, true);
  const run = await made.start(here(made, cut.journal), input, { identity: identity() });
  await until(() => dies(before));
  // What has ended by now is written.
  let head = -1;
  for (let now = 0; now !== head; now = (await shared.read(run.id)).length) {
    head = now;
    for (let count = 0; count < 50; count += 1) await turn();
  }
  cut.cut();
  clock.advance(60_000);
  const next = make(behind, false);
  const second = here(next, shared);
  await second.run(run.id).resume();
  const result = await second.run(run.id).result();
  expect((await entriesOf(shared, second.run(run.id), 'finished')).length).toBeLessThan(2);
  await second.close();
  await shared.close();
  return { before, behind, result };
}

const never = new Promise<never>(() => {});

/** A node that notes its calls, and hangs for good where the first process is to die. */
function step<const Name extends string>(
  name: Name,
  calls: string[],
  hangs: boolean,
  effect: Effect = 'read',
  inDoubt: 'hold' | 'tell' = 'hold',
) {
  return node(name, {
    effect,
    inDoubt,
    execute: (text: string): string | Promise<string> => {
      calls.push(name);
      return hangs ? never : `${text}-${name}`;
    },
  });
}

describe('after a crash', () => {
  it('AG-41 no node runs again that has ended, over a router and a join', async () => {
    const { before, behind, result } = await afterCrash(
      (calls, isFirst) => {
        const [a, b, c] = [step('a', calls, false), step('b', calls, false), step('c', calls, isFirst)] as const;
        const other = step('other', calls, false);
        const router = predicateRouter<string>({ branches: [{ when: () => true, to: c }], default: other }).asNode('r');
        const both = join('both', { of: [b, c], effect: 'pure', execute: ({ b, c }) => `${b} ${c}` });
        return flow({
          name: 'crashed',
          inputSchema: z.string(),
          entry: a,
          exit: [both, other],
          edges: [edge(a, b), edge(a, router)],
        });
      },
      'x',
      (calls) => calls.includes('b') && calls.includes('c'),
    );
    expect(before.toSorted()).toEqual(['a', 'b', 'c']);
    expect(behind).toEqual(['c']);
    expect(result).toMatchObject({ status: 'finished', payload: 'x-a-b x-a-c' });
  });

  it('a once node that was under way may have happened: it holds the flow', async () => {
    const { behind, result } = await afterCrash(
      (calls, isFirst) => {
        const pay = step('pay', calls, isFirst, 'once');
        return flow({ name: 'paying', inputSchema: z.string(), entry: pay, exit: pay, edges: [] });
      },
      'x',
      (calls) => calls.includes('pay'),
    );
    expect(behind).toEqual([]);
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt', payload: { tool: 'pay' } }] });
  });

  it('one that tells fails the flow: node_exception says so, with outcome_unknown', async () => {
    const { behind, result } = await afterCrash(
      (calls, isFirst) => {
        const [a, pay] = [step('a', calls, false), step('pay', calls, isFirst, 'once', 'tell')] as const;
        return flow({ name: 'paying', inputSchema: z.string(), entry: a, exit: pay, edges: [edge(a, pay)] });
      },
      'x',
      (calls) => calls.includes('pay'),
    );
    expect(behind).toEqual([]);
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'node_exception', data: { node: 'pay', cause: { code: 'outcome_unknown' } } },
    });
  });

  it('a map goes on with the items that have not ended', async () => {
    const { before, behind, result } = await afterCrash(
      (calls, isFirst) => {
        const scores = map('scores', {
          effect: 'read',
          concurrency: 2,
          execute: (n: number): number | Promise<number> => {
            calls.push(`${n}`);
            return isFirst && n > 2 ? never : n * 2;
          },
        });
        return flow({ name: 'scored', inputSchema: z.array(z.number()), entry: scores, exit: scores });
      },
      [1, 2, 3, 4, 5],
      (calls) => calls.length === 4,
    );
    expect(before).toEqual(['1', '2', '3', '4']);
    expect(behind.toSorted()).toEqual(['3', '4', '5']);
    expect(result).toMatchObject({ status: 'finished', payload: [2, 4, 6, 8, 10] satisfies Json });
  });

  it('a flow in a flow goes on where it was', async () => {
    const { before, behind, result } = await afterCrash(
      (calls, isFirst) => {
        const [one, two] = [step('one', calls, false), step('two', calls, isFirst)] as const;
        const inner = flow({ name: 'inner', inputSchema: z.string(), entry: one, exit: two, edges: [edge(one, two)] });
        const [a, end] = [step('a', calls, false), step('end', calls, false)] as const;
        const sub = inner.asNode('sub');
        return flow({
          name: 'outer',
          inputSchema: z.string(),
          entry: a,
          exit: end,
          edges: [edge(a, sub), edge(sub, end)],
        });
      },
      'x',
      (calls) => calls.includes('two'),
    );
    expect(before).toEqual(['a', 'one', 'two']);
    expect(behind).toEqual(['two', 'end']);
    expect(result).toMatchObject({ status: 'finished', payload: 'x-a-one-two-end' });
  });
});
