/** Random plans: what the planner of each run decides, step after step. */
import {
  AWAIT_TOOL,
  type Branch,
  type CallParallel,
  type Decision,
  FINISH_REASONS,
  FINISH_TOOL,
  type Join,
  type Json,
  type JsonObject,
  MESSAGE_TOOL,
  PAUSE_REASONS,
  type Route,
  SPAWN_TOOL,
  type SpawnSpec,
  type TaskLimits,
  type Usage,
} from '#core';
import { AGAIN, ODD_AT } from './call-args.ts';
import type { Dice } from './dice.ts';
import { flowInput } from './generate-plays.ts';
import type { WaitWriter } from './generate-waits.ts';
import { ODD } from './odd.ts';
import type { Errand, FlowName, Plan, PlannedMove } from './script.ts';
import { CARRIED, TOOL_KINDS } from './tools.ts';

type MoveKind = 'call' | 'again' | 'parallel' | 'spawn' | 'await' | 'pause' | 'end';

const KINDS: readonly [MoveKind, ...MoveKind[]] = [
  'call',
  'call',
  'call',
  'again',
  'parallel',
  'parallel',
  'spawn',
  'spawn',
  'spawn',
  'await',
  'pause',
  'end',
];
/** Runs under a root, and below those: one deeper than tasks may be. */
const DEEPEST = 5;
const MAX_PLANS = 8;

export class PlanWriter {
  readonly plans: Record<string, Plan> = {};
  readonly #dice: Dice;
  /** That calls may be of. */
  readonly #flows: readonly FlowName[];
  readonly #waits: WaitWriter | undefined;
  /** What the plans of this history are made of: with less of everything, what is there meets more often. */
  readonly #tools: readonly string[];
  readonly #kinds: readonly MoveKind[];
  /** Moves say what they have used. */
  readonly #isCounted: boolean;
  #calls = 0;
  /** The moves before the one that is being written. */
  #before = 0;

  constructor(dice: Dice, flows: readonly FlowName[] = [], waits?: WaitWriter) {
    this.#dice = dice;
    this.#flows = flows;
    this.#waits = waits;
    const all = Object.keys(TOOL_KINDS);
    this.#tools = dice.chance(0.5) ? all : dice.list(2, 5, () => dice.pick(all as [string]));
    this.#isCounted = dice.chance(0.3);
    this.#kinds = dice.chance(0.5) ? KINDS : dice.list(3, 6, () => dice.pick(KINDS));
  }

  /** Writes a plan, and those of its tasks. Returns its name. */
  write(depth: number): string {
    const name = `p${Object.keys(this.plans).length}`;
    // The name is taken before the plans of its tasks are written.
    this.plans[name] = { moves: [] };
    const dice = this.#dice;
    const moves: PlannedMove[] = [];
    for (let left = dice.between(depth === 0 ? 1 : 0, depth === 0 ? 5 : 3); left > 0; left -= 1) {
      this.#before = moves.length;
      const move = this.#move(depth, moves);
      moves.push(move);
      if (isAgain(move)) for (let more = dice.between(1, 5); more > 0; more -= 1) moves.push(move);
    }
    this.plans[name] = {
      moves,
      ...dice.maybe(0.3, () => ({ obeys: true as const })),
      ...dice.maybe(0.5, () => ({ stubborn: true as const })),
    };
    return name;
  }

  /** Writes calls that are to be made one after the other, some of them side by side. Returns the name of the plan. */
  writeErrands(): string {
    const dice = this.#dice;
    const name = `p${Object.keys(this.plans).length}`;
    const errands = dice.list(1, 4, () => dice.list(1, dice.pick([1, 1, 3]), () => this.#own()));
    this.plans[name] = { moves: [], errands };
    return name;
  }

  #move(depth: number, before: readonly PlannedMove[]): PlannedMove {
    const dice = this.#dice;
    if (dice.chance(0.01)) return dice.maybe(0.6, () => ({ throws: dice.pick(ODD) }));
    const decision = this.#decision(depth, before);
    if (decision.kind === 'call_parallel' && dice.chance(0.4)) return this.#plan(decision);
    return {
      decision,
      ...dice.maybe(0.3, () => ({ thinkMs: dice.pick([10, 100, 900]) })),
      ...(this.#isCounted ? dice.maybe(0.7, () => ({ usage: usage(dice) })) : {}),
    };
  }

  /** The same branches as a plan, perhaps one that grows, with nodes that are no tools. */
  #plan({ branches, concurrency, failFast }: CallParallel): PlannedMove {
    const dice = this.#dice;
    const last = branches.length - 1;
    const tool = dice.chance(0.2) ? dice.pick([MESSAGE_TOOL, MESSAGE_TOOL, FINISH_TOOL]) : undefined;
    const nodes = branches.map((branch, index) => {
      const { routes: _, ...plain } = branch;
      return tool === undefined || index !== last ? branch : { ...plain, tool, args: 'said' };
    });
    return {
      decision: {
        kind: 'call_parallel',
        plan: 'p',
        branches: nodes,
        onInvalid: 'per_branch',
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(failFast === undefined ? {} : { failFast }),
      },
      // A plan that grows is given without it.
      ...dice.maybe(failFast === undefined ? 0.5 : 0, () => ({
        growMs: dice.pick([0, 50, 600]),
        ...dice.maybe(0.2, () => ({ breaks: true as const })),
      })),
    };
  }

  #decision(depth: number, before: readonly PlannedMove[]): Decision {
    const dice = this.#dice;
    switch (dice.pick(this.#kinds as [MoveKind])) {
      case 'parallel':
        return this.#parallel(depth);
      case 'spawn':
        if (!this.#maySpawn(depth)) return this.#call(depth);
        return {
          kind: 'spawn_task',
          task: dice.pick(['foreground', 'background', 'background']),
          ...this.#spawn(depth),
        };
      case 'await':
        // Without a task of its own it awaits those of others, now and then.
        return before.some(spawns) || dice.chance(0.2) ? awaitTask(dice) : this.#call(depth);
      case 'pause':
        return this.#pause();
      case 'again':
        return {
          kind: 'call_tool',
          tool: dice.pick(['look', 'read']),
          args: { id: this.#again(), ...dice.maybe(0.3, () => ({ fail: 'always' })) },
        };
      case 'end':
        if (dice.chance(0.6)) return this.#call(depth);
        return {
          kind: 'finish',
          reason: dice.pick(FINISH_REASONS as [(typeof FINISH_REASONS)[number]]),
          payload: 'early',
        };
      default:
        return this.#call(depth);
    }
  }

  #maySpawn(depth: number): boolean {
    return depth < DEEPEST && Object.keys(this.plans).length < MAX_PLANS;
  }

  #call(depth: number): Decision {
    return this.#dice.chance(this.#flows.length > 0 ? 0.25 : 0.1) && this.#maySpawn(depth)
      ? { kind: 'call_tool', ...this.#carried(depth) }
      : { kind: 'call_tool', ...this.#own() };
  }

  /** A call that a run carries out, which has a plan of its own, or is a flow. */
  #carried(depth: number): { readonly tool: string; readonly args: JsonObject } {
    if (this.#flows.length > 0 && this.#dice.chance(0.7)) {
      const input: unknown = flowInput(this.#dice);
      return { tool: this.#dice.pick(this.#flows as [FlowName]), args: input as JsonObject };
    }
    this.#calls += 1;
    const id = `c${this.#calls}`;
    return { tool: this.#dice.pick(Object.keys(CARRIED) as [string]), args: { id, plan: this.write(depth + 1) } };
  }

  /** A call of a tool that has a function. */
  #own(): Errand {
    if (this.#waits?.isNext() === true) return this.#waits.call(this.#newId());
    return { tool: this.#tool(), args: this.#args() };
  }

  #newId(): string {
    this.#calls += 1;
    return `c${this.#calls}`;
  }

  #tool(): string {
    return this.#dice.pick(this.#tools as [string]);
  }

  /** The id of a call that is made over and over. */
  #again(): string {
    this.#calls += 1;
    return `${AGAIN}${this.#calls}`;
  }

  #args(): JsonObject {
    const dice = this.#dice;
    this.#calls += 1;
    return {
      id: `c${this.#calls}`,
      ...dice.maybe(0.6, () => ({ ms: dice.pick([20, 150, 700, 2_500]) })),
      ...dice.maybe(0.2, () => ({ fail: dice.pick(['always', 'once', 'throughout']) })),
      ...dice.maybe(0.15, () => ({ deaf: true })),
      ...dice.maybe(0.5, () => ({ big: true })),
      ...dice.maybe(0.03, () => ({ heavy: true })),
      ...dice.maybe(0.03, () => ({ wrong: true })),
      ...dice.maybe(0.04, () => ({ odd: dice.pick(ODD), oddAt: dice.pick(ODD_AT) })),
      ...dice.maybe(0.04, () => ({ forbidden: dice.pick(['said', 'thrown', 'late']) })),
    };
  }

  #parallel(depth: number): CallParallel {
    const dice = this.#dice;
    const count = dice.between(2, 4);
    const branches: Branch[] = [];
    for (let index = 0; index < count; index += 1) branches.push(this.#branch(depth, index));
    return {
      kind: 'call_parallel',
      branches,
      ...dice.maybe(0.5, () => ({ join: join(dice, count) })),
      ...dice.maybe(0.4, () => ({ onInvalid: 'per_branch' as const })),
      ...dice.maybe(0.2, () => ({ concurrency: dice.between(1, 2) })),
      ...dice.maybe(0.15, () => ({ failFast: true as const })),
    };
  }

  #branch(depth: number, index: number): Branch {
    const dice = this.#dice;
    const id = `b${index}`;
    const order = index === 0 ? {} : this.#order(index);
    if (dice.chance(0.2) && this.#maySpawn(depth)) {
      return { id, tool: SPAWN_TOOL, args: spawnArgs(dice, this.#spawn(depth)), ...order };
    }
    if (dice.chance(0.12) && this.#maySpawn(depth)) return { id, ...this.#carried(depth), ...order };
    if (dice.chance(0.08)) return { id, tool: AWAIT_TOOL, args: awaitArgs(dice), ...order };
    if (this.#waits?.isNext() === true) return { id, ...this.#waits.call(this.#newId()), ...order };
    const args = this.#args();
    const tool = this.#tool();
    if (index > 0 && dice.chance(0.2)) return { id, tool, args: null, routes: this.#routes(index, args) };
    return { id, tool, args: { ...args, ...this.#note(index) }, ...order };
  }

  /** What the branch at `index` waits for. */
  #order(index: number): Pick<Branch, 'after' | 'when'> {
    const dice = this.#dice;
    const earlier = `b${dice.between(0, index - 1)}`;
    return {
      ...dice.maybe(0.25, () => ({ after: [earlier] })),
      ...dice.maybe(0.1, () => ({ when: { branch: earlier, equals: dice.pick<Json>([1, { status: 'spawned' }]) } })),
    };
  }

  /** The way to a branch is told from the others by the number among its arguments. */
  #routes(index: number, args: JsonObject): readonly Route[] {
    return this.#dice.list(1, 3, (way) => ({ args: { ...args, way, ...this.#note(index) }, ...this.#order(index) }));
  }

  /** Something of an earlier branch, or of a branch of an earlier step, if there is one. */
  #note(index: number): JsonObject {
    const dice = this.#dice;
    if (index > 0 && dice.chance(0.15)) return { note: { $from: `b${dice.between(0, index - 1)}`, path: '/id' } };
    if (!dice.chance(0.1)) return {};
    const $from = dice.pick(['0', 'b0', 'b1']);
    return { note: { $from, path: '/id', step: dice.between(0, Math.max(0, this.#before - 1)) } };
  }

  #spawn(depth: number): { readonly spec: SpawnSpec; readonly groupId?: string } {
    const dice = this.#dice;
    const groupId = dice.chance(0.5) ? dice.pick(['g0', 'g0', 'g1']) : undefined;
    const spec: SpawnSpec = {
      description: 'a task',
      query: this.write(depth + 1),
      ...dice.maybe(0.3, () => ({ priority: dice.between(-5, 5) })),
      ...dice.maybe(0.4, () => ({ retainTurn: dice.chance(0.3) })),
      ...dice.maybe(0.3, () => ({ onCancel: 'isolate' as const })),
      ...dice.maybe(0.3, () => ({ limits: taskLimits(dice) })),
      ...dice.maybe(0.4, () => ({ seal: true })),
      ...dice.maybe(0.3, () => ({ failFast: true })),
      ...(groupId === undefined ? {} : dice.maybe(0.3, () => ({ quorum: dice.between(1, 2) }))),
    };
    return groupId === undefined ? { spec } : { spec, groupId };
  }

  #pause(): Decision {
    const dice = this.#dice;
    return {
      kind: 'request_pause',
      reason: dice.pick(PAUSE_REASONS as [(typeof PAUSE_REASONS)[number]]),
      ...dice.maybe(0.3, () => ({ payload: { question: 'Which one?' } })),
      ...dice.maybe(0.4, () => ({ expiresInMs: dice.pick([0, 100, 900, 3_000]) })),
    };
  }
}

function isAgain({ decision }: PlannedMove): boolean {
  return decision?.kind === 'call_tool' && String((decision.args as JsonObject)['id']).startsWith(AGAIN);
}

function usage(dice: Dice): Usage {
  return {
    inputTokens: dice.pick([0, 30, 120]),
    outputTokens: dice.pick([0, 10, 60]),
    ...dice.maybe(0.95, () => ({ costMicroUsd: dice.pick([0, 40, 150]) })),
  };
}

function spawns({ decision }: PlannedMove): boolean {
  if (decision?.kind === 'call_parallel') return decision.branches.some(({ tool }) => tool === SPAWN_TOOL);
  return decision?.kind === 'spawn_task';
}

function taskLimits(dice: Dice): TaskLimits {
  return {
    ...dice.maybe(0.5, () => ({ steps: dice.between(0, 5) })),
    ...dice.maybe(0.5, () => ({ costUsd: dice.pick([0, 0.0001, 0.00035, 0.005]) })),
    ...dice.maybe(0.2, () => ({ calls: dice.between(0, 4) })),
    ...dice.maybe(0.2, () => ({ tokens: dice.pick([0, 100, 400]) })),
  };
}

function join(dice: Dice, count: number): Join {
  switch (dice.pick(['first_success', 'first_success', 'n', 'keyed'])) {
    case 'n':
      return { kind: 'n', n: dice.between(1, count) };
    case 'keyed':
      return { kind: 'keyed', keys: Array.from({ length: count }, (_, index) => `k${index}`) };
    default:
      return { kind: 'first_success' };
  }
}

/** Mostly a task of one's own; sometimes the run that spawned this one, and that of somebody else. */
function awaited(dice: Dice): { readonly task: string; readonly group?: string } {
  const nth = dice.between(0, 2);
  if (dice.chance(0.75)) return { task: `#${nth}`, ...dice.maybe(0.3, () => ({ group: `@${nth}` })) };
  return { task: dice.pick(['^', '^.0.0', '^.1.0', '^.0.1', 'r0', 'r1.0.0']) };
}

function awaitTask(dice: Dice): Decision {
  const { task, group } = awaited(dice);
  return {
    kind: 'await_task',
    taskId: task,
    ...(group === undefined ? {} : { groupId: group }),
    ...dice.maybe(0.4, () => ({ timeoutMs: dice.pick([0, 200, 1_500]) })),
  };
}

function awaitArgs(dice: Dice): JsonObject {
  const { task, group } = awaited(dice);
  return {
    task_id: task,
    ...(group === undefined ? {} : { group_id: group }),
    ...dice.maybe(0.4, () => ({ timeout_ms: dice.pick([0, 200, 1_500]) })),
  };
}

function spawnArgs(dice: Dice, { spec, groupId }: { readonly spec: SpawnSpec; readonly groupId?: string }): JsonObject {
  const { description, query, priority, seal, quorum, retainTurn, failFast, onCancel, limits } = spec;
  return {
    kind: dice.pick(['foreground', 'background']),
    ...(groupId === undefined ? {} : { group_id: groupId }),
    spec: {
      description,
      query,
      ...(priority === undefined ? {} : { priority }),
      ...(seal === undefined ? {} : { seal }),
      ...(quorum === undefined ? {} : { quorum }),
      ...(retainTurn === undefined ? {} : { retain_turn: retainTurn }),
      ...(failFast === undefined ? {} : { fail_fast: failFast }),
      ...(onCancel === undefined ? {} : { on_cancel: onCancel }),
      ...(limits === undefined ? {} : { limits: { ...limits } }),
    },
  };
}
