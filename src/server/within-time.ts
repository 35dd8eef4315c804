/** Waiting, for so long and no longer. */

/**
 * @param waitMs absent: as long as the client is there.
 * @param wait ends when its signal is aborted, and leaves nothing behind then.
 * @returns `undefined` when the time was over before, or the client is gone.
 */
export async function withinTime<T>(
  waitMs: number | undefined,
  client: AbortSignal,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const timer = waitMs === undefined ? undefined : setTimeout(end, waitMs);
  client.addEventListener('abort', end);
  try {
    if (client.aborted) end();
    return await wait(over.signal);
  } catch (error) {
    if (over.signal.aborted && error === over.signal.reason) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
    client.removeEventListener('abort', end);
  }
}
