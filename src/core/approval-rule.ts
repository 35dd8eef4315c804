/** Rules: what somebody said to one question about a call, remembered for others like it; and where they lie. */
import type { Caller } from './control.ts';
import { describeThrown, PilotageError } from './errors.ts';
import type { Identity, Scope } from './identity.ts';
import type { Json } from './json.ts';
import type { RuleMatch, RuleScope } from './remember.ts';
import { assertNamespace, type Namespace, RESERVED_PART, type StoreWrite } from './store.ts';

/** A rule that answers questions about calls in the place of a person. */
export interface ApprovalRule {
  /** It says in which run it was set, and by which of its entries. */
  readonly id: string;
  readonly scope: RuleScope;
  readonly verdict: 'approve' | 'reject';
  readonly tool: string;
  readonly match: RuleMatch;
  /** Who set it. Absent: the program itself. */
  readonly by?: Caller;
  /** Milliseconds since the epoch, as the next. */
  readonly setAt: number;
  readonly expiresAt?: number;
}

/** A rule as the record of a call names it. */
export type AppliedRule = Pick<ApprovalRule, 'id' | 'scope' | 'by' | 'setAt'>;

/** The rule that this entry of the run sets. */
export function ruleId(run: string, seq: number): string {
  return `rule:${run}:${seq}`;
}

/** The run in which the rule of this id was set; `undefined` when the id does not have the form of a rule's. */
export function runOfRule(id: string): string | undefined {
  return /^rule:(.+):\d+$/s.exec(id)?.[1];
}

/** Rules of sessions and users lie in the long-term store, where only the runtime writes. */
export const RULES: Namespace = Object.freeze([`${RESERVED_PART}rules`]);

/** Where the rules lie that a user has, or one of their sessions. What lies in the first is what all of the second is below. */
export function ruleNamespace({
  tenant,
  user,
  session,
}: Pick<Scope, 'tenant' | 'user'> & { session?: string }): Namespace {
  return session === undefined ? [...RULES, tenant, user] : [...RULES, tenant, user, session];
}

/** @throws PilotageError `payload_invalid` for a run whose names are no place in the store. */
export function assertHasRules(identity: Identity): void {
  try {
    assertNamespace(ruleNamespace(identity));
  } catch (cause) {
    const why = `The long-term store has no place for rules of this user: ${describeThrown(cause)}`;
    throw new PilotageError('payload_invalid', `${why} Remember it for the run alone.`, { cause });
  }
}

/** Puts the rule where runs of its scope find it; `undefined` for a rule of the run alone. */
export function ruleWrite(
  rule: Omit<ApprovalRule, 'expiresAt'>,
  { tenant, user, session, run }: Identity,
  expiresInMs: number | undefined,
): StoreWrite | undefined {
  const { id, scope, by, ...said } = rule;
  if (scope === 'run') return undefined;
  const namespace = ruleNamespace(scope === 'user' ? { tenant, user } : { tenant, user, session });
  const value = { id, scope, run, ...said, ...(by === undefined ? {} : { by }) } as unknown as Json;
  return { namespace, key: id, value, ...(expiresInMs === undefined ? {} : { ttlMs: expiresInMs }) };
}
