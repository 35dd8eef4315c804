/** Looks for due runs again and again: after a while, and as soon as there is room for one more. */
import { type Clock, describeThrown } from '#core';

const SWEEP_MS = 1_000;

interface SweepDeps {
  readonly clock: Clock;
  /** Takes over one due run. False when no run is due, or no slot is free. */
  readonly driveNext: () => Promise<boolean>;
  /** Calls `wake` when a slot is free again, if none is free now. */
  readonly onRoom: (wake: () => void) => void;
  readonly onFault: (error: unknown) => void;
}

/** Sweeps until the returned function is called. */
export function startSweeping({ clock, driveNext, onRoom, onFault }: SweepDeps): () => void {
  let cancel = (): void => {};
  let stopped = false;
  let sweeping = false;
  /** What was told last: a store that stays broken is told of once. */
  let told: string | undefined;
  const sweep = async (): Promise<void> => {
    if (sweeping || stopped) return;
    sweeping = true;
    cancel();
    try {
      while (!stopped && (await driveNext()));
      told = undefined;
    } catch (error) {
      const words = describeThrown(error);
      if (words !== told) onFault(error);
      told = words;
    }
    sweeping = false;
    if (stopped) return;
    cancel = clock.after(SWEEP_MS, () => void sweep());
    onRoom(() => void sweep());
  };
  void sweep();
  return () => {
    stopped = true;
    cancel();
  };
}
