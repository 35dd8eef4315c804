/** What is played: plain data, so that parts of it can be left out to find a shorter history that still fails. */
import type { ControlType, Decision, JsonObject, Limits, UndoOptions, Usage, WakeMode } from '#core';
import type { ProgressGuard } from '#runtime';
import type { Odd } from './odd.ts';
import type { ApprovalAct } from './script-approvals.ts';
import type { Calendar } from './script-calendar.ts';
import type { KeyedStart } from './script-starts.ts';
import type { TalkPlay } from './script-talks.ts';
import type { WorldFault, WorldScript } from './script-world.ts';
import type { Shape } from './wait-args.ts';

export interface SimulationScript {
  /** Chooses what is not written here: delays on the way to the store, ids, waits between tries. */
  readonly seed: number;
  readonly workers: number;
  readonly wakeMode: WakeMode;
  readonly leaseMs: number;
  /** Runs that a worker drives at once. */
  readonly slots: number;
  /** Of these, runs of one tenant. */
  readonly slotsPerTenant: number;
  /** Each new process has a newer version of the planner, and takes over runs of the others. */
  readonly upgrades: boolean;
  /** How often a message to or from the store takes time, from 0 to 1, and how long at most. */
  readonly delays: { readonly chance: number; readonly maxMs: number };
  readonly plans: Readonly<Record<string, Plan>>;
  readonly roots: readonly Root[];
  readonly acts: readonly Act[];
  readonly signals: readonly SignalAct[];
  readonly forks: readonly ForkAct[];
  readonly readers: readonly Reader[];
  /** Absent: nobody reads streams. */
  readonly streamReaders?: readonly StreamReader[];
  readonly faults: readonly Fault[];
  readonly world: WorldScript;
  /** Absent: there are no schedules. */
  readonly calendar?: Calendar;
  /** Absent: nobody talks in sessions. */
  readonly talks?: TalkPlay;
  /** Absent: nothing is started under keys, or at a time. */
  readonly starts?: readonly KeyedStart[];
  /** Absent: nobody is asked about more than gates of their own. */
  readonly approvals?: readonly ApprovalAct[];
  /** How runs go on with the earlier ones of their session; absent: not at all. */
  readonly memory?: SimulatedMemory;
  readonly progress?: ProgressGuard;
  /** The planner asks for a summary of its steps before every so manieth. */
  readonly compactEvery?: number;
  /** Those that runs of this history are of, or calls of theirs. */
  readonly flows: readonly FlowName[];
}

export interface SimulatedMemory {
  readonly turns: number;
}

/** What the planner decides, by the index of the step; after the last one it finishes with `goal`. */
export interface Plan {
  readonly moves: readonly PlannedMove[];
  /** It finishes as soon as somebody has redirected the run. */
  readonly obeys?: true;
  /** For the planners that Pilotage comes with: calls that are made one after the other, some of them side by side. */
  readonly errands?: readonly (readonly Errand[])[];
  /** It goes on when it is told that it goes round in circles. */
  readonly stubborn?: true;
}

/**
 * Texts `#n` in a decision stand for the id of the n-th task that the run has spawned, counted round, `@n` for that task's
 * group; a `^` at the beginning for the id of the run that spawned this one.
 */
export interface PlannedMove {
  /** Absent: the planner throws. */
  readonly decision?: Decision;
  /** What it throws then. */
  readonly throws?: Odd;
  /** What the move says that it has used. */
  readonly usage?: Usage;
  readonly thinkMs?: number;
  /** Of a plan: its branches are given one by one, with so much time between them. */
  readonly growMs?: number;
  /** The planner fails when it has given all but the last of them. */
  readonly breaks?: true;
}

export interface Errand {
  readonly tool: string;
  readonly args: JsonObject;
}

export const AGENTS = [
  'react',
  'react-text',
  'pipeline',
  'pipeline-lines',
  'graph',
  'graph-stream',
  'rules',
  'htn',
  'deterministic',
  'finish',
] as const;
export type AgentName = (typeof AGENTS)[number];

export const FLOWS = ['line', 'ways', 'both', 'round', 'list', 'nested'] as const;
export type FlowName = (typeof FLOWS)[number];

const FLOW_AGENTS: ReadonlySet<string> = new Set([...FLOWS, 'inner']);

/** A run of the agent of that name is one of a flow, or of a flow inside another. */
export function isFlow(agent: string): boolean {
  return FLOW_AGENTS.has(agent);
}

/** What a simulated flow takes, and hands on from node to node. */
export interface FlowInput {
  /** The nodes that it has come through. */
  readonly path: string[];
  readonly way: 'left' | 'right' | 'nowhere' | 'odd';
  /** So often it goes round. */
  readonly rounds: number;
  /** So many items are in its list. */
  readonly items: number;
  readonly ms: number;
  /** This node fails: each time, or the first. */
  readonly fails?: string | undefined;
  readonly failsOnce?: true | undefined;
  /** Somebody is asked before the node `b`. */
  readonly asks?: true | undefined;
}

/** A run that nobody spawned. */
export interface Root extends UndoOptions {
  readonly run: string;
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly plan: string;
  /** Which planner it is of; absent: the simulated one, which works by the moves of the plan. */
  readonly agent?: AgentName;
  /** It is a run of this flow. */
  readonly flow?: { readonly name: FlowName; readonly input: FlowInput };
  /** Milliseconds from the beginning, as everywhere in a script. */
  readonly at: number;
  readonly worker: number;
  readonly priority: number;
  readonly limits: Limits;
  readonly scopes: readonly string[];
  /** So many attachments come with it. */
  readonly files: number;
  /** It is no turn of its session's conversation. */
  readonly aside?: true;
  /** Another worker starts the same run too, so much later. */
  readonly twin?: { readonly worker: number; readonly afterMs: number };
  /** This worker watches the run from its start on. */
  readonly watcher?: number;
}

export type Sender = 'program' | 'owner' | 'guest' | 'colleague' | 'admin' | 'stranger';

/** Something that somebody outside says to a run. */
export interface Act {
  readonly at: number;
  readonly root: string;
  /** 0: the root itself; else one of the tasks below it, in the order in which they were stored, counted round. */
  readonly task: number;
  readonly type: ControlType;
  readonly from: Sender;
  /** Through the handle of this worker; absent: through the store, from a process that drives nothing. */
  readonly worker?: number;
  /** Which open pause an answer names, counted round; absent: none. */
  readonly pause?: number;
  /** The answer goes to the root, whatever run has the pause. */
  readonly atRoot?: true;
  /** An approval gives other arguments, or an answer to what a call asks has a value: fitting ones or not. */
  readonly args?: 'fit' | 'misfit';
  /** The same control comes a second time, so much later. */
  readonly again?: number;
  /** Only CANCEL. */
  readonly soft?: true;
}

/** Something happens outside of all runs. */
export interface SignalAct {
  readonly at: number;
  readonly tenant: string;
  /** Absent: it is for a call that waits for an event then, counted round. */
  readonly key?: string;
  readonly waiting?: number;
  /** What its payload is. Absent: what is waited for. */
  readonly shape?: Shape;
  /** Its payload fits nothing. */
  readonly misfits?: true;
  readonly keepMs: number;
  /** So often at once, each time something new. */
  readonly times?: number;
  /** The same comes a second time, so much later, with another payload. */
  readonly again?: number;
  /** Through the runtime of this worker; absent: through the store, from a process that drives nothing. */
  readonly worker?: number;
}

/** Somebody has a run go another way from some step on. */
export interface ForkAct {
  readonly at: number;
  readonly root: string;
  readonly task: number;
  readonly worker: number;
  readonly run: string;
  /** The first step that is its own, counted round; absent: the one after the last. */
  readonly step?: number;
  readonly effects: 'held' | 'allowed';
  /** In place of what the last call before it came to. */
  readonly result?: true;
}

/** Somebody who reads a run, and does not do so to the end. */
export interface Reader {
  readonly at: number;
  readonly root: string;
  readonly worker: number;
  /**
   * `unread`: asks for events and takes none. `dropped`: takes some and no more. `returned`: leaves in the middle. `thrown`: what
   * redacts throws. `raced`: asks several times at once for the result. `replayed`: asks what would be decided today.
   */
  readonly how: 'unread' | 'dropped' | 'returned' | 'thrown' | 'raced' | 'replayed';
  readonly after: number;
}

/** Somebody who reads a stream of a run, or of one of its tasks, counted round. */
export interface StreamReader {
  readonly at: number;
  readonly root: string;
  readonly task: number;
  readonly worker: number;
  readonly stream: string;
  readonly from: number;
  readonly follow: boolean;
  /** It leaves after so many rows, and comes back for the next. */
  readonly leaves?: number;
}

interface FaultAtOperation {
  readonly worker: number;
  /** The worker's n-th operation on the store. */
  readonly operation: number;
}

export type Fault =
  | WorldFault
  /** The process dies, before the operation has reached the store or after. Another starts in its place. */
  | (FaultAtOperation & { readonly kind: 'crash'; readonly landed: boolean; readonly downMs: number })
  /** Timers and answers reach the process only when this time is over. */
  | (FaultAtOperation & { readonly kind: 'stall'; readonly ms: number })
  /** So many operations from this one on fail, although they may have landed. Then the process may stall for `stallMs`. */
  | (FaultAtOperation & {
      readonly kind: 'store';
      readonly landed: boolean;
      readonly times: number;
      readonly stallMs?: number;
    })
  /** The process stalls in the n-th tool call that it makes, just before the call takes effect. */
  | { readonly kind: 'freeze'; readonly worker: number; readonly call: number; readonly ms: number }
  /** The process dies in the n-th tool call that it makes, before the call took effect or after. */
  | {
      readonly kind: 'kill';
      readonly worker: number;
      readonly call: number;
      readonly landed: boolean;
      readonly downMs: number;
    }
  /** The process is stopped as for a deploy, and another starts. */
  | { readonly kind: 'deploy'; readonly worker: number; readonly at: number };
