/** A run and its tasks: both journals agree, every end is told once, and what is to stop is told to. */
import { type GroupEnded, jsonEquals, type TaskEnded } from '#core';
import { accountOf } from './check-accounts.ts';
import { type EndedRun, endingOf, entriesOf, startOf } from './ended-run.ts';
import { atItsGoal, timesEnded } from './goals-by-hand.ts';
import type { Ledger } from './ledger.ts';
import type { ShownGroups } from './planner.ts';
import { groupsThatCome } from './waits-by-hand.ts';

type Runs = ReadonlyMap<string, EndedRun>;

export function checkTasks(run: EndedRun, runs: Runs, ledger: Ledger, shown: ShownGroups): void {
  if (endingOf(run) === undefined) return;
  checkOrigin(run, runs, ledger);
  checkEnds(run, runs, ledger);
  checkCalled(run, runs, ledger);
  checkNeeded(run, runs, ledger);
  checkGroups(run, runs, ledger);
  checkShown(run, ledger, shown);
  checkCascade(run, runs, ledger);
}

function checkOrigin(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const { id, landed } = run;
  const { task, identity } = startOf(run) ?? {};
  if (task === undefined || identity === undefined) return;
  const parent = runs.get(task.parent);
  const at = parent?.entries.findIndex((entry) => entry.kind === 'spawned' && entry.task === id) ?? -1;
  if (parent === undefined || at === -1) {
    ledger.violated('tasks', 'the run above it has not spawned it', id);
    return;
  }
  if (parent.landed[at] !== landed[0]) ledger.violated('tasks', 'it was not stored with the entry that spawned it', id);
  const above = startOf(parent)?.identity;
  if (identity.tenant !== above?.tenant || identity.user !== above.user || identity.session !== above.session) {
    ledger.violated('no foreign data', 'it belongs to somebody else than the run above it', id);
  }
}

function checkEnds(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const ends = Map.groupBy(entriesOf(run, 'task_ended'), ({ task }) => task);
  for (const { task } of entriesOf(run, 'spawned')) {
    const child = runs.get(task);
    if (child === undefined) {
      ledger.violated('tasks', `the task ${task} was spawned, and is not there`, run.id);
      continue;
    }
    const told = ends.get(task)?.length ?? 0;
    const isDue = (child.endedAt ?? Number.POSITIVE_INFINITY) < (run.endedAt ?? 0);
    if (told > timesEnded(child) || (isDue && told < timesEnded(child)))
      ledger.violated('wake', `of the end of ${task} it was told ${told} times`, run.id);
  }
  for (const [task, [end, last]] of ends) {
    const child = runs.get(task);
    if (child === undefined || end === undefined) continue;
    const told: readonly (readonly [TaskEnded, EndedRun])[] =
      last === undefined || last === end
        ? [[end, atItsGoal(child)]]
        : [
            [end, atItsGoal(child)],
            [last, child],
          ];
    for (const [each, as] of told) {
      const problem = disagreement(each, as);
      if (problem !== undefined) ledger.violated('tasks', `of ${task} it was told ${problem}`, run.id);
    }
  }
}

/** A call that a run has carried out has come to what that run came to; when it was given up, that run was told to stop. */
function checkCalled(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const ends = entriesOf(run, 'call_ended');
  for (const { task, step, call, agentCall } of entriesOf(run, 'spawned')) {
    const end = ends.find((ended) => ended.step === step && ended.call === call);
    const found = runs.get(task);
    const child = found && atItsGoal(found);
    const ending = child && endingOf(child);
    if (agentCall === undefined || end === undefined || ending === undefined) continue;
    const { outcome } = end;
    const isOver = (child?.endedAt ?? Number.POSITIVE_INFINITY) < (run.landed[end.seq - 1] ?? 0);
    if (outcome.kind === 'cancelled' && child !== undefined && !isOver && !wasStopped(child, ledger)) {
      ledger.violated('cascade', `${task} went on when its call had been given up`, run.id);
    }
    const isGoal = ending.kind === 'finished' && ending.reason === 'goal';
    if (outcome.kind === 'error' && isGoal) {
      ledger.violated('tasks', `the call that ${task} carried out is an error, and it reached its goal`, run.id);
    }
    if (outcome.kind !== 'value') continue;
    if (!isGoal || !jsonEquals(ending.payload ?? null, outcome.value)) {
      ledger.violated('tasks', `the call that ${task} carried out has another value than it`, run.id);
    }
  }
}

/** A task that carries out a call is told to stop when the join of its step has what it needs. */
function checkNeeded(run: EndedRun, runs: Runs, ledger: Ledger): void {
  for (const { task, step, agentCall } of entriesOf(run, 'spawned')) {
    const child = runs.get(task);
    const met = agentCall === undefined ? undefined : metAt(run, step);
    if (child === undefined || met === undefined || (child.landed[0] ?? 0) > met) continue;
    const endedAt = child.endedAt ?? Number.POSITIVE_INFINITY;
    const isLeft = wasLeft(run, met, endedAt, ledger);
    if (endedAt > met + A_WHILE && !isLeft && !wasStopped(child, ledger)) {
      ledger.violated('cascade', `${task} went on when the join of its step had what it needs`, run.id);
    }
  }
}

/** Nobody was there who could have told a task, between `met` and its end. */
function wasLeft(run: EndedRun, met: number, endedAt: number, ledger: Ledger): boolean {
  const { leftAt = [], takenOverAt = [] } = ledger.runs.get(run.id) ?? {};
  // A run that the store has refused is left for some seconds: it says nothing to anybody until then.
  if (leftAt.some((at) => at > met && at < endedAt)) return true;
  // Whoever drove it wrote nothing more: it was gone.
  const next = run.landed.find((at) => at > met) ?? Number.POSITIVE_INFINITY;
  return takenOverAt.some((at) => at > met && at < next);
}

/** So many things happen in the world until somebody has been told. */
const A_WHILE = 60;

/** When the join of a step had its values, if it ever did. */
function metAt(run: EndedRun, step: number): number | undefined {
  const move = entriesOf(run, 'moved').find((moved) => moved.step === step);
  const join = move?.decision.kind === 'call_parallel' ? move.decision.join : undefined;
  if (join === undefined || join.kind === 'all' || join.kind === 'keyed') return undefined;
  const values = entriesOf(run, 'call_ended').filter((end) => end.step === step && end.outcome.kind === 'value');
  const last = values[join.kind === 'n' ? join.n - 1 : 0];
  return last && run.landed[last.seq - 1];
}

/** What the one who waits was told, if it is not what the task's own journal says. */
function disagreement({ status, result, usage }: TaskEnded, child: EndedRun): string | undefined {
  const ending = endingOf(child);
  if (ending === undefined) return `${status}, and it has not ended`;
  const own = ending.kind === 'failed' ? 'failed' : statusOf(ending.reason);
  if (own !== status) return `${status}, and it ended as ${own}`;
  const payload = ending.kind === 'finished' ? ending.payload : undefined;
  if (!jsonEquals(payload ?? null, result ?? null)) return `another result than it had`;
  const account = accountOf(child.entries);
  for (const axis of ['costMicroUsd', 'steps'] as const) {
    // What its own tasks may still use counts as used.
    const [told, least, lent] = [usage[axis], account.used[axis], account.lentOn(axis)];
    if (told < least || told > least + lent) return `${axis} of ${told}, and it was ${least}`;
  }
  return undefined;
}

function statusOf(reason: string): string {
  if (reason === 'goal') return 'complete';
  return reason === 'cancelled' ? 'cancelled' : 'failed';
}

function checkGroups(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const ended = Map.groupBy(entriesOf(run, 'group_ended'), ({ group }) => group);
  const moves = entriesOf(run, 'moved');
  const inGroups = entriesOf(run, 'spawned').filter(({ agentCall }) => agentCall === undefined);
  // A fork's groups may have begun in the run that it was made of.
  const before = new Set(copiedGroups(run));
  for (const [group, members] of Map.groupBy(inGroups, (spawned) => spawned.group)) {
    if (before.has(group)) continue;
    const ends = ended.get(group) ?? [];
    const [end] = ends;
    if (ends.length > 1) ledger.violated('groups', `${group} ended ${ends.length} times`, run.id);
    const endSeq = end?.seq ?? Number.POSITIVE_INFINITY;
    if (members.some(({ seq }) => seq > endSeq))
      ledger.violated('groups', `${group} got a member after its end`, run.id);
    const told = members.map(({ task }) => entriesOf(run, 'task_ended').find((entry) => entry.task === task)?.seq);
    const last = Math.max(...told.map((seq) => seq ?? Number.POSITIVE_INFINITY), ...members.map(({ seq }) => seq));
    const sealing = sealSeq(run, group);
    const known = run.landed[Math.max(last, sealing) - 1] ?? Number.POSITIVE_INFINITY;
    // What is taken with the ending came when the planner had been asked.
    const next = moves.find(({ seq }) => (run.landed[seq - 1] ?? 0) > known);
    if (next !== undefined && endSeq > next.seq) {
      ledger.violated(
        'groups',
        `all of ${group} had ended at ${last}, and the planner was asked before the group was`,
        run.id,
      );
    }
    if (end === undefined) continue;
    checkFailFast(group, end, run, ledger);
    for (const { task } of members) checkStopped(task, run, end.seq, runs, ledger);
  }
}

function copiedGroups(run: EndedRun): string[] {
  const { fork } = startOf(run) ?? {};
  return run.entries.slice(0, fork?.entries ?? 0).flatMap((entry) => (entry.kind === 'spawned' ? [entry.group] : []));
}

/** Where the group was sealed. */
function sealSeq(run: EndedRun, group: string): number {
  const sealing = run.entries.find(
    (entry) =>
      (entry.kind === 'spawned' && entry.group === group && entry.seal) ||
      (entry.kind === 'awaiting' && entry.group === group),
  );
  return sealing?.seq ?? Number.POSITIVE_INFINITY;
}

/** One failure cancels a group that was made so. */
function checkFailFast(
  group: string,
  { seq, status, reason }: GroupEnded & { seq: number },
  run: EndedRun,
  ledger: Ledger,
): void {
  const members = entriesOf(run, 'spawned').filter((spawned) => spawned.group === group);
  const failed = entriesOf(run, 'task_ended').some(
    (end) => end.seq < seq && end.status === 'failed' && members.some(({ task }) => task === end.task),
  );
  const isCancelled = members[0]?.failFast === true && failed;
  if (isCancelled === (status === 'cancelled')) return;
  ledger.violated(
    'groups',
    `${group} is ${status} (${reason}), and ${failed ? 'a member' : 'no member'} had failed`,
    run.id,
  );
}

/** A member that had not ended when its group did was told to stop. */
function checkStopped(task: string, run: EndedRun, endSeq: number, runs: Runs, ledger: Ledger): void {
  const member = runs.get(task);
  const at = run.landed[endSeq - 1] ?? 0;
  if (member === undefined || (member.endedAt ?? Number.POSITIVE_INFINITY) < at || wasStopped(member, ledger)) return;
  ledger.violated('groups', `${task} went on when its group had ended`, run.id);
}

function wasStopped(run: EndedRun, ledger: Ledger): boolean {
  return ledger.controlsOf(run).some(({ message }) => message.type === 'CANCEL');
}

/** A result that came by itself was shown to the planner from its step on. */
function checkShown(run: EndedRun, ledger: Ledger, shown: ShownGroups): void {
  const { id } = run;
  const last = entriesOf(run, 'moved').at(-1);
  const groups = new Set<string>();
  for (const { atStep, group } of groupsThatCome(run.entries)) {
    if (groups.has(group)) ledger.violated('wake', `${group} came twice`, id);
    groups.add(group);
    if (last !== undefined && last.step >= atStep && !shown.has(id, group)) {
      ledger.violated('wake', `${group} was never shown to the planner`, id);
    }
  }
}

/** Every ending but `goal` stops what is below, as far as each task says, and through those that have ended. */
function checkCascade(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const ending = endingOf(run);
  if (ending?.kind === 'finished' && ending.reason === 'goal') return;
  const { endedAt = Number.POSITIVE_INFINITY } = run;
  const open = [run];
  for (let above = open.pop(); above !== undefined; above = open.pop()) {
    for (const { task, onCancel } of entriesOf(above, 'spawned')) {
      const child = runs.get(task);
      if (child === undefined || onCancel === 'isolate') continue;
      const isOver = (child.endedAt ?? Number.POSITIVE_INFINITY) < endedAt;
      // One that is told stops its own.
      if (isOver) open.push(child);
      else if (!wasStopped(child, ledger)) ledger.violated('cascade', `${task} went on when ${run.id} had ended`, task);
    }
  }
}
