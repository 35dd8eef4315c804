/** From a seed to a run whose calls ask while they stay open, to who answers them, and to what befalls their processes meanwhile. It goes by dice of its own. */
import type { Branch, CallParallel, Decision, JsonObject } from '#core';
import { Dice } from './dice.ts';
import { BRIEF_MS, HELD_KINDS, type HeldQuestion } from './held-kinds.ts';
import type { Act, Fault, Plan, PlannedMove, Root, SimulationScript } from './script.ts';

const RUN = 'open';

export function withHeld(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 71 + 23);
  if (!dice.chance(0.15)) return script;
  const { workers } = script;
  const count = Object.keys(script.plans).length;
  const [plan, below] = [`p${count}`, `p${count + 1}`];
  const at = dice.between(0, 300);
  const root: Root = {
    run: RUN,
    tenant: 't0',
    user: 'ann',
    session: RUN,
    plan,
    at,
    worker: dice.between(0, workers - 1),
    priority: 0,
    limits: {},
    scopes: [],
    files: 0,
    ...dice.maybe(0.3, () => ({ watcher: dice.between(0, workers - 1) })),
  };
  const plans: Readonly<Record<string, Plan>> = {
    [plan]: { moves: dice.list(1, 3, (index) => moveOf(dice, index, below)) },
    [below]: { moves: dice.list(1, 2, (index) => ({ decision: call(dice, 50 + index) })) },
  };
  const acts = dice.list(0, 8, () => act(dice, at, workers));
  const faults = dice.list(0, 3, () => fault(dice, dice.between(0, workers - 1), at));
  return {
    ...script,
    plans: { ...script.plans, ...plans },
    roots: [...script.roots, root],
    acts: [...script.acts, ...acts].sort((one, other) => one.at - other.at),
    faults: [...script.faults, ...faults],
  };
}

function moveOf(dice: Dice, index: number, below: string): PlannedMove {
  if (dice.chance(0.15))
    return { decision: { kind: 'call_tool', tool: 'carry', args: { id: `h${index}`, plan: below } } };
  if (dice.chance(0.4)) return { decision: call(dice, index) };
  const branches = dice.list(2, 3, (nth): Branch => {
    const { tool, args } = dice.chance(0.75) ? call(dice, 10 * index + nth + 10) : plain(dice, 10 * index + nth + 10);
    return { id: `b${nth}`, tool, args };
  });
  const decision: CallParallel = {
    kind: 'call_parallel',
    branches,
    onInvalid: 'per_branch',
    ...dice.maybe(0.2, () => ({ failFast: true })),
    ...dice.maybe(0.3, () => ({ join: { kind: 'first_success' as const } })),
  };
  return { decision };
}

type ToolCall = Extract<Decision, { kind: 'call_tool' }>;

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

function fault(dice: Dice, worker: number, at: number): Fault {
  const downMs = dice.pick([0, 50, 700]);
  const operation = dice.between(0, 60);
  switch (dice.pick(['cut', 'cut', 'kill', 'crash', 'stall', 'deploy', 'unheard', 'refuse'])) {
    case 'kill':
      return { kind: 'kill', worker, call: dice.between(0, 6), landed: dice.chance(0.5), downMs };
    case 'crash':
      return { kind: 'crash', worker, operation, landed: dice.chance(0.5), downMs };
    case 'stall':
      return { kind: 'stall', worker, operation, ms: dice.pick([300, 1_700, 4_000]) };
    case 'deploy':
      return { kind: 'deploy', worker, at: at + dice.between(20, 3_500) };
    case 'unheard':
      return { kind: 'unheard', worker, on: 'append', nth: dice.between(0, 15), ms: dice.pick([700, 4_000]) };
    case 'refuse':
      return {
        kind: 'refuse',
        worker,
        on: 'append',
        nth: dice.between(0, 15),
        times: dice.pick([1, 2, 7]),
        code: 'journal_unavailable',
        landed: dice.chance(0.6),
      };
    default:
      return { kind: 'cut', worker, at: at + dice.between(20, 3_500), downMs };
  }
}
