/** Many plays, on several stages at once. */
import type { CutName } from './cuts.ts';
import { type PlayReport, play } from './play.ts';
import type { Scenario } from './scenarios.ts';
import { Stage, voices } from './stage.ts';

export type Planned = readonly [scenario: Scenario, cut: CutName, seed: number];

/** @param plays taken from as a stage is free. */
export async function season(
  stages: number,
  plays: Iterable<Planned>,
  report: (report: PlayReport) => void,
): Promise<void> {
  const given = await voices();
  const planned = plays[Symbol.iterator]();
  const perform = async (name: string): Promise<void> => {
    const stage = new Stage(name, given);
    for (let next = planned.next(); next.done !== true; next = planned.next()) report(await play(stage, ...next.value));
    await stage.close();
  };
  await Promise.all(Array.from({ length: stages }, (_, index) => perform(String(index))));
  await given.server.close();
}
