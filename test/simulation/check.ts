/** What must hold when a history is over. */
import { describeThrown, type Entry, type Message } from '#core';
import type { RunRecord } from '#journal';
import type { OpenWait } from '#pilotage/journal';
import { foldEntries, type RunState } from '#state';
import { endingProblems, foldProblems, lostEntries } from '#testing';
import { checkAccounts } from './check-accounts.ts';
import { checkApprovals } from './check-approvals-end.ts';
import { checkBackground, checkMadeOnce } from './check-background.ts';
import { checkBudgets, checkEffects } from './check-budgets.ts';
import { checkFires, type History } from './check-fires.ts';
import { checkFlow } from './check-flows.ts';
import { checkChanged, checkForks } from './check-forks.ts';
import { checkHeld } from './check-held.ts';
import { checkMessages } from './check-messages.ts';
import { checkOrigins } from './check-origins.ts';
import { checkCallLimits, checkOutcomes } from './check-outcomes.ts';
import { checkProgress } from './check-progress.ts';
import { checkSchedules } from './check-schedules.ts';
import { checkSessions } from './check-session.ts';
import { checkStarts } from './check-starts.ts';
import { checkTalks } from './check-talks.ts';
import { checkTasks } from './check-tasks.ts';
import { checkUndo } from './check-undo.ts';
import { checkParts, checkWaits } from './check-waits.ts';
import { type EndedRun, endingOf, hasUnwound } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import { checkMailbox } from './mailbox-by-hand.ts';
import type { ShownGroups } from './planner.ts';
import type { SimulationScript } from './script.ts';
import type { Told } from './talkers.ts';

export interface StoredRun {
  readonly record: RunRecord | undefined;
  readonly entries: readonly Entry[];
  readonly inbox: readonly Message[];
}

export interface EndOfHistory {
  readonly script: SimulationScript;
  readonly ledger: Ledger;
  readonly shown: ShownGroups;
  readonly stored: ReadonlyMap<string, StoredRun>;
  /** By tenant: the ids of the signals that are kept, in order. */
  readonly kept: ReadonlyMap<string, readonly string[]>;
  /** What is in the index of all that waits. */
  readonly waits: readonly OpenWait[];
  /** What those who talked in sessions were told. */
  readonly told: readonly Told[];
  readonly history: History;
}

export function checkEnd({ script, ledger, shown, stored, kept, waits, told, history }: EndOfHistory): void {
  const runs = new Map<string, EndedRun>();
  for (const [id, run] of ledger.runs) {
    const found = stored.get(id);
    const entries = found?.entries ?? [];
    // The journal in memory gives back the very entries that it took.
    const changed = run.entries.filter((entry) => entries[entry.seq - 1] !== entry);
    for (const what of lostEntries(changed, entries)) ledger.violated('no lost entry', what, id);
    if (entries.length > run.entries.length)
      ledger.violated('no lost entry', 'entries are there that nobody wrote', id);
    const state = stateOf(entries, id, ledger);
    if (state === undefined) continue;
    const ended = { ...run, id };
    runs.set(id, ended);
    if (!hasUnwound(ended)) checkAccounts(ended, state.totals, ledger);
    const hasEnded = endingOf(ended) !== undefined;
    if (!hasEnded) ledger.violated('no hang', `it never ended: ${situation(state, found)}`, id);
    else for (const what of endingProblems(entries, found?.record)) ledger.violated('one ending', what, id);
    if (found !== undefined && found.inbox.length > 0 && hasEnded) {
      ledger.violated('controls', `${found.inbox.length} messages are left in the inbox`, id);
    }
  }
  checkFold(runs, script.seed, ledger);
  checkEffects(runs, ledger);
  checkParts(runs, ledger);
  checkMadeOnce(runs, ledger);
  for (const { run, id } of waits) {
    if (ledger.runs.get(run)?.endedAt !== undefined) ledger.violated('waits', `it has ended, and ${id} waits`, run);
  }
  // Where it is not known in which order things landed, nobody can say who was to get what.
  if (script.world.journal === 'memory') checkMailbox(ledger, kept);
  const isInOrder = script.world.journal === 'memory';
  checkSchedules(runs, script, ledger);
  checkFires({ runs, ledger, schedules: script.calendar?.schedules ?? [], history, isInOrder });
  if (script.talks !== undefined) checkTalks({ runs, ledger, told, places: placesOf(stored), isInOrder });
  checkStarts(runs, isInOrder, ledger);
  checkBudgets(runs, ledger);
  checkSessions(runs, script.memory, ledger, script.faults.some(standsStill));
  const sleeps = (script.calendar?.nights.length ?? 0) > 0;
  // A machine that slept has lost its runs in the middle of calls, as one that died has.
  if (script.faults.length === 0 && !sleeps) checkCallLimits(runs, ledger);
  for (const run of runs.values()) {
    checkMessages(run, ledger);
    checkWaits(run, ledger);
    checkHeld(run, script, ledger);
    checkBackground(run, runs, ledger);
    checkUndo(run, runs, ledger);
    checkApprovals(run, script, ledger);
    checkTasks(run, runs, ledger, shown);
    checkForks(run, runs, ledger);
    // A night is longer than a node may take.
    if (!sleeps) checkFlow(run, runs, ledger);
    checkOutcomes(run, script, ledger);
    checkChanged(run, script, ledger);
    checkProgress(run, script.progress, ledger);
    checkOrigins(run, runs, ledger);
  }
}

function placesOf(stored: ReadonlyMap<string, StoredRun>): ReadonlyMap<string, number> {
  return new Map([...stored].flatMap(([id, { record }]) => (record?.turn === undefined ? [] : [[id, record.turn]])));
}

function stateOf(entries: readonly Entry[], run: string, ledger: Ledger): RunState | undefined {
  try {
    return foldEntries(entries);
  } catch (error) {
    ledger.violated('the fold', `the entries do not fold: ${describeThrown(error)}`, run);
    return undefined;
  }
}

/** Every prefix of one run in some histories: of all it would take longer than to play them. */
function checkFold(runs: ReadonlyMap<string, EndedRun>, seed: number, ledger: Ledger): void {
  if (seed % FOLDED_EVERY !== 0) return;
  const chosen = [...runs.values()].filter(({ entries }) => entries.length <= MOST_ENTRIES).at(-1);
  if (chosen === undefined) return;
  for (const what of foldProblems(chosen.entries)) ledger.violated('the fold', what, chosen.id);
}

const FOLDED_EVERY = 8;
const MOST_ENTRIES = 60;

function situation({ open, pauses, tasks }: RunState, stored: StoredRun | undefined): string {
  const { status, wakeAt, lease } = stored?.record ?? {};
  const step = open === null ? 'between steps' : `in step ${open.move.step}, ${open.move.decision.kind}`;
  const asked = pauses.map(({ token }) => token).join(', ') || 'none';
  const live =
    tasks
      .filter(({ end }) => end === undefined)
      .map(({ id }) => id)
      .join(', ') || 'none';
  return (
    `${status}, ${step}; open pauses ${asked}; tasks under way ${live}; ` +
    `wakes at ${String(wakeAt)}, ${lease === undefined ? 'not leased' : `leased by ${lease.owner}`}, ` +
    `${stored?.inbox.length ?? 0} messages waiting`
  );
}

function standsStill(fault: SimulationScript['faults'][number]): boolean {
  return (
    fault.kind === 'sleep' ||
    fault.kind === 'freeze' ||
    fault.kind === 'stall' ||
    fault.kind === 'unheard' ||
    'stallMs' in fault
  );
}
