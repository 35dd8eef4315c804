/** From a seed to a run that undoes what it has done: it fails, finds no way, is cancelled once or twice, or runs out of time, and processes die meanwhile. */
import type { CallParallel } from '#core';
import { Dice } from './dice.ts';
import { parallelCalls, type ToolCall, withMore } from './generate-beside.ts';
import type { Act, Fault, Plan, PlannedMove, Root, SimulationScript } from './script.ts';
import { SimulatedTime } from './time.ts';

const START_MS = new SimulatedTime().startedAt;

export function withUndo(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 61 + 17);
  if (!dice.chance(0.12)) return script;
  const plan = `p${Object.keys(script.plans).length}`;
  const worker = dice.between(0, script.workers - 1);
  const at = dice.between(0, 300);
  const ending = dice.pick(['throws', 'no_path', 'goal', 'cancel', 'cancel', 'deadline', 'steps'] as const);
  const moves = dice.list(1, 4, (index) => moveOf(dice, index));
  const common = {
    run: 'undo',
    tenant: 't0',
    user: 'ann',
    session: 'undo',
    priority: 0,
    scopes: [],
    files: 0,
  } as const;
  const limits = {
    ...(ending === 'deadline'
      ? { deadlineAt: (script.calendar?.startMs ?? START_MS) + at + dice.between(50, 3_000) }
      : {}),
    ...(ending === 'steps' ? { steps: moves.length } : {}),
  };
  const undo = dice.maybe(0.3, () => ({
    undo: { calls: dice.between(0, 3), timeoutMs: dice.pick([300, 2_000, 60_000]) },
  }));
  const root: Root = { ...common, plan, at, worker, limits, onFail: 'undo', ...undo };
  const acts = ending === 'cancel' || dice.chance(0.15) ? cancels(dice, at) : [];
  const faults = dice.list(0, 2, (): Fault => {
    const worker = dice.between(0, script.workers - 1);
    if (dice.chance(0.5))
      return { kind: 'cut', worker, at: at + dice.between(20, 2_500), downMs: dice.pick([0, 50, 700]) };
    return {
      kind: 'kill',
      worker,
      call: dice.between(0, 8),
      landed: dice.chance(0.5),
      downMs: dice.pick([0, 50, 700]),
    };
  });
  const plans = { [plan]: planOf(dice, moves, ending) };
  return withMore(script, { plans, roots: [root], acts, faults });
}

export function planOf(dice: Dice, moves: readonly PlannedMove[], ending: string): Plan {
  switch (ending) {
    case 'throws':
      return { moves: [...moves, {}] };
    case 'no_path':
      return { moves: [...moves, { decision: { kind: 'finish', reason: 'no_path' } }] };
    case 'goal':
      return { moves };
    default:
      return { moves: [...moves, { decision: call(dice, 9, { ms: 4_000 }), thinkMs: dice.pick([10, 900]) }] };
  }
}

export function moveOf(dice: Dice, index: number): PlannedMove {
  if (dice.chance(0.5)) return { decision: call(dice, index) };
  const decision: CallParallel = {
    ...parallelCalls(dice, index, 4, (number) => call(dice, number)),
    ...dice.maybe(0.2, () => ({ failFast: true })),
  };
  return { decision };
}

function call(dice: Dice, index: number, more: { readonly ms?: number } = {}): ToolCall {
  const tool = dice.pick(['hold_put', 'hold_put', 'hold_send', 'hold_post', 'hold_post', 'hold_look']);
  const args = {
    id: `u${index}`,
    ms: dice.pick([0, 20, 150, 700]),
    ...dice.maybe(0.6, () => ({ undoMs: dice.pick([20, 150, 700, 2_500]) })),
    ...dice.maybe(0.1, () => ({ fails: dice.pick(['once', 'always'] as const) })),
    ...dice.maybe(0.15, () => ({ undoFails: dice.pick(['once', 'always', 'unnamed'] as const) })),
    ...more,
  };
  return { kind: 'call_tool', tool, args };
}

/** A second one comes soon after the first, and stops what the first has begun. */
function cancels(dice: Dice, at: number): Act[] {
  const first = at + dice.between(20, 2_500);
  const of = (when: number): Act => ({ at: when, root: 'undo', task: 0, type: 'CANCEL', from: 'program' });
  return [of(first), ...(dice.chance(0.35) ? [of(first + dice.between(0, 1_500))] : [])];
}
