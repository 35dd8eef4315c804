/** Faults in gates and limits. */
import type { Mutant } from './mutant.ts';

export const GATES_AND_LIMITS: readonly Mutant[] = [
  {
    name: 'drive one run of a tenant more than it may have',
    file: 'runtime/slots.ts',
    find: 'if (count >= this.#limits.perTenant) return undefined;',
    replace: 'if (count > this.#limits.perTenant) return undefined;',
  },
  {
    name: 'start one call more than a run may',
    file: 'calls/in-flight-budget.ts',
    find: "if (callsLeft < 1) return { axis: 'calls', left: Math.max(0, callsLeft) };",
    replace: "if (callsLeft < 0) return { axis: 'calls', left: Math.max(0, callsLeft) };",
  },
  {
    name: 'ask for a step with nothing left of a limit',
    file: 'state/budget.ts',
    find: 'if (room <= 0) return { axis: NAMES[axis], lent: false };',
    replace: 'if (room < 0) return { axis: NAMES[axis], lent: false };',
  },
  {
    name: 'forget the limits that somebody raised',
    file: 'state/open-step.ts',
    find: 'if (resumed.limits !== undefined) state.limits = { ...state.limits, ...resumed.limits };',
    replace: 'if (resumed.limits === null) state.limits = { ...state.limits };',
  },
  {
    name: 'lend tasks what calls under way will take',
    file: 'state/budget.ts',
    find: 'const room = left[axis] - (taken[axis] ?? 0);',
    replace: 'const room = left[axis];',
  },
  {
    name: 'forget the tokens of a move',
    file: 'state/fold.ts',
    find: 'addUsage(state.totals, move.usage);',
    replace: 'state.totals.inputTokens += 0;',
  },
  {
    name: 'allow what the policy refuses for a reason',
    file: 'calls/permission.ts',
    find: "return answer.kind === 'allow' ? undefined : answer;",
    replace:
      "return answer.kind === 'allow' || (answer.kind === 'deny' && settled.value !== false) ? undefined : answer;",
  },
  {
    name: 'allow what the policy could not be asked for',
    file: 'calls/permission.ts',
    find: "if (settled.kind === 'thrown') return { kind: 'deny', why:",
    replace:
      "if (settled.kind === 'thrown' || settled.kind === 'timeout') return undefined;\n      if (settled.kind === 'thrown') return { kind: 'deny', why:",
  },
  {
    name: 'leave a gate open for ever',
    file: 'calls/permission.ts',
    find: 'terms: termsOf(gate),',
    replace: 'terms: termsOf({ ...gate, expiresInMs: undefined }),',
  },
  {
    name: 'go on after a no that ends the run',
    file: 'calls/permission.ts',
    find: "...(onReject === 'end' ? { onReject } : {}) };",
    replace: '};',
  },
  {
    name: 'let anybody approve what another has to',
    file: 'calls/permission.ts',
    find: 'terms: termsOf(gate),',
    replace: 'terms: termsOf({ ...gate, approver: undefined }),',
  },
  {
    name: 'make a call whose approval rule is broken',
    file: 'calls/permission.ts',
    find: "return { kind: 'refused', error: { code: 'approval_failed', message } };",
    replace: "return message === '' ? { kind: 'refused', error: { code: 'approval_failed', message } } : undefined;",
  },
  {
    name: 'try nothing again that may pass',
    file: 'calls/call.ts',
    find: 'if (attempt > retries || !mayRetry(settled, askedMs)) return failedOutcome(error, name, attempt);',
    replace: 'if (attempt > 0 || !mayRetry(settled, askedMs)) return failedOutcome(error, name, attempt);',
  },
  {
    name: 'make a call all the same whose question was withdrawn',
    file: 'state/open-step.ts',
    find: "if (verdict === 'superseded') {",
    replace: "if (verdict === 'superseded' && payload === null) {",
  },
  {
    name: 'take an answer that came after a new goal',
    file: 'loop/answers.ts',
    find: 'const withdrawn = withdrawnBy({ ...state, fresh: ports.fresh }, pause);',
    replace: 'const withdrawn = withdrawnBy({ ...state, fresh: [] }, pause);',
  },
  {
    name: 'try a call again before the time that it was put off to',
    file: 'state/blocked-calls.ts',
    find: 'return now === BEFORE_ALL || (failedAt <= now && now < retryAt);',
    replace: 'return now === BEFORE_ALL;',
  },
];
