/**
 * Postgres with its own settings, and workers in processes of their own: what a durable step costs beside one that is written by hand, how fast the runs
 * of a killed worker go on, what a claim costs in large tables, and what waits for something. `CLUSTER_PARTS` and `CLUSTER_SCALE` shorten it for tries.
 */

import { claim } from './cluster-claim.ts';
import { isAsked, type Place, withServer } from './cluster-crew.ts';
import { appendRatio, HAND_TABLES, stepsPerS } from './cluster-steps.ts';
import { takeover } from './cluster-takeover.ts';
import { schedule, waiting } from './cluster-waiting.ts';
import type { Measured } from './measure.ts';

const PARTS: Readonly<Record<string, (place: Place) => Promise<Measured>>> = {
  append: appendRatio,
  steps: stepsPerS,
  takeover,
  claim,
  waiting,
  schedule,
};

export async function cluster(): Promise<Measured> {
  return withServer(async (place) => {
    await place.pool.query(HAND_TABLES);
    const measured: Measured[] = [];
    for (const [name, part] of Object.entries(PARTS)) if (isAsked(name)) measured.push(await part(place));
    return {
      keys: Object.assign({}, ...measured.map(({ keys }) => keys)),
      rows: measured.flatMap(({ rows }) => rows),
    };
  });
}
