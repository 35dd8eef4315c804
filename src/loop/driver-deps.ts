/** The parts of a runtime that the drivers of its runs use. */
import {
  type AtOnce,
  type Caller,
  type ClientToolSpec,
  type Clock,
  type ErrorData,
  type Identity,
  MAX_AT_ONCE,
  type NamedModel,
  type Namespace,
  type Planner,
  type Redaction,
  type Telemetry,
  type TurnStarted,
  type UndoOptions,
} from '#core';
import type { ArtifactStore, Journal, StoreView } from '#journal';
import type { RunState } from '#state';
import type { Agent, AgentLimits, AuthorisedTools } from '#tools';
import type { AtWork } from '../calls/doubt.ts';
import type { Handles } from '../calls/handles.ts';
import type { LargeTurns } from '../calls/large-values.ts';
import type { KnownStates } from './known-states.ts';
import type { NoticeHub } from './notices.ts';
import type { ProgressGuard } from './progress-guard.ts';
import type { ToldRuns } from './told-runs.ts';

/** The limit for all calls of a step that a runtime, or an agent, sets. */
export type CallLimit = Required<Pick<AtOnce, 'calls' | 'by'>>;

/** The smaller of the two. */
export function callLimit(runtime: number | undefined, agent: number | undefined): CallLimit | undefined {
  if (agent !== undefined && agent <= (runtime ?? MAX_AT_ONCE)) return { calls: agent, by: 'agent' };
  return runtime === undefined ? undefined : { calls: runtime, by: 'runtime' };
}

/** An agent that a runtime knows, with what its runs see. */
export interface ReadyAgent {
  /** Its name. */
  readonly agent: string;
  readonly planner: Planner;
  /**
   * The tools of a run. `found`: those that its calls made known, listed after the others. `withheld`: those that it must not use. `clientTools`:
   * those that whoever started it carries out.
   */
  toolsOf(
    scopes: readonly string[],
    found: readonly string[],
    withheld?: readonly string[],
    clientTools?: readonly ClientToolSpec[] | null,
  ): AuthorisedTools;
  /** The most that a run of the agent may use. */
  readonly limits: AgentLimits | undefined;
  /** How many calls of one of its steps may run at once, when the agent limits it. */
  readonly limit: CallLimit | undefined;
  /** Models without prices that its runs may ask, also through agents that carry out their calls. */
  readonly unpriced: readonly string[];
  readonly readArgs: Agent['readArgs'] | undefined;
  /** What becomes of the calls of its runs that fail. */
  readonly undoing: UndoOptions;
  /** The agent is a flow: its tools are its nodes, whose names are the flow's own. */
  readonly isFlow: boolean;
}

/** The long-term store, and where in it what belongs to somebody lies. */
export interface LongTermMemory {
  readonly view: StoreView;
  /** @throws PilotageError `store_refused` for a namespace of the program's that cannot be. */
  rootOf(owner: Pick<Identity, 'tenant' | 'user'>): Namespace;
}

export interface DriverDeps extends Pick<ReadyAgent, 'agent' | 'planner' | 'toolsOf' | 'limit' | 'unpriced'> {
  readonly journal: Journal;
  readonly artifacts: ArtifactStore;
  /** What runs are told of earlier ones of their sessions, as far as it was read here. */
  readonly told: ToldRuns;
  readonly memory: LongTermMemory;
  /** Runs of the journal, as far as they were read here. */
  readonly states: KnownStates;
  /** Calls that this process has under way. */
  readonly atWork: AtWork;
  /** The pace at which large values are worked on, so that the event loop goes on. */
  readonly turns: LargeTurns;
  /** The agent of that name, if the runtime knows it. */
  agentNamed(name: string): ReadyAgent | undefined;
  /** The model of that name of any agent of the runtime. */
  modelNamed(name: string): NamedModel | undefined;
  readonly clock: Clock;
  /** From 0 up to 1. */
  random(): number;
  /** Live handles that are open for the runs driven here. */
  readonly handles: Handles;
  readonly hub: NoticeHub;
  /** What is written leaves secrets out. */
  readonly redaction: Redaction;
  readonly progress: ProgressGuard;
  /** How long runs wait for their models. Absent: as long as is usual. */
  readonly patienceMs?: number;
  newToken(): string;
  /** What a turn of a session, whose turn has come, is told of the turns before it. */
  turnStarted(state: RunState, signal: AbortSignal): Promise<TurnStarted>;
  /** The same of the first turn of a session, if nothing has to be read for it: it is stored with the message that begins the turn. */
  firstTurn(): TurnStarted | undefined;
  /** Called for a run that was told something, or that was just stored: some process must drive it. */
  woke(run: string): void;
  /** The tasks that carry out nodes of the run which are retried go on. */
  reopenTasks(run: string, by: Caller | undefined): Promise<void>;
  /** The task, which has reached its goal, undoes what it did, for the run above it. Why it does not. */
  undoTask(task: string, owner: string): Promise<ErrorData | undefined>;
  /** Where its runs are traced and counted. */
  readonly telemetry?: Telemetry;
  /** Called with a fault that ends nothing but must be seen. */
  onFault(error: unknown): void;
}
