/** 10,000 runs of one flow, one after another, and 1,000 at once: what they leave behind in the process. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Soaked } from './flow-soak-child.ts';
import { type Measured, median, short } from './measure.ts';
import { withScratch } from './scratch.ts';

const EVERY = 1_000;
const ALL = 10_000;
const AT_ONCE = 1_000;

export async function flowSoak(): Promise<Measured> {
  const { before, holds, inTurnMs, atOnceMs, after } = await soak({ every: EVERY, all: ALL, atOnce: AT_ONCE });
  const bytesARun = short(leftARun(holds, EVERY));
  const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(2);
  const heaps = [...holds, after].map(({ heapBytes }) => megabytes(heapBytes));
  const handles = [before, holds.at(-1)?.resources ?? [], after.resources].map(({ length }) => length);
  return {
    keys: { flow_soak_bytes_a_run: bytesARun, flow_soak_handles: after.resources.length - before.length },
    rows: [
      [
        'heap that a run of a flow leaves, of 10,000',
        `${bytesARun} B`,
        `after every 1,000, and 1,000 at once: ${heaps.join(', ')} MiB`,
      ],
      [
        'handles before them, after, and after 1,000 at once',
        handles.join(', '),
        'each run with its own output and stream',
      ],
      [
        'the same in time',
        `${short(inTurnMs / ALL)} ms a run`,
        `${short(atOnceMs / AT_ONCE)} ms of 1,000 at once, with 3 runs each`,
      ],
    ],
  };
}

export interface Soaking {
  readonly every: number;
  readonly all: number;
  readonly atOnce: number;
}

/** In a process of its own. @throws Error when a run does not end as it should. */
export async function soak({ every, all, atOnce }: Soaking): Promise<Soaked> {
  return withScratch(async (folder) => {
    const child = fileURLToPath(new URL('flow-soak-child.ts', import.meta.url));
    const args = [child, join(folder, 'runs.db'), ...[every, all, atOnce].map(String)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 900_000 });
    return JSON.parse(stdout) as Soaked;
  });
}

/**
 * Bytes, by the usual growth from one measurement to the next: what each run leaves is in every one of them; code that V8
 * compiles or throws away is in some.
 */
export function leftARun(holds: Soaked['holds'], every: number): number {
  const growths = holds.slice(1).map(({ heapBytes }, before) => heapBytes - (holds[before]?.heapBytes ?? Number.NaN));
  return median(growths) / every;
}
