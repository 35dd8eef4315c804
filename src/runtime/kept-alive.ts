/** A process that waits for what only others can bring about has nothing else that would keep it alive. */
const FAR_MS = 2 ** 30;

/** The process does not end by itself before this has settled. */
export async function keptAlive<T>(waited: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, FAR_MS);
  try {
    return await waited;
  } finally {
    clearInterval(timer);
  }
}
