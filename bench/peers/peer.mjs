/** Times one peer against the bare loop, in turns and in one process, and prints one line of JSON. */
import { readFileSync } from 'node:fs';
import { bareLoop } from '../floor.ts';
import { cpuUs, median, short, times, warmUp } from '../measure.ts';
import { SIZES, scriptedModel } from '../workload.ts';

const SAMPLE_MS = 60;
const WARM_UP_MS = 400;
const MAX_PAIRS = 11;

/**
 * @param {string} peer What the table calls it.
 * @param {string} name Its npm package, for the version.
 * @param {(steps: number) => () => Promise<number>} prepare Makes what does one whole run and returns how many tool
 *   calls the peer carried out.
 */
export async function measurePeer(peer, name, prepare) {
  // The time for one size: a slow peer gets fewer pairs, and at least one.
  const capMs = Number(process.env.BENCH_CAP_MS ?? 60_000);
  const us = {};
  const ratio = {};
  const pairs = {};
  for (const steps of SIZES) {
    const measured = await measureSize(prepare, steps, capMs);
    us[steps] = short(measured.us / steps);
    ratio[steps] = short(measured.ratio);
    pairs[steps] = measured.pairs;
  }
  console.log(JSON.stringify({ peer, version: versionOf(name), us, ratio, pairs }));
}

async function measureSize(prepare, steps, capMs) {
  const model = scriptedModel(steps);
  const floor = () => bareLoop(model);
  const run = prepare(steps);
  const carriedOut = await run();
  if (carriedOut !== steps) throw new Error(`The peer carried out ${carriedOut} calls of ${steps}.`);
  const floorRuns = await warmUp(floor, WARM_UP_MS, SAMPLE_MS);
  const peerRuns = await warmUp(run, WARM_UP_MS, SAMPLE_MS);
  const begin = performance.now();
  const uses = [];
  const ratios = [];
  while (ratios.length === 0 || (ratios.length < MAX_PAIRS && performance.now() - begin < capMs)) {
    const floorUs = (await cpuUs(() => times(floorRuns, floor))) / floorRuns;
    const peerUs = (await cpuUs(() => times(peerRuns, run))) / peerRuns;
    uses.push(peerUs);
    ratios.push(peerUs / floorUs);
  }
  return { us: median(uses), ratio: median(ratios), pairs: ratios.length };
}

export function versionOf(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
}
