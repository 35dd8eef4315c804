/**
 * The program whose journal is kept here as an earlier version wrote it: a planner with one script for each query, a planner on a
 * scripted model, and tools of every effect. A process that holds calls is as good as dead when its file is copied.
 */

import { flow, node } from '#flow';
import {
  type Agent,
  agent,
  agentTool,
  createRuntime,
  type Json,
  type Planner,
  type Runtime,
  type RuntimeOptions,
  react,
  type Tool,
  tool,
} from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Branch, Decision, PlannerFunction, RunView } from '#pilotage/planner';
import type { AgentTool } from '#pilotage/tools';
import { scriptedModel } from '#testing';

export const RUNS = {
  finished: 'old-finished',
  failed: 'old-failed',
  cancelled: 'old-cancelled',
  reacted: 'old-reacted',
  gated: 'old-gated',
  asking: 'old-asking',
  doubtful: 'old-doubtful',
  inDoubt: 'old-in-doubt',
  parent: 'old-parent',
  pending: 'old-pending',
  flowed: 'old-flowed',
  delegating: 'old-delegating',
} as const;

export interface World {
  /** What was done in the world: the name of the tool and its idempotency key. */
  readonly done: string[];
  /** Calls of these tools never come back. */
  readonly holds: ReadonlySet<string>;
  /** What the planner was shown. */
  readonly views: RunView[];
}

const ANY = { type: 'object' } as const;
const LARGE_CHARS = 33_000;

const call = (name: string, args: Json = {}): Decision => ({ kind: 'call_tool', tool: name, args });
const answer = (payload: Json): Decision => ({ kind: 'finish', reason: 'goal', payload });
const background = (query: string): Decision => ({
  kind: 'spawn_task',
  task: 'background',
  groupId: 'helpers',
  spec: { description: `does ${query}`, query, seal: true },
});

const CUT: readonly Branch[] = [
  { tool: 'look', args: { at: 'before' } },
  { tool: 'pay', args: { euros: 5 } },
  { tool: 'post', args: { text: 'hello' } },
];

const SCRIPTS: Readonly<Record<string, readonly Decision[]>> = {
  finish: [
    call('look', { at: 'sea' }),
    { kind: 'call_parallel', branches: [...CUT] },
    call('large'),
    answer({ ok: true }),
  ],
  fail: [call('look'), { kind: 'call_tool', tool: '', args: {} }],
  gate: [call('look'), call('guarded', { what: 'door' }), answer('opened')],
  ask: [{ kind: 'request_pause', reason: 'await_input', payload: { question: 'Which?' } }, answer('told')],
  cut: [call('look', { at: 'first' }), { kind: 'call_parallel', branches: [...CUT] }, answer('went on')],
  doubt: [call('fails'), answer('settled')],
  parent: [
    background('helper'),
    { kind: 'await_task', taskId: `${RUNS.parent}.0.0`, groupId: 'helpers' },
    answer('all in'),
  ],
  helper: [call('guarded', { what: 'shed' }), answer('helped')],
  pending: [call('look', { at: 'late' }), answer('done late')],
  delegate: [call('delegate', { to: 'somebody' }), answer('delegated')],
};

function tools({ done, holds }: World): readonly Tool[] {
  const make = (name: string, more: Pick<Tool, 'effect'> & Partial<Tool>, value: Json): Tool =>
    tool({
      name,
      description: `The tool ${name}`,
      inputSchema: ANY,
      execute: (_, { idempotencyKey }) => {
        done.push(`${name} ${idempotencyKey}`);
        return holds.has(name) ? new Promise<Json>(() => {}) : value;
      },
      ...more,
    } as Tool) as Tool;
  return [
    make('look', { effect: 'read' }, { seen: 'much' }),
    make('pay', { effect: 'once', costUsd: 0.25 }, 'paid'),
    make('post', { effect: 'keyed' }, 'posted'),
    make('fails', { effect: 'once', timeoutMs: 60_000 }, 'made'),
    make('guarded', { effect: 'once', needsApproval: true }, 'let in'),
    make('large', { effect: 'pure' }, { text: 'x'.repeat(LARGE_CHARS) }),
  ];
}

/** Four words a reply: one call, and then an answer that says how many turns were in the request. */
function reacting(world: World): Agent {
  const model = scriptedModel(({ prompt }) =>
    prompt.some(({ role }) => role === 'tool')
      ? { text: `Answered after ${prompt.filter(({ role }) => role === 'user').length} user turns.` }
      : { calls: [{ id: 'call_1', tool: 'look', args: { at: 'model' } }] },
  );
  return { name: 'react', planner: react({ model }), tools: tools(world) };
}

/** A call of it is a run of its own, which waits for an approval. */
function delegate(world: World): AgentTool {
  const next: PlannerFunction = ({ trajectory }) =>
    trajectory.count === 0 ? call('guarded', { what: 'gate' }) : answer('as you wish');
  const delegated = agent({ name: 'delegate', planner: { name: 'delegate', next }, tools: tools(world) });
  return agentTool(delegated, { description: 'Has it done.', inputSchema: ANY, effect: 'pure' });
}

function shipping({ done }: World): Agent {
  const send = node('send', {
    effect: 'once',
    needsApproval: true,
    execute: (args: Json, { idempotencyKey }) => {
      done.push(`send ${idempotencyKey}`);
      return { sent: args };
    },
  });
  return flow({ name: 'shipping', inputSchema: ANY, entry: send, exit: send });
}

export function program(world: World, journal: Journal, more: Partial<RuntimeOptions> = {}): Runtime {
  const next: PlannerFunction = (view) => {
    world.views.push(view);
    const script = SCRIPTS[view.query];
    return script?.[view.trajectory.count] ?? answer(`no script for ${view.query}`);
  };
  const planner: Planner = { name: 'scripts', version: '1', wakeMode: 'push', next };
  return createRuntime({
    planner,
    tools: [...tools(world), delegate(world)],
    agents: [reacting(world), shipping(world)],
    journal,
    memory: { strategy: 'window' },
    maxLiveRuns: 50,
    maxLiveRunsPerTenant: 50,
    ...more,
  });
}
