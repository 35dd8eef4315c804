/** Faults in who approves, how many, and what holds for questions to come. */
import type { Mutant } from './mutant.ts';

export const APPROVALS: readonly Mutant[] = [
  {
    name: 'count one person twice who speaks from two sessions',
    file: 'core/approver.ts',
    find: "return who === null ? '' : JSON.stringify([who.tenant, who.user]);",
    replace: "return who === null ? '' : JSON.stringify([who.tenant, who.user, who.session]);",
  },
  {
    name: 'count whoever the run is of, where somebody else has to approve',
    file: 'core/approver.ts',
    find: "approver === 'another' ? people.filter((who) => !isOwn(who)) : people;",
    replace: "approver === 'another' ? people.filter((who) => !isOwn(who) || who !== null) : people;",
  },
  {
    name: 'let one yes do where more people have to approve',
    file: 'loop/approvals.ts',
    find: 'if (approvals === 1) return undefined;',
    replace: 'if (approvals >= 1) return undefined;',
  },
  {
    name: 'keep what people said to other arguments',
    file: 'state/approvals.ts',
    find: 'return { ...pause, payload, given: args, approved: [{ by, at }] };',
    replace: 'return { ...pause, payload, given: args, approved: [...(pause.approved ?? []), { by, at }] };',
  },
  {
    name: 'ask on the looser terms where policy and gate both ask',
    file: 'core/approval.ts',
    find: 'const approvals = Math.max(one.approvals ?? 1, other.approvals ?? 1);',
    replace: 'const approvals = Math.min(one.approvals ?? 1, other.approvals ?? 1);',
  },
  {
    name: 'leave the policy unasked where the tool has a gate',
    file: 'calls/permission.ts',
    find: 'if (policy === undefined) return undefined;\n  const view',
    replace: 'if (policy === undefined || call.approval !== undefined) return undefined;\n  const view',
  },
  {
    name: 'ask people for what the policy denies',
    file: 'calls/permission.ts',
    find: "if (policy?.kind === 'deny') return refusedBy(tool, policy.why);",
    replace:
      "if (policy?.kind === 'deny' && (tool.gate === undefined || call.approval !== undefined)) return refusedBy(tool, policy.why);",
  },
  {
    name: 'make what the policy denies when somebody has approved it',
    file: 'calls/permission.ts',
    find: "if (policy?.kind === 'deny') return refusedBy(tool, policy.why);",
    replace: "if (policy?.kind === 'deny' && call.approval === undefined) return refusedBy(tool, policy.why);",
  },
  {
    name: 'hold one rule to be enough where two people have to approve',
    file: 'calls/approval-rules.ts',
    find: 'if (ofPerson.size === approvals)',
    replace: 'if (ofPerson.size >= 1)',
  },
  {
    name: 'hold two rules of one person to be of two people',
    file: 'calls/approval-rules.ts',
    find: 'ofPerson.set(personKey(who), rule);',
    replace: 'ofPerson.set(rule.id, rule);',
  },
  {
    name: 'let a rule that approves win over one that rejects',
    file: 'calls/approval-rules.ts',
    find: "if (rule.verdict === 'reject' && (await fits(rule))) return",
    replace:
      "if (rule.verdict === 'reject' && (await fits(rule)) && (await approvedBy(newest, fits, question)) === undefined) return",
  },
  {
    name: 'apply a rule for one call to all of its tool',
    file: 'calls/approval-rules.ts',
    find: 'return match.digest === digest;',
    replace: "return match.digest !== '';",
  },
  {
    name: 'apply a rule whatever the schema says',
    file: 'calls/approval-rules.ts',
    find: 'return (await check(given)).ok && (checked',
    replace: 'return ((await check(given)).ok || true) && (checked',
  },
  {
    name: 'apply a rule to other tools',
    file: 'calls/approval-rules.ts',
    find: '.filter(({ tool }) => tool === question.tool)',
    replace: ".filter(({ tool }) => tool !== '')",
  },
  {
    name: 'let no rule let a call pass',
    file: 'calls/approval-rules.ts',
    find: "if (ofPerson.size === approvals) return { verdict: 'approve', rules: [...ofPerson.values()] };",
    replace: '',
  },
  {
    name: 'apply rules of a session to all sessions of its user',
    file: 'calls/permits.ts',
    find: 'rulesIn(deps, ofUser, isOwn)',
    replace: 'rulesIn(deps, ofUser, (item) => isOwn(item) || true)',
  },
  {
    name: 'apply a rule of a run after its time',
    file: 'calls/permits.ts',
    find: 'const own = rules.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => now < expiresAt);',
    replace:
      'const own = rules.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => now < expiresAt || now >= expiresAt);',
  },
  {
    name: 'keep a rule that is over in the store',
    file: 'core/approval-rule.ts',
    find: '...(expiresInMs === undefined ? {} : { ttlMs: expiresInMs }) };',
    replace: '...(expiresInMs === undefined ? {} : { ttlMs: expiresInMs + 600_000 }) };',
  },
  {
    name: 'keep the rule of a run that is taken back',
    file: 'state/approvals.ts',
    find: 'state.rules = state.rules.filter((rule) => rule.id !== id);',
    replace: 'state.rules = [...state.rules];',
  },
  {
    name: 'take a rule back without telling the store',
    file: 'runtime/rules.ts',
    find: 'await patiently(clock, () => journal.store.write([{ namespace, key }]));',
    replace: '',
  },
  {
    name: 'give a fork the rules of its run',
    file: 'state/approvals.ts',
    find: "if (set.remember.scope !== 'run' || isCopied) return;",
    replace: "if (set.remember.scope !== 'run' || (isCopied && state.fork === null)) return;",
  },
  {
    name: 'remember nothing of a yes that is not enough',
    file: 'state/approvals.ts',
    find: 'if (approved.remember !== undefined) {',
    replace: 'if (approved.remember !== undefined && approved.by === undefined) {',
  },
  {
    name: 'remember a no as a yes',
    file: 'state/approvals.ts',
    find: "entry.kind === 'resumed' && entry.verdict === 'reject' ? 'reject' : 'approve';",
    replace: "entry.kind === 'resumed' && entry.verdict === 'reject' ? 'approve' : 'approve';",
  },
  {
    name: 'escalate again and again',
    file: 'state/approvals.ts',
    find: 'return escalate === undefined || escalatedAt !== undefined\n',
    replace: 'return escalate === undefined\n',
  },
  {
    name: 'remind at once, and not when the time comes',
    file: 'state/approvals.ts',
    find: 'return timeAfter(reminded?.at ?? requestedAt, remindAfterMs);',
    replace: 'return timeAfter(requestedAt, remindAfterMs);',
  },
  {
    name: 'escalate without changing who may approve',
    file: 'state/approvals.ts',
    find: "told.push({ kind: 'escalated', token, to, ...defined({ approver }) });",
    replace: "void approver;\n      told.push({ kind: 'escalated', token, to });",
  },
  {
    name: 'never escalate',
    file: 'state/approvals.ts',
    find: 'if (escalate !== undefined && escalationAt(pause) <= now) {',
    replace: 'if (escalate !== undefined && escalationAt(pause) <= now - 60_000) {',
  },
  {
    name: 'give the first of several answers only',
    file: 'runtime/run.ts',
    find: 'given.map(([token, answer]) => this.answer(token, answer))',
    replace: 'given.map(([token, answer], index) => (index === 0 ? this.answer(token, answer) : undefined))',
  },
];
