/** Rules that people have made of their answers, and what they say to a question about a call. */
import {
  type ApprovalRule,
  type ApprovalTerms,
  type Approving,
  countApprovers,
  defined,
  type Identity,
  type Json,
  personKey,
  type StoreItem,
} from '#core';
import { checkOf } from '#tools';
import { jsonDigest } from './earlier-calls.ts';

/** A question about a call that people would be asked. */
export interface ApprovalQuestion {
  readonly tool: string;
  /** The arguments as they were given; `checked`: as the tool gets them, where that is something else and can be written as JSON. */
  readonly given: Json;
  readonly checked: Json | undefined;
  readonly terms: ApprovalTerms;
  readonly identity: Pick<Identity, 'tenant' | 'user'>;
}

/** What rules say. Of several that approve, as many are named as people are needed. */
export interface Ruling {
  readonly verdict: 'approve' | 'reject';
  readonly rules: readonly ApprovalRule[];
}

/** What the rules say to the question; `undefined`: nothing, so that people are asked. A rule that rejects wins. */
export async function rulingOn(
  rules: readonly ApprovalRule[],
  question: ApprovalQuestion,
): Promise<Ruling | undefined> {
  const newest = rules.toSorted((one, other) => other.setAt - one.setAt || (one.id < other.id ? 1 : -1));
  const fitting: ApprovalRule[] = [];
  for (const rule of newest) if (await fits(rule, question)) fitting.push(rule);
  const no = fitting.find(({ verdict }) => verdict === 'reject');
  if (no !== undefined) return { verdict: 'reject', rules: [no] };
  return approvedBy(fitting, question);
}

/** A rule says yes in the name of whoever set it: it counts as that person's approval would. */
function approvedBy(fitting: readonly ApprovalRule[], { terms, identity }: ApprovalQuestion): Ruling | undefined {
  const { approvals = 1, approver } = terms;
  const ofPerson = new Map<string, ApprovalRule>();
  for (const rule of fitting) {
    const who: Approving = rule.by ?? null;
    if (ofPerson.has(personKey(who)) || countApprovers([who], approver, identity) === 0) continue;
    ofPerson.set(personKey(who), rule);
    if (ofPerson.size === approvals) return { verdict: 'approve', rules: [...ofPerson.values()] };
  }
  return undefined;
}

async function fits({ tool, match }: ApprovalRule, question: ApprovalQuestion): Promise<boolean> {
  if (tool !== question.tool) return false;
  if (match === 'tool') return true;
  const { given, checked } = question;
  if ('digest' in match) return match.digest === jsonDigest(given);
  try {
    const check = checkOf(match.schema, 'The rule');
    // What the schema of the tool fills in counts too: a rule for small sums says nothing about a sum that is left out.
    return (await check(given)).ok && (checked === undefined || (await check(checked)).ok);
  } catch {
    return false;
  }
}

/** A rule as the store has it. Another version may have written what this one does not know. */
export function storedRule({ value, expiresAt }: StoreItem): ApprovalRule | undefined {
  const rule = value as unknown as ApprovalRule;
  const isKnown = rule.verdict === 'approve' || rule.verdict === 'reject';
  return isKnown ? { ...rule, ...defined({ expiresAt }) } : undefined;
}
