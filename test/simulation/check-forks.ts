/** A fork has the first steps of its run behind it as they were, and does nothing of theirs again. */
import type { Entry, Json } from '#core';
import { type EndedRun, ownEntries, startOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { SimulationScript } from './script.ts';

type Runs = ReadonlyMap<string, EndedRun>;

export function checkForks(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const [first] = run.entries;
  if (first?.kind !== 'started' || first.fork === undefined) return;
  if (first.fork.effects === 'held') checkHeld(run, ledger);
  if (first.task !== undefined) return;
  const { run: from, step } = first.fork;
  const origin = runs.get(from) ?? ledger.sessions.goneRun(from)?.run;
  if (origin === undefined) {
    ledger.violated('forks', `it is a fork of ${from}, which is not there`, run.id);
    return;
  }
  const before = run.entries.slice(0, first.fork.entries);
  for (let at = 0; at < step; at += 1) {
    const [own, theirs] = [stepText(before, at), stepText(origin.entries, at)];
    // The result of one call of the last step may have been changed.
    if (own === theirs || (at === step - 1 && own.includes('"forked":true'))) continue;
    ledger.violated('forks', `step ${at} is ${own}, and of ${from} it was ${theirs}`, run.id);
  }
  const again = ownEntries(run).find((entry) => entry.kind === 'moved' && entry.step < step);
  if (again !== undefined) ledger.violated('forks', 'a step that it shares was decided again', run.id);
  const theirs = startOf(origin)?.identity;
  const { tenant, user, session } = first.identity;
  if (tenant !== theirs?.tenant || user !== theirs.user || session !== theirs.session) {
    ledger.violated('no foreign data', 'the fork belongs to somebody else than its run', run.id);
  }
}

/** No `once` tool is called, in the fork and in its tasks. */
function checkHeld({ id }: EndedRun, ledger: Ledger): void {
  const entered = ledger.attempts.find(({ run, effect }) => run === id && effect === 'once');
  if (entered !== undefined)
    ledger.violated('forks', `${entered.tool} ${entered.id} was called in a fork that holds effects`, id);
}

/** What was decided at a step, and what its calls came to. */
function stepText(entries: readonly Entry[], step: number): string {
  const parts = entries.flatMap((entry): Json[] => {
    if (entry.kind === 'moved' && entry.step === step) return [entry.decision as unknown as Json];
    if (entry.kind === 'plan_grown' && entry.step === step) return [entry.branches as unknown as Json];
    if (entry.kind === 'call_ended' && entry.step === step) return [entry.call, entry.outcome as unknown as Json];
    return [];
  });
  return JSON.stringify(parts);
}

/** The result that was asked for stands in the last step that the fork shares. */
export function checkChanged({ id, entries }: EndedRun, { forks }: SimulationScript, ledger: Ledger): void {
  const [first] = entries;
  const asked = forks.find(({ run }) => run === id);
  if (asked?.result === undefined || first?.kind !== 'started' || first.fork === undefined) return;
  const last = stepText(entries.slice(0, first.fork.entries), first.fork.step - 1);
  if (!last.includes('"forked":true')) ledger.violated('forks', `another result was asked for, and it has ${last}`, id);
}
