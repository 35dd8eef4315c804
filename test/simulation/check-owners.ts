/** Nobody is held to be dead who lives, and nobody takes a run from one who lives without knowing of it. */
import type { Claim, ClaimRequest } from '#journal';
import type { SimulatedProcess } from './process.ts';

/** What is known of those who claim runs. */
interface Known {
  /** By the name under which each claims. */
  readonly owners: ReadonlyMap<string, SimulatedProcess>;
  violated(invariant: 'leases', what: string, run?: string): void;
}

interface Leased {
  readonly holder: SimulatedProcess | undefined;
  readonly leaseUntil: number;
  readonly fence: number;
}

/** The same request, whose answers about owners are checked. */
export function checkOwner(request: ClaimRequest, ledger: Known): ClaimRequest {
  const { from, isDead } = request;
  const check = (owner: string): void => {
    const process = ledger.owners.get(owner);
    if (process?.alive === true)
      ledger.violated('leases', `${process.name} lives, and is held to be dead`, request.run);
  };
  if (from !== undefined) check(from);
  if (isDead === undefined) return request;
  return {
    ...request,
    isDead: (owner) => {
      const dead = isDead(owner);
      if (dead) check(owner);
      return dead;
    },
  };
}

/** @param run as it was before the claim. */
export function checkClaim(
  claim: Claim,
  request: Pick<ClaimRequest, 'from'>,
  run: Leased,
  process: SimulatedProcess,
  { now, ledger }: { readonly now: number; readonly ledger: Known },
): void {
  const { holder, leaseUntil, fence } = run;
  const isTakenFromDead = request.from !== undefined && holder?.alive === false;
  if (leaseUntil > now && !isTakenFromDead) {
    ledger.violated('leases', `${process.name} got a lease that another owner still holds`, claim.run);
  }
  if (claim.fence <= fence) ledger.violated('leases', `the fence did not rise: ${claim.fence}`, claim.run);
  if (holder?.alive === true && claim.workLeftMsAgo === undefined) {
    ledger.violated('leases', `${process.name} does not know that ${holder.name} may be at it still`, claim.run);
  }
}
