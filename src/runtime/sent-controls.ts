/** Tells runs something, and sees that somebody drives them then. */
import { type Control, PilotageError } from '#core';
import type { RunRecord } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { QueuedRun } from './run-queue.ts';
import { isForOthers, sendControl } from './send-control.ts';

interface SentPorts {
  /** Has a run look for news that is driven here. False: it is not. */
  poke(run: string): boolean;
  /** Drives a run now, or when there is room. @throws why it cannot be carried out here. */
  drive(waiting: QueuedRun): Promise<void>;
  queue(waiting: QueuedRun): void;
  record(run: string): Promise<RunRecord>;
  /** Somebody says here what becomes of runs whose agent is another one now. */
  readonly migrates: boolean;
}

export class SentControls {
  readonly #deps: DriverDeps;
  readonly #ports: SentPorts;

  constructor(deps: DriverDeps, ports: SentPorts) {
    this.#deps = deps;
    this.#ports = ports;
  }

  /**
   * Stores a control and sees that somebody drives the run.
   * @returns false when only a process with the run's own code can take it.
   * @throws PilotageError as `sendControl`; for a `RESUME`, which asks this process to go on, also `run_changed`.
   */
  async send(run: string, control: Control): Promise<boolean> {
    const { identity, priority, agent } = await sendControl(this.#deps.journal, run, control, this.#deps).catch(
      async (error: unknown) => {
        if (await this.#missed(run, error)) {
          await this.#goOn(run).catch((second: unknown) => {
            if (!isForOthers(control, second)) this.#deps.onFault(second);
          });
        }
        throw error;
      },
    );
    const waiting = { run, tenant: identity.tenant, priority };
    if (control.type !== 'PRIORITIZE') return this.#hears(control, waiting, agent);
    if (this.#ports.poke(run)) return true;
    const now = control.payload?.['priority'];
    this.#ports.queue({ ...waiting, priority: typeof now === 'number' ? now : priority });
    return true;
  }

  /** A message of a session was stored in the inbox of the run: somebody drives it then. */
  async told(run: string): Promise<void> {
    try {
      const { identity, priority, agent } = await this.#ports.record(run);
      await this.#hears({ type: 'USER_MESSAGE' }, { run, tenant: identity.tenant, priority }, agent);
    } catch (error) {
      // The session was deleted since, and the message with it.
      if (!PilotageError.is(error, 'run_not_found')) throw error;
    }
  }

  async #goOn(run: string): Promise<void> {
    if (this.#ports.poke(run)) return;
    const { identity, priority, agent } = await this.#ports.record(run);
    if (this.#isOfOthers(agent)) return;
    await this.#ports.drive({ run, tenant: identity.tenant, priority });
  }

  /** @returns false when only a process with the run's own code can take what was said, and none has the run now. */
  async #hears(control: Pick<Control, 'type'>, waiting: QueuedRun, agent: string): Promise<boolean> {
    if (this.#ports.poke(waiting.run)) return true;
    // To resume is asked of this process, which says why it cannot; a cancelled run ends under whatever code.
    const isAsked = control.type === 'RESUME' || control.type === 'CANCEL';
    if (!isAsked && this.#isOfOthers(agent)) return (await this.#ports.record(waiting.run)).lease !== undefined;
    try {
      await this.#ports.drive(waiting);
    } catch (error) {
      if (!isForOthers(control, error)) throw error;
      return false;
    }
    return true;
  }

  /** A run of an agent that is not here: to look at it would only note on it that this process has other code. */
  #isOfOthers(agent: string): boolean {
    return !this.#ports.migrates && this.#deps.agentNamed(agent) === undefined;
  }

  /** Whether an answer comes too late for what perhaps nobody has noticed yet: the time of a pause is over, or what is stored answers it. */
  async #missed(run: string, error: unknown): Promise<boolean> {
    if (PilotageError.is(error, 'pause_expired')) return true;
    const isLate = PilotageError.is(error, 'pause_not_found') || PilotageError.is(error, 'superseded');
    return isLate && (await this.#deps.journal.inbox(run)).length > 0;
  }
}
