/** Signals of callers whose abort cancels a run. Each is listened to until the run has ended, or this runtime is closed. */
import { describeThrown, PilotageError } from '#core';
import { hasEnded, type Journal } from '#journal';
import type { Fleet } from './fleet.ts';

interface SignalPorts {
  readonly journal: Pick<Journal, 'get' | 'watch'>;
  /** This process drives the run now: it says itself when the run has ended. */
  isDriven(run: string): boolean;
  cancel(run: string, reason: string): Promise<void>;
  onFault(error: unknown): void;
}

/** What a reason says beyond this is left out: it becomes part of a control. */
const MOST_REASON_CHARS = 500;

export class CancelSignals {
  readonly #ports: SignalPorts;
  readonly #leaves = new Map<string, Set<() => void>>();

  constructor(ports: SignalPorts) {
    this.#ports = ports;
  }

  /** Cancels the stored run when the signal is aborted. */
  add(run: string, signal: AbortSignal): void {
    const { journal, cancel, onFault } = this.#ports;
    const act = (): void => {
      leave();
      cancel(run, describeThrown(signal.reason).slice(0, MOST_REASON_CHARS)).catch(onFault);
    };
    const unwatch = journal.watch(run, () => this.#look(run));
    const leaves = this.#leaves.get(run) ?? new Set();
    const leave = (): void => {
      signal.removeEventListener('abort', act);
      unwatch();
      leaves.delete(leave);
      if (leaves.size === 0) this.#leaves.delete(run);
    };
    this.#leaves.set(run, leaves.add(leave));
    if (signal.aborted) act();
    else signal.addEventListener('abort', act, { once: true });
  }

  /** The run has ended. */
  forget(run: string): void {
    for (const leave of [...(this.#leaves.get(run) ?? [])]) leave();
  }

  close(): void {
    for (const run of [...this.#leaves.keys()]) this.forget(run);
  }

  /** Another process may have ended it. */
  #look(run: string): void {
    const { journal, isDriven, onFault } = this.#ports;
    if (isDriven(run)) return;
    journal.get(run).then((record) => {
      if (record !== undefined && hasEnded(record.status)) this.forget(run);
    }, onFault);
  }
}

/** A run that has ended meanwhile needs no cancel. */
export async function cancelRun(fleet: Pick<Fleet, 'send'>, run: string, reason: string): Promise<void> {
  const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
  try {
    await fleet.send(run, { id, type: 'CANCEL', payload: { reason } });
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended')) throw error;
  }
}
