/** What a run waits for: which calls of the open step are parked, and whether anything here can still move it. */
import type { Control } from '../core/control.ts';
import { branchesOf, branchId, type Decision, type Join } from '../core/decision.ts';
import type { CallRecord } from '../core/step.ts';
import type { TaskPause } from '../core/task.ts';
import { dependenciesOf } from '../core/validate-decision.ts';
import type { OpenPause, OpenStep, RunState, TaskWait } from './state.ts';

/** A time at which nothing that has a limit is over. */
const BEFORE_ALL = Number.NEGATIVE_INFINITY;

/** The call waits for an answer, for a task or for a group; nothing here can move it. */
export function isParked(state: RunState, open: OpenStep, call: number, now: number = BEFORE_ALL): boolean {
  if (open.waits.length === 0 && state.pauses.length === 0) return false;
  if (state.pauses.some((pause) => pause.call === call && pause.step === open.move.step)) return true;
  const wait = open.waits.find((candidate) => candidate.call === call);
  return wait !== undefined && !isOver(state, wait, now);
}

function isOver(state: RunState, { task, group, until = Number.POSITIVE_INFINITY }: TaskWait, now: number): boolean {
  if (until <= now || state.fresh.some(isSteering)) return true;
  if (group !== undefined) return state.groups.find(({ id }) => id === group)?.end !== undefined;
  const own = state.tasks.find(({ id }) => id === task);
  return own === undefined ? state.otherEnds.some((end) => end.task === task) : own.end !== undefined;
}

/** A message that a waiting planner is to hear of before the task has ended. */
export function isSteering({ type }: Control): boolean {
  return type === 'USER_MESSAGE' || type === 'INJECT_CONTEXT' || type === 'REDIRECT';
}

/** The open step has calls, and each of them is parked or needs one that has not ended. */
export function isBlocked(state: RunState, now: number = BEFORE_ALL): boolean {
  const { open } = state;
  if (open === null) return false;
  const { decision } = open.move;
  if (decision.kind === 'request_pause') return true;
  if (open.waits.length === 0 && !state.pauses.some(({ call }) => call !== undefined)) return false;
  if (isJoinMet(joinOf(decision), open.calls)) return false;
  const needs = needsOf(decision);
  return open.calls.every(
    (record, call) =>
      record !== null ||
      isParked(state, open, call, now) ||
      (needs?.[call]?.some((need) => open.calls[need] === null) ?? false),
  );
}

function joinOf(decision: Decision): Join | undefined {
  return decision.kind === 'call_parallel' ? decision.join : undefined;
}

function needsOf(decision: Decision): readonly (readonly number[])[] | undefined {
  if (decision.kind !== 'call_parallel') return undefined;
  const branches = branchesOf(decision);
  const index = new Map(branches.map((branch, at) => [branchId(branch, at), at]));
  return branches.map((branch) => dependenciesOf(branch).map((id) => index.get(id) as number));
}

/** Enough branches have ended well for what the join asks. */
export function isJoinMet(join: Join | undefined, calls: readonly (CallRecord | null)[]): boolean {
  const wanted = join?.kind === 'first_success' ? 1 : join?.kind === 'n' ? join.n : undefined;
  if (wanted === undefined) return false;
  return calls.filter((record) => record?.outcome.kind === 'value').length >= wanted;
}

/** A pause of an operator's, or of a budget, holds the run as a whole. */
export function isHeld({ pauses }: RunState): boolean {
  return pauses.some(({ step }) => step === undefined);
}

/** Nothing moves the run before somebody answers, or before a task does for which somebody must answer. */
export function isPaused(state: RunState): boolean {
  const { ending, open, pauses } = state;
  if (ending !== null) return false;
  if (open === null || isHeld(state)) return pauses.length > 0;
  return isBlocked(state) && (pauses.length > 0 || pausesOfTasks(state).length > 0);
}

/** The pauses of the tasks that the open step waits for; of a group once none of its members is at work any more. */
export function pausesOfTasks({ open, tasks, otherPauses }: RunState): readonly TaskPause[] {
  if (open === null || open.waits.length === 0) return [];
  return open.waits
    .flatMap(({ task, group }) => {
      if (group === undefined)
        return [...tasks.filter(({ id }) => id === task), ...otherPauses.filter((other) => other.task === task)];
      const live = tasks.filter((member) => member.group === group && member.end === undefined);
      return live.every(({ pauses }) => pauses.length > 0) ? live : [];
    })
    .flatMap(({ pauses }) => pauses);
}

/** All that somebody can answer now to bring the run on: its own pauses, and those of tasks that it waits for. */
export function answerable(state: RunState): readonly TaskPause[] {
  const { run } = state.identity;
  return [...state.pauses.map((pause) => taskPause(run, pause)), ...pausesOfTasks(state)];
}

function taskPause(run: string, { token, reason, payload, expiresAt }: OpenPause): TaskPause {
  return {
    run,
    token,
    reason,
    ...(payload === undefined ? {} : { payload }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

/** The next moment at which something that the run waits for is over by itself. */
export function nextTimeout({ open, pauses }: RunState): number | null {
  if (pauses.length === 0 && (open === null || open.waits.length === 0)) return null;
  const times = [
    ...pauses.flatMap(({ expiresAt }) => expiresAt ?? []),
    ...(open?.waits.flatMap(({ until }) => until ?? []) ?? []),
  ];
  return times.length === 0 ? null : Math.min(...times);
}
