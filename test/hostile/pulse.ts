/** Feels whether the event loop of this thread stands still, and whether that is our doing: by the time that the thread itself was at work. */

const BEAT_MS = 10;

export interface Block {
  /** How long nothing else happened, and how much of it this thread worked. */
  readonly ms: number;
  readonly cpuMs: number;
}

/** @param told of each beat that came more than `limitMs` of this thread's own work too late. */
export function pulse(limitMs: number, told: (block: Block) => void): () => void {
  let last = performance.now();
  let cpu = process.threadCpuUsage();
  const beat = setInterval(() => {
    const now = performance.now();
    const { user, system } = process.threadCpuUsage(cpu);
    const block = { ms: Math.round(now - last - BEAT_MS), cpuMs: Math.round((user + system) / 1_000) };
    last = now;
    cpu = process.threadCpuUsage();
    // What another process or another thread took of the machine is no work of this one.
    if (Math.min(block.ms, block.cpuMs) > limitMs) told(block);
  }, BEAT_MS);
  return () => clearInterval(beat);
}
