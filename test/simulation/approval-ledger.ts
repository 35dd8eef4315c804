/** What stands outside all processes of approvals: when each asked about a call, and the rules that people have set. */
import { type Control, type Entry, type Identity, isJsonObject, type Json, type JsonObject } from '#core';
import { approvedByHand, callAt, questionOf, type RuleByHand } from './approvals-by-hand.ts';
import type { SimulatedProcess } from './process.ts';

/** A moment: in the order of all that happens, by the store's clock, and by the wall clock of a process. */
export interface Moment {
  readonly order: number;
  readonly at: number;
  readonly wallMs: number;
}

export class ApprovalLedger {
  readonly rules: RuleByHand[] = [];
  readonly #asked = new Map<string, Moment>();

  /** The program's policy is asked: rules are looked up after that. */
  asked(process: SimulatedProcess, run: string, args: Json, moment: Moment): void {
    this.#asked.set(nameOf(process, run, args), moment);
  }

  askedAt(process: SimulatedProcess, run: string, args: Json): Moment | undefined {
    return this.#asked.get(nameOf(process, run, args));
  }

  /** An answer that holds for questions to come. @param before the entries up to it. */
  set(entry: Entry, control: Control, before: readonly Entry[], identity: Identity, { order, at }: Moment): void {
    if (entry.kind !== 'resumed' && entry.kind !== 'approved') return;
    const remember = control.payload?.['remember'];
    const paused = before.find((one) => one.kind === 'paused' && one.token === entry.token);
    const question = questionOf(paused, before, identity.run);
    if (!isJsonObject(remember) || question === undefined) return;
    const { scope, match = 'exact', expiresInMs } = remember as unknown as Said;
    const args = control.payload?.['args'] ?? approvedByHand(before, question).args;
    this.rules.push({
      id: `rule:${identity.run}:${entry.seq}`,
      run: identity.run,
      owner: identity,
      scope,
      verdict: control.type === 'REJECT' ? 'reject' : 'approve',
      tool: callAt(before, question.step, question.call)?.tool ?? '',
      match: match === 'tool' ? match : match === 'exact' ? { args } : { schema: match },
      by: control.from ?? null,
      set: order,
      expiresAt: (scope === 'run' ? entry.at : at) + (expiresInMs ?? Number.POSITIVE_INFINITY),
    });
  }

  find(id: string): RuleByHand | undefined {
    return this.rules.find((rule) => rule.id === id);
  }
}

function nameOf(process: SimulatedProcess, run: string, args: Json): string {
  return `${process.name} ${run} ${isJsonObject(args) ? String(args['id']) : ''}`;
}

interface Said {
  readonly scope: RuleByHand['scope'];
  readonly match?: 'exact' | 'tool' | JsonObject;
  readonly expiresInMs?: number;
}
