/** What the store has taken of schedules: each change of one, with how it was before and after. */
import type { StoredSchedule } from '#journal';
import type { SimulatedProcess } from './process.ts';

/** When a process has asked last what is due: its answer, by the store's clock. */
interface Look {
  readonly order: number;
  readonly at: number;
}

export interface ScheduleChange {
  readonly how: 'put' | 'move' | 'delete';
  readonly tenant: string;
  readonly id: string;
  readonly before: StoredSchedule | undefined;
  readonly after: StoredSchedule | undefined;
  /** The run that was started with it. */
  readonly run?: string;
  /** It was paused, or goes on. */
  readonly isPaused?: boolean;
  readonly order: number;
  /** By the store's clock, and by the wall clock of the process that asked for it. */
  readonly at: number;
  readonly wallMs: number;
  /** By that clock: when the process had read what was before. */
  readonly readMs: number | undefined;
  readonly look: Look | undefined;
}

export class ScheduleLedger {
  readonly changes: ScheduleChange[] = [];
  readonly #looks = new WeakMap<SimulatedProcess, Look>();

  /** By process and mark: when it has read the schedule so first, by its wall clock. */
  readonly #reads = new Map<string, number>();

  read(process: SimulatedProcess, mark: string | undefined): void {
    const name = `${process.name} ${mark}`;
    if (!this.#reads.has(name)) this.#reads.set(name, process.wallMs());
  }

  readAt(process: SimulatedProcess, mark: string | undefined): number | undefined {
    return this.#reads.get(`${process.name} ${mark}`);
  }

  looked(process: SimulatedProcess, look: Look): void {
    this.#looks.set(process, look);
  }

  lookOf(process: SimulatedProcess): Look | undefined {
    return this.#looks.get(process);
  }
}
