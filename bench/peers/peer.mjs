/** Times one peer against the bare loop, in turns and in one process, and prints one line of JSON. */
import { readFileSync } from 'node:fs';
import { bareLoop } from '../floor.ts';
import { cpuUs, median, short, times, wallMs, warmUp } from '../measure.ts';
import { SIZES, scriptedModel } from '../workload.ts';

const SAMPLE_MS = 60;
const WARM_UP_MS = 400;
const MAX_PAIRS = 11;
// For the pairs of one size: a slow peer gets fewer of them, and at least one.
const CAP_MS = 20_000;

/**
 * @param {string} peer What the table calls it.
 * @param {string} name Its npm package, for the version.
 * @param {(steps: number) => () => Promise<number>} prepare Makes what does one whole run and returns how many tool
 *   calls the peer carried out.
 */
export async function measurePeer(peer, name, prepare) {
  const us = {};
  const ratio = {};
  const pairs = {};
  for (const steps of SIZES) {
    const measured = await measureSize(prepare, steps);
    us[steps] = short(measured.us / steps);
    ratio[steps] = short(measured.ratio);
    pairs[steps] = measured.pairs;
  }
  console.log(JSON.stringify({ peer, version: versionOf(name), us, ratio, pairs }));
}

async function measureSize(prepare, steps) {
  const model = scriptedModel(steps);
  const floor = () => bareLoop(model);
  const run = prepare(steps);
  const firstMs = await wallMs(async () => {
    const carriedOut = await run();
    if (carriedOut !== steps) throw new Error(`The peer carried out ${carriedOut} calls of ${steps}.`);
  });
  const floorRuns = await warmUp(floor, WARM_UP_MS, SAMPLE_MS);
  // A run that takes longer than the warm-up has warmed itself up.
  const peerRuns = firstMs > WARM_UP_MS ? 1 : await warmUp(run, WARM_UP_MS, SAMPLE_MS);
  const begin = performance.now();
  const uses = [];
  const ratios = [];
  while (ratios.length === 0 || (ratios.length < MAX_PAIRS && performance.now() - begin < CAP_MS)) {
    const floorUs = (await cpuUs(() => times(floorRuns, floor))) / floorRuns;
    const peerUs = (await cpuUs(() => times(peerRuns, run))) / peerRuns;
    uses.push(peerUs);
    ratios.push(peerUs / floorUs);
  }
  return { us: median(uses), ratio: median(ratios), pairs: ratios.length };
}

/** The version of an installed peer; without a name, ours. */
export function versionOf(name) {
  const folder = name === undefined ? '../..' : `node_modules/${name}`;
  return JSON.parse(readFileSync(new URL(`${folder}/package.json`, import.meta.url), 'utf8')).version;
}
