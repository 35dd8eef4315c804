/**
 * The part of the budget that calls of the open step take, as long as the state has not counted them; and the pause that asks for a higher
 * limit when one is used up, or the next call does not fit what is left.
 */

import { type BudgetAxis, DEFAULT_STEP_LIMIT, defined, type JsonObject, type Limits, type Paused, usdOf } from '#core';
import { type Amounts, leftOn, moneyFor, type OpenStep, type RunState, stepsCounted } from '#state';
import type { Landing } from '../tasks/spawn.ts';

const NOTHING: Amounts = {};

/** What tools use beside the prices of their calls. */
export type Spending = Required<Pick<Amounts, 'tokens' | 'costMicroUsd'>>;

export interface Shortage {
  readonly axis: 'calls' | 'cost';
  readonly left: number;
}

export class InFlightBudget {
  readonly #state: RunState;
  /** Reserved for a task whose start is being written. */
  #spawning: Amounts = NOTHING;
  /** Indexes of the calls of `#open` that were started: at most `MAX_AT_ONCE`. */
  readonly #started: number[] = [];
  #spending: Spending = { tokens: 0, costMicroUsd: 0 };
  #open: OpenStep | undefined;
  /** Money of calls that are started and that the state may not have counted yet, by their indexes. */
  readonly #money = new Map<number, number>();

  constructor(state: RunState) {
    this.#state = state;
  }

  /**
   * Reserves a place and the money for a call. What the call has reserved before is taken into account.
   * @returns `undefined` on success; otherwise the axis that has no room, and what is left on it. Nothing is reserved then.
   */
  reserve(open: OpenStep, call: number, costMicroUsd: number): Shortage | undefined {
    const calls = leftOn(this.#state, 'calls') ?? Number.POSITIVE_INFINITY;
    const started = this.#underWay(open);
    // A call that did not happen and is made again has its place already; its money too, unless others have used it up meanwhile.
    this.giveBack(call);
    const others = started.length;
    this.#money.delete(call);
    const callsLeft = calls - others - (this.#spawning.calls ?? 0);
    if (callsLeft < 1) return { axis: 'calls', left: Math.max(0, callsLeft) };
    const left = costMicroUsd > 0 ? this.#moneyLeft(call) : Number.POSITIVE_INFINITY;
    if (costMicroUsd > left) {
      // What a dead process began counts as a call, whatever becomes of it.
      if (open.began.some((one) => one.call === call)) started.push(call);
      return { axis: 'cost', left: Math.max(0, left) };
    }
    started.push(call);
    if (costMicroUsd > 0) this.#money.set(call, costMicroUsd);
    return undefined;
  }

  /** Called when the state knows that the call has begun, and counts its money. */
  hasBegun(call: number): void {
    this.#money.delete(call);
  }

  /** Gives back the place of a call that did not start. */
  giveBack(call: number): void {
    const at = this.#started.indexOf(call);
    if (at !== -1) this.#started.splice(at, 1);
  }

  /** Sets aside what tools may use, or have used, beside the prices of their calls, until the state has counted it. */
  take({ tokens, costMicroUsd }: Spending): void {
    this.#spending = {
      tokens: this.#spending.tokens + tokens,
      costMicroUsd: this.#spending.costMicroUsd + costMicroUsd,
    };
  }

  /** Gives back what was taken. */
  giveUp({ tokens, costMicroUsd }: Spending): void {
    this.take({ tokens: -tokens, costMicroUsd: -costMicroUsd });
  }

  /** What is left for tools to use; `undefined`: nothing limits it. */
  room(axis: keyof Spending): number | undefined {
    const left = leftOn(this.#state, axis);
    if (left === undefined) return undefined;
    const promised = axis === 'costMicroUsd' ? this.#promised() : 0;
    return left - this.#spending[axis] - (this.#spawning[axis] ?? 0) - promised;
  }

  /** Reserves the share of a task until the start of the task is written. */
  lend(start: (taken: Amounts) => Landing): Landing {
    const { open } = this.#state;
    const calls = open === null ? 0 : this.#underWay(open).length;
    const { tokens, costMicroUsd } = this.#spending;
    const landing = start({ costMicroUsd: this.#promised() + costMicroUsd, calls, tokens });
    const [spawned] = landing.entries;
    this.#spawning = spawned?.kind === 'spawned' ? spawned.reserved : NOTHING;
    return landing;
  }

  /** Called when the state has counted the share that was reserved last. */
  lentIsKnown(): void {
    this.#spawning = NOTHING;
  }

  /** Takes the place of a call that costs nothing of its own. */
  begins(open: OpenStep, call: number): void {
    if (!this.isUnderWay(open, call)) this.#started.push(call);
  }

  isUnderWay(open: OpenStep, call: number): boolean {
    if (this.#open !== open) this.#underWay(open);
    return this.#started.includes(call) && isUncounted(open, call);
  }

  /**
   * Calls started in the open step but not yet recorded, including those that a crashed process started. Each counts once against the
   * budget, however it ends.
   */
  #underWay(open: OpenStep): number[] {
    const started = this.#started;
    if (this.#open !== open) {
      this.#open = open;
      while (started.length > 0) started.pop();
      // To clear an empty table makes a new one.
      if (this.#money.size > 0) this.#money.clear();
      for (const { call } of open.began) if (isUncounted(open, call) && !started.includes(call)) started.push(call);
      for (const { call } of [...open.away, ...open.waiting]) {
        if (isUncounted(open, call) && !started.includes(call)) started.push(call);
      }
    }
    for (let at = started.length - 1; at >= 0; at -= 1) {
      const call = started[at] as number;
      if (isUncounted(open, call)) continue;
      started.splice(at, 1);
      this.#money.delete(call);
    }
    return started;
  }

  #moneyLeft(call: number): number {
    const money = moneyFor(this.#state, call) ?? Number.POSITIVE_INFINITY;
    return money - this.#promised() - (this.#spawning.costMicroUsd ?? 0) - this.#spending.costMicroUsd;
  }

  #promised(): number {
    const known = this.#state.open?.promised ?? [];
    let sum = 0;
    // What the state has counted meanwhile is not counted twice.
    for (const [call, money] of this.#money) if (!known.some((promise) => promise.call === call)) sum += money;
    return sum;
  }
}

/** The state does not count the call yet: it has no outcome, and no task of it is under way. */
function isUncounted({ calls, waits }: OpenStep, call: number): boolean {
  return calls[call] === null && !waits.some((wait) => wait.call === call);
}

/** A call that does not fit. Money is in millionths of a dollar. */
export interface Lacking {
  readonly axis: Exclude<BudgetAxis, 'deadline'>;
  /** Absent: it is the next request of the planner that does not fit. */
  readonly tool?: string;
  /** What it takes on that axis. */
  readonly needs: number;
  /** What is left for it, beside calls under way and tasks. */
  readonly left: number;
}

const LIMIT_OF = {
  steps: 'steps',
  calls: 'calls',
  cost: 'costUsd',
  tokens: 'tokens',
  deadline: 'deadlineAt',
} as const satisfies Record<BudgetAxis, keyof Limits>;

/** The limits of a task cannot be raised, since its owner has reserved them: a call that does not fit is refused there. */
export function asksForRaise({ limits, task }: Pick<RunState, 'limits' | 'task'>): boolean {
  return limits.onCeiling === 'pause' && task === null;
}

/** The run is held as a whole: what is under way may end, nothing else is started. `lacking`: the call that does not fit. */
export function askForRaise(state: RunState, axis: BudgetAxis, token: string, lacking?: Lacking): Paused {
  const { limit, used } = amountsOf(state, axis);
  const payload: JsonObject = {
    budget: axis,
    limit: limit === undefined ? null : shown(axis, limit),
    used: used === undefined ? null : shown(axis, used),
    ...(lacking && told(lacking, limit ?? 0)),
  };
  return { kind: 'paused', token, reason: 'constraints_conflict', payload };
}

/** `raise`: the least limit with which the call is made. */
function told({ axis, tool, needs, left }: Lacking, limit: number): JsonObject {
  const raise = { [LIMIT_OF[axis]]: shown(axis, limit - left + needs) };
  return { ...defined({ tool }), ...lackOf({ axis, needs, left }), raise };
}

/** What something takes, and what is left for it. */
export function lackOf({ axis, needs, left }: Omit<Lacking, 'tool'>): JsonObject {
  return { needs: shown(axis, needs), left: shown(axis, left) };
}

/** Money in dollars, as people write it. */
function shown(axis: BudgetAxis, amount: number): number {
  return axis === 'cost' ? usdOf(amount) : amount;
}

interface RunAmounts {
  readonly limit: number | undefined;
  readonly used?: number;
}

/** The limit and the usage on an axis, in the units that a run records. */
function amountsOf(state: RunState, axis: BudgetAxis): RunAmounts {
  const { totals, limits } = state;
  switch (axis) {
    case 'steps':
      return { limit: limits.steps ?? DEFAULT_STEP_LIMIT, used: stepsCounted(state) };
    case 'calls':
      return { limit: limits.calls, used: totals.calls + totals.taskCalls };
    case 'cost':
      return { limit: limits.costMicroUsd, used: totals.costMicroUsd };
    case 'tokens':
      return { limit: limits.tokens, used: totals.inputTokens + totals.outputTokens };
    case 'deadline':
      return { limit: limits.deadlineAt };
    default:
      return axis satisfies never;
  }
}
