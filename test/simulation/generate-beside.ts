/** What the generators share that add to a script runs of their own, plans for them, and what befalls them. Dice are drawn in the order of the lines. */
import type { Branch, CallParallel, Decision } from '#core';
import type { Dice } from './dice.ts';
import type { Fault, Plan, Root, SimulationScript } from './script.ts';

export type ToolCall = Extract<Decision, { kind: 'call_tool' }>;

/** The script with more of everything. */
export function withMore(
  script: SimulationScript,
  { plans = {}, roots = [], acts = [], forks = [], faults = [] }: Partial<SimulationScript>,
): SimulationScript {
  return {
    ...script,
    plans: { ...script.plans, ...plans },
    roots: [...script.roots, ...roots],
    acts: [...script.acts, ...acts].sort((one, other) => one.at - other.at),
    forks: [...script.forks, ...forks],
    faults: [...script.faults, ...faults],
  };
}

/** Plans beside those of a script, each under the next name. */
export class MorePlans {
  readonly plans: Record<string, Plan> = {};
  readonly #before: number;

  constructor({ plans }: SimulationScript) {
    this.#before = Object.keys(plans).length;
  }

  /** @returns its name. */
  add(plan: Plan): string {
    const name = `p${this.#before + Object.keys(this.plans).length}`;
    this.plans[name] = plan;
    return name;
  }
}

/** The names of the next plans of a script: of a run, and of the tasks that it starts. */
export function nextPlans({ plans }: SimulationScript): readonly [string, string] {
  const count = Object.keys(plans).length;
  return [`p${count}`, `p${count + 1}`];
}

/** A run in a session of its own, which has its name. */
export function rootBeside(
  run: string,
  { plan, at, worker, ...more }: Pick<Root, 'plan' | 'at' | 'worker'> & Partial<Root>,
): Root {
  return {
    run,
    tenant: 't0',
    user: 'ann',
    session: run,
    plan,
    at,
    worker,
    priority: 0,
    limits: {},
    scopes: [],
    files: 0,
    ...more,
  };
}

/** @param index of the move in its plan: no two calls of a plan have one number. */
export function parallelCalls(
  dice: Dice,
  index: number,
  most: number,
  callOf: (number: number) => ToolCall,
): CallParallel {
  const branches = dice.list(2, most, (nth): Branch => {
    const { tool, args } = callOf(10 * index + nth + 10);
    return { id: `b${nth}`, tool, args };
  });
  return { kind: 'call_parallel', branches, onInvalid: 'per_branch' };
}

type FaultKind = 'cut' | 'kill' | 'crash' | 'stall' | 'deploy' | 'unheard' | 'refuse';

/** What may befall the processes of a run that begins `at`. */
export interface Perils {
  readonly workers: number;
  readonly at: number;
  /** The last moment of what happens at a time, after `at`. */
  readonly withinMs: number;
  readonly operations: number;
  readonly kinds: readonly [FaultKind, ...FaultKind[]];
  /** What the store refuses, and how often. */
  refused(dice: Dice): Pick<Extract<Fault, { kind: 'refuse' }>, 'on' | 'nth' | 'times'>;
}

export function faultBeside(dice: Dice, { workers, at, withinMs, operations, kinds, refused }: Perils): Fault {
  const worker = dice.between(0, workers - 1);
  const downMs = dice.pick([0, 50, 700]);
  const operation = dice.between(0, operations);
  const kind = dice.pick(kinds);
  switch (kind) {
    case 'kill':
      return { kind, worker, call: dice.between(0, 6), landed: dice.chance(0.5), downMs };
    case 'crash':
      return { kind, worker, operation, landed: dice.chance(0.5), downMs };
    case 'stall':
      return { kind, worker, operation, ms: dice.pick([300, 1_700, 4_000]) };
    case 'deploy':
      return { kind, worker, at: at + dice.between(20, withinMs) };
    case 'unheard':
      return { kind, worker, on: 'append', nth: dice.between(0, 15), ms: dice.pick([700, 4_000]) };
    case 'refuse':
      return { kind, worker, ...refused(dice), code: 'journal_unavailable', landed: dice.chance(0.6) };
    default:
      return { kind, worker, at: at + dice.between(20, withinMs), downMs };
  }
}
