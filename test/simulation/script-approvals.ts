/** What is played of approvals: runs whose calls people decide on, who they are, and what they say. */
import type { JsonObject } from '#core';

/** What the program's policy says to a call, as its arguments say; with `big` only when the sum is over 100. */
export const POLICY_WORDS = ['deny', 'ask', 'ask_two', 'ask_other', 'ask_two_big', 'deny_big'] as const;
export type PolicyWord = (typeof POLICY_WORDS)[number];

export interface GatedArgs {
  readonly id: string;
  readonly ms?: number;
  readonly sum: number;
  readonly policy?: PolicyWord;
}

/** Those who decide. `self`: whoever the run is of, from an office of their own. */
export type Approver = 'program' | 'owner' | 'self' | 'bea' | 'cem';

/** What holds for questions to come. */
export interface RememberAct {
  readonly scope: 'run' | 'session' | 'user';
  /** A number: calls whose sum is no more. */
  readonly match?: 'exact' | 'tool' | number;
  readonly expiresInMs?: number;
}

/** Somebody decides, through the handle of a worker. */
export interface ApprovalAct {
  readonly at: number;
  readonly worker: number;
  readonly from: Approver;
  readonly does: 'approve' | 'reject' | 'answerAll' | 'revoke';
  /** Which of all open questions, or of all rules, counted round. */
  readonly nth: number;
  readonly remember?: RememberAct;
  /** With an approval: the call is to have this sum. */
  readonly sum?: number;
}

/** Begin with it: the runs that are asked about, and their forks. */
export const GATED = 'gated';

/** The rule's schema of a `match` that is a number. */
export function schemaOf(most: number): JsonObject {
  return { type: 'object', properties: { sum: { type: 'number', maximum: most } }, required: ['sum'] };
}
