/** Who has approved a call, and what people have said of calls to come: read off entries by hand, and not by the fold that is judged. */
import {
  type ApprovalTerms,
  type Caller,
  type Entry,
  type Identity,
  isJsonObject,
  type Json,
  type JsonObject,
} from '#core';
import { placesWhere } from './check-calls.ts';
import type { RememberAct } from './script-approvals.ts';

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** `null`: the program. */
export type Person = Caller | null;

export interface Question {
  readonly paused: Of<'paused'>;
  readonly run: string;
  readonly tool: string;
  readonly step: number;
  readonly call: number;
}

/** The question whether a call may be made that this pause asks; `undefined` for any other. */
export function questionOf(paused: Entry | undefined, entries: readonly Entry[], run: string): Question | undefined {
  if (paused?.kind !== 'paused' || paused.reason !== 'approval_required') return undefined;
  const { step, call } = paused;
  const tool = step === undefined || call === undefined ? undefined : callAt(entries, step, call)?.tool;
  return tool === undefined || step === undefined || call === undefined ? undefined : { paused, run, tool, step, call };
}

/** Its tool, and the arguments that were decided. */
export function callAt(
  entries: readonly Entry[],
  step: number,
  call: number,
): { tool: string; args: Json } | undefined {
  const place = placesWhere(entries, () => true).find((at) => at.step === step && at.call === call);
  return place && { tool: place.branch.tool, args: place.branch.args };
}

export interface ApprovedByHand {
  /** What is made, or asked about: those that were decided, or what an approver has put in their place. */
  readonly args: Json;
  /** Those who have said yes to these arguments, themselves or by a rule. */
  readonly people: readonly Person[];
  /** Somebody else was told. */
  readonly escalated: boolean;
}

/** @param token only what was said to this question. */
export function approvedByHand(
  entries: readonly Entry[],
  { step, call }: { readonly step: number; readonly call: number },
  token?: string,
): ApprovedByHand {
  let args = callAt(entries, step, call)?.args ?? null;
  let people: Person[] = [];
  let escalated = false;
  const tokens = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === 'paused' && entry.step === step && entry.call === call && entry.reason === 'approval_required') {
      tokens.add(entry.token);
      if (entry.token === token) people = [];
    }
    if (entry.kind === 'escalated' && tokens.has(entry.token)) escalated = true;
    if (entry.kind === 'ruled' && entry.step === step && entry.call === call && entry.verdict === 'approve')
      people = [...people, ...entry.rules.map(({ by }) => by ?? null)];
    const isYes = entry.kind === 'approved' || (entry.kind === 'resumed' && entry.verdict === 'approve');
    if (!isYes || !tokens.has(entry.token)) continue;
    const who = entry.by ?? null;
    people = entry.args === undefined ? [...people, who] : [who];
    args = entry.args ?? args;
  }
  return { args, people, escalated };
}

export function personName(who: Person): string {
  return who === null ? 'the program' : `${who.tenant}/${who.user}`;
}

/** Different people; where somebody else has to, not whoever the run is of. */
export function countPeople(people: readonly Person[], approver: ApprovalTerms['approver'], own: Identity): number {
  const names = new Set(people.map(personName));
  if (approver === 'another') names.delete(`${own.tenant}/${own.user}`);
  return names.size;
}

/** Whom the terms let decide, after somebody else was told, or before. */
export function approverOf({ approver, escalate }: ApprovalTerms, escalated: boolean): ApprovalTerms['approver'] {
  return (escalated ? escalate?.approver : undefined) ?? approver;
}

/** What somebody has said of calls to come. */
export interface RuleByHand {
  readonly id: string;
  readonly run: string;
  readonly owner: Identity;
  readonly scope: RememberAct['scope'];
  readonly verdict: 'approve' | 'reject';
  readonly tool: string;
  readonly match: 'tool' | { readonly args: Json } | { readonly schema: JsonObject };
  readonly by: Person;
  /** In the order of all that has happened: when it was stored, when somebody began to take it back, and was told that it is. */
  readonly set: number;
  revoking?: number;
  revoked?: number;
  /** By the clock of the store; of a rule of a run by the wall clock of whoever wrote it. */
  readonly expiresAt: number;
}

/** Whom it is about, and what it fits. */
export function isAbout(
  { scope, run, owner, tool, match }: RuleByHand,
  to: { readonly identity: Identity; readonly tool: string; readonly args: Json },
): boolean {
  const { identity } = to;
  const isTheirs = owner.tenant === identity.tenant && owner.user === identity.user;
  const isInScope =
    scope === 'user' || (scope === 'session' ? owner.session === identity.session : run === identity.run);
  if (!isTheirs || !isInScope || tool !== to.tool) return false;
  if (match === 'tool') return true;
  return 'args' in match ? textOf(match.args) === textOf(to.args) : isUnder(match.schema, to.args);
}

/** Of the only schemas that people use here. */
function isUnder({ properties }: JsonObject, args: Json): boolean {
  const of = isJsonObject(properties) ? properties['sum'] : undefined;
  const most = isJsonObject(of) ? of['maximum'] : undefined;
  const sum = isJsonObject(args) ? args['sum'] : undefined;
  return typeof sum === 'number' && typeof most === 'number' && sum <= most;
}

/** The same text for the same arguments, in whatever order they are. */
export function textOf(value: Json): string {
  return JSON.stringify(isJsonObject(value) ? Object.fromEntries(Object.entries(value).sort()) : value);
}
