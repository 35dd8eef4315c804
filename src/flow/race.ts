/** Race nodes: several nodes with one input at once, of which the first value counts, or the first few, and the planner of their runs. */

import {
  assertOptions,
  type Branch,
  branchesOf,
  branchId,
  type CallParallel,
  defined,
  type ErrorData,
  errorOf,
  FINISH_TOOL,
  type Finish,
  type Json,
  type JsonObject,
  literal,
  type OptionShape,
  PilotageError,
  type Planner,
  type RunView,
} from '#core';
import { type AgentTool, type AnyTool, agent } from '#tools';
import { type GraphNode, type NodePlace, strongestOf } from './graph.ts';
import { ANYTHING, failureEdges } from './node.ts';
import { finishWith, inputOf } from './planner.ts';
import { branchStatus, type Done, type Steps } from './progress.ts';
import type { Gives, InOf, Node, OutOf, SubflowOptions } from './types.ts';

/** What all the branches take. */
export type RaceInput<Branches extends readonly GraphNode[]> = {
  [Index in keyof Branches]: (input: InOf<Branches[Index]>) => void;
}[number] extends (input: infer In) => void
  ? In
  : never;

/** A branch that has won, by its name, and its value. */
export type RaceWinner<Branches extends readonly GraphNode[]> = WinnerOf<Branches[number]>;
type WinnerOf<Branch> = Branch extends { readonly name: infer Name } ? { branch: Name; value: OutOf<Branch> } : never;

export interface RaceOptions<Branches extends readonly GraphNode[]>
  extends Pick<SubflowOptions, 'allowCycle' | 'onError'> {
  readonly description?: string;
  /** The branches: nodes of any kind but routers and joins, at most 50. They all begin at once, each with the input of the race. */
  readonly of: Branches;
  /** How many values are needed, from 1. The value of the race is a list then. Default: one, without a list. */
  readonly need?: number;
}

const RACE: OptionShape<RaceOptions<readonly GraphNode[]>> = {
  of: 'list',
  need: 'any?',
  description: 'text?',
  allowCycle: 'any?',
  onError: 'any?',
};

/**
 * A node that runs its branches at once, and gives the first value with the name of its branch, so that a `unionRouter` over `branch` goes on by it. With `need`
 * it gives the list of the first few, in the order in which they came. What has lost is cancelled; a branch that fails is out of the race. It runs as a task of the flow's run.
 */
export function race<const Name extends string, const Branches extends readonly Gives<unknown>[]>(
  name: Name,
  options: RaceOptions<Branches> & { readonly need: number },
): Node<Name, RaceInput<Branches>, RaceWinner<Branches>[]>;
export function race<const Name extends string, const Branches extends readonly Gives<unknown>[]>(
  name: Name,
  options: RaceOptions<Branches> & { readonly need?: never },
): Node<Name, RaceInput<Branches>, RaceWinner<Branches>>;
export function race(name: string, options: RaceOptions<readonly GraphNode[]>): GraphNode {
  assertOptions(`The race ${String(name)}`, options, RACE);
  const { of: branches, need, allowCycle = false, description = `The race ${String(name)} of a flow.` } = options;
  // What cannot be a branch is told by the check of the flow.
  const given = branches.filter((branch) => branch?.tool !== undefined);
  const effect = strongestOf(given.map((branch) => branch.effect));
  const toolIn = ({ flow }: Pick<NodePlace, 'flow'>): AgentTool => {
    const ofRace = `race:${flow}/${String(name)}`;
    // A map among the branches is another one than a map of that name in the flow.
    const place = { flow: `${flow}/${String(name)}`, waysOut: [] };
    const tools = given.flatMap(({ tool, toolIn, undo }): AnyTool[] => [
      toolIn?.(place) ?? tool,
      ...(undo ? [undo] : []),
    ]);
    const planner = racePlanner(
      ofRace,
      given.map((branch) => branch.name),
      need,
    );
    return { name, description, inputSchema: ANYTHING, effect, agent: agent({ name: ofRace, planner, tools }) };
  };
  const made = { name, effect, allowCycle, branches, toolIn, ...defined({ need }), ...failureEdges(options) };
  return Object.freeze({ ...made, kind: 'race' as const, tool: toolIn({ flow: '' }) });
}

/**
 * The run has the input of the race as `context.args`, hands it to each branch, and finishes with what has won. It fails when too few branches are left.
 * @param branches the names of the tools that are called.
 * @param need how many values are needed; `undefined`: one, which is not given as a list.
 */
export function racePlanner(name: string, branches: readonly string[], need: number | undefined): Planner {
  return Object.freeze({
    name,
    version: need === undefined ? 'first' : `first ${need}`,
    wakeMode: 'poll' as const,
    whileAsked: 'keep' as const,
    costless: true as const,
    next: (run: RunView, signal: AbortSignal) => {
      signal.throwIfAborted();
      return { decision: decide({ name, branches, need }, run) };
    },
  });
}

interface RaceOf {
  readonly name: string;
  readonly branches: readonly string[];
  readonly need: number | undefined;
}

function decide(race: RaceOf, run: RunView): CallParallel | Finish {
  const { name, need = 1 } = race;
  const { winners, failures, parts, result } = progressOf(run.trajectory);
  if (result !== undefined) return finishWith(result);
  const unsaid = failures.get(FINISH_TOOL);
  if (unsaid !== undefined) throw PilotageError.fromData(unsaid);
  const plan = parts === 0 ? name : `${name}#${parts + 1}`;
  if (winners.length >= need) {
    const won = winners.slice(0, need).map(({ id, step }) => ({ branch: id, value: { $from: id, step } }));
    const args = (race.need === undefined ? won[0] : won) as Json;
    return { kind: 'call_parallel', branches: [{ id: FINISH_TOOL, tool: FINISH_TOOL, args }], plan };
  }
  const ended = new Set([...winners.map(({ id }) => id), ...failures.keys()]);
  const args = literal(inputOf(name, run));
  const rest = race.branches.flatMap((id): Branch[] => (ended.has(id) ? [] : [{ id, tool: id, args }]));
  const missing = need - winners.length;
  if (rest.length < missing) throw tooFew(race, winners.length, failures);
  const { callsLeft = Number.POSITIVE_INFINITY } = run.budget;
  if (rest.length > callsLeft) throw noRoom(name, rest.length, callsLeft);
  const join = { kind: 'n', n: missing } as const;
  return { kind: 'call_parallel', branches: rest, plan, join, onInvalid: 'per_branch' };
}

interface RaceProgress {
  /** The branches that have a value, the first one first. */
  readonly winners: readonly Done[];
  /** The branches that are out of the race, each with its error. */
  readonly failures: ReadonlyMap<string, ErrorData>;
  readonly parts: number;
  /** What the run is to finish with. */
  readonly result?: Done;
}

/** After a new goal there is more than one step: what had not begun by then begins in the next one. */
function progressOf(steps: Steps): RaceProgress {
  const winners: Done[] = [];
  const failures = new Map<string, ErrorData>();
  let parts = 0;
  for (let index = 0; index < steps.count; index += 1) {
    const step = steps.step(index);
    if (step?.decision.kind !== 'call_parallel') continue;
    parts += 1;
    const { calls } = step;
    const won: { readonly done: Done; readonly seq: number }[] = [];
    for (const [call, branch] of branchesOf(step.decision).entries()) {
      const record = calls[call];
      const status = branchStatus(branch, call, calls, index);
      if (record === undefined || status.kind === 'open') continue;
      if (status.kind === 'passed') failures.set(branchId(branch, call), errorOf(record.outcome) ?? NOT_RUN);
      else if (branch.tool === FINISH_TOOL) return { winners, failures, parts, result: status };
      else won.push({ done: status, seq: record.seq });
    }
    winners.push(...won.sort((one, other) => one.seq - other.seq).map(({ done }) => done));
  }
  return { winners, failures, parts };
}

const NOT_RUN: ErrorData = { code: 'branch_not_started', message: 'It was not started.' };

/** Without all of its branches a race may wait for ever: the one that has no room may be its timer. */
function noRoom(flow: string, branches: number, left: number): PilotageError {
  const message = `The race ${flow} was not begun: its ${branches} branches take a hop each, and the budget has ${left} left for them. Raise budget.hops of the flow, or calls of its caller.`;
  return new PilotageError('flow_budget_exceeded', message, { data: { flow, axis: 'hops', attempts: 0 } });
}

/** The error of the run, as that of a flow of which a node has failed. */
function tooFew({ name, branches, need }: RaceOf, reached: number, errors: RaceProgress['failures']): PilotageError {
  const failures = [...errors].map(([branch, { code, message }]): JsonObject => ({ branch, code, message }));
  const why = [...errors].map(([branch, { code, message }]) => `${branch} (${code}): ${message}`).join(' ');
  const cause =
    need === undefined
      ? {
          code: 'parallel_all_failed',
          message: `None of the ${branches.length} branches has a value. ${why}`,
          data: { failures },
        }
      : {
          code: 'parallel_threshold_unmet',
          message: `${reached} of the ${need} values that are needed have come, and too few branches are left. ${why}`,
          data: { wanted: need, reached, failures },
        };
  const data = { flow: name, attempts: 0, cause };
  return new PilotageError('node_exception', `The race ${name} cannot be won: ${cause.message}`, { data });
}
