/** Conversations: what is said, shown, edited, and read as it comes. */
import { defined, PilotageError } from '#core';
import type { SessionRecord } from '#journal';
import type { SendOptions, SentMessage } from '#runtime';
import type { Visit } from '../visit.ts';
import { withinTime } from '../within-time.ts';
import { jsonAnswer } from './mount.ts';
import { END, idIn, indexIn, lastError } from './reading-routes.ts';
import * as gives from './reply-shapes.ts';
import type { SendBody } from './request-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, none, route } from './route.ts';
import { assertControlsAll, seenSession, seenSessions } from './seen-sessions.ts';
import {
  assertOwner,
  beginningIn,
  cursorIn,
  cursorOf,
  listedFor,
  seenTurns,
  sessionOf,
  tenantOf,
  userMessageIn,
} from './visiting.ts';

const tag = 'sessions';

function sent({ id, turn, as }: Omit<SentMessage, 'result'>, path: string): Response {
  return jsonAnswer({ id, turn, as }, 201, { location: `${path}/runs/${encodeURIComponent(turn)}` });
}

const send = route('post /sessions/{session}/messages', {
  tag,
  summary: 'Accepts a message, once per id: it begins a turn, is told to the one under way, or interrupts it (busy).',
  query: asks.ofVisited,
  body: asks.sendMessage,
  reply: jsonReply(gives.sent, 201),
  handle: async ({ visit, params, query: of, body, path }) => {
    const { session } = await sessionOf(visit, params.session, 'start', of, beginningIn(visit, body));
    return sent(await session.send(userMessageIn(body), sendingIn(body)), path);
  },
});

function sendingIn({ busy, id, clientTools }: Pick<SendBody, 'busy' | 'id' | 'clientTools'>): SendOptions {
  return defined({ busy, id, clientTools });
}

/** The agent of a turn has the one in its place, too. @throws RequestRefused `forbidden`. */
async function assertOtherTurn(visit: Visit, turn: string): Promise<void> {
  if (visit.access.may !== undefined) await visit.run(turn, 'start');
}

const edit = route('post /sessions/{session}/turns/{turn}/edit', {
  tag,
  summary: 'Sends another message in the place of that of a turn, on a branch of its own.',
  query: asks.ofVisited,
  body: asks.sendMessage,
  reply: jsonReply(gives.sent, 201),
  handle: async ({ visit, params, query: of, body, path }) => {
    const { session } = await sessionOf(visit, params.session, 'start', of, beginningIn(visit, body));
    await assertOtherTurn(visit, params.turn);
    return sent(await session.edit(params.turn, userMessageIn(body), sendingIn(body)), path);
  },
});

const regenerate = route('post /sessions/{session}/turns/{turn}/regenerate', {
  tag,
  summary: 'Answers the messages of a turn once more.',
  query: asks.ofVisited,
  body: asks.regenerate,
  isBodyOptional: true,
  reply: jsonReply(gives.sent, 201),
  handle: async ({ visit, params, query: of, body, path }) => {
    const { session } = await sessionOf(visit, params.session, 'start', of, beginningIn(visit, body));
    await assertOtherTurn(visit, params.turn);
    return sent(await session.regenerate(params.turn, sendingIn(body)), path);
  },
});

const messages = route('get /sessions/{session}/messages', {
  tag,
  summary:
    'The conversation on the branch on which the session is, as messages of the AI SDK, and the position of its events.',
  query: asks.lastTurns,
  reply: jsonReply(gives.messages),
  handle: async ({ visit, params, query }) => {
    const { limit } = query;
    const { session } = await sessionOf(visit, params.session, 'read', query);
    const position = await session.position();
    // Files stay where they are: their references are read by the runs of the session.
    const fileUrl = ({ artifactRef }: { readonly artifactRef: string }): string => `artifact:${artifactRef}`;
    return { items: await session.uiMessages({ fileUrl, ...defined({ limit }) }), position };
  },
});

const turns = route('get /sessions/{session}/turns', {
  tag,
  summary: 'The turns of the branch on which the session is, oldest first, and the position of its events.',
  query: asks.lastTurns,
  reply: jsonReply(gives.turns),
  handle: async ({ visit, params, query }) => {
    const { limit } = query;
    const { session } = await sessionOf(visit, params.session, 'read', query);
    const position = await session.position();
    return { items: await seenTurns(visit, await session.turns(defined({ limit }))), position };
  },
});

const branches = route('get /sessions/{session}/branches', {
  tag,
  summary: 'The branches that edits and regenerations have made.',
  query: asks.ofVisited,
  reply: jsonReply(gives.branches),
  handle: async ({ visit, params, query: of }) => {
    const { session } = await sessionOf(visit, params.session, 'read', of);
    return { items: await seenTurns(visit, await session.branches()) };
  },
});

const switchTo = route('post /sessions/{session}/switch', {
  tag,
  summary: 'The next message goes on from this turn.',
  query: asks.ofVisited,
  body: asks.switchTo,
  reply: none,
  handle: async ({ visit, params, query: of, body }) => {
    assertOwner(visit, 'switch branches');
    const { session } = await sessionOf(visit, params.session, 'control', of);
    await session.switchTo(body.turn);
    return undefined;
  },
});

const cancel = route('post /sessions/{session}/cancel', {
  tag,
  summary: 'Cancels the turn that is under way; with waiting, also those that wait.',
  query: asks.ofVisited,
  body: asks.cancelSession,
  isBodyOptional: true,
  reply: none,
  handle: async ({ visit, params, query: of, body }) => {
    assertOwner(visit, 'cancel');
    const { session } = await sessionOf(visit, params.session, 'control', of);
    await session.cancel(body);
    return undefined;
  },
});

const result = route('get /sessions/{session}/result', {
  tag,
  summary: 'The result of the last turn when none is under way, or 202 when one still is after waitMs.',
  query: asks.waitInSession,
  reply: jsonReply(gives.result, 200, gives.notYet),
  handle: async ({ visit, params, query }) => {
    const { session, scope } = await sessionOf(visit, params.session, 'read', query);
    if ((await visit.runtime.sessions.get(scope)) === undefined) throw notThere(params.session);
    const found = await withinTime(query.waitMs ?? 0, visit.signal, (over) => session.result({ signal: over })).catch(
      (error: unknown) => {
        // A turn that may not be read is not named.
        throw PilotageError.is(error, 'run_not_found') ? notThere(params.session) : error;
      },
    );
    if (visit.access.may !== undefined) {
      const turns = await session.turns({ limit: 1 });
      if ((await seenTurns(visit, turns)).length < turns.length) throw notThere(params.session);
    }
    return found ?? jsonAnswer({ status: 'running' }, 202, { 'retry-after': '1' });
  },
});

function notThere(session: string): PilotageError {
  return new PilotageError('run_not_found', `There is no session ${session}.`);
}

const events = route('get /sessions/{session}/events', {
  tag,
  summary: 'The events of all turns, one turn after another, and of turns that come later, until the reader leaves.',
  headers: ['Last-Event-ID'],
  query: asks.readSession,
  reply: { kind: 'events', event: gives.anEvent },
  handle: async ({ visit, params, query, context, tell }) => {
    const { tasks = false } = query;
    const { session } = await sessionOf(visit, params.session, 'read', query);
    const after = indexIn(idIn(context, query.after));
    return visit.stream(
      async function* (signal) {
        let last = after;
        for await (const event of session.events({ from: after === 0 ? 0 : after + 1, tasks, signal })) {
          const { position } = event;
          // What is not recorded has the position of what was recorded before it.
          const isBehind = position > last && event.path === undefined;
          if (isBehind) last = position;
          yield { data: JSON.stringify(tell(event)), ...(isBehind ? { id: `${position}` } : {}) };
        }
        if (!signal.aborted) yield END;
      },
      { onError: lastError },
    );
  },
});

const get = route('get /sessions/{session}', {
  tag,
  summary: 'The session as lists have it.',
  query: asks.ofVisited,
  reply: jsonReply(gives.session),
  handle: async ({ visit, params, query: of }) => {
    const { scope } = await sessionOf(visit, params.session, 'read', of);
    const found = await visit.runtime.sessions.get(scope);
    const seen = found && (await seenSession(visit, found));
    if (seen === undefined) throw notThere(params.session);
    return seen;
  },
});

const title = route('patch /sessions/{session}', {
  tag,
  summary: 'Gives the session a title; null takes it away.',
  query: asks.ofVisited,
  body: asks.setTitle,
  reply: none,
  handle: async ({ visit, params, query: of, body }) => {
    const { scope } = await sessionOf(visit, params.session, 'control', of);
    await visit.runtime.sessions.setTitle(scope, body.title);
    return undefined;
  },
});

const remove = route('delete /sessions/{session}', {
  tag,
  summary: 'Deletes the session with all its runs and files, for good.',
  query: asks.ofVisited,
  reply: jsonReply(gives.deleted),
  handle: async ({ visit, params, query: of }) => {
    const { scope } = await sessionOf(visit, params.session, 'manage', of);
    await assertControlsAll(visit, scope);
    return { runs: await visit.runtime.sessions.delete(scope) };
  },
});

const list = route('get /sessions', {
  tag,
  action: 'read',
  summary: 'The sessions of the visitor, those with the newest turns first; of an admin those of the tenant.',
  query: asks.listSessions,
  reply: jsonReply(gives.sessions),
  handle: async ({ visit, query }) => {
    const { text, since, limit = 50, after } = query;
    const owner = listedFor(visit, query);
    if (owner === undefined) return { items: [] };
    const { user, session } = owner;
    const tenant = tenantOf(visit, query);
    const from = cursorIn(after, asks.placeOfSession);
    const asked = { tenant, limit, ...defined({ user, text, since, after: from }) };
    const found = await seenSessions(visit, asked, session);
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, ...defined({ next: last && cursorOf(placeOf(last)) }) };
  },
});

function placeOf({ user, session, updatedAt }: SessionRecord): asks.SessionPlace {
  return { user, session, updatedAt };
}

export const SESSION_ROUTES: readonly ApiRoute[] = [
  send,
  edit,
  regenerate,
  messages,
  turns,
  branches,
  switchTo,
  cancel,
  result,
  events,
  get,
  title,
  remove,
  list,
];
