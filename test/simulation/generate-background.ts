/** From a seed to a run whose calls are made in the background, while it goes on, waits for news of them, or ends. It goes by dice of its own. */
import type { CallParallel, Decision, JsonObject } from '#core';
import { BACKGROUND_AGENT, BACKGROUND_KINDS } from './background-tools.ts';
import { Dice } from './dice.ts';
import {
  faultBeside,
  nextPlans,
  type Perils,
  parallelCalls,
  rootBeside,
  type ToolCall,
  withMore,
} from './generate-beside.ts';
import type { Act, Plan, PlannedMove, SimulationScript } from './script.ts';

const RUN = 'back';

export function withBackground(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 73 + 29);
  if (!dice.chance(0.15)) return script;
  const { workers } = script;
  const [plan, below] = nextPlans(script);
  const at = dice.between(0, 300);
  const root = rootBeside(RUN, {
    plan,
    at,
    worker: dice.between(0, workers - 1),
    limits: {
      ...dice.maybe(0.15, () => ({ steps: dice.between(3, 14) })),
      ...dice.maybe(0.15, () => ({ costUsd: dice.pick([0.0001, 0.0004]) })),
      ...dice.maybe(0.1, () => ({ calls: dice.between(1, 5) })),
    },
    ...dice.maybe(0.3, () => ({ watcher: dice.between(0, workers - 1) })),
  });
  const plans: Readonly<Record<string, Plan>> = {
    [plan]: { moves: movesOf(dice, below) },
    [below]: { moves: dice.list(1, 3, (index) => ({ decision: call(dice, 50 + index) })) },
  };
  const acts = dice.list(0, 4, () => act(dice, at, workers));
  const faults = dice.list(0, 4, () => faultBeside(dice, perils(at, workers)));
  return withMore(script, { plans, roots: [root], acts, faults });
}

/** It begins some work, does other things meanwhile, waits for news so many times, and ends in one way or another. */
function movesOf(dice: Dice, below: string): PlannedMove[] {
  const begins = dice.list(1, 3, (index) => moveOf(dice, index, below));
  const waits = dice.list(0, 4, (index): PlannedMove => ({ decision: waitFor(dice, index) }));
  const ending: PlannedMove[] = dice.pick([
    [],
    [],
    [],
    [{}],
    [{ decision: { kind: 'finish', reason: 'no_path' } as const }],
  ]);
  return [...begins, ...waits, ...ending];
}

function waitFor(dice: Dice, index: number): Decision {
  if (dice.chance(0.2)) return { kind: 'await_task', taskId: '#0', ...dice.maybe(0.5, () => ({ timeoutMs: 700 })) };
  if (dice.chance(0.2)) return { kind: 'call_tool', tool: 'put', args: { id: `w${index}`, ms: 150 } };
  return { kind: 'request_pause', reason: 'external_event', ...dice.maybe(0.2, () => ({ expiresInMs: 900 })) };
}

function moveOf(dice: Dice, index: number, below: string): PlannedMove {
  const think = dice.maybe(0.3, () => ({ thinkMs: dice.pick([10, 200, 900]) }));
  if (dice.chance(0.2))
    return {
      decision: { kind: 'call_tool', tool: BACKGROUND_AGENT, args: { id: `k${index}`, plan: below } },
      ...think,
    };
  if (dice.chance(0.4)) return { decision: call(dice, index), ...think };
  const decision: CallParallel = {
    ...parallelCalls(dice, index, 3, (number) => (dice.chance(0.8) ? call(dice, number) : plain(dice, number))),
    ...dice.maybe(0.2, () => ({ join: { kind: 'first_success' as const } })),
  };
  return { decision, ...think };
}

function call(dice: Dice, index: number): ToolCall {
  const args: JsonObject = {
    id: `k${index}`,
    ms: dice.pick([0, 20, 150, 700, 700, 2_500]),
    ...dice.maybe(0.2, () => ({ fails: dice.pick(['once', 'always'] as const) })),
  };
  return { kind: 'call_tool', tool: dice.pick(Object.keys(BACKGROUND_KINDS) as [string]), args };
}

function plain(dice: Dice, index: number): ToolCall {
  return { kind: 'call_tool', tool: dice.pick(['look', 'put']), args: { id: `k${index}`, ms: dice.pick([20, 700]) } };
}

function act(dice: Dice, at: number, workers: number): Act {
  const type = dice.pick([
    'APPROVE',
    'REJECT',
    'CANCEL',
    'CANCEL',
    'CANCEL_CALL',
    'PAUSE',
    'RESUME',
    'USER_MESSAGE',
  ] as const);
  const isAnswer = type === 'APPROVE' || type === 'REJECT' || type === 'RESUME';
  return {
    at: at + dice.between(20, 3_000),
    root: RUN,
    task: dice.pick([0, 0, 1, 2]),
    type,
    from: 'program',
    ...(isAnswer ? { pause: dice.between(0, 1) } : {}),
    ...dice.maybe(0.5, () => ({ worker: dice.between(0, workers - 1) })),
    ...(isAnswer ? dice.maybe(0.3, () => ({ atRoot: true as const })) : {}),
  };
}

function perils(at: number, workers: number): Perils {
  return {
    workers,
    at,
    withinMs: 3_000,
    operations: 80,
    kinds: ['cut', 'kill', 'kill', 'crash', 'crash', 'stall', 'deploy', 'refuse'],
    refused,
  };
}

function refused(dice: Dice): ReturnType<Perils['refused']> {
  return { on: dice.pick(['append', 'signal']), nth: dice.between(0, 12), times: dice.pick([1, 2, 7]) };
}
