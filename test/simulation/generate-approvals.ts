/** From a seed to runs that people are asked about, several of them equal, so that what is remembered of one is of use to the next. It goes by dice of its own. */
import type { Branch, Decision } from '#core';
import { Dice } from './dice.ts';
import { MorePlans, withMore } from './generate-beside.ts';
import type { Act, Fault, ForkAct, PlannedMove, Root, SimulationScript } from './script.ts';
import { type ApprovalAct, GATED, POLICY_WORDS, type RememberAct } from './script-approvals.ts';

export function withApprovals(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 67 + 19);
  if (!dice.chance(0.18)) return script;
  const { workers } = script;
  const plans = new MorePlans(script);
  // Few, so that what is said of one call is about others too.
  const tools = dice.list(2, 4, () => dice.pick(TOOLS)) as [string, ...string[]];
  const below = plans.add({ moves: dice.list(1, 2, (index) => moveOf(dice, tools, index, undefined)) });
  const shared = dice.list(1, 2, () =>
    plans.add({ moves: dice.list(1, 4, (index) => moveOf(dice, tools, index, below)) }),
  );
  const roots = dice.list(
    1,
    4,
    (index): Root => ({
      run: `${GATED}${index}`,
      tenant: 't0',
      user: dice.pick(['ann', 'ann', 'ann', 'bob']),
      session: dice.pick(['q', 'q', 'q', 'x']),
      plan: dice.pick(shared as [string]),
      at: index === 0 ? dice.between(0, 300) : dice.between(0, 4_000),
      worker: dice.between(0, workers - 1),
      priority: 0,
      limits: {},
      scopes: [],
      files: 0,
      aside: true,
    }),
  );
  const approvals = dice.list(4, 24, () => actOf(dice, workers)).sort((one, other) => one.at - other.at);
  const names = roots.map(({ run }) => run) as [string];
  const acts = dice.list(
    0,
    dice.pick([0, 0, 2]),
    (): Act => ({
      at: dice.between(200, 5_000),
      root: dice.pick(names),
      task: dice.pick([0, 0, 1]),
      type: dice.pick(['REDIRECT', 'CANCEL', 'PAUSE', 'RESUME', 'USER_MESSAGE']),
      from: 'program',
    }),
  );
  const forks = dice.list(
    0,
    dice.pick([0, 0, 2]),
    (index): ForkAct => ({
      at: dice.between(500, 5_000),
      root: dice.pick(names),
      task: 0,
      worker: dice.between(0, workers - 1),
      run: `${GATED}f${index}`,
      effects: 'allowed',
      ...dice.maybe(0.5, () => ({ step: dice.between(0, 3) })),
    }),
  );
  const faults = dice.list(
    0,
    dice.pick([0, 0, 2]),
    (): Fault => ({
      kind: 'cut',
      worker: dice.between(0, workers - 1),
      at: dice.between(100, 5_000),
      downMs: dice.pick([0, 50, 700]),
    }),
  );
  return { ...withMore(script, { plans: plans.plans, roots, acts, forks, faults }), approvals };
}

type Tools = readonly [string, ...string[]];

/** @param below the plan of a task; absent: no call is carried out by one. */
function moveOf(dice: Dice, tools: Tools, index: number, below: string | undefined): PlannedMove {
  const decision = ((): Decision => {
    if (below !== undefined && dice.chance(0.2))
      return { kind: 'call_tool', tool: 'carry', args: { id: `c${index}`, plan: below } };
    if (dice.chance(0.6)) return { kind: 'call_tool', ...callOf(dice, tools, `g${index}`) };
    const branches = dice.list(2, 3, (nth): Branch => ({ id: `b${nth}`, ...callOf(dice, tools, `g${index}.${nth}`) }));
    return { kind: 'call_parallel', branches, onInvalid: 'per_branch' };
  })();
  return { decision, ...dice.maybe(0.2, () => ({ thinkMs: dice.pick([50, 900]) })) };
}

const TOOLS = [
  'gate_one',
  'gate_one',
  'gate_two',
  'gate_two',
  'gate_other',
  'gate_both',
  'gate_told',
  'gate_up',
  'gate_down',
  'gate_brief',
  'gate_last',
  'gate_free',
  'gate_free',
] as const;

function callOf(dice: Dice, tools: Tools, id: string): { readonly tool: string; readonly args: Branch['args'] } {
  const tool = dice.pick(tools);
  const policy = dice.maybe(tool === 'gate_free' ? 0.95 : 0.4, () => ({
    policy: dice.pick([...POLICY_WORDS, 'ask_other', 'ask_two_big', 'ask_two_big', 'deny_big']),
  }));
  return { tool, args: { id, ms: dice.pick([0, 20, 300]), sum: dice.pick([5, 50, 50, 500]), ...policy } };
}

function actOf(dice: Dice, workers: number): ApprovalAct {
  const does = dice.pick([
    'approve',
    'approve',
    'approve',
    'approve',
    'reject',
    'answerAll',
    'answerAll',
    'revoke',
  ] as const);
  return {
    at: dice.between(100, 5_600),
    worker: dice.between(0, workers - 1),
    from: dice.pick(['program', 'owner', 'owner', 'self', 'bea', 'bea', 'bea', 'cem']),
    does,
    nth: dice.between(0, 3),
    ...(does === 'revoke' ? {} : dice.maybe(0.6, () => ({ remember: rememberOf(dice) }))),
    ...(does === 'approve' ? dice.maybe(0.3, () => ({ sum: dice.pick([7, 700, 800]) })) : {}),
  };
}

function rememberOf(dice: Dice): RememberAct {
  return {
    scope: dice.pick(['run', 'run', 'session', 'session', 'user']),
    ...dice.maybe(0.8, () => ({
      match: dice.pick<NonNullable<RememberAct['match']>>(['exact', 'tool', 'tool', 60, 10]),
    })),
    ...dice.maybe(0.3, () => ({ expiresInMs: dice.pick([300, 1_000, 3_000]) })),
  };
}
