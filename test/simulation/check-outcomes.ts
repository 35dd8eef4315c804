/** What calls, gates and limits have come to in a run, by the names of the tools: written down by hand. */
import { type Entry, isJsonObject, type Json, type JsonObject } from '#core';
import { type EndedRun, entriesOf, hasUnwound, limitsOf, ownEntries, parentOf } from './ended-run.ts';
import { GATED_KINDS } from './gated-tools.ts';
import type { Ledger } from './ledger.ts';
import { AGENTS, type SimulationScript } from './script.ts';

type Runs = ReadonlyMap<string, EndedRun>;
type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

export function checkOutcomes(run: EndedRun, script: SimulationScript, ledger: Ledger): void {
  const calls = callsOf(run.entries);
  const isWell = script.faults.length === 0;
  for (const ended of entriesOf(run, 'call_ended')) checkCallEnd(ended, calls, isWell, run, ledger);
  for (const paused of entriesOf(run, 'paused')) checkGate(paused, calls, script, run, ledger);
  checkRejectedEnd(run, ledger);
  checkDoubts(run, ledger);
  checkErrands(run, calls, script, ledger);
}

interface Called {
  readonly tool: string;
  readonly args: JsonObject;
}

/** By step and call. */
function callsOf(entries: readonly Entry[]): ReadonlyMap<string, Called> {
  const calls = new Map<string, Called>();
  const counts = new Map<number, number>();
  const note = (step: number, tool: string, args: Json): void => {
    const call = counts.get(step) ?? 0;
    counts.set(step, call + 1);
    calls.set(`${step}.${call}`, { tool, args: isJsonObject(args) ? args : {} });
  };
  for (const entry of entries) {
    if (entry.kind === 'plan_grown') for (const { tool, args } of entry.branches) note(entry.step, tool, args);
    if (entry.kind !== 'moved' || entry.rejected !== undefined) continue;
    const { decision, step } = entry;
    if (decision.kind === 'call_tool') note(step, decision.tool, decision.args);
    if (decision.kind === 'call_parallel') for (const { tool, args } of decision.branches) note(step, tool, args);
  }
  return calls;
}

/** A time limit binds, what may pass is tried again, and what does not fit is not called. */
function checkCallEnd(
  { step, call, outcome }: Of<'call_ended'>,
  calls: ReadonlyMap<string, Called>,
  isWell: boolean,
  { id, entries }: EndedRun,
  ledger: Ledger,
): void {
  const { tool, args } = calls.get(`${step}.${call}`) ?? {};
  if (tool === undefined || args === undefined) return;
  const ms = typeof args['ms'] === 'number' ? args['ms'] : 0;
  if (isWell && tool === 'brief' && ms > LONG_FOR_BRIEF && outcome.kind === 'value') {
    ledger.violated('order', `brief ${String(args['id'])} has a value after ${ms} ms, and 100 was its limit`, id);
  }
  if (outcome.kind === 'value' && args['wrong'] === true) {
    ledger.violated('order', `${tool} ${String(args['id'])} was made with what does not fit`, id);
  }
  const isTried = TRIED_AGAIN.includes(tool) && args['fail'] === 'once' && args['odd'] === undefined;
  // A call that is put off is given up for a new goal.
  const hasNewGoal = entries.some((entry) => entry.kind === 'control' && entry.control.type === 'REDIRECT');
  if (isTried && !hasNewGoal && outcome.kind === 'error' && outcome.error.code === 'busy') {
    ledger.violated('order', `${tool} ${String(args['id'])} would have passed, and was not tried again`, id);
  }
}

const LONG_FOR_BRIEF = 250;
const TRIED_AGAIN: readonly string[] = ['look', 'read', 'put', 'narrow'];

/** What the tool says of its gate stands in the pause. */
function checkGate(
  { step, call, reason, at, expiresAt, approver, onReject }: Of<'paused'>,
  calls: ReadonlyMap<string, Called>,
  { faults }: SimulationScript,
  { id }: EndedRun,
  ledger: Ledger,
): void {
  const { tool } = calls.get(`${step}.${call}`) ?? {};
  if (tool === undefined || reason !== 'approval_required' || tool in GATED_KINDS) return;
  // A clock may be set between the moment at which the gate was asked and the one at which it is written down.
  const mostMs = faults.some(({ kind }) => kind === 'clock') ? Number.POSITIVE_INFINITY : SOON_MS;
  if ((tool === 'ask_soon') !== (expiresAt !== undefined) || (expiresAt ?? at) > Math.ceil(at + mostMs)) {
    ledger.violated('gates', `the gate of ${tool} is open until ${String(expiresAt)}, since ${at}`, id);
  }
  if ((tool === 'ask_other') !== (approver === 'another')) {
    ledger.violated('gates', `the gate of ${tool} can be approved by ${String(approver)}`, id);
  }
  if ((tool === 'ask_end') !== (onReject === 'end')) {
    ledger.violated('gates', `a no to ${tool} would come to ${String(onReject)}`, id);
  }
}

const SOON_MS = 700;

/** A no that ends the run is followed by no further step. */
function checkRejectedEnd(run: EndedRun, ledger: Ledger): void {
  const ends = new Set(entriesOf(run, 'paused').flatMap(({ token, onReject }) => (onReject === 'end' ? [token] : [])));
  const rejected = entriesOf(run, 'resumed').find(({ token, verdict }) => verdict === 'reject' && ends.has(token));
  const later = rejected && entriesOf(run, 'moved').find(({ seq }) => seq > rejected.seq);
  if (later !== undefined)
    ledger.violated('gates', `step ${later.step} was decided after a no that was to end the run`, run.id);
}

/** Only who cancels a run ends it over a call of which nobody knows whether it has happened. */
function checkDoubts(run: EndedRun, ledger: Ledger): void {
  const last = run.entries.at(-1);
  if (last?.kind !== 'finished' || last.reason === 'cancelled') return;
  const isCancelled = run.entries.some((entry) => entry.kind === 'control' && entry.control.type === 'CANCEL');
  // A cancel stops what undoes the calls, whatever the run ends with.
  if (hasUnwound(run) && isCancelled) return;
  const settled = new Set(entriesOf(run, 'resumed').map(({ token }) => token));
  // What is given up with the ending was in doubt until then.
  const before = entriesOf(run, 'call_ended').filter(({ seq }) => run.landed[seq - 1] !== run.landed[last.seq - 1]);
  const ended = new Set(before.map(({ step, call }) => `${step}.${call}`));
  const open = entriesOf(run, 'paused').find(
    ({ reason, token, step, call }) => reason === 'in_doubt' && !settled.has(token) && !ended.has(`${step}.${call}`),
  );
  if (open !== undefined) ledger.violated('once', `it ended as ${last.reason}, and ${open.token} is in doubt`, run.id);
}

/** A planner that says it is done has had every errand made; one that looks at their values, with a value. */
function checkErrands(
  run: EndedRun,
  calls: ReadonlyMap<string, Called>,
  { plans, roots }: SimulationScript,
  ledger: Ledger,
): void {
  const root = roots.find((known) => known.run === run.id);
  const last = run.entries.at(-1);
  const { agent = 'finish' } = root ?? {};
  if (root === undefined || agent === 'finish' || !AGENTS.includes(agent)) return;
  if (last?.kind !== 'finished' || last.reason !== 'goal') return;
  // What a plan without an end comes to are its results.
  if (last.payload !== DONE && !SURE.includes(agent)) return;
  if (entriesOf(run, 'control').some(({ control, applied }) => applied && control.type === 'REDIRECT')) return;
  const made = new Set([...calls.values()].map(({ args }) => args['id']));
  const missing = (plans[root.plan]?.errands ?? []).flat().find(({ args }) => !made.has(args['id']));
  // A model may take its own words for a call, and htn passes over what cannot be done.
  if (missing !== undefined && !/^(react|htn)/.test(agent)) {
    ledger.violated(
      'errands',
      `${agent} says that all is done, and ${String(missing.args['id'])} was never called`,
      run.id,
    );
  }
  if (!SURE.includes(agent)) return;
  const failed = ownEntries(run).find((entry) => entry.kind === 'call_ended' && entry.outcome.kind !== 'value');
  if (failed !== undefined)
    ledger.violated('errands', `${agent} says that all is done, and entry ${failed.seq} is no value`, run.id);
}

const DONE = 'All of it is done.';
const SURE: readonly string[] = ['graph', 'graph-stream'];

/**
 * Of so many calls that were entered, in a run and its tasks, no more than it may start. A process that died may have been in the
 * middle of one of which nobody knows: those histories are left out.
 */
export function checkCallLimits(runs: Runs, ledger: Ledger): void {
  const keys = new Map<string, Set<string>>();
  const undone = new Map([...runs].map(([id, run]) => [id, undoneIn(run)]));
  for (const { run, key } of ledger.attempts) {
    if (undone.get(run)?.has(key.slice(key.lastIndexOf('/') + 1)) === true) continue;
    for (let at: string | undefined = run; at !== undefined; at = parentOf(runs.get(at))) {
      keys.set(at, (keys.get(at) ?? new Set()).add(key));
    }
  }
  for (const [id, run] of runs) {
    const { calls = Number.POSITIVE_INFINITY } = limitsOf(run);
    const made = keys.get(id)?.size ?? 0;
    if (made > calls) ledger.violated('budget', `${made} calls were made of ${calls}`, id);
  }
}

/** By step and call, what somebody says has not happened, and was not made again: it has taken nothing. */
function undoneIn(run: EndedRun): ReadonlySet<string> {
  const asked = new Map(entriesOf(run, 'paused').map(({ token, step, call }) => [token, `${step}.${call}`]));
  const denied = new Set(
    entriesOf(run, 'resumed')
      .filter(({ verdict, outcome }) => verdict === 'settle' && outcome === undefined)
      .map(({ token }) => asked.get(token)),
  );
  const given = entriesOf(run, 'call_ended').filter(({ outcome }) => outcome.kind === 'cancelled');
  return new Set(given.map(({ step, call }) => `${step}.${call}`).filter((place) => denied.has(place)));
}
