/** From a seed to a run whose calls ask while they stay open, to who answers them, and to what befalls their processes meanwhile. It goes by dice of its own. */
import type { CallParallel, JsonObject } from '#core';
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
import { BRIEF_MS, HELD_KINDS, type HeldQuestion } from './held-kinds.ts';
import type { Act, Plan, PlannedMove, SimulationScript } from './script.ts';

const RUN = 'open';

export function withHeld(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 71 + 23);
  if (!dice.chance(0.15)) return script;
  const { workers } = script;
  const [plan, below] = nextPlans(script);
  const at = dice.between(0, 300);
  const root = rootBeside(RUN, {
    plan,
    at,
    worker: dice.between(0, workers - 1),
    ...dice.maybe(0.3, () => ({ watcher: dice.between(0, workers - 1) })),
  });
  const plans: Readonly<Record<string, Plan>> = {
    [plan]: { moves: dice.list(1, 3, (index) => moveOf(dice, index, below)) },
    [below]: { moves: dice.list(1, 2, (index) => ({ decision: call(dice, 50 + index) })) },
  };
  const acts = dice.list(0, 8, () => act(dice, at, workers));
  const faults = dice.list(0, 3, () => faultBeside(dice, perils(at, workers)));
  return withMore(script, { plans, roots: [root], acts, faults });
}

function moveOf(dice: Dice, index: number, below: string): PlannedMove {
  if (dice.chance(0.15))
    return { decision: { kind: 'call_tool', tool: 'carry', args: { id: `h${index}`, plan: below } } };
  if (dice.chance(0.4)) return { decision: call(dice, index) };
  const decision: CallParallel = {
    ...parallelCalls(dice, index, 3, (number) => (dice.chance(0.75) ? call(dice, number) : plain(dice, number))),
    ...dice.maybe(0.2, () => ({ failFast: true })),
    ...dice.maybe(0.3, () => ({ join: { kind: 'first_success' as const } })),
  };
  return { decision };
}

function call(dice: Dice, index: number): ToolCall {
  const id = `h${index}`;
  const tool = dice.pick(Object.keys(HELD_KINDS) as [string]);
  const asks: unknown = dice.list(1, 3, () => dice.list(1, dice.pick([1, 1, 2]), () => question(dice, id)));
  const args: JsonObject = {
    id,
    asks: asks as JsonObject[],
    ms: tool === 'open_brief' ? dice.pick([0, BRIEF_MS]) : dice.pick([0, 20, 150, 700]),
    ...dice.maybe(0.5, () => ({ first: true })),
    ...dice.maybe(0.5, () => ({ catches: true })),
    ...dice.maybe(0.25, () => ({ fails: dice.pick(['late', 'hasty'] as const) })),
  };
  return { kind: 'call_tool', tool, args };
}

function question(dice: Dice, id: string): HeldQuestion {
  return {
    ask: `What of ${id}?`,
    ...dice.maybe(0.6, () => ({ shape: dice.pick(['number', 'text', 'pair', 'thing'] as const) })),
    ...dice.maybe(0.25, () => ({ expiresInMs: dice.pick([0, 200, 900, 4_000]) })),
  };
}

/** Beside those that ask. */
function plain(dice: Dice, index: number): ToolCall {
  const args = { id: `h${index}`, ms: dice.pick([20, 700, 2_500]) };
  return { kind: 'call_tool', tool: dice.pick(['look', 'put', 'post']), args };
}

function act(dice: Dice, at: number, workers: number): Act {
  const type = dice.pick([
    'ANSWER',
    'ANSWER',
    'ANSWER',
    'ANSWER',
    'ANSWER',
    'REJECT',
    'APPROVE',
    'USER_MESSAGE',
    'REDIRECT',
    'CANCEL_CALL',
    'PAUSE',
    'CANCEL',
  ] as const);
  const isAnswer = type === 'ANSWER' || type === 'REJECT' || type === 'APPROVE';
  return {
    at: at + dice.between(20, 4_500),
    root: RUN,
    task: dice.pick([0, 0, 0, 1]),
    type,
    from: 'program',
    ...(isAnswer ? { pause: dice.between(0, 2) } : {}),
    ...(type === 'ANSWER' ? { args: dice.pick(['fit', 'fit', 'fit', 'misfit'] as const) } : {}),
    ...dice.maybe(0.5, () => ({ worker: dice.between(0, workers - 1) })),
    ...dice.maybe(0.2, () => ({ again: dice.pick([0, 50, 400]) })),
    ...(isAnswer ? dice.maybe(0.2, () => ({ atRoot: true as const })) : {}),
  };
}

function perils(at: number, workers: number): Perils {
  return {
    workers,
    at,
    withinMs: 3_500,
    operations: 60,
    kinds: ['cut', 'cut', 'kill', 'crash', 'stall', 'deploy', 'unheard', 'refuse'],
    refused,
  };
}

function refused(dice: Dice): ReturnType<Perils['refused']> {
  return { on: 'append', nth: dice.between(0, 15), times: dice.pick([1, 2, 7]) };
}
