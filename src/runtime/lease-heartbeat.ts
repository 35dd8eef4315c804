/** A timer that renews all leases of this process, and learns of signals that other processes left. */
import type { Clock } from '#core';
import type { Journal } from '#journal';
import type { RunDriver } from '../loop/driver.ts';
import { momentOf } from '../loop/held-lease.ts';

interface HeartbeatDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Leases are renewed every third of it. */
  readonly leaseMs: number;
  /** The drivers of the runs that are driven now. */
  readonly drivers: () => readonly RunDriver[];
  readonly onFault: (error: unknown) => void;
}

/** Beats until the returned function is called. */
export function startHeartbeat(deps: HeartbeatDeps): () => void {
  const { clock, leaseMs, onFault } = deps;
  let cancel = (): void => {};
  let stopped = false;
  const beat = (): void => {
    if (stopped) return;
    cancel = clock.after(Math.max(1, Math.floor(leaseMs / 3)), () => {
      renew(deps).then(beat, (error: unknown) => {
        onFault(error);
        beat();
      });
    });
  };
  beat();
  return () => {
    stopped = true;
    cancel();
  };
}

async function renew({ journal, clock, leaseMs, drivers }: HeartbeatDeps): Promise<void> {
  const asked = drivers();
  const askedAt = momentOf(clock);
  const leases = asked.map(({ lease: { run, fence } }) => ({ run, fence }));
  const signals = await journal.renew(leases, leaseMs);
  const now = new Set(drivers());
  for (const [index, driver] of asked.entries()) {
    const seen = signals[index];
    if (seen === undefined) {
      // A driver that has just ended has given its lease up itself.
      if (now.has(driver)) driver.stop('lost');
      continue;
    }
    driver.lease.renewed(askedAt);
    if (seen > driver.state.messagesTaken) driver.poke();
  }
}
