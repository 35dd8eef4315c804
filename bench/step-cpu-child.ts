/** One side of the step measure. */
import { react } from '#pilotage';
import { bareLoop } from './floor.ts';
import { ourRuntime, runOnce } from './ours.ts';
import { serveSamples } from './sides.ts';
import { scriptedModel } from './workload.ts';

const [kind, stepsText] = process.argv.slice(2);
const steps = Number(stepsText);
const model = scriptedModel(steps);
const planner = react({ model });

await serveSamples(() => {
  if (kind === 'floor') return () => bareLoop(model);
  const runtime = ourRuntime(planner);
  return () => runOnce(runtime, steps);
});
