/**
 * What chance alone hardly ever brings together: runs whose calls, people and faults meet at the right moments. A scene is played
 * beside what the seed has drawn otherwise, and goes by dice of its own.
 */
import type { Branch, CallParallel } from '#core';
import { SECRET_SCOPE } from './call-args.ts';
import { Dice } from './dice.ts';
import { OPERATIONS } from './generate-world.ts';
import type { Act, Fault, Plan, Root, SimulationScript } from './script.ts';

interface Scene {
  readonly plan?: Plan;
  /** When the run of the plan is started. */
  readonly at: number;
  /** Those to the run of the plan. */
  readonly acts: readonly Omit<Act, 'root' | 'task'>[];
  readonly faults: readonly Fault[];
}

type Stage = Pick<SimulationScript, 'workers' | 'leaseMs'>;

export function withScene(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 47 + 3);
  if (!dice.chance(0.08)) return script;
  const worker = dice.between(0, script.workers - 1);
  const play = dice.pick([givenUp, givenUp, lateRenewal, lateAnswer]);
  const { plan, at, acts, faults } = play(dice, script, worker);
  const withFaults = { ...script, faults: [...script.faults, ...faults] };
  if (plan === undefined) return withFaults;
  const name = `p${Object.keys(script.plans).length}`;
  const root = rootOf(name, at, worker);
  return {
    ...withFaults,
    plans: { ...script.plans, [name]: plan },
    roots: [...script.roots, root],
    acts: [...script.acts, ...acts.map((act): Act => ({ ...act, root: root.run, task: 0 }))],
  };
}

/** A run with a session of its own. */
function rootOf(plan: string, at: number, worker: number): Root {
  const identity = { run: 'scene', tenant: 't0', user: 'ann', session: 'scene' };
  return { ...identity, plan, at, worker, priority: 0, limits: {}, scopes: [SECRET_SCOPE], files: 0 };
}

/**
 * Calls with an effect are under way when their process dies, and whoever goes on with the run hears that they are not wanted any
 * more: there is another goal, one of them has failed, or what was wanted is there. The next plan wants all of them again.
 */
function givenUp(dice: Dice, _: Stage, worker: number): Scene {
  const how = dice.pick([
    { plan: 'p' },
    { plan: 'p' },
    { failFast: true },
    { join: { kind: 'first_success' } },
  ] satisfies [Omit<CallParallel, 'kind' | 'branches'>, ...Omit<CallParallel, 'kind' | 'branches'>[]]);
  const branches = dice.list(2, 4, (index): Branch => {
    const tool = dice.pick(['put', 'put', 'put', 'narrow', 'secret', 'buy', 'post', 'send', 'look']);
    const args = {
      id: `s${index}`,
      ms: dice.pick([20, 150, 700, 700, 2_500]),
      ...dice.maybe(0.15, () => ({ fail: dice.pick(['always', 'once']) })),
      ...dice.maybe(0.2, () => ({ deaf: true })),
    };
    return { id: `b${index}`, tool, args, ...dice.maybe(index > 0 ? 0.2 : 0, () => ({ after: [`b${index - 1}`] })) };
  });
  const first: CallParallel = { kind: 'call_parallel', branches, onInvalid: 'per_branch', ...how };
  const anew: CallParallel = { ...first, branches: branches.map((branch) => ({ ...branch, reuse: true })) };
  const at = dice.between(0, 200);
  return {
    plan: { moves: [{ decision: first }, { decision: anew }, ...(dice.chance(0.3) ? [{ decision: anew }] : [])] },
    at,
    acts: [{ at: at + dice.between(20, 1_200), type: 'REDIRECT', from: 'program' }],
    faults: [{ kind: 'cut', worker, at: at + dice.between(20, 1_200), downMs: 0 }],
  };
}

/**
 * A process renews its leases, and stands still before it hears that it has: others take the run meanwhile. Then a call with an
 * effect is allowed at last.
 */
function lateRenewal(dice: Dice, { leaseMs }: Stage, worker: number): Scene {
  const everyMs = Math.floor(leaseMs / 3);
  const nth = dice.between(1, 3);
  // Those who look for runs that nobody drives do so every second.
  const ms = leaseMs + dice.between(300, 2_500);
  const policyMs = nth * everyMs + dice.between(0, ms + everyMs);
  const args = { id: 's0', ms: 20, policyMs };
  return {
    plan: { moves: [{ decision: { kind: 'call_tool', tool: dice.pick(['put', 'narrow', 'secret']), args } }] },
    at: dice.between(0, everyMs),
    acts: [],
    faults: [{ kind: 'unheard', worker, on: 'renew', nth, ms }],
  };
}

/** Anything that a process has asked of the store is done, and it stands still before it hears of it. */
function lateAnswer(dice: Dice, { leaseMs }: Stage, worker: number): Scene {
  const ms = dice.pick([300, leaseMs + 1_200, 4_000]);
  return {
    at: 0,
    acts: [],
    faults: [{ kind: 'unheard', worker, on: dice.pick(OPERATIONS), nth: dice.between(0, 6), ms }],
  };
}
