/** Calls that start a task, wait for one, or are carried out by one. */
import {
  AWAIT_TOOL,
  type Branch,
  type CallPlace,
  callEnded,
  type EntryBody,
  type Json,
  SPAWN_TOOL,
  type SpawnTask,
  type TaskCall,
  taskCall,
  validateDecision,
} from '#core';
import type { Amounts, OpenStep, RunState } from '#state';
import { type AuthorisedTools, carriesOneCall } from '#tools';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { beginAwait, endOfWait } from '../tasks/await.ts';
import { type Beside, besideOf } from '../tasks/budget-share.ts';
import { type Landing, refused, spawn, spawnAgentCall } from '../tasks/spawn.ts';
import { notOffered } from './arguments.ts';
import type { Call, TaskAsk } from './call-ports.ts';
import { asksForRaise, type InFlightBudget, type Lacking } from './in-flight-budget.ts';
import { errorData, failed } from './outcome.ts';

/** The result of a call: entries, or a task that is started when its turn comes, since each task gets a share of what is left then. */
export type Landed = EntryBody[] | (() => Landing);

interface TaskCallPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  readonly budget: InFlightBudget;
  tools(): AuthorisedTools;
  resolveArgs(call: Pick<Call, 'open' | 'index' | 'branch'>): Json | Promise<Json>;
  /** Holds a call that does not fit the budget. */
  hold(open: OpenStep, call: number, lacking: Lacking): EntryBody[];
}

export class TaskCalls {
  readonly #ports: TaskCallPorts;

  constructor(ports: TaskCallPorts) {
    this.#ports = ports;
  }

  /** Carries out a call that spawns or awaits. References to other branches are resolved first; the rest needs only entries. */
  async begin(open: OpenStep, { index, branch }: Pick<Call, 'index' | 'branch'>): Promise<Landed> {
    const { deps, state } = this.#ports;
    const at = { step: open.move.step, call: index };
    if (branch.refusal !== undefined) return failed(at, branch.refusal);
    if (state.context.hints?.disallowedTools?.includes(branch.tool) === true) {
      return failed(at, notOffered(branch.tool, []));
    }
    const wait = open.waits.find(({ call }) => call === index);
    const ended = wait && endOfWait(state, wait, deps.clock.now());
    if (ended !== undefined) return [callEnded(at, { outcome: ended, attempts: 0 })];
    let decision: TaskCall;
    try {
      const args = await this.#ports.resolveArgs({ open, index, branch });
      const whole = open.move.decision;
      const made = isTaskCall(whole) ? whole : taskCall(branch.tool, args, branch.callId);
      decision = validateDecision(made) as TaskCall;
    } catch (thrown) {
      return failed(at, errorData(thrown));
    }
    if (decision.kind === 'spawn_task') {
      const spawning = decision;
      return () => this.#spawn(at, spawning);
    }
    const { journal, clock, woke } = deps;
    return [...(await beginAwait(open, index, decision, { journal, state, now: clock.now(), woke }))];
  }

  #spawn(at: CallPlace, decision: SpawnTask): Landing {
    const { deps, state, budget } = this.#ports;
    const { agent: name } = decision.spec;
    const other = name === undefined || name === state.agent ? undefined : deps.agentNamed(name);
    if (name !== undefined && name !== state.agent && (other === undefined || carriesOneCall(other))) {
      const message = `There is no agent ${JSON.stringify(name)} here that a task could be given to. Leave it out, or name another one.`;
      return { entries: [refused(at, 'agent_unknown', message)] };
    }
    const started = (taken: Amounts): Landing => spawn(state, at, decision, deps.clock.now(), taken, other);
    return budget.lend((taken) => this.#started(started(taken), at, SPAWN_TOOL));
  }

  /** Starts the task that carries out a call of a tool. The call has passed everything that any call passes. */
  spawnAgentCall(open: OpenStep, call: number, { tool, args, query }: TaskAsk): Landing {
    const { deps, state, budget } = this.#ports;
    const at = { step: open.move.step, call };
    budget.begins(open, call);
    const { schema, concurrency: atOnce } = tool;
    // What undoes a call is waited for: the run ends when it is done.
    const background = tool.background && open.move.undoes === undefined;
    const { name } = tool.agent;
    const agent = deps.agentNamed(name);
    if (agent !== undefined) {
      const called = {
        tool: schema.name,
        args,
        query,
        agent,
        atOnce,
        background,
        beside: () => this.#beside(open, call),
      };
      return budget.lend((taken) =>
        this.#started(spawnAgentCall(state, at, called, deps.clock.now(), taken), at, called.tool),
      );
    }
    const message = `${schema.name} is carried out by the agent ${JSON.stringify(name)}, which this runtime does not know. Add it to agents of createRuntime.`;
    return { entries: [refused(at, 'agent_unknown', message)] };
  }

  /** Holds a call that spawns when nothing is left for its task, like a call that does not fit. */
  #started(landing: Landing, { call }: CallPlace, tool: string): Landing {
    const { lacks } = landing;
    const { state } = this.#ports;
    if (lacks === undefined || state.open === null || !asksForRaise(state)) return landing;
    return { entries: this.#ports.hold(state.open, call, { axis: lacks, tool, needs: 1, left: 0 }) };
  }

  #beside(open: OpenStep, call: number): Beside {
    const { state, budget, tools } = this.#ports;
    const known = tools();
    return besideOf(
      state,
      call,
      (other) => budget.isUnderWay(open, other),
      (name) => {
        const tool = known.ready(name);
        return tool !== undefined && 'agent' in tool ? undefined : (tool?.costMicroUsd ?? 0);
      },
    );
  }
}

export function isTaskCall(decision: { readonly kind: string }): decision is TaskCall {
  return decision.kind === 'spawn_task' || decision.kind === 'await_task';
}

/** Gives a single task call the shape of a branch of a parallel call. */
export function asBranch({ kind }: TaskCall): Branch {
  return { tool: kind === 'spawn_task' ? SPAWN_TOOL : AWAIT_TOOL, args: null };
}
