/**
 * What stands outside the processes of a crash run and outlives them: what the journal has acknowledged, and what the
 * tools did to the world.
 */
import type { Control } from '../core/control.ts';
import type { Entry } from '../core/entry.ts';
import type { RunView } from '../core/planner.ts';
import type { Effect } from '../core/tool-schema.ts';
import type { Reconciled } from '../tools/tool.ts';
import { foldEntries } from '../view/run-state.ts';
import { viewOf } from '../view/run-view.ts';

/** One entry into a tool's `run`. */
export interface Attempt {
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

export class CrashRecord {
  /** Every entry that the journal took, in the order in which it said so. */
  readonly acknowledged: Entry[] = [];
  readonly attempts: Attempt[] = [];
  readonly reconciliations: Reconciliation[] = [];
  /** Effects by idempotency key. */
  readonly effects: Map<string, number> = new Map();
  /** `step.call` of calls that a dead process had begun and not ended. */
  readonly interrupted: Set<string> = new Set();
  /** `step.call` of unknown outcomes that a planner was shown. */
  readonly unknownShown: Set<string> = new Set();
  /** Violations that were noticed on the way. */
  readonly faults: string[] = [];
  /** The process that claimed the run last. */
  owner: string | undefined;
  readonly #controls: (entry: Entry) => Control | undefined;
  #run: Entry[] = [];

  /** @param controls what somebody says to the run when an entry has been written. */
  constructor(controls: (entry: Entry) => Control | undefined) {
    this.#controls = controls;
  }

  /** Takes entries that are durable now. Returns what somebody outside says to the run because of them. */
  acknowledge(entries: readonly Entry[]): Control[] {
    this.acknowledged.push(...entries);
    for (const entry of entries) {
      this.#run.length = Math.min(this.#run.length, entry.seq - 1);
      this.#run.push(entry);
    }
    return entries.flatMap((entry) => this.#controls(entry) ?? []);
  }

  attempt(attempt: Attempt): void {
    this.attempts.push(attempt);
    if (attempt.effect !== 'once') return;
    const keys = new Set(this.attempts.filter(({ effect }) => effect === 'once').map(({ key }) => key));
    const began = this.#run.filter((entry) => entry.kind === 'call_began').length;
    if (keys.size > began) {
      this.faults.push(`${attempt.tool}, a once tool, was started before the journal had that its call began.`);
    }
  }

  effect(key: string): void {
    this.effects.set(key, (this.effects.get(key) ?? 0) + 1);
    if (!this.attempts.some((attempt) => attempt.key === key)) {
      this.faults.push(`An effect happened under the idempotency key ${key}, which no call has.`);
    }
  }

  /** Compares what a planner is shown with the fold of the entries, and notes the unknown outcomes in it. */
  shown(view: RunView): void {
    const expected = viewOf(foldEntries(this.#run), view.tools, view.streaming);
    if (viewText(view) !== viewText(expected)) {
      this.faults.push(
        `Before entry ${this.#run.length + 1} the planner was shown another state than the entries give.`,
      );
    }
    for (const step of view.trajectory.steps) {
      for (const [call, { outcome }] of step.calls.entries()) {
        if (outcome.kind === 'unknown') this.unknownShown.add(`${step.index}.${call}`);
      }
    }
  }
}

function viewText({ trajectory, tools: _, ...rest }: RunView): string {
  const { steps, steering, compaction } = trajectory;
  return JSON.stringify({ ...rest, steps, steering, compaction });
}
