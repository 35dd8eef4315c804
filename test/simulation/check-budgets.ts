/** What happened in the world: each `once` effect once, and never more money or steps than a run and its tasks had. */

import { accountOf } from './check-accounts.ts';
import { timesFailed } from './check-calls.ts';
import { type EndedRun, entriesOf, limitsOf, parentOf, startOf } from './ended-run.ts';
import type { Attempt, Ledger } from './ledger.ts';

export function checkEffects(runs: ReadonlyMap<string, EndedRun>, ledger: Ledger): void {
  for (const [key, attempts] of Map.groupBy(ledger.attempts, (attempt) => attempt.key)) {
    const [first] = attempts;
    if (first === undefined) continue;
    const calls = new Set(attempts.map(({ run, tool, id, args }) => `${run} ${tool} ${id} ${args}`));
    if (calls.size > 1)
      ledger.violated('once', `the key ${key} served different calls: ${[...calls].join('; ')}`, first.run);
    if (first.effect !== 'once' || first.waits === true) continue;
    const allowed = 1 + (ledger.refuted.get(key) ?? 0);
    if (attempts.length > allowed) {
      ledger.violated('once', `${first.tool} ${first.id} was run ${attempts.length} times`, first.run);
    }
    // One that comes when nobody waited for it any more is what no runtime can stop.
    if ((ledger.effects.get(key) ?? 0) - (ledger.lateEffects.get(key) ?? 0) > 1)
      ledger.violated('once', `${first.tool} ${first.id} happened twice`, first.run);
  }
  for (const [call, attempts] of Map.groupBy(ledger.attempts, ({ run, id }) => `${run} ${id}`)) {
    const keys = new Set(attempts.map(({ key }) => key));
    const [first] = attempts;
    // A plan has each call once, but for those that are made over and over; what only reads may be asked anew.
    if (keys.size <= 1 || first === undefined || first.effect === 'pure' || first.effect === 'read') continue;
    const failed = timesFailed(runs.get(first.run)?.entries ?? [], first);
    // What did not happen, as the world says, is settled: another plan may make it under a key of its own.
    const refuted = [...keys].reduce((sum, key) => sum + (ledger.refuted.get(key) ?? 0), 0);
    if (keys.size > 1 + failed + refuted)
      ledger.violated('once', `the call ${call} had ${keys.size} idempotency keys`, first.run);
  }
  checkBegun(runs, ledger);
  checkGivenUp(runs, ledger);
}

/** A `once` call that was entered is given up only when the world, or whoever has looked at it, says that it did not happen. */
function checkGivenUp(runs: ReadonlyMap<string, EndedRun>, ledger: Ledger): void {
  // Of a call that waits in the middle of its work, its parts are judged.
  const whole = ledger.attempts.filter((attempt) => isOnce(attempt) && attempt.waits !== true);
  for (const [run, attempts] of Map.groupBy(whole, (attempt) => attempt.run)) {
    const ended = runs.get(run);
    if (ended === undefined) continue;
    const outcomes = new Map(
      entriesOf(ended, 'call_ended').map((entry) => [`${entry.step}.${entry.call}`, entry.outcome]),
    );
    for (const { key, tool, id } of attempts) {
      const { kind } = outcomes.get(key.slice(key.lastIndexOf('/') + 1)) ?? {};
      if (kind !== 'cancelled' && kind !== 'skipped') continue;
      const happened = (ledger.effects.get(key) ?? 0) > (ledger.lateEffects.get(key) ?? 0);
      if (!happened && ledger.refuted.has(key)) continue;
      const known = happened ? 'it happened' : 'nobody has found out whether it happened';
      ledger.violated('once', `${tool} ${id} came to ${kind}, and ${known}`, run);
    }
  }
}

/** That a `once` call begins is in the journal before it does. */
function checkBegun(runs: ReadonlyMap<string, EndedRun>, ledger: Ledger): void {
  for (const [run, attempts] of Map.groupBy(ledger.attempts.filter(isOnce), (attempt) => attempt.run)) {
    const { entries = [], landed = [] } = runs.get(run) ?? {};
    for (const [index, attempt] of attempts.entries()) {
      const begun = entries.filter((entry, at) => entry.kind === 'call_began' && (landed[at] ?? 0) < attempt.order);
      const started = new Set(attempts.slice(0, index + 1).map(({ key }) => key)).size;
      if (begun.length < started) ledger.violated('once', `${attempt.tool} ${attempt.id} ran before it had begun`, run);
    }
  }
}

function isOnce({ effect }: Attempt): boolean {
  return effect === 'once';
}

export function checkBudgets(runs: ReadonlyMap<string, EndedRun>, ledger: Ledger): void {
  const spent = new Map<string, number>();
  const paid = new Set<string>();
  for (const { key, run, costMicroUsd } of ledger.attempts) {
    if (costMicroUsd === 0 || paid.has(key)) continue;
    paid.add(key);
    for (const above of withThoseAbove(run, runs)) spent.set(above, (spent.get(above) ?? 0) + costMicroUsd);
  }
  const steps = new Map<string, number>();
  const turns = new Map<string, number>();
  for (const { id, entries } of runs.values()) {
    // What undoes something takes none of its steps.
    const account = accountOf(entries.filter((entry) => entry.kind !== 'moved' || entry.undoes === undefined));
    for (const above of withThoseAbove(id, runs)) {
      steps.set(above, (steps.get(above) ?? 0) + account.ownSteps);
      turns.set(above, (turns.get(above) ?? 1) + account.turns);
    }
  }
  for (const run of runs.values()) {
    const { id } = run;
    const limits = limitsOf(run);
    const cost = spent.get(id) ?? 0;
    if (limits.costMicroUsd !== undefined && cost > limits.costMicroUsd) {
      ledger.violated('budget', `the run and its tasks spent ${cost} of ${limits.costMicroUsd}`, id);
    }
    const taken = steps.get(id) ?? 0;
    const given = (limits.steps ?? Number.POSITIVE_INFINITY) * (turns.get(id) ?? 1);
    if (taken > given) {
      ledger.violated('budget', `the run and its tasks took ${taken} steps of ${given}`, id);
    }
    checkDeadline(run, ledger);
  }
}

function checkDeadline(run: EndedRun, ledger: Ledger): void {
  const { deadlineAt = Number.POSITIVE_INFINITY } = limitsOf(run);
  // Attachments are read when it was found that there is time left.
  if (startOf(run)?.context?.inputs !== undefined) return;
  const late = entriesOf(run, 'moved').find(({ startedAt, undoes }) => undoes === undefined && startedAt > deadlineAt);
  if (late !== undefined) ledger.violated('budget', 'the planner was asked after the deadline', run.id);
}

function withThoseAbove(run: string, runs: ReadonlyMap<string, EndedRun>): string[] {
  const chain: string[] = [];
  for (let at: string | undefined = run; at !== undefined; at = parentOf(runs.get(at))) chain.push(at);
  return chain;
}
