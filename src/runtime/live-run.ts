/** What a process keeps of a run that it drives, and by which rules it drives runs. */
import type { RunState } from '#state';
import type { RunDriver } from '../loop/driver.ts';
import type { Exit } from '../loop/let-go.ts';
import type { Agents } from './agents.ts';
import type { Driver } from './driver-port.ts';
import type { SlotHolder } from './loans.ts';
import type { PickUpOptions } from './pick-up.ts';
import type { TellRun } from './run-news.ts';
import type { Slot, SlotLimits } from './slots.ts';

/** A place for a run, which may be lent by another. */
export interface Place extends Pick<SlotHolder, 'lender'> {
  readonly slot: Slot;
}

/** A run that this process drives. */
export interface Live extends SlotHolder {
  readonly driver: RunDriver;
  readonly exit: Promise<Exit>;
  /** Everything that follows from the exit is done too. */
  readonly done: Promise<void>;
  /** Somebody waits for the exit, and will see its error. */
  awaited: boolean;
}

/** How a process drives runs. */
export interface FleetOptions extends PickUpOptions {
  readonly slots: SlotLimits;
  /** Whose runs are taken over. With `goesOn`, those that were parked go on here when they are due, without `work()`. */
  readonly agents: Pick<Agents, 'names' | 'takenOver'>;
  readonly goesOn: boolean;
  /** What says when runs are carried out. Absent: they are as soon as they are due. */
  readonly driver?: Driver | undefined;
  /** A run has ended here. */
  onEnded(state: RunState): void;
  /** Absent: nobody listens. */
  readonly tellRun?: TellRun;
}
