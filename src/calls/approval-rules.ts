/** Rules that people have made of their answers, and what they say to a question about a call. */
import {
  type ApprovalRule,
  type ApprovalTerms,
  type Approving,
  countApprovers,
  defined,
  type Identity,
  type Json,
  type JsonObject,
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
  const newest = rules
    .filter(({ tool }) => tool === question.tool)
    .sort((one, other) => other.setAt - one.setAt || (one.id < other.id ? 1 : -1));
  const fits = fitting(question);
  for (const rule of newest)
    if (rule.verdict === 'reject' && (await fits(rule))) return { verdict: 'reject', rules: [rule] };
  return approvedBy(newest, fits, question);
}

/** A rule says yes in the name of whoever set it: it counts as that person's approval would. */
async function approvedBy(
  newest: readonly ApprovalRule[],
  fits: Fits,
  { terms, identity }: ApprovalQuestion,
): Promise<Ruling | undefined> {
  const { approvals = 1, approver } = terms;
  const ofPerson = new Map<string, ApprovalRule>();
  for (const rule of newest) {
    const who: Approving = rule.by ?? null;
    if (rule.verdict === 'reject' || ofPerson.has(personKey(who))) continue;
    if (countApprovers([who], approver, identity) === 0 || !(await fits(rule))) continue;
    ofPerson.set(personKey(who), rule);
    if (ofPerson.size === approvals) return { verdict: 'approve', rules: [...ofPerson.values()] };
  }
  return undefined;
}

type Fits = (rule: ApprovalRule) => boolean | Promise<boolean>;

/** Whether a rule of the tool is about this question. */
function fitting({ given, checked }: ApprovalQuestion): Fits {
  let digest: string | undefined;
  return ({ match }) => {
    if (match === 'tool') return true;
    if (!('digest' in match)) return fitsSchema(match.schema, given, checked);
    digest ??= jsonDigest(given);
    return match.digest === digest;
  };
}

async function fitsSchema(schema: JsonObject, given: Json, checked: Json | undefined): Promise<boolean> {
  try {
    const check = checkOf(schema, 'The rule');
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
