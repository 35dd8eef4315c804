/** Runs that have ended and go on: after a failure, or to undo what they did. They are driven like any other run then. */
import type { Caller, ErrorData } from '#core';
import { type ReopenAs, type Reopening, reopen, reopenTasks } from './reopen.ts';
import { undoTask } from './undo-task.ts';

/** Those that drive the runs of this process. */
interface Drivers {
  untilOver(run: string): Promise<void>;
  wake(run: string): void;
}

export class EndedRuns {
  readonly #drivers: Drivers;
  readonly #ports: Reopening;

  constructor(drivers: Drivers, ports: Reopening) {
    this.#drivers = drivers;
    this.#ports = ports;
  }

  /**
   * A run that has failed goes on, as soon as it is driven.
   * @returns the run, and the tasks that go on with it.
   * @throws as `reopen`.
   */
  async reopen(run: string, as: ReopenAs): Promise<readonly string[]> {
    await this.#drivers.untilOver(run);
    return reopen(this.#ports, run, as);
  }

  /** The tasks that carry out nodes of the run which are retried go on. */
  async reopenTasks(run: string, by: Caller | undefined): Promise<void> {
    for (const task of await reopenTasks(this.#ports, run, by)) this.#drivers.wake(task);
  }

  /** @returns why the task cannot undo what it did. */
  async undoTask(task: string, owner: string): Promise<ErrorData | undefined> {
    const refused = await undoTask(this.#ports, task, owner);
    if (refused === undefined) this.#drivers.wake(task);
    return refused;
  }
}
