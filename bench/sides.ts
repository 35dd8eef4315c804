/** Sides of a measure, each in a process of its own: they take turns, and neither pays for the other's garbage. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { times, type Work, warmUp } from './measure.ts';

const WARM_UP_MS = 2_500;
const SAMPLE_MS = 250;

/** Starts a side, and waits until it has warmed up. */
export async function startSide(path: string, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(path, args);
  await heard(child);
  return child;
}

/** Microseconds of CPU of one run in it. */
export async function sample(child: ChildProcess): Promise<number> {
  child.send('sample');
  return Number(await heard(child));
}

/** The child's next message. @throws when it ends without one. */
async function heard(child: ChildProcess): Promise<unknown> {
  const heardIt = new AbortController();
  const gone = once(child, 'exit', { signal: heardIt.signal }).then(([code]) => {
    throw new Error(`A side of the measure ended with ${code}.`);
  });
  const message = once(child, 'message', { signal: heardIt.signal }).then(([value]): unknown => value);
  try {
    return await Promise.race([message, gone]);
  } finally {
    heardIt.abort();
    await Promise.allSettled([message, gone]);
  }
}

/**
 * What a side's process does: warms up, then runs samples when asked to. No collection is forced, which would throw away
 * optimised code that a process at work keeps.
 * @param work made afresh for each sample, so that the runs of earlier ones do not lie in the heap.
 */
export async function serveSamples(work: () => Work): Promise<void> {
  const runs = await warmUp(work(), WARM_UP_MS, SAMPLE_MS);
  process.on('message', async () => {
    const run = work();
    const before = process.cpuUsage();
    await times(runs, run);
    const { user, system } = process.cpuUsage(before);
    process.send?.((user + system) / runs);
  });
  process.send?.('ready');
}
