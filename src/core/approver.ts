/** Who approves, and whose approval counts. */
import type { Approver } from './approval.ts';
import type { Caller } from './control.ts';
import type { Identity } from './identity.ts';

/** Somebody who has said yes. `null`: the program itself. */
export type Approving = Caller | null;

/** One person counts once, whatever session they speak from. */
export function personKey(who: Approving): string {
  return who === null ? '' : JSON.stringify([who.tenant, who.user]);
}

/** How many of these people count for such terms. Nobody approves their own wish where another one has to. */
export function countApprovers(
  people: readonly Approving[],
  approver: Approver | undefined,
  { tenant, user }: Pick<Identity, 'tenant' | 'user'>,
): number {
  const isOwn = (who: Approving): boolean => who !== null && who.tenant === tenant && who.user === user;
  const counted = approver === 'another' ? people.filter((who) => !isOwn(who)) : people;
  return new Set(counted.map(personKey)).size;
}
