/**
 * What must hold of approvals when something lands: no question that nobody has, or that a rule answers; no rule that does not hold; no yes
 * too many, and none too few. And when a tool is entered: all that have a say have said yes. The rules are those that people have set, by hand.
 */
import { type ApprovalTerms, type Entry, type Identity, isJsonObject, type Json, type JsonObject } from '#core';
import type { ToolContext } from '#tools';
import type { Moment } from './approval-ledger.ts';
import {
  approvedByHand,
  approverOf,
  callAt,
  countPeople,
  isAbout,
  type Person,
  personName,
  questionOf,
  type RuleByHand,
  textOf,
} from './approvals-by-hand.ts';
import { placesOf } from './check-calls.ts';
import { type Asks, asksAbout, GATED_KINDS, isDenied } from './gated-tools.ts';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

/** A call is made that was approved by as many as have to, or by rules, with these arguments. */
export function checkEntered(
  tool: string,
  args: JsonObject,
  { identity: { run }, idempotencyKey }: Pick<ToolContext, 'identity' | 'idempotencyKey'>,
  ledger: Ledger,
): void {
  const entries = ledger.runs.get(run)?.entries ?? [];
  const wrong = (what: string): void => ledger.violated('approvals', `${tool} ${String(args['id'])} ${what}`, run);
  const place = placesOf(entries, String(args['id'])).find(({ step, call }) =>
    idempotencyKey.endsWith(`/${step}.${call}`),
  );
  const own = identityOf(entries);
  if (place === undefined || own === undefined) return;
  if (isDenied(args)) wrong('ran, and the policy forbids it');
  const approved = approvedByHand(entries, place);
  if (textOf(approved.args) !== textOf(args))
    wrong(`ran with ${textOf(args)}, and ${textOf(approved.args)} was asked for`);
  const { people, escalated } = approved;
  const unmet = unmetOf(asksAbout(tool, args), people, escalated, own)[0];
  if (unmet !== undefined)
    wrong(`ran, approved by ${namesOf(people)}, and its ${unmet.of} wants ${JSON.stringify(unmet.terms)}`);
}

function identityOf([first]: readonly Entry[]): Identity | undefined {
  return first?.kind === 'started' ? first.identity : undefined;
}

function namesOf(people: readonly Person[]): string {
  return people.map(personName).join(' and ') || 'nobody';
}

/** Those who ask and are not content with these people. */
function unmetOf(asks: readonly Asks[], people: readonly Person[], escalated: boolean, own: Identity): Asks[] {
  return asks.filter(({ terms }) => countPeople(people, approverOf(terms, escalated), own) < (terms.approvals ?? 1));
}

interface Landing {
  readonly run: string;
  readonly entries: readonly Entry[];
  /** All of the run, with these. */
  readonly all: readonly Entry[];
  readonly process: SimulatedProcess;
  readonly now: Moment;
  readonly ledger: Ledger;
}

/** These entries have landed. */
export function checkLanded(landing: Landing): void {
  const { run, entries, all, ledger, now } = landing;
  const own = identityOf(all);
  if (own === undefined) return;
  for (const [index, entry] of entries.entries()) {
    const before = all.slice(0, entry.seq - 1);
    const said = entries[index - 1];
    switch (entry.kind) {
      case 'paused':
        checkAsked(entry, before, own, landing);
        break;
      case 'ruled':
        checkRuled(entry, before, own, landing);
        break;
      case 'approved':
      case 'resumed':
        checkYes(entry, before, own, run, ledger);
        if (said?.kind === 'control' && said.applied) ledger.approvals.set(entry, said.control, before, own, now);
        break;
      default:
        break;
    }
  }
}

/** People are asked for what somebody asks about, and no rule answers; on the terms of all that ask. */
function checkAsked(
  paused: Extract<Entry, { kind: 'paused' }>,
  before: readonly Entry[],
  own: Identity,
  { run, process, now, ledger }: Landing,
): void {
  const question = questionOf(paused, before, run);
  if (question === undefined || !(question.tool in GATED_KINDS)) return;
  const wrong = (what: string): void => ledger.violated('approvals', `the question ${paused.token} ${what}`, run);
  const { args, people, escalated } = approvedByHand(before, question);
  const { tool } = question;
  if (isDenied(args)) wrong('is asked, and the policy forbids the call');
  const isPassed = people.length > 0;
  const asks = unmetOf(asksAbout(tool, args), people, escalated, own).filter(({ of }) => of === 'policy' || !isPassed);
  if (asks.length === 0) {
    wrong('is asked, and nobody asks about the call');
    return;
  }
  const terms = strictest(asks);
  if (paused.approvals !== terms.approvals || paused.approver !== terms.approver)
    wrong(`wants ${paused.approvals ?? 1} of ${paused.approver ?? 'all'}, and ${JSON.stringify(terms)} is to be asked`);
  if ((paused.expiresAt === undefined) !== (terms.expiresInMs === undefined)) wrong('is open for another time');
  const shown = paused.payload?.['args'];
  if (shown === undefined || textOf(shown) !== textOf(args))
    wrong(`shows ${JSON.stringify(shown)}, and asks for ${textOf(args)}`);
  const askedAt = ledger.approvals.askedAt(process, run, args);
  if (askedAt === undefined) return;
  const fitting = ledger.approvals.rules.filter(
    (rule) => isAbout(rule, { identity: own, tool, args }) && holdsThroughout(rule, askedAt, now),
  );
  const no = fitting.find(({ verdict }) => verdict === 'reject');
  if (no !== undefined) {
    wrong(`is asked, and ${no.id} rejects the call`);
    return;
  }
  const yes = fitting.map(({ by }) => by);
  if (countPeople(yes, terms.approver, own) >= (terms.approvals ?? 1))
    wrong(`is asked, and ${fitting.map(({ id }) => id).join(', ')} let the call pass`);
}

/** As many as have to of all that ask, and somebody else where one of them says so. */
function strictest(asks: readonly Asks[]): Pick<ApprovalTerms, 'approvals' | 'approver' | 'expiresInMs'> {
  const approvals = Math.max(...asks.map(({ terms }) => terms.approvals ?? 1));
  const isOther = asks.some(({ terms }) => terms.approver === 'another');
  const expiresInMs = asks.find(({ terms }) => terms.expiresInMs !== undefined)?.terms.expiresInMs;
  return {
    ...(approvals === 1 ? {} : { approvals }),
    ...(isOther ? { approver: 'another' } : {}),
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
  };
}

/** The rules that were applied are there, are about the call, and hold, or did a moment ago. */
function checkRuled(
  { step, call, verdict, rules }: Extract<Entry, { kind: 'ruled' }>,
  before: readonly Entry[],
  own: Identity,
  { run, process, now, ledger }: Landing,
): void {
  const { tool } = callAt(before, step, call) ?? { tool: '' };
  const { args, people, escalated } = approvedByHand(before, { step, call });
  const wrong = (what: string): void => ledger.violated('approvals', `call ${step}.${call} of ${tool} ${what}`, run);
  const askedAt = ledger.approvals.askedAt(process, run, args) ?? now;
  for (const { id, by } of rules) {
    const rule = ledger.approvals.find(id);
    if (rule === undefined) wrong(`is decided by ${id}, which nobody has set`);
    else if (!isAbout(rule, { identity: own, tool, args })) wrong(`is decided by ${id}, which is not about it`);
    else if (rule.verdict !== verdict) wrong(`comes to ${verdict}, and ${id} says ${rule.verdict}`);
    else if (personName(rule.by) !== personName(by ?? null))
      wrong(`names ${personName(by ?? null)}, and ${id} is of another`);
    else if (!heldOnce(rule, askedAt)) wrong(`is decided by ${id}, which does not hold any more`);
  }
  const asks = asksAbout(tool, args).filter(({ of }) => of === 'policy' || people.length === 0);
  if (asks.length === 0) wrong('is decided by a rule, and nobody asks about it');
  if (verdict === 'reject') return;
  const missing = unmetOf(asks, [...people, ...rules.map(({ by }) => by ?? null)], escalated, own);
  if (missing.length > 0) wrong(`passes by ${rules.map(({ id }) => id).join(', ')}, and more have to approve it`);
  const no = ledger.approvals.rules.find(
    (rule) =>
      rule.verdict === 'reject' && isAbout(rule, { identity: own, tool, args }) && holdsThroughout(rule, askedAt, now),
  );
  if (no !== undefined) wrong(`passes by a rule, and ${no.id} rejects it`);
}

/** Since before the question until now. */
function holdsThroughout({ set, revoking, expiresAt, scope }: RuleByHand, from: Moment, now: Moment): boolean {
  const time = scope === 'run' ? Math.max(from.wallMs, now.wallMs) : now.at;
  return set < from.order && revoking === undefined && time < expiresAt;
}

/** When the question came up, or later. */
function heldOnce({ revoked, expiresAt, scope }: RuleByHand, from: Moment): boolean {
  const time = scope === 'run' ? from.wallMs : from.at;
  return (revoked === undefined || revoked > from.order) && time < expiresAt;
}

/** A yes that is not enough keeps the question open, and one that is enough does not. */
function checkYes(
  entry: Extract<Entry, { kind: 'approved' | 'resumed' }>,
  before: readonly Entry[],
  own: Identity,
  run: string,
  ledger: Ledger,
): void {
  if (entry.kind === 'resumed' && entry.verdict !== 'approve') return;
  const { token, args } = entry;
  const paused = before.find((one) => one.kind === 'paused' && one.token === token);
  const question = questionOf(paused, before, run);
  if (question === undefined) return;
  const { approvals = 1, approver, escalate } = question.paused;
  const { people, escalated } = approvedByHand([...before, entry], question, token);
  const toldOf = before.some((one) => one.kind === 'escalated' && one.token === token);
  const who = approverOf(
    { ...(approver === undefined ? {} : { approver }), ...(escalate === undefined ? {} : { escalate }) },
    escalated && toldOf,
  );
  const count = countPeople(people, who, own);
  const names = namesOf(people);
  if (entry.kind === 'approved' && count >= approvals)
    ledger.violated('approvals', `${token} is open still, and ${names} have approved it`, run);
  if (entry.kind === 'resumed' && count < approvals)
    ledger.violated('approvals', `${token} is approved by ${names}, and ${approvals} have to`, run);
  if (args !== undefined && !isJsonObject(args as Json))
    ledger.violated('approvals', `${token} was approved with arguments that are none`, run);
}
