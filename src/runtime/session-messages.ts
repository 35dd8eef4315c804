/** A session as messages: what its turns said and did on the branch on which it is. */
import { type EarlierRun, queryWords, type Scope, type Turn } from '#core';
import { turnsOf } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { activeRecords } from './session-turns.ts';

type Deps = Pick<DriverDeps, 'journal' | 'artifacts' | 'told' | 'states'>;

/** As later turns are told of it. */
export async function transcriptOf(deps: Deps, scope: Scope, limit: number): Promise<readonly Turn[]> {
  const records = await activeRecords(deps.journal, scope, limit);
  const known = await Promise.all(
    records.map(({ identity, head }) => deps.told.of(identity.run, head, identity, deps)),
  );
  return known.flatMap(({ told }, index) => {
    const later = records[index + 1]?.turnOrigin;
    // An interruption has the message of the turn that it has cut off.
    if (later?.interrupts === told.run && told.trajectory.count === 0) return [];
    const before = records[index]?.turnOrigin?.succeeds === undefined ? undefined : known[index - 1]?.told;
    return spokenTurns(told, before, later?.succeeds === told.run);
  });
}

/** What was said in a run. Where one goes on for another, the message is said once, and nobody says that there is no answer. */
export function spokenTurns(told: EarlierRun, before: EarlierRun | undefined, goesOn: boolean): readonly Turn[] {
  const turns = turnsOf(told);
  const isRepeated = before !== undefined && turns[0]?.role === 'user' && turns[0].text === queryWords(before);
  const isOpen = goesOn && turns.at(-1)?.text === `(${told.end.unanswered})`;
  return turns.slice(isRepeated ? 1 : 0, isOpen ? -1 : undefined);
}
