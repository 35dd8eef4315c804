/** Those who wait for something of a run in a process: each is to hear of it as long as the process lives. */
import { PilotageError } from '#core';
import type { Run, RunResult } from '#runtime';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';
import { isStoreError } from './store-errors.ts';

interface Waiting {
  readonly run: string;
  readonly what: string;
  readonly process: SimulatedProcess;
}

const TERMINAL: ReadonlySet<string> = new Set(['planner.finish', 'planner.error']);

export class Watching {
  readonly #ledger: Ledger;
  readonly #waiting = new Set<Waiting>();
  readonly #results: { readonly run: string; readonly result: RunResult }[] = [];

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** @param said settles when whoever waits has heard; what it is rejected with is for others to judge. */
  async wait<T>(run: string, what: string, process: SimulatedProcess, said: Promise<T>): Promise<T> {
    const waiting = { run, what, process };
    this.#waiting.add(waiting);
    try {
      return await said;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  /** Watches the run until it has ended or is paused, in both ways. */
  watch(run: Run, process: SimulatedProcess): void {
    void this.#heard(run.id, this.wait(run.id, 'the result', process, this.#result(run)));
    void this.#heard(run.id, this.wait(run.id, 'the last event', process, this.#events(run, process)));
  }

  check(): void {
    for (const { run, what, process } of this.#waiting) {
      if (process.alive) this.#ledger.violated('watchers', `${process.name} still waits for ${what}`, run);
    }
    for (const { run, result } of this.#results) {
      const ending = this.#ledger.runs.get(run)?.entries.at(-1);
      if (result.status === 'paused' || ending === undefined) continue;
      const isSame = result.status === ending.kind && reasonOf(result) === reasonOf(ending);
      if (!isSame) this.#ledger.violated('watchers', `somebody was told ${reasonOf(result)}`, run);
    }
  }

  async #result(run: Run): Promise<void> {
    const result = await run.result();
    this.#results.push({ run: run.id, result });
    if (result.status === 'paused' && result.pauses.length === 0) {
      this.#ledger.violated('watchers', 'the result is a pause without anything to answer', run.id);
    }
  }

  async #events(run: Run, process: SimulatedProcess): Promise<void> {
    const types: string[] = [];
    for await (const { type, seq, occurredAt } of run.events()) {
      types.push(type);
      const entry = this.#ledger.runs.get(run.id)?.entries[seq - 1];
      if (process.alive && entry?.at !== occurredAt) {
        this.#ledger.violated('watchers', `somebody was told ${type} of an entry ${seq} that is not there`, run.id);
      }
    }
    if (!process.alive) return;
    const endings = types.filter((type) => TERMINAL.has(type)).length;
    const isOver = TERMINAL.has(types.at(-1) ?? '');
    if (endings > 1 || (endings === 1 && !isOver)) {
      this.#ledger.violated('watchers', `${endings} terminal events, the last of all being ${types.at(-1)}`, run.id);
    }
  }

  async #heard(run: string, waiting: Promise<void>): Promise<void> {
    try {
      await waiting;
    } catch (error) {
      if ((PilotageError.is(error) && ORDINARY.has(error.code)) || isStoreError(error)) return;
      this.#ledger.violated('no fault', `a watcher was told: ${String(error)}`, run);
    }
  }
}

const ORDINARY: ReadonlySet<string> = new Set([
  'runtime_closed',
  'run_not_found',
  'run_changed',
  'journal_entry_unknown',
]);

function reasonOf(end: {
  readonly status?: string;
  readonly kind?: string;
  readonly reason?: string;
  readonly error?: { readonly code: string };
}): string {
  return end.reason ?? end.error?.code ?? '';
}
