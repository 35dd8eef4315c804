/** From a seed to a run that undoes what its tasks have done for it, and to forks of such runs. It goes by dice of its own. */
import { Dice } from './dice.ts';
import { MorePlans, rootBeside, withMore } from './generate-beside.ts';
import { moveOf, planOf } from './generate-undo.ts';
import type { Act, Fault, ForkAct, Plan, PlannedMove, SimulationScript } from './script.ts';

const ROOT = 'below';

export function withUndoBelow(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 73 + 29);
  if (!dice.chance(0.12)) return script;
  const { workers } = script;
  const plans = new MorePlans(script);
  const ending = dice.pick(['throws', 'no_path', 'goal', 'cancel', 'cancel', 'steps'] as const);
  const deep = plans.add(ofTask(dice, undefined));
  const tasks = dice.list(1, 2, () => plans.add(ofTask(dice, deep))) as [string, ...string[]];
  const moves = dice.list(1, 4, (index) => move(dice, index, dice.pick(tasks), 0.6));
  const at = dice.between(0, 300);
  const root = rootBeside(ROOT, {
    plan: plans.add(planOf(dice, moves, ending)),
    at,
    worker: dice.between(0, workers - 1),
    limits: ending === 'steps' ? { steps: moves.length } : {},
    onFail: 'undo',
    ...dice.maybe(0.2, () => ({ undo: { calls: dice.between(0, 5), timeoutMs: dice.pick([600, 60_000]) } })),
  });
  const acts = ending === 'cancel' || dice.chance(0.2) ? cancels(dice, at) : [];
  const forks = dice.list(
    0,
    dice.pick([0, 1, 2]),
    (index): ForkAct => ({
      at: at + dice.between(200, 4_500),
      root: ROOT,
      task: 0,
      worker: dice.between(0, workers - 1),
      run: `${ROOT}f${index}`,
      effects: 'allowed',
      ...dice.maybe(0.8, () => ({ step: dice.between(0, 3) })),
    }),
  );
  const faults = dice.list(0, dice.pick([0, 2, 3]), (): Fault => {
    const worker = dice.between(0, workers - 1);
    const downMs = dice.pick([0, 50, 700]);
    if (dice.chance(0.5)) return { kind: 'cut', worker, at: at + dice.between(20, 3_500), downMs };
    return { kind: 'kill', worker, call: dice.between(0, 10), landed: dice.chance(0.5), downMs };
  });
  return withMore(script, { plans: plans.plans, roots: [root], acts, forks, faults });
}

/** Most tasks reach their goal, and have then done something that whoever fails above them does not want. */
function ofTask(dice: Dice, below: string | undefined): Plan {
  const moves = dice.list(1, 3, (index) => move(dice, index, below, 0.3));
  return planOf(dice, moves, dice.pick(['goal', 'goal', 'goal', 'throws', 'no_path']));
}

function move(dice: Dice, index: number, task: string | undefined, often: number): PlannedMove {
  if (task === undefined || !dice.chance(often)) return moveOf(dice, index);
  const args = { id: `t${index}`, plan: task };
  if (dice.chance(0.7)) return { decision: { kind: 'call_tool', tool: 'carry', args } };
  const branches = [0, 1].map((nth) => ({ id: `b${nth}`, tool: 'carry', args: { ...args, id: `t${index}.${nth}` } }));
  return { decision: { kind: 'call_parallel', branches, onInvalid: 'per_branch' } };
}

function cancels(dice: Dice, at: number): Act[] {
  const first = at + dice.between(100, 3_500);
  const of = (when: number): Act => ({ at: when, root: ROOT, task: 0, type: 'CANCEL', from: 'program' });
  return [of(first), ...(dice.chance(0.25) ? [of(first + dice.between(0, 1_500))] : [])];
}
