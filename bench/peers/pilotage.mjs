/** Pilotage itself, as the peers are measured: with the memory journal. */
import { ourPlanner, ourRuntime, runOnce } from '../ours.ts';
import { servePeer } from './peer.mjs';

await servePeer((steps) => {
  const runtime = ourRuntime(ourPlanner(steps));
  return async () => {
    await runOnce(runtime, steps);
    // runOnce has compared the number of calls.
    return steps;
  };
});
