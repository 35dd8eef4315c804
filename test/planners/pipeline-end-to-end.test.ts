import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ToolPolicy } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { openaiCompatible } from '#model/openai-compatible';
import { fileMeasures, planMetrics } from '#planners/pipeline';
import { type OpenAIServer, openaiServer, scriptedModel } from '#testing';
import { tool } from '#tools';
import { collect } from '../kit/events.ts';
import { start } from '../kit/world.ts';
import {
  branchesIn,
  call,
  end,
  type GivenStep,
  pipelineWorld,
  plan,
  play,
  type Ran,
  search,
  toolsOf,
  USAGE,
} from './pipeline-play.ts';

const STEPS: readonly GivenStep[] = [
  search('a'),
  call('read', 'b', { input: { q: { $from: 'a', path: '/about' } } }),
  { id: 'say', type: 'message', input: { $from: 'b', path: '/about' }, after: ['b'] },
  end({ found: { $from: 'b', path: '/about' } }),
];

let server: OpenAIServer | undefined;
const folders: string[] = [];
afterEach(async () => {
  await server?.close();
  server = undefined;
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'pilotage-pipeline-'));
  folders.push(made);
  return made;
}

describe('a plan from a server to its end', () => {
  it('AG-04 AG-19 a call of the function that is offered is the plan, and it is carried out', async () => {
    server = await openaiServer([
      { text: 'Here it is: {"planId":"half","steps":[', finishReason: 'length', usage: USAGE },
      { calls: [{ tool: 'submit_plan', args: { planId: 'p', steps: STEPS } }], usage: USAGE },
    ]);
    const path = await folder();
    const journal = sqliteJournal({ path: join(path, 'runs.db') });
    const measures = fileMeasures(join(path, 'measures.json'));
    const model = openaiCompatible({ baseUrl: server.url, model: 'small' });
    const made = pipelineWorld({ pipeline: { model, measures, seed: 5 }, journal });
    const run = await start(made, { query: 'Find it' });
    const events = await collect(run);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: { found: 'a' } });
    expect(made.ran).toEqual(['search a', 'read a']);
    expect(events.flatMap((event) => (event.type === 'message' ? [event] : []))).toHaveLength(1);
    const [first, second] = server.requests;
    expect(first?.body).toMatchObject({ model: 'small', temperature: 0, seed: 5, tool_choice: 'required' });
    expect(first?.body.tools).toMatchObject([{ function: { name: 'submit_plan' } }]);
    expect(second?.body.messages).toHaveLength(2);
    expect(planMetrics(events).rows).toMatchObject([{ model: 'small', tries: 2, valid: 1, unreadable: 1, repairs: 1 }]);
    expect((await measures.load())?.['small']).toMatchObject([{ parsed: false }, { parsed: true, valid: true }]);
    await made.runtime.close();
    await journal.close();
  });

  it('AG-32 lines of a stream run as they come', async () => {
    const text = STEPS.map((step) => JSON.stringify({ type: 'step', step })).join('\n');
    server = await openaiServer([
      { text: `${text}\n`, usage: USAGE, errorEvent: { afterEvents: 10, message: 'overloaded', code: 503 } },
      { text: `${text}\n{"type":"finish"}`, usage: USAGE },
    ]);
    const model = openaiCompatible({ baseUrl: server.url, model: 'small' });
    const { ran, result, steps, tries } = await play({ pipeline: { model: [model], stream: true } });
    expect(result).toMatchObject({ reason: 'goal', payload: { found: 'a' } });
    expect(ran).toEqual(['search a', 'read a']);
    // The first stream broke off after a step of it ran: the plan was closed, and its rest planned.
    expect(steps.map(({ error }) => error?.code)).toEqual(['plan_invalid', undefined]);
    expect(branchesIn(steps[1]).map(({ id }) => id)).toEqual(['b', 'say', 'end']);
    expect(tries.map(({ purpose, result: came }) => [purpose, came])).toEqual([
      ['plan', 'failed'],
      ['rest', 'valid'],
    ]);
  });

  it('a model without native calls is asked for JSON', async () => {
    server = await openaiServer([{ text: `\`\`\`json\n${JSON.stringify({ planId: 'p', steps: STEPS })}\n\`\`\`` }]);
    const model = { model: openaiCompatible({ baseUrl: server.url, model: 'small' }), toolCalls: 'text' as const };
    const { ran } = await play({ pipeline: { model } });
    expect(ran).toEqual(['search a', 'read a']);
    expect(server.requests[0]?.body).toMatchObject({ response_format: { type: 'json_schema' } });
    expect(server.requests[0]?.body.tools).toBeUndefined();
  });
});

describe('AG-05 nothing runs that is not allowed', () => {
  it('a policy that changed in between stops a step whose plan had passed', async () => {
    const ran: Ran = [];
    const forbidden = new Set<string>();
    const asked: unknown[] = [];
    const policy: ToolPolicy = ({ tool: name, args }) => {
      asked.push(args);
      return forbidden.has(name) ? { deny: `${name} is closed by now` } : 'allow';
    };
    const close = tool({
      name: 'close',
      description: 'Closes.',
      effect: 'read',
      inputSchema: { type: 'object' },
      execute: () => {
        forbidden.add('read');
        return { about: 'closed' };
      },
    });
    const steps = [
      call('close', 'c', { input: {} }),
      call('read', 'r', { input: { q: { $from: 'c', path: '/about' } } }),
      search('s', 's', { after: ['c'] }),
      end(),
    ];
    const model = scriptedModel([plan(...steps)]);
    const { result, steps: taken } = await play({
      pipeline: { model, replans: 0 },
      policy,
      tools: [...toolsOf(ran), close],
    });
    expect(ran).toEqual(['search s']);
    const outcomes = taken[0]?.calls.map(({ outcome }) => ('error' in outcome ? outcome.error.code : outcome.kind));
    expect(outcomes).toContain('policy_refused');
    expect(result).toMatchObject({ status: 'failed', error: { data: { failed: ['r'] } } });
    // Once as it was planned, and once with what the reference stood for.
    expect(asked).toContainEqual({ q: { $from: 'c', path: '/about' } });
    expect(asked).toContainEqual({ q: 'closed' });
  });

  it('no step runs when one of the plan is bad', async () => {
    const good = [search('a'), search('b')];
    const model = scriptedModel(() => plan(...good, call('teleport', 'x')));
    expect((await play({ pipeline: { model } })).ran).toEqual([]);
  });
});

describe('AG-06 a plan is a decision as any other', () => {
  it('an approval parks its step, while the others go on', async () => {
    const ran: Ran = [];
    const send = tool({
      name: 'send',
      description: 'Sends.',
      effect: 'once',
      needsApproval: true,
      inputSchema: { type: 'object' },
      execute: ({ q }) => {
        ran.push(`send ${String(q)}`);
        return 'sent';
      },
    });
    const steps = [call('send', 'w'), search('s', 's', { after: [] }), end({ $from: 'w' })];
    const made = pipelineWorld({
      pipeline: { model: scriptedModel([plan(...steps)]) },
      tools: [...toolsOf(ran), send],
    });
    const run = await start(made, { query: 'Find it' });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(ran).toEqual(['search s']);
    await run.approve();
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: 'sent' });
    expect(ran).toEqual(['search s', 'send w']);
  });

  it("a step's own budget holds, and what tries used counts in the run's", async () => {
    const ran: Ran = [];
    const dear = tool({
      name: 'dear',
      description: 'Costs.',
      effect: 'read',
      costUsd: 0.0099,
      inputSchema: { type: 'object' },
      execute: () => 'paid',
    });
    const prices = { input: 1, output: 1 };
    const { result, steps } = await play({
      pipeline: { model: scriptedModel([plan(call('dear', 'd'), end())]), prices, replans: 0 },
      tools: [...toolsOf(ran), dear],
      start: { limits: { costUsd: 0.01 } },
    });
    expect(steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'budget_exceeded' } });
    expect(result).toMatchObject({ status: 'failed', usage: { costMicroUsd: 110 } });
  });

  it('internal steps go to the tool that is named for them', async () => {
    const seen: unknown[] = [];
    const inside = tool({
      name: 'inside',
      description: 'Works inside.',
      effect: 'pure',
      inputSchema: { type: 'object' },
      execute: (args) => {
        seen.push(args);
        return 'done';
      },
    });
    const steps = [{ id: 'i', type: 'internal', input: { n: 1 }, meta: { why: 'because' } }, end({ $from: 'i' })];
    const more = { tools: [inside] };
    const { result } = await play({
      pipeline: { model: scriptedModel([plan(...steps)]), internal: 'inside' },
      ...more,
    });
    expect(result).toMatchObject({ reason: 'goal', payload: 'done' });
    expect(seen).toEqual([{ id: 'i', input: { n: 1 }, meta: { why: 'because' } }]);
    const refused = await play({ pipeline: { model: scriptedModel(() => plan(...steps)) }, ...more });
    expect(refused.result).toMatchObject({ reason: 'no_path' });
    expect(JSON.stringify(refused.result)).toContain('internal_unhandled');
  });
});
