/**
 * Whether a call may be made: the program's policy first, then the gate of its tool, and when one of them asks, rules before people. What asks
 * is asked once, on the stricter of both terms.
 */
import {
  ANSWERS_WITHIN_MS,
  type ApprovalTerms,
  capture,
  countApprovers,
  type ErrorData,
  type Json,
  type JsonObject,
  jsonEquals,
  noAnswerInTime,
  PilotageError,
  type PolicyVerdict,
  readPolicyAnswer,
  stricterTerms,
  termsOf,
} from '#core';
import type { ApprovedCall } from '#state';
import type { ReadyTool } from '#tools';
import { type ApprovalQuestion, rulingOn } from './approval-rules.ts';
import type { Settled } from './attempt.ts';
import type { Call, DispatchPorts } from './call-ports.ts';
import { type PauseAsk, shownArgs } from './gates.ts';

export interface NotPermitted {
  readonly kind: 'refused';
  readonly error: ErrorData;
}

/** What is to be asked before a call is made. */
interface Asking {
  readonly reason?: string;
  readonly terms: ApprovalTerms;
  readonly onReject?: 'end';
}

/** A call whose arguments fit. */
export interface FitCall {
  readonly tool: ReadyTool;
  readonly args: unknown;
  readonly given: Json;
}

/**
 * Why the call is not made, or what it waits for; `undefined` when it may be made. A call that was cut off by a crash has passed its gate, and
 * is looked up before the policy is asked.
 * @throws the error of the store, or of the journal.
 */
export async function permissionFor(
  call: Call,
  fit: FitCall,
  ports: DispatchPorts,
): Promise<PauseAsk | NotPermitted | undefined> {
  const { tool, args, given } = fit;
  const policy = await policyOn(call, given, ports);
  if (policy?.kind === 'deny') return refusedBy(tool, policy.why);
  // Before the rule of the gate gets the arguments, since it may change them; a call that was approved is checked anew from what was given.
  const checked = tool.gate === undefined && policy === undefined ? undefined : checkedArgs(given, args);
  const gate = await gateAsks(call, fit, ports);
  if (gate !== undefined && 'kind' in gate) return gate;
  const asking = both(policy === undefined || isMet(policy, call) ? undefined : policy, gate);
  if (asking === undefined) return undefined;
  const question = { tool: tool.schema.name, given, checked, terms: asking.terms, identity: call.identity };
  const said = await ruled(call, question, asking, ports);
  if (said === 'approved') return undefined;
  return said ?? pauseFor(call, question, asking, ports);
}

type PolicyAsks = Extract<PolicyVerdict, { kind: 'ask' }>;

async function policyOn(
  call: Call,
  args: Json,
  ports: DispatchPorts,
): Promise<Exclude<PolicyVerdict, { kind: 'allow' }> | undefined> {
  const { branch, index, attempt, tools } = call;
  const { policy } = tools;
  if (policy === undefined) return undefined;
  const view = ports.permits.view(index);
  return attempt.run(
    (signal) => policy({ tool: branch.tool, args }, view, signal.signal),
    (settled) => {
      if (settled.kind === 'thrown') return { kind: 'deny', why: `the policy failed: ${settled.error.message}` };
      if (settled.kind !== 'value') return { kind: 'deny', why: 'the policy could not be asked' };
      const answer = readPolicyAnswer(settled.value);
      return answer.kind === 'allow' ? undefined : answer;
    },
  );
}

function refusedBy({ schema: { name } }: ReadyTool, why: string): NotPermitted {
  const message = `The policy does not allow this call of ${name}: ${why}`;
  return { kind: 'refused', error: { code: 'policy_refused', message } };
}

/** Whether those who have approved the call are as many, and such, as the policy wants now: they may have given it other arguments. */
function isMet({ terms }: PolicyAsks, { approval, identity }: Call): boolean {
  if (approval?.by === undefined) return false;
  const approver = approverNow(terms, approval);
  return countApprovers(approval.by, approver, identity) >= (terms.approvals ?? 1);
}

function approverNow({ approver, escalate }: ApprovalTerms, { escalated }: ApprovedCall): ApprovalTerms['approver'] {
  return escalated === true ? (escalate?.approver ?? approver) : approver;
}

async function gateAsks(
  call: Call,
  { tool, args }: FitCall,
  { meta }: DispatchPorts,
): Promise<Asking | NotPermitted | undefined> {
  const { gate, schema } = tool;
  if (gate === undefined || call.approval !== undefined || call.interrupted) return undefined;
  const { identity, idempotencyKey } = call;
  const { reason, onReject, when } = gate;
  const asked =
    when === undefined
      ? { asks: true }
      : await call.attempt.run(() => when(args as never, { identity, idempotencyKey, meta }), ruleSays, IN_TIME);
  if ('why' in asked) {
    const message = `The approval rule of ${schema.name} failed: ${asked.why} The call was not made.`;
    return { kind: 'refused', error: { code: 'approval_failed', message } };
  }
  if (!asked.asks) return undefined;
  const said = reason === undefined || reason === '' ? {} : { reason };
  return { ...said, terms: termsOf(gate), ...(onReject === 'end' ? { onReject } : {}) };
}

const IN_TIME = { timeoutMs: ANSWERS_WITHIN_MS } as const;

function ruleSays(settled: Settled<unknown>): { readonly asks: boolean } | { readonly why: string } {
  if (settled.kind === 'value') return { asks: Boolean(settled.value) };
  if (settled.kind === 'thrown') return { why: settled.error.message };
  return { why: settled.kind === 'timeout' ? `${noAnswerInTime()}.` : 'it could not be asked.' };
}

function both(policy: PolicyAsks | undefined, gate: Asking | undefined): Asking | undefined {
  if (policy === undefined) return gate;
  if (gate === undefined) return { reason: policy.reason, terms: policy.terms };
  const reason = gate.reason === undefined ? policy.reason : `${policy.reason} ${gate.reason}`;
  return { ...gate, reason, terms: stricterTerms(policy.terms, gate.terms) };
}

/** What rules say in the place of people; recorded before anything follows from it. */
async function ruled(
  { open, index, attempt }: Call,
  question: ApprovalQuestion,
  { onReject }: Asking,
  { permits }: DispatchPorts,
): Promise<NotPermitted | 'approved' | undefined> {
  const ruling = await rulingOn(await permits.rules(), question);
  if (ruling === undefined || attempt.aborted) return undefined;
  const { verdict } = ruling;
  const ends = verdict === 'reject' && onReject === 'end' ? ({ ends: true } as const) : {};
  const rules = ruling.rules.map(({ id, scope, by, setAt }) => ({
    id,
    scope,
    setAt,
    ...(by === undefined ? {} : { by }),
  }));
  await permits.note({ kind: 'ruled', step: open.move.step, call: index, verdict, rules, ...ends });
  if (verdict === 'approve') return 'approved';
  const [rule] = ruling.rules;
  const who = rule?.by === undefined ? 'the program' : rule.by.user;
  const message = `The call was rejected by a rule of ${who}, and not made: ${rule?.id}. Nobody was asked.`;
  return { kind: 'refused', error: { code: 'tool_rejected', message, data: { rule: rule?.id ?? '' } } };
}

async function pauseFor(
  { identity }: Call,
  { tool, given, checked }: ApprovalQuestion,
  { reason, terms, onReject }: Asking,
  { artifacts }: DispatchPorts,
): Promise<PauseAsk> {
  const payload: JsonObject = {
    tool,
    ...(await shownArgs(given, tool, identity, artifacts)),
    ...(checked === undefined ? {} : { checked_args: checked }),
    ...(reason === undefined ? {} : { reason }),
  };
  return {
    kind: 'pause',
    reason: 'approval_required',
    payload,
    ...terms,
    ...(onReject === undefined ? {} : { onReject }),
  };
}

/** What the tool gets, where its schema fills in or changes something, as far as that can be written as JSON. */
function checkedArgs(given: Json, args: unknown): Json | undefined {
  try {
    const { json } = capture<Json>(args, 'args');
    return jsonEquals(json, given) ? undefined : json;
  } catch (error) {
    if (PilotageError.is(error, 'unserializable')) return undefined;
    throw error;
  }
}
