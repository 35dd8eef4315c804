/** Sessions as far as their visitor may read them: their counts, times and order, and where pages end, are those of the turns that `may` leaves. */
import { compareTexts, defined, type Scope } from '#core';
import type { RunRecord, SessionQuery, SessionRecord } from '#journal';
import { allRunsOf, turnsBefore } from '#runtime';
import { RequestRefused } from '../problem.ts';
import type { Visit } from '../visit.ts';
import type { SessionPlace } from './request-shapes.ts';

const MOST_IN_PAGE = 200;

/** `undefined` when none of its turns may be read. */
export async function seenSession(visit: Visit, session: SessionRecord): Promise<SessionRecord | undefined> {
  if (visit.access.may === undefined) return session;
  if (!(await visit.may('read', { session: session.session }))) return undefined;
  const seen: RunRecord[] = [];
  for await (const turn of turnsBefore(visit.runtime, session, session.turns + 1))
    if (await visit.allows('read', turn)) seen.push(turn);
  const [last, first] = [seen[0], seen.at(-1)];
  if (last === undefined || first === undefined) return undefined;
  const runs = new Set(seen.map(({ identity: { run } }) => run));
  const { branch, live, ...common } = session;
  return {
    ...common,
    ...(branch !== undefined && runs.has(branch) ? { branch } : {}),
    ...(live !== undefined && runs.has(live.run) ? { live } : {}),
    turns: seen.length,
    waiting: seen.filter(({ waits }) => waits === true).length,
    createdAt: first.createdAt,
    updatedAt: last.createdAt,
  };
}

/**
 * A page of sessions, those with the newest turns first. @param only the session of a visitor who has but one.
 * @returns one more than `limit`, if there are more.
 */
export async function seenSessions(
  visit: Visit,
  { after, limit, ...query }: SessionQuery & { readonly limit: number },
  only: string | undefined,
): Promise<readonly SessionRecord[]> {
  const found: SessionRecord[] = [];
  const size = Math.min(limit + 1, MOST_IN_PAGE);
  // A session may stand further behind than in the store, and never before: its newest turn may be hidden.
  let from: SessionPlace | undefined = visit.access.may === undefined ? after : undefined;
  for (;;) {
    const page = await visit.runtime.sessions.list({ ...query, ...defined({ after: from }), limit: size });
    for (const record of page) {
      from = record;
      const seen = only === undefined || record.session === only ? await seenSession(visit, record) : undefined;
      const isAsked =
        seen !== undefined &&
        seen.updatedAt >= (query.since ?? 0) &&
        (after === undefined || newestFirst(after, seen) < 0);
      if (isAsked) {
        found.push(seen);
        found.sort(newestFirst).splice(limit + 1);
      }
      const last = found[limit];
      if (last !== undefined && newestFirst(last, record) <= 0) return found;
    }
    if (page.length < size) return found;
  }
}

/** As stores have it, so that a page ends where theirs do. */
function newestFirst(one: SessionPlace, other: SessionPlace): number {
  return (
    other.updatedAt - one.updatedAt || compareTexts(one.user, other.user) || compareTexts(one.session, other.session)
  );
}

/** @throws RequestRefused `forbidden` when the visitor may not stop each of its runs; it says nothing of them. */
export async function assertControlsAll(visit: Visit, scope: Scope): Promise<void> {
  if (visit.access.may === undefined) return;
  for await (const record of allRunsOf(visit.runtime, scope)) {
    if (await visit.allows('control', record)) continue;
    const message = 'The session has something that you may not stop, and is not deleted.';
    throw new RequestRefused('forbidden', message, { action: 'control' });
  }
}
