/** What must hold of a run and its tasks that went through crashes. Each check gives a sentence for each violation. */
import { branchesOf, describeThrown, type Entry, type Json, jsonEquals, type TaskEnd } from '#core';
import { hasEnded, type Journal, type RunRecord } from '#journal';
import { taskEndOf } from '#runtime';
import { applyEntry, foldEntries, openState, packState, type RunState, unpackState } from '#state';
import { type CrashAttempt, type CrashRecord, callName } from './record.ts';

/**
 * Seqs without gaps, and the fold: a state that is stored as a snapshot after each entry, and read again for the next one, is at each
 * of them what the entries give one by one; and that is what all of them give at once.
 * @param known a journal of which this was found. Of entries that begin as it does, those are folded and no more.
 */
export function foldProblems(entries: readonly Entry[], known: readonly Entry[] = []): string[] {
  const gap = entries.findIndex((entry, index) => entry.seq !== index + 1);
  if (gap !== -1) return [`Entry ${gap + 1} has seq ${entries[gap]?.seq}.`];
  const [first] = entries;
  if (first === undefined) return ['The journal of the run is empty.'];
  try {
    const state = openState(first);
    const problems = snapshotProblems(state, entries, sameBeginning(entries, known));
    if (JSON.stringify(foldEntries(entries)) !== JSON.stringify(state)) {
      problems.push('The entries fold to another state than one by one.');
    }
    return problems;
  } catch (error) {
    return [`The entries do not fold: ${describeThrown(error)}`];
  }
}

function sameBeginning(entries: readonly Entry[], known: readonly Entry[]): number {
  const other = entries.findIndex((entry, index) => !sameJson(entry, known[index]));
  return other === -1 ? entries.length : other;
}

/** @param state of the first entry. It is folded on to the last. @param from before which nothing is stored. */
function snapshotProblems(state: RunState, entries: readonly Entry[], from: number): string[] {
  let stored: RunState | undefined;
  const problems: string[] = [];
  for (const [index, entry] of entries.entries()) {
    if (index > 0) applyEntry(state, entry);
    if (stored !== undefined) applyEntry(stored, entry);
    if (index < from - 1) continue;
    const { body, blocks } = packState(stored ?? state, 0);
    stored = unpackState(body, blocks);
    if (stored === undefined || JSON.stringify(stored) !== JSON.stringify(state)) {
      problems.push(`A snapshot at ${index + 1} gives another state than the entries.`);
      stored = undefined;
    }
  }
  return problems;
}

/** Every entry that was acknowledged is there, as it was. */
export function lostEntries(acknowledged: readonly Entry[], entries: readonly Entry[]): string[] {
  return acknowledged.flatMap((entry) => {
    const stored = entries[entry.seq - 1];
    if (stored === undefined) return [`Entry ${entry.seq} (${entry.kind}) was acknowledged and is lost.`];
    return sameJson(stored, entry) ? [] : [`Entry ${entry.seq} (${entry.kind}) is not what was acknowledged.`];
  });
}

/** The run ended, once, and its record says so. */
export function endingProblems(entries: readonly Entry[], record: RunRecord | undefined): string[] {
  // A task that had reached its goal ends once more when it has undone what it did.
  const endings = entries.filter((entry, index) => isEnding(entry) && entries[index + 1]?.kind !== 'unwinding');
  const last = entries.at(-1);
  if (endings.length !== 1 || last === undefined || !isEnding(last)) {
    return [`The run has ${endings.length} endings, and its last entry is ${last?.kind ?? 'missing'}.`];
  }
  const isOver = record !== undefined && hasEnded(record.status) && record.wakeAt === null;
  return isOver ? [] : [`The run has ended, but its record says ${record?.status ?? 'nothing'}.`];
}

function isEnding(entry: Entry): boolean {
  return entry.kind === 'finished' || entry.kind === 'failed';
}

/** How often things happened in one run, and under which keys. */
export function effectProblems(record: CrashRecord, state: RunState): string[] {
  const problems = new Set<string>();
  const own = record.attempts.filter(({ run }) => run === state.identity.run);
  const byKey = Map.groupBy(own, (attempt) => attempt.key);
  for (const [key, attempts] of byKey) {
    const calls = new Set(attempts.map(({ tool, args }) => `${tool} ${args}`));
    if (calls.size > 1) problems.add(`The idempotency key ${key} served ${calls.size} different calls.`);
    if (attempts[0]?.effect === 'once')
      for (const problem of onceProblems(record, key, attempts)) problems.add(problem);
  }
  for (const attempts of Map.groupBy(own, ({ tool, args }) => `${tool} ${args}`).values()) {
    const keys = new Set(attempts.map(({ key }) => key)).size;
    const [attempt] = attempts;
    const calls = attempt === undefined ? 0 : callsLike(attempt, state);
    if (keys > calls) problems.add(`${calls} calls of ${attempt?.tool} with the same arguments had ${keys} keys.`);
  }
  for (const [tool, attempts] of Map.groupBy(own, ({ tool }) => tool)) {
    const ran = new Set(attempts.map(({ key }) => key)).size;
    const values = outcomes(state).filter((call) => call.tool === tool && call.kind === 'value').length;
    if (values > ran) problems.add(`${values} calls of ${tool} have a value, but only ${ran} ran.`);
  }
  return [...problems];
}

function onceProblems(record: CrashRecord, key: string, attempts: readonly CrashAttempt[]): string[] {
  const tool = attempts[0]?.tool;
  const notDone = record.reconciliations.filter((asked) => asked.key === key && asked.status === 'not_done').length;
  const unmade = record.unmade.filter((attempt) => attempt === key).length;
  const refuted = record.settlements.filter((settled) => settled.key === key && !settled.happened).length;
  const problems: string[] = [];
  const parked = attempts[0] === undefined ? 0 : record.parked(attempts[0]);
  if (attempts.length > 1 + notDone + unmade + refuted + parked)
    problems.push(`${tool}, a once tool, was run ${attempts.length} times under ${key}.`);
  for (const [counted, effects] of record.effects) {
    if (effects < 2 || (counted !== key && !counted.startsWith(`${key}#`))) continue;
    problems.push(`The effect of ${tool}, a once tool, happened ${effects} times under ${counted}.`);
  }
  return problems;
}

/** Calls of the journal that an attempt may belong to: the same arguments, or all of the tool when none has them. */
function callsLike({ tool, args }: CrashAttempt, state: RunState): number {
  const calls = outcomes(state).filter((call) => call.tool === tool);
  const same = calls.filter((call) => JSON.stringify(call.args) === args).length;
  return same === 0 ? calls.length : same;
}

interface CallOutcome {
  readonly id: string;
  readonly tool: string;
  readonly args: unknown;
  readonly kind: string;
}

function outcomes(state: RunState): CallOutcome[] {
  return state.steps.flatMap((step) =>
    branchesOf(step.decision).flatMap(({ tool, args }, call) => {
      const kind = step.calls[call]?.outcome.kind;
      const id = callName(state.identity.run, step.index, call);
      return kind === undefined ? [] : [{ id, tool, args, kind }];
    }),
  );
}

/**
 * A `once` call that was cut off is unknown, unless its tool was asked and knew, or somebody has settled it; nothing else is
 * unknown.
 */
export function unknownProblems(record: CrashRecord, state: RunState, reference: RunState): string[] {
  const before = new Set(callsInDoubt(reference));
  const problems: string[] = [];
  for (const { id, tool, kind } of outcomes(state)) {
    const known = record.reconciliations.filter((asked) => asked.tool === tool && asked.status !== 'unknown');
    // A cancel that meets a call under way cuts it off too.
    if (kind === 'unknown' && !record.interrupted.has(id) && !before.has(id) && state.cancel === null) {
      problems.push(`Call ${id} (${tool}) is unknown, but no crash cut it off.`);
    }
    const mayRepeat = record.attempts.some((attempt) => attempt.tool === tool && attempt.effect !== 'once');
    const isSettled = record.settlements.some((settled) => settled.id === id);
    if (record.interrupted.has(id) && kind !== 'unknown' && known.length === 0 && !mayRepeat && !isSettled) {
      problems.push(`Call ${id} (${tool}) was cut off by a crash and may have happened; its outcome says ${kind}.`);
    }
  }
  return problems;
}

export function callsInDoubt(state: RunState): string[] {
  return outcomes(state).flatMap(({ id, kind }) => (kind === 'unknown' ? [id] : []));
}

/** No planner went on without having seen that a call of its run is unknown. */
export function unseenProblems(record: CrashRecord, state: RunState, reference: RunState): string[] {
  const before = new Set(callsInDoubt(reference));
  const [unseen] = callsInDoubt(state).filter((id) => !before.has(id) && !record.unknownShown.has(id));
  const planned =
    state.ending?.kind === 'finished' && state.cancel === null && state.ending.metadata?.['budget'] === undefined;
  return planned && unseen !== undefined ? [`Call ${unseen} is unknown, and the planner was never shown it.`] : [];
}

/** The run ends as the clean one. Not asked where an outcome is unknown: a planner that was shown it may change its mind. */
export function otherEnding(state: RunState, reference: RunState): string[] {
  if (sameJson(endingOf(state), endingOf(reference))) return [];
  return [`The run ended with ${endingText(state)}; the clean run with ${endingText(reference)}.`];
}

function endingOf({ ending }: RunState): unknown {
  if (ending?.kind === 'finished') return { reason: ending.reason, payload: ending.payload };
  return ending === null ? null : { code: ending.error.code };
}

function endingText(state: RunState): string {
  return JSON.stringify(endingOf(state)).slice(0, 300);
}

function sameJson(left: unknown, right: unknown): boolean {
  return jsonEquals(plain(left), plain(right));
}

function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null)) as Json;
}

/** The ids of the run and of all runs below it, as the journal has them. */
export async function treeOf(journal: Journal, run: string): Promise<string[]> {
  const tasks = await journal.list({ parent: run, limit: 200 });
  const below = await Promise.all(tasks.map(({ identity }) => treeOf(journal, identity.run)));
  return [run, ...below.flat()];
}

/** What a run was told of its tasks is what became of them, told once. */
export function taskProblems(entries: readonly Entry[], state: RunState, tree: readonly RunState[]): string[] {
  const runs = new Map(tree.map((each) => [each.identity.run, each]));
  const told = entries.filter((entry) => entry.kind === 'task_ended');
  const isOver = (end: (typeof told)[number], index: number): boolean =>
    runs.get(end.task)?.unwinding == null || told.findLastIndex(({ task }) => task === end.task) === index;
  const ends = told.filter(isOver);
  const groups = entries.flatMap((entry) => (entry.kind === 'group_ended' ? [entry.group] : []));
  return [
    ...twice(ends.map(({ task }) => task)).map((task) => `The end of the task ${task} came twice.`),
    ...twice(groups).map((group) => `The group ${group} ended twice.`),
    ...state.tasks.filter(({ id }) => !runs.has(id)).map(({ id }) => `The task ${id} was spawned and is not there.`),
    ...ends.flatMap((end) => falseNews(end, runs.get(end.task))),
    ...orphanProblems(state, runs),
  ];
}

function twice(names: readonly string[]): string[] {
  return names.filter((name, index) => names.indexOf(name) < index);
}

function falseNews({ task, ...told }: TaskEnd, run: RunState | undefined): string[] {
  const end = run && taskEndOf(run);
  if (end === undefined) return [`The task ${task} is said to have ended, and has not.`];
  const same =
    end.status === told.status &&
    end.error?.code === told.error?.code &&
    jsonEquals(end.result ?? null, told.result ?? null);
  return same ? [] : [`The task ${task} is said to be ${told.status}, and is ${end.status}, or has another result.`];
}

function orphanProblems({ identity, task }: RunState, runs: ReadonlyMap<string, RunState>): string[] {
  if (task === null) return [];
  const owner = runs.get(task.parent);
  return owner?.tasks.some(({ id }) => id === identity.run) === true
    ? []
    : [`The run ${identity.run} is there, and no journal says that it was spawned.`];
}
