/** Durable runs of one peer, one at a time: steps per second and bytes on disk a step. Prints one line of JSON. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { median, wallMs } from '../measure.ts';
import { withScratch } from '../scratch.ts';
import { versionOf } from './version.mjs';

const SIZES = [10, 100];
const ROUNDS = 5;

/**
 * @param {(path: string, steps: number) => { run(): Promise<unknown>, close(): unknown }} open Opens a fresh file for
 *   runs of `steps` steps; every commit of it must reach the disk.
 */
export async function measureDurablePeer(peer, name, open) {
  const stepsPerS = {};
  const bytesPerStep = {};
  for (const steps of SIZES) {
    const one = await runsInOneFile(open, steps, 1);
    const more = await runsInOneFile(open, steps, 1 + ROUNDS);
    stepsPerS[steps] = Math.round((steps * 1000) / median(more.passedMs.slice(1)));
    bytesPerStep[steps] = Math.round((more.bytes - one.bytes) / ROUNDS / steps);
  }
  console.log(JSON.stringify({ peer, version: versionOf(name), stepsPerS, bytesPerStep }));
}

/** The time of each run, and the size of the closed file with its log. */
function runsInOneFile(open, steps, runs) {
  return withScratch(async (folder) => {
    const { run, close } = open(join(folder, 'runs.db'), steps);
    const passedMs = [];
    for (let round = 0; round < runs; round += 1) passedMs.push(await wallMs(run));
    await close();
    return { passedMs, bytes: folderBytes(folder) };
  });
}

function folderBytes(folder) {
  return readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}
