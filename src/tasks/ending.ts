/** How the ending of a run reads to the runs that wait for it. */

import {
  countUsage,
  defined,
  detailsOf,
  type EntryBody,
  type Failed,
  type Finished,
  isJsonObject,
  type Json,
  type TaskEnd,
  type TaskMessage,
  type TaskUsage,
  type Usage,
} from '#core';
import type { Told } from '#journal';
import { countsAsCall, type Ending, freshUsage, itemIn, liveIn, type RunState, sumOfShares, verdictOn } from '#state';

/** The runs that are told how this run ends. */
export function listenersOf({ task, watchers }: RunState): readonly string[] {
  return task === null ? watchers : [...new Set([task.parent, ...watchers])];
}

/** What those who wait for this run are told in the commit of these entries. */
export function toldBy(state: RunState, bodies: readonly EntryBody[]): readonly Told[] {
  if (state.task === null && state.watchers.length === 0 && !bodies.some(isWatched)) return NOBODY;
  const fresh = bodies.flatMap((body) => (body.kind === 'watched' ? [body.by] : []));
  const listeners = fresh.length === 0 ? listenersOf(state) : [...new Set([...listenersOf(state), ...fresh])];
  if (listeners.length === 0) return NOBODY;
  const { run } = state.identity;
  const last = bodies.at(-1);
  if (last?.kind === 'finished' || last?.kind === 'failed') {
    const end = { ...endOf(run, last), usage: usageOf(state, bodies) };
    return listeners.map((to) => ({ run: to, message: endMessage(state, end) }));
  }
  if (!bodies.some((body) => isAnswer(body) || closesPause(state, body))) return NOBODY;
  // The task goes on; its remaining pauses are told when it is parked again.
  const id = `goes on:${run}:${state.head}`;
  const asOf = state.head + bodies.length;
  return listeners.map((to) => ({ run: to, message: { id, type: 'TASK_PAUSES', task: run, pauses: [], asOf } }));
}

/** Each ending of a task is told once: it may fail, go on, and end again. */
export function endMessage({ identity: { run }, reopenings }: RunState, end: TaskEnd): TaskMessage {
  const id = reopenings === 0 ? `ended:${run}` : `ended:${run}:${reopenings}`;
  return { id, type: 'TASK_ENDED', end };
}

/** A call that somebody is asked about has ended without an answer: nothing more was needed of it. */
function closesPause({ pauses }: RunState, body: EntryBody): boolean {
  if (pauses.length === 0 || body.kind !== 'call_ended') return false;
  return pauses.some(({ step, call }) => step === body.step && call === body.call);
}

function isWatched(body: EntryBody): boolean {
  return body.kind === 'watched';
}

/** Something that the run, or one below it, waited for was answered, or needs no answer any more. */
function isAnswer(body: EntryBody): boolean {
  if (body.kind === 'control') return body.withdrew !== undefined;
  return body.kind === 'resumed' || body.kind === 'task_paused' || body.kind === 'task_ended';
}

const NOBODY: readonly Told[] = [];

/** The end of a run that has ended; `undefined` while it has not. */
export function taskEndOf(state: RunState): TaskEnd | undefined {
  if (state.ending === null) return undefined;
  return { ...endOf(state.identity.run, state.ending), usage: usageOf(state, []) };
}

/** How this ending reads, without what was used. */
export function endOf(task: string, ending: Ending | Finished | Failed): Omit<TaskEnd, 'usage'> {
  if (ending.kind === 'failed') return { task, status: 'failed', error: ending.error };
  const { reason, payload, stored, metadata, files } = ending;
  const whole = stored === undefined ? {} : { stored };
  const result = payload === undefined ? {} : { result: payload, ...whole };
  if (reason === 'goal') return { task, status: 'complete', ...result, ...defined({ files }) };
  const data = metadata === undefined ? {} : { data: metadata };
  const unsure = metadata?.['in_doubt'] === undefined ? '' : ` ${unsureText(metadata['in_doubt'])}`;
  const error = { code: reason, message: `The task ended with ${reason}.${refusedText(ending)}${unsure}`, ...data };
  return { task, status: reason === 'cancelled' ? 'cancelled' : 'failed', ...result, error };
}

const MAX_WORDS_CHARS = 500;

/** What the model of the task said, so that whoever gave the task away need not ask it again. */
function refusedText({ metadata, payload }: Pick<Finished, 'metadata' | 'payload'>): string {
  const refusal = metadata?.['refusal'];
  if (!isJsonObject(refusal)) return '';
  const { category, message = typeof payload === 'string' ? startOf(payload) : undefined } = refusal;
  const said = [category, message].filter((text) => typeof text === 'string');
  return said.length === 0 ? ' Its model refused.' : ` Its model refused: ${said.join(': ')}`;
}

/** Half of a letter would have the owner's next request refused. */
function startOf(text: string): string {
  return text.slice(0, MAX_WORDS_CHARS).toWellFormed();
}

/** Who decides next is not to take for undone what may have happened. */
function unsureText(calls: Json): string {
  return `Calls of it may have happened, and nobody knows: ${JSON.stringify(calls)}`;
}

/** What was used by the end of these entries. What tasks that go on may still use was given to them: it is used too. */
function usageOf(state: RunState, bodies: readonly EntryBody[]): TaskUsage {
  const { totals } = state;
  const usage = { ...totals, steps: totals.steps + totals.taskSteps, calls: totals.calls + totals.taskCalls };
  for (const body of bodies) {
    // Usage of another run's task that this run waited for does not count as its own.
    const task = body.kind === 'task_ended' ? itemIn(state.tasks, body.task) : undefined;
    if (body.kind === 'task_ended') {
      if (task === undefined) continue;
      const fresh = freshUsage(task, body.usage);
      usage.steps += fresh.steps;
      usage.calls += fresh.calls ?? 0;
      countUsage(usage, fresh);
    } else countUsage(usage, usedBy(body));
    if (body.kind === 'call_ended' && state.open !== null && countsAsCall(state.open, body)) usage.calls += 1;
  }
  const ended = new Set(bodies.flatMap((body) => (body.kind === 'task_ended' ? [body.task] : [])));
  const open = liveIn(state.tasks).filter(({ id }) => !ended.has(id));
  return {
    steps: usage.steps + sumOfShares(open, 'steps'),
    calls: usage.calls + sumOfShares(open, 'calls'),
    inputTokens: usage.inputTokens + sumOfShares(open, 'tokens'),
    outputTokens: usage.outputTokens,
    ...detailsOf(usage),
    costMicroUsd: usage.costMicroUsd + sumOfShares(open, 'costMicroUsd') + promisedBeside(state, bodies),
  };
}

/** Money of calls that were begun, and whose end, if these entries have it, names no cost. */
function promisedBeside({ open }: RunState, bodies: readonly EntryBody[]): number {
  const named = bodies.flatMap((body) =>
    body.kind === 'call_ended' && body.costMicroUsd !== undefined ? [body.call] : [],
  );
  const rest = open?.promised.filter(({ call }) => !named.includes(call)) ?? [];
  return rest.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0);
}

function usedBy(body: EntryBody): Usage {
  switch (body.kind) {
    case 'moved':
    case 'plan_grown':
    case 'model_away':
    case 'overflowed':
    case 'call_spent':
    case 'failed':
      return body.usage ?? {};
    case 'call_ended':
      return body;
    default:
      return {};
  }
}

/** When a group of tasks is over. Pure. */

/** The entry that ends a group whose time has come, and the members that are told to stop. */
export function endGroup(
  state: RunState,
): { readonly entries: readonly EntryBody[]; readonly cancels: readonly string[] } | undefined {
  for (const group of liveIn(state.groups)) {
    const verdict = verdictOn(group, state.tasks);
    if (verdict === undefined) continue;
    const cancels = liveIn(state.tasks).flatMap((task) => (task.group === group.id ? [task.id] : []));
    return { entries: [{ kind: 'group_ended', group: group.id, ...verdict }], cancels };
  }
  return undefined;
}
