/** Those who decide on calls, remember what they have said, and take it back. */
import { type Caller, type Identity, isJsonObject, type Json, PilotageError } from '#core';
import type { Approval, PauseAnswer, Run, Runtime } from '#runtime';
import { approvedByHand, type Question, questionOf, type RuleByHand } from './approvals-by-hand.ts';
import type { Ledger } from './ledger.ts';
import { ORDINARY } from './people.ts';
import type { SimulatedProcess } from './process.ts';
import { type ApprovalAct, type Approver, GATED, type RememberAct, schemaOf } from './script-approvals.ts';
import { isStoreError } from './store-errors.ts';
import { openPauses } from './waits-by-hand.ts';

export interface DecidersWorld {
  readonly ledger: Ledger;
  does<T>(worker: number, act: (runtime: Runtime, process: SimulatedProcess) => T): T | undefined;
}

export class Deciders {
  readonly #world: DecidersWorld;

  constructor(world: DecidersWorld) {
    this.#world = world;
  }

  act(act: ApprovalAct): void {
    const { ledger } = this.#world;
    if (act.does === 'revoke') {
      const { rules } = ledger.approvals;
      const rule = rules[act.nth % Math.max(rules.length, 1)];
      if (rule !== undefined) void this.#world.does(act.worker, (runtime) => this.#revoke(rule, runtime));
      return;
    }
    const open = this.#questions();
    const question = open[act.nth % Math.max(open.length, 1)];
    if (question === undefined) return;
    const beside = act.does === 'answerAll' ? open.filter(({ run }) => run === question.run) : [question];
    void this.#world.does(act.worker, (runtime) => this.#answer(beside, act, runtime));
  }

  /** All that people are asked in the runs that are about that. */
  #questions(): Question[] {
    return [...this.#world.ledger.runs].flatMap(([run, { entries, endedAt }]) => {
      const isIts = run.startsWith(GATED) && endedAt === undefined;
      return isIts ? openPauses(entries).flatMap((paused) => questionOf(paused, entries, run) ?? []) : [];
    });
  }

  async #answer(questions: readonly Question[], act: ApprovalAct, runtime: Runtime): Promise<void> {
    const { ledger } = this.#world;
    const [first] = questions;
    const entries = ledger.runs.get(first?.run ?? '')?.entries ?? [];
    const [begun] = entries;
    if (first === undefined || begun?.kind !== 'started') return;
    const as = callerFor(act.from, begun.identity);
    const run = runtime.run(first.run, ...(as === undefined ? [] : [{ as }]));
    const tokens = questions.map(({ paused }) => paused.token);
    ledger.tell('people', () => `${first.run}: ${act.from} does ${act.does} with ${tokens.join(', ')} ${wordsOf(act)}`);
    const told = await this.#heard(() => say(run, questions, act, entries), `${act.does} of ${act.from}`, first.run);
    if (!told) return;
    // A process that cannot go on with the run does not wait for those who can: then the answer is stored.
    const known = ledger.runs.get(first.run);
    for (const token of tokens) {
      const isSaid =
        known?.entries.some(
          (entry) => (entry.kind === 'resumed' || entry.kind === 'approved') && entry.token === token,
        ) ||
        (known !== undefined && ledger.controlsOf(known).some(({ message }) => message.payload?.['token'] === token));
      if (!isSaid)
        ledger.violated('approvals', `${act.does} of ${token} was acknowledged, and is not there`, first.run);
    }
  }

  async #revoke(rule: RuleByHand, runtime: Runtime): Promise<void> {
    const { ledger } = this.#world;
    ledger.tell('people', () => `${rule.id} is taken back`);
    rule.revoking ??= ledger.next();
    const isDone = await this.#heard(() => runtime.rules.revoke(rule.id), `a revoke of ${rule.id}`, rule.run);
    if (isDone) rule.revoked ??= ledger.next();
  }

  /** False when whoever spoke was told why it was not heard. */
  async #heard(said: () => Promise<void>, what: string, run: string): Promise<boolean> {
    try {
      await said();
      return true;
    } catch (error) {
      if ((PilotageError.is(error) && ORDINARY.has(error.code)) || isStoreError(error)) return false;
      this.#world.ledger.violated('no fault', `${what} was told: ${String(error)}`, run);
      return false;
    }
  }
}

function wordsOf({ remember, sum }: ApprovalAct): string {
  return JSON.stringify({ remember, sum });
}

export function callerFor(who: Approver, { tenant, user, session }: Identity): Caller | undefined {
  if (who === 'program') return undefined;
  if (who === 'owner') return { tenant, user, session, scope: 'owner_user' };
  return { tenant, user: who === 'self' ? user : who, session: 'office', scope: 'admin' };
}

function say(
  run: Run,
  questions: readonly Question[],
  act: ApprovalAct,
  entries: Parameters<typeof approvedByHand>[0],
): Promise<void> {
  const [first] = questions;
  if (first === undefined) return Promise.resolve();
  const { token } = first.paused;
  if (act.does === 'reject') return run.reject(token, remembering(act.remember));
  if (act.does === 'approve') return run.approve(token, approvalOf(first, act, entries));
  return run.answerAll(
    Object.fromEntries(
      questions.map((question, index): [string, PauseAnswer] => [
        question.paused.token,
        (index + act.nth) % 4 === 3 ? { kind: 'reject' } : { kind: 'approve', ...approvalOf(question, act, entries) },
      ]),
    ),
  );
}

/** What somebody approves who has seen the arguments, or gives others. */
function approvalOf(
  question: Question,
  { remember, sum }: ApprovalAct,
  entries: Parameters<typeof approvedByHand>[0],
): Approval {
  const words = remembering(remember);
  const { args } = approvedByHand(entries, question);
  if (sum !== undefined && isJsonObject(args)) return { ...words, args: { ...args, sum } };
  const digest = digestOf(entries, question.paused.token) ?? question.paused.payload?.['digest'];
  return typeof digest === 'string' ? { ...words, digest } : words;
}

/** Of the arguments that somebody has put in the place of the call's own. */
function digestOf(entries: Parameters<typeof approvedByHand>[0], token: string): Json | undefined {
  const edit = entries.findLast(
    (entry) => entry.kind === 'approved' && entry.token === token && entry.digest !== undefined,
  );
  return edit?.kind === 'approved' ? edit.digest : undefined;
}

function remembering(remember: RememberAct | undefined): Pick<Approval, 'remember'> {
  if (remember === undefined) return {};
  const { scope, match, expiresInMs } = remember;
  const fits = match === undefined ? {} : { match: typeof match === 'number' ? schemaOf(match) : match };
  return { remember: { scope, ...fits, ...(expiresInMs === undefined ? {} : { expiresInMs }) } };
}
