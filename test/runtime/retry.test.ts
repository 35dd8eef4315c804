/** A plan of which a node has failed: the run fails with its nodes, and goes on with them; what has a value keeps it. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Json, local, type Planner } from '#core';
import { edge, flow, map, node } from '#flow';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { graph, type Plan } from '#planners/graph';
import { htn, htnDomain } from '#planners/htn';
import { pipeline } from '#planners/pipeline';
import { createRuntime, type Run } from '#runtime';
import { scriptedModel } from '#testing';
import { type AgentTool, agent, type Tool } from '#tools';
import { finish } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { placed } from '../kit/flows.ts';
import { changed } from '../kit/journals.ts';
import { ANY, make } from '../kit/tools.ts';
import { gate } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity = local('ana');

/** Tools that note their calls; those that are named fail until they are mended. */
function works(...broken: string[]) {
  const calls: string[] = [];
  const down = new Set(broken);
  const tool = (name: string, more: Partial<Tool> = {}): Tool =>
    make(
      name,
      () => {
        calls.push(name);
        if (down.has(name)) throw new Error(`${name} is down`);
        return `${name} done`;
      },
      { effect: 'once', ...more },
    );
  return { calls, tool, mend: () => down.clear() };
}

const step = (id: string, ...after: string[]) => ({ id, type: 'tool' as const, toolId: id, after });
const PLAN: Plan = {
  planId: 'trip',
  steps: [step('charge'), step('book', 'charge'), step('mail', 'book'), step('log', 'charge')],
};

function trip(broken: string[], planner: Planner = graph({ plan: PLAN })) {
  const made = works(...broken);
  const tools = ['charge', 'book', 'mail', 'log'].map((name) => made.tool(name));
  return { ...made, tools, options: { planner, tools } };
}

async function retries(run: Run, journal: { read(id: string): Promise<readonly { kind: string }[]> }) {
  return (await journal.read(run.id)).filter(({ kind }) => kind === 'reopened');
}

describe('a plan of which a node has failed', () => {
  it('fails its run with its nodes: what failed and why, what was skipped for it, what has a value', async () => {
    const { options } = trip(['book']);
    const result = await (await start(world(options))).result();
    expect(result).toMatchObject({
      status: 'failed',
      error: {
        code: 'plan_failed',
        message: expect.stringContaining('"book"'),
        data: {
          plan: 'trip',
          failed: ['book'],
          skipped: ['mail'],
          done: ['charge', 'log'],
          errors: { book: { message: 'book is down' } },
        },
      },
    });
  });

  it('goes on from there, and makes no call twice that has a value', async () => {
    const { options, calls, mend } = trip(['book']);
    const made = world(options);
    const run = await start(made);
    await run.result();
    expect(calls.toSorted()).toEqual(['book', 'charge', 'log']);
    mend();
    await run.retry();
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'goal',
      payload: { results: { charge: 'charge done', book: 'book done', mail: 'mail done', log: 'log done' } },
    });
    expect(calls.toSorted()).toEqual(['book', 'book', 'charge', 'log', 'mail']);
    expect(await retries(run, made.journal)).toMatchObject([{ retries: { step: 0, calls: [1, 2] } }]);
    const reopened = (await collect(run)).filter(({ type }) => type === 'run.reopened');
    expect(reopened).toMatchObject([{ retries: { step: 0, nodes: ['book', 'mail'] } }]);
    const { plan } = await run.state();
    expect(plan?.nodes.map(({ status }) => status)).toEqual(['done', 'done', 'done', 'done']);
  });

  it('goes on in another process, in the name of whoever asked, and may fail again', async () => {
    const path = temporaryFile();
    const { options, calls, mend } = trip(['book', 'mail']);
    const first = createRuntime({ ...options, journal: sqliteJournal({ path }) });
    const { id } = await first.start('q', { identity });
    await first.run(id).result();
    await first.close();
    const journal = sqliteJournal({ path });
    const second = createRuntime({ ...options, journal });
    const { tenant, user, session } = identity;
    const as = { tenant, user, session, scope: 'owner_user' } as const;
    await second.run(id, { as }).retry();
    expect(await second.run(id).result()).toMatchObject({ status: 'failed', error: { data: { failed: ['book'] } } });
    mend();
    await second.run(id, { as }).retry();
    expect(await second.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls.filter((name) => name === 'charge')).toHaveLength(1);
    expect((await journal.read(id)).filter(({ kind }) => kind === 'reopened')).toMatchObject([{ by: as }, { by: as }]);
    await second.close();
    await journal.close();
  });

  it('carries out again only the nodes that are named', async () => {
    const { options, calls, mend } = trip(['book', 'log']);
    const run = await start(world(options));
    await run.result();
    mend();
    await run.retry({ nodes: ['log'] });
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { data: { failed: ['book'], skipped: ['mail'] } },
    });
    expect(calls.filter((name) => name === 'book')).toHaveLength(1);
    await run.retry({ nodes: ['book'] });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls.toSorted()).toEqual(['book', 'book', 'charge', 'log', 'log', 'mail']);
  });

  it('is retried for no node that it does not have, or that has not failed', async () => {
    const { options, calls } = trip(['book']);
    const made = world(options);
    const run = await start(made);
    await run.result();
    const before = (await made.journal.read(run.id)).length;
    await expect(run.retry({ nodes: ['nobody'] })).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.retry({ nodes: ['charge'] })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('has a value'),
    });
    await expect(run.retry({ nodes: ['mail'] })).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.retry({ nodes: 'book' as never })).rejects.toMatchObject({ code: 'invalid_config' });
    for (const nodes of [[], new Array(2), Object.assign(['book'], { length: 2 }), [5], [undefined]])
      await expect(run.retry({ nodes: nodes as never })).rejects.toMatchObject({ code: 'payload_invalid' });
    expect(await made.journal.read(run.id)).toHaveLength(before);
    expect(calls).toHaveLength(3);
    expect((await made.journal.get(run.id))?.status).toBe('failed');
  });

  it('is not there to be retried in a run that finished, or that failed for another reason', async () => {
    const done = await start(world({ planner: () => finish() }));
    await done.result();
    await expect(done.retry()).rejects.toMatchObject({ code: 'run_ended' });
    const throwing = () => {
      throw new Error('broken');
    };
    const failed = await start(world({ planner: throwing }));
    await failed.result();
    await expect(failed.retry()).rejects.toMatchObject({ code: 'payload_invalid' });
    const asking = await start(world({ planner: () => ({ kind: 'request_pause', reason: 'await_input' }) }));
    await asking.result();
    await expect(asking.retry()).rejects.toMatchObject({ code: 'payload_invalid' });
  });

  it('is not retried while it goes on, whatever nodes are named', async () => {
    const [begun, broken] = [gate(), gate()];
    const book = make(
      'book',
      async () => {
        begun.open();
        await broken.opened;
        throw new Error('book is down');
      },
      { effect: 'read' },
    );
    const made = world({ planner: graph({ plan: { steps: [step('book')] } }), tools: [book] });
    const run = await start(made);
    await begun.opened;
    for (const options of [{ nodes: ['zzz'] }, { nodes: ['book'] }, {}])
      await expect(run.retry(options)).rejects.toMatchObject({
        code: 'payload_invalid',
        message: expect.stringContaining('the run goes on'),
      });
    broken.open();
    expect(await run.result()).toMatchObject({ status: 'failed', error: { data: { failed: ['book'] } } });
  });

  it('is not retried with other nodes while a retry is under way, which goes on', async () => {
    const [begun, mended] = [gate(), gate()];
    let calls = 0;
    const slow = make(
      'slow',
      async () => {
        calls += 1;
        if (calls === 1) throw new Error('slow is down');
        begun.open();
        await mended.opened;
        return 'slow done';
      },
      { effect: 'read' },
    );
    const made = works();
    const plan: Plan = { steps: [step('charge'), step('slow')] };
    const run = await start(world({ planner: graph({ plan }), tools: [made.tool('charge'), slow] }));
    await run.result();
    await run.retry({ nodes: ['slow', 'slow'] });
    await begun.opened;
    await expect(run.retry({ nodes: ['charge'] })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.retry({ nodes: ['slow'] });
    await run.retry();
    mended.open();
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    expect(calls).toBe(2);
  });

  it('is retried once by two who ask at the same time', async () => {
    const { options, calls, mend } = trip(['book']);
    const made = world(options);
    const run = await start(made);
    await run.result();
    mend();
    await Promise.all([run.retry(), made.runtime.run(run.id).retry()]);
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    expect(await retries(run, made.journal)).toHaveLength(1);
    expect(calls.filter((name) => name === 'book')).toHaveLength(2);
  });

  it('finds out first what became of a call that may have happened, and makes none twice', async () => {
    const sent: string[] = [];
    let known = false;
    const send = make('send', () => Promise.reject(new Error('lost')), {
      effect: 'once',
      inDoubt: 'tell',
      timeoutMs: 5,
      execute: (_: unknown, { signal }: { signal: AbortSignal }) => {
        sent.push('sent');
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      reconcile: () => (known ? { status: 'done', value: 'found' } : { status: 'unknown' }),
    } as never);
    const plan = { steps: [{ id: 'send', type: 'tool' as const, toolId: 'send' }] };
    const made = world({ planner: graph({ plan }), tools: [send] });
    const run = await start(made);
    while ((await run.state()).ending === null) {
      made.clock.advance(2_000);
      await new Promise(setImmediate);
    }
    expect(await run.result()).toMatchObject({ status: 'failed', error: { data: { unknown: ['send'] } } });
    await run.retry();
    // The look-up does not know either: a person is asked, although the planner was told before.
    const asked = await run.result();
    expect(asked).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    known = true;
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: { results: { send: 'found' } } });
    expect(sent).toHaveLength(1);
  });

  it('is not made again when its call has happened and its value was lost', async () => {
    let sent = 0;
    const send = make(
      'send',
      () => {
        sent += 1;
        return { not: 'a number' };
      },
      { effect: 'once', outputSchema: z.number(), reconcile: () => ({ status: 'done', value: 7 }) } as never,
    );
    const plan = { steps: [{ id: 'send', type: 'tool' as const, toolId: 'send' }] };
    const run = await start(world({ planner: graph({ plan }), tools: [send] }));
    expect(await run.result()).toMatchObject({ status: 'failed' });
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: { results: { send: 7 } } });
    expect(sent).toBe(1);
  });
});

describe('a plan that pauses when it has failed', () => {
  it('asks to be retried, and answers to nothing else', async () => {
    const planner = graph({ plan: PLAN, onFailedPlan: 'pause' });
    const { options, calls, mend } = trip(['book'], planner);
    const run = await start(world(options));
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'plan_failed', payload: { code: 'plan_failed', failed: ['book'], skipped: ['mail'] } }],
    });
    await expect(run.approve()).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.reject()).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.retry({ nodes: ['charge'] })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.retry({ nodes: ['book'] });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'plan_failed' }] });
    mend();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls.toSorted()).toEqual(['book', 'book', 'book', 'charge', 'log', 'mail']);
  });

  it('is not held by a retry of no nodes, which is stored nowhere and which an older process may have stored', async () => {
    const path = temporaryFile();
    const { options, mend } = trip(['book'], graph({ plan: PLAN, onFailedPlan: 'pause' }));
    const first = createRuntime({ ...options, journal: sqliteJournal({ path }) });
    const { id } = await first.start('q', { identity });
    const paused = await first.run(id).result();
    const token = paused.status === 'paused' ? paused.pauses[0]?.token : undefined;
    for (const nodes of [[], new Array(2)])
      await expect(first.run(id).retry({ nodes })).rejects.toMatchObject({ code: 'payload_invalid' });
    await first.close();
    const journal = sqliteJournal({ path });
    expect(await journal.inbox(id)).toEqual([]);
    const retry = (named: Json) => ({ id: String(named), type: 'RESUME' as const, payload: { token, retry: named } });
    for (const named of [[], 'book', [5], ['nobody']]) await journal.signal(id, retry(named as Json) as never);
    const second = createRuntime({ ...options, journal });
    const run = second.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'plan_failed' }] });
    const refused = (await journal.read(id)).filter(({ kind }) => kind === 'control');
    expect(refused).toHaveLength(4);
    for (const one of refused) expect(one).toMatchObject({ applied: false, error: { code: 'payload_invalid' } });
    expect(await journal.inbox(id)).toEqual([]);
    mend();
    await run.retry();
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    await second.close();
  });

  it('is cancelled as any run', async () => {
    const { options } = trip(['book'], graph({ plan: PLAN, onFailedPlan: 'pause' }));
    const run = await start(world(options));
    await run.result();
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
  });

  it('is asked for by one of two words', () => {
    const planner = graph({ plan: PLAN, onFailedPlan: 'stop' as never });
    expect(() => createRuntime({ planner })).toThrow('use fail or pause');
  });
});

describe('the fork of a run whose plan has failed', () => {
  it('keeps what has a value, and carries out what has failed', async () => {
    const { options, calls, mend } = trip(['book']);
    const run = await start(world(options));
    await run.result();
    mend();
    const fork = await run.fork({ effects: 'allowed' });
    expect(await fork.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls.toSorted()).toEqual(['book', 'book', 'charge', 'log', 'mail']);
    expect(await run.result()).toMatchObject({ status: 'failed' });
  });

  it('takes the steps of a run that had failed and went on', async () => {
    const { options, calls, mend } = trip(['book']);
    const run = await start(world(options));
    await run.result();
    mend();
    await run.retry();
    await run.result();
    const fork = await run.fork();
    expect(await fork.result()).toMatchObject({ payload: { results: { charge: 'charge done', mail: 'mail done' } } });
    expect(calls).toHaveLength(5);
  });
});

describe('other plans that have failed', () => {
  it('of a flow go on with the node that failed, in the items of its map', async () => {
    const seen: string[] = [];
    let isDown = true;
    const charge = node('charge', {
      effect: 'once',
      execute: (cities: readonly string[]) => {
        seen.push('charge');
        return [...cities];
      },
    });
    const book = map('book', {
      effect: 'once',
      concurrency: 1,
      execute: (city: string) => {
        seen.push(city);
        if (isDown && city === 'Oslo') throw new Error('full');
        return `${city} booked`;
      },
    });
    const trips = flow({
      name: 'trips',
      inputSchema: z.array(z.string()),
      entry: charge,
      exit: book,
      edges: [edge(charge, book)],
    });
    const runtime = placed([trips]);
    const run = await trips.start(runtime, ['Bergen', 'Oslo', 'Rome'], { identity });
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'node_exception' } });
    expect(seen).toEqual(['charge', 'Bergen', 'Oslo']);
    isDown = false;
    await run.retry();
    expect(await run.result()).toMatchObject({
      status: 'finished',
      payload: ['Bergen booked', 'Oslo booked', 'Rome booked'],
    });
    expect(seen).toEqual(['charge', 'Bergen', 'Oslo', 'Oslo', 'Rome']);
  });

  it('of a flow may pause as well', async () => {
    let isDown = true;
    const only = node('only', {
      effect: 'read',
      execute: (n: number) => {
        if (isDown) throw new Error('no');
        return n + 1;
      },
    });
    const asks = flow({ name: 'asks', inputSchema: z.number(), entry: only, exit: only, onFailedPlan: 'pause' });
    const run = await asks.start(placed([asks]), 1, { identity });
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'plan_failed', payload: { code: 'node_exception', node: 'only' } }],
    });
    isDown = false;
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 2 });
  });

  it('of a pipeline that has no replan left', async () => {
    const { calls, tool, mend } = works('b');
    const steps = ['a', 'b', 'c'].map((id) => ({ id, type: 'tool', toolId: id, input: {} }));
    const model = scriptedModel([{ text: JSON.stringify({ steps }) }]);
    const run = await start(
      world({ planner: pipeline({ model, replans: 0 }), tools: ['a', 'b', 'c'].map((name) => tool(name)) }),
    );
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'plan_failed', data: { failed: ['b'], skipped: ['c'], done: ['a'] } },
    });
    mend();
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls).toEqual(['a', 'b', 'b', 'c']);
    expect(model.calls).toHaveLength(1);
  });

  it('of a call that fails fast name all that failed, and go on with what they had stopped', async () => {
    const { calls, tool, mend } = works('a', 'b');
    const branches = ['a', 'b', 'c'].map((id) => ({ id, tool: id, args: {}, ...(id === 'c' ? { after: ['a'] } : {}) }));
    const next: Planner['next'] = ({ trajectory }) => {
      if (trajectory.count === 0)
        return { kind: 'call_parallel', plan: 'p', failFast: true, onInvalid: 'per_branch', branches };
      const isDone = trajectory.step(0)?.calls.every(({ outcome }) => outcome.kind === 'value');
      if (isDone === true) return finish('goal');
      throw new Error('a node has failed');
    };
    const run = await start(
      world({ planner: { name: 'own', next }, tools: ['a', 'b', 'c'].map((name) => tool(name)) }),
    );
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
    await expect(run.retry({ nodes: ['a'] })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('must be named too: b'),
    });
    mend();
    await run.retry({ nodes: ['a', 'b'] });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls.toSorted()).toEqual(['a', 'a', 'b', 'b', 'c']);
  });

  it('of htn, when no other way is left', async () => {
    const { calls, tool, mend } = works('b');
    const domain = htnDomain({ operators: { a: () => true, b: () => true }, tasks: {} });
    const planner = htn({
      domain,
      state: () => ({ k: [] }),
      todo: () => [['a'], ['b']],
      step: ([name]) => ({ type: 'tool', toolId: String(name), input: {} }),
    });
    const run = await start(world({ planner, tools: [tool('a'), tool('b')] }));
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'plan_failed', data: { failed: [expect.any(String)], reasons: expect.any(Array) } },
    });
    mend();
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls).toEqual(['a', 'b', 'b']);
  });
});

describe('a node that a task carries out', () => {
  /** A tool of an agent whose plan makes two calls, of which the second fails. */
  function below() {
    const made = works('second', 'beside');
    const steps = ['first', 'second'].map((toolId) => ({ id: toolId, type: 'tool' as const, toolId }));
    const helper = agent({
      name: 'helper',
      planner: graph({ name: 'inner', plan: { steps } }),
      tools: [made.tool('first'), made.tool('second')],
    });
    const help: AgentTool = { name: 'help', description: 'help', inputSchema: ANY, effect: 'once', agent: helper };
    return { ...made, help };
  }
  const alone = graph({ plan: { steps: [{ id: 'help', type: 'tool', toolId: 'help' }] } });

  it('goes on in its task, whose values are kept, and whose usage counts once', async () => {
    const { help, calls, mend } = below();
    const made = world({ planner: alone, tools: [help], limits: { calls: 10, steps: 20 } });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed', error: { data: { failed: ['help'] } } });
    const before = (await run.state()).totals;
    mend();
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls).toEqual(['first', 'second', 'second']);
    const tasks = await made.runtime.list({ parent: run.id });
    expect(tasks).toHaveLength(1);
    const { totals } = await run.state();
    expect([before.calls, before.taskCalls, totals.calls, totals.taskCalls]).toEqual([1, 2, 1, 3]);
    expect([before.taskSteps, totals.taskSteps]).toEqual([1, 1]);
    const entries = await made.journal.read(run.id);
    expect(entries.filter(({ kind }) => kind === 'task_ended')).toHaveLength(2);
    expect(entries.filter(({ kind }) => kind === 'reopened')).toMatchObject([
      { retries: { calls: [0], tasks: [tasks[0]?.identity.run] } },
    ]);
  });

  it('may fail again, and be retried again', async () => {
    const { help, calls, mend } = below();
    const run = await start(world({ planner: alone, tools: [help] }));
    await run.result();
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'plan_failed' } });
    mend();
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls).toEqual(['first', 'second', 'second', 'second']);
  });

  it('goes on when the process died after the run was reopened, and before its task was', async () => {
    const { help, calls, mend } = below();
    const journal = memoryJournal();
    const options = { planner: alone, tools: [help] };
    const first = world({ ...options, journal });
    const run = await start(first);
    await run.result();
    await first.runtime.close();
    mend();
    const dying = world({
      ...options,
      journal: changed(journal, {
        claim: async (request) => {
          if (request.run !== run.id && request.reopens === true) throw new Error('the plug is pulled');
          return journal.claim(request);
        },
      }),
    });
    await expect(dying.runtime.run(run.id).retry()).rejects.toThrow('the plug');
    await dying.runtime.close();
    const second = world({ ...options, journal });
    await second.runtime.run(run.id).retry();
    expect(await second.runtime.run(run.id).result()).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['first', 'second', 'second']);
  });

  it('is carried out by a new task when its own ended for good', async () => {
    let isMended = false;
    const next: Planner['next'] = () => {
      const reason = isMended ? 'goal' : 'no_path';
      return { kind: 'finish', reason, payload: reason };
    };
    const helper: Planner = { name: 'helper', next };
    const help: AgentTool = {
      name: 'help',
      description: 'help',
      inputSchema: ANY,
      effect: 'once',
      agent: agent({ name: 'helper', planner: helper }),
    };
    const made = world({ planner: alone, tools: [help] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed' });
    isMended = true;
    await run.retry();
    expect(await run.result()).toMatchObject({ payload: { results: { help: 'goal' } } });
    const tasks = await made.runtime.list({ parent: run.id });
    expect(tasks.map(({ identity: { run: id } }) => id).toSorted()).toEqual([`${run.id}.0.0`, `${run.id}.0.0~2`]);
  });

  it('that is paused, since its own plan has failed, is retried through the run above it', async () => {
    const made = works('inner');
    const plan: Plan = { steps: [step('inner')] };
    const helper = agent({
      name: 'helper',
      planner: graph({ name: 'asking', plan, onFailedPlan: 'pause' }),
      tools: [made.tool('inner')],
    });
    const help: AgentTool = { name: 'help', description: 'help', inputSchema: ANY, effect: 'once', agent: helper };
    const run = await start(world({ planner: alone, tools: [help] }));
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'plan_failed' }] });
    made.mend();
    await run.retry();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made.calls).toEqual(['inner', 'inner']);
  });

  it('goes on in its task also when the run above was paused for it, and is resumed', async () => {
    const { help, calls, mend } = below();
    const plan: Plan = { steps: [{ id: 'help', type: 'tool', toolId: 'help' }] };
    const made = world({ planner: graph({ plan, onFailedPlan: 'pause' }), tools: [help] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'plan_failed' }] });
    mend();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(calls).toEqual(['first', 'second', 'second']);
  });

  it('is not itself retried: its owner is', async () => {
    const { help } = below();
    const made = world({ planner: alone, tools: [help] });
    const run = await start(made);
    await run.result();
    await expect(made.runtime.run(`${run.id}.0.0`).retry()).rejects.toMatchObject({ code: 'run_ended' });
  });
});
