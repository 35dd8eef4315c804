/** What a runtime is made of and how it behaves. */

import type { Clock, Limits, OptionShape, RedactionOptions, Telemetry, ToolPolicy, UndoOptions } from '#core';
import type { Journal } from '#journal';
import type { FileOptions } from '#messages';
import type { ProgressGuard } from '../loop/progress-guard.ts';
import type { AgentParts } from './agents.ts';
import type { Driver } from './driver-port.ts';
import type { HistoryHooks } from './own-history.ts';
import type { Migrate } from './pins.ts';
import type { RunNews } from './run-news.ts';
import type { MemoryOptions } from './session-memory.ts';
import type { StoreOptions } from './store.ts';

export interface RuntimeOptions extends AgentParts, UndoOptions {
  /**
   * A journal, the path of an SQLite file, or the URL of a Postgres database. Default: what `PILOTAGE_JOURNAL` says, or `.pilotage/pilotage.db` in the current folder. It is opened when
   * it is first needed, and closed with the runtime; a journal that the caller passes in stays open.
   */
  readonly journal?: Journal | string;
  /** Limits of runs that do not set their own. */
  readonly limits?: Limits;
  /**
   * At most this many runs are driven at once; others wait by priority, then age. A run that waits is not driven. A run whose own
   * code, such as a tool, waits for another run of this runtime lends that run its slot, and both count as one. Default 10.
   */
  readonly maxLiveRuns?: number;
  /** At most this many runs of one tenant are driven at once. Default 10. */
  readonly maxLiveRunsPerTenant?: number;
  /**
   * How many calls of one step may run at once, 1 to 50. Default 50. A planner's entry and a tool may set less; calls that are held
   * back by such a limit are reported (event `tool.held_back`).
   */
  readonly parallelCalls?: number;
  /**
   * How long a run stays with a process that does not renew its lease, in milliseconds. Default 5,000, at most 300,000. The lease is
   * renewed every third of that time.
   */
  readonly leaseMs?: number;
  /**
   * After a run was taken from a process that may still be alive, the answer `not_done` of `reconcile` is not believed for this long,
   * because that process may still make the call. Milliseconds. Default: two leases.
   */
  readonly takeoverGraceMs?: number;
  /**
   * True: runs of this runtime's agents that were parked go on here when their time has come or they were told something, whoever parked them, from
   * the first use of a run, session or task on. False: only those that were driven or asked for here. Default true.
   */
  readonly goesOn?: boolean;
  /**
   * What says when runs are carried out, such as an engine for many machines. Runs that are due are handed to it, and processes that `work()` carry
   * them out when it says so; without it when it cannot be reached. Default: each process drives what it starts, and those that work look for
   * the rest.
   */
  readonly driver?: Driver;
  readonly clock?: Clock;
  /** A number from 0 up to 1, for the jitter of retries. Default `Math.random`. */
  readonly random?: () => number;
  /** How runs continue earlier runs of their session. Default: they do not. */
  readonly memory?: MemoryOptions;
  /** How files of messages are taken. Default: by their bytes and their references alone. */
  readonly files?: FileOptions;
  /** Where the program keeps the messages of its sessions, if it does so itself. Default: what their runs say. */
  readonly history?: HistoryHooks;
  /** Long-term memory: `runtime.store`, and `context.store` of tools. Default: items are found by words, and belong to their tenant and user. */
  readonly store?: StoreOptions;
  /** What happens to a run that repeats the same steps. Default: the planner is told after three times. */
  readonly progress?: ProgressGuard;
  /**
   * How long a run waits while none of its models can be asked, before it is paused as `model_unavailable`, in milliseconds. With 0 it
   * is paused at once. Default 900,000 (15 minutes); 5,000 for a run without steps when nothing listens at its model's address, and
   * nothing has since this process began.
   */
  readonly patienceMs?: number;
  /**
   * A function that is asked before each call of a tool: it allows the call, denies it, so that the planner sees why, or has people asked.
   * Planners that make plans first ask it about the whole plan, in which references to earlier steps are not resolved yet.
   */
  readonly policy?: ToolPolicy;
  /**
   * A function that is asked about a run whose planner or tools have changed. Default: the run waits until somebody accepts the
   * changes.
   */
  readonly migrate?: Migrate;
  /**
   * The program's own secrets. A text is removed from everything that is written; patterns and functions apply to errors, faults and
   * remarks, and to the parts that `also` names. Keys that this process was given, and texts that look like keys, need no rule.
   */
  readonly redact?: RedactionOptions;
  /** Called when this process takes a run up, and when it lets go of it, how, and for what it is paused: for logs, counters and alerts. What it throws goes to `onFault`. */
  readonly onRun?: (news: RunNews) => void;
  /** Where runs are traced and counted, such as `openTelemetry()` of `pilotage/telemetry`. Default: nowhere. */
  readonly telemetry?: Telemetry;
  /** Called with faults that no caller waits for. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
}

export const RUNTIME_OPTIONS: OptionShape<RuntimeOptions> = {
  planner: 'any?',
  tools: 'any?',
  agents: 'any?',
  journal: 'any?',
  limits: 'object?',
  maxLiveRuns: 'count?',
  maxLiveRunsPerTenant: 'count?',
  leaseMs: 'count?',
  takeoverGraceMs: 'whole?',
  goesOn: 'flag?',
  driver: 'object?',
  parallelCalls: 'any?',
  clock: 'clock?',
  random: 'function?',
  memory: 'object?',
  files: 'object?',
  store: 'object?',
  history: 'object?',
  progress: 'object?',
  patienceMs: 'whole?',
  redact: 'object?',
  policy: 'function?',
  migrate: 'function?',
  onRun: 'function?',
  telemetry: 'object?',
  onFault: 'function?',
  onFail: 'any?',
  undo: 'object?',
};
