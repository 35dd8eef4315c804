/**
 * Agents with hostile model servers and hostile tools: `node scripts/hostile.ts --cases 10000 --seed 1`. Each case is played with a real
 * server on loopback. Every run must end, or wait, with a cause that has a code; the event loop is never blocked for more than 100 ms
 * by this thread's own work; and the heap does not grow. Prints what is wrong, and at last one line of JSON. `--lanes` is how many cases
 * are played at once.
 */
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Outcome, playCases } from '../test/hostile/season.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '8' },
    only: { type: 'string' },
  },
});
const [cases, seed, lanes] = [values.cases, values.seed, values.lanes].map(Number) as [number, number, number];
for (const [name, value] of Object.entries({ cases, seed, lanes })) {
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1 up.`);
}
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const started = performance.now();
const outcome: Outcome = await playCases({
  cases,
  seed,
  lanes,
  collect,
  only: values.only,
  tell: (line) => console.log(line),
});
console.log(JSON.stringify({ ...outcome, seed, ms: Math.round(performance.now() - started) }));
process.exitCode = outcome.problems === 0 && outcome.blocks === 0 && outcome.grownBytes === 0 ? 0 : 1;
