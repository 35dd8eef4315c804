/** What the process of one peer does: proves that the peer does the work, warms it up, and runs samples when it is asked to. */
import { serveSamples } from '../sides.ts';

/** @param {(steps: number) => () => Promise<number>} prepare Makes what does one whole run and returns how many tool calls the peer carried out. */
export async function servePeer(prepare) {
  const steps = Number(process.argv[2]);
  const carriedOut = await prepare(steps)();
  if (carriedOut !== steps) throw new Error(`The peer carried out ${carriedOut} calls of ${steps}.`);
  await serveSamples(() => prepare(steps));
}
