/** From a seed to starts under keys and at a time: in bursts, by several processes at once, while processes die and answers are lost. It goes by dice of its own. */
import type { StartKey } from '#core';
import { Dice } from './dice.ts';
import { MorePlans, withMore } from './generate-beside.ts';
import type { Act, Fault, Plan, SimulationScript } from './script.ts';
import { KEYED, type KeyedStart } from './script-starts.ts';

export function withStarts(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 71 + 23);
  if (!dice.chance(0.12)) return script;
  const { workers } = script;
  const plans = new MorePlans(script);
  const works = dice.list(2, 4, () => plans.add(planOf(dice))) as [string, ...string[]];
  const keys = dice.list(1, 3, (index) => keyOf(dice, index)) as [StartKey, ...StartKey[]];
  /** Starts come in bursts. */
  const moments = dice.list(1, 4, () => dice.between(0, 4_500)) as [number, ...number[]];
  const starts = dice
    .list(3, 16, (index): KeyedStart => {
      const key = dice.chance(0.85) ? dice.pick(keys) : undefined;
      return {
        at: dice.pick(moments) + dice.pick([0, 0, dice.between(0, 60), dice.between(0, 900)]),
        run: `${KEYED}${index}`,
        worker: dice.between(0, workers - 1),
        user: dice.chance(0.95) ? 'ann' : 'bob',
        session: 'k',
        plan: dice.pick(works),
        ...(key === undefined ? { inMs: dice.pick([0, 40, 700, 2_500]) } : { key }),
        ...dice.maybe(0.25, () => ({ twin: { worker: dice.between(0, workers - 1), afterMs: dice.between(0, 300) } })),
      };
    })
    .sort((one, other) => one.at - other.at);
  const acts = dice.list(0, dice.pick([0, 2, 5]), (): Act => {
    const { at, run } = dice.pick(starts as [KeyedStart]);
    return {
      at: at + dice.between(10, 600),
      root: run,
      task: 0,
      type: dice.pick(['CANCEL', 'CANCEL', 'USER_MESSAGE', 'REDIRECT', 'PRIORITIZE']),
      from: 'program',
      ...dice.maybe(0.5, () => ({ worker: dice.between(0, workers - 1) })),
    };
  });
  const faults = dice.list(0, dice.pick([0, 1, 4]), () => faultOf(dice, workers));
  return { ...withMore(script, { plans: plans.plans, acts, faults }), starts };
}

function keyOf(dice: Dice, index: number): StartKey {
  const key = `k${index}`;
  switch (dice.pick(['singleton', 'singleton', 'debounce', 'debounce', 'throttle', 'rate'])) {
    case 'singleton':
      return { kind: 'singleton', key };
    case 'debounce': {
      const waitMs = dice.pick([100, 400, 1_000]);
      return {
        kind: 'debounce',
        key,
        waitMs,
        ...dice.maybe(0.5, () => ({ maxWaitMs: waitMs + dice.pick([0, 150, 700]) })),
      };
    }
    case 'throttle':
      return { kind: 'throttle', key, limit: dice.between(1, 3), perMs: dice.pick([200, 700, 2_000]) };
    default:
      return { kind: 'rate', key, limit: dice.between(1, 3), perMs: dice.pick([200, 700, 2_000]) };
  }
}

function planOf(dice: Dice): Plan {
  const args = { id: 's0', ms: dice.pick([0, 40, 300, 1_500]) };
  const tool = dice.pick(['look', 'put', 'send', 'post']);
  return dice.chance(0.2) ? { moves: [] } : { moves: [{ decision: { kind: 'call_tool', tool, args } }] };
}

/** Answers of the store that are lost, processes that die in the middle of a start. */
function faultOf(dice: Dice, workers: number): Fault {
  const worker = dice.between(0, workers - 1);
  const nth = dice.between(0, 6);
  switch (dice.pick(['refuse', 'refuse', 'unheard', 'cut', 'crash'])) {
    case 'refuse':
      return {
        kind: 'refuse',
        worker,
        on: 'create',
        nth,
        times: dice.between(1, 3),
        code: 'journal_unavailable',
        landed: dice.chance(0.7),
      };
    case 'unheard':
      return { kind: 'unheard', worker, on: 'create', nth, ms: dice.pick([300, 1_700, 4_000]) };
    case 'cut':
      return { kind: 'cut', worker, at: dice.between(0, 5_000), downMs: dice.pick([0, 50, 700]) };
    default:
      return {
        kind: 'crash',
        worker,
        operation: dice.between(0, 60),
        landed: dice.chance(0.6),
        downMs: dice.pick([0, 700]),
      };
  }
}
