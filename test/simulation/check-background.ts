/**
 * Calls that are made in the background, by the entries and by what happened in the world: each has one task, which makes the call once, and what
 * planners are told of it is what it came to.
 */
import { type Entry, isJsonObject, type Json, jsonEquals, type RunView } from '#core';
import { BACKGROUND_AGENT, BACKGROUND_KINDS } from './background-tools.ts';
import { toolsOf } from './check-waits.ts';
import { type EndedRun, endingOf, entriesOf, parentOf, startOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import { groupsThatCome, openPauses } from './waits-by-hand.ts';

type Runs = ReadonlyMap<string, EndedRun>;

export function checkBackground(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const wrong = (what: string): void => ledger.violated('tasks', what, run.id);
  const tools = toolsOf(run.entries);
  const isBackground = (tool: string): boolean => tool in BACKGROUND_KINDS || tool === BACKGROUND_AGENT;
  const isCarried = carriedCall(run) !== undefined;
  const spawned = Map.groupBy(entriesOf(run, 'spawned'), ({ step, call }) => `${step}.${call}`);
  for (const { step, call, outcome, seq } of isCarried ? [] : entriesOf(run, 'call_ended')) {
    const place = `${step}.${call}`;
    const tool = tools.get(place) ?? '';
    if (!isBackground(tool)) continue;
    const [task, ...more] = spawned.get(place) ?? [];
    if (more.length > 0) wrong(`call ${place} has ${more.length + 1} tasks`);
    if (outcome.kind !== 'value') {
      if (task !== undefined) wrong(`call ${place} has a task, and came to ${outcome.kind}`);
      continue;
    }
    const told = isJsonObject(outcome.value) ? outcome.value['task'] : undefined;
    if (task === undefined || told !== task.task) {
      wrong(`call ${place} says that its task is ${JSON.stringify(told)}, and it is ${task?.task}`);
      continue;
    }
    if (run.landed[task.seq - 1] !== run.landed[seq - 1]) wrong(`call ${place} was not over when its task was there`);
    const child = runs.get(task.task);
    if (child === undefined) continue;
    if (tool in BACKGROUND_KINDS) checkOneCall(tool, child, ledger);
    checkStopped(run, child, ledger);
  }
}

/** The tool whose one call is all that the run is there for. */
function carriedCall(run: EndedRun): string | undefined {
  const agent = startOf(run)?.agent ?? '';
  return agent.startsWith('tool:') ? agent.slice('tool:'.length) : undefined;
}

/** The task makes the call that it was started for, and comes to what the call does. */
function checkOneCall(tool: string, child: EndedRun, ledger: Ledger): void {
  const wrong = (what: string): void => ledger.violated('tasks', what, child.id);
  if (carriedCall(child) !== tool) wrong(`it makes a call of ${tool}, and is of ${startOf(child)?.agent}`);
  const calls = entriesOf(child, 'moved').flatMap(({ decision }) => (decision.kind === 'call_tool' ? [decision] : []));
  const args = startOf(child)?.context?.args;
  const [call, ...more] = calls;
  if (more.length > 0) wrong(`it makes ${calls.length} calls`);
  if (call !== undefined && (call.tool !== tool || !jsonEquals(call.args, args ?? null)))
    wrong(`it calls ${call.tool} with ${JSON.stringify(call.args)}, and was started with ${JSON.stringify(args)}`);
  const ending = endingOf(child);
  const outcome = outcomeOf(child);
  if (ending?.kind === 'finished' && ending.reason === 'goal') {
    const isIts = outcome?.kind === 'value' && jsonEquals(outcome.value, ending.payload ?? null);
    if (!isIts) wrong(`it says ${JSON.stringify(ending.payload)}, and its call came to ${outcome?.kind}`);
  }
  if (ending?.kind === 'failed' && ending.error.code === 'call_failed' && outcome?.kind === 'value')
    wrong('it says that its call has failed, which has a value');
}

type CallOutcome = { readonly kind: string; readonly value?: Json };

/** What its call came to, or what somebody has said of it. */
function outcomeOf(child: EndedRun): CallOutcome | undefined {
  const ended = entriesOf(child, 'call_ended').at(-1)?.outcome;
  const settled = entriesOf(child, 'resumed').findLast(({ outcome }) => outcome !== undefined)?.outcome;
  return (ended ?? settled) as CallOutcome | undefined;
}

/** A task of a run that ends otherwise than by its goal is told to stop. */
function checkStopped(run: EndedRun, child: EndedRun, ledger: Ledger): void {
  const ending = endingOf(run);
  if (ending === undefined || (ending.kind === 'finished' && ending.reason === 'goal')) return;
  if ((child.endedAt ?? Number.POSITIVE_INFINITY) < (run.endedAt ?? 0)) return;
  const isTold = ledger.controlsOf(child).some(({ message }) => message.type === 'CANCEL');
  if (!isTold) ledger.violated('cascade', `it goes on in the background when ${run.id} has ended`, child.id);
}

/** The planner of a parked run that waits for something to happen, and that nothing else holds, is asked when there is news. */
export function checkWoken(id: string, entries: readonly Entry[], ledger: Ledger): void {
  const [first] = entries;
  if (first?.kind !== 'started' || !WOKEN.includes(first.agent)) return;
  const last = entries.findLast((entry) => entry.kind === 'moved');
  if (last?.kind !== 'moved' || last.decision.kind !== 'request_pause') return;
  // Anything else is for a person to decide.
  if (last.decision.reason !== 'external_event' && last.decision.reason !== 'await_input') return;
  const [pause, ...more] = openPauses(entries);
  if (more.length > 0 || pause?.step !== last.step || pause.call !== undefined) return;
  const news = groupsThatCome(entries).find(({ atStep }) => atStep === last.step + 1);
  if (news !== undefined) ledger.violated('wake', `${news.group} has ended, and the planner waits for news of it`, id);
}

/** Their planners have the wake mode of the script. */
const WOKEN: readonly string[] = ['simulated', 'carrier', 'back_carrier'];

/** No call is made by two tasks, or by the run itself. */
export function checkMadeOnce(runs: Runs, ledger: Ledger): void {
  const made = new Map<string, Set<string>>();
  for (const { tool, run, id } of ledger.attempts) {
    if (!(tool in BACKGROUND_KINDS)) continue;
    const child = runs.get(run);
    const above = parentOf(child);
    if (child === undefined) continue;
    if (above === undefined || carriedCall(child) !== tool)
      ledger.violated('tasks', `it makes ${tool} ${id} itself`, run);
    const call = `${above} ${id}`;
    made.set(call, (made.get(call) ?? new Set()).add(run));
  }
  for (const [call, by] of made)
    if (by.size > 1) ledger.violated('once', `the call ${call} is made by ${[...by].join(' and ')}`);
}

/** What a planner is told of tasks is what they came to. */
export function checkNews({ identity: { run }, trajectory }: RunView, ledger: Ledger): void {
  for (const { group } of trajectory.background) {
    for (const { id, end } of group.members) {
      // A fork takes those of the run that it was made of for cancelled.
      if (end === undefined || !id.startsWith(`${run}.`)) continue;
      const last = ledger.runs.get(id)?.entries.at(-1);
      if (last?.kind !== 'finished' && last?.kind !== 'failed') {
        ledger.violated('tasks', `it is told that ${id} has ended, which has not`, run);
        continue;
      }
      const result = last.kind === 'finished' ? (last.payload ?? null) : null;
      const isGoal = last.kind === 'finished' && last.reason === 'goal';
      if ((end.status === 'complete') !== isGoal || !jsonEquals(end.result ?? null, result))
        ledger.violated('tasks', `it is told that ${id} is ${end.status} with ${JSON.stringify(end.result)}`, run);
    }
  }
}
