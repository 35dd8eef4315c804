/** A process that waits for what only others can bring about has nothing else that would keep it alive. */
import type { Clock } from '#core';

const FAR_MS = 2 ** 30;

/** The process does not end by itself before this has settled: a timer of its clock holds it, as long as that clock goes on. */
export async function keptAlive<T>(waited: Promise<T>, clock: Pick<Clock, 'after'>): Promise<T> {
  let cancel = (): void => {};
  const hold = (): void => {
    cancel = clock.after(FAR_MS, hold);
  };
  hold();
  try {
    return await waited;
  } finally {
    cancel();
  }
}
