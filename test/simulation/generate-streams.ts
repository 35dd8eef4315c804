/** From a seed to a run whose calls write to streams, to those who read them, and to what befalls both. It goes by dice of its own. */
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
import type { Act, ForkAct, Plan, PlannedMove, SimulationScript, StreamReader } from './script.ts';
import { STREAMING_KINDS } from './streaming-tools.ts';

const RUN = 'stream';
const STREAMS: readonly [string, ...string[]] = ['log', 'log', 'out', 'half'];

export function withStreams(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 67 + 19);
  if (!dice.chance(0.15)) return script;
  const { workers } = script;
  const [plan, below] = nextPlans(script);
  const at = dice.between(0, 300);
  const moves = dice.list(1, 4, (index) => moveOf(dice, index, below));
  const root = rootBeside(RUN, {
    plan,
    at,
    worker: dice.between(0, workers - 1),
    limits: dice.chance(0.1) ? { steps: moves.length } : {},
  });
  const plans: Readonly<Record<string, Plan>> = {
    [plan]: { moves },
    [below]: { moves: dice.list(1, 2, (index) => ({ decision: call(dice, 50 + index) })) },
  };
  const acts = dice.chance(0.35) ? dice.list(1, 3, () => act(dice, at)) : [];
  const faults = dice.list(0, 4, () => faultBeside(dice, perils(at, workers)));
  const streamReaders = dice.list(0, 5, () => reader(dice, workers, at));
  const forks = dice.chance(0.1) ? [fork(dice, at, root.worker)] : [];
  return { ...withMore(script, { plans, roots: [root], acts, forks, faults }), streamReaders };
}

function fork(dice: Dice, at: number, worker: number): ForkAct {
  return {
    at: at + dice.between(500, 4_000),
    root: RUN,
    task: 0,
    worker,
    run: `${RUN}-fork`,
    step: 1,
    effects: 'allowed',
  };
}

function moveOf(dice: Dice, index: number, below: string): PlannedMove {
  const think = dice.maybe(0.3, () => ({ thinkMs: dice.pick([10, 200]) }));
  if (dice.chance(0.1))
    return { decision: { kind: 'call_tool', tool: 'carry', args: { id: `l${index}`, plan: below } }, ...think };
  if (dice.chance(0.5)) return { decision: call(dice, index), ...think };
  const decision: CallParallel = {
    ...parallelCalls(dice, index, 3, (number) => call(dice, number)),
    ...dice.maybe(0.2, () => ({ failFast: true })),
    ...dice.maybe(0.2, () => ({ join: { kind: 'first_success' as const } })),
  };
  return { decision, ...think };
}

function call(dice: Dice, index: number): ToolCall {
  const args: JsonObject = {
    id: `l${index}`,
    streams: dice.list(1, 2, () => dice.pick(STREAMS)),
    rows: dice.pick([0, 1, 2, 4, 9, 9]),
    ...dice.maybe(0.8, () => ({ ms: dice.pick([20, 150, 700, 700]) })),
    ...dice.maybe(0.7, () => ({ everyMs: dice.pick([5, 40, 120]) })),
    ...dice.maybe(0.4, () => ({ awaits: true })),
    ...dice.maybe(0.3, () => ({ closes: true })),
    ...dice.maybe(0.2, () => ({ large: true })),
    ...dice.maybe(0.05, () => ({ unfit: true })),
    ...dice.maybe(0.2, () => ({ deaf: true })),
    ...dice.maybe(0.2, () => ({ fails: dice.pick(['once', 'once', 'always'] as const) })),
  };
  return { kind: 'call_tool', tool: dice.pick(Object.keys(STREAMING_KINDS) as [string]), args };
}

function act(dice: Dice, at: number): Act {
  const type = dice.pick(['CANCEL', 'CANCEL_CALL', 'CANCEL_CALL', 'PAUSE', 'REDIRECT', 'USER_MESSAGE'] as const);
  return { at: at + dice.between(20, 2_000), root: RUN, task: 0, type, from: 'program' };
}

function reader(dice: Dice, workers: number, at: number): StreamReader {
  return {
    at: at + dice.between(0, 2_500),
    root: RUN,
    task: dice.pick([0, 0, 0, 1]),
    worker: dice.between(0, workers - 1),
    stream: dice.pick([...STREAMS, 'none']),
    from: dice.pick([1, 1, 1, 2, 5, 40]),
    follow: dice.chance(0.75),
    ...dice.maybe(0.25, () => ({ leaves: dice.between(1, 5) })),
  };
}

function perils(at: number, workers: number): Perils {
  return {
    workers,
    at,
    withinMs: 2_000,
    operations: 60,
    kinds: ['kill', 'crash', 'refuse', 'refuse', 'refuse', 'unheard', 'cut', 'stall'],
    refused,
  };
}

function refused(dice: Dice): ReturnType<Perils['refused']> {
  return { on: 'append', nth: dice.between(0, 15), times: dice.pick([1, 1, 2, 7]) };
}
