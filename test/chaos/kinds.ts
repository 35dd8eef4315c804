/** The kinds of runs: the planners of the double act, and some that wait for people, for tasks in the background, for a time and for events. */

import type { Tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';
import type { Agent } from '#tools';
import { flowAgent, mapAgent } from '../double-act/flows.ts';
import { htnPlanner, parallelPlanner, rulesPlanner, taskPlanner } from '../double-act/planners.ts';
import { type Scenario, scenarios } from '../double-act/scenarios.ts';
import { toolsOf, type World } from '../double-act/world.ts';
import { streamingAgent, type WrittenRow } from './streaming.ts';
import { undoAsks, undoableAsks, undoingAgent } from './undoing.ts';
import { waitingTools } from './waiting.ts';

export const kinds = [
  'parallel',
  'rules',
  'htn',
  'flow',
  'map',
  'task',
  'background',
  'gated',
  'asking',
  'waiting',
  'undoing',
  'streaming',
] as const;
export type KindName = (typeof kinds)[number];

const LIKE_PARALLEL: ReadonlySet<KindName> = new Set(['background', 'gated', 'asking', 'waiting']);

/** What a run of the kind is to bring about. */
export function asksOf(kind: KindName): Scenario['asks'] {
  if (kind === 'undoing') return undoableAsks;
  if (kind === 'streaming') return () => [];
  const like = LIKE_PARALLEL.has(kind) ? 'parallel' : kind;
  const scenario = scenarios.find(({ name }) => name === like);
  if (scenario === undefined) throw new Error(`There is no scenario ${like}.`);
  return scenario.asks;
}

/** What it may bring about beside that. */
export function undoAsksOf(kind: KindName): ReturnType<Scenario['asks']> {
  return kind === 'undoing' ? undoAsks() : [];
}

/** The agents of all kinds, each under the name of its kind. @param tell hears of each row of a stream before it is written. */
export function agentsOf(
  world: World,
  random: () => number,
  tell: (run: string, row: WrittenRow) => void,
): readonly (Agent & { readonly name: KindName })[] {
  const tools = toolsOf(world);
  const gated = tools.map((tool): Tool => (tool.name === 'pay' ? { ...tool, needsApproval: true } : tool));
  const flow = flowAgent(world);
  const map = mapAgent(world);
  return [
    { name: 'parallel', planner: { name: 'parallel', next: parallelPlanner }, tools },
    { name: 'rules', planner: rulesPlanner, tools },
    { name: 'htn', planner: htnPlanner, tools },
    { name: 'flow', planner: flow.planner, tools: flow.tools },
    { name: 'map', planner: map.planner, tools: map.tools },
    { name: 'task', planner: { name: 'task', next: taskPlanner }, tools },
    { name: 'background', planner: { name: 'background', next: backgroundPlanner }, tools },
    { name: 'gated', planner: { name: 'gated', next: parallelPlanner }, tools: gated },
    { name: 'asking', planner: { name: 'asking', next: askingPlanner }, tools },
    { name: 'waiting', planner: { name: 'waiting', next: parallelPlanner }, tools: waitingTools(world) },
    undoingAgent(world),
    streamingAgent(random, tell),
  ];
}

/** All three things at once, each by a task in the background; then all of them are awaited. */
function backgroundPlanner(run: RunView): Decision {
  if (run.task !== undefined) return taskPlanner(run);
  const subjects = ['fee', 'letter', 'room'];
  const { tasks, count } = run.trajectory;
  const subject = subjects[tasks.length];
  if (subject !== undefined) {
    return {
      kind: 'spawn_task',
      task: 'background',
      groupId: subject,
      spec: { description: subject, query: subject, seal: true },
    };
  }
  const open = tasks.find(({ end }) => end === undefined);
  if (open !== undefined) return { kind: 'await_task', taskId: open.id };
  const isDone = tasks.every(({ end }) => end?.status === 'complete');
  return { kind: 'finish', reason: isDone ? 'goal' : 'no_path', payload: `${count} steps` };
}

/** Asks first whether it may. */
function askingPlanner(run: RunView): Decision {
  if (run.trajectory.count === 0)
    return { kind: 'request_pause', reason: 'approval_required', payload: { question: 'May I?' } };
  return parallelPlanner(run);
}
