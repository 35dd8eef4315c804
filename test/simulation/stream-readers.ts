/** Those who read streams of runs, from any row on and in any process. What each of them is given is noted outside. */
import { PilotageError } from '#core';
import type { Run } from '#runtime';
import type { LeaversWorld } from './leavers.ts';
import type { StreamReader } from './script.ts';
import { isOfAnotherVersion, isStoreError } from './store-errors.ts';
import type { RowsRead } from './stream-ledger.ts';

export class StreamReaders {
  readonly #world: LeaversWorld;

  constructor(world: LeaversWorld) {
    this.#world = world;
  }

  async read({ root, task, worker, stream, from, follow, leaves }: StreamReader): Promise<void> {
    const { ledger, watching } = this.#world;
    const tree = [...ledger.runs.keys()].filter((id) => id === root || id.startsWith(`${root}.`));
    const run = tree[task % Math.max(tree.length, 1)];
    if (run === undefined) return;
    const reading = this.#world.worker(worker)?.does((runtime, process) => {
      ledger.tell(process.name, () => `${run}: ${stream} is read from ${from} on${follow ? '' : ', once'}`);
      const read: RowsRead = { run, stream, from, follow, process, beganAt: ledger.next(), rows: [] };
      ledger.streams.readers.push(read);
      const done = readRows(runtime.run(run), read, leaves).then(() => {
        if (process.alive) read.endedAt = ledger.next();
      });
      return watching.wait(run, `rows of ${stream}`, process, done);
    });
    await reading?.catch((error: unknown) => {
      const isOrdinary = PilotageError.is(error, 'runtime_closed') || PilotageError.is(error, 'run_not_found');
      if (isOrdinary || isStoreError(error) || isOfAnotherVersion(error)) return;
      ledger.violated('no fault', `who read ${stream} was told: ${String(error)}`, run);
    });
  }
}

/** Who leaves goes on later behind the last row that it has. */
async function readRows(run: Run, { stream, from, follow, rows }: RowsRead, leaves: number | undefined): Promise<void> {
  if (leaves !== undefined) {
    for await (const { index, value } of run.stream(stream, { from, follow })) {
      rows.push({ index, value });
      if (rows.length >= leaves) break;
    }
  }
  const next = (rows.at(-1)?.index ?? from - 1) + 1;
  for await (const { index, value } of run.stream(stream, { from: next, follow })) rows.push({ index, value });
}
