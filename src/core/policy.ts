/** The program's policy about calls: what it is shown, and what it answers. */
import { APPROVAL_TERMS, type ApprovalTerms, isReason, whyNoTerms } from './approval.ts';
import type { BudgetView } from './budget-view.ts';
import { type Clock, limitTime } from './clock.ts';
import { branchesOf, type Decision } from './decision.ts';
import { describeThrown } from './errors.ts';
import type { Identity } from './identity.ts';
import type { Json, JsonObject } from './json.ts';
import { isOptionsRecord } from './options.ts';
import type { Outcome } from './outcome.ts';
import type { CallRecord, Step } from './step.ts';

export interface PolicyCall {
  readonly tool: string;
  /** The arguments as the tool will get them. In a plan that is still being made, references to earlier steps are not resolved. */
  readonly args: Json;
}

/** The run whose call is asked about. Lists are made when they are asked for. */
export interface PolicyView {
  readonly identity: Identity;
  /** The name of the agent. */
  readonly agent: string;
  /** What the run was started with under `context.meta`. */
  readonly meta: JsonObject;
  readonly query: string;
  /** What the run is to reach now. */
  readonly goal: string;
  /** What was spent, and what is left. */
  readonly budget: BudgetView;
  /** The steps that have ended. */
  readonly steps: readonly Step[];
  /** The calls before this one, in order: those of earlier steps, and of its own step those that stand before it or have ended. */
  readonly calls: readonly PolicyEarlierCall[];
}

export interface PolicyEarlierCall {
  readonly step: number;
  readonly call: number;
  readonly tool: string;
  /** As they were decided, or given by whoever approved the call. References are not resolved. */
  readonly args: Json;
  /** `open`: the call has not ended. */
  readonly outcome: Outcome['kind'] | 'open';
}

/**
 * `allow` lets the call pass, `deny` refuses it, and the planner is told why; with `ask` it waits for an approval, as with a gate of its
 * tool.
 */
export type PolicyAnswer = 'allow' | { readonly deny: string } | ({ readonly ask: string } & ApprovalTerms);

/**
 * A rule of the program's about calls. It is asked about all calls of a plan before the plan runs, and again before each call. A policy that
 * throws, or answers anything else, allows nothing.
 */
export type ToolPolicy = (
  call: PolicyCall,
  view: PolicyView,
  signal: AbortSignal,
) => PolicyAnswer | Promise<PolicyAnswer>;

/** So long a policy, and the rule of a gate, may take to answer: as long as a call by default. Then nothing is allowed. */
export const ANSWERS_WITHIN_MS = 30_000;

/** The policy, which fails when it has not answered in time: otherwise its run would be held for ever. What it answers at once costs no timer. */
export function policyInTime(policy: ToolPolicy, clock: Clock): ToolPolicy {
  return (call, view, signal) => {
    const answer = policy(call, view, signal);
    if (typeof answer !== 'object' || answer === null || !('then' in answer)) return answer;
    const { promise, resolve, reject } = Promise.withResolvers<PolicyAnswer>();
    const lift = limitTime(clock, ANSWERS_WITHIN_MS, () => reject(new Error(noAnswerInTime())));
    Promise.resolve(answer).then(resolve, reject);
    return promise.finally(lift);
  };
}

export function noAnswerInTime(): string {
  return `it gave no answer within ${ANSWERS_WITHIN_MS} ms`;
}

/** What a policy answered, or why that does not count as an answer. */
export type PolicyVerdict =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly why: string }
  | { readonly kind: 'ask'; readonly reason: string; readonly terms: ApprovalTerms };

/** A policy may give anything: what throws when it is read allows nothing. */
export function readPolicyAnswer(answer: unknown): PolicyVerdict {
  try {
    return verdictOf(answer);
  } catch (thrown) {
    return noAnswer(`it cannot be read: ${describeThrown(thrown)}`);
  }
}

function verdictOf(answer: unknown): PolicyVerdict {
  if (answer === 'allow') return ALLOW;
  if (!isOptionsRecord(answer))
    return noAnswer(
      `it answered ${typeof answer === 'string' ? JSON.stringify(answer.slice(0, 100)) : String(typeof answer)}`,
    );
  const { deny, ask, ...terms } = answer as { readonly deny?: unknown; readonly ask?: unknown } & ApprovalTerms;
  if (deny !== undefined) {
    const isAlone = ask === undefined && Object.keys(terms).length === 0;
    return isAlone && typeof deny === 'string' && deny !== ''
      ? { kind: 'deny', why: deny }
      : noAnswer('deny is not a reason alone');
  }
  if (!isReason(ask)) return noAnswer('ask is not a reason of 1 to 1,000 characters');
  const other = Object.keys(terms).find((key) => !APPROVAL_TERMS.some((known) => known === key));
  const wrong = other === undefined ? whyNoTerms(terms) : `there is no option ${JSON.stringify(other.slice(0, 60))}`;
  return wrong === undefined ? { kind: 'ask', reason: ask, terms } : noAnswer(wrong);
}

const ALLOW: PolicyVerdict = Object.freeze({ kind: 'allow' });

function noAnswer(what: string): PolicyVerdict {
  return {
    kind: 'deny',
    why: `the policy gave no answer that counts: ${what}. It answers 'allow', { deny: reason } or { ask: reason }.`,
  };
}

/** A step whose calls have not all ended. */
interface PolicyOpenStep {
  readonly step: number;
  readonly decision: Decision;
  readonly calls: readonly (Pick<CallRecord, 'outcome'> | null)[];
  /** What people gave in place of arguments, by call. */
  readonly given: ReadonlyMap<number, Json>;
  /** The call that is asked about. */
  readonly call: number;
}

interface Source extends Omit<PolicyView, 'steps' | 'calls'> {
  steps(): readonly Step[];
  readonly open?: PolicyOpenStep;
}

/** A view that copies nothing before somebody looks. */
export function policyView({ steps, open, ...plain }: Source): PolicyView {
  let made: readonly Step[] | undefined;
  let calls: readonly PolicyEarlierCall[] | undefined;
  const stepsNow = (): readonly Step[] => {
    made ??= Object.freeze([...steps()]);
    return made;
  };
  return Object.freeze({
    ...plain,
    get steps() {
      return stepsNow();
    },
    get calls() {
      calls ??= Object.freeze([...stepsNow().flatMap(callsOfStep), ...(open === undefined ? [] : callsBefore(open))]);
      return calls;
    },
  });
}

function callsOfStep({ index, decision, calls, given = [] }: Step): PolicyEarlierCall[] {
  return branchesOf(decision).flatMap(({ tool, args }, call): PolicyEarlierCall[] => {
    const record = calls[call];
    if (record === undefined) return [];
    const other = given.find((one) => one.call === call) ?? { args };
    return [Object.freeze({ step: index, call, tool, args: other.args, outcome: record.outcome.kind })];
  });
}

function callsBefore({ step, decision, calls, given, call: asked }: PolicyOpenStep): PolicyEarlierCall[] {
  return branchesOf(decision).flatMap(({ tool, args }, call): PolicyEarlierCall[] => {
    const record = calls[call] ?? null;
    if (call === asked || (call > asked && record === null)) return [];
    const other = given.get(call);
    const outcome = record?.outcome.kind ?? 'open';
    return [Object.freeze({ step, call, tool, args: other === undefined ? args : other, outcome })];
  });
}
