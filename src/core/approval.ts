/** On what terms a call is approved. */
/** Who may approve. `another`: anyone but the run's own user. */
export type Approver = 'anyone' | 'another';

/** How a call is approved: who may, how many have to, and what happens while nobody does. */
export interface ApprovalTerms {
  /** Default `anyone`. */
  readonly approver?: Approver;
  /** How many people have to say yes, each of them another one. One no is enough to reject. 1 to 10, default 1. */
  readonly approvals?: number;
  /** Milliseconds after which the call is refused as `approval_timeout`. Default: never. */
  readonly expiresInMs?: number;
  /** Whoever reads the events of the run is reminded each time that so many milliseconds have passed, 10 times at most. At least 1,000. */
  readonly remindAfterMs?: number;
  readonly escalate?: Escalation;
}

/** Nobody has answered for so long that somebody else is to hear of it. */
export interface Escalation {
  /** Milliseconds, at least 1,000. */
  readonly afterMs: number;
  /** To whom, in the program's own words: readers of the event `approval.escalated` know what it means. At most 200 characters. */
  readonly to: string;
  /** Who may approve from then on. Default: whoever could before. */
  readonly approver?: Approver;
}

export const MOST_REMINDERS = 10;
const MOST_APPROVALS = 10;
const LEAST_WAIT_MS = 1_000;
const MOST_REASON_CHARS = 1_000;
const MOST_TO_CHARS = 200;

/** What a gate and a policy write alike. */
export const APPROVAL_TERMS: readonly (keyof ApprovalTerms)[] = [
  'approver',
  'approvals',
  'expiresInMs',
  'remindAfterMs',
  'escalate',
];

/** Why these are no terms; `undefined` when they are. */
export function whyNoTerms(given: ApprovalTerms): string | undefined {
  const { approver = 'anyone', approvals = 1, expiresInMs = 0, remindAfterMs = LEAST_WAIT_MS, escalate } = given;
  if (!isApprover(approver)) return "approver must be 'anyone' or 'another'";
  if (!isWhole(approvals, 1) || approvals > MOST_APPROVALS)
    return `approvals must be a whole number from 1 to ${MOST_APPROVALS}`;
  if (!Number.isFinite(expiresInMs) || expiresInMs < 0) return 'expiresInMs must be milliseconds from 0 up';
  if (!isWhole(remindAfterMs, LEAST_WAIT_MS))
    return `remindAfterMs must be whole milliseconds from ${LEAST_WAIT_MS} up`;
  return escalate === undefined || isEscalation(escalate)
    ? undefined
    : `escalate must be { afterMs, to } with whole milliseconds from ${LEAST_WAIT_MS} up and a text of at most ${MOST_TO_CHARS} characters, and may have an approver`;
}

function isEscalation(given: unknown): given is Escalation {
  if (typeof given !== 'object' || given === null) return false;
  const { afterMs, to, approver = 'anyone', ...rest } = given as Escalation;
  const isTo = typeof to === 'string' && to !== '' && to.length <= MOST_TO_CHARS;
  return isWhole(afterMs, LEAST_WAIT_MS) && isTo && isApprover(approver) && Object.keys(rest).length === 0;
}

function isApprover(given: unknown): given is Approver {
  return given === 'anyone' || given === 'another';
}

function isWhole(given: unknown, least: number): given is number {
  return Number.isSafeInteger(given) && (given as number) >= least;
}

/** Shown to the person who decides. */
export function isReason(given: unknown): given is string {
  return typeof given === 'string' && given.trim() !== '' && given.length <= MOST_REASON_CHARS;
}

/** The terms alone, of what has more than terms. */
export function termsOf(given: ApprovalTerms): ApprovalTerms {
  return stricterTerms(given, given);
}

/** Both have something to ask: one question is put, on the stricter of their terms. */
export function stricterTerms(one: ApprovalTerms, other: ApprovalTerms): ApprovalTerms {
  const approver = one.approver === 'another' || other.approver === 'another' ? 'another' : undefined;
  const approvals = Math.max(one.approvals ?? 1, other.approvals ?? 1);
  const expiresInMs = sooner(one.expiresInMs, other.expiresInMs);
  const remindAfterMs = sooner(one.remindAfterMs, other.remindAfterMs);
  const escalate = firstOf(one.escalate, other.escalate);
  return {
    ...(approver === undefined ? {} : { approver }),
    ...(approvals === 1 ? {} : { approvals }),
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
    ...(remindAfterMs === undefined ? {} : { remindAfterMs }),
    ...(escalate === undefined ? {} : { escalate }),
  };
}

function sooner(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : Math.min(one, other ?? one);
}

/** The earlier one. It loosens nothing that the other question's terms ask for. */
function firstOf(one: Escalation | undefined, other: Escalation | undefined): Escalation | undefined {
  const given = [one, other].filter((each) => each !== undefined);
  const [first] = given.toSorted((a, b) => a.afterMs - b.afterMs);
  if (first === undefined) return undefined;
  const { afterMs, to } = first;
  if (given.some(({ approver }) => approver === 'another')) return { afterMs, to, approver: 'another' };
  const isLoose = given.length === 2 && given.every(({ approver }) => approver === 'anyone');
  return isLoose ? { afterMs, to, approver: 'anyone' } : { afterMs, to };
}
