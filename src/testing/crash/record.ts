/**
 * What stands outside the processes of a crash run and outlives them: what the journal has acknowledged, and what the
 * tools did to the world.
 */
import type { Control, Effect, Entry, RunView } from '#core';
import { foldEntries, viewOf } from '#state';
import type { Reconciled } from '#tools';

/** One entry into a tool's `execute`. */
export interface CrashAttempt {
  readonly run: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly key: string;
  /** JSON text. */
  readonly args: string;
}

/** What a tool answered about a call that was cut off. */
export interface Reconciliation {
  readonly tool: string;
  readonly key: string;
  readonly status: Reconciled['status'];
}

/** What somebody said of a call in doubt. */
export interface SettledCall {
  readonly id: string;
  readonly key: string;
  readonly happened: boolean;
}

interface Written {
  /** Every entry that the journal took, in the order in which it said so. */
  readonly acknowledged: Entry[];
  /** What they come to. */
  readonly entries: Entry[];
}

export class CrashRecord {
  readonly attempts: CrashAttempt[] = [];
  readonly reconciliations: Reconciliation[] = [];
  readonly settlements: SettledCall[] = [];
  /** Keys of attempts that did nothing: they asked for a login, or sent nothing. */
  readonly unmade: string[] = [];
  /** Effects by idempotency key. */
  readonly effects: Map<string, number> = new Map();
  /** Names of `once` calls that a dead process had begun and not ended. */
  readonly interrupted: Set<string> = new Set();
  /** Names of calls whose unknown outcome a planner was shown. */
  readonly unknownShown: Set<string> = new Set();
  /** Violations that were noticed on the way. */
  readonly faults: string[] = [];
  /** The process that claimed each run last. */
  readonly owners: Map<string, string> = new Map();
  readonly #controls: (entry: Entry, task: string) => Control | undefined;
  readonly #runs = new Map<string, Written>();

  /** @param controls what somebody says to the first run when an entry of a run has been written. */
  constructor(controls: (entry: Entry, task: string) => Control | undefined) {
    this.#controls = controls;
  }

  /** The runs that were stored, in that order: the first one, and its tasks. */
  get runs(): readonly string[] {
    return [...this.#runs.keys()];
  }

  acknowledged(run: string): readonly Entry[] {
    return this.#runs.get(run)?.acknowledged ?? [];
  }

  /** Takes entries that are durable now. Returns what somebody outside says to the first run because of them. */
  acknowledge(run: string, entries: readonly Entry[]): Control[] {
    const written = this.#runs.get(run) ?? { acknowledged: [], entries: [] };
    this.#runs.set(run, written);
    written.acknowledged.push(...entries);
    for (const entry of entries) {
      written.entries.length = Math.min(written.entries.length, entry.seq - 1);
      written.entries.push(entry);
    }
    return entries.flatMap((entry) => this.#controls(entry, taskPath(run)) ?? []);
  }

  attempt(attempt: CrashAttempt): void {
    this.attempts.push(attempt);
    const { run, tool, key, effect } = attempt;
    const kinds = this.#entries(run).flatMap((entry) => {
      const isOfCall = 'call' in entry && key.endsWith(`/${entry.step}.${entry.call}`);
      return isOfCall ? [entry.kind] : [];
    });
    if (kinds.includes('call_ended'))
      this.faults.push(`${tool} was run after the journal had that its call has ended.`);
    if (effect === 'once' && !kinds.includes('call_began'))
      this.faults.push(`${tool}, a once tool, was started before the journal had that its call began.`);
  }

  /** How often the call of this key was put off because it waits: its function ran again after each time. */
  parked({ run, key }: Pick<CrashAttempt, 'run' | 'key'>): number {
    const isOfCall = (entry: Entry): boolean =>
      entry.kind === 'call_waits' && key.endsWith(`/${entry.step}.${entry.call}`);
    return this.#entries(run).filter(isOfCall).length;
  }

  settled(call: SettledCall): void {
    this.settlements.push(call);
  }

  effect(key: string, part?: string): void {
    const counted = partKey(key, part);
    this.effects.set(counted, (this.effects.get(counted) ?? 0) + 1);
    if (!this.attempts.some((attempt) => attempt.key === key)) {
      this.faults.push(`An effect happened under the idempotency key ${key}, which no call has.`);
    }
  }

  /** Compares what a planner is shown with the fold of the entries, and notes the unknown outcomes in it. */
  shown(view: RunView): void {
    const { run } = view.identity;
    const entries = this.#entries(run);
    const expected = viewOf(foldEntries(entries), view.tools, view.streaming);
    if (viewText(view) !== viewText(expected)) {
      this.faults.push(`Before entry ${entries.length + 1} the planner was shown another state than the entries give.`);
    }
    for (const step of view.trajectory.steps) {
      for (const [call, { outcome }] of step.calls.entries()) {
        if (outcome.kind === 'unknown') this.unknownShown.add(callName(run, step.index, call));
      }
    }
  }

  #entries(run: string): readonly Entry[] {
    return this.#runs.get(run)?.entries ?? [];
  }
}

/** Under which an effect is counted. */
export function partKey(key: string, part: string | undefined): string {
  return part === undefined ? key : `${key}#${part}`;
}

/** Where a run stands in its tree: `''` for the first one, then `<step>.<call>` for each spawn on the way down. */
export function taskPath(run: string): string {
  const dot = run.indexOf('.');
  return dot === -1 ? '' : run.slice(dot + 1);
}

export function callName(run: string, step: number, call: number): string {
  return `${taskPath(run)} ${step}.${call}`.trim();
}

function viewText({ trajectory, tools: _, media: __, ...rest }: RunView): string {
  const { steps, steering, tasks, groups, background, compaction } = trajectory;
  return JSON.stringify({ ...rest, steps, steering, tasks, groups: [...groups], background, compaction });
}
