/** What waits in the whole journal, for an operator's page: what each run waits for, and what it takes as an answer. */
import {
  assertCaller,
  assertOptions,
  assertWords,
  type Caller,
  defined,
  type JsonObject,
  type OptionShape,
  WAITS_FOR,
} from '#core';
import type { Journal, OpenWait, WaitQuery } from '#journal';
import { type AnswerKind, kindsFor } from '../loop/answer-kinds.ts';
import { KnownStates } from '../loop/known-states.ts';
import { type MayBeAnswered, withAnswered } from './send-control.ts';

/** One thing that waits. `run` and `token` are what an answer needs: `runtime.run(run).answer(token, …)`. */
export interface Waiting extends OpenWait, MayBeAnswered {
  /** The pause, when somebody is asked. */
  readonly token?: string;
  /** The words of the question, if it has some. */
  readonly question?: string;
  /** The kinds of answers that the pause takes. */
  readonly kinds?: readonly AnswerKind[];
}

export interface WaitingQuery extends WaitQuery {
  /** Whoever looks, as the program has authenticated them: only an admin sees more than what waits in their own session. */
  readonly as?: Caller;
}

const QUERY: OptionShape<WaitingQuery> = {
  tenant: 'text?',
  user: 'text?',
  session: 'text?',
  run: 'text?',
  agent: 'text?',
  for: 'text?',
  reason: 'text?',
  key: 'text?',
  untilBefore: 'moment?',
  limit: 'any?',
  after: 'any?',
  as: 'object?',
};

/** @throws PilotageError `invalid_config`, `identity_required` or `scope_invalid`. */
export async function listWaiting(
  journal: Journal,
  query: WaitingQuery,
  states: Pick<KnownStates, 'of'> = new KnownStates(journal),
): Promise<Waiting[]> {
  assertOptions('waiting', query, QUERY);
  const { as, ...wanted } = query;
  if (wanted.for !== undefined) assertWords('waiting', 'for', [wanted.for], WAITS_FOR);
  const own = as === undefined ? undefined : ownScope(assertCaller(as));
  if (own !== undefined && isOfOthers(wanted, own)) return [];
  const rows = (await journal.waits.list({ ...wanted, ...own })).map(waitingOf);
  return withAnswered({ journal, states }, rows);
}

type Own = Pick<Caller, 'tenant' | 'user' | 'session'>;

function ownScope({ scope, tenant, user, session }: Caller): Own | undefined {
  return scope === 'admin' ? undefined : { tenant, user, session };
}

function isOfOthers(wanted: WaitQuery, own: Own): boolean {
  return (['tenant', 'user', 'session'] as const).some((part) => (wanted[part] ?? own[part]) !== own[part]);
}

function waitingOf(row: OpenWait): Waiting {
  if (row.for !== 'answer' || row.reason === undefined) return row;
  const { reason, step, call, wait, payload } = row;
  const question = payload && questionIn(payload);
  return {
    ...row,
    token: row.id,
    kinds: kindsFor({ reason, ...defined({ step, call, wait }) }),
    ...defined({ question }),
  };
}

function questionIn({ question, message }: JsonObject): string | undefined {
  const words = question ?? message;
  return typeof words === 'string' ? words : undefined;
}
