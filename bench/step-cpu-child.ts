/** One side of the step measure, in a process of its own: warms up, then runs samples when asked to. */
import { react } from '../src/index.ts';
import { bareLoop } from './floor.ts';
import { times, warmUp } from './measure.ts';
import { ourRuntime, runOnce } from './ours.ts';
import { scriptedModel } from './workload.ts';

const WARM_UP_MS = 2_500;
const SAMPLE_MS = 250;

const [kind, stepsText] = process.argv.slice(2);
const steps = Number(stepsText);
const model = scriptedModel(steps);
const planner = react({ model });

/** The work of a sample, made afresh for each, so that the runs of earlier ones do not lie in the heap. */
function work(): () => Promise<unknown> {
  if (kind === 'floor') return () => bareLoop(model);
  const runtime = ourRuntime(planner);
  return () => runOnce(runtime, steps);
}

const runs = await warmUp(work(), WARM_UP_MS, SAMPLE_MS);

process.on('message', async () => {
  const run = work();
  const before = process.cpuUsage();
  await times(runs, run);
  const { user, system } = process.cpuUsage(before);
  process.send?.((user + system) / runs / steps);
});
process.send?.('ready');
