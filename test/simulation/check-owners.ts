/** Nobody is held to be dead who lives, nobody takes a run from one who lives without knowing of it, and only its owner makes its calls. */
import { type Control, isControl } from '#core';
import type { Claim, Claimant, ClaimRequest } from '#journal';
import type { Attempt, LedgerRun } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

/** What is known of those who claim runs. */
interface Known {
  /** By the name under which each claims. */
  readonly owners: ReadonlyMap<string, SimulatedProcess>;
  readonly attempts: readonly Attempt[];
  violated(invariant: 'leases' | 'once' | 'cancel wins' | 'order', what: string, run?: string): void;
}

interface Leased {
  readonly holder: SimulatedProcess | undefined;
  readonly leaseUntil: number;
  readonly fence: number;
  readonly isGivenBack: boolean;
}

/** The same request, whose answers about owners are checked. */
export function checkOwner<T extends Claimant & Partial<Pick<ClaimRequest, 'run' | 'from'>>>(
  request: T,
  ledger: Known,
): T {
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
  const { holder, leaseUntil, fence, isGivenBack } = run;
  const isTakenFromDead = request.from !== undefined && holder?.alive === false;
  // Where it was being given back, the store may have done that first.
  if (leaseUntil > now && !isTakenFromDead && !isGivenBack) {
    ledger.violated('leases', `${process.name} got a lease that another owner still holds`, claim.run);
  }
  if (claim.fence <= fence) ledger.violated('leases', `the fence did not rise: ${claim.fence}`, claim.run);
  if (holder?.alive === true && !isGivenBack && claim.workLeftMsAgo === undefined) {
    ledger.violated('leases', `${process.name} does not know that ${holder.name} may be at it still`, claim.run);
  }
}

/** A process enters a call: it has the run, its lease is not over, and nobody had cancelled the run before the call was written down. */
export function checkEntered(
  { tool, id, key, run: name, effect }: Omit<Attempt, 'order'>,
  run: LedgerRun,
  process: SimulatedProcess,
  { now, ledger }: { readonly now: number; readonly ledger: Known },
): void {
  const entersWorld = effect === 'once' || effect === 'keyed';
  if (run.holder !== process) {
    const what = `${tool} ${id} was run by ${process.name}, which had lost the run`;
    ledger.violated(entersWorld ? 'once' : 'leases', what, name);
  } else if (entersWorld && run.leaseUntil <= now) {
    ledger.violated('leases', `${tool} ${id} was run by ${process.name} after its lease was over`, name);
  }
  const place = /\/(\d+)\.(\d+)$/.exec(key);
  if (place === null) return;
  const [step, call] = [Number(place[1]), Number(place[2])];
  checkPutOff({ tool, id, key, run: name }, { step, call }, run, process, ledger);
  const isUndoing = run.entries.some((entry) => entry.kind === 'unwinding');
  for (const { message, order } of run.messages.values()) {
    if (!isControl(message) || message.type !== 'CANCEL' || run.taken.has(message.id)) continue;
    if (isUndoing && !stopsUndo(message)) continue;
    const isHard = message.payload?.['hard'] !== false;
    const written = run.entries.filter(
      (entry) =>
        (isHard && entry.kind === 'moved' && entry.step === step) ||
        (entry.kind === 'call_began' && entry.step === step && entry.call === call),
    );
    if (!written.some(({ seq }) => order < (run.landed[seq - 1] ?? 0))) continue;
    ledger.violated('cancel wins', `${tool} ${id} was begun after CANCEL ${message.id} was stored`, name);
  }
}

/** A run that undoes its calls goes on with that until a second cancel comes, of somebody, or passed on by a run above: that one alone ends is none. */
function stopsUndo({ again, payload }: Control): boolean {
  return again === true || (payload?.['cascaded'] === true && payload['stopsUndo'] === true);
}

/**
 * What was put off is tried again when its time has come, by the clock of whoever tries; one that is behind cannot tell how much of the wait is
 * left, and tries at once. That is so when it takes the run up: until it enters the call, its clock may have come up with the other's.
 */
function checkPutOff(
  { tool, id, key, run: name }: Pick<Attempt, 'tool' | 'id' | 'key' | 'run'>,
  { step, call }: { readonly step: number; readonly call: number },
  run: LedgerRun,
  process: SimulatedProcess,
  ledger: Known,
): void {
  const away = run.entries.findLast(
    (entry) => entry.kind === 'call_away' && entry.step === step && entry.call === call,
  );
  // A later step that makes the call anew, under its old key, has not put it off.
  const isOpen = run.entries.findLast((entry) => entry.kind === 'moved')?.step === step;
  if (away?.kind !== 'call_away' || !isOpen || run.holder !== process) return;
  const putOff = run.landed[away.seq - 1] ?? 0;
  const isFirst = !ledger.attempts.some((attempt) => attempt.key === key && attempt.order > putOff);
  const wallMs = process.clock.now();
  const taken = run.claims.at(-1);
  const wasBehind = taken !== undefined && taken.head >= away.seq && taken.wallMs < away.failedAt;
  if (isFirst && !wasBehind && away.failedAt <= wallMs && wallMs < away.retryAt)
    ledger.violated('order', `${tool} ${id} was tried again before its time`, name);
}
