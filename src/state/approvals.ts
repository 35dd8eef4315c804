/** The part of the fold that is about approvals by several people, about rules, and about questions that wait for long. */
import {
  type ApprovalRule,
  type ApprovedOnce,
  type Approving,
  type Clock,
  type Control,
  countApprovers,
  defined,
  type Entry,
  type Escalated,
  type Identity,
  MOST_REMINDERS,
  personKey,
  type Remembered,
  type Reminded,
  type Resumed,
  type Ruled,
  ruleId,
  timeAfter,
} from '#core';
import type { ApprovedCall, OpenPause, OpenStep, RunState } from './state.ts';

/** The pause with one more approval. Other arguments begin anew: nobody has approved what they have not seen. */
export function withApproval(pause: OpenPause, { by: who, args, digest }: ApprovedOnce, at: number): OpenPause {
  const by: Approving = who ?? null;
  if (args === undefined) return { ...pause, approved: [...(pause.approved ?? []), { by, at }] };
  const { args: _, args_stored: __, checked_args: ___, ...shown } = pause.payload ?? {};
  const payload = { ...shown, args, ...defined({ digest }) };
  return { ...pause, payload, given: args, approved: [{ by, at }] };
}

/** How many people have still to approve. */
export function missingApprovals(
  { approvals = 1, approved = [], approver }: Pick<OpenPause, 'approvals' | 'approved' | 'approver'>,
  identity: Identity,
): number {
  const given = approved.map(({ by }) => by);
  return Math.max(0, approvals - countApprovers(given, approver, identity));
}

/** The same, for readers; absent where one person is enough. */
export function missingIn({ identity }: Pick<RunState, 'identity'>, pause: OpenPause): number | undefined {
  return pause.approvals === undefined ? undefined : missingApprovals(pause, identity);
}

export function applyApproved(state: RunState, approved: ApprovedOnce, { seq, at }: Entry): void {
  state.pauses = state.pauses.map((pause) =>
    pause.token === approved.token ? withApproval(pause, approved, at) : pause,
  );
  if (approved.remember !== undefined) {
    addRule(state, { verdict: 'approve', remember: approved.remember, ...defined({ by: approved.by }) }, { seq, at });
  }
}

export function applyReminded(state: RunState, { token, times }: Reminded, at: number): void {
  state.pauses = state.pauses.map((pause) => (pause.token === token ? { ...pause, reminded: { times, at } } : pause));
}

export function applyEscalated(state: RunState, { token, approver }: Escalated, at: number): void {
  state.pauses = state.pauses.map((pause) =>
    pause.token === token ? { ...pause, escalatedAt: at, ...defined({ approver }) } : pause,
  );
}

/** The call of an answer was approved, with all that is known of who did. */
export function noteApproved(open: OpenStep, pause: OpenPause, { by, args }: Resumed): void {
  const { call, reason, approved = [], given, escalatedAt } = pause;
  if (call === undefined) return;
  const index = open.approvals.findIndex((approval) => approval.call === call);
  const before = open.approvals[index];
  // A call that waited for a login has passed its gate too.
  if (reason !== 'approval_required') {
    if (before === undefined) open.approvals.push(args === undefined ? { call } : { call, args });
    return;
  }
  // Null is an argument like any other.
  const now = [args, given, before?.args].find((one) => one !== undefined);
  const isOther = args !== undefined || given !== undefined;
  const people = [
    ...(isOther ? [] : (before?.by ?? [])),
    ...(args === undefined ? approved.map((one) => one.by) : []),
    by ?? null,
  ];
  const whole: ApprovedCall = {
    call,
    ...(now === undefined ? {} : { args: now }),
    by: distinct(people),
    ...(escalatedAt === undefined ? {} : { escalated: true }),
  };
  if (index === -1) open.approvals.push(whole);
  else open.approvals.splice(index, 1, whole);
}

function distinct(people: readonly Approving[]): readonly Approving[] {
  return [...new Map(people.map((who) => [personKey(who), who])).values()];
}

export function applyRuled(state: RunState, open: OpenStep, { call, verdict, rules, ends }: Ruled): void {
  if (verdict === 'reject') {
    if (ends === true) state.rejectedCall = rules[0]?.id ?? 'rule';
    return;
  }
  const index = open.approvals.findIndex((approval) => approval.call === call);
  const { args } = open.approvals[index] ?? {};
  const approval: ApprovedCall = { call, ...defined({ args }), by: distinct(rules.map(({ by }) => by ?? null)), rules };
  if (index === -1) open.approvals.push(approval);
  else open.approvals.splice(index, 1, approval);
}

// Rules of the run.

interface SetBy extends Pick<ApprovalRule, 'verdict' | 'by'> {
  readonly remember: Remembered;
}

/** The rule that an answer sets, as whoever applies it reads it. */
export function ruleSetBy(
  { verdict, by, remember: { scope, tool, match, expiresInMs } }: SetBy,
  run: string,
  { seq, at }: Pick<Entry, 'seq' | 'at'>,
): ApprovalRule {
  const expiresAt = expiresInMs === undefined ? undefined : timeAfter(at, expiresInMs);
  return { id: ruleId(run, seq), scope, verdict, tool, match, setAt: at, ...defined({ by, expiresAt }) };
}

/** The answer with what it remembers, if it does. */
export function remembering(entry: Resumed | ApprovedOnce): SetBy | undefined {
  const { remember, by } = entry;
  if (remember === undefined) return undefined;
  const verdict = entry.kind === 'resumed' && entry.verdict === 'reject' ? 'reject' : 'approve';
  return { verdict, remember, ...defined({ by }) };
}

/** A rule of this run alone. What a fork has copied was said of another run. */
export function addRule(state: RunState, set: SetBy, at: Pick<Entry, 'seq' | 'at'>): void {
  const isCopied = state.fork !== null && state.task === null && at.seq <= state.fork.entries;
  if (set.remember.scope !== 'run' || isCopied) return;
  state.rules = [...state.rules, ruleSetBy(set, state.identity.run, at)];
}

export function revokeRule(state: RunState, { payload }: Control): void {
  const id = payload?.['rule'];
  if (state.rules.some((rule) => rule.id === id)) state.rules = state.rules.filter((rule) => rule.id !== id);
}

// Questions that wait for long.

/** When readers are told next that the pause waits. */
function nextReminder({ requestedAt, remindAfterMs, reminded }: OpenPause): number {
  if (remindAfterMs === undefined || (reminded?.times ?? 0) >= MOST_REMINDERS) return Number.POSITIVE_INFINITY;
  return timeAfter(reminded?.at ?? requestedAt, remindAfterMs);
}

function escalationAt({ requestedAt, escalate, escalatedAt }: OpenPause): number {
  return escalate === undefined || escalatedAt !== undefined
    ? Number.POSITIVE_INFINITY
    : timeAfter(requestedAt, escalate.afterMs);
}

/** The times at which something is to be told of the pause, though nobody answers. */
export function timesToTell(pause: OpenPause): readonly number[] {
  if (pause.remindAfterMs === undefined && pause.escalate === undefined) return NEVER;
  return [nextReminder(pause), escalationAt(pause)].filter(Number.isFinite);
}

const NEVER: readonly never[] = Object.freeze([]);

/** What is to be told now of questions that wait. */
export function toTellOf(
  { pauses }: Pick<RunState, 'pauses'>,
  clock: Pick<Clock, 'now'>,
): readonly (Reminded | Escalated)[] {
  const waiting = pauses.filter(({ remindAfterMs, escalate }) => remindAfterMs !== undefined || escalate !== undefined);
  if (waiting.length === 0) return NEVER;
  const now = clock.now();
  return waiting.flatMap((pause): (Reminded | Escalated)[] => {
    const { token, escalate, reminded } = pause;
    const told: (Reminded | Escalated)[] = [];
    if (nextReminder(pause) <= now) told.push({ kind: 'reminded', token, times: (reminded?.times ?? 0) + 1 });
    if (escalate !== undefined && escalationAt(pause) <= now) {
      const { to, approver } = escalate;
      told.push({ kind: 'escalated', token, to, ...defined({ approver }) });
    }
    return told;
  });
}
