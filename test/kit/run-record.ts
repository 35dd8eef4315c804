/** What a run has recorded, and where it stands. */
import { type Control, type Entry, type EntryKind, type Json, local, observe, observeBranches, type Step } from '#core';
import type { Journal } from '#journal';
import type { PauseNotice, Run } from '#runtime';
import { foldEntries, type RunSnapshot, type RunState } from '#state';

export async function kindsOf(journal: Journal, run: Run): Promise<EntryKind[]> {
  return (await journal.read(run.id)).map((entry) => entry.kind);
}

export async function entriesOf<K extends EntryKind>(
  journal: Journal,
  run: Run,
  kind: K,
): Promise<Extract<Entry, { kind: K }>[]> {
  const entries = await journal.read(run.id);
  return entries.filter((entry): entry is Extract<Entry, { kind: K }> => entry.kind === kind);
}

/** All that the runtime knows of the run from its entries. */
export async function innerState(journal: Journal, { id }: Pick<Run, 'id'>): Promise<RunState> {
  return foldEntries(await journal.read(id));
}

/** The first entry of a run that nobody has begun. */
export function startedEntry(run: string, at: number): Entry {
  const identity = local('ana', { run });
  return { kind: 'started', seq: 1, at, identity, query: 'q', agent: 'function', limits: {}, scopes: [] };
}

/** Puts a control into the inbox as another process would: nobody here is told. */
export function send(journal: Journal, run: Run, control: Control): Promise<boolean> {
  return journal.signal(run.id, control);
}

/** What the run waits for somebody to answer, once it is paused. */
export async function pausesOf(run: Pick<Run, 'result'>): Promise<readonly PauseNotice[]> {
  const result = await run.result();
  if (result.status !== 'paused') throw new Error(`The run is not paused: ${JSON.stringify(result)}`);
  return result.pauses;
}

/** What the planner is told of each step. */
export function observations(state: Pick<RunSnapshot, 'steps'>): Json[] {
  return state.steps.map(observe);
}

/** The kinds of the outcomes of a step, in branch order. */
export function outcomes(state: Pick<RunSnapshot, 'steps'>, step = 0): string[] {
  return state.steps[step]?.calls.map((record) => record.outcome.kind) ?? [];
}

/** What each call id of a step is answered with: `value`, or the error's code. */
export function answersOf(step: Step | undefined): Record<string, string> {
  const answers = step === undefined ? [] : observeBranches(step);
  return Object.fromEntries(
    answers.map((answer) => [answer.call_id ?? '', 'value' in answer ? 'value' : answer.error.code]),
  );
}

/** The payload that a run has finished with. */
export async function payloadOf(run: Run): Promise<Json | undefined> {
  const result = await run.result();
  if (result.status !== 'finished') throw new Error(`The run is ${result.status}.`);
  return result.payload;
}

/** The run is there, and has ended. */
export async function hasEnded({ journal }: { readonly journal: Journal }, run: string): Promise<boolean> {
  const { status = 'pending' } = (await journal.get(run)) ?? {};
  return status === 'finished' || status === 'failed' || status === 'cancelled';
}

/** The run waits for a task, and nobody drives it. */
export async function isWaiting({ journal }: { readonly journal: Journal }, run: string): Promise<boolean> {
  return (await journal.get(run))?.status === 'waiting';
}
