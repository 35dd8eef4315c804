/** Pilotage itself, as the peers are measured: with the memory journal. */
import { ourPlanner, ourRuntime, runOnce } from '../ours.ts';
import { measurePeer } from './peer.mjs';

await measurePeer('Pilotage', undefined, (steps) => {
  const runtime = ourRuntime(ourPlanner(steps));
  return async () => {
    await runOnce(runtime, steps);
    // runOnce has compared the number of calls.
    return steps;
  };
});
