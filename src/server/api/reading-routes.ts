/** What is read of a run while it is under way, and from any place on: events, streams of tools, files. */
import { defined, type Json, PilotageError, type RunEvent, type StreamRow } from '#core';
import { hasEnded } from '#journal';
import type { Run } from '#runtime';
import { artifactResponse } from '../artifact.ts';
import type { ServerEvent } from '../event-stream.ts';
import { problemBody, RequestRefused, statusOf } from '../problem.ts';
import { fromOf, type NumberedEvent, numbered, placeIn } from './event-ids.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRequest, type ApiRoute, jsonReply, route } from './route.ts';

const tag = 'runs';
const PAGE = 200;
/** Says that the stream has ended by itself: a connection that was cut has none. */
export const END: ServerEvent = { event: 'end', data: '{}' };

const events = route('get /runs/{run}/events', {
  tag,
  action: 'read',
  summary:
    'The events of the run: with Accept: text/event-stream as they come, and otherwise a page of those that are recorded.',
  headers: ['Last-Event-ID', 'Accept'],
  query: asks.readEvents,
  reply: { kind: 'events', event: gives.anEvent, page: gives.events },
  handle: async ({ visit, query, context, tell, params }, { run: own, record }) => {
    const after = placeIn(idIn(context, query.after));
    const run = after.run === undefined ? own : (await visit.run(after.run)).run;
    const { tasks = false, overPauses = false, limit = PAGE } = query;
    const from = fromOf(after);
    const shown = ({ event, id }: NumberedEvent): Json => tell({ ...event, ...defined({ id }) });
    if (!wantsStream(context)) {
      const there = tasks ? run.events({ from, tasks, follow: false }) : recordedFrom(run, from);
      return pageOf(numbered(there, params.run, after), limit, shown);
    }
    // A browser connects again and again, unless it is told that nothing more comes.
    const isWhole = hasEnded(record.status) && after.run === undefined && after.seq >= record.head;
    if (isWhole && (after.part === undefined || after.seq > record.head)) return new Response(null, { status: 204 });
    return visit.stream(
      async function* (signal) {
        const options = { from, tasks, overPauses, signal };
        for await (const each of numbered(run.events(options), params.run, after))
          yield { data: JSON.stringify(shown(each)), ...defined({ id: each.id }) };
        if (!signal.aborted) yield END;
      },
      { onError: lastError },
    );
  },
});

/** The last event of a stream that cannot go on. When another server goes on with it, or this one will, there is none: the reader comes again. */
export function lastError(error: unknown): ServerEvent | undefined {
  if (statusOf(error) === 503 || PilotageError.is(error, 'lease_lost')) return undefined;
  return { event: 'error', data: JSON.stringify(problemBody(error)) };
}

/** No more is read than the page takes: a run may be long. */
async function* recordedFrom(run: Run, from: number): AsyncGenerator<RunEvent> {
  for (let at = from; ; ) {
    const { events, next } = await run.recorded({ from: at, limit: PAGE });
    yield* events;
    // Behind the last one stands what the run that goes on with it has recorded.
    if (next === at) return yield* run.events({ from: at, follow: false });
    at = next;
  }
}

async function pageOf<T extends { readonly id?: string }, S>(
  there: AsyncIterable<T>,
  limit: number,
  shown: (each: T) => S,
): Promise<{ readonly items: readonly S[]; readonly next?: string }> {
  const items: S[] = [];
  let last: string | undefined;
  for await (const each of there) {
    if (items.length === limit && each.id !== undefined) return { items, ...defined({ next: last }) };
    items.push(shown(each));
    last = each.id ?? last;
  }
  return { items };
}

type Context = ApiRequest['context'];

/** The header comes first: a browser that connects again sends it to the address that it had. */
export function idIn(context: Context, after: string | undefined): string | undefined {
  const header = context.req.header('last-event-id');
  return header === undefined || header === '' ? after : header;
}

function wantsStream(context: Context): boolean {
  return /\btext\/event-stream\b/.test(context.req.header('accept') ?? '');
}

const streams = route('get /runs/{run}/streams', {
  tag,
  action: 'read',
  summary: 'The streams that tools of the run have written.',
  reply: jsonReply(gives.streams),
  handle: async (_, { run }) => ({ items: await run.streams() }),
});

const rows = route('get /runs/{run}/streams/{stream}', {
  tag,
  action: 'read',
  summary: 'The rows of a stream: with Accept: text/event-stream also those that come, and otherwise a page.',
  headers: ['Last-Event-ID', 'Accept'],
  query: asks.readRows,
  reply: { kind: 'events', event: gives.row, page: gives.rows },
  handle: async ({ visit, params, query, context }, { run }) => {
    const { limit = PAGE } = query;
    const from = indexIn(idIn(context, query.after)) + 1;
    if (!wantsStream(context)) {
      return pageOf(withIds(run.stream(params.stream, { from, follow: false })), limit, ({ row }) => row);
    }
    return visit.stream(
      async function* (signal) {
        for await (const row of run.stream(params.stream, { from, signal }))
          yield { id: `${row.index}`, data: JSON.stringify(row) };
        if (!signal.aborted) yield END;
      },
      { onError: lastError },
    );
  },
});

async function* withIds(
  from: AsyncIterable<StreamRow>,
): AsyncGenerator<{ readonly id: string; readonly row: StreamRow }> {
  for await (const row of from) yield { id: `${row.index}`, row };
}

/** @throws RequestRefused `request_invalid`. */
export function indexIn(id: string | undefined): number {
  if (id === undefined) return 0;
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw new RequestRefused('request_invalid', `${JSON.stringify(id.slice(0, 64))} is not the number of a row.`);
}

const artifact = route('get /runs/{run}/artifacts/{artifact}', {
  tag,
  action: 'read',
  summary: 'A file of the session of the run, or a part of it (Range).',
  headers: ['Range', 'If-None-Match', 'If-Range'],
  reply: { kind: 'bytes' },
  handle: async ({ params, context }, { run }) =>
    artifactResponse(context.req.raw.headers, params.artifact, await run.artifact(params.artifact)),
});

export const READING_ROUTES: readonly ApiRoute[] = [events, streams, rows, artifact];
