import type { Journal } from '#journal';

const LOOK_MS = 250;

/**
 * Looks again whenever the journal says that the run has news, and every quarter of a second, until there is something to see.
 * @returns `undefined` when there was nothing for `patienceMs`.
 */
export async function lookUntil<T>(
  journal: Journal,
  run: string,
  patienceMs: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const startedAt = performance.now();
  for (;;) {
    const change = nextChange(journal, run);
    try {
      const seen = await look();
      if (seen !== undefined || performance.now() - startedAt > patienceMs) return seen;
      await change.done;
    } finally {
      change.stop();
    }
  }
}

function nextChange(journal: Journal, run: string): { readonly done: Promise<void>; stop(): void } {
  let wake = (): void => {};
  const done = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const timer = setTimeout(wake, LOOK_MS);
  const unwatch = journal.watch(run, wake);
  return {
    done,
    stop: () => {
      clearTimeout(timer);
      unwatch();
    },
  };
}
